// SPDX-License-Identifier: Apache-2.0
/*
 * The library's runs for scripts: reads a request from each line of its input and answers with a
 * line, a status name and what there is to say. Words are separated by blanks; "-" stands for none,
 * SEED for a private key in hexadecimal digits, KEYS for public ones, joined by commas.
 *
 *     publish STORE RUN DIRECTORY MODEL STEP SEED REFERENCE ANCHOR_EVERY    sequence
 *     way STORE RUN SEED FROM TO PATCH...                                   sequence
 *     announce STORE RUN SEED                                               sequence
 *     handover STORE RUN SEED NEW_SEED                                      sequence
 *     check STORE RUN
 *     follow STORE RUN DIRECTORY BASE KEYS MAX_AGE_MS                       root bytes
 *     memory STORE RUN MODEL                                                root
 *     rewrite RECORD OUT SEED
 *     read RECORD
 *     clock MS
 *
 * The same requests give the same bytes: each look at the clock is a second after the last one, and
 * random numbers are no such.
 */
#include "base/clock.h"
#include "chain/map.h"
#include "chain/trust.h"
#include "hash/key.h"
#include "sync/parts.h"
#include "sync/run_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <ulpsync/ulpsync.h>

#define WORDS_MAX 64
#define KEYS_MAX 8
#define PATCHES_MAX 16
#define RECORD_ROOM ((size_t)5 << 20)

/* In front of the one of libc: the ids of runs are always the same. */
ssize_t getrandom(void *buffer, size_t bytes, unsigned flags) {
    (void)flags;
    memset(buffer, 0x77, bytes);
    return (ssize_t)bytes;
}

/* Records are a second apart. */
static uint64_t wall_ns = (uint64_t)1790000000 * 1000000000;

static uint64_t next_second(void *user) {
    (void)user;
    return wall_ns += 1000000000;
}

static uint64_t no_time(void *user) {
    (void)user;
    return 0;
}

static void no_sleep(void *user, uint64_t duration_ns) {
    (void)user;
    (void)duration_ns;
}

static void replace_the_clock(void) {
    static const struct clock_hooks hooks = {no_time, next_second, no_sleep, NULL};

    clock_install(&hooks);
}

static int is_none(const char *word) {
    return strcmp(word, "-") == 0;
}

static enum ulp_status unhex(const char *hex, uint8_t bytes[32]) {
    for (size_t i = 0; i < 32; i++) {
        unsigned byte;

        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            return ulp_fail(ULP_E_USAGE, "not 64 hexadecimal digits");
        bytes[i] = (uint8_t)byte;
    }
    return ULP_OK;
}

/* NULL for "-". */
static enum ulp_status key_of(const char *seed, struct ulp_key **ret_key) {
    uint8_t bytes[32];
    enum ulp_status status;

    *ret_key = NULL;
    if (is_none(seed))
        return ULP_OK;
    status = unhex(seed, bytes);
    return status ? status : key_new(bytes, ret_key);
}

static int answer(enum ulp_status status, const char *text) {
    printf("%s %s\n", ulp_status_name(status), status ? ulp_last_error() : text);
    return fflush(stdout);
}

static int answer_number(enum ulp_status status, uint64_t number) {
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return answer(status, text);
}

/* ---- publishing ---- */

static int publish(char **words) {
    struct ulp_run_options options = {0};
    struct ulp_run_report report = {0};
    struct ulp_store *store = NULL;
    struct ulp_key *key = NULL;
    enum ulp_status status = ulp_store_open(words[0], &store);

    if (!status)
        status = key_of(words[5], &key);
    options.sign = key;
    options.reference = is_none(words[6]) ? NULL : words[6];
    options.anchor_every = (unsigned)strtoul(words[7], NULL, 10);
    options.anchor_share = 1000000;
    if (!status)
        status = ulp_publish(store, words[1], words[2], words[3], strtoull(words[4], NULL, 10),
                             &options, &report);
    answer_number(status, report.head.sequence);
    ulp_key_free(key);
    ulp_store_free(store);
    return 0;
}

/* ---- records that only change the map ---- */

/* The record behind the newest one, to be changed and appended. */
struct next {
    struct ulp_store *store;
    const char *run;
    struct ulp_key *key;
    struct log_entry seen;
    struct arena arena;
    struct record record;
};

