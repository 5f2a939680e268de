// SPDX-License-Identifier: Apache-2.0
/*
 * Feeds files to a fuzz target without a fuzzer, with any compiler: every file in the directories
 * named on the command line and, of the short ones, every beginning.
 *     fuzz_replay_json fuzz/corpus/json
 */
#include "fuzz/target.h"

#include <dirent.h>
#include <string.h>

#define FILE_BYTES_MAX (1u << 20)
#define EVERY_BEGINNING_BYTES 2048u

/* A copy of exactly this size, so that a sanitizer sees a read behind the end. */
static void feed(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);

    MUST(copy);
    if (size)
        memcpy(copy, data, size);
    MUST(LLVMFuzzerTestOneInput(copy, size) == 0);
    free(copy);
}

static unsigned long replay_file(const char *path) {
    uint8_t *data = malloc(FILE_BYTES_MAX);
    FILE *file = fopen(path, "rb");
    size_t size, cut;

    MUST(data && file);
    size = fread(data, 1, FILE_BYTES_MAX, file);
    MUST(!ferror(file) && size < FILE_BYTES_MAX);
    fclose(file);
    feed(data, size);
    for (cut = 0; size <= EVERY_BEGINNING_BYTES && cut < size; cut++)
        feed(data, cut);
    free(data);
    return 1 + (unsigned long)cut;
}

static unsigned replay_directory(const char *path, unsigned long *runs) {
    char file_path[4096];
    struct dirent *entry;
    unsigned files = 0;
    DIR *directory = opendir(path);

    if (!directory) {
        perror(path);
        return 0;
    }
    while ((entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file_path, sizeof file_path, "%s/%s", path, entry->d_name);
        *runs += replay_file(file_path);
        files++;
    }
    closedir(directory);
    return files;
}

int main(int argc, char **argv) {
    unsigned files = 0;
    unsigned long runs = 0;

    for (int i = 1; i < argc; i++) {
        unsigned found = replay_directory(argv[i], &runs);

        if (!found) {
            fprintf(stderr, "%s holds no file to replay\n", argv[i]);
            return 1;
        }
        files += found;
    }
    printf("%u files, %lu inputs\n", files, runs);
    return files ? 0 : 1;
}
