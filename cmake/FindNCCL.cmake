# Finds NCCL, which has no package file of its own: in NCCL_ROOT, in the CUDA toolkit, on the system, or in the pip
# package nvidia-nccl of the python3 on the PATH. Afterwards:
#   NCCL_FOUND, NCCL_VERSION (the header's)
#   NCCL::nccl (include folder and shared library)
#   NCCL_INCLUDE_DIR, NCCL_LIBRARY (cache; set them to choose by hand)
set(nccl_hints ${CUDAToolkit_TARGET_DIR} ${CUDAToolkit_LIBRARY_ROOT})
foreach(include_dir IN LISTS CUDAToolkit_INCLUDE_DIRS)
  list(APPEND nccl_hints ${include_dir}/..)
endforeach()
foreach(bin_dir IN LISTS CUDAToolkit_BIN_DIR)
  list(APPEND nccl_hints ${bin_dir}/..)
endforeach()

# A pip package is asked for last: starting Python takes a moment.
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${nccl_hints} PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${nccl_hints} PATH_SUFFIXES lib lib64)
if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
  find_program(NCCL_PYTHON python3)
  mark_as_advanced(NCCL_PYTHON)
  if(NCCL_PYTHON)
    execute_process(COMMAND ${NCCL_PYTHON} -c "import sysconfig; print(sysconfig.get_path('purelib'))"
                    OUTPUT_VARIABLE nccl_site_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${nccl_site_packages}/nvidia/nccl/include)
    find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${nccl_site_packages}/nvidia/nccl/lib)
  endif()
endif()
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)

if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_version_lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX MATCHALL "[0-9]+" nccl_version_numbers "${nccl_version_lines}")
  list(JOIN nccl_version_numbers "." NCCL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)

if(NCCL_FOUND AND NOT TARGET NCCL::nccl)
  add_library(NCCL::nccl SHARED IMPORTED)
  set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