static enum ulp_status next_begin(const char *store, const char *run, const char *seed,
                                  struct next *next) {
    struct log_view view = {.run = run};
    enum ulp_status status = ulp_store_open(store, &next->store);

    next->run = run;
    view.store = next->store;
    if (!status)
        status = key_of(seed, &next->key);
    if (!status)
        status = log_advance(&view, false, &next->seen);
    if (!status)
        record_succeed(&next->seen.record, &next->seen.hash, &next->record);
    next->record.time_ms = clock_wall_ns() / 1000000;
    return status;
}

static int next_end(enum ulp_status status, struct next *next) {
    struct log_entry entry = {0};

    if (!status)
        status = log_append(next->store, next->run, &next->record, next->key, &entry);
    answer_number(status, next->record.sequence);
    log_entry_release(&entry);
    log_entry_release(&next->seen);
    arena_release(&next->arena);
    ulp_key_free(next->key);
    ulp_store_free(next->store);
    return 0;
}

/* Puts the bytes of a patch into the store and counts what it changes. */
static enum ulp_status put_patch(const struct next *next, const char *path, struct part *part,
                                 uint64_t *changes) {
    struct ulp_patch *patch = NULL;
    struct ulp_patch_info info = {0};
    static uint8_t data[1 << 20];
    struct piece piece = {data, 0};
    FILE *file = fopen(path, "rb");
    enum ulp_status status = file ? ULP_OK : ulp_fail(ULP_E_IO, "cannot open the patch");

    if (!status)
        status = ulp_patch_open(path, &patch);
    if (!status) {
        ulp_patch_info(patch, &info);
        piece.bytes = fread(data, 1, sizeof data, file);
        *changes += info.changed;
        status = part_put(next->store, next->run, next->record.sequence, &piece, 1, part);
    }
    if (file)
        fclose(file);
    ulp_patch_free(patch);
    return status;
}

/* The record that published a version: the first one that speaks of it. */
static enum ulp_status find_record(const struct next *next, uint64_t version,
                                   uint64_t *ret_sequence) {
    struct ulp_run_record record = {.version = 0};
    enum ulp_status status = ULP_OK;
    uint64_t sequence = 0;

    do
        status = ulp_run_read(next->store, next->run, ++sequence, &record);
    while (!status && record.version < version);
    *ret_sequence = sequence;
    return status;
}

static int way(char **words, size_t count) {
    struct next next = {0};
    struct part parts[PATCHES_MAX];
    struct stored_patch patches[PATCHES_MAX];
    struct way added = {.from = strtoull(words[3], NULL, 10),
                        .to = strtoull(words[4], NULL, 10),
                        .patches = patches};
    enum ulp_status status = next_begin(words[0], words[1], words[2], &next);

    for (size_t i = 5; !status && i < count && i < 5 + PATCHES_MAX; i++) {
        patches[i - 5] = (struct stored_patch){&parts[i - 5], 1};
        status = put_patch(&next, words[i], &parts[i - 5], &added.changes);
        added.patch_count++;
    }
    if (!status)
        status = find_record(&next, added.to, &added.sequence);
    if (!status)
        status = map_add_way(&next.record, &added, &next.arena);
    return next_end(status, &next);
}

static int announce(char **words) {
    struct next next = {0};
    enum ulp_status status = next_begin(words[0], words[1], words[2], &next);

    next.record.boundary = next.record.sequence;
    return next_end(status, &next);
}

static int handover(char **words) {
    struct next next = {0};
    struct handover handovers[KEYS_MAX];
    struct ulp_key *heir = NULL;
    enum ulp_status status = next_begin(words[0], words[1], words[2], &next);
    size_t count = next.record.handover_count;

    if (!status)
        status = key_of(words[3], &heir);
    if (!status && (count >= KEYS_MAX || !heir))
        status = ulp_fail(ULP_E_USAGE, "too many handovers, or to nobody");
    if (!status) {
        if (count)
            memcpy(handovers, next.record.handovers, count * sizeof handovers[0]);
        status = handover_make(&next.record, next.record.sequence, next.key, &heir->public_key,
                               &handovers[count]);
        next.record.handovers = handovers;
        next.record.handover_count = count + 1;
    }
    ulp_key_free(next.key);
    next.key = heir;
    return next_end(status, &next);
}

