#include "common/checkpoint/strict_json.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/errors.h"

namespace hopscope::checkpoint {
namespace {

using nlohmann::json;

// Builds the value; stops at the first duplicate key and at too deep a nesting.
class Builder : public nlohmann::json_sax<json> {
 public:
  explicit Builder(int max_depth) : max_depth_(static_cast<size_t>(max_depth)) {}

  json TakeRoot() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

  bool null() override { return Add(json()) != nullptr; }
  bool boolean(bool value) override { return Add(json(value)) != nullptr; }
  bool number_integer(int64_t value) override { return Add(json(value)) != nullptr; }
  bool number_unsigned(uint64_t value) override { return Add(json(value)) != nullptr; }
  bool number_float(double value, const std::string&) override {
    return Add(json(value)) != nullptr;
  }
  bool string(std::string& value) override { return Add(json(std::move(value))) != nullptr; }
  bool binary(json::binary_t&) override { return Fail("binary values are not JSON"); }
  bool start_object(size_t) override { return Open(json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_array() override { return Close(); }
  bool key(std::string& value) override {
    if (open_.back()->contains(value)) {
      return Fail(absl::StrCat("key ", Quoted(value), " stands twice"));
    }
    key_ = std::move(value);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    return Fail(JsonSyntaxError(position, error));
  }

 private:
  json* Add(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    json& member = parent[key_];
    member = std::move(value);
    return &member;
  }
  bool Open(json container) {
    if (open_.size() == max_depth_) {
      return Fail(absl::StrCat("more than ", max_depth_, " values inside one another"));
    }
    // The pointer holds while the container is open: nothing is added to its parent before it is
    // closed.
    open_.push_back(Add(std::move(container)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  bool Fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  const size_t max_depth_;
  json root_;
  std::vector<json*> open_;
  std::string key_;
  std::string problem_;
};

}  // namespace

bool IsUtf8(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    int more = 0;
    uint32_t point = 0;
    uint32_t least = 0;
    if ((lead & 0xE0) == 0xC0) {
      more = 1, point = lead & 0x1F, least = 0x80;
    } else if ((lead & 0xF0) == 0xE0) {
      more = 2, point = lead & 0x0F, least = 0x800;
    } else if ((lead & 0xF8) == 0xF0) {
      more = 3, point = lead & 0x07, least = 0x10000;
    } else {
      return false;
    }
    for (; more > 0; --more) {
      if (i == text.size()) return false;
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xC0) != 0x80) return false;
      point = point << 6 | (next & 0x3F);
    }
    if (point < least || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
  }
  return true;
}

absl::Status CheckJsonText(absl::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    return absl::InvalidArgumentError("it begins with a byte order mark");
  }
  if (text.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError("it holds a NUL byte");
  }
  return absl::OkStatus();
}

std::string JsonSyntaxError(size_t position, const nlohmann::json::exception& error) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing
  // ...; last read: '...'"
  absl::string_view what = error.what();
  if (const size_t bracket = what.find("] "); bracket != absl::string_view::npos) {
    what.remove_prefix(bracket + 2);
  }
  what = what.substr(0, what.find("; last read"));
  return absl::StrCat("at byte ", position, ": ", Quoted(what));
}

absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text, int max_depth) {
  if (absl::Status status = CheckJsonText(text); !status.ok()) return status;
  Builder builder(max_depth);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    return absl::InvalidArgumentError(builder.problem());
  }
  return builder.TakeRoot();
}

}  // namespace hopscope::checkpoint
