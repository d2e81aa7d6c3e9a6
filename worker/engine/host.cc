#include "worker/engine/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace hopscope::engine {

std::string HostProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) {
      return std::string(absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1)));
    }
  }
  return "cpu";
}

std::string HostProcessorMaker() {
#if defined(__x86_64__)
  if (__builtin_cpu_is("amd")) return "amd";
  if (__builtin_cpu_is("intel")) return "intel";
#endif
  return "other";
}

int64_t HostMemoryBytes() {
  int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::string text;
  int64_t limit = 0;
  // "max" where there is no limit.
  if (file >> text && absl::SimpleAtoi(text, &limit) && limit > 0) bytes = std::min(bytes, limit);
  return bytes;
}

int HostThreads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace hopscope::engine
