// SPDX-License-Identifier: Apache-2.0
/*
 * Runs: a trainer publishes each step to a store; any number of workers follow, each at its own
 * pace.
 *
 *     ulp_publish(store, "run", "state", "checkpoint", step, NULL, NULL);   the trainer, after each step
 *     ulp_follow(store, "run", "replica", NULL, NULL);                      a worker, now and then
 *
 * Both keep a directory with a complete model in `DIRECTORY/current`, a link that is switched in
 * one go, so whoever loads it sees one version or the next. A process may be killed at any moment;
 * the next call goes on from there. docs/format/chain.md describes what is in the store.
 *
 * The objects below do the same for who stays: a publisher that takes tensors from memory, a
 * follower that fetches and verifies beforehand and changes weights in memory within a moment.
 *
 * Threads: each object, and each directory, belongs to one caller at a time. A store may serve any
 * number of them. A call that fails has changed nothing that anybody sees, and can be repeated.
 */
#ifndef ULPSYNC_RUN_H
#define ULPSYNC_RUN_H

#include <stdint.h>
#include <ulpsync/key.h>
#include <ulpsync/patch.h>
#include <ulpsync/store.h>
#include <ulpsync/tile.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a record of a run's log says. */
struct ulp_run_record {
    uint64_t sequence; /* from 1 */
    uint64_t version;  /* of the run's states, from 0 */
    uint64_t epoch;    /* one more whenever the step goes back */
    uint64_t step;     /* the trainer's own number */
    uint64_t time_ms;  /* since 1970, as the publisher's clock had it */
    struct ulp_root root;
    uint64_t elements;      /* of the state */
    uint64_t changed;       /* of them, since the version before; 0 for the first */
    uint64_t patch_bytes;   /* of the patch from there; 0 when the map has none */
    uint64_t anchor_bytes;  /* of an anchor of this version; 0 when the map has none */
    uint64_t oldest;        /* the oldest version that the map still leads to */
    uint32_t anchors, ways; /* in the map */
    uint64_t boundary;      /* the newest record that announced deletion; 0: none did */
    int history;
    int is_signed;
    struct ulp_public_key signer; /* if it is */
};

/* The newest record, signed by whomever, if at all; or number `sequence`, whose signature is not
 * looked at. ULP_E_NO_RUN, ULP_E_NOT_FOUND. */
ULP_API enum ulp_status ulp_run_head(struct ulp_store *store, const char *run,
                                     struct ulp_run_record *ret_record);
ULP_API enum ulp_status ulp_run_read(struct ulp_store *store, const char *run, uint64_t sequence,
                                     struct ulp_run_record *ret_record);

struct ulp_run_options;

/* The version that the newest record with this step published, among those that the run's newest
 * record leads to; that one must be trusted (options: trusted, max_age_ms; NULL is fine), and it must
 * descend from every record that is read. ULP_E_UNREACHABLE if there is none. */
ULP_API enum ulp_status ulp_run_find_step(struct ulp_store *store, const char *run, uint64_t step,
                                          const struct ulp_run_options *options,
                                          uint64_t *ret_version);

/* ---- options and reports ----------------------------------------------------------------- */

/* All zero is fine, and so is NULL. What is pointed to must outlive the object. */
struct ulp_run_options {
    struct ulp_pool *pool;
    const struct ulp_progress *progress;

    /* Records must be signed by one of these keys, or by one that it was handed on to. Without
     * them, a run that was seen signed must stay with the key that signed it, or its heirs. */
    const struct ulp_public_key *trusted;
    size_t trusted_count;

    /* A newest record that is older than this is refused with ULP_E_FROZEN: somebody may be hiding
     * newer ones. 0: however old. */
    uint64_t max_age_ms;

    /* Publishers cut every patch along a tiling, so that each follower may fetch the tiles that it
     * holds: see docs/tiles.md. Who opens a follower with one says which tile, from 1. */
    const struct ulp_tiling *tiling;
    unsigned tile;

