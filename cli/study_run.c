// SPDX-License-Identifier: Apache-2.0
#include "cli/study_run.h"

#include "cli/inputs.h"
#include "cli/report.h"
#include "cli/study_patch.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned steps_apart[STUDY_INTERVALS] = {1, 2, 4, 8, 16};

/* The farthest that a patch reaches back or forth: checkpoints beyond it are closed. */
#define REACH 16u

struct walk {
    struct study *study;
    struct ulp_pool *pool;
    struct ulp_model **models; /* of each checkpoint, those within reach */
    size_t tensors;
};

static enum ulp_status out_of_memory(void) {
    return ulp_fail(ULP_E_NOMEM, "out of memory for what is found out about the checkpoints");
}

/* ---- checkpoints ---- */

/* All of them, before any work is done. */
static enum ulp_status check_all(struct study *study) {
    enum ulp_status status = input_model(study->paths[0], &study->first);

    for (unsigned i = 1; !status && i < study->count; i++) {
        struct ulp_model *model = NULL;

        status = input_model(study->paths[i], &model);
        if (!status)
            status = study_same_layout(ulp_model_tensors(study->first),
                                       ulp_model_count(study->first), ulp_model_tensors(model),
                                       ulp_model_count(model), study->paths[i]);
        ulp_model_free(model);
    }
    return status;
}

static enum ulp_status reach(struct walk *walk, unsigned at) {
    const struct study *study = walk->study;

    for (unsigned i = 0; i < study->count; i++) {
        enum ulp_status status;

        if (i + REACH < at || i > at + REACH) {
            ulp_model_free(walk->models[i]);
            walk->models[i] = NULL;
            continue;
        }
        if (walk->models[i])
            continue;
        status = input_model(study->paths[i], &walk->models[i]);
        if (!status) /* it may be another one by now */
            status =
                study_same_layout(ulp_model_tensors(study->first), ulp_model_count(study->first),
                                  ulp_model_tensors(walk->models[i]),
                                  ulp_model_count(walk->models[i]), study->paths[i]);
        if (status)
            return status;
    }
    return ULP_OK;
}

/* ---- a patch ---- */

static enum ulp_status add_kind(struct study_interval *interval,
                                const struct study_counts *counts) {
    size_t k = 0;

    while (k < interval->kind_count &&
           memcmp(&interval->kinds[k]->kind, &counts->kind, sizeof counts->kind) != 0)
        k++;
    if (k == interval->kind_count) {
        interval->kinds[k] = study_counts_new(counts->kind);
        if (!interval->kinds[k])
            return out_of_memory();
        interval->kind_count++;
    }
    study_counts_add(interval->kinds[k], counts);
    return ULP_OK;
}

static enum ulp_status add_pair(struct study_interval *interval, const struct study_pair *pair,
                                const struct ulp_tensor *tensors, size_t count) {
    const struct study_patch *patch = &interval->patches[interval->count];
    enum ulp_status status = ULP_OK;

    interval->elements += pair->elements;
    interval->changed += pair->changed;
    interval->dense_bytes += pair->dense_bytes;
    if (patch->after) {
        interval->count_after++;
        interval->changed_after += pair->changed;
        interval->dense_bytes_after += pair->dense_bytes;
    }
    interval->bytes += patch->bytes;
    interval->history_bytes += patch->history_bytes;
    study_floor_add(&interval->floor, &pair->floor);
    interval->recurrence.of += pair->recurrence.of;
    interval->recurrence.again += pair->recurrence.again;
    interval->recurrence.same += pair->recurrence.same;
    wire_sizes_add(&interval->sizes, &pair->sizes);
    for (size_t i = 0; i < count; i++) {
        interval->tensors[i].elements += study_elements(&tensors[i]);
        interval->tensors[i].changed += pair->tensor_changed[i];
    }
    for (size_t k = 0; !status && k < pair->kind_count; k++)
        status = add_kind(interval, pair->kinds[k]);
    interval->count++;
    return status;
}

static enum ulp_status make_patches(const struct walk *walk, struct study_interval *interval,
                                    struct study_patch *patch, struct ulp_weights *weights) {
    const struct ulp_tensor *new = ulp_model_tensors(walk->models[patch->to]);
    enum ulp_status status = study_patch_make(weights, new, walk->tensors, false, walk->pool,
                                              interval->tensors, &patch->bytes);

    if (!status && patch->after) {
        const struct ulp_model *before = walk->models[patch->from - interval->k];

        status = ulp_weights_remember(weights, ulp_model_tensors(before), walk->tensors, walk->pool,
                                      NULL);
        if (!status)
            status = study_patch_make(weights, new, walk->tensors, true, walk->pool, NULL,
                                      &patch->history_bytes);
        ulp_weights_forget(weights);
    }
    return status;
}

