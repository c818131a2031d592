# What `cmake --install` puts where: the executables, and the C++ client as the CMake package `holdfast`
# (find_package(holdfast), then link holdfast::client, or holdfast::session for the part without LibTorch).
include(CMakePackageConfigHelpers)

foreach(executable holdfastd holdfastctl)
  if(TARGET ${executable})
    install(TARGETS ${executable} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  endif()
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
set(header_dir ${CMAKE_INSTALL_INCLUDEDIR}/holdfast)

set_target_properties(holdfast_torch PROPERTIES EXPORT_NAME torch)
install(TARGETS holdfast_client holdfast_session holdfast_common holdfast_proto_grpc holdfast_proto holdfast_torch
        EXPORT holdfast_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT holdfast_targets FILE holdfast-targets.cmake NAMESPACE holdfast:: DESTINATION ${package_dir}
        COMPONENT development)

configure_package_config_file(cmake/holdfast-config.cmake.in ${PROJECT_BINARY_DIR}/holdfast-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break the API.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/holdfast-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/holdfast-config.cmake ${PROJECT_BINARY_DIR}/holdfast-config-version.cmake
        DESTINATION ${package_dir} COMPONENT development)

install(DIRECTORY client common DESTINATION ${header_dir} COMPONENT development FILES_MATCHING PATTERN "*.h"
        PATTERN examples EXCLUDE PATTERN holdfastctl EXCLUDE PATTERN python EXCLUDE)
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/holdfast DESTINATION ${header_dir} COMPONENT development
        FILES_MATCHING PATTERN "*.h")
install(DIRECTORY proto/holdfast DESTINATION ${CMAKE_INSTALL_DATADIR}/holdfast/proto COMPONENT development
        FILES_MATCHING PATTERN "*.proto")