    /* Followers, and publishers that go on with a run. */
    uint64_t ahead_bytes; /* of patches that are fetched before their turn; 0: 256 MiB */
    const char *base;     /* a model on disk to start from: a state that the map has an anchor of */

    /* Followers. */
    int eager; /* for who polls all the time: after a poll that found nothing, the next record is taken
                  without looking for more, which saves a round trip */
    int each_version; /* for who looks at every version on the way: none is left out by a long way, nor,
                         once something is held, by an anchor */
    int stop_at_version; /* go no further than `version`, which the map must still lead to */
    uint64_t version;

    /* Called with the bytes of the newest record that was accepted, before anything of it is used:
     * keep them where they outlast the process, and give them back as `seen` next time. Directories
     * do this by themselves. */
    enum ulp_status (*keep_seen)(void *user, const void *record, size_t bytes);
    void *keep_user;
    const void *seen;
    size_t seen_bytes;

    /* Publishers. */
    const struct ulp_key *sign; /* NULL: records are not signed */
    const char *reference;      /* the first anchor is by reference: the name of a public model */
    int several;                /* others may publish too: see ulp_publisher_open() */
    unsigned anchor_every;      /* versions between two anchors, at most; 0: 128 */
    unsigned anchor_share;      /* or patches of so many percent of an anchor's bytes; 0: 50 */
    unsigned keep_anchors;      /* in the map, with all that leads on from them; 0: 2 */
};

/* Where the time went, in nanoseconds of wall time. Fetching ahead happens beside the rest. */
struct ulp_run_phases {
    uint64_t poll_ns;   /* reading the log */
    uint64_t fetch_ns;  /* waiting for bytes */
    uint64_t verify_ns; /* opening patches, checking our own */
    uint64_t decode_ns; /* decoding against the weights, of all threads together */
    uint64_t digest_ns; /* keeping and checking roots */
    uint64_t stage_ns;  /* writing what is not shown yet */
    uint64_t apply_ns;  /* the moment in which weights change, or the link is switched */
    uint64_t encode_ns; /* comparing and coding */
    uint64_t store_ns;  /* waiting for parts to be stored */
    uint64_t commit_ns; /* adding the record */
};

struct ulp_run_report {
    struct ulp_run_record head;
    uint64_t version;    /* that is held */
    int fresh;           /* something new was published, or is held */
    int ready;           /* of ulp_follower_poll(): something waits for ulp_follower_apply() */
    uint64_t apply_left; /* patches that follow before the newest version is held */

    uint64_t fetched_bytes; /* by this call: patches and anchors */
    uint64_t patch_bytes, anchor_bytes, record_bytes;
    unsigned fetched_patches, fetched_anchors, fetched_records;
    unsigned fetched_objects; /* of all kinds */
    uint64_t stored_bytes;
    unsigned stored_objects;
    struct ulp_run_phases phases;
};

/* ---- the simplest way -------------------------------------------------------------------- */

/*
 * Publishes the model at `path` as the run's next version: compares it with the last one, which
 * `directory` holds or is brought to first, stores the patch, checks it, and only then adds the
 * record that makes it known. The first version of a run is stored whole, as an anchor: the model's
 * files with what lies beside them. What is published already, with the same step, is left alone:
 * `fresh` is 0.
 *
 * Of several publishers of one run one is first; the others fail with ULP_E_FENCED and have changed
 * nothing. The directory belongs to this run alone: ULP_E_BUSY while another process uses it.
 */
ULP_API enum ulp_status ulp_publish(struct ulp_store *store, const char *run, const char *directory,
                                    const char *path, uint64_t step,
                                    const struct ulp_run_options *options,
                                    struct ulp_run_report *ret_report);

/*
 * Brings `directory` to the run's newest version, by the cheapest way from what it holds. Every
 * byte that is fetched is verified before it is used, and every version's root before `current`
 * leads to it. A directory that holds nothing yet is made and starts from an anchor.
 */
