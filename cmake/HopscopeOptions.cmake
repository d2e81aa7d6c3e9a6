# Language level, warnings, sanitizers, ccache, output folders.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(HOPSCOPE_CCACHE ccache)
if(HOPSCOPE_CCACHE)
  # Paths relative to the source folder, so that two build folders share their objects.
  set(hopscope_ccache_launcher "${CMAKE_COMMAND}" -E env
    "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=true
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
    "${HOPSCOPE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${hopscope_ccache_launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${hopscope_ccache_launcher})
endif()

# Applied to every target of ours, not to generated code.
add_library(hopscope_warnings INTERFACE)
target_compile_options(hopscope_warnings INTERFACE -Wall -Wextra -Werror -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)  # checks ABSL_GUARDED_BY and its like, which only clang can

if(HOPSCOPE_SANITIZE)
  add_compile_options(-fsanitize=${HOPSCOPE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HOPSCOPE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code misleads GCC 12's analysis of buffers (std::string); the release build has these warnings on.
    target_compile_options(hopscope_warnings INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
      -Wno-stringop-overread -Wno-maybe-uninitialized)
  endif()
  if(HOPSCOPE_SANITIZE MATCHES "thread")
    # Where this macro is set, protobuf's headers give map fields two more members (google/protobuf/map_field.h), which
    # the distribution's libprotobuf was built without: the first access to a map would crash.
    add_compile_options(-U__SANITIZE_THREAD__)
  endif()
endif()

if(HOPSCOPE_WITH_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "HOPSCOPE_WITH_FUZZERS needs clang: use the fuzz preset.")
  endif()
  # Coverage of all code, for libFuzzer to steer by.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
