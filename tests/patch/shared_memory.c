// SPDX-License-Identifier: Apache-2.0
/* Tensors that share memory would be swapped twice, so a handle on them is refused. */
#include "tests/patch/state.h"

#define ELEMENTS 64

static uint16_t memory[4 * ELEMENTS];

static struct ulp_tensor tensor_at(const char *name, size_t first, const uint64_t *shape) {
    struct ulp_tensor tensor = {
        .name = name, .dtype = "BF16", .shape = shape, .rank = 1, .data = memory + first};

    assert_ok(ulp_tensor_measure(&tensor));
    return tensor;
}

static const uint64_t usual[] = {ELEMENTS}, one[] = {1}, none[] = {0}, all[] = {4 * ELEMENTS};

static void refused(struct ulp_tensor a, struct ulp_tensor b) {
    const struct ulp_tensor pair[] = {a, b}, turned[] = {b, a};
    struct ulp_weights *weights = NULL;

    assert_fails(ulp_weights_new(pair, 2, NULL, NULL, &weights), ULP_E_OVERLAP, "share memory");
    assert_fails(ulp_weights_new(turned, 2, NULL, NULL, &weights), ULP_E_OVERLAP, "share memory");
    assert_null(weights);
}

static void test_tied_and_overlapping(void **unused) {
    const struct ulp_tensor tensor = tensor_at("embed", ELEMENTS, usual);

    (void)unused;
    refused(tensor, tensor_at("lm_head", ELEMENTS, usual));
    refused(tensor, tensor_at("lm_head", 2 * ELEMENTS - 1, usual)); /* by one element */
    refused(tensor, tensor_at("lm_head", 1, usual));
    refused(tensor, tensor_at("lm_head", ELEMENTS, one));
    refused(tensor, tensor_at("lm_head", 2 * ELEMENTS - 1, one));
    refused(tensor, tensor_at("lm_head", 0, all)); /* around it */
}

/* Both names are in the message, and others in between do not hide it. */
static void test_among_many(void **unused) {
    const struct ulp_tensor tensors[] = {
        tensor_at("a", 3 * ELEMENTS, usual), tensor_at("b", 0, usual),
        tensor_at("c", 2 * ELEMENTS, usual), tensor_at("d", 2 * ELEMENTS + 5, none),
        tensor_at("e", 4 * ELEMENTS - 1, one)};
    struct ulp_weights *weights = NULL;

    (void)unused;
    assert_fails(ulp_weights_new(tensors, COUNT(tensors), NULL, NULL, &weights), ULP_E_OVERLAP,
                 "'a' and 'e'");
    assert_ok(ulp_weights_new(tensors, COUNT(tensors) - 1, NULL, NULL, &weights));
    ulp_weights_free(weights);
}

static void test_adjacent_and_empty(void **unused) {
    const struct ulp_tensor tensors[] = {
        tensor_at("a", 0, usual),          tensor_at("b", ELEMENTS, usual),
        tensor_at("c", 0, none),           tensor_at("d", 7, none),
        tensor_at("e", ELEMENTS, none),    tensor_at("f", 2 * ELEMENTS, one),
        tensor_at("g", 2 * ELEMENTS, none)};
    struct ulp_tensor nowhere[] = {tensor_at("a", 0, none), tensor_at("b", 0, none)};
    struct ulp_weights *weights = NULL;

    (void)unused;
    assert_ok(ulp_weights_new(tensors, COUNT(tensors), NULL, NULL, &weights));
    ulp_weights_free(weights);
    nowhere[0].data = nowhere[1].data = NULL;
    assert_ok(ulp_weights_new(nowhere, COUNT(nowhere), NULL, NULL, &weights));
    ulp_weights_free(weights);
}

TEST_MAIN(test_tied_and_overlapping, test_among_many, test_adjacent_and_empty)