ULP_API enum ulp_status ulp_follow(struct ulp_store *store, const char *run, const char *directory,
                                   const struct ulp_run_options *options,
                                   struct ulp_run_report *ret_report);

/* ---- a publisher that stays -------------------------------------------------------------- */

struct ulp_publisher;

/*
 * With a directory, the last version is kept there and survives restarts; with NULL it is kept in
 * memory, and a new publisher gets it from the store. Either way the stream goes on where it was. A
 * run that does not exist yet begins with the first ulp_publisher_publish().
 *
 * Where several publishers may be at work at once, be it a standby, say so (`several`): the store is
 * tried before a publisher first uses it (ulp_store_check()), and one that cannot keep them apart is refused with
 * ULP_E_UNSUPPORTED.
 */
ULP_API enum ulp_status ulp_publisher_open(struct ulp_store *store, const char *run,
                                           const char *directory,
                                           const struct ulp_run_options *options,
                                           struct ulp_publisher **ret_publisher);
ULP_API void ulp_publisher_close(struct ulp_publisher *publisher);

/* Tensors in memory, all of the state's, in any order; they are only read. After ULP_E_FENCED the
 * publisher is of no use any more: somebody else goes on with the run. */
ULP_API enum ulp_status ulp_publisher_publish(struct ulp_publisher *publisher,
                                              const struct ulp_tensor *tensors, size_t count,
                                              uint64_t step, struct ulp_run_report *ret_report);

/* A model on disk. */
ULP_API enum ulp_status ulp_publisher_publish_model(struct ulp_publisher *publisher,
                                                    const char *path, uint64_t step,
                                                    struct ulp_run_report *ret_report);

/* An anchor of the version that is held, if one is due: the patches since the last one have become
 * many, or long. Not in the way of anybody: do it while the trainer computes. `fresh` says whether
 * one was made. */
ULP_API enum ulp_status ulp_publisher_anchor(struct ulp_publisher *publisher,
                                             struct ulp_run_report *ret_report);

/* ---- a follower that stays --------------------------------------------------------------- */

struct ulp_follower;

/*
 * Into a directory, as ulp_follow(). With options.tile, only that tile of options.tiling and the
 * common part are fetched and held, as with ulp_follower_open_tile(): `current` is a model whose
 * files have the headers and lengths of the whole one, with holes, which read as zeros, where other
 * tiles are. So does ulp_follow().
 */
ULP_API enum ulp_status ulp_follower_open(struct ulp_store *store, const char *run,
                                          const char *directory,
                                          const struct ulp_run_options *options,
                                          struct ulp_follower **ret_follower);

/*
 * Into memory of the caller: all tensors of the model. If they hold a state that the run's map
 * knows and that one can start from (an anchor's, or the newest where its version is a multiple of
 * 8), only patches are fetched; otherwise the first poll loads an anchor into them. From then on
 * only ulp_follower_apply() writes there.
 */
ULP_API enum ulp_status ulp_follower_open_memory(struct ulp_store *store, const char *run,
                                                 const struct ulp_tensor *tensors, size_t count,
                                                 const struct ulp_run_options *options,
                                                 struct ulp_follower **ret_follower);

/*
 * The same for a rank that holds a tile: options.tile of options.tiling, and the common part.
 * `tensors` are all tensors of the model, with their full shapes, as ulp_weights_new_tile() takes
 * them: only bytes of the two tiles are ever read or written, and only their patches are fetched.
 * The first poll loads an anchor, which is fetched whole, one file at a time.
 *
 * The run must be published with a tiling of the same rules and number of tiles: ULP_E_UNREACHABLE
 * if it is not cut into as many, ULP_E_REGIONS if it is cut otherwise. ULP_E_REGIONS also for a
 * tile that has nothing of these tensors.
 */
ULP_API enum ulp_status ulp_follower_open_tile(struct ulp_store *store, const char *run,
                                               const struct ulp_tensor *tensors, size_t count,
                                               const struct ulp_run_options *options,
                                               struct ulp_follower **ret_follower);
ULP_API void ulp_follower_close(struct ulp_follower *follower);

