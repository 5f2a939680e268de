// SPDX-License-Identifier: Apache-2.0
/* What the parts of the store over S3 share. */
#ifndef STORE_S3_H
#define STORE_S3_H

#include "store/remote.h"

/* Up to this one request writes an object, and so large are the parts of a larger one. It is what a
 * part of a patch has at most (PART_BYTES of sync/parts.h). */
#define S3_PART_BYTES ((size_t)16 << 20)

/* Parts of one object that are on their way at a time. */
#define S3_PARTS_AT_ONCE 4u

enum ulp_status s3_put_begin(void *self, const char *key, void **ret_writer);
enum ulp_status s3_put_write(void *self, void *writer, const void *data, size_t bytes);
enum ulp_status s3_put_end(void *self, void *writer, int keep);
enum ulp_status s3_list(void *self, const char *prefix, const char *after, ulp_store_entry entry,
                        void *user);

/* The address of a store; s3://bucket/prefix?endpoint=... and what options and the environment say
 * besides. Zeroed is an empty one. */
struct s3_place {
    struct buffer base, prefix, region, name; /* as remote_open() wants them */
    bool anonymous;
};
enum ulp_status s3_place_find(const char *url, const struct ulp_store_options *options,
                              struct s3_place *ret_place);
void s3_place_release(struct s3_place *place);

#endif
