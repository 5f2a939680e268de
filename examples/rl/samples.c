// SPDX-License-Identifier: Apache-2.0
#include "samples.h"

#include "memory.h"

#include <math.h>
#include <string.h>

#define MAGIC "rlsample"
#define HEAD 24
#define SAMPLE_MAX (2 + TOKENS_MAX + 4 * TOKENS_MAX)

void samples_release(struct samples *samples) {
    free(samples->sequences);
    memset(samples, 0, sizeof *samples);
}

void samples_key(const char *run, uint64_t version, const char *name,
                 char ret_key[ULP_KEY_BYTES_MAX + 1]) {
    snprintf(ret_key, ULP_KEY_BYTES_MAX + 1, "%s-samples/%020llu/%s", run,
             (unsigned long long)version, name);
}

static uint8_t *write_number(uint8_t *at, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

static uint64_t read_number(const uint8_t *at, unsigned bytes) {
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static uint8_t *write_sample(uint8_t *at, const struct sequence *s) {
    *at++ = s->length;
    *at++ = s->prompt;
    memcpy(at, s->tokens, s->length);
    at += s->length;
    for (size_t i = s->prompt; i < s->length; i++) {
        uint32_t bits;

        memcpy(&bits, &s->log_chance[i], sizeof bits);
        at = write_number(at, bits, 4);
    }
    return at;
}

enum ulp_status samples_put(struct ulp_store *store, const char *key,
                            const struct samples *samples) {
    const size_t count = samples->groups * samples->size;
    uint8_t *data = zeroed(HEAD + count * SAMPLE_MAX, 1), *at = data;
    enum ulp_status status;

    memcpy(at, MAGIC, 8);
    at = write_number(at + 8, samples->version, 8);
    at = write_number(at, samples->groups, 4);
    at = write_number(at, samples->size, 4);
    for (size_t i = 0; i < count; i++)
        at = write_sample(at, &samples->sequences[i]);
    status = ulp_store_put(store, key, data, (size_t)(at - data));
    free(data);
    return status;
}

/* What a sample takes, or 0 if there is none. */
static size_t read_sample(const uint8_t *at, size_t left, struct sequence *s) {
    size_t bytes;

    memset(s, 0, sizeof *s);
    if (left < 2 || at[0] > TOKENS_MAX || at[1] < 1 || at[1] >= at[0])
        return 0;
    s->length = at[0];
    s->prompt = at[1];
    bytes = 2 + (size_t)s->length + 4 * (size_t)(s->length - s->prompt);
    if (left < bytes)
        return 0;
    memcpy(s->tokens, at + 2, s->length);
    at += 2 + s->length;
    for (size_t i = s->prompt; i < s->length; i++, at += 4) {
        const uint32_t bits = (uint32_t)read_number(at, 4);

        memcpy(&s->log_chance[i], &bits, sizeof bits);
        if (!(s->log_chance[i] <= 0) || isinf(s->log_chance[i]))
            return 0;
    }
    return bytes;
}

static enum ulp_status parse(const char *key, const uint8_t *data, size_t bytes,
                             struct samples *samples) {
    const size_t groups = bytes < HEAD ? 0 : (size_t)read_number(data + 16, 4);
    const size_t size = bytes < HEAD ? 0 : (size_t)read_number(data + 20, 4);
    size_t at = HEAD, taken = 1;

    if (bytes < HEAD || memcmp(data, MAGIC, 8) != 0 || !groups || !size || groups > SAMPLES_MAX ||
        size > SAMPLES_MAX / groups)
        return ulp_fail(ULP_E_SCHEMA, "%s does not hold samples", key);
    samples->version = read_number(data + 8, 8);
    samples->groups = groups;
    samples->size = size;
    samples->sequences = zeroed(groups * size, sizeof *samples->sequences);
    for (size_t i = 0; taken && i < groups * size; i++) {
        taken = read_sample(data + at, bytes - at, &samples->sequences[i]);
        at += taken;
    }
    return taken && at == bytes ? ULP_OK
                                : ulp_fail(ULP_E_SCHEMA, "a sample in %s is malformed", key);
}

enum ulp_status samples_get(struct ulp_store *store, const char *key, struct samples *ret_samples) {
    struct samples samples = {0};
    uint64_t total = 0;
    size_t bytes = 0;
    uint8_t *data = NULL;
    enum ulp_status status = ulp_store_stat(store, key, &total);

    if (!status && total > HEAD + (uint64_t)SAMPLES_MAX * SAMPLE_MAX)
        status = ulp_fail(ULP_E_LIMIT, "%s is too large for samples", key);
    if (!status) {
        data = zeroed((size_t)total, 1);
        status = ulp_store_read(store, key, 0, data, (size_t)total, &bytes, &total);
    }
    if (!status)
        status = parse(key, data, bytes, &samples);
    free(data);
    if (status)
        samples_release(&samples);
    else
        *ret_samples = samples;
    return status;
}
