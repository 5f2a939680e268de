// SPDX-License-Identifier: Apache-2.0
/*
 * What a step costs when ranks send a patch of their own tile each: tiles OLD NEW COUNT [RULES]
 *
 * Each rank makes its part from its tile alone, and from the parts together comes the root that all
 * of them lead to. RULES is a tiling's text; docs/tiles.md describes it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulpsync/ulpsync.h>

#define TILES 64

/* A patch in memory. */
struct part {
    unsigned char *data;
    size_t bytes;
    struct ulp_patch *patch;
};

static enum ulp_status append(void *user, const void *data, size_t count) {
    struct part *part = user;
    unsigned char *grown = realloc(part->data, part->bytes + count);

    if (!grown)
        return ulp_fail(ULP_E_NOMEM, "no memory for a patch");
    part->data = grown;
    memcpy(grown + part->bytes, data, count);
    part->bytes += count;
    return ULP_OK;
}

struct step {
    const struct ulp_tensor *old, *new;
    size_t tensors;
    struct ulp_root root; /* of `old` */
    struct ulp_tiling *tiling;
};

/* One rank, which would hold no more than these regions. An empty tile has no part. */
static enum ulp_status make_part(const struct step *step, unsigned tile, struct part *part) {
    struct ulp_region *regions = NULL;
    struct ulp_weights *weights = NULL;
    struct ulp_sink sink = {append, part};
    size_t count = 0;
    enum ulp_status status =
        ulp_tiling_regions(step->tiling, step->old, step->tensors, tile, &regions, &count);

    if (!status && count) {
        status = ulp_weights_new_tile(step->old, step->tensors, regions, count, &step->root, NULL,
                                      NULL, &weights);
        if (!status)
            status = ulp_diff(weights, step->new, step->tensors, NULL, &sink, NULL);
        if (!status)
            status = ulp_patch_open_memory(part->data, part->bytes, &part->patch);
    }
    ulp_weights_free(weights);
    ulp_regions_free(regions);
    return status;
}

static enum ulp_status whole_patch(struct step *step, struct part *whole) {
    struct ulp_weights *weights = NULL;
    struct ulp_sink sink = {append, whole};
    enum ulp_status status = ulp_weights_new(step->old, step->tensors, NULL, NULL, &weights);

    if (!status) {
        ulp_weights_root(weights, &step->root);
        status = ulp_diff(weights, step->new, step->tensors, NULL, &sink, NULL);
    }
    if (!status)
        status = ulp_patch_open_memory(whole->data, whole->bytes, &whole->patch);
    ulp_weights_free(weights);
    return status;
}

/* The parts' root is the one that the whole patch names. */
static enum ulp_status join(const struct part *whole, const struct part *parts, unsigned tiles) {
    const struct ulp_patch *list[TILES + 1];
    struct ulp_patch_info info;
    struct ulp_root root;
    char named[ULP_ROOT_HEX_BYTES], joined[ULP_ROOT_HEX_BYTES];
    size_t count = 0, sum = 0;
    enum ulp_status status;

    for (unsigned i = 0; i <= tiles; i++) {
        if (parts[i].patch)
            list[count++] = parts[i].patch;
        printf("%s %u: %zu bytes\n", i ? "tile" : "common part, tile", i, parts[i].bytes);
        sum += parts[i].bytes;
    }
    status = ulp_parts_root(list, count, &root);
    if (status)
        return status;
    ulp_patch_info(whole->patch, &info);
    ulp_root_hex(&info.child, named);
    ulp_root_hex(&root, joined);
    printf("together %zu bytes, one whole patch %zu: %+.2f %%\nroot of the parts %s\n", sum,
           whole->bytes, 100.0 * ((double)sum / (double)whole->bytes - 1), joined);
    return strcmp(named, joined)
               ? ulp_fail(ULP_E_WRONG_RESULT, "the whole patch leads to %s", named)
               : ULP_OK;
}

static enum ulp_status compare(struct step *step, unsigned tiles) {
    struct part whole = {0}, parts[TILES + 1] = {{0}};
    enum ulp_status status = whole_patch(step, &whole);

    for (unsigned i = 0; !status && i <= tiles; i++)
        status = make_part(step, i, &parts[i]);
    if (!status)
        status = join(&whole, parts, tiles);
    for (unsigned i = 0; i <= tiles; i++) {
        ulp_patch_free(parts[i].patch);
        free(parts[i].data);
    }
    ulp_patch_free(whole.patch);
    free(whole.data);
    return status;
}

int main(int argc, char **argv) {
    struct ulp_model *old = NULL, *new = NULL;
    struct step step = {0};
    unsigned tiles = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    enum ulp_status status;

    if (argc < 4 || argc > 5 || !tiles || tiles > TILES) {
        fprintf(stderr, "usage: tiles OLD NEW COUNT [RULES], COUNT up to %d\n", TILES);
        return ULP_E_USAGE;
    }
    status = ulp_tiling_new(argc > 4 ? argv[4] : NULL, tiles, &step.tiling);
    if (!status)
        status = ulp_model_open(argv[1], &old);
    if (!status)
        status = ulp_model_open(argv[2], &new);
    if (!status && ulp_model_count(old) != ulp_model_count(new))
        status = ulp_fail(ULP_E_LAYOUT, "the models have different tensors");
    if (!status) {
        step.old = ulp_model_tensors(old);
        step.new = ulp_model_tensors(new);
        step.tensors = ulp_model_count(old);
        status = compare(&step, tiles);
    }
    if (status)
        fprintf(stderr, "%s\n", ulp_last_error());
    ulp_tiling_free(step.tiling);
    ulp_model_free(new);
    ulp_model_free(old);
    return (int)status;
}
