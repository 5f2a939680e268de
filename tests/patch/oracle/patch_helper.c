// SPDX-License-Identifier: Apache-2.0
/*
 * The library's patches for scripts: reads a request from each line of its input and answers with a
 * line, a status name and what there is to say. Words are separated by blanks; "-" stands for none.
 *
 *     diff CODER BASE BEFORE CHILD OUT [TENSOR:ROW:ROWS:COLUMN:COLUMNS]...    parent child
 *     apply BASE BEFORE CHILD-ROOT OUT PATCH...                               child
 *     verify PATCH
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulpsync/ulpsync.h>

#define WORDS_MAX 600
#define PATCHES_MAX 16

/* A model and a copy of its tensors that can be written to. */
struct state {
    struct ulp_model *model;
    struct ulp_tensor *tensors;
    size_t count;
    struct ulp_weights *weights;
};

static void state_free(struct state *state) {
    ulp_weights_free(state->weights);
    for (size_t i = 0; i < state->count; i++)
        free(state->tensors[i].data);
    free(state->tensors);
    ulp_model_free(state->model);
}

static enum ulp_status copy_tensors(struct state *state) {
    const struct ulp_tensor *tensors = ulp_model_tensors(state->model);
    size_t count = ulp_model_count(state->model);

    state->tensors = calloc(count + 1, sizeof *state->tensors);
    if (!state->tensors)
        return ULP_E_NOMEM;
    for (; state->count < count; state->count++) {
        struct ulp_tensor *copy = &state->tensors[state->count];

        *copy = tensors[state->count];
        copy->data = malloc((size_t)copy->bytes + 1);
        if (!copy->data)
            return ULP_E_NOMEM;
        if (copy->bytes > 0)
            memcpy(copy->data, tensors[state->count].data, (size_t)copy->bytes);
    }
    return ULP_OK;
}

static enum ulp_status remember(struct state *state, const char *path) {
    struct ulp_model *before = NULL;
    enum ulp_status status;

    if (strcmp(path, "-") == 0)
        return ULP_OK;
    status = ulp_model_open(path, &before);
    if (!status)
        status = ulp_weights_remember(state->weights, ulp_model_tensors(before),
                                      ulp_model_count(before), NULL, NULL);
    ulp_model_free(before);
    return status;
}

static enum ulp_status state_open(struct state *state, const char *base, const char *before) {
    enum ulp_status status = ulp_model_open(base, &state->model);

    if (!status)
        status = copy_tensors(state);
    if (!status)
        status = ulp_weights_new(state->tensors, state->count, NULL, NULL, &state->weights);
    if (!status)
        status = remember(state, before);
    return status;
}

static enum ulp_status state_save(const struct state *state, const char *path) {
    struct ulp_writer *writer = NULL;
    enum ulp_status status;

    if (strcmp(path, "-") == 0)
        return ULP_OK;
    status = ulp_writer_create(path, state->tensors, state->count, NULL, 0, &writer);
    for (size_t i = 0; !status && i < state->count; i++)
        status = ulp_writer_put(writer, i, 0, state->tensors[i].data, state->tensors[i].bytes);
    if (!status)
        status = ulp_writer_commit(writer, ULP_COMMIT_REPLACE);
    ulp_writer_free(writer);
    return status;
}

static int answer(enum ulp_status status, const char *text) {
    printf("%s %s\n", ulp_status_name(status), status ? ulp_last_error() : text);
    return fflush(stdout);
}

/* ---- diff -------------------------------------------------------------------------------- */

static enum ulp_status read_region(char *word, struct ulp_region *region) {
    uint64_t *numbers[] = {&region->row, &region->rows, &region->column, &region->columns};

    region->tensor = strtok(word, ":");
    for (size_t i = 0; i < 4; i++) {
        char *number = strtok(NULL, ":");

        if (!number)
            return ulp_fail(ULP_E_USAGE, "a region has five parts");
        *numbers[i] = strtoull(number, NULL, 10);
    }
    return ULP_OK;
}

static enum ulp_coder coder_named(const char *name) {
    static const char *const names[] = {"best", "context", "plain", "dense"};
    size_t coder = 0;

    while (coder < 3 && strcmp(names[coder], name) != 0)
        coder++;
    return (enum ulp_coder)coder;
}

