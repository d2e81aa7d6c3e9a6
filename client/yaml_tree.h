// Reads a YAML text into a tree that remembers where everything stood, with bounds on what a
// hostile text can cost.
#ifndef HOPSCOPE_CLIENT_YAML_TREE_H_
#define HOPSCOPE_CLIENT_YAML_TREE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/status.h"

namespace hopscope::client {

// Line and column, both from 1.
struct YamlMark {
  int line = 1;
  int column = 1;
};

struct YamlLimits {
  // Bytes of the text.
  size_t max_bytes = 1 << 20;
  // Nodes of the tree, where an alias counts as all that it stands for.
  int64_t max_nodes = 100'000;
  // Bytes of all its texts, counted in the same way.
  int64_t max_text_bytes = 4 << 20;
  // Bytes of a key.
  size_t max_key_bytes = 128;
  // Maps and lists within each other.
  int max_depth = 32;
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry {
    std::string key;
    YamlMark key_mark;
    std::shared_ptr<const YamlNode> value;
  };

  Kind kind = Kind::kNull;
  YamlMark mark;
  // kScalar: its text, and whether it was quoted (then it is a string whatever it looks like).
  std::string text;
  bool quoted = false;
  // kList.
  std::vector<std::shared_ptr<const YamlNode>> items;
  // kMap: in the order of the text; no key twice.
  std::vector<Entry> entries;
  // This node and all below it, and their texts.
  int64_t node_count = 1;
  int64_t text_bytes = 0;
  int depth = 1;
};

// One document. INVALID_ARGUMENT says "FILE:LINE:COLUMN: what is wrong" with a reason of NOT_UTF8,
// FILE_TOO_LARGE, BAD_YAML, DUPLICATE_KEY, YAML_TOO_LARGE or YAML_TOO_DEEP. Refused besides what
// YAML itself refuses: a second document, keys that are not scalars, keys that stand twice in one
// map, tags, and aliases to what is not complete yet.
absl::StatusOr<std::shared_ptr<const YamlNode>> ParseYaml(absl::string_view text,
                                                          absl::string_view file,
                                                          const YamlLimits& limits = {});

// INVALID_ARGUMENT "FILE:LINE:COLUMN: MESSAGE"; metadata gets "file", "line" and "column" besides
// what is given.
absl::Status YamlError(absl::string_view file, YamlMark mark, absl::string_view reason,
                       absl::string_view message, common::ErrorMetadata metadata = {});

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_YAML_TREE_H_
