# SPDX-License-Identifier: Apache-2.0
# Flags of everything this project compiles. -ffp-contract=off: the synthetic runs must give the same
# bits on machines with and without fused multiply-add.
add_library(ulpsync_flags INTERFACE)
target_compile_features(ulpsync_flags INTERFACE c_std_11)
target_compile_definitions(ulpsync_flags INTERFACE _POSIX_C_SOURCE=200809L _FILE_OFFSET_BITS=64)
target_compile_options(ulpsync_flags INTERFACE -Wall -Wextra -Wconversion -ffp-contract=off)
target_include_directories(ulpsync_flags INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
if(ULPSYNC_WERROR)
    target_compile_options(ulpsync_flags INTERFACE -Werror)
endif()
if(ULPSYNC_SANITIZE)
    target_compile_options(ulpsync_flags INTERFACE -fsanitize=${ULPSYNC_SANITIZE}
        -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(ulpsync_flags INTERFACE -fsanitize=${ULPSYNC_SANITIZE})
endif()
