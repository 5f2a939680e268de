// SPDX-License-Identifier: Apache-2.0
/*
 * Tensors, models on disk, and the root digest of a state.
 *
 *     struct ulp_model *model = NULL;
 *     struct ulp_root root;
 *     if (ulp_model_open("model.safetensors", &model) ||
 *         ulp_state_digest(ulp_model_tensors(model), ulp_model_count(model), NULL, NULL, NULL, &root))
 *         fprintf(stderr, "%s\n", ulp_last_error());
 *     ulp_model_free(model);
 */
#ifndef ULPSYNC_MODEL_H
#define ULPSYNC_MODEL_H

#include <stddef.h>
#include <stdint.h>
#include <ulpsync/pool.h>
#include <ulpsync/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tensors ----------------------------------------------------------------------------- */

/*
 * A named view of memory that somebody else owns. Fill in name, dtype, shape, rank and data, then
 * let ulp_tensor_measure() compute the rest; tensors of an opened model are complete.
 */
struct ulp_tensor {
    const char *name;      /* in checkpoint coordinates, e.g. "model.layers.0.mlp.up_proj.weight" */
    const char *dtype;     /* as safetensors spells it: "BF16", "F8_E4M3", ... */
    const uint64_t *shape; /* `rank` extents, row-major */
    uint32_t rank;
    uint32_t bits;     /* of one element; 0 only for an unknown dtype without elements */
    uint64_t elements; /* product of the extents */
    uint64_t bytes;
    void *data; /* read-only unless a function says that it writes */
};

/* Bits of one element of a known dtype, 0 for an unknown one. */
ULP_API uint32_t ulp_dtype_bits(const char *dtype);

/*
 * Fills in bits, elements and bytes of a tensor whose other fields are set. A dtype that this
 * version does not know is accepted when `tensor->bytes` is set beforehand: its width is then
 * bytes * 8 / elements. For a known dtype a non-zero `tensor->bytes` must be the right one.
 */
ULP_API enum ulp_status ulp_tensor_measure(struct ulp_tensor *tensor);

/* ---- models on disk ---------------------------------------------------------------------- */

/*
 * A model: the tensors of one safetensors file or of a directory of them, mapped read-only.
 * Everything about the headers is verified when it is opened; the weights are read when they are
 * used. Any number of threads may use an open model. If the files are truncated while mapped,
 * touching the lost pages raises SIGBUS, as with any mapping.
 */
struct ulp_model;

/*
 * `path` is a safetensors file; an index (`*.safetensors.index.json`); or a directory. In a
 * directory `model.safetensors.index.json` decides which files count; without it
 * `model.safetensors`; without that, all `*.safetensors` files together.
 *
 * As long as it is open, nobody changes the files with ulp_model_patch_in_place(). ULP_E_BUSY while
 * somebody does, ULP_E_INTERRUPTED when that was cut off and has to be finished first.
 */
ULP_API enum ulp_status ulp_model_open(const char *path, struct ulp_model **ret_model);
ULP_API void ulp_model_free(struct ulp_model *model);

/* Tensors in ascending byte order of their names; they live as long as the model. */
ULP_API size_t ulp_model_count(const struct ulp_model *model);
ULP_API const struct ulp_tensor *ulp_model_tensors(const struct ulp_model *model);
ULP_API const struct ulp_tensor *ulp_model_find(const struct ulp_model *model, const char *name);
ULP_API uint64_t ulp_model_bytes(const struct ulp_model *model);
ULP_API size_t ulp_model_files(const struct ulp_model *model);

/* A key and a value of the free-form text in `__metadata__`. */
struct ulp_text_pair {
    const char *key;
    const char *value;
};

/* `__metadata__` of the first file that has any. */
ULP_API size_t ulp_model_metadata(const struct ulp_model *model,
                                  const struct ulp_text_pair **ret_pairs);

/* ULP_E_EXISTS if something, be it a link to nowhere, has this name. To be asked before long work
 * whose result is to be committed with ULP_COMMIT_NEW. */
ULP_API enum ulp_status ulp_name_is_free(const char *path);

/* Makes the last directory of `path`, to last beyond a crash; one that exists already is fine. */
ULP_API enum ulp_status ulp_directory_make(const char *path);