/* Looks at the log, fetches, verifies, decodes and stages what comes next. Nobody sees anything of
 * it; `ready` says that there is something to apply. */
ULP_API enum ulp_status ulp_follower_poll(struct ulp_follower *follower,
                                          struct ulp_run_report *ret_report);

/* The short moment: what was staged becomes what is held. In memory it is one patch at a time, so
 * whoever lags polls and applies several times (`apply_left`). ULP_E_USAGE if nothing is ready. */
ULP_API enum ulp_status ulp_follower_apply(struct ulp_follower *follower,
                                           struct ulp_run_report *ret_report);

/* ---- writers of tiles -------------------------------------------------------------------- */

/*
 * A trainer that no single process holds: each rank makes and stores the patch of its own tile, one
 * of them joins the parts and adds the one record that publishes them all, or nothing is published.
 *
 *     ulp_tile_writer_contribute(writer, tensors, count, step, &mine, &bytes, NULL);   every rank
 *     ... mine goes to the committing rank, by whatever the ranks talk with ...
 *     ulp_tile_writer_commit(writer, all, sizes, tiles, step, NULL);                    one rank
 *     ... a barrier ...
 *     ulp_tile_writer_settle(writer, &report);                                          every rank
 *
 * A run begins with a whole state: one ulp_publish(), or a publisher, of the initial model. Anchors
 * come from whoever holds the whole state, now and then: ulp_publisher_open() and
 * ulp_publisher_anchor(). docs/tiles.md says more.
 */
struct ulp_tile_writer;

/*
 * For tile options.tile of options.tiling; the rank of tile 1 makes the common part too. `tensors`
 * describe the whole state; data is not looked at. The writer keeps a copy of its own of what it
 * published last, which the first contribution gets from the store. options.sign is the committer's.
 */
ULP_API enum ulp_status ulp_tile_writer_open(struct ulp_store *store, const char *run,
                                             const struct ulp_tensor *tensors, size_t count,
                                             const struct ulp_run_options *options,
                                             struct ulp_tile_writer **ret_writer);
ULP_API void ulp_tile_writer_close(struct ulp_tile_writer *writer);

/*
 * Compares the tile in `tensors` (as ulp_weights_new_tile() takes them: of other tiles nothing is
 * read) with the newest version, stores the patch and checks it. What is to be sent to the
 * committing rank is the writer's, and stays until the next contribution. Nobody sees anything yet.
 */
ULP_API enum ulp_status ulp_tile_writer_contribute(struct ulp_tile_writer *writer,
                                                   const struct ulp_tensor *tensors, size_t count,
                                                   uint64_t step, const void **ret_contribution,
                                                   size_t *ret_bytes,
                                                   struct ulp_run_report *ret_report);

/*
 * Publishes the contributions of all ranks as the next version, or nothing: all of them start from
 * the run's newest version, are for this step, and are for each tile once; their patches are where
 * they should be, and cover just what their tiles are. Of the patches only the tables are read.
 *
 * ULP_E_FENCED if somebody else published a version meanwhile; ULP_E_REGIONS if one is missing or of
 * another tiling, ULP_E_DUPLICATE if one is there twice; ULP_E_USAGE for another step;
 * ULP_E_CHECKSUM, ULP_E_RECORD, ULP_E_VERSION and ULP_E_LIMIT for bytes that are no contribution;
 * ULP_E_OTHER_RUN, ULP_E_WRONG_BASE, ULP_E_PART, ULP_E_PART_MISSING for one that does not hold;
 * ULP_E_PART_MISSING also if a deletion was announced that may have hit the parts: contribute again.
 */
ULP_API enum ulp_status ulp_tile_writer_commit(struct ulp_tile_writer *writer,
                                               const void *const *contributions,
                                               const size_t *sizes, size_t count, uint64_t step,
                                               struct ulp_run_report *ret_report);