/* ---- looking ---- */

struct first_damage {
    enum ulp_status status;
    char text[512];
};

static void note_damage(void *user, const char *key, enum ulp_status status, const char *message) {
    struct first_damage *first = user;

    if (first->status)
        return;
    first->status = status;
    snprintf(first->text, sizeof first->text, "%s: %s", key, message);
}

static int check(char **words) {
    struct first_damage first = {0};
    struct ulp_run_health health = {0};
    struct ulp_store *store = NULL;
    enum ulp_status status = ulp_store_open(words[0], &store);

    if (!status)
        status = ulp_run_check(store, words[1], note_damage, &first, &health);
    if (!status && first.status)
        status = ulp_fail(first.status, "%s", first.text);
    if (!status && !health.reachable)
        status = ulp_fail(ULP_E_UNREACHABLE, "no anchor leads to the newest version");
    answer(status, "");
    ulp_store_free(store);
    return 0;
}

static enum ulp_status keys_of(char *word, struct ulp_public_key *keys, size_t *ret_count) {
    enum ulp_status status = ULP_OK;
    size_t count = 0;

    for (char *hex = strtok(word, ","); !status && hex && !is_none(hex) && count < KEYS_MAX;
         hex = strtok(NULL, ","))
        status = unhex(hex, keys[count++].bytes);
    *ret_count = count;
    return status;
}

static int follow(char **words) {
    struct ulp_public_key keys[KEYS_MAX];
    struct ulp_run_options options = {.trusted = keys};
    struct ulp_run_report report = {0};
    struct ulp_store *store = NULL;
    char hex[ULP_ROOT_HEX_BYTES] = "", text[ULP_ROOT_HEX_BYTES + 24];
    enum ulp_status status = ulp_store_open(words[0], &store);

    if (!status)
        status = keys_of(words[4], keys, &options.trusted_count);
    options.base = is_none(words[3]) ? NULL : words[3];
    options.max_age_ms = is_none(words[5]) ? 0 : strtoull(words[5], NULL, 10);
    if (!status)
        status = ulp_follow(store, words[1], words[2], &options, &report);
    ulp_root_hex(&report.head.root, hex);
    snprintf(text, sizeof text, "%s %llu", hex,
             (unsigned long long)(report.patch_bytes + report.anchor_bytes));
    answer(status, text);
    ulp_store_free(store);
    return 0;
}

/* Tensors in memory, with what a model has. */
struct memory {
    struct ulp_model *model;
    struct ulp_tensor *tensors;
    size_t count;
};

static void memory_free(struct memory *memory) {
    for (size_t i = 0; memory->tensors && i < memory->count; i++)
        free(memory->tensors[i].data);
    free(memory->tensors);
    ulp_model_free(memory->model);
}

static enum ulp_status memory_load(const char *path, struct memory *memory) {
    enum ulp_status status = ulp_model_open(path, &memory->model);

    if (status)
        return status;
    memory->count = ulp_model_count(memory->model);
    memory->tensors = calloc(memory->count + 1, sizeof *memory->tensors);
    for (size_t i = 0; memory->tensors && i < memory->count; i++) {
        struct ulp_tensor *copy = &memory->tensors[i];

        *copy = ulp_model_tensors(memory->model)[i];
        copy->data = malloc((size_t)copy->bytes);
        if (!copy->data)
            return ulp_fail(ULP_E_NOMEM, "no memory for a tensor");
        memcpy(copy->data, ulp_model_tensors(memory->model)[i].data, (size_t)copy->bytes);
    }
    return memory->tensors ? ULP_OK : ulp_fail(ULP_E_NOMEM, "no memory for tensors");
}

