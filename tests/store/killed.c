// SPDX-License-Identifier: Apache-2.0
/*
 * kill -9 on entry to and on exit from every system call of creating and of putting: the object is
 * absent, old or complete, nothing else has a key, and the next one to try succeeds.
 */
#include "tests/store/stores.h"

#include "base/file.h"
#include "tests/patch/tracer.h"

enum { CONTENTS = 9000 };

static char new_contents[CONTENTS];

struct target {
    struct place *place;
    char key[32];
    bool was_there;
};

static int create(const void *user) {
    const struct target *target = user;

    return ulp_store_create(target->place->store, target->key, new_contents, CONTENTS) != ULP_OK;
}

static int put(const void *user) {
    const struct target *target = user;
    struct ulp_store_writer *writer = NULL;
    enum ulp_status status = ulp_store_put_begin(target->place->store, target->key, &writer);

    if (!status)
        status = ulp_store_put_write(writer, new_contents, 5000);
    if (!status)
        status = ulp_store_put_write(writer, new_contents + 5000, CONTENTS - 5000);
    if (!status)
        status = ulp_store_put_end(writer, 1);
    return status != ULP_OK;
}

struct outcomes {
    unsigned long old, absent, complete;
};

static void look(const struct target *target, struct outcomes *seen) {
    struct ulp_store *store = target->place->store;
    struct listed list = listed(store, "", "");
    char found[CONTENTS + 1];
    size_t bytes = 0;
    enum ulp_status status = read_whole(store, target->key, found, sizeof found, &bytes);

    if (status) {
        assert_int_equal(status, ULP_E_NOT_FOUND);
        assert_false(target->was_there);
        assert_int_equal(list.count, 0);
        seen->absent++;
        return;
    }
    assert_int_equal(list.count, 1);
    assert_memory_equal(list.text, target->key, strlen(target->key));
    if (target->was_there && bytes == 3) {
        assert_memory_equal(found, "old", 3);
        seen->old++;
        return;
    }
    assert_int_equal(bytes, CONTENTS);
    assert_memory_equal(found, new_contents, CONTENTS);
    seen->complete++;
}

/* What is old was put there without syncing, which is what takes time; what is new has directories
 * of its own, so that what a killed one leaves does not help the next. */
static bool kill_one(unsigned long at, traced_work work, struct target *target,
                     struct outcomes *seen) {
    struct outcomes after = {0};
    bool killed;

    if (target->was_there)
        plant_file(path_in(target->place->directory, target->key), "old");
    else
        snprintf(target->key, sizeof target->key, "run%lu/log/1", at);
    killed = killed_at(at, work, target);
    look(target, seen);
    if (killed && at % 8 == 0) {
        assert_int_equal(put(target), 0);
        look(target, &after);
        assert_int_equal(after.complete, 1);
    }
    if (!target->was_there)
        assert_ok(ulp_store_remove(target->place->store, target->key));
    return killed;
}

static void kill_everywhere(traced_work work, bool was_there) {
    for (int named = 0; named < 2; named++) {
        struct place place = directory_place();
        struct target target = {&place, "run/log/1", was_there};
        struct outcomes seen = {0};
        unsigned long at = 1;

        if (was_there)
            put_text(place.store, target.key, "old");
        file_writer_always_named(named);
        while (at < 1000 && kill_one(at, work, &target, &seen))
            at++;
        file_writer_always_named(false);
        print_message("%lu stops: %lu old, %lu absent, %lu complete\n", at - 1, seen.old,
                      seen.absent, seen.complete);
        assert_in_range(at, 20, 999);
        assert_true((was_there ? seen.old : seen.absent) > 10 && seen.complete > 2);
        place_free(&place);
    }
}

static void test_create(void **state) {
    (void)state;
    kill_everywhere(create, false);
}

static void test_put(void **state) {
    (void)state;
    kill_everywhere(put, false);
}

static void test_put_over_another(void **state) {
    (void)state;
    kill_everywhere(put, true);
}

int main(void) {
    static const CMUnitTestFunction tests[] = {test_create, test_put, test_put_over_another};

    if (!tracer_works()) {
        fprintf(stderr, "skipped: processes may not be traced here\n");
        return 77;
    }
    test_random_bytes(new_contents, sizeof new_contents);
    return test_run(tests, COUNT(tests), "test_create, test_put, test_put_over_another");
}
