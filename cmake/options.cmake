# What can be chosen, and how everything is compiled.
option(HOLDFAST_BUILD_TESTS "Build the tests and the benchmark" ON)
option(HOLDFAST_WERROR "Treat warnings as errors" OFF)
set(HOLDFAST_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them: 'address,undefined' or 'thread'")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# Results must not depend on which instructions a machine has: no contraction of a·b + c anywhere.
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wno-missing-field-initializers;-ffp-contract=off>"
                    "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>")
if(HOLDFAST_WERROR)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Werror>")
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>")
endif()
if(HOLDFAST_SANITIZE)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${HOLDFAST_SANITIZE};-fno-omit-frame-pointer;-g1>")
  add_link_options(-fsanitize=${HOLDFAST_SANITIZE})
  # What the sanitizers need to know of libraries built without them (tests/sanitizers), in every executable.
  link_libraries("$<$<AND:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>,$<TARGET_EXISTS:holdfast_sanitizers>>:$<TARGET_OBJECTS:holdfast_sanitizers>>")
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
