// SPDX-License-Identifier: Apache-2.0
#include "cli/inputs.h"

#include "cli/terminal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FIRST_BYTES 9u /* of a safetensors file: the header's length and its brace */

/* What files that are mistaken for each other begin with. */
static const struct {
    const char *bytes;
    size_t count;
    const char *what;
} beginnings[] = {
    {"ulpatch", 7, "a patch"},
    {"ulpjrnl", 7, "a journal of an interrupted change"},
    {"PK\003\004", 4, "a ZIP archive, such as a PyTorch checkpoint"},
    {"GGUF", 4, "a GGUF file"},
    {"\x89HDF", 4, "an HDF5 file"},
    {"\x1f\x8b", 2, "compressed with gzip"},
    {"\x28\xb5\x2f\xfd", 4, "compressed with zstd"},
};

/* NULL when it cannot be told. */
static const char *what_is(const char *path) {
    unsigned char first[FIRST_BYTES] = {0};
    struct stat info;
    size_t got = 0;
    FILE *file;

    if (stat(path, &info))
        return NULL;
    if (S_ISDIR(info.st_mode))
        return "a directory";
    if (!S_ISREG(info.st_mode)) /* opening a FIFO would wait */
        return NULL;
    file = fopen(path, "rb");
    if (file) {
        got = fread(first, 1, sizeof first, file);
        fclose(file);
    }
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (got >= beginnings[i].count && !memcmp(first, beginnings[i].bytes, beginnings[i].count))
            return beginnings[i].what;
    }
    /* headers of 16 MiB and more do not occur */
    if (got == FIRST_BYTES && first[8] == '{' && !first[3] && !first[4] && !first[7])
        return "a safetensors file";
    return got && first[0] == '{' ? "JSON" : NULL;
}

static bool is_patch(const char *path) {
    const char *what = what_is(path);

    return what && !strcmp(what, beginnings[0].what);
}

static bool may_be_model(const char *what) {
    return !strcmp(what, "a safetensors file") || !strcmp(what, "a directory") ||
           !strcmp(what, "JSON"); /* an index */
}

/* These mean that the file is not what was wanted, or a damaged one. */
static bool is_about_the_file(enum ulp_status status) {
    return (status >= ULP_E_TRUNCATED && status <= ULP_E_NO_MODEL) || status == ULP_E_NOT_A_PATCH;
}

enum ulp_status input_explain(enum ulp_status status, const char *path, const char *wanted) {
    const char *what = is_about_the_file(status) ? what_is(path) : NULL;
    char message[1024];

    if (!what || !strcmp(what, wanted) || (!strcmp(wanted, "a model") && may_be_model(what)))
        return status;
    snprintf(message, sizeof message, "%s", ulp_last_error());
    return ulp_fail(status, "%s (it is %s)", message, what);
}

enum ulp_status input_model(const char *path, struct ulp_model **ret_model) {
    return input_explain(ulp_model_open(path, ret_model), path, "a model");
}

enum ulp_status input_patch(const char *path, struct ulp_patch **ret_patch) {
    return input_explain(ulp_patch_open(path, ret_patch), path, "a patch");
}

enum ulp_status output_is_free(const char *path) {
    enum ulp_status status = ulp_name_is_free(path);
    char message[1024];

    if (status != ULP_E_EXISTS)
        return status;
    snprintf(message, sizeof message, "%s", ulp_last_error());
    return ulp_fail(status, "%s; --replace replaces it", message);
}

/* ---- history ---- */

enum ulp_status history_open(const struct cli_args *args, struct history *ret_history) {
    const char *path = option_text(args, "history"), *base = option_text(args, "history-base");
    struct history history = {0};
    enum ulp_status status;

    if (!path && !base)
        return ULP_OK;
    if (!path)
        return ulp_fail(ULP_E_USAGE, "--history-base goes with --history PATCH");
    if (!is_patch(path)) {
        if (base)
            return ulp_fail(ULP_E_USAGE,
                            "--history '%s' is not a patch, so --history-base has no place", path);
        return input_model(path, &ret_history->before);
    }
    if (!base)
        return ulp_fail(ULP_E_USAGE,
                        "--history '%s' is a patch; say with --history-base which checkpoint it "
                        "starts from",
                        path);
    status = input_patch(path, &history.patch);
    if (!status)
        status = input_model(base, &history.before);
    if (status)
        history_release(&history);
    else
        *ret_history = history;
    return status;
}

void history_release(struct history *history) {
    ulp_model_free(history->before);
    ulp_patch_free(history->patch);
    *history = (struct history){0};
}

static bool same_root(const struct ulp_root *a, const struct ulp_root *b) {
    return !memcmp(a, b, sizeof *a);
}

/* A patch given as history must lead to the base, or it is the wrong one. */
static enum ulp_status check_end(const struct history *history, const struct ulp_root *base) {
    char leads_to[ULP_ROOT_HEX_BYTES], is[ULP_ROOT_HEX_BYTES];
    struct ulp_patch_info info;

    if (!history->patch)
        return ULP_OK;
    ulp_patch_info(history->patch, &info);
    if (same_root(&info.child, base))
        return ULP_OK;
    ulp_root_hex(&info.child, leads_to);
    ulp_root_hex(base, is);
    return ulp_fail(ULP_E_WRONG_BASE,
                    "the patch given as history leads to state %.16s..., but the base is %.16s...",
                    leads_to, is);
}

static enum ulp_status check_start(const struct history *history, const struct ulp_root *before) {
    char starts_at[ULP_ROOT_HEX_BYTES], is[ULP_ROOT_HEX_BYTES];
    struct ulp_patch_info info;

    if (!history->patch)
        return ULP_OK;
    ulp_patch_info(history->patch, &info);
    if (same_root(&info.parent, before))
        return ULP_OK;
    ulp_root_hex(&info.parent, starts_at);
    ulp_root_hex(before, is);
    return ulp_fail(
        ULP_E_WRONG_BASE,
        "the patch given as history starts from state %.16s..., but --history-base is %.16s...",
        starts_at, is);
}

enum ulp_status history_remember(const struct history *history, struct ulp_weights *weights,
                                 struct ulp_pool *pool) {
    struct ulp_root root, before;
    struct progress_line line;
    struct ulp_progress progress;
    enum ulp_status status;

    if (!history->before)
        return ULP_OK;
    ulp_weights_root(weights, &root);
    status = check_end(history, &root);
    if (status)
        return status;
    progress = progress_begin(&line, "history", ulp_model_bytes(history->before));
    status = ulp_weights_remember(weights, ulp_model_tensors(history->before),
                                  ulp_model_count(history->before), pool, &progress);
    progress_end(&line);
    if (status)
        return status;
    ulp_weights_remembers(weights, &before);
    status = check_start(history, &before);
    if (status)
        ulp_weights_forget(weights);
    return status;
}

enum ulp_status history_for(const struct history *history, const struct ulp_patch *patch,
                            const struct ulp_model **ret_before) {
    struct ulp_patch_info info;
    enum ulp_status status;

    ulp_patch_info(patch, &info);
    if (!history->before || !info.history) {
        *ret_before = NULL;
        return ULP_OK;
    }
    status = check_end(history, &info.parent);
    if (!status)
        *ret_before = history->before;
    return status;
}
