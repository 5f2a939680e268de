// SPDX-License-Identifier: Apache-2.0
/* A stranger's program, with names of its own that the library also uses inside. */
#include <stdio.h>
#include <string.h>
#include <ulpsync/ulpsync.h>

int quote(int x);
int file_read(void);

int quote(int x) {
    return x + 1;
}

int file_read(void) {
    return 41;
}

int main(void) {
    struct ulp_root root;

    if (quote(file_read()) != 42 || ulp_state_digest(NULL, 0, NULL, NULL, NULL, &root))
        return 1;
    printf("%s\n", ulp_version());
    return strcmp(ulp_version(), EXPECTED_VERSION) != 0;
}
