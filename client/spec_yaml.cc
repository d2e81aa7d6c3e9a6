#include "client/spec_yaml.h"

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/nearest_name.h"
#include "common/status.h"
#include "google/protobuf/struct.pb.h"

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
      node.text.size() <= 60 ? node.text : absl::StrCat(node.text.substr(0, 57), "...");
  return node.quoted ? absl::StrCat("the text \"", text, "\"") : absl::StrCat("\"", text, "\"");
}

// Walks a tree and fills a spec in; the first error ends it.
class SpecReader {
 public:
  explicit SpecReader(ParsedSpec* parsed) : parsed_(*parsed) {}

  absl::Status ReadSpec(const YamlNode& root);

 private:
  // One key of a map: how to read its value.
  struct Field {
    std::string key;
    std::function<absl::Status(const YamlNode&, const std::string& path)> read;
  };

  absl::Status Error(const YamlNode& node, const std::string& path, absl::string_view reason,
                     absl::string_view message, absl::string_view allowed) const {
    return YamlError(parsed_.file, node.mark, reason, absl::StrCat(path, ": ", message),
                     {{"field", path}, {"value", Shown(node)}, {"allowed", std::string(allowed)}});
  }
  absl::Status WrongType(const YamlNode& node, const std::string& path,
                         absl::string_view expected) const {
    return Error(node, path, "WRONG_TYPE",
                 absl::StrCat("expected ", expected, ", found ", Shown(node)), expected);
  }

  void Mark(const std::string& path, YamlMark mark) { parsed_.marks.emplace(path, mark); }

  absl::Status ReadMap(const YamlNode& node, const std::string& path,
                       const std::vector<Field>& fields);
  // One value stands for a list of one.
  absl::Status ReadList(
      const YamlNode& node, const std::string& path, absl::string_view expected,
      const std::function<absl::Status(const YamlNode&, const std::string& path)>& read);

  absl::StatusOr<int64_t> ReadInteger(const YamlNode& node, const std::string& path, int64_t min,
                                      int64_t max) const;
  absl::StatusOr<double> ReadNumber(const YamlNode& node, const std::string& path) const;
  absl::StatusOr<std::string> ReadString(const YamlNode& node, const std::string& path,
                                         absl::string_view expected) const;

  Field Int32(std::string key, std::function<void(int32_t)> set);
  Field Int64(std::string key, std::function<void(int64_t)> set);
  Field Double(std::string key, std::function<void(double)> set);
  Field Bool(std::string key, std::function<void(bool)> set);
  Field String(std::string key, std::string expected, std::function<void(std::string)> set);
  Field Checkpoints(google::protobuf::RepeatedPtrField<std::string>* checkpoints);
  Field Scorers(google::protobuf::RepeatedPtrField<v1::ScorerSpec>* scorers);

  absl::Status ReadTask(const YamlNode& node, const std::string& path, v1::TaskSpec* task);
  absl::Status ReadScorer(const YamlNode& node, const std::string& path, v1::ScorerSpec* scorer);
  absl::Status ReadParams(const YamlNode& node, const std::string& path,
                          google::protobuf::Struct* params);
  absl::Status ReadValue(const YamlNode& node, const std::string& path,
                         google::protobuf::Value* value);
  absl::Status ReadDtype(const YamlNode& node, const std::string& path);
  absl::Status ReadLabels(const YamlNode& node, const std::string& path);
  absl::Status ReadSeeds(const YamlNode& node, const std::string& path);

  ParsedSpec& parsed_;
};

