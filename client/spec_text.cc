#include "client/spec_text.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/double_text.h"

namespace hopscope::client {
namespace {

using nlohmann::ordered_json;

ordered_json NumberToJson(double number) {
  if (number == std::floor(number) && std::abs(number) <= static_cast<double>(int64_t{1} << 53)) {
    return static_cast<int64_t>(number);
  }
  return number;
}

ordered_json ValueToJson(const google::protobuf::Value& value) {
  switch (value.kind_case()) {
    case google::protobuf::Value::kNumberValue:
      return NumberToJson(value.number_value());
    case google::protobuf::Value::kStringValue:
      return value.string_value();
    case google::protobuf::Value::kBoolValue:
      return value.bool_value();
    case google::protobuf::Value::kStructValue:
      return ParamsToJson(value.struct_value());
    case google::protobuf::Value::kListValue: {
      ordered_json list = ordered_json::array();
      for (const auto& item : value.list_value().values()) list.push_back(ValueToJson(item));
      return list;
    }
    case google::protobuf::Value::kNullValue:
    case google::protobuf::Value::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

ordered_json ScorersToJson(const google::protobuf::RepeatedPtrField<v1::ScorerSpec>& scorers) {
  ordered_json list = ordered_json::array();
  for (const v1::ScorerSpec& scorer : scorers) {
    if (scorer.params().fields().empty()) {
      list.push_back(scorer.name());
    } else {
      ordered_json named = ordered_json::object();
      named[scorer.name()] = ParamsToJson(scorer.params());
      list.push_back(std::move(named));
    }
  }
  return list;
}

template <typename List>
ordered_json ListToJson(const List& values) {
  ordered_json list = ordered_json::array();
  for (const auto& value : values) list.push_back(value);
  return list;
}

ordered_json TaskToJson(const v1::TaskSpec& task) {
  ordered_json json = ordered_json::object();
  json["task"] = task.task();
  if (task.hops_size() > 0) json["hops"] = ListToJson(task.hops());
  if (task.added_tokens_size() > 0) json["added_tokens"] = ListToJson(task.added_tokens());
  if (task.samples() != 0) json["samples"] = task.samples();
  if (task.checkpoints_size() > 0) json["checkpoints"] = ListToJson(task.checkpoints());
  if (task.scorers_size() > 0) json["scorers"] = ScorersToJson(task.scorers());
  if (task.has_window()) {
    ordered_json& window = json["window"] = ordered_json::object();
    window["target"] = task.window().target();
    window["pre_target"] = task.window().pre_target();
  }
  if (!task.padding().empty()) json["padding"] = task.padding();
  if (!task.tokens_digest().empty()) json["tokens_digest"] = task.tokens_digest();
  return json;
}

const char* DtypeName(v1::Dtype dtype) {
  switch (dtype) {
    case v1::DTYPE_FLOAT64:
      return "float64";
    case v1::DTYPE_BFLOAT16:
      return "bfloat16";
    case v1::DTYPE_FLOAT16:
      return "float16";
    default:
      return "float32";
  }
}

// A text that needs no quotes in YAML and is no number, truth value or nothing.
bool IsPlain(absl::string_view text) {
  if (text.empty() || !absl::ascii_isalpha(text[0])) return false;
  for (const char byte : text) {
    if (!absl::ascii_isalnum(byte) && byte != '_' && byte != '-' && byte != '.' && byte != '/')
      return false;
  }
  const std::string lower = absl::AsciiStrToLower(text);
  for (const absl::string_view word :
       {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) {
    if (lower == word) return false;
  }
  return true;
}

// JSON's quoted texts are YAML's double-quoted ones.
std::string YamlScalar(const ordered_json& value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    return IsPlain(text) ? text
                         : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  }
  if (value.is_number_float()) {
    const std::string text = DoubleText(value.get<double>());
    return text.find_first_of(".e") == std::string::npos ? absl::StrCat(text, ".0") : text;
  }
  return value.dump();
}

// One line: {a: 1, b: [x, y]}.
std::string YamlFlow(const ordered_json& value) {
  std::string text;
  if (value.is_array()) {
    for (const ordered_json& item : value)
      absl::StrAppend(&text, text.empty() ? "" : ", ", YamlFlow(item));
    return absl::StrCat("[", text, "]");
  }
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", YamlScalar(key), ": ", YamlFlow(item));
    }
    return absl::StrCat("{", text, "}");
  }
  return YamlScalar(value);
}

}  // namespace

nlohmann::ordered_json ParamsToJson(const google::protobuf::Struct& params) {
  ordered_json json = ordered_json::object();
  const std::map<std::string, google::protobuf::Value> sorted(params.fields().begin(),
                                                              params.fields().end());
  for (const auto& [key, value] : sorted) json[key] = ValueToJson(value);
  return json;
}

nlohmann::ordered_json SpecToJson(const v1::EvalJobSpec& spec) {
  ordered_json json = ordered_json::object();
  if (!spec.name().empty()) json["name"] = spec.name();
  if (spec.tasks_size() > 0) {
    ordered_json& tasks = json["tasks"] = ordered_json::array();
    for (const v1::TaskSpec& task : spec.tasks()) tasks.push_back(TaskToJson(task));
  }
  if (spec.checkpoints_size() > 0) json["checkpoints"] = ListToJson(spec.checkpoints());
  if (spec.scorers_size() > 0) json["scorers"] = ScorersToJson(spec.scorers());
  if (spec.seeds_size() > 0) json["seeds"] = ListToJson(spec.seeds());
  if (!spec.labels().empty()) {
    const std::map<std::string, std::string> sorted(spec.labels().begin(), spec.labels().end());
    ordered_json& labels = json["labels"] = ordered_json::object();
    for (const auto& [key, value] : sorted) labels[key] = value;
  }
  if (spec.dtype() != v1::DTYPE_UNSPECIFIED) json["dtype"] = DtypeName(spec.dtype());
  if (spec.priority() != 0) json["priority"] = spec.priority();
  if (!spec.tenant().empty()) json["tenant"] = spec.tenant();
  if (spec.fail_fast()) json["fail_fast"] = true;
  if (spec.deadline_s() != 0) json["deadline_s"] = spec.deadline_s();
  if (spec.mixed_workers()) json["mixed_workers"] = true;
  if (spec.no_cache()) json["no_cache"] = true;
  return json;
}

std::string SpecToYaml(const v1::EvalJobSpec& spec) {
  const ordered_json json = SpecToJson(spec);
  if (json.empty()) return "{}\n";
  std::string yaml;
  for (const auto& [key, value] : json.items()) {
    if (key == "tasks") {
      absl::StrAppend(&yaml, "tasks:\n");
      for (const ordered_json& task : value) {
        absl::string_view indent = "  - ";
        for (const auto& [task_key, task_value] : task.items()) {
          absl::StrAppend(&yaml, indent, task_key, ": ", YamlFlow(task_value), "\n");
          indent = "    ";
        }
      }
    } else if (key == "scorers") {
      absl::StrAppend(&yaml, "scorers:\n");
      for (const ordered_json& scorer : value) {
        if (scorer.is_object()) {
          absl::StrAppend(&yaml, "  - ", YamlScalar(scorer.begin().key()), ": ",
                          YamlFlow(scorer.begin().value()), "\n");
        } else {
          absl::StrAppend(&yaml, "  - ", YamlScalar(scorer), "\n");
        }
      }
    } else {
      absl::StrAppend(&yaml, key, ": ", YamlFlow(value), "\n");
    }
  }
  return yaml;
}

}  // namespace hopscope::client
