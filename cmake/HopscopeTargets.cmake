# hopscope_library(NAME SRCS ... DEPS ...)  makes target hopscope_NAME with the alias hopscope::NAME.
# hopscope_test(NAME SRCS ... DEPS ... [LABELS ...])  makes a GoogleTest program whose cases ctest lists one by one.
# hopscope_binary(NAME SRCS ... DEPS ...)  makes a program in build/<preset>/bin.
# hopscope_fuzzer(NAME SRCS ... DEPS ...)  makes a libFuzzer program in build/fuzz/test where HOPSCOPE_WITH_FUZZERS is on,
#   and nothing elsewhere; the target hopscope_fuzzers builds them all. ctest (label "fuzz") runs it for
#   HOPSCOPE_FUZZ_SECONDS from the seeds in corpus/NAME beside the CMakeLists.txt; what it learns stays in
#   build/fuzz/fuzzing/NAME, and so does an input that fails.

# Most of a compiler's time goes into headers. Left off in the release build, which so finds a file that lacks an include.
option(HOPSCOPE_PRECOMPILE "Precompile the headers that most files include" OFF)
if(HOPSCOPE_PRECOMPILE)
  # A precompiled header fits only where these are the same everywhere, programs included.
  add_compile_options(-pthread)
  add_compile_definitions(GTEST_HAS_PTHREAD=1)
  set(CMAKE_CXX_COMPILE_OPTIONS_PIE "-fPIC")
endif()

# The target that the others take their precompiled header from; called once, when the messages and gmock are known.
function(hopscope_add_precompiled)
  if(NOT HOPSCOPE_PRECOMPILE)
    return()
  endif()
  file(WRITE "${CMAKE_BINARY_DIR}/precompiled.cc.new" "")
  file(COPY_FILE "${CMAKE_BINARY_DIR}/precompiled.cc.new" "${CMAKE_BINARY_DIR}/precompiled.cc" ONLY_IF_DIFFERENT)
  add_library(hopscope_precompiled STATIC "${CMAKE_BINARY_DIR}/precompiled.cc")
  target_link_libraries(hopscope_precompiled PRIVATE hopscope::proto_grpc GTest::gmock absl::statusor absl::str_format
    absl::flat_hash_map absl::time hopscope_warnings)
  target_precompile_headers(hopscope_precompiled PRIVATE
    <algorithm> <atomic> <chrono> <functional> <map> <memory> <optional> <set> <string> <unordered_map> <utility> <vector>
    <absl/container/flat_hash_map.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/strings/str_format.h> <absl/strings/str_join.h> <absl/time/time.h>
    <hopscope/v1/admin.grpc.pb.h> <hopscope/v1/dispatch.grpc.pb.h> <hopscope/v1/evaluation.grpc.pb.h>
    <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

function(hopscope_use_precompiled target)
  if(HOPSCOPE_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM hopscope_precompiled)
  endif()
endfunction()

function(hopscope_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_library(hopscope_${name} STATIC ${ARG_SRCS})
  add_library(hopscope::${name} ALIAS hopscope_${name})
  target_include_directories(hopscope_${name} PUBLIC "${CMAKE_SOURCE_DIR}")
  target_link_libraries(hopscope_${name} PUBLIC ${ARG_DEPS} PRIVATE hopscope_warnings)
  hopscope_use_precompiled(hopscope_${name})
endfunction()

function(hopscope_binary name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} hopscope_warnings)
  hopscope_use_precompiled(${name})
endfunction()

function(hopscope_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test")
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main hopscope_warnings)
  hopscope_use_precompiled(${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  set(environment)
  if(HOPSCOPE_SANITIZE MATCHES "thread")
    set(environment ENVIRONMENT
      "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/scripts/sanitizers/tsan.txt:ignore_noninstrumented_modules=1:halt_on_error=1:history_size=4")
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" ${environment})
endfunction()

set(HOPSCOPE_FUZZ_SECONDS 60 CACHE STRING "How long ctest runs each fuzz target")

function(hopscope_fuzzer name)
  if(NOT HOPSCOPE_WITH_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/test")
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} hopscope_warnings)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET hopscope_fuzzers)
    add_custom_target(hopscope_fuzzers)
  endif()
  add_dependencies(hopscope_fuzzers ${name})
  set(scratch "${CMAKE_BINARY_DIR}/fuzzing/${name}")
  file(MAKE_DIRECTORY "${scratch}")
  add_test(NAME ${name}
    COMMAND ${name} -max_total_time=${HOPSCOPE_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
      "-artifact_prefix=${scratch}/" "${scratch}" "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}")
  math(EXPR limit "${HOPSCOPE_FUZZ_SECONDS} + 60")
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT ${limit})
endfunction()
