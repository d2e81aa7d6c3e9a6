#include "common/version.h"

#include "absl/strings/str_cat.h"

// Set on the compiler's command line from CMake's PROJECT_VERSION.
#if !defined(HOPSCOPE_VERSION_MAJOR) || !defined(HOPSCOPE_VERSION_MINOR) || \
    !defined(HOPSCOPE_VERSION_PATCH) || !defined(HOPSCOPE_BUILD_TYPE)
#error "the build sets the version"
#endif

#define HOPSCOPE_STRINGIFY_(x) #x
#define HOPSCOPE_STRINGIFY(x) HOPSCOPE_STRINGIFY_(x)

namespace hopscope::common {

absl::string_view VersionString() {
  return HOPSCOPE_STRINGIFY(HOPSCOPE_VERSION_MAJOR) "." HOPSCOPE_STRINGIFY(
      HOPSCOPE_VERSION_MINOR) "." HOPSCOPE_STRINGIFY(HOPSCOPE_VERSION_PATCH);
}

v1::Version ProgramVersion() {
  v1::Version version;
  version.set_major(HOPSCOPE_VERSION_MAJOR);
  version.set_minor(HOPSCOPE_VERSION_MINOR);
  version.set_patch(HOPSCOPE_VERSION_PATCH);
  return version;
}

std::string VersionText(absl::string_view program) {
#if defined(__clang__)
  constexpr absl::string_view kCompiler = "clang " __clang_version__;
#else
  constexpr absl::string_view kCompiler = "gcc " __VERSION__;
#endif
#if defined(__x86_64__)
  constexpr absl::string_view kMachine = "x86_64";
#elif defined(__aarch64__)
  constexpr absl::string_view kMachine = "aarch64";
#else
  constexpr absl::string_view kMachine = "unknown machine";
#endif
  return absl::StrCat(program, " ", VersionString(), " (", kMachine, ", ", kCompiler, ", ",
                      HOPSCOPE_BUILD_TYPE, ")");
}

}  // namespace hopscope::common
