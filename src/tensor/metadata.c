// SPDX-License-Identifier: Apache-2.0
#include "base/quote.h"
#include "base/status.h"
#include "tensor/safetensors.h"

#include <stdlib.h>
#include <string.h>

static int by_key(const void *a, const void *b) {
    return strcmp(((const struct ulp_text_pair *)a)->key, ((const struct ulp_text_pair *)b)->key);
}

enum ulp_status metadata_sort(const char *what, struct ulp_text_pair *pairs, size_t count) {
    if (count)
        qsort(pairs, count, sizeof *pairs, by_key);
    for (size_t i = 1; i < count; i++) {
        if (!by_key(&pairs[i - 1], &pairs[i]))
            return fail(ULP_E_DUPLICATE, "%s: the metadata key %s occurs twice", quote(what).text,
                        quote(pairs[i].key).text);
    }
    return ULP_OK;
}
