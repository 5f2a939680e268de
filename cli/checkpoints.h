// SPDX-License-Identifier: Apache-2.0
/*
 * A directory into which a trainer writes checkpoints: entries whose names end in a number, their
 * step ("step-100", "checkpoint-200", "global_step_300.safetensors").
 */
#ifndef CLI_CHECKPOINTS_H
#define CLI_CHECKPOINTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <ulpsync/ulpsync.h>

struct checkpoint {
    char name[NAME_MAX + 1];
    uint64_t step;
    uint64_t look;       /* over names, lengths and times of all that is in it */
    uint64_t since_ns;   /* when it was first seen like that */
    bool present, first; /* now; and when the directory was first looked at */
    bool broken;         /* could not be published like that, and was reported */
};

/* Ascending by step, then name. Zeroed means none. */
struct checkpoints {
    const char *directory;
    struct checkpoint *entries;
    size_t count;
    bool looked;
};

/* Looks at the directory again. Names that cannot be complete checkpoints (hidden ones, "tmp-100",
 * "100.tmp", one of several shards) and steps up to *published, unless it is NULL, are left out. */
enum ulp_status checkpoints_look(struct checkpoints *list, const uint64_t *published);
void checkpoints_release(struct checkpoints *list);

/* Its path, and its look by now. */
enum ulp_status checkpoint_path(const struct checkpoints *list, const struct checkpoint *entry,
                                char ret_path[PATH_MAX]);
uint64_t checkpoint_look(const char *path);

#endif
