// SPDX-License-Identifier: Apache-2.0
#include "gpu/device_cast.h"

#include "base/memory.h"
#include "cuda/memory.h"
#include "gpu/casting.h"
#include "gpu/device_diff.h"
#include "patch/masters.h"

#include <string.h>

struct device_cast {
    struct device_journal *sealed, *open; /* NULL: nothing changed */
    struct room spare;
    uint64_t listed; /* entries of the last cast */
    bool torn;       /* the last cast found no memory half-way ... */
    bool *due;       /* ... and these tensors are to be cast again */

    /* The last diff, if it is not committed. */
    bool made;
    struct ulp_sum *sums;
    struct ulp_root root;
    struct device_moves *moves; /* NULL unless it was asked for history */
    struct moves *before;
};

/* ---- what there is ---- */

static bool has_entries(const struct device_journal *journal) {
    return journal && journal->entries;
}

enum ulp_status device_cast_none(const struct device_weights *weights, const char *doing) {
    const struct device_cast *cast = weights->cast;

    if (!cast || (!cast->made && !cast->torn && !has_entries(cast->open)))
        return ULP_OK;
    return fail(ULP_E_USAGE,
                "%s: there are casts that are not committed. Make a patch of them and commit it, "
                "or undo them",
                doing);
}

const struct ulp_sum *device_cast_sums(const struct device_weights *weights) {
    const struct device_cast *cast = weights->cast;

    if (!cast || (!has_entries(cast->open) && !cast->made))
        return weights->weights->sums;
    return has_entries(cast->open) ? NULL : cast->sums;
}

size_t device_cast_bytes(const struct device_weights *weights) {
    const struct device_cast *cast = weights->cast;

    if (!cast)
        return 0;
    return cast->spare.bytes + (cast->sealed ? cast->sealed->room.bytes : 0) +
           (cast->open ? cast->open->room.bytes : 0) + (cast->moves ? cast->moves->room.bytes : 0);
}

/* Lets go of what a diff has left. */
static void drop_made(struct device_cast *cast) {
    device_moves_free(cast->moves);
    moves_free(cast->before);
    mem_free(cast->sums);
    cast->moves = NULL;
    cast->before = NULL;
    cast->sums = NULL;
    cast->made = false;
}

static void drop_journal(struct device_cast *cast, struct device_journal **journal) {
    device_journal_free(*journal, &cast->spare);
    *journal = NULL;
}

void device_cast_trim(struct device_cast *cast) {
    if (cast)
        room_release(&cast->spare);
}

void device_cast_free(struct device_cast *cast) {
    if (!cast)
        return;
    drop_made(cast);
    drop_journal(cast, &cast->sealed);
    drop_journal(cast, &cast->open);
    room_release(&cast->spare);
    mem_free(cast->due);
    mem_free(cast);
}

static enum ulp_status make_cast(struct device_weights *weights) {
    struct device_cast *cast = NULL;
    enum ulp_status status = weights->cast ? ULP_OK : mem_zeroed(1, sizeof *cast, &cast);

    if (status || weights->cast)
        return status;
    status = mem_zeroed(weights->weights->count, sizeof *cast->due, &cast->due);
    if (status)
        device_cast_free(cast);
    else
        weights->cast = cast;
    return status;
}

/* ---- casting, launch after launch as long as the pool was too small ---- */

/* Puts back what the last launch has written. Never fails with ULP_E_NOMEM, which means that it is back. */
static enum ulp_status take_back(struct casting *casting) {
    const struct journal_part part = casting_listed(casting);
    struct device_weights *weights = casting->weights;
    enum ulp_status status =
        cuda_journal_restore(&weights->plan.device, &part.device, weights->stream);

    if (!status)
        status = cuda_wait(weights->stream);
    if (status == ULP_E_NOMEM) /* a kernel that had to be loaded */
        status = ULP_E_DEVICE;
    return device_status(status, "undoing a cast");
}

/* What a launch has listed goes to the open journal; where there is no room, back to the weights. */
static enum ulp_status keep_listed(struct casting *casting) {
    struct device_weights *weights = casting->weights;
    struct device_cast *cast = weights->cast;
    const struct journal_part part = casting_listed(casting);
    struct device_journal *journal = NULL;
    uint64_t entries = 0;
    enum ulp_status status;

