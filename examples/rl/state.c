// SPDX-License-Identifier: Apache-2.0
#include "state.h"

#include "memory.h"

#include <string.h>

static enum ulp_status name_tensors(const struct layout *layout, const char *dtype, void *data,
                                    size_t element, struct ulp_tensor *tensors) {
    enum ulp_status status = ULP_OK;

    for (size_t i = 0; !status && i < layout->count; i++) {
        const struct parameter *p = &layout->parameters[i];

        tensors[i] = (struct ulp_tensor){.name = p->name,
                                         .dtype = dtype,
                                         .shape = p->shape,
                                         .rank = p->rank,
                                         .data = (uint8_t *)data + p->offset * element};
        status = ulp_tensor_measure(&tensors[i]);
    }
    return status;
}

enum ulp_status state_init(struct state *state, const struct layout *layout) {
    memset(state, 0, sizeof *state);
    state->layout = layout;
    state->bits = zeroed(layout->total, sizeof *state->bits);
    return name_tensors(layout, "BF16", state->bits, sizeof *state->bits, state->tensors);
}

void state_release(struct state *state) {
    free(state->bits);
    memset(state, 0, sizeof *state);
}

enum ulp_status state_root(const struct state *state, struct ulp_root *ret_root) {
    return ulp_state_digest(state->tensors, state->layout->count, NULL, NULL, NULL, ret_root);
}

enum ulp_status masters_save(const struct layout *layout, float *masters, const char *path) {
    struct ulp_tensor tensors[PARAMETERS_MAX];
    struct ulp_writer *writer = NULL;
    enum ulp_status status = name_tensors(layout, "F32", masters, sizeof *masters, tensors);

    if (!status)
        status = ulp_writer_create(path, tensors, layout->count, NULL, 0, &writer);
    for (size_t i = 0; !status && i < layout->count; i++)
        status = ulp_writer_put(writer, i, 0, tensors[i].data, tensors[i].bytes);
    if (!status)
        status = ulp_writer_commit(writer, ULP_COMMIT_REPLACE);
    ulp_writer_free(writer);
    return status;
}

enum ulp_status masters_load(const struct layout *layout, float *masters, const char *path) {
    struct ulp_model *model = NULL;
    enum ulp_status status = ulp_model_open(path, &model);

    for (size_t i = 0; !status && i < layout->count; i++) {
        const struct parameter *p = &layout->parameters[i];
        const struct ulp_tensor *tensor = ulp_model_find(model, p->name);

        if (!tensor || strcmp(tensor->dtype, "F32") != 0 ||
            tensor->bytes != p->count * sizeof *masters)
            status = ulp_fail(ULP_E_LAYOUT, "%s has no tensor %s of this model", path, p->name);
        else
            memcpy(masters + p->offset, tensor->data, (size_t)tensor->bytes);
    }
    ulp_model_free(model);
    return status;
}