/*
 * Looks at the log for what became of the last contribution. Published: the writer's copy moves on,
 * and `fresh` is 1. Nothing was published yet: it stays, `fresh` is 0, and this can be asked again.
 * ULP_E_FENCED if another version was published instead; the copy then is that version's, and the
 * writer can be used.
 */
ULP_API enum ulp_status ulp_tile_writer_settle(struct ulp_tile_writer *writer,
                                               struct ulp_run_report *ret_report);

/* ---- care ------------------------------------------------------------------------------- */

/*
 * Makes the long ways that are due: patches over 8 and over 32 versions, which let whoever lags
 * catch up with fewer objects and bytes. Not in anybody's way: from a process of its own, now and
 * then. `directory` keeps a state for each length, as ulp_follow() does. Options: pool, progress,
 * trusted, max_age_ms, sign. `fresh` says whether anything was added.
 */
ULP_API enum ulp_status ulp_run_tend(struct ulp_store *store, const char *run,
                                     const char *directory, const struct ulp_run_options *options,
                                     struct ulp_run_report *ret_report);

struct ulp_collect_options {
    uint64_t grace_ms;     /* between the announcement and the deletion; 0: one hour */
    int now;               /* no grace at all: nobody else is at work */
    int dry_run;           /* say what would be done */
    int only_delete;       /* what was announced; announce nothing: for copies */
    unsigned keep_anchors; /* of the map, with all that leads on from them; 0: as it is */
    const struct ulp_key *sign;
    const struct ulp_public_key *trusted;
    size_t trusted_count;
};

struct ulp_collect_report {
    int announced;           /* a record was added that announces the next deletion */
    uint64_t boundary;       /* the record that announced what was deleted now; 0: none was due */
    uint64_t deleted, bytes; /* parts */
    uint64_t kept;           /* parts that are still named */
    uint64_t condemned;      /* parts that will go when the grace is over */
    uint64_t wait_ms;        /* until then */
};

/*
 * Deletes parts that no follower needs any more: what was announced long enough ago, and then
 * announces what has become useless since. Log records stay for ever. Needs a store that lists.
 */
ULP_API enum ulp_status ulp_run_collect(struct ulp_store *store, const char *run,
                                        const struct ulp_collect_options *options,
                                        struct ulp_collect_report *ret_report);

/* From the next record on the run is signed by `to`; `from` is the key that signs it now. Followers
 * that trust the old key accept the new one. */
ULP_API enum ulp_status ulp_run_rekey(struct ulp_store *store, const char *run,
                                      const struct ulp_key *from, const struct ulp_key *to,
                                      struct ulp_run_report *ret_report);

/* ---- a copy elsewhere -------------------------------------------------------------------- */

/*
 * Brings the copy of a run in store `to` to where it is in store `from`: the same records, byte for
 * byte, with every part that the newest one names, verified on the way. (While a copy that lags
 * catches up, it passes through records whose parts may be gone from the original.) So a site fetches each byte
 * once, and its workers follow the copy. Options: trusted, max_age_ms. Nobody else may publish to
 * the copy: ULP_E_FORK. What the copy does not need any more ulp_run_collect() deletes there, with
 * `only_delete`.
 */
ULP_API enum ulp_status ulp_run_mirror(struct ulp_store *from, struct ulp_store *to,
                                       const char *run, const struct ulp_run_options *options,
                                       struct ulp_run_report *ret_report);

/* ---- is it whole? ------------------------------------------------------------------------ */

/* Hears of an object that is missing or damaged. */
typedef void (*ulp_run_damage)(void *user, const char *key, enum ulp_status status,
                               const char *message);

struct ulp_run_health {
    uint64_t records, parts, bytes; /* that were looked at */
    uint64_t damaged;
    int reachable; /* who starts with nothing can get to the newest version */
};

/* Reads the whole log and everything that its newest record names. `damage` may be NULL. */
ULP_API enum ulp_status ulp_run_check(struct ulp_store *store, const char *run,
                                      ulp_run_damage damage, void *user,
                                      struct ulp_run_health *ret_health);

#ifdef __cplusplus
}
#endif

#endif
