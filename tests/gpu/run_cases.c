// SPDX-License-Identifier: Apache-2.0
/*
 * Runs with publishers and followers on a device, beside those in memory and in a directory: all of
 * them arrive at the same bytes, and what is stored is what a publisher in memory stores. On a GPU, or
 * on fibers that stand in for one.
 */
#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include "gpu/device_copy.h"
#include "gpu_cases.h"
#include "gpu_step.h"
#include "sync/device_holder.h"
#include "sync/publisher.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN "run"
#define TENSORS 5u
#if defined(__SANITIZE_ADDRESS__) /* under which fibers are slow */
#define STEPS 14u
#else
#define STEPS 20u
#endif

static const struct ulp_run_options often = {.anchor_every = 8};
static const struct ulp_run_options only_one = {.anchor_every = 8, .keep_anchors = 1};

/* ---- a model ---- */

struct model {
    struct ulp_tensor tensors[TENSORS]; /* the host's */
    uint64_t shapes[TENSORS];
};

static uint64_t next_random(void) {
    static uint64_t state = 7;

    return random_after(&state);
}

/* On fibers, where `scale` is 1, two kinds of tensors are enough. */
static void model_make(struct model *model, uint64_t scale) {
    static const char *const names[TENSORS] = {"a", "b", "c", "d", "e"};
    static const char *const dtypes[TENSORS] = {"BF16", "F32", "BF16", "F8_E4M3", "F64"};
    const uint64_t elements[TENSORS] = {41 * 1024 * scale, 9000 * scale, 301, (scale - 1) * 1000,
                                        (scale - 1) * 301};

    for (size_t i = 0; i < TENSORS; i++) {
        struct ulp_tensor *tensor = &model->tensors[i];

        model->shapes[i] = elements[i];
        *tensor = (struct ulp_tensor){
            .name = names[i], .dtype = dtypes[i], .shape = &model->shapes[i], .rank = 1};
        must(ulp_tensor_measure(tensor), "measuring");
        tensor->data = must_alloc(tensor->bytes);
        for (uint64_t k = 0; k < tensor->bytes; k++)
            ((uint8_t *)tensor->data)[k] = (uint8_t)(next_random() & 0x3f);
    }
}

/* One element in 64 moves; of little-endian numbers by one. */
static void model_step(const struct model *model) {
    for (size_t i = 0; i < TENSORS; i++) {
        const struct ulp_tensor *tensor = &model->tensors[i];
        const uint64_t width = tensor->elements ? tensor->bytes / tensor->elements : 1;

        for (uint64_t k = 0; k < tensor->elements; k++) {
            if (next_random() % 64 == 0)
                ((uint8_t *)tensor->data)[k * width] ^= 1;
        }
    }
}

static void model_free(struct model *model) {
    for (size_t i = 0; i < TENSORS; i++)
        free(model->tensors[i].data);
}

/* What is on the device is the model. */
static void must_be_model(const struct uploaded *there, const struct model *model,
                          const char *whose, size_t step) {
    for (size_t i = 0; i < TENSORS; i++) {
        const size_t bytes = (size_t)model->tensors[i].bytes;
        uint8_t *copy = must_alloc(bytes);

        if (bytes) {
            must(device_copy_bytes(copy, there->tensors[i].data, bytes, NULL), "bringing weights");
            must(device_copy_wait(NULL), "bringing weights");
        }
        must_hold(!bytes || !memcmp(copy, model->tensors[i].data, bytes), "other bytes", whose,
                  step);
        free(copy);
    }
}

static void send_model(const struct uploaded *there, const struct model *model) {
    for (size_t i = 0; i < TENSORS; i++) {
        if (model->tensors[i].bytes)
            must(device_copy_bytes(there->tensors[i].data, model->tensors[i].data,
                                   (size_t)model->tensors[i].bytes, NULL),
                 "sending weights");
    }
    must(device_copy_wait(NULL), "sending weights");
}

/* ---- who takes part ---- */

