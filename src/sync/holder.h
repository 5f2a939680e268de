// SPDX-License-Identifier: Apache-2.0
/*
 * Who holds a version of a run: a directory (replica.h), memory (memory_holder.h), or memory of a
 * device (device_holder.h). Followers and publishers work with any through this. What comes next is staged first, where nobody sees it,
 * and shown in one go.
 */
#ifndef SYNC_HOLDER_H
#define SYNC_HOLDER_H

#include "chain/plan.h"
#include "sync/run_log.h"

#include <ulpsync/run.h>

struct ulp_weights;
struct piece_reader;
struct slice;

/* What grows with the changes (decoded ones, history, patches) is in memory up to so much each, and
 * beyond that in files without a name: memory does not grow with the model. */
#define WORK_BYTES ((size_t)16 << 20)

/* What all calls need, and where they say what they did. */
struct work {
    struct ulp_store *store;
    const char *run;
    const struct ulp_run_options *options;
    struct ulp_run_report *report;
};

/* A state that somebody hands in: a model on disk, or tensors. */
struct given {
    const char *path; /* NULL: the tensors */
    const struct ulp_tensor *tensors;
    size_t count;
};

struct holder {
    const struct holder_ops *ops;
    const struct slice *slice; /* that it holds; NULL: everything */

    /* Of tensors that are where the CPU does not reach: its own, and those that a publisher is given.
     * NULL: they are in memory. */
    const struct piece_reader *reader;

    struct held held;      /* that is shown */
    struct log_entry seen; /* the newest record that was accepted */
    uint64_t kept;         /* sequence of the record that outlasts us */

    bool staged; /* there is something to show */
    uint64_t staged_version;
    struct ulp_root staged_root;
};

/* What leads to a version: the patches of a way, those of tiles that have one. */
struct step {
    const struct way *way;
    const struct ulp_patch *const *patches;
    size_t count;
    const struct ulp_root *root; /* that they lead to, for who cannot compute it; else NULL */
};

struct holder_ops {
    /* Steps must be shown one by one, because each is made from what is shown. */
    bool live;

    /* Each of these stages a version. The root is that of what was really written. */
    enum ulp_status (*load)(struct holder *holder, const struct work *work,
                            const struct anchor *anchor);
    enum ulp_status (*take)(struct holder *holder, const struct work *work, uint64_t version,
                            const struct given *given);
    enum ulp_status (*step)(struct holder *holder, const struct work *work,
                            const struct step *step);

    /* What is staged; called through holder_show(). */
    enum ulp_status (*show)(struct holder *holder, const struct work *work);

    /* What was staged is forgotten. */
    void (*drop)(struct holder *holder);

    /* What memory holds that is not known yet to be a version; NULL: it cannot be told. */
    enum ulp_status (*contents)(struct holder *holder, const struct work *work,
                                const struct ulp_weights **ret_weights);

    /* Makes holder->seen last; called through holder_keep(). */
    enum ulp_status (*keep)(struct holder *holder);

    /* Both records of a fork are put aside for whoever looks into it. */
    void (*keep_evidence)(const struct holder *holder, const struct log_entry *culprit);

    /* The version that is shown, with its history if that is wanted and there; the holder's. Of one
     * with a reader, all but the data. */
    enum ulp_status (*weights)(struct holder *holder, const struct work *work, bool history,
                               struct ulp_weights **ret_weights);

    /* What a publisher does with the version that is shown where the CPU does not reach it; NULL: the
     * CPU does it, with `weights`. `diff` is as diff() in patch/diff.h. `check` decodes our own patches
     * and gives the root that they lead to; what it decoded may be kept for the step with the same
     * patches, or else is forgotten by `drop`. */
    enum ulp_status (*diff)(struct holder *holder, const struct ulp_tensor *tensors, size_t count,
                            const struct ulp_diff_options *options, const struct ulp_sink *sink,
                            struct ulp_diff_report *ret_report);
    enum ulp_status (*check)(struct holder *holder, const struct work *work,
                             const struct step *step, struct ulp_root *ret_root);

    /* Stores what is staged, or else shown, as an anchor in a folder. */
    enum ulp_status (*put)(struct holder *holder, const struct work *work, uint64_t folder,
                           struct arena *arena, struct anchor *anchor);
    void (*free)(struct holder *holder);
};

void holder_free(struct holder *holder);

/* Makes what was seen last, unless it does already. */
enum ulp_status holder_keep(struct holder *holder);

/* Shows what is staged, which nobody may see before the record that tells of it is kept. */
enum ulp_status holder_show(struct holder *holder, const struct work *work);

/* Counts a stretch of time: started = clock; ...; work_spent(&phases.x, started). */
void work_spent(uint64_t *phase, uint64_t started);

#endif
