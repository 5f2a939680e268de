// SPDX-License-Identifier: Apache-2.0
/*
 * Memory beside the model, as the system counts it: the most anonymous memory of a process that
 * works on mapped files does not grow with them.
 */
#include "tests/patch/state.h"
#include "tests/tensor/sample.h"

#include "base/file.h"
#include "patch/weights.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define SMALL_BYTES (64 * MIB)
#define LARGE_BYTES (256 * MIB)
#define ROOM_BYTES MIB /* for what is staged, and for what is remembered */
#define GROWTH_KB 4096
#define PATH_BYTES 1024

/* Three states of a model, and the patches between them. */
struct place {
    char states[3][PATH_BYTES], patch[PATH_BYTES], history[PATH_BYTES], out[PATH_BYTES];
};

static struct place place_in(const char *directory, uint64_t bytes) {
    const unsigned mib = (unsigned)(bytes / MIB);
    struct place place;

    for (unsigned i = 0; i < 3; i++)
        snprintf(place.states[i], PATH_BYTES, "%s/%u-%u.safetensors", directory, mib, i);
    snprintf(place.patch, PATH_BYTES, "%s/%u.patch", directory, mib);
    snprintf(place.history, PATH_BYTES, "%s/%u.history", directory, mib);
    snprintf(place.out, PATH_BYTES, "%s/%u-out.safetensors", directory, mib);
    return place;
}

/* Two tensors of BF16, of which a hundredth changes with each step; written through a mapping, so
 * that the test itself, whose children inherit its memory, stays small. */
static void write_state(const char *path, uint64_t bytes, unsigned step) {
    char header[256] = "";
    const uint64_t half = bytes / 2;
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    uint64_t length;
    uint16_t *words;
    uint8_t *map;

    snprintf(header, sizeof header,
             "{\"a\":{\"dtype\":\"BF16\",\"shape\":[%llu],\"data_offsets\":[0,%llu]},"
             "\"b\":{\"dtype\":\"BF16\",\"shape\":[%llu],\"data_offsets\":[%llu,%llu]}}",
             (unsigned long long)half / 2, (unsigned long long)half, (unsigned long long)half / 2,
             (unsigned long long)half, (unsigned long long)bytes);
    memset(header + strlen(header), ' ', 200 - strlen(header));
    length = 200;
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, (off_t)(8 + length + bytes)), 0);
    map = mmap(NULL, 8 + length + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(map != MAP_FAILED);
    memcpy(map, &length, 8);
    memcpy(map + 8, header, length);
    words = (uint16_t *)(void *)(map + 8 + length);
    for (uint64_t i = 0; i < bytes / 2; i++)
        words[i] = (uint16_t)(0x3c00 + (i * 0x9e3779b97f4a7c15u >> 54));
    for (unsigned s = 1; s <= step; s++) {
        for (uint64_t i = s; i < bytes / 2; i += 100)
            words[i] = (uint16_t)(words[i] + 1);
    }
    assert_int_equal(munmap(map, 8 + length + bytes), 0);
    close(file);
}

/* ---- what is measured, in a child ---- */

struct models {
    struct ulp_pool *pool;
    struct ulp_model *models[3];
    const struct ulp_tensor *tensors[3];
    size_t count;
    struct ulp_weights *weights; /* over the second state */
};

static void models_open(const struct place *place, struct models *m) {
    *m = (struct models){.pool = pool_of(2)};
    for (unsigned i = 0; i < 3; i++) {
        assert_ok(ulp_model_open(place->states[i], &m->models[i]));
        m->tensors[i] = ulp_model_tensors(m->models[i]);
        m->count = ulp_model_count(m->models[i]);
    }
    assert_ok(ulp_weights_new(m->tensors[1], m->count, m->pool, NULL, &m->weights));
}

static void models_close(struct models *m) {
    ulp_weights_free(m->weights);
    for (unsigned i = 0; i < 3; i++)
        ulp_model_free(m->models[i]);
    ulp_pool_free(m->pool);
}

static void remember(struct models *m) {
    assert_ok(weights_remember_in(m->weights, m->tensors[0], m->count,
                                  (struct staging_room){.heap_bytes = ROOM_BYTES}, m->pool, NULL));
}