/* As ulp_publisher_open_cuda() and ulp_follower_open_cuda(), with kernels that are linked. */
static struct ulp_publisher *device_publisher(struct ulp_store *store, const struct uploaded *copy,
                                              const struct ulp_run_options *options) {
    struct ulp_publisher *publisher = NULL;
    struct holder *holder = NULL;

    must(device_holder_open(copy ? copy->tensors : NULL, copy ? copy->count : 0, NULL, NULL,
                            options, &holder),
         "opening a publisher");
    must(publisher_new(store, RUN, options, holder, &publisher), "opening a publisher");
    return publisher;
}

static struct ulp_follower *device_follower(struct ulp_store *store, const struct uploaded *into) {
    static const struct ulp_run_options plain;
    struct ulp_follower *follower = NULL;
    struct holder *holder = NULL;

    must(device_holder_open(into->tensors, into->count, NULL, NULL, &plain, &holder),
         "opening a follower");
    must(follower_new(store, RUN, &plain, holder, &follower), "opening a follower");
    return follower;
}

static unsigned catch_up(struct ulp_follower *follower) {
    struct ulp_run_report report = {0};
    unsigned anchors = 0;

    must(ulp_follower_poll(follower, &report), "polling");
    anchors += report.fetched_anchors;
    while (report.ready) {
        must(ulp_follower_apply(follower, &report), "applying");
        must(ulp_follower_poll(follower, &report), "polling");
        anchors += report.fetched_anchors;
    }
    return anchors;
}

static void publish(struct ulp_publisher *publisher, const struct ulp_tensor *tensors,
                    uint64_t step) {
    struct ulp_run_report report = {0};

    must(ulp_publisher_publish(publisher, tensors, TENSORS, step, &report), "publishing");
    must_hold(report.fresh && report.head.version == step, "another version", "publisher", step);
    must(ulp_publisher_anchor(publisher, NULL), "making an anchor");
}

/* ---- what is stored ---- */

struct listing {
    char keys[4 * STEPS][300];
    size_t count;
};

static int list_part(void *user, const char *key, uint64_t bytes) {
    struct listing *listing = user;

    (void)bytes; /* keys have the hash of what is there */
    if (strstr(key, "/part/") && listing->count < 4 * STEPS)
        snprintf(listing->keys[listing->count++], sizeof listing->keys[0], "%s", key);
    return 0;
}

static void must_store_the_same(struct ulp_store *a, struct ulp_store *b) {
    struct listing *lists = must_alloc(2 * sizeof *lists);

    must(ulp_store_list(a, "", "", list_part, &lists[0]), "listing");
    must(ulp_store_list(b, "", "", list_part, &lists[1]), "listing");
    must_hold(lists[0].count > STEPS && lists[0].count == lists[1].count, "other parts", "store",
              lists[0].count);
    for (size_t i = 0; i < lists[0].count; i++)
        must_hold(!strcmp(lists[0].keys[i], lists[1].keys[i]), "another part", "store", i);
    free(lists);
}

