// SPDX-License-Identifier: Apache-2.0
#include "digest/root.h"

#include "base/endian.h"
#include "base/memory.h"
#include "base/quote.h"
#include "base/status.h"
#include "hash/sha256.h"

#include <stdlib.h>
#include <string.h>

/* Versions the layout below and the mix; part of what is hashed. */
static const char domain[] = "ulpsync root 0\n";

struct named {
    const char *name;
    size_t index;
};

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

enum ulp_status root_order(const struct ulp_tensor *tensors, size_t count, size_t *ret_order) {
    struct named *names = NULL;
    enum ulp_status status = mem_zeroed(count, sizeof *names, &names);

    if (status)
        return status;
    for (size_t i = 0; i < count; i++)
        names[i] = (struct named){tensors[i].name, i};
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 1; i < count && !status; i++) {
        if (!by_name(&names[i - 1], &names[i]))
            status = fail(ULP_E_DUPLICATE, "two tensors are called %s", quote(names[i].name).text);
    }
    for (size_t i = 0; i < count && !status; i++)
        ret_order[i] = names[i].index;
    mem_free(names);
    return status;
}

static enum ulp_status add_u64(struct sha256 *hash, uint64_t value) {
    uint8_t bytes[8];

    store_le64(bytes, value);
    return sha256_add(hash, bytes, sizeof bytes);
}

/* The length in front keeps "ab" + "c" from being "a" + "bc". */
static enum ulp_status add_text(struct sha256 *hash, const char *text) {
    size_t length = strlen(text);
    enum ulp_status status = add_u64(hash, length);

    return status ? status : sha256_add(hash, text, length);
}

static enum ulp_status add_tensor(struct sha256 *hash, const struct ulp_tensor *tensor,
                                  const struct ulp_sum *sum) {
    enum ulp_status status = add_text(hash, tensor->name);

    if (!status)
        status = add_text(hash, tensor->dtype);
    if (!status)
        status = add_u64(hash, tensor->rank);
    for (uint32_t i = 0; !status && i < tensor->rank; i++)
        status = add_u64(hash, tensor->shape[i]);
    if (!status)
        status = add_u64(hash, tensor->bytes);
    if (!status)
        status = add_u64(hash, sum->lane[0]);
    return status ? status : add_u64(hash, sum->lane[1]);
}

enum ulp_status root_of_sums(const struct ulp_tensor *tensors, const size_t *order, size_t count,
                             const struct ulp_sum *sums, struct ulp_root *ret_root) {
    struct sha256 *hash = NULL;
    enum ulp_status status = sha256_begin(&hash);

    if (!status)
        status = sha256_add(hash, domain, sizeof domain - 1);
    if (!status)
        status = add_u64(hash, count);
    for (size_t i = 0; !status && i < count; i++)
        status = add_tensor(hash, &tensors[order[i]], &sums[order[i]]);
    if (!status)
        status = sha256_end(hash, ret_root->bytes);
    sha256_free(hash);
    return status;
}