/* Polls and applies until nothing is left, and looks at what is in memory then. */
static enum ulp_status follow_in_memory(struct ulp_follower *follower, const struct memory *memory,
                                        char hex[ULP_ROOT_HEX_BYTES]) {
    struct ulp_run_report report = {0};
    struct ulp_root root = {{0}};
    enum ulp_status status = ulp_follower_poll(follower, &report);

    while (!status && report.ready) {
        status = ulp_follower_apply(follower, &report);
        if (!status)
            status = ulp_follower_poll(follower, &report);
    }
    if (!status)
        status = ulp_state_digest(memory->tensors, memory->count, NULL, NULL, NULL, &root);
    if (!status && memcmp(&root, &report.head.root, sizeof root) != 0)
        status = ulp_fail(ULP_E_INTERNAL, "the weights in memory are not the newest ones");
    ulp_root_hex(&root, hex);
    return status;
}

static int follow_memory(char **words) {
    struct ulp_store *store = NULL;
    struct ulp_follower *follower = NULL;
    struct memory memory = {0};
    char hex[ULP_ROOT_HEX_BYTES] = "";
    enum ulp_status status = ulp_store_open(words[0], &store);

    if (!status)
        status = memory_load(words[2], &memory);
    if (!status)
        status = ulp_follower_open_memory(store, words[1], memory.tensors, memory.count, NULL,
                                          &follower);
    if (!status)
        status = follow_in_memory(follower, &memory, hex);
    answer(status, hex);
    ulp_follower_close(follower);
    memory_free(&memory);
    ulp_store_free(store);
    return 0;
}

static enum ulp_status write_file(const char *path, const struct buffer *bytes) {
    FILE *file = fopen(path, "wb");
    size_t written = file ? fwrite(bytes->data, 1, bytes->used, file) : 0;

    if (!file || fclose(file) || written != bytes->used)
        return ulp_fail(ULP_E_IO, "cannot write the record");
    return ULP_OK;
}

/* `data` has room for RECORD_ROOM bytes. */
static enum ulp_status record_load(const char *path, uint8_t *data, struct arena *arena,
                                   struct record *record) {
    FILE *file = fopen(path, "rb");
    size_t bytes = file ? fread(data, 1, RECORD_ROOM, file) : 0;

    if (!file)
        return ulp_fail(ULP_E_IO, "cannot open the record");
    fclose(file);
    return record_read(data, bytes, arena, record);
}

static int rewrite(char **words) {
    static uint8_t data[RECORD_ROOM];
    struct buffer out = BUFFER(RECORD_ROOM);
    struct arena arena = {0};
    struct record record;
    struct ulp_key *key = NULL;
    enum ulp_status status = key_of(words[2], &key);

    if (!status)
        status = record_load(words[0], data, &arena, &record);
    if (!status)
        status = record_write(&record, key, &out);
    if (!status)
        status = write_file(words[1], &out);
    answer(status, "");
    ulp_key_free(key);
    arena_release(&arena);
    buffer_release(&out);
    return 0;
}

static int read_record(char **words) {
    static uint8_t data[RECORD_ROOM];
    struct arena arena = {0};
    struct record record;

    answer(record_load(words[0], data, &arena, &record), "");
    arena_release(&arena);
    return 0;
}

static int set_clock(char **words) {
    wall_ns = strtoull(words[0], NULL, 10) * 1000000;
    return answer(ULP_OK, "");
}

/* ---- requests ---- */

static int request(char **words, size_t count) {
    static const struct {
        const char *name;
        size_t words;
        int (*serve)(char **words);
    } verbs[] = {{"publish", 8, publish}, {"announce", 3, announce}, {"handover", 4, handover},
                 {"check", 2, check},     {"follow", 6, follow},     {"rewrite", 3, rewrite},
                 {"clock", 1, set_clock}, {"read", 1, read_record},  {"memory", 3, follow_memory}};

    if (count >= 7 && strcmp(words[0], "way") == 0)
        return way(words + 1, count - 1);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(words[0], verbs[i].name) == 0 && count == 1 + verbs[i].words)
            return verbs[i].serve(words + 1);
    }
    return ULP_E_USAGE;
}

int main(void) {
    static char line[1 << 16];
    char *words[WORDS_MAX];
    int failed = 0;

    replace_the_clock();
    while (!failed && fgets(line, sizeof line, stdin)) {
        size_t count = 0;

        for (char *word = strtok(line, " \n"); word && count < WORDS_MAX;
             word = strtok(NULL, " \n"))
            words[count++] = word;
        failed = count ? request(words, count) : ULP_E_USAGE;
    }
    return failed;
}
