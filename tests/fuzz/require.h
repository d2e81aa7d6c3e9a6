// What fuzzers do where an invariant breaks: end the process, so that libFuzzer keeps the input.
#ifndef HOPSCOPE_TESTS_FUZZ_REQUIRE_H_
#define HOPSCOPE_TESTS_FUZZ_REQUIRE_H_

#include <cstdio>

#define HOPSCOPE_REQUIRE(condition)                                                \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
      __builtin_trap();                                                            \
    }                                                                              \
  } while (false)

#endif  // HOPSCOPE_TESTS_FUZZ_REQUIRE_H_
