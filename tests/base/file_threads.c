// SPDX-License-Identifier: Apache-2.0
/* Several threads may fill one file, and readers never see half of a replacement. */
#include "tests/test.h"

#include "base/file.h"

#include <stdatomic.h>

enum { PIECE = 1000, PIECES = 400 };

static void fill_piece(uint8_t piece[PIECE], uint64_t index) {
    for (size_t i = 0; i < PIECE; i++)
        piece[i] = (uint8_t)(index * 31 + i * 7);
}

static enum ulp_status put_piece(void *user, uint64_t index) {
    uint8_t piece[PIECE];

    fill_piece(piece, index);
    return file_writer_put(user, index * PIECE, piece, PIECE);
}

static void test_threads_fill_one_file(void **state) {
    char *directory = temp_directory_make();
    const char *path = path_in(directory, "target");
    struct file_writer writer = {0};
    struct file_map map = {0};
    struct ulp_pool *pool = NULL;
    uint8_t piece[PIECE];

    (void)state;
    assert_ok(ulp_pool_new(4, &pool));
    assert_ok(file_writer_open(path, PIECE * PIECES, &writer));
    assert_ok(ulp_pool_run(pool, PIECES, put_piece, &writer, NULL));
    assert_ok(file_writer_commit(&writer, ULP_COMMIT_REPLACE));
    file_writer_release(&writer);
    ulp_pool_free(pool);
    assert_ok(file_map_open(path, FILE_REFUSE_LINKS, &map));
    assert_int_equal(map.bytes, PIECE * PIECES);
    for (uint64_t i = 0; i < PIECES; i++) {
        fill_piece(piece, i);
        assert_memory_equal(map.data + i * PIECE, piece, PIECE);
    }
    file_map_release(&map);
    temp_directory_remove(directory);
}

enum { CONTENTS = 50000, REPLACEMENTS = 40 };

struct scene {
    const char *path;
    atomic_int over;
    atomic_uint reads;
};

static enum ulp_status replace_often(struct scene *scene) {
    static uint8_t data[CONTENTS];
    enum ulp_status status = ULP_OK;

    for (int round = 0; !status && round < REPLACEMENTS; round++) {
        memset(data, 'a' + round % 26, sizeof data);
        status = file_write(scene->path, data, sizeof data, ULP_COMMIT_REPLACE);
    }
    atomic_store(&scene->over, 1);
    return status;
}

/* All bytes are the same, or two versions were seen at once. */
static enum ulp_status read_once(struct scene *scene) {
    struct file_map map = {0};
    enum ulp_status status = file_map_open(scene->path, FILE_REFUSE_LINKS, &map);

    if (status)
        return status;
    if (map.bytes != CONTENTS || memcmp(map.data, map.data + 1, CONTENTS - 1) != 0)
        status = ulp_fail(ULP_E_INTERNAL, "a mixture of %d bytes", (int)map.bytes);
    file_map_release(&map);
    atomic_fetch_add(&scene->reads, 1);
    return status;
}

static enum ulp_status act(void *user, uint64_t index) {
    struct scene *scene = user;
    enum ulp_status status = ULP_OK;

    if (index == 0)
        return replace_often(scene);
    do
        status = read_once(scene);
    while (!status && !atomic_load(&scene->over));
    return status;
}

static void test_readers_see_whole_versions_only(void **state) {
    char *directory = temp_directory_make();
    struct scene scene = {.path = path_in(directory, "target")};
    struct ulp_pool *pool = NULL;
    static uint8_t data[CONTENTS];

    (void)state;
    assert_ok(file_write(scene.path, data, sizeof data, ULP_COMMIT_REPLACE));
    assert_ok(ulp_pool_new(3, &pool));
    assert_ok(ulp_pool_run(pool, 3, act, &scene, NULL));
    assert_true(atomic_load(&scene.reads) >= 2);
    ulp_pool_free(pool);
    temp_directory_remove(directory);
}

TEST_MAIN(test_threads_fill_one_file, test_readers_see_whole_versions_only)