static enum ulp_status study_step_of(const struct walk *walk, struct study_interval *interval,
                                     unsigned from, struct ulp_weights *weights) {
    struct study_patch *patch = &interval->patches[interval->count];
    const struct study_states states = {
        .before = from ? ulp_model_tensors(walk->models[from - interval->k]) : NULL,
        .old = ulp_model_tensors(walk->models[from]),
        .new = ulp_model_tensors(walk->models[from + interval->k]),
        .count = walk->tensors};
    struct study_pair pair = {0};
    struct progress_line line;
    struct ulp_progress progress =
        progress_begin(&line, "count", ulp_model_bytes(walk->models[from]));
    enum ulp_status status =
        study_pair_measure(&states, walk->study->quick ? STUDY_WITHOUT_SIZES : STUDY_WITH_SIZES,
                           walk->pool, &progress, &pair);

    progress_end(&line);
    *patch = (struct study_patch){.from = from,
                                  .to = from + interval->k,
                                  .after = from != 0,
                                  .changed = pair.changed,
                                  .floor = pair.floor,
                                  .recurrence = pair.recurrence};
    if (!status && weights)
        status = make_patches(walk, interval, patch, weights);
    if (!status)
        status = add_pair(interval, &pair, states.old, states.count);
    study_pair_release(&pair);
    return status;
}

/* All patches that start from one checkpoint, so that its root is computed once. */
static enum ulp_status study_from(struct walk *walk, unsigned from) {
    struct study *study = walk->study;
    struct ulp_weights *weights = NULL;
    enum ulp_status status = reach(walk, from);

    if (!status && !study->quick)
        status = report_weights(ulp_model_tensors(walk->models[from]), walk->tensors, walk->pool,
                                &weights);
    for (unsigned i = 0; !status && i < study->interval_count; i++) {
        const unsigned k = study->intervals[i].k;

        if (from % k == 0 && from + k < study->count)
            status = study_step_of(walk, &study->intervals[i], from, weights);
    }
    ulp_weights_free(weights);
    return status;
}

/* ---- all of it ---- */

static enum ulp_status prepare(struct walk *walk) {
    struct study *study = walk->study;

    walk->tensors = ulp_model_count(study->first);
    walk->models = calloc(study->count, sizeof(struct ulp_model *));
    if (!walk->models)
        return out_of_memory();
    for (unsigned i = 0; i < STUDY_INTERVALS && steps_apart[i] < study->count; i++) {
        struct study_interval *interval = &study->intervals[study->interval_count++];

        interval->k = steps_apart[i];
        interval->patches = calloc(study->count / interval->k + 1, sizeof *interval->patches);
        interval->tensors = calloc(walk->tensors + 1, sizeof *interval->tensors);
        if (!interval->patches || !interval->tensors)
            return out_of_memory();
    }
    return ULP_OK;
}

static enum ulp_status group(struct study *study) {
    const struct ulp_tensor *tensors = ulp_model_tensors(study->first);
    const size_t count = ulp_model_count(study->first);
    enum ulp_status status = ULP_OK;

    for (unsigned i = 0; !status && i < study->interval_count; i++) {
        struct study_interval *interval = &study->intervals[i];

        status = groups_make(tensors, interval->tensors, count, &interval->layers,
                             &interval->layer_count);
        if (!status)
            status = groups_make_by_kind(tensors, interval->tensors, count, &interval->parts,
                                         &interval->part_count);
    }
    return status;
}

enum ulp_status study_run(struct study *study, struct ulp_pool *pool) {
    struct walk walk = {.study = study, .pool = pool};
    uint64_t lap = now_ns();
    enum ulp_status status = check_all(study);

    if (!status)
        status = prepare(&walk);
    for (unsigned from = 0; !status && from + 1 < study->count; from++)
        status = study_from(&walk, from);
    if (!status)
        status = group(study);
    for (unsigned i = 0; walk.models && i < study->count; i++)
        ulp_model_free(walk.models[i]);
    free(walk.models);
    study->seconds = lap_seconds(&lap);
    return status;
}

void study_release(struct study *study) {
    for (unsigned i = 0; i < study->interval_count; i++) {
        struct study_interval *interval = &study->intervals[i];

        for (size_t k = 0; k < interval->kind_count; k++)
            free(interval->kinds[k]);
        free(interval->patches);
        free(interval->tensors);
        free(interval->layers);
        free(interval->parts);
    }
    ulp_model_free(study->first);
}
