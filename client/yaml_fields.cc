#include "client/yaml_fields.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/nearest_name.h"
#include "common/status.h"
#include "common/utf8.h"

namespace hopscope::client {
namespace {

using Kind = YamlNode::Kind;

// Largest number below which a double holds every whole number.
constexpr int64_t kMaxExactInteger = int64_t{1} << 53;

bool LooksTrue(absl::string_view text) {
  return text == "true" || text == "True" || text == "TRUE";
}
bool LooksFalse(absl::string_view text) {
  return text == "false" || text == "False" || text == "FALSE";
}

// Whether a plain scalar is a number, as YAML 1.2 has it, in decimal.
bool LooksNumeric(absl::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.empty() || !(absl::ascii_isdigit(text[0]) || text[0] == '.')) return false;
  return text.find_first_not_of("0123456789.eE+-") == absl::string_view::npos &&
         text.find_first_of("0123456789") != absl::string_view::npos;
}

bool LooksWhole(absl::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

std::string Shown(const YamlNode& node) {
  switch (node.kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kScalar:
      break;
  }
  std::string text =
      node.text.size() <= 60 ? node.text : absl::StrCat(common::CutUtf8(node.text, 57), "...");
  return node.quoted ? absl::StrCat("the text \"", text, "\"") : absl::StrCat("\"", text, "\"");
}

}  // namespace

absl::Status YamlFields::Error(const YamlNode& node, const std::string& path,
                               absl::string_view reason, absl::string_view message,
                               absl::string_view allowed) const {
  return YamlError(file_, node.mark, reason, absl::StrCat(path, ": ", message),
                   {{"field", path}, {"value", Shown(node)}, {"allowed", std::string(allowed)}});
}

absl::Status YamlFields::WrongType(const YamlNode& node, const std::string& path,
                                   absl::string_view expected) const {
  return Error(node, path, "WRONG_TYPE",
               absl::StrCat("expected ", expected, ", found ", Shown(node)), expected);
}

absl::Status YamlFields::ReadMap(const YamlNode& node, const std::string& path,
                                 const std::vector<Field>& fields) {
  if (node.kind != Kind::kMap) return WrongType(node, path, "a map");
  for (const YamlNode::Entry& entry : node.entries) {
    const Field* known = nullptr;
    for (const Field& field : fields) {
      if (field.key == entry.key) known = &field;
    }
    if (known == nullptr) {
      std::vector<std::string> keys;
      for (const Field& field : fields) keys.push_back(field.key);
      const std::string nearest = NearestName(entry.key, keys);
      const std::string allowed = absl::StrJoin(keys, ", ");
      const std::string shown = std::string(common::CutUtf8(entry.key, 60));
      return YamlError(
          file_, entry.key_mark, "UNKNOWN_KEY",
          absl::StrCat(path, ": unknown key \"", shown, "\"",
                       nearest.empty() ? absl::StrCat("; known are ", allowed)
                                       : absl::StrCat("; did you mean \"", nearest, "\"?")),
          {{"field", absl::StrCat(path, ".", shown)}, {"value", shown}, {"allowed", allowed}});
    }
    const std::string field_path = absl::StrCat(path, ".", entry.key);
    Mark(field_path, entry.value->mark);
    HOPSCOPE_RETURN_IF_ERROR(known->read(*entry.value, field_path));
  }
  return absl::OkStatus();
}

absl::Status YamlFields::ReadList(const YamlNode& node, const std::string& path,
                                  absl::string_view expected, const ReadFunction& read) {
  if (node.kind == Kind::kNull) return WrongType(node, path, expected);
  if (node.kind != Kind::kList) {
    const std::string item_path = absl::StrCat(path, "[0]");
    Mark(item_path, node.mark);
    return read(node, item_path);
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const std::string item_path = absl::StrCat(path, "[", i, "]");
    Mark(item_path, node.items[i]->mark);
    HOPSCOPE_RETURN_IF_ERROR(read(*node.items[i], item_path));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> YamlFields::ReadInteger(const YamlNode& node, const std::string& path,
                                                int64_t min, int64_t max) const {
  if (node.kind != Kind::kScalar || node.quoted || !LooksWhole(node.text)) {
    return WrongType(node, path, "a whole number");
  }
  int64_t value = 0;
  if (!absl::SimpleAtoi(node.text, &value) || value < min || value > max) {
    const std::string allowed = absl::StrCat(min, " to ", max);
    return Error(node, path, "OUT_OF_RANGE", absl::StrCat(Shown(node), " does not fit; ", allowed),
                 allowed);
  }
  return value;
}

absl::StatusOr<double> YamlFields::ReadNumber(const YamlNode& node, const std::string& path) const {
  double value = 0;
  if (node.kind != Kind::kScalar || node.quoted || !LooksNumeric(node.text) ||
      !absl::SimpleAtod(node.text, &value)) {
    return WrongType(node, path, "a number");
  }
  if (!std::isfinite(value)) {
    return Error(node, path, "OUT_OF_RANGE", absl::StrCat(Shown(node), " does not fit a double"),
                 "a finite number");
  }
  // Never a negative zero.
  return value + 0.0;
}

absl::StatusOr<std::string> YamlFields::ReadString(const YamlNode& node, const std::string& path,
                                                   absl::string_view expected) const {
  if (node.kind != Kind::kScalar) return WrongType(node, path, expected);
  return node.text;
}

YamlFields::Field YamlFields::Int32(std::string key, std::function<void(int32_t)> set) {
  return {
      std::move(key),
      [this, set = std::move(set)](const YamlNode& node, const std::string& path) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(const int64_t value,
                                  ReadInteger(node, path, std::numeric_limits<int32_t>::min(),
                                              std::numeric_limits<int32_t>::max()));
        set(static_cast<int32_t>(value));
        return absl::OkStatus();
      }};
}

YamlFields::Field YamlFields::Int64(std::string key, std::function<void(int64_t)> set) {
  return {
      std::move(key),
      [this, set = std::move(set)](const YamlNode& node, const std::string& path) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(const int64_t value,
                                  ReadInteger(node, path, std::numeric_limits<int64_t>::min(),
                                              std::numeric_limits<int64_t>::max()));
        set(value);
        return absl::OkStatus();
      }};
}

YamlFields::Field YamlFields::Double(std::string key, std::function<void(double)> set) {
  return {
      std::move(key),
      [this, set = std::move(set)](const YamlNode& node, const std::string& path) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(const double value, ReadNumber(node, path));
        set(value);
        return absl::OkStatus();
      }};
}

