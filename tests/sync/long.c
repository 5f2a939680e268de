// SPDX-License-Identifier: Apache-2.0
/* A run whose publisher asks for no anchors gets some all the same, before its map has no room left
 * (I5, I6). */
#include "base/limits.h"
#include "tests/sync/trainer.h"

#include <limits.h>

#define VERSIONS (LIMIT_WAYS / 2 + 10)

static void test_the_map_does_not_overflow(void **unused) {
    const struct ulp_run_options never = {.history_reset = UINT_MAX, .anchor_every = UINT_MAX};
    struct trainer t = trainer_make(1, true);
    struct path state = below(&t, "state"), model = model_of(&t);
    unsigned anchors = 0;
    struct ulp_run_report report = {0};

    (void)unused;
    trainer_step(&t);
    for (unsigned i = 0; i < VERSIONS; i++) {
        assert_ok(ulp_publish(t.store, RUN, state.text, model.text, i, &never, &report));
        assert_int_equal(report.head.version, i);
        anchors += report.head.anchor_bytes != 0;
    }
    assert_int_equal(anchors, 2); /* the first version, and one more */
    assert_ok(ulp_follow(t.store, RUN, below(&t, "f").text, NULL, &report));
    assert_int_equal(report.head.version, VERSIONS - 1);
    assert_holds_root(below(&t, "f/current").text, &t.roots[0]);
    trainer_free(&t);
}

TEST_MAIN(test_the_map_does_not_overflow)
