#include "client/yaml_tree.h"

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/utf8.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace hopscope::client {
namespace {

YamlMark ToMark(const YAML::Mark& mark) {
  return mark.is_null() ? YamlMark{} : YamlMark{mark.line + 1, mark.column + 1};
}

// Offset of the first byte that is not part of valid UTF-8, or that is a control character other
// than tab, line feed and carriage return; the size of the text where all is well.
size_t FindBadText(absl::string_view text) {
  const size_t valid = common::FindInvalidUtf8(text);
  for (size_t i = 0; i < valid; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool control = byte < 0x20 || byte == 0x7f;
    if (control && byte != '\t' && byte != '\n' && byte != '\r') return i;
  }
  return valid;
}

// Leaves the parser from within a handler; never leaves ParseYaml.
struct Refused {
  absl::Status status;
};

// Builds the tree bottom-up from yaml-cpp's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(absl::string_view file, const YamlLimits& limits) : file_(file), limits_(limits) {}

  std::shared_ptr<const YamlNode> root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_ != nullptr) Refuse(ToMark(mark), "BAD_YAML", "a second document; a file holds one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto node = NewNode(YamlNode::Kind::kNull, mark);
    Complete(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      Refuse(ToMark(mark), "BAD_YAML", "an alias to something that it is a part of");
    }
    Count(found->second->node_count, found->second->text_bytes, ToMark(mark));
    Add(found->second, ToMark(mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckTag(tag, mark);
    // Escapes can say what the file itself may not hold.
    if (FindBadText(value) < value.size()) {
      Refuse(ToMark(mark), "BAD_YAML", "a text with a control character");
    }
    auto node = NewNode(YamlNode::Kind::kScalar, mark);
    node->text = value;
    node->text_bytes = static_cast<int64_t>(value.size());
    Count(0, node->text_bytes, node->mark);
    node->quoted = tag == "!";
    Complete(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckTag(tag, mark);
    Open(NewNode(YamlNode::Kind::kList, mark), anchor);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    CheckTag(tag, mark);
    Open(NewNode(YamlNode::Kind::kMap, mark), anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct OpenNode {
    std::shared_ptr<YamlNode> node;
    YAML::anchor_t anchor;
    // Of a map: keys so far, and the key that waits for its value.
    std::set<std::string> keys;
    bool has_key = false;
  };

  [[noreturn]] void Refuse(YamlMark mark, absl::string_view reason, absl::string_view message) {
    throw Refused{YamlError(file_, mark, reason, message)};
  }

  void CheckTag(const std::string& tag, const YAML::Mark& mark) {
    // "?" and "!" are what the parser gives to plain and to quoted nodes without a tag.
    if (!tag.empty() && tag != "?" && tag != "!") {
      Refuse(ToMark(mark), "BAD_YAML", absl::StrCat("the tag ", tag, "; tags are not used here"));
    }
  }

  void Count(int64_t nodes, int64_t text_bytes, YamlMark mark) {
    node_count_ += nodes;
    text_bytes_ += text_bytes;
    if (node_count_ > limits_.max_nodes || text_bytes_ > limits_.max_text_bytes) {
      Refuse(mark, "YAML_TOO_LARGE",
             absl::StrCat("more than ", limits_.max_nodes, " nodes or ", limits_.max_text_bytes,
                          " bytes of text (an alias counts as all that it stands for)"));
    }
  }

  std::shared_ptr<YamlNode> NewNode(YamlNode::Kind kind, const YAML::Mark& mark) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->mark = ToMark(mark);
    Count(1, 0, node->mark);
    return node;
  }

  void Open(std::shared_ptr<YamlNode> node, YAML::anchor_t anchor) {
    if (static_cast<int>(open_.size()) >= limits_.max_depth) RefuseDepth(node->mark);
    open_.push_back({std::move(node), anchor, {}, false});
  }

  void Close() {
    OpenNode open = std::move(open_.back());
    open_.pop_back();
    Complete(std::move(open.node), open.anchor);
  }

  void Complete(std::shared_ptr<YamlNode> node, YAML::anchor_t anchor) {
    const YamlMark mark = node->mark;
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    Add(std::move(node), mark);
  }

  void RefuseDepth(YamlMark mark) {
    Refuse(mark, "YAML_TOO_DEEP", absl::StrCat("more than ", limits_.max_depth, " levels"));
  }

  // `mark`: where it is used; for an alias that is not where it was defined.
  void Add(std::shared_ptr<const YamlNode> node, YamlMark mark) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    if (static_cast<int>(open_.size()) + node->depth > limits_.max_depth + 1) RefuseDepth(mark);
    OpenNode& parent = open_.back();
    parent.node->node_count += node->node_count;
    parent.node->text_bytes += node->text_bytes;
    parent.node->depth = std::max(parent.node->depth, node->depth + 1);
    if (parent.node->kind == YamlNode::Kind::kList) {
      parent.node->items.push_back(std::move(node));
    } else if (parent.has_key) {
      parent.node->entries.back().value = std::move(node);
      parent.has_key = false;
    } else {
      if (node->kind != YamlNode::Kind::kScalar)
        Refuse(mark, "BAD_YAML", "a key that is not a plain name");
      if (node->text.size() > limits_.max_key_bytes) {
        Refuse(mark, "BAD_YAML",
               absl::StrCat("a key of more than ", limits_.max_key_bytes, " bytes"));
      }
      if (!parent.keys.insert(node->text).second) {
        Refuse(mark, "DUPLICATE_KEY",
               absl::StrCat("the key \"", node->text, "\" stands twice in one map"));
      }
      parent.node->entries.push_back({node->text, mark, nullptr});
      parent.has_key = true;
    }
  }

  const absl::string_view file_;
  const YamlLimits limits_;
  std::shared_ptr<const YamlNode> root_;
  std::vector<OpenNode> open_;
  std::map<YAML::anchor_t, std::shared_ptr<const YamlNode>> anchors_;
  int64_t node_count_ = 0;
  int64_t text_bytes_ = 0;
};

YamlMark MarkOfOffset(absl::string_view text, size_t offset) {
  YamlMark mark;
  for (const char byte : text.substr(0, offset)) {
    if (byte == '\n') {
      ++mark.line;
      mark.column = 1;
    } else {
      ++mark.column;
    }
  }
  return mark;
}

}  // namespace

absl::Status YamlError(absl::string_view file, YamlMark mark, absl::string_view reason,
                       absl::string_view message, common::ErrorMetadata metadata) {
  metadata.emplace_back("file", std::string(file));
  metadata.emplace_back("line", absl::StrCat(mark.line));
  metadata.emplace_back("column", absl::StrCat(mark.column));
  return common::MakeError(absl::StatusCode::kInvalidArgument, reason,
                           absl::StrCat(file, ":", mark.line, ":", mark.column, ": ", message),
                           metadata);
}

absl::StatusOr<std::shared_ptr<const YamlNode>> ParseYaml(absl::string_view text,
                                                          absl::string_view file,
                                                          const YamlLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return YamlError(file, {}, "FILE_TOO_LARGE",
                     absl::StrCat(text.size(), " bytes; at most ", limits.max_bytes, " are read"));
  }
  if (const size_t bad = FindBadText(text); bad < text.size()) {
    return YamlError(file, MarkOfOffset(text, bad), "NOT_UTF8",
                     "a byte that is no UTF-8 text, or a control character");
  }
  TreeBuilder builder(file, limits);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return refused.status;
  } catch (const YAML::Exception& error) {
    return YamlError(file, ToMark(error.mark), "BAD_YAML", error.msg);
  } catch (const std::exception& error) {
    return YamlError(file, {}, "BAD_YAML", absl::StrCat("cannot be read: ", error.what()));
  }
  if (builder.root() == nullptr) return YamlError(file, {}, "BAD_YAML", "the file is empty");
  return builder.root();
}

}  // namespace hopscope::client