absl::Status SpecReader::ReadMap(const YamlNode& node, const std::string& path,
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
      const std::string shown = entry.key.substr(0, 60);
      return YamlError(
          parsed_.file, entry.key_mark, "UNKNOWN_KEY",
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

absl::Status SpecReader::ReadList(
    const YamlNode& node, const std::string& path, absl::string_view expected,
    const std::function<absl::Status(const YamlNode&, const std::string& path)>& read) {
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

absl::StatusOr<int64_t> SpecReader::ReadInteger(const YamlNode& node, const std::string& path,
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

absl::StatusOr<double> SpecReader::ReadNumber(const YamlNode& node, const std::string& path) const {
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

absl::StatusOr<std::string> SpecReader::ReadString(const YamlNode& node, const std::string& path,
                                                   absl::string_view expected) const {
  if (node.kind != Kind::kScalar) return WrongType(node, path, expected);
  return node.text;
}

SpecReader::Field SpecReader::Int32(std::string key, std::function<void(int32_t)> set) {
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

SpecReader::Field SpecReader::Int64(std::string key, std::function<void(int64_t)> set) {
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

SpecReader::Field SpecReader::Double(std::string key, std::function<void(double)> set) {
  return {
      std::move(key),
      [this, set = std::move(set)](const YamlNode& node, const std::string& path) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(const double value, ReadNumber(node, path));
        set(value);
        return absl::OkStatus();
      }};
}

SpecReader::Field SpecReader::Bool(std::string key, std::function<void(bool)> set) {
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

SpecReader::Field SpecReader::String(std::string key, std::string expected,
                                     std::function<void(std::string)> set) {
  return {std::move(key),
          [this, expected = std::move(expected), set = std::move(set)](
              const YamlNode& node, const std::string& path) -> absl::Status {
            HOPSCOPE_ASSIGN_OR_RETURN(std::string value, ReadString(node, path, expected));
            set(std::move(value));
            return absl::OkStatus();
          }};
}

SpecReader::Field SpecReader::Checkpoints(
    google::protobuf::RepeatedPtrField<std::string>* checkpoints) {
  return {"checkpoints", [this, checkpoints](const YamlNode& node, const std::string& path) {
            return ReadList(node, path, "a list of checkpoints",
                            [this, checkpoints](const YamlNode& item,
                                                const std::string& item_path) -> absl::Status {
                              HOPSCOPE_ASSIGN_OR_RETURN(
                                  std::string name,
                                  ReadString(item, item_path, "the name of a checkpoint"));
                              checkpoints->Add(std::move(name));
                              return absl::OkStatus();
                            });
          }};
}

SpecReader::Field SpecReader::Scorers(google::protobuf::RepeatedPtrField<v1::ScorerSpec>* scorers) {
  return {"scorers", [this, scorers](const YamlNode& node, const std::string& path) {
            return ReadList(node, path, "a list of scorers",
                            [this, scorers](const YamlNode& item, const std::string& item_path) {
                              return ReadScorer(item, item_path, scorers->Add());
                            });
          }};
}

absl::Status SpecReader::ReadScorer(const YamlNode& node, const std::string& path,
                                    v1::ScorerSpec* scorer) {
  if (node.kind == Kind::kScalar) {
    scorer->set_name(node.text);
    Mark(absl::StrCat(path, ".name"), node.mark);
    return absl::OkStatus();
  }
  if (node.kind != Kind::kMap || node.entries.size() != 1) {
    return WrongType(node, path, "a scorer's name, or a map of one key, NAME: {PARAMETER: VALUE}");
  }
  const YamlNode::Entry& entry = node.entries[0];
  scorer->set_name(entry.key);
  Mark(absl::StrCat(path, ".name"), entry.key_mark);
  const std::string params_path = absl::StrCat(path, ".params");
  Mark(params_path, entry.value->mark);
  const bool is_empty_map = entry.value->kind == Kind::kMap && entry.value->entries.empty();
  if (entry.value->kind == Kind::kNull || is_empty_map) return absl::OkStatus();
  return ReadParams(*entry.value, params_path, scorer->mutable_params());
}

absl::Status SpecReader::ReadParams(const YamlNode& node, const std::string& path,
                                    google::protobuf::Struct* params) {
  if (node.kind != Kind::kMap) return WrongType(node, path, "a map of parameters");
  for (const YamlNode::Entry& entry : node.entries) {
    const std::string field_path = absl::StrCat(path, ".", entry.key);
    Mark(field_path, entry.value->mark);
    HOPSCOPE_RETURN_IF_ERROR(
        ReadValue(*entry.value, field_path, &(*params->mutable_fields())[entry.key]));
  }
  return absl::OkStatus();
}

absl::Status SpecReader::ReadValue(const YamlNode& node, const std::string& path,
                                   google::protobuf::Value* value) {
  switch (node.kind) {
    case Kind::kNull:
      value->set_null_value(google::protobuf::NULL_VALUE);
      return absl::OkStatus();
    case Kind::kMap:
      return ReadParams(node, path, value->mutable_struct_value());
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

absl::Status SpecReader::ReadTask(const YamlNode& node, const std::string& path,
                                  v1::TaskSpec* task) {
  const auto int32_list = [this](const YamlNode& list, const std::string& list_path,
                                 google::protobuf::RepeatedField<int32_t>* values) {
    return ReadList(
        list, list_path, "a list of whole numbers",
        [this, values](const YamlNode& item, const std::string& item_path) -> absl::Status {
          HOPSCOPE_ASSIGN_OR_RETURN(
              const int64_t value, ReadInteger(item, item_path, std::numeric_limits<int32_t>::min(),
                                               std::numeric_limits<int32_t>::max()));
          values->Add(static_cast<int32_t>(value));
          return absl::OkStatus();
        });
  };
  const std::vector<Field> fields = {
      String("task", "the name of a task",
             [task](std::string value) { task->set_task(std::move(value)); }),
      {"hops",
       [&](const YamlNode& list, const std::string& list_path) {
         return int32_list(list, list_path, task->mutable_hops());
       }},
      {"added_tokens",
       [&](const YamlNode& list, const std::string& list_path) {
         return int32_list(list, list_path, task->mutable_added_tokens());
       }},
      Int64("samples", [task](int64_t value) { task->set_samples(value); }),
      Checkpoints(task->mutable_checkpoints()),
      Scorers(task->mutable_scorers()),
      {"window",
       [&](const YamlNode& map, const std::string& map_path) {
         v1::Window* window = task->mutable_window();
         return ReadMap(
             map, map_path,
             {Int32("target", [window](int32_t value) { window->set_target(value); }),
              Int32("pre_target", [window](int32_t value) { window->set_pre_target(value); })});
       }},
      String("padding", "the name of a kind of padding",
             [task](std::string value) { task->set_padding(std::move(value)); }),
      String("tokens_digest", "a digest, sha256:...",
             [task](std::string value) { task->set_tokens_digest(std::move(value)); }),
  };
  HOPSCOPE_RETURN_IF_ERROR(ReadMap(node, path, fields));
  if (task->task().empty()) {
    return Error(node, path, "MISSING_KEY", "the key \"task\" is missing: which task is it?",
                 "task: NAME");
  }
  return absl::OkStatus();
}

absl::Status SpecReader::ReadDtype(const YamlNode& node, const std::string& path) {
  static const std::vector<std::pair<std::string, v1::Dtype>>& dtypes =
      *new std::vector<std::pair<std::string, v1::Dtype>>{{"float32", v1::DTYPE_FLOAT32},
                                                          {"float64", v1::DTYPE_FLOAT64},
                                                          {"bfloat16", v1::DTYPE_BFLOAT16},
                                                          {"float16", v1::DTYPE_FLOAT16}};
  for (const auto& [name, dtype] : dtypes) {
    if (node.kind == Kind::kScalar && node.text == name) {
      parsed_.spec.set_dtype(dtype);
      return absl::OkStatus();
    }
  }
  return WrongType(node, path, "one of float32, float64, bfloat16, float16");
}

absl::Status SpecReader::ReadLabels(const YamlNode& node, const std::string& path) {
  if (node.kind != Kind::kMap) return WrongType(node, path, "a map of texts");
  for (const YamlNode::Entry& entry : node.entries) {
    const std::string label_path = absl::StrCat(path, ".", entry.key);
    Mark(label_path, entry.value->mark);
    HOPSCOPE_ASSIGN_OR_RETURN((*parsed_.spec.mutable_labels())[entry.key],
                              ReadString(*entry.value, label_path, "a text"));
  }
  return absl::OkStatus();
}

absl::Status SpecReader::ReadSeeds(const YamlNode& node, const std::string& path) {
  if (parsed_.spec.seeds_size() > 0) {
    return Error(node, path, "CONFLICTING_KEYS",
                 "both seed and seeds are there; one of them is enough", "seed or seeds");
  }
  return ReadList(node, "spec.seeds", "a list of whole numbers",
                  [this](const YamlNode& item, const std::string& item_path) -> absl::Status {
                    HOPSCOPE_ASSIGN_OR_RETURN(
                        const int64_t seed,
                        ReadInteger(item, item_path, std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max()));
                    parsed_.spec.add_seeds(seed);
                    return absl::OkStatus();
                  });
}

absl::Status SpecReader::ReadSpec(const YamlNode& root) {
  v1::EvalJobSpec& spec = parsed_.spec;
  Mark("spec", root.mark);
  const auto seeds = [this](const YamlNode& node, const std::string& path) {
    return ReadSeeds(node, path);
  };
  const std::vector<Field> fields = {
      String("name", "a text", [&spec](std::string value) { spec.set_name(std::move(value)); }),
      {"tasks",
       [this, &spec](const YamlNode& node, const std::string& path) {
         return ReadList(node, path, "a list of tasks",
                         [this, &spec](const YamlNode& item, const std::string& at) {
                           return ReadTask(item, at, spec.add_tasks());
                         });
       }},
      Scorers(spec.mutable_scorers()),
      {"seeds", seeds},
      {"seed",
       [this](const YamlNode& node, const std::string& path) -> absl::Status {
         if (node.kind == Kind::kList)
           return WrongType(node, path, "a whole number (seeds takes a list)");
         return ReadSeeds(node, path);
       }},
      Checkpoints(spec.mutable_checkpoints()),
      {"labels",
       [this](const YamlNode& node, const std::string& path) { return ReadLabels(node, path); }},
      {"dtype",
       [this](const YamlNode& node, const std::string& path) { return ReadDtype(node, path); }},
      Int32("priority", [&spec](int32_t value) { spec.set_priority(value); }),
      String("tenant", "a text", [&spec](std::string value) { spec.set_tenant(std::move(value)); }),
      Bool("fail_fast", [&spec](bool value) { spec.set_fail_fast(value); }),
      Double("deadline_s", [&spec](double value) { spec.set_deadline_s(value); }),
      Bool("mixed_workers", [&spec](bool value) { spec.set_mixed_workers(value); }),
      Bool("no_cache", [&spec](bool value) { spec.set_no_cache(value); }),
  };
  return ReadMap(root, "spec", fields);
}

absl::StatusOr<std::string> ReadAll(std::FILE* file, const std::string& path, size_t max_bytes) {
  std::string text;
  char buffer[1 << 14];
  while (true) {
    const size_t got = std::fread(buffer, 1, sizeof(buffer), file);
    text.append(buffer, got);
    // One byte more than allowed is enough for the parser to refuse it.
    if (text.size() > max_bytes || got < sizeof(buffer)) break;
  }
  if (std::ferror(file) != 0) {
    return common::MakeError(absl::StatusCode::kUnknown, "FILE_UNREADABLE",
                             absl::StrCat(path, ": ", std::strerror(errno)), {{"value", path}});
  }
  return text;
}

}  // namespace

absl::StatusOr<ParsedSpec> ParseSpecYaml(absl::string_view text, absl::string_view file) {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::shared_ptr<const YamlNode> root, ParseYaml(text, file));
  ParsedSpec parsed;
  parsed.file = std::string(file);
  HOPSCOPE_RETURN_IF_ERROR(SpecReader(&parsed).ReadSpec(*root));
  return parsed;
}

absl::StatusOr<ParsedSpec> ReadSpecFile(const std::string& path) {
  const size_t max_bytes = YamlLimits{}.max_bytes;
  if (path == "-") {
    HOPSCOPE_ASSIGN_OR_RETURN(const std::string text, ReadAll(stdin, "standard input", max_bytes));
    return ParseSpecYaml(text, "standard input");
  }
  errno = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (file == nullptr) {
    const int error = errno;
    return common::MakeError(absl::ErrnoToStatusCode(error),
                             error == ENOENT ? "FILE_NOT_FOUND" : "FILE_UNREADABLE",
                             absl::StrCat(path, ": ", std::strerror(error)), {{"value", path}});
  }
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string text, ReadAll(file.get(), path, max_bytes));
  return ParseSpecYaml(text, path);
}

absl::Status LocateInSpec(const ParsedSpec& parsed, const absl::Status& status) {
  const auto info = common::GetErrorInfo(status);
  if (!info.has_value() || info->metadata().contains("line")) return status;
  const auto field = info->metadata().find("field");
  if (field == info->metadata().end()) return status;
  std::string path = field->second;
  while (true) {
    if (const auto mark = parsed.marks.find(path); mark != parsed.marks.end()) {
      return common::Annotate(
          status, absl::StrCat(parsed.file, ":", mark->second.line, ":", mark->second.column));
    }
    const size_t cut = path.find_last_of(".[");
    if (cut == std::string::npos) return status;
    path.resize(cut);
  }
}

}  // namespace hopscope::client
