// SPDX-License-Identifier: Apache-2.0
/*
 * A strict reader for the few answers of S3 that are XML. It takes one well-formed document without
 * a document type, comments, CDATA or processing instructions (but the declaration), skips
 * attributes, knows the five named entities and numbers, and refuses what is deeper than
 * LIMIT_XML_DEPTH, is not UTF-8, or has both text and elements within one element.
 */
#ifndef NET_XML_H
#define NET_XML_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* An element that ended: where it stood, such as "ListBucketResult/Contents/Key", and its text,
 * which is "" for one that holds others. */
typedef enum ulp_status (*xml_heard)(void *user, const char *path, const char *text);

/* ULP_E_IO if it is not such a document; `what` is for the message. */
enum ulp_status xml_read(const char *what, const char *data, size_t bytes, xml_heard heard,
                         void *user);

#endif