/* ---- cases ---- */

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *ftw) {
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static struct ulp_tensor *host_copy(const struct model *model) {
    struct ulp_tensor *copy = must_alloc(sizeof model->tensors);

    memcpy(copy, model->tensors, sizeof model->tensors);
    for (size_t i = 0; i < TENSORS; i++)
        copy[i].data = must_alloc(copy[i].bytes);
    return copy;
}

/* A publisher on the device, who is killed twice and once finds its copy where it was; everybody
 * follows. A publisher in memory stores the same. */
static void check_stream(struct ulp_store *store, const char *directory, uint64_t scale) {
    struct model model;
    struct uploaded weights, copy, into, late;
    struct ulp_tensor *memory;
    struct ulp_store *other = NULL;
    struct ulp_publisher *publisher, *twin = NULL;
    struct ulp_follower *there, *here = NULL;

    model_make(&model, scale);
    memory = host_copy(&model);
    weights = upload(model.tensors, TENSORS, 0);
    copy = upload(memory, TENSORS, 0);
    into = upload(memory, TENSORS, 8);
    late = upload(memory, TENSORS, 0);
    must(ulp_store_memory(&other), "a store");
    publisher = device_publisher(store, &copy, &often);
    must(ulp_publisher_open(other, RUN, NULL, &often, &twin), "a publisher");
    there = device_follower(store, &into);
    must(ulp_follower_open_memory(store, RUN, memory, TENSORS, NULL, &here), "a follower");
    for (unsigned i = 0; i < STEPS; i++) {
        if (i == 9 || i == 12) { /* at 8 its copy is known; then it starts from an anchor */
            ulp_publisher_close(publisher);
            publisher = device_publisher(store, i == 9 ? &copy : NULL, &often);
        }
        publish(publisher, weights.tensors, i);
        publish(twin, model.tensors, i);
        must_hold(catch_up(there) == (i == 0), "an anchor was fetched", "follower on the device",
                  i);
        must_be_model(&into, &model, "follower on the device", i);
        catch_up(here);
        for (size_t k = 0; k < TENSORS; k++)
            must_hold(!model.tensors[k].bytes ||
                          !memcmp(memory[k].data, model.tensors[k].data, model.tensors[k].bytes),
                      "other bytes", "follower in memory", i);
        if (i % 6 == 0)
            must(ulp_follow(store, RUN, directory, NULL, NULL), "following into a directory");
        if (i + 1 < STEPS)
            model_step(&model);
        send_model(&weights, &model);
    }
    must_store_the_same(store, other);
    ulp_follower_close(there);
    there = device_follower(store, &late);
    catch_up(there);
    must_be_model(&late, &model, "late follower", STEPS);
    ulp_follower_close(there);
    ulp_follower_close(here);
    ulp_publisher_close(publisher);
    ulp_publisher_close(twin);
    ulp_store_free(other);
    for (size_t i = 0; i < TENSORS; i++)
        free(memory[i].data);
    free(memory);
    release(&weights);
    release(&copy);
    release(&into);
    release(&late);
    model_free(&model);
    printf("runs: %u versions from a device, followed there, in memory and in a directory\n",
           STEPS);
}

/* Who is behind the last anchor takes it, over weights that are in use. */
static void check_left_behind(struct ulp_store *store, uint64_t scale) {
    struct model model;
    struct uploaded weights, into;
    struct ulp_publisher *publisher = device_publisher(store, NULL, &only_one);
    struct ulp_follower *follower;
    struct ulp_run_report report = {0};

    model_make(&model, scale);
    weights = upload(model.tensors, TENSORS, 0);
    into = upload(model.tensors, TENSORS, 0);
    follower = device_follower(store, &into);
    for (unsigned i = 0; i < 10; i++) {
        publish(publisher, weights.tensors, i);
        if (i == 2)
            must_hold(catch_up(follower) == 0, "an anchor was fetched", "known weights", i);
        if (i < 9)
            model_step(&model);
        send_model(&weights, &model);
    }
    must(ulp_follower_poll(follower, &report), "polling");
    must_hold(report.ready && report.fetched_anchors == 1 && report.version == 2, "no anchor",
              "left behind", report.version);
    must(ulp_follower_apply(follower, &report), "applying");
    must_hold(report.version == 8, "another version", "left behind", report.version);
    catch_up(follower);
    must_be_model(&into, &model, "left behind", 9);
    ulp_follower_close(follower);
    ulp_publisher_close(publisher);
    release(&weights);
    release(&into);
    model_free(&model);
    printf("runs: an anchor over weights that are in use\n");
}

void run_cases(uint64_t scale) {
    const char *top = getenv("TMPDIR");
    char path[256], directory[300], place[300];
    struct ulp_store *store = NULL;

    snprintf(path, sizeof path, "%s/ulpsync-runs-XXXXXX", top && *top ? top : "/tmp");
    must_hold(mkdtemp(path) != NULL, "no directory", path, 0);
    snprintf(place, sizeof place, "%s/store", path);
    snprintf(directory, sizeof directory, "%s/replica", path);
    must(ulp_store_open(place, &store), "opening a store");
    check_stream(store, directory, scale);
    ulp_store_free(store);
    must(ulp_store_memory(&store), "opening a store");
    check_left_behind(store, scale);
    ulp_store_free(store);
    (void)nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
