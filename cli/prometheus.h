// SPDX-License-Identifier: Apache-2.0
/* Figures in the text format of Prometheus. */
#ifndef CLI_PROMETHEUS_H
#define CLI_PROMETHEUS_H

#include <stdint.h>
#include <stdio.h>

/* Where they go, and the run that samples are labelled with; NULL: samples are of no run. */
struct prometheus {
    FILE *file;
    const char *run;
};

/* Before the first sample of a name, once on a page. */
void prometheus_head(const struct prometheus *page, const char *name, const char *type,
                     const char *help);

/* `label` is NULL, or the name of another label. */
void prometheus_sample(const struct prometheus *page, const char *name, const char *label,
                       const char *label_value, double value);

/* A name that has one sample. */
void prometheus_one(const struct prometheus *page, const char *name, const char *type,
                    const char *help, double value);

/* Since a publisher's clock said `time_ms`, by ours. */
double prometheus_age_seconds(uint64_t time_ms);

#endif
