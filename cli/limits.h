// SPDX-License-Identifier: Apache-2.0
/* Limits on what comes to the command from outside, beside those of the library. docs/limits.md
 * shows them too. */
#ifndef CLI_LIMITS_H
#define CLI_LIMITS_H

/* The head of a request over HTTP: some hundred bytes are usual. */
#define LIMIT_SERVE_HEAD_BYTES (32u << 10)

/* Connections of a server that --connections may ask for; each takes up to 160 KiB. */
#define LIMIT_SERVE_CONNECTIONS 65536u

/* Runs that a server shows on its pages; all of them can be followed. */
#define LIMIT_SERVE_RUNS 256u

#endif