/* ---- writing models ---------------------------------------------------------------------- */

/*
 * Writes one safetensors file, canonically: the same tensors and metadata give the same bytes,
 * whatever order they come in. The file appears under its name only when committed, complete and
 * synced to disk; a writer that is freed before leaves nothing behind.
 */
struct ulp_writer;

/*
 * The tensors' `data` is not looked at; names, dtypes, shapes and metadata are copied.
 */
ULP_API enum ulp_status ulp_writer_create(const char *path, const struct ulp_tensor *tensors,
                                          size_t count, const struct ulp_text_pair *metadata,
                                          size_t metadata_count, struct ulp_writer **ret_writer);

/*
 * Writes `bytes` bytes at `offset` into tensor `index` (its place in the array given at creation).
 * Several threads may write different ranges at once. Bytes never written are zero.
 */
ULP_API enum ulp_status ulp_writer_put(struct ulp_writer *writer, size_t index, uint64_t offset,
                                       const void *data, uint64_t bytes);

/* What a commit does with a file that is there already: refuse with ULP_E_EXISTS, or replace it. */
enum ulp_commit { ULP_COMMIT_NEW = 0, ULP_COMMIT_REPLACE = 1 };
ULP_API enum ulp_status ulp_writer_commit(struct ulp_writer *writer, enum ulp_commit commit);
ULP_API void ulp_writer_free(struct ulp_writer *writer);

/*
 * Writes tensors with their data as a model directory: `model.safetensors` when `shards` is 1,
 * otherwise `model-00001-of-0000N.safetensors` ... and an index, written last. The directory is
 * made if it is missing and must not hold a model yet. On failure the files that this call had
 * put there are removed again.
 */
ULP_API enum ulp_status ulp_model_save(const char *directory, const struct ulp_tensor *tensors,
                                       size_t count, const struct ulp_text_pair *metadata,
                                       size_t metadata_count, unsigned shards,
                                       const struct ulp_progress *progress);

/* ---- the root digest --------------------------------------------------------------------- */

/*
 * One value for a whole state: names, dtypes, shapes and every bit of the contents. It does not
 * depend on how tensors are spread over files, nor on `__metadata__`. It finds faults and wrong
 * bases; it is not proof against a forger (see docs/format/root.md).
 */
#define ULP_ROOT_BYTES 32
struct ulp_root {
    uint8_t bytes[ULP_ROOT_BYTES];
};

/* The contents of one tensor: a keyed sum over its 8-byte words, in two lanes. */
struct ulp_sum {
    uint64_t lane[2];
};

/*
 * Digests the given tensors, which may come in any order but need different names. `ret_sums`,
 * unless NULL, receives one sum per tensor, in the order given.
 */
ULP_API enum ulp_status ulp_state_digest(const struct ulp_tensor *tensors, size_t count,
                                         struct ulp_pool *pool, const struct ulp_progress *progress,
                                         struct ulp_sum *ret_sums, struct ulp_root *ret_root);

/*
 * Keeping a root up to date costs time in proportion to the changes: adjust the sums of the tensors
 * that change, then hash the sums again.
 *
 * ulp_sum_replace() adjusts `sum` for a change that is about to be made to `tensor`: the elements
 * at first_element + positions[i] (strictly ascending; first_element a multiple of 8) become
 * values[i]. The tensor's data must still be the old ones; called after the change with the old
 * values, it undoes the adjustment. Elements are counted in words of 8, 4, 2 or 1 bytes, whichever
 * the dtype's width allows; packed types (4 or 6 bits) are counted in bytes.
 */
ULP_API enum ulp_status ulp_sum_replace(const struct ulp_tensor *tensor, uint64_t first_element,
                                        const uint32_t *positions, const void *values, size_t count,
                                        struct ulp_sum *sum);
ULP_API enum ulp_status ulp_state_root(const struct ulp_tensor *tensors, size_t count,
                                       const struct ulp_sum *sums, struct ulp_root *ret_root);

/* Lower-case hexadecimal, NUL-terminated. */
#define ULP_ROOT_HEX_BYTES (2 * ULP_ROOT_BYTES + 1)
ULP_API void ulp_root_hex(const struct ulp_root *root, char ret_hex[ULP_ROOT_HEX_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