static void make_patches(const struct place *place) {
    struct models m;
    struct ulp_diff_options options = {0};

    models_open(place, &m);
    options.pool = m.pool;
    assert_ok(ulp_diff_file(m.weights, m.tensors[2], m.count, &options, place->patch,
                            ULP_COMMIT_NEW, NULL));
    remember(&m);
    options.history = 1;
    assert_ok(ulp_diff_file(m.weights, m.tensors[2], m.count, &options, place->history,
                            ULP_COMMIT_NEW, NULL));
    models_close(&m);
}

static void prepare(const struct place *place) {
    struct models m;
    struct ulp_apply_options options = {.staging_bytes = ROOM_BYTES, .remember = 1};
    struct ulp_patch *patch = NULL;
    struct ulp_apply *apply = NULL;

    models_open(place, &m);
    remember(&m);
    options.pool = m.pool;
    assert_ok(ulp_patch_open(place->history, &patch));
    assert_ok(ulp_apply_prepare(m.weights, patch, &options, &apply));
    ulp_apply_free(apply);
    ulp_patch_free(patch);
    models_close(&m);
}

static void patch_model(const struct place *place) {
    struct ulp_apply_options options = {.staging_bytes = ROOM_BYTES, .pool = pool_of(2)};
    struct ulp_model *before = NULL;
    struct ulp_patch *patch = NULL;

    assert_ok(ulp_model_open(place->states[0], &before));
    assert_ok(ulp_patch_open(place->history, &patch));
    assert_ok(ulp_model_patch(place->states[1], patch, before, place->out, &options, NULL));
    ulp_patch_free(patch);
    ulp_model_free(before);
    ulp_pool_free(options.pool);
}

/* ---- measuring ---- */

static long anonymous_kb(pid_t process) {
    char name[64], line[128];
    long kb = 0;
    FILE *status;

    snprintf(name, sizeof name, "/proc/%ld/status", (long)process);
    status = fopen(name, "r");
    while (status && fgets(line, sizeof line, status)) {
        if (sscanf(line, "RssAnon: %ld kB", &kb) == 1)
            break;
    }
    if (status)
        fclose(status);
    return kb;
}

/* The most that was seen while it ran, above what it began with. */
static long peak_kb(void (*work)(const struct place *), const struct place *place) {
    const struct timespec nap = {.tv_nsec = 500000};
    long most = 0, start = anonymous_kb(getpid());
    int result = 0;
    pid_t child;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (!child) {
        work(place);
        _exit(0);
    }
    while (!waitpid(child, &result, WNOHANG)) {
        long now = anonymous_kb(child);

        most = now > most ? now : most;
        nanosleep(&nap, NULL);
    }
    assert_true(WIFEXITED(result) && !WEXITSTATUS(result));
    return most - start;
}

static void test_memory_does_not_grow_with_the_model(void **unused) {
    static const struct {
        const char *name;
        void (*work)(const struct place *);
    } works[] = {{"diff", make_patches}, {"prepare", prepare}, {"model_patch", patch_model}};
    char *directory = temp_directory_make();
    const struct place small = place_in(directory, SMALL_BYTES);
    const struct place large = place_in(directory, LARGE_BYTES);

    (void)unused;
    for (unsigned i = 0; i < 3; i++) {
        write_state(small.states[i], SMALL_BYTES, i);
        write_state(large.states[i], LARGE_BYTES, i);
    }
    for (unsigned i = 0; i < COUNT(works); i++) {
        long few = peak_kb(works[i].work, &small), many = peak_kb(works[i].work, &large);

        print_message("%s: %ld KiB at 64 MiB, %ld KiB at 256 MiB\n", works[i].name, few, many);
        assert_true(few > 1024); /* or nothing was measured */
        assert_true(few < 64 * 1024);
        if (many > few + GROWTH_KB)
            fail_msg("%s: %ld KiB with 64 MiB, %ld KiB with 256 MiB", works[i].name, few, many);
    }
    temp_directory_remove(directory);
}

/* The sanitizers keep memory of their own, which grows. */
int main(void) {
    const CMUnitTestFunction functions[] = {test_memory_does_not_grow_with_the_model};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    print_message("skipped: a sanitizer's own memory would be measured\n");
    return 77;
#endif
    if (!anonymous_kb(getpid())) {
        print_message("skipped: this system does not tell anonymous memory\n");
        return 77;
    }
    return test_run(functions, 1, "test_memory_does_not_grow_with_the_model");
}
