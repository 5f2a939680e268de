// SPDX-License-Identifier: Apache-2.0
/* What writing and reading a record share. */
#ifndef CHAIN_RECORD_BYTES_H
#define CHAIN_RECORD_BYTES_H

#include <stdint.h>

#define RECORD_MAGIC_BYTES 8u

extern const uint8_t record_magic[RECORD_MAGIC_BYTES];

#endif