    for (uint32_t b = 0; b < weights->plan.device.block_count; b++)
        entries += casting->count[b];
    if (!entries)
        return ULP_OK;
    status = device_journal_merge(&weights->plan, cast->open, &part, &cast->spare, weights->stream,
                                  &journal);
    if (status == ULP_E_NOMEM) {
        const enum ulp_status back = take_back(casting);

        return back ? back : status;
    }
    if (status)
        return status;
    drop_journal(cast, &cast->open);
    cast->open = journal;
    cast->listed += entries;
    return ULP_OK;
}

/* Any number of launches may be needed, and each gets further. */
static enum ulp_status run(struct casting *casting) {
    struct device_cast *cast = casting->weights->cast;
    uint32_t stopped = 1;
    bool some = cast->torn;
    enum ulp_status status = ULP_OK;

    cast->listed = 0;
    while (!status && stopped) {
        status = casting_launch(casting, &stopped);
        if (!status)
            status = keep_listed(casting);
        some |= !status;
    }
    if (status == ULP_E_NOMEM && some) {
        cast->torn = true;
        return fail(status, "the GPU has no memory left for what weights were: they are cast in "
                            "part. Cast again when there is room, or undo");
    }
    cast->torn = false;
    return status;
}

/* The flag is up from before the first write until everything is cast, or nothing. */
static enum ulp_status run_marked(struct casting *casting) {
    struct device_weights *weights = casting->weights;
    enum ulp_status status = cuda_set_word(weights->poisoned, 1, weights->stream), lowered;

    if (status)
        return device_status(status, "marking the weights");
    status = run(casting);
    if ((status && status != ULP_E_NOMEM) || weights->cast->torn)
        return status;
    lowered = cuda_set_word(weights->poisoned, 0, weights->stream);
    if (!lowered)
        lowered = cuda_wait(weights->stream);
    return status ? status : device_status(lowered, "marking the weights");
}

/* What can be cast: all of a state, which is on the device once. */
static enum ulp_status check_castable(const struct device_weights *weights) {
    enum ulp_status status =
        device_weights_check_here(weights, "casts go into weights on the device");

    if (!status)
        status = weights_check_whole(weights->weights, "a cast");
    if (!status && weights->second)
        status = fail(ULP_E_USAGE, "weights with two states cannot be cast: one is in use");
    return status;
}

/* Tensors that the last cast left between two states have masters this time, too. */
static enum ulp_status check_due(const struct device_weights *weights, const void *const *data) {
    for (size_t i = 0; weights->cast->torn && i < weights->weights->count; i++) {
        if (weights->cast->due[i] && !data[i])
            return fail(ULP_E_POISONED, "the last cast found no memory half-way: cast the same "
                                        "tensors again, or undo");
    }
    return ULP_OK;
}

static void note_due(const struct device_weights *weights, const void *const *data) {
    for (size_t i = 0; i < weights->weights->count; i++)
        weights->cast->due[i] = data[i] != NULL;
}

enum ulp_status device_cast(struct device_weights *weights, const struct ulp_tensor *masters,
                            size_t count) {
    struct casting casting = {.weights = weights};
    struct arena arena = {0};
    const void **data = NULL;
    enum ulp_status status = check_castable(weights);

    if (!status)
        status = make_cast(weights);
    if (!status && !weights->cast->torn)
        status = device_weights_check(weights);
    if (!status)
        status = masters_match(weights->weights, masters, count, &arena, &data);
    if (!status)
        status = check_due(weights, data);
    if (!status) {
        casting.last = weights->cast->listed;
        status = casting_begin(&casting, data);
    }
    if (!status && casting.elements) {
        note_due(weights, data); /* all that was, and what comes with it */
        status = run_marked(&casting);
    }
    casting_end(&casting);
    arena_release(&arena);
    return status;
}

/* ---- undoing ---- */

static enum ulp_status restore(struct device_weights *weights) {
    const struct device_journal *journals[] = {weights->cast->open, weights->cast->sealed};
    enum ulp_status status = cuda_set_word(weights->poisoned, 1, weights->stream);

    for (size_t i = 0; !status && i < 2;
         i++) { /* where both name an element the sealed one counts */
        if (has_entries(journals[i]))
            status =
                cuda_journal_restore(&weights->plan.device, &journals[i]->device, weights->stream);
    }
    if (!status)
        status = cuda_set_word(weights->poisoned, 0, weights->stream);
    if (!status)
        status = cuda_wait(weights->stream);
    return device_status(status, "undoing casts: the weights are neither old nor new now and are "
                                 "marked so");
}

