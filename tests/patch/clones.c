// SPDX-License-Identifier: Apache-2.0
/*
 * On a file system that shares blocks a copy takes room for what changes alone, and has the same
 * bytes. The file system is an image of XFS, mounted where only this process and its children see
 * it: nothing of it is left, however the test ends. Skipped without root or mkfs.xfs.
 */
#define _GNU_SOURCE /* unshare, syncfs */
#include "tests/patch/disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define FROZEN_BYTES ((uint64_t)48 << 20)
#define IMAGE_BYTES ((off_t)400 << 20) /* mkfs.xfs wants 300 MB; hardly any of it is written */

static const struct form forms[] = {{"frozen", "U8", {FROZEN_BYTES}, 1, 0},
                                    {"moving", "BF16", {100, 1000}, 2, 0}};

static char *top;
static struct path mounted;

static int run(const char *const words[]) {
    int result = 0;
    pid_t child = fork();

    if (!child) {
        execvp(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    return child > 0 && waitpid(child, &result, 0) == child && WIFEXITED(result)
               ? WEXITSTATUS(result)
               : -1;
}

/* Why there is no such file system; NULL when there is one. */
static const char *mount_image(void) {
    const struct path image = path_of(top, "image");
    const char *const make[] = {"mkfs.xfs", "-q", "-m", "reflink=1", image.text, NULL};
    const char *const mount_it[] = {"mount", "-t",       "xfs",        "-o",
                                    "loop",  image.text, mounted.text, NULL};

    if (geteuid() || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return "only root may mount file systems";
    write_file(image.text, "", 0);
    assert_int_equal(truncate(image.text, IMAGE_BYTES), 0);
    assert_int_equal(mkdir(mounted.text, 0777), 0);
    if (run(make))
        return "mkfs.xfs is missing (package xfsprogs), or cannot share blocks";
    return run(mount_it) ? "the image cannot be mounted" : NULL;
}

static uint64_t free_bytes(void) {
    int directory = open(mounted.text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct statvfs info;

    assert_int_equal(syncfs(directory), 0);
    close(directory);
    assert_int_equal(statvfs(mounted.text, &info), 0);
    return (uint64_t)info.f_bfree * info.f_frsize;
}

struct model {
    struct state base, next;
    struct bytes bytes;
    struct ulp_patch *patch;
    struct path path;
};

static struct model model_make(unsigned shards) {
    struct model model = {.base = state_make(forms, COUNT(forms), 0)};

    model.next = state_copy(&model.base);
    state_step(&model.next, 10);
    memcpy(model.next.tensors[0].data, model.base.tensors[0].data, (size_t)FROZEN_BYTES);
    model.bytes = patch_between(&model.base, &model.next, NULL);
    model.patch = open_bytes(&model.bytes);
    model.path = path_of(mounted.text, "model");
    assert_ok(ulp_model_save(model.path.text, model.base.tensors, model.base.count, NULL, 0, shards,
                             NULL));
    return model;
}

static void model_free_all(struct model *model) {
    temp_directory_remove(strdup(model->path.text));
    ulp_patch_free(model->patch);
    bytes_free(&model->bytes);
    state_free(&model->base);
    state_free(&model->next);
}

/* The patched copy at `out` is what saving the next state gives, and the model is as it was. */
static void assert_copy(const struct model *model, const char *out, unsigned shards) {
    const struct path saved = path_of(top, "saved");
    struct bytes a, b;

    assert_ok(ulp_model_patch(model->path.text, model->patch, NULL, out, NULL, NULL));
    assert_ok(
        ulp_model_save(saved.text, model->next.tensors, model->next.count, NULL, 0, shards, NULL));
    a = directory_bytes(out);
    b = directory_bytes(saved.text);
    assert_same_bytes(&a, &b);
    assert_holds(model->path.text, model->base.tensors, model->base.count);
    bytes_free(&a);
    bytes_free(&b);
    temp_directory_remove(strdup(saved.text));
}

static void test_a_copy_takes_room_for_changes_alone(void **unused) {
    const struct path out = path_of(mounted.text, "out");

    (void)unused;
    for (unsigned shards = 1; shards <= 2; shards++) {
        struct model model = model_make(shards);
        const uint64_t before = free_bytes();
        uint64_t after;

        assert_copy(&model, out.text, shards);
        after = free_bytes();
        print_message("%u shards: %.1f MiB for a copy of %.1f MiB\n", shards,
                      (double)(before - after) / 1048576, (double)FROZEN_BYTES / 1048576);
        assert_true(after <= before);
        assert_true(before - after < FROZEN_BYTES / 4);
        temp_directory_remove(strdup(out.text));
        model_free_all(&model);
    }
}

/* Blocks cannot be shared with another file system: they are copied. */
static void test_a_copy_elsewhere(void **unused) {
    const struct path out = path_of(top, "out");
    struct model model = model_make(2);

    (void)unused;
    assert_copy(&model, out.text, 2);
    temp_directory_remove(strdup(out.text));
    model_free_all(&model);
}

int main(void) {
    static const CMUnitTestFunction tests[] = {test_a_copy_takes_room_for_changes_alone,
                                               test_a_copy_elsewhere};
    const char *missing;
    int failed = 77;

    top = temp_directory_make();
    mounted = path_of(top, "mounted");
    missing = mount_image();
    if (missing)
        fprintf(stderr, "skipped: %s\n", missing);
    else
        failed = test_run(tests, COUNT(tests),
                          "test_a_copy_takes_room_for_changes_alone, test_a_copy_elsewhere");
    if (!missing)
        umount2(mounted.text, MNT_DETACH);
    temp_directory_remove(top);
    return failed;
}
