# SPDX-License-Identifier: Apache-2.0
# Library, headers, command, manual pages, pkg-config file, CMake package.
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ulpsync)
install(TARGETS ulpsync EXPORT ulpsyncTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(ULPSYNC_CUDA)
    install(TARGETS ulpsync_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(FILES ${PROJECT_BINARY_DIR}/libulpsync.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/ulpsync DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ulpsyncTargets NAMESPACE ulpsync:: DESTINATION ${config_dir})

configure_package_config_file(cmake/ulpsyncConfig.cmake.in ${PROJECT_BINARY_DIR}/ulpsyncConfig.cmake
    INSTALL_DESTINATION ${config_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ulpsyncConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ulpsyncConfig.cmake ${PROJECT_BINARY_DIR}/ulpsyncConfigVersion.cmake
    DESTINATION ${config_dir})

set(private_link_flags "-lpthread -ldl") # the latter for C libraries that are older
if(ULPSYNC_OPENSSL)
    string(APPEND private_link_flags " -lcrypto")
endif()
if(ULPSYNC_CURL)
    string(APPEND private_link_flags " -lcurl")
endif()
# The prefix is known only when installing, so the file is written then.
install(CODE "
    get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
    get_filename_component(libdir \"${CMAKE_INSTALL_LIBDIR}\" ABSOLUTE BASE_DIR \"\${prefix}\")
    get_filename_component(includedir \"${CMAKE_INSTALL_INCLUDEDIR}\" ABSOLUTE BASE_DIR \"\${prefix}\")
    set(PROJECT_DESCRIPTION \"${PROJECT_DESCRIPTION}\")
    set(PROJECT_VERSION \"${PROJECT_VERSION}\")
    set(private_link_flags \"${private_link_flags}\")
    configure_file(\"${PROJECT_SOURCE_DIR}/cmake/ulpsync.pc.in\" \"${PROJECT_BINARY_DIR}/ulpsync.pc\" @ONLY)
")
install(FILES ${PROJECT_BINARY_DIR}/ulpsync.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(ULPSYNC_CLI)
    install(TARGETS ulpsync_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(DIRECTORY ${PROJECT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