enum ulp_status device_cast_undo(struct device_weights *weights) {
    struct device_cast *cast = weights->cast;
    enum ulp_status status = cast && cast->torn ? ULP_OK : device_weights_check(weights);

    if (status || !cast)
        return status;
    status = restore(weights);
    if (status)
        return status;
    cast->torn = false;
    drop_journal(cast, &cast->open);
    drop_journal(cast, &cast->sealed);
    drop_made(cast);
    return ULP_OK;
}

/* ---- patches ---- */

/* Everything since the commit; what is there already if one of both has it all. */
static enum ulp_status join(struct device_weights *weights, struct device_journal **ret_joined) {
    struct device_cast *cast = weights->cast;
    const struct journal_part nothing = {0};
    struct journal_part open;

    if (cast->open && has_entries(cast->sealed)) {
        open = journal_part_of(cast->open);
        return device_journal_merge(&weights->plan, cast->sealed, &open, &cast->spare,
                                    weights->stream, ret_joined);
    }
    if (!cast->open && !cast->sealed) { /* with counts, all zero, that the encoder may read */
        uint32_t *zeros = NULL;
        enum ulp_status status =
            mem_zeroed(weights->plan.device.block_count, sizeof *zeros, &zeros);

        open = nothing;
        open.count = zeros;
        if (!status)
            status = device_journal_merge(&weights->plan, NULL, &open, &cast->spare,
                                          weights->stream, &cast->open);
        mem_free(zeros);
        if (status)
            return status;
    }
    *ret_joined = cast->open ? cast->open : cast->sealed;
    return ULP_OK;
}

/* A diff that came to its end; nothing fails any more. */
static void seal(struct device_cast *cast, struct device_journal *joined,
                 const struct device_cast *made) {
    if (joined != cast->sealed)
        drop_journal(cast, &cast->sealed);
    if (joined != cast->open)
        drop_journal(cast, &cast->open);
    cast->open = NULL;
    cast->sealed = joined;
    drop_made(cast);
    cast->made = true;
    cast->sums = made->sums;
    cast->root = made->root;
    cast->moves = made->moves;
    cast->before = made->before;
}

/* What the weights remember when it is committed. */
static enum ulp_status remember(struct device_weights *weights, const struct device_journal *joined,
                                struct device_cast *made) {
    enum ulp_status status = mem_zeroed(1, sizeof *made->before, &made->before);

    if (status)
        return status;
    made->before->before = weights->weights->root;
    return device_moves_of_journal(&weights->plan, joined, weights->stream, &made->moves);
}

enum ulp_status device_cast_diff(struct device_weights *weights,
                                 const struct ulp_diff_options *options,
                                 const struct ulp_sink *sink, struct ulp_diff_report *ret_report) {
    struct device_journal *joined = NULL;
    struct device_cast made = {0}, *cast;
    enum ulp_status status = check_castable(weights);

    if (!status)
        status = make_cast(weights);
    if (!status && weights->cast->torn)
        return fail(ULP_E_POISONED, "the last cast found no memory half-way: cast again, or undo");
    if (!status)
        status = device_weights_check(weights);
    if (!status)
        status = mem_zeroed(weights->weights->grid.piece_count, sizeof *made.sums, &made.sums);
    if (!status)
        status = join(weights, &joined);
    cast = weights->cast;
    if (!status && options && options->history)
        status = remember(weights, joined, &made);
    if (!status)
        status =
            device_diff_journal(weights, joined, options, sink, ret_report, made.sums, &made.root);
    if (!status) {
        seal(cast, joined, &made);
        return ULP_OK;
    }
    drop_made(&made);
    if (joined && joined != cast->open && joined != cast->sealed)
        device_journal_free(joined, &cast->spare);
    return status;
}

enum ulp_status device_cast_commit(struct device_weights *weights) {
    struct device_cast *cast = weights->cast;
    enum ulp_status status = device_weights_check(weights);

    if (status)
        return status;
    if (!cast || !cast->made)
        return fail(ULP_E_USAGE, "there is no patch of casts to commit: make one first");
    mem_free(weights->weights->sums);
    weights->weights->sums = cast->sums;
    weights->weights->root = cast->root;
    device_weights_forget(weights);
    weights->moves = cast->moves;
    weights->weights->moves = cast->before;
    cast->sums = NULL;
    cast->moves = NULL;
    cast->before = NULL;
    drop_made(cast);
    drop_journal(cast, &cast->sealed);
    return ULP_OK;
}
