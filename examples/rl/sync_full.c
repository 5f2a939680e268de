// SPDX-License-Identifier: Apache-2.0
#include "sync_full.h"

#include "jsonl.h"
#include "memory.h"

#include <string.h>

#define HEAD (8 + ULP_ROOT_BYTES)

static void key_of(const char *run, uint64_t version, char key[ULP_KEY_BYTES_MAX + 1]) {
    snprintf(key, ULP_KEY_BYTES_MAX + 1, "%s-full/%020llu", run, (unsigned long long)version);
}

enum ulp_status full_refuse_old_run(struct ulp_store *store, const char *run) {
    char key[ULP_KEY_BYTES_MAX + 1];
    uint64_t bytes;
    enum ulp_status status;

    key_of(run, 0, key);
    status = ulp_store_stat(store, key, &bytes);
    if (!status)
        return ulp_fail(ULP_E_EXISTS,
                        "the store has a run %.80s already; choose another name, or another store",
                        run);
    return status == ULP_E_NOT_FOUND ? ULP_OK : status;
}

static size_t bytes_of(const struct state *state) {
    return HEAD + state->layout->total * sizeof *state->bits;
}

enum ulp_status full_put(struct ulp_store *store, const char *run, uint64_t version,
                         const struct state *state, uint64_t *ret_bytes) {
    const size_t bytes = bytes_of(state);
    uint8_t *data = zeroed(bytes, 1);
    const uint64_t now = wall_ms();
    char key[ULP_KEY_BYTES_MAX + 1];
    struct ulp_root root;
    enum ulp_status status = state_root(state, &root);

    for (unsigned i = 0; i < 8; i++)
        data[i] = (uint8_t)(now >> 8 * i);
    memcpy(data + 8, root.bytes, ULP_ROOT_BYTES);
    memcpy(data + HEAD, state->bits, bytes - HEAD);
    key_of(run, version, key);
    if (!status)
        status = ulp_store_put(store, key, data, bytes);
    free(data);
    if (!status)
        *ret_bytes = bytes;
    return status;
}

static enum ulp_status take(const char *key, const uint8_t *data, size_t bytes,
                            const struct state *state, uint64_t *ret_time_ms) {
    struct ulp_root root;
    enum ulp_status status;

    if (bytes != bytes_of(state))
        return ulp_fail(ULP_E_SIZE, "%s has %zu bytes; this model has %zu", key, bytes,
                        bytes_of(state));
    memcpy(state->bits, data + HEAD, bytes - HEAD);
    status = state_root(state, &root);
    if (!status && memcmp(root.bytes, data + 8, ULP_ROOT_BYTES) != 0)
        status = ulp_fail(ULP_E_WRONG_RESULT, "%s has another root than it says", key);
    *ret_time_ms = 0;
    for (unsigned i = 0; i < 8; i++)
        *ret_time_ms |= (uint64_t)data[i] << 8 * i;
    return status;
}

enum ulp_status full_get(struct ulp_store *store, const char *run, uint64_t version,
                         const struct state *state, uint64_t *bytes, uint64_t *ret_time_ms) {
    const size_t room = bytes_of(state) + 1; /* one more than there should be, to see that */
    uint8_t *data = zeroed(room, 1);
    char key[ULP_KEY_BYTES_MAX + 1];
    uint64_t total;
    size_t count = 0;
    enum ulp_status status;

    key_of(run, version, key);
    status = ulp_store_read(store, key, 0, data, room, &count, &total);
    if (!status)
        status = take(key, data, count, state, ret_time_ms);
    if (!status)
        *bytes += count;
    free(data);
    return status;
}
