#include "worker/engine/tasks/sequence_key.h"

#include <cassert>

namespace hopscope::engine {

rng::StreamKey SequenceKey(rng::Domain domain, TaskNumber task, const v1::SequenceSpec& spec,
                           int64_t index) {
  const auto hops = static_cast<uint64_t>(spec.hops());
  const auto split = static_cast<uint64_t>(spec.split());
  const auto target = static_cast<uint32_t>(spec.window().target());
  const auto pre_target = static_cast<uint32_t>(spec.window().pre_target());
  assert(index >= 0 && index < kMaxItems && hops < 256 && split < 256);
  assert(target < 4096 && pre_target < 4096);
  return {.seed = spec.seed(),
          .domain = domain,
          .low = static_cast<uint64_t>(index) | hops << 40 | static_cast<uint64_t>(task) << 48 |
                 split << 56,
          .high = target | pre_target << 12};
}

}  // namespace hopscope::engine
