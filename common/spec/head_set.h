// Sets of attention heads as texts: "0.0" is layer 0, head 0; "1.0+2.3" two heads; "6.*" all heads
// of layer 6; "0-3.*" those of layers 0 to 3; "*.0" head 0 of every layer; "*.*" all heads.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_COMMON_SPEC_HEAD_SET_H_
#define HOPSCOPE_COMMON_SPEC_HEAD_SET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace hopscope::spec {

// Layers, or heads of a layer, from first to last; no value stands for "*".
using IndexRange = std::optional<std::pair<int64_t, int64_t>>;

// One part of a set.
struct HeadPattern {
  IndexRange layers;
  IndexRange heads;

  friend auto operator<=>(const HeadPattern&, const HeadPattern&) = default;
};

// The parts of a set, sorted. No value where the text is none, or names a part twice.
std::optional<std::vector<HeadPattern>> ParseHeadSet(absl::string_view text);

// What a set looks like, for people.
inline constexpr absl::string_view kHeadSetForm =
    "LAYER.HEAD, several joined by +, A-B for a range, * for all, such as \"1.0+2.0\" or \"0-3.*\"";

// (layer, head) of every head of a set, sorted, each once. No value where a part is outside a model
// of so many layers and heads.
std::optional<std::vector<std::pair<int64_t, int64_t>>> ExpandHeadSet(
    const std::vector<HeadPattern>& set, int64_t layers, int64_t heads);

}  // namespace hopscope::spec

#endif  // HOPSCOPE_COMMON_SPEC_HEAD_SET_H_
