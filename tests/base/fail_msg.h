// SPDX-License-Identifier: Apache-2.0
/*
 * Included in front of every file here by CMakeLists.txt, while tests/test.h takes cmocka's fail()
 * away, which cmocka's own fail_msg() expands to. To be removed with the line there once
 * tests/test.h brings a fail_msg() that works.
 */
#ifndef TESTS_BASE_FAIL_MSG_H
#define TESTS_BASE_FAIL_MSG_H

#include "tests/test.h"

#undef fail_msg
#define fail_msg(...)                                                                              \
    do {                                                                                           \
        print_error("ERROR: " __VA_ARGS__);                                                        \
        print_error("\n");                                                                         \
        _fail(__FILE__, __LINE__);                                                                 \
    } while (0)

#endif