YamlFields::Field YamlFields::Bool(std::string key, std::function<void(bool)> set) {
  return {
      std::move(key),
      [this, set = std::move(set)](const YamlNode& node, const std::string& path) -> absl::Status {
        const bool plain = node.kind == Kind::kScalar && !node.quoted;
        if (!plain || !(LooksTrue(node.text) || LooksFalse(node.text))) {
          return WrongType(node, path, "true or false");
        }
        set(LooksTrue(node.text));
        return absl::OkStatus();
      }};
}

YamlFields::Field YamlFields::String(std::string key, std::string expected,
                                     std::function<void(std::string)> set) {
  return {std::move(key),
          [this, expected = std::move(expected), set = std::move(set)](
              const YamlNode& node, const std::string& path) -> absl::Status {
            HOPSCOPE_ASSIGN_OR_RETURN(std::string value, ReadString(node, path, expected));
            set(std::move(value));
            return absl::OkStatus();
          }};
}

absl::Status YamlFields::ReadStruct(const YamlNode& node, const std::string& path,
                                    google::protobuf::Struct* values) {
  if (node.kind != Kind::kMap) return WrongType(node, path, "a map of parameters");
  for (const YamlNode::Entry& entry : node.entries) {
    const std::string field_path = absl::StrCat(path, ".", entry.key);
    Mark(field_path, entry.value->mark);
    HOPSCOPE_RETURN_IF_ERROR(
        ReadValue(*entry.value, field_path, &(*values->mutable_fields())[entry.key]));
  }
  return absl::OkStatus();
}

absl::Status YamlFields::ReadValue(const YamlNode& node, const std::string& path,
                                   google::protobuf::Value* value) {
  switch (node.kind) {
    case Kind::kNull:
      value->set_null_value(google::protobuf::NULL_VALUE);
      return absl::OkStatus();
    case Kind::kMap:
      return ReadStruct(node, path, value->mutable_struct_value());
    case Kind::kList: {
      auto* list = value->mutable_list_value();
      return ReadList(node, path, "a list",
                      [this, list](const YamlNode& item, const std::string& item_path) {
                        return ReadValue(item, item_path, list->add_values());
                      });
    }
    case Kind::kScalar:
      break;
  }
  if (node.quoted) {
    value->set_string_value(node.text);
  } else if (LooksTrue(node.text) || LooksFalse(node.text)) {
    value->set_bool_value(LooksTrue(node.text));
  } else if (LooksWhole(node.text)) {
    HOPSCOPE_ASSIGN_OR_RETURN(const int64_t number,
                              ReadInteger(node, path, -kMaxExactInteger, kMaxExactInteger));
    value->set_number_value(static_cast<double>(number));
  } else if (double number = 0; LooksNumeric(node.text) && absl::SimpleAtod(node.text, &number)) {
    HOPSCOPE_ASSIGN_OR_RETURN(number, ReadNumber(node, path));
    value->set_number_value(number);
  } else {
    value->set_string_value(node.text);
  }
  return absl::OkStatus();
}

}  // namespace hopscope::client
