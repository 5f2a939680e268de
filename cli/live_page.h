// SPDX-License-Identifier: Apache-2.0
/*
 * A page whose figures follow what happens: a small script asks for them every second, and puts what
 * is new into place without disturbing who reads. It stands still while nobody sees it, and says
 * when it cannot reach the server. Without scripts the page reloads itself now and then.
 */
#ifndef CLI_LIVE_PAGE_H
#define CLI_LIVE_PAGE_H

#include "cli/text.h"

/* Figures as they are now stand between the two; `from` is where newer ones are. */
void live_page_begin(struct text *out, const char *title, const char *icon, const char *from,
                     const char *nonce);
void live_page_end(struct text *out, const char *nonce);

#endif
