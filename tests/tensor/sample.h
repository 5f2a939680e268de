// SPDX-License-Identifier: Apache-2.0
/* A small model with one tensor of every awkward kind, and ways to look at what became of it. */
#ifndef TESTS_TENSOR_SAMPLE_H
#define TESTS_TENSOR_SAMPLE_H

#include "tests/test.h"

#define SAMPLE_TENSORS 12

/* Not in the order of their names. The contents are random, and the same each time. */
void sample_make(struct ulp_tensor tensors[SAMPLE_TENSORS]);

/* The model holds just these tensors, bit for bit. */
void assert_model_holds(const struct ulp_model *model, const struct ulp_tensor *tensors,
                        size_t count);

/* The same for the model at `path`. */
void assert_holds(const char *path, const struct ulp_tensor *tensors, size_t count);

/* Writes all of the tensors' bytes into one file and commits it. */
enum ulp_status sample_write(const char *path, const struct ulp_tensor *tensors, size_t count,
                             const struct ulp_text_pair *metadata, size_t metadata_count);

/* How many names a directory holds, hidden ones too. */
unsigned entries_in(const char *directory);

#endif
