// SPDX-License-Identifier: Apache-2.0
#include "tests/sync/career.h"

static const struct form forms[] = {{"embed", "BF16", {64, 48}, 2, 0},
                                    {"norm", "F32", {400}, 1, 0}};

struct career career_make(const struct ulp_run_options *options) {
    struct career c = {.top = temp_directory_make(), .state = state_make(forms, COUNT(forms), 0)};

    assert_ok(ulp_store_memory(&c.store));
    assert_ok(ulp_publisher_open(c.store, "rl", NULL, options, &c.publisher));
    return c;
}

void career_free(struct career *c) {
    ulp_publisher_close(c->publisher);
    ulp_store_free(c->store);
    state_free(&c->state);
    temp_directory_remove(c->top);
}

void career_publish(struct career *c, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        struct ulp_run_report report = {0};

        if (c->versions)
            state_step(&c->state, 20);
        assert_ok(ulp_publisher_publish(c->publisher, c->state.tensors, c->state.count, c->versions,
                                        &report));
        assert_ok(ulp_publisher_anchor(c->publisher, NULL));
        c->roots[c->versions] = root_of(&c->state);
        c->bytes[c->versions++] = report.stored_bytes;
    }
}

struct ulp_run_report career_follow(const struct career *c, struct ulp_store *store,
                                    const char *name) {
    struct ulp_run_report report = {0};

    assert_ok(ulp_follow(store, "rl", path_of(c->top, name).text, NULL, &report));
    assert_int_equal(report.version, c->versions - 1);
    assert_holds_root(path_of(path_of(c->top, name).text, "current").text,
                      &c->roots[c->versions - 1]);
    return report;
}
