// SPDX-License-Identifier: Apache-2.0
/* Credentials and private keys in memory. */
#ifndef CLI_SECRETS_H
#define CLI_SECRETS_H

/* Before the first secret comes into memory: from here on a crash does not write it to a disk. */
void secrets_keep(void);

#endif
