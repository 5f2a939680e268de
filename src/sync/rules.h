// SPDX-License-Identifier: Apache-2.0
/*
 * Rules that the simulator (docs/simulator.md) breaks on purpose, to prove that it would notice. Only
 * its own build is compiled with ULPSYNC_BREAKABLE; everywhere else the answer is a constant.
 */
#ifndef SYNC_RULES_H
#define SYNC_RULES_H

#include <stdbool.h>

enum rule {
    RULE_NONE,
    RULE_BASE_MOVES_LAST,     /* the base is the new version only after its record is in the log */
    RULE_APPLY_ONCE,          /* a patch sets bits; one that toggled them would undo itself */
    RULE_HISTORY_BEGINS_ANEW, /* where somebody may start, patches need no history */
    RULE_STORE_AGAIN /* parts that a deletion has overtaken are stored again before they are named */
};

#ifdef ULPSYNC_BREAKABLE
extern enum rule broken_rule;

static inline bool rule_broken(enum rule rule) {
    return rule == broken_rule;
}
#else
static inline bool rule_broken(enum rule rule) {
    (void)rule;
    return false;
}
#endif

#endif
