// SPDX-License-Identifier: Apache-2.0
/* Changing the map of a record that is being made. What is added lives in the arena. */
#ifndef CHAIN_MAP_H
#define CHAIN_MAP_H

#include "chain/record.h"

/*
 * Where history begins anew: a patch from a version that is a multiple of this never has any. So
 * whoever gets to such a version by an anchor or a long way can go on, and those end nowhere else.
 */
#define HISTORY_RESET 8u

/* Puts it where it belongs; ULP_E_EXISTS if the map has a way between these versions. */
enum ulp_status map_add_way(struct record *record, const struct way *way, struct arena *arena);

/* ULP_E_EXISTS if the map has an anchor of its version. */
enum ulp_status map_add_anchor(struct record *record, const struct anchor *anchor,
                               struct arena *arena);

/* Lets go of all but the newest `anchors` anchors, and of ways from in front of those; with 0 of
 * nothing. */
enum ulp_status map_trim(struct record *record, size_t anchors, struct arena *arena);

/*
 * The map as the holder of a tile sees it: of each way that is cut into `tiles` tiles only the
 * patch of tile `tile`, from 1, behind that of the common one if that is wanted too; other ways are
 * not for it. Anchors are as they were.
 */
enum ulp_status map_slice(const struct record *record, unsigned tiles, unsigned tile, bool common,
                          struct arena *arena, struct record *ret_sliced);

/* The map as one sees it who wants to see every version: ways of one version alone, and anchors only
 * for who holds nothing yet. */
enum ulp_status map_each_version(const struct record *record, bool holds, struct arena *arena,
                                 struct record *ret_stepwise);

/* The way between two versions, or NULL. */
const struct way *map_way(const struct record *record, uint64_t from, uint64_t to);
const struct anchor *map_anchor(const struct record *record, uint64_t version);

/* Whether the map names these bytes. */
bool map_names(const struct record *record, const struct part *part);

/* Calls `fn` for every part that the map names, until it answers non-zero. */
typedef enum ulp_status (*map_part)(void *user, const struct part *part);
enum ulp_status map_each_part(const struct record *record, map_part fn, void *user);

#endif
