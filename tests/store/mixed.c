// SPDX-License-Identifier: Apache-2.0
/* Many threads do everything at once on few objects; each read finds one of the versions, whole. */
#include "tests/store/stores.h"

enum { THREADS = 8, TASKS = 400, KEYS = 5, CONTENTS = 600 };

/* Objects say in every byte who wrote them, and are as long as that says. */
static size_t fill(char data[CONTENTS], uint64_t index) {
    memset(data, (int)(index % 200), CONTENTS);
    return CONTENTS - (size_t)(index % 200);
}

static enum ulp_status check(const char *data, size_t bytes) {
    if (bytes != CONTENTS - (size_t)(uint8_t)data[0] || memcmp(data, data + 1, bytes - 1) != 0)
        return ulp_fail(ULP_E_INTERNAL, "a mixture of %zu bytes", bytes);
    return ULP_OK;
}

static enum ulp_status read_one(struct ulp_store *store, const char *key) {
    char data[CONTENTS];
    size_t bytes = 0;
    enum ulp_status status = read_whole(store, key, data, sizeof data, &bytes);

    return status ? status : check(data, bytes);
}

static enum ulp_status put_one(struct ulp_store *store, const char *key, uint64_t index) {
    struct ulp_store_writer *writer = NULL;
    char data[CONTENTS];
    size_t bytes = fill(data, index);
    enum ulp_status status = ulp_store_put_begin(store, key, &writer);

    if (status)
        return status;
    status = ulp_store_put_write(writer, data, bytes / 2);
    if (!status)
        status = ulp_store_put_write(writer, data + bytes / 2, bytes - bytes / 2);
    if (status) {
        ulp_store_put_end(writer, 0);
        return status;
    }
    return ulp_store_put_end(writer, index % 3 != 0);
}

static enum ulp_status create_one(struct ulp_store *store, const char *key, uint64_t index) {
    char data[CONTENTS];

    return ulp_store_create(store, key, data, fill(data, index));
}

static int check_order(void *user, const char *key, uint64_t bytes) {
    char *last = user;

    if (strcmp(key, last) <= 0 || bytes > CONTENTS || bytes <= CONTENTS - 200)
        return 1;
    strcpy(last, key);
    return 0;
}

static enum ulp_status list_all(struct ulp_store *store) {
    char last[ULP_KEY_BYTES_MAX + 1] = "";

    return ulp_store_list(store, "", "", check_order, last);
}

static enum ulp_status act(void *user, uint64_t index) {
    struct ulp_store *store = user;
    uint64_t total = 0;
    char key[32];
    enum ulp_status status;

    snprintf(key, sizeof key, "d%d/%d", (int)(index % 2), (int)(index * 7 / 5 % KEYS));
    switch (index * 13 / 7 % 6) {
    case 0:
        status = put_one(store, key, index);
        break;
    case 1:
        status = create_one(store, key, index);
        break;
    case 2:
        status = ulp_store_remove(store, key);
        break;
    case 3:
        status = list_all(store);
        break;
    case 4:
        status = ulp_store_stat(store, key, &total);
        break;
    default:
        status = read_one(store, key);
        break;
    }
    return status == ULP_E_NOT_FOUND || status == ULP_E_EXISTS ? ULP_OK : status;
}

static void everything_at_once(struct place *place) {
    struct ulp_pool *pool = NULL;

    assert_ok(ulp_pool_new(THREADS, &pool));
    assert_ok(ulp_pool_run(pool, TASKS, act, place->store, NULL));
    ulp_pool_free(pool);
    if (!place->directory)
        return;
    assert_int_equal(entries_in(place->directory), 2);
    assert_int_equal(entries_in(path_in(place->directory, "d0")) +
                         entries_in(path_in(place->directory, "d1")),
                     listed(place->store, "", "").count);
}

TEST_EACH(everything_at_once)

TEST_MAIN(test_everything_at_once)
