// SPDX-License-Identifier: Apache-2.0
/*
 * The JSON reader on any bytes: it ends, stays inside the text, and gives the same verdict twice;
 * a string that it reads is UTF-8 without NUL and, written and read again, the same.
 */
#include "base/json.h"
#include "base/utf8.h"
#include "fuzz/target.h"

#include <string.h>

static enum ulp_status skip_all(const uint8_t *data, size_t size, size_t *ret_at) {
    struct json json;
    enum ulp_status status;

    json_init(&json, data, size, "fuzz");
    status = json_skip(&json);
    if (!status)
        status = json_end(&json);
    MUST(json.at <= size);
    MUST(status || json.depth == 0);
    *ret_at = json.at;
    return status;
}

static void check_string(const uint8_t *data, size_t size) {
    struct buffer text = BUFFER(size), again = BUFFER(size), out = BUFFER(6 * size + 2);
    struct json json;

    json_init(&json, data, size, "fuzz");
    if (!json_string(&json, &text)) {
        MUST(json.at >= 2 && json.at <= size && data[json.at - 1] == '"');
        MUST(strlen(buffer_text(&text)) == text.used);
        MUST(utf8_valid(buffer_text(&text), text.used));
        MUST(!json_append_string(&out, buffer_text(&text)));
        json_init(&json, out.data, out.used, "fuzz again");
        MUST(!json_string(&json, &again) && !json_end(&json));
        MUST(again.used == text.used &&
             !memcmp(buffer_text(&again), buffer_text(&text), text.used));
    }
    buffer_release(&text);
    buffer_release(&again);
    buffer_release(&out);
}

static void check_number(const uint8_t *data, size_t size) {
    struct buffer digits = BUFFER(24);
    struct json json;
    uint64_t value = 0, again = 0;

    json_init(&json, data, size, "fuzz");
    if (!json_u64(&json, &value)) {
        MUST(json.at >= 1 && json.at <= size);
        MUST(!buffer_append_format(&digits, "%llu", (unsigned long long)value));
        MUST(json.at >= digits.used);
        MUST(!memcmp(data + json.at - digits.used, digits.data, digits.used));
        json_init(&json, digits.data, digits.used, "fuzz again");
        MUST(!json_u64(&json, &again) && !json_end(&json) && again == value);
    }
    buffer_release(&digits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t first_at = 0, second_at = 0;
    enum ulp_status first = skip_all(data, size, &first_at);

    MUST(first == skip_all(data, size, &second_at) && first_at == second_at);
    check_string(data, size);
    check_number(data, size);
    return 0;
}