static int diff(char **words, size_t count) {
    static struct ulp_region regions[WORDS_MAX];
    struct ulp_diff_options options = {0};
    struct ulp_diff_report report = {0};
    struct state state = {0};
    struct ulp_model *child = NULL;
    char text[2 * ULP_ROOT_HEX_BYTES] = "";
    enum ulp_status status = state_open(&state, words[1], words[2]);

    for (size_t i = 5; !status && i < count; i++)
        status = read_region(words[i], &regions[options.region_count++]);
    options.coder = coder_named(words[0]);
    options.history = strcmp(words[2], "-") != 0;
    options.regions = options.region_count > 0 ? regions : NULL;
    if (!status)
        status = ulp_model_open(words[3], &child);
    if (!status)
        status = ulp_diff_file(state.weights, ulp_model_tensors(child), ulp_model_count(child),
                               &options, words[4], ULP_COMMIT_REPLACE, &report);
    ulp_root_hex(&report.parent, text);
    text[ULP_ROOT_HEX_BYTES - 1] = ' ';
    ulp_root_hex(&report.child, text + ULP_ROOT_HEX_BYTES);
    answer(status, text);
    ulp_model_free(child);
    state_free(&state);
    return 0;
}

/* ---- apply ------------------------------------------------------------------------------- */

static enum ulp_status read_root(const char *hex, struct ulp_root *root) {
    for (size_t i = 0; i < ULP_ROOT_BYTES; i++) {
        unsigned byte;

        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            return ulp_fail(ULP_E_USAGE, "not a root");
        root->bytes[i] = (uint8_t)byte;
    }
    return ULP_OK;
}

/* What is in memory has the root that the handle believes, whether the call went well or not. */
static enum ulp_status check_memory(const struct state *state, char ret_hex[ULP_ROOT_HEX_BYTES]) {
    struct ulp_root said, found;
    enum ulp_status status =
        ulp_state_digest(state->tensors, state->count, NULL, NULL, NULL, &found);

    if (status)
        return status;
    ulp_weights_root(state->weights, &said);
    ulp_root_hex(&found, ret_hex);
    if (memcmp(&said, &found, sizeof said) != 0)
        return ulp_fail(ULP_E_INTERNAL, "the weights are not those of their root");
    return ULP_OK;
}

static enum ulp_status apply_patches(struct state *state, const char *child,
                                     struct ulp_patch *const *patches, size_t count) {
    struct ulp_patch_info info;
    struct ulp_apply *apply = NULL;
    struct ulp_root root;
    enum ulp_status status = ULP_OK;

    ulp_patch_info(patches[0], &info);
    if (count == 1 && !info.partial)
        return ulp_apply(state->weights, patches[0], NULL, NULL);
    if (strcmp(child, "-") != 0)
        status = read_root(child, &root);
    if (!status)
        status =
            ulp_apply_prepare_parts(state->weights, (const struct ulp_patch *const *)patches, count,
                                    strcmp(child, "-") != 0 ? &root : NULL, NULL, &apply);
    if (!status)
        status = ulp_apply_commit(apply, NULL, NULL);
    ulp_apply_free(apply);
    return status;
}

static int apply(char **words, size_t count) {
    struct ulp_patch *patches[PATCHES_MAX] = {0};
    struct state state = {0};
    size_t opened = 0;
    char hex[ULP_ROOT_HEX_BYTES] = "", message[1024];
    enum ulp_status status = ULP_OK, memory;

    for (size_t i = 4; !status && i < count && opened < PATCHES_MAX; i++)
        status = ulp_patch_open(words[i], &patches[opened++]);
    if (!status)
        status = state_open(&state, words[0], words[1]);
    if (!status) {
        status = apply_patches(&state, words[2], patches, opened);
        snprintf(message, sizeof message, "%s", ulp_last_error());
        memory = check_memory(&state, hex);
        if (!memory && status)
            ulp_fail(status, "%s", message);
        status = memory ? memory : status;
    }
    if (!status)
        status = state_save(&state, words[3]);
    answer(status, hex);
    state_free(&state);
    while (opened > 0)
        ulp_patch_free(patches[--opened]);
    return 0;
}

static int verify(char **words) {
    struct ulp_patch *patch = NULL;
    enum ulp_status status = ulp_patch_open(words[0], &patch);

    if (!status)
        status = ulp_patch_verify(patch, NULL, NULL);
    answer(status, "");
    ulp_patch_free(patch);
    return 0;
}

int main(void) {
    static char line[1 << 16];
    static char *words[WORDS_MAX];

    while (fgets(line, sizeof line, stdin)) {
        size_t count = 0;

        for (char *word = strtok(line, " \n"); word && count < WORDS_MAX;
             word = strtok(NULL, " \n"))
            words[count++] = word;
        if (count >= 6 && strcmp(words[0], "diff") == 0)
            diff(words + 1, count - 1);
        else if (count >= 6 && strcmp(words[0], "apply") == 0)
            apply(words + 1, count - 1);
        else if (count == 2 && strcmp(words[0], "verify") == 0)
            verify(words + 1);
        else
            return ULP_E_USAGE;
    }
    return 0;
}
