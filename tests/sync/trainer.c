// SPDX-License-Identifier: Apache-2.0
#define _XOPEN_SOURCE 700 /* symlink, readlink */
#include "tests/sync/trainer.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct form forms[] = {{"embed", "BF16", {40, 32}, 2, 0},
                                    {"layer.0", "BF16", {900}, 1, 0},
                                    {"norm", "F32", {301}, 1, 0},
                                    {"step", "I64", {0}, 0, 0}};

struct trainer trainer_make(unsigned shards, bool in_memory) {
    struct trainer trainer = {.top = temp_directory_make(),
                              .state = state_make(forms, COUNT(forms), 0),
                              .shards = shards};

    assert_ok(in_memory ? ulp_store_memory(&trainer.store)
                        : ulp_store_open(below(&trainer, "store").text, &trainer.store));
    return trainer;
}

void trainer_free(struct trainer *trainer) {
    ulp_store_free(trainer->store);
    state_free(&trainer->state);
    temp_directory_remove(trainer->top);
}

struct path below(const struct trainer *trainer, const char *name) {
    return path_of(trainer->top, name);
}

struct path model_of(const struct trainer *trainer) {
    return below(trainer, "model");
}

void trainer_step(struct trainer *trainer) {
    struct path model = model_of(trainer);

    assert_true(trainer->count < TRAINER_STEPS_MAX);
    if (trainer->count)
        state_step(&trainer->state, 30);
    trainer->roots[trainer->count++] = root_of(&trainer->state);
    tree_remove(model.text);
    assert_ok(ulp_model_save(model.text, trainer->state.tensors, trainer->state.count, NULL, 0,
                             trainer->shards, NULL));
    write_file(path_of(model.text, "config.json").text, "{}\n", 3);
    write_file(path_of(model.text, "empty.txt").text, "", 0);
    write_file(path_of(model.text, ".hidden").text, "no", 2);
}

struct ulp_run_report trainer_publish(struct trainer *trainer,
                                      const struct ulp_run_options *options) {
    struct ulp_run_report report = {0};

    trainer_step(trainer);
    assert_ok(ulp_publish(trainer->store, RUN, below(trainer, "state").text, model_of(trainer).text,
                          trainer->count - 1, options, &report));
    assert_int_equal(report.head.version, trainer->count - 1);
    assert_same_root(&report.head.root, &trainer->roots[trainer->count - 1]);
    assert_at(trainer, "state", trainer->count - 1);
    return report;
}

enum ulp_status follow_to(const struct trainer *trainer, const char *name) {
    return ulp_follow(trainer->store, RUN, below(trainer, name).text, NULL, NULL);
}

struct ulp_run_report assert_follows(const struct trainer *trainer, const char *name) {
    struct ulp_run_report report = {0};

    assert_ok(ulp_follow(trainer->store, RUN, below(trainer, name).text, NULL, &report));
    assert_int_equal(report.head.version, trainer->count - 1);
    assert_same_root(&report.head.root, &trainer->roots[trainer->count - 1]);
    assert_at(trainer, name, trainer->count - 1);
    return report;
}

void assert_at(const struct trainer *trainer, const char *name, unsigned version) {
    struct path current = path_of(below(trainer, name).text, "current");
    char target[64] = "", expected[64];

    snprintf(expected, sizeof expected, "versions/%020u", version);
    assert_true(readlink(current.text, target, sizeof target - 1) > 0);
    assert_string_equal(target, expected);
    assert_holds_root(current.text, &trainer->roots[version]);
}

void assert_holds_nothing(const struct trainer *trainer, const char *name) {
    struct stat info;

    assert_int_not_equal(lstat(path_of(below(trainer, name).text, "current").text, &info), 0);
}

/* ---- trees ---- */

static void copy_one(const char *from, const char *to) {
    struct stat info;

    assert_int_equal(lstat(from, &info), 0);
    if (S_ISDIR(info.st_mode)) {
        tree_copy(from, to);
    } else if (S_ISLNK(info.st_mode)) {
        char target[4096] = "";

        assert_true(readlink(from, target, sizeof target - 1) > 0);
        assert_int_equal(symlink(target, to), 0);
    } else {
        struct bytes bytes = file_bytes(from);

        write_file(to, bytes.used ? (const void *)bytes.data : "", bytes.used);
        bytes_free(&bytes);
    }
}

void tree_copy(const char *from, const char *to) {
    struct dirent **names = NULL;
    int count = scandir(from, &names, NULL, alphasort);

    assert_true(count >= 0);
    tree_remove(to);
    assert_int_equal(mkdir(to, 0777), 0);
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0)
            copy_one(path_of(from, names[i]->d_name).text, path_of(to, names[i]->d_name).text);
        free(names[i]);
    }
    free(names);
}

void tree_remove(const char *path) {
    struct stat info;

    if (!lstat(path, &info))
        temp_directory_remove(strdup(path));
}

/* ---- objects ---- */

static int count_one(void *user, const char *key, uint64_t bytes) {
    struct objects *objects = user;
    struct object *list = realloc(objects->list, (objects->count + 1) * sizeof *list);

    assert_non_null(list);
    objects->list = list;
    list[objects->count] = (struct object){.bytes = {.used = (size_t)bytes}};
    snprintf(list[objects->count++].key, sizeof list->key, "%s", key);
    return 0;
}

struct objects objects_of(struct ulp_store *store) {
    struct objects objects = {0};

    assert_ok(ulp_store_list(store, "", "", count_one, &objects));
    for (size_t i = 0; i < objects.count; i++) {
        struct bytes *bytes = &objects.list[i].bytes;
        size_t got = 0;
        uint64_t total = 0;

        bytes->data = malloc(bytes->used + 1);
        assert_non_null(bytes->data);
        assert_ok(ulp_store_read(store, objects.list[i].key, 0, bytes->data, bytes->used + 1, &got,
                                 &total));
        assert_int_equal(got, bytes->used);
    }
    return objects;
}

void objects_free(struct objects *objects) {
    for (size_t i = 0; i < objects->count; i++)
        free(objects->list[i].bytes.data);
    free(objects->list);
    *objects = (struct objects){0};
}

void objects_restore(struct ulp_store *store, const struct objects *objects) {
    struct objects there = {0};

    assert_ok(ulp_store_list(store, "", "", count_one, &there));
    for (size_t i = 0; i < there.count; i++)
        assert_ok(ulp_store_remove(store, there.list[i].key));
    free(there.list);
    for (size_t i = 0; i < objects->count; i++)
        assert_ok(ulp_store_put(store, objects->list[i].key, objects->list[i].bytes.data,
                                objects->list[i].bytes.used));
}
