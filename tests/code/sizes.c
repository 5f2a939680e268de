// SPDX-License-Identifier: Apache-2.0
/* How many bits a change costs on synthetic runs: prints the figures and fails where one grew. */
#include "tests/code/sample.h"
#include "tests/synth/run.h"

#define STATES 4
#define BLOCKS 192 /* of the generator: 3.1 million elements */
#define ELEMENTS ((size_t)BLOCKS * SYNTH_BLOCK_ELEMENTS)
#define LARGE_BLOCKS (ELEMENTS / CODE_BLOCK_MAX)

static uint16_t *states[STATES];
static struct code_move *moves;

static void make_run(enum synth_regime regime, float lr) {
    run_make(regime, lr, BLOCKS, states, STATES);
    moves = sample_memory(ELEMENTS, sizeof *moves);
}

static void free_run(void) {
    run_free(states, STATES);
    free(moves);
}

/* What the elements of a block did between the two states before: steps of the bit pattern. */
static uint32_t find_moves(const uint16_t *earlier, const uint16_t *old, struct code_move *to) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < CODE_BLOCK_MAX; i++) {
        int move = (int16_t)(uint16_t)(old[i] - earlier[i]);

        move = move > 127 ? 127 : move < -127 ? -127 : move;
        if (move)
            to[count++] = (struct code_move){i, (int8_t)move};
    }
    return count;
}

static size_t count_changes(const uint16_t *old, const uint16_t *new) {
    size_t changes = 0;

    for (size_t i = 0; i < ELEMENTS; i++)
        changes += old[i] != new[i];
    return changes;
}

/* From state `step` to the next; the moves are those from the state before. */
static size_t encoded_bytes(int step, bool history) {
    struct code_block blocks[LARGE_BLOCKS];
    uint32_t elements[LARGE_BLOCKS];
    struct sample sample = {.kind = code_kind_of("BF16", 16),
                            .coder = history ? CODE_HISTORY : CODE_CONTEXT,
                            .history = history,
                            .count = LARGE_BLOCKS,
                            .blocks = blocks,
                            .elements = elements};
    struct buffer bytes;
    size_t used;

    for (size_t b = 0; b < LARGE_BLOCKS; b++) {
        size_t at = b * CODE_BLOCK_MAX;

        elements[b] = CODE_BLOCK_MAX;
        blocks[b] = (struct code_block){
            .old = states[step] + at, .new = states[step + 1] + at, .elements = CODE_BLOCK_MAX};
        if (history) {
            blocks[b].moves = moves + at;
            blocks[b].move_count = find_moves(states[step - 1] + at, states[step] + at, moves + at);
        }
    }
    bytes = sample_encode(&sample);
    sample_check_decode(&sample, &bytes);
    used = bytes.used;
    buffer_release(&bytes);
    return used;
}

static void measure(const char *title, double most_alone, double most_with_history) {
    double alone = 0, with_history = 0, changes = 0;

    for (int step = 1; step + 1 < STATES; step++) {
        alone += 8 * (double)encoded_bytes(step, false);
        with_history += 8 * (double)encoded_bytes(step, true);
        changes += (double)count_changes(states[step], states[step + 1]);
    }
    alone /= changes;
    with_history /= changes;
    printf("%-26s %6.3f bits per change (at most %.2f), with history %6.3f (at most %.2f)\n", title,
           alone, most_alone, with_history, most_with_history);
    assert_true(alone <= most_alone);
    assert_true(with_history <= most_with_history);
}

static void test_master_run(void **state) {
    (void)state;
    make_run(SYNTH_MASTER, 1e-6f);
    measure("FP32 masters, lr 1e-6", 6.95, 6.80);
    free_run();
}

static void test_bf16_run(void **state) {
    (void)state;
    make_run(SYNTH_BF16, 3e-6f);
    measure("weights in BF16, lr 3e-6", 4.50, 2.95);
    free_run();
}

/* All of the weights, when there is nothing to compare them with. */
static void test_whole_weights(void **state) {
    static const enum code_coder coders[] = {CODE_PLAIN, CODE_DENSE};
    uint16_t *nothing = sample_memory(ELEMENTS, sizeof *nothing);
    struct code_block blocks[LARGE_BLOCKS];
    uint32_t elements[LARGE_BLOCKS];

    (void)state;
    make_run(SYNTH_MASTER, 1e-6f);
    for (size_t b = 0; b < LARGE_BLOCKS; b++) {
        elements[b] = CODE_BLOCK_MAX;
        blocks[b] = (struct code_block){.old = nothing + b * CODE_BLOCK_MAX,
                                        .new = states[0] + b *CODE_BLOCK_MAX,
                                        .elements = CODE_BLOCK_MAX};
    }
    for (unsigned i = 0; i < 2; i++) {
        struct sample sample = {.kind = code_kind_of("BF16", 16),
                                .coder = coders[i],
                                .count = LARGE_BLOCKS,
                                .blocks = blocks,
                                .elements = elements};
        struct buffer bytes = sample_encode(&sample);
        double smaller = 2.0 * (double)ELEMENTS / (double)bytes.used;

        sample_check_decode(&sample, &bytes);
        printf("all weights, %s: %.3f times smaller (at least 1.45)\n", i ? "dense" : "plain",
               smaller);
        assert_true(smaller >= 1.45);
        buffer_release(&bytes);
    }
    free_run();
    free(nothing);
}

TEST_MAIN(test_master_run, test_bf16_run, test_whole_weights)
