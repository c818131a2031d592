# holdfast_library(<folder's name> SOURCES ... DEPS ...): one static library a folder, holdfast::<name>.
function(holdfast_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(holdfast_${name} STATIC ${ARG_SOURCES})
  add_library(holdfast::${name} ALIAS holdfast_${name})
  target_include_directories(holdfast_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                     $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/holdfast>)
  target_link_libraries(holdfast_${name} PUBLIC ${ARG_DEPS})
  set_target_properties(holdfast_${name} PROPERTIES EXPORT_NAME ${name})
endfunction()

# holdfast_test(<name> LABEL unit|integration|gpu SOURCES ... DEPS ...): one GoogleTest program.
function(holdfast_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()
