#include "common/checkpoint/families/config_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/errors.h"

namespace hopscope::checkpoint {
namespace {

using nlohmann::json;

const json& Null() {
  static const auto* null = new json();
  return *null;
}

const json& EmptyObject() {
  static const auto* empty = new json(json::object());
  return *empty;
}

}  // namespace

std::string ShortJson(const json& value) {
  switch (value.type()) {
    case json::value_t::string:
      return Quoted(value.get_ref<const std::string&>());
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "an array";
    default:
      return value.dump();
  }
}

ConfigReader::ConfigReader(const json& object)
    : ConfigReader(&object, "", std::make_shared<absl::Status>()) {
  if (!object.is_object()) {
    *status_ = BrokenCheckpoint("CHECKPOINT_CONFIG", "config.json must be an object");
    object_ = &EmptyObject();
  }
}

ConfigReader::ConfigReader(const json* object, std::string prefix,
                           std::shared_ptr<absl::Status> status)
    : object_(object), prefix_(std::move(prefix)), status_(std::move(status)) {}

ConfigReader ConfigReader::Section(absl::string_view key) {
  const json* section = &Raw(key);
  if (!section->is_object()) {
    if (!section->is_null()) Wrong(key, "must be an object");
    section = &EmptyObject();
  }
  return ConfigReader(section, absl::StrCat(prefix_, key, "."), status_);
}

bool ConfigReader::Has(absl::string_view key) const { return !Raw(key).is_null(); }

bool ConfigReader::Contains(absl::string_view key) const {
  return object_->contains(std::string(key));
}

void ConfigReader::Require(absl::string_view key) {
  if (!Contains(key)) Missing({key});
}

const json& ConfigReader::Raw(absl::string_view key) const {
  const auto found = object_->find(std::string(key));
  return found == object_->end() ? Null() : *found;
}

const json* ConfigReader::Find(Keys keys, absl::string_view* found) {
  const json* value = nullptr;
  for (const absl::string_view key : keys) {
    const json& candidate = Raw(key);
    if (candidate.is_null()) continue;
    if (value == nullptr) {
      value = &candidate;
      *found = key;
    } else if (*value != candidate) {
      Wrong(key,
            absl::StrCat("must agree with ", prefix_, *found, ", which is ", ShortJson(*value)));
      return nullptr;
    }
  }
  return value;
}

void ConfigReader::Missing(Keys keys) {
  if (!ok()) return;
  const std::string names = absl::StrJoin(
      keys, " or ", [this](std::string* out, auto key) { absl::StrAppend(out, prefix_, key); });
  *status_ = BrokenCheckpoint("CHECKPOINT_CONFIG", absl::StrCat("config.json lacks ", names),
                              {{"field", names}});
}

void ConfigReader::Record(absl::string_view reason, absl::string_view key,
                          absl::string_view allowed) {
  if (!ok()) return;
  const std::string field = absl::StrCat(prefix_, key);
  const std::string value = ShortJson(Raw(key));
  *status_ = BrokenCheckpoint(
      reason,
      absl::StrCat("config.json: ", field, " is ", value,
                   reason == "CHECKPOINT_CONFIG" ? "; it " : ", which is not supported: ", allowed),
      {{"field", field}, {"value", value}, {"allowed", std::string(allowed)}});
}

void ConfigReader::Wrong(absl::string_view key, absl::string_view allowed) {
  Record("CHECKPOINT_CONFIG", key, allowed);
}

void ConfigReader::Unsupported(absl::string_view key, absl::string_view why) {
  Record("CHECKPOINT_UNSUPPORTED_OPTION", key, why);
}

void ConfigReader::Only(absl::string_view key, const json& value, absl::string_view why) {
  if (Has(key) && Raw(key) != value) Unsupported(key, why);
}

void ConfigReader::Allow(Keys keys) {
  for (const auto& [key, value] : object_->items()) {
    if (value.is_null() || std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    Unsupported(key, absl::StrCat("the keys are ", absl::StrJoin(keys, ", ")));
  }
}

int64_t ConfigReader::Integer(Keys keys, int64_t min, int64_t max) {
  absl::string_view key;
  if (Find(keys, &key) == nullptr) {
    Missing(keys);
    return min;
  }
  return IntegerOr(keys, min, max, min);
}

int64_t ConfigReader::IntegerOr(Keys keys, int64_t min, int64_t max, int64_t fallback) {
  absl::string_view key;
  const json* value = Find(keys, &key);
  if (value == nullptr) return fallback;
  if (value->is_number_integer() &&
      !(value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))) {
    const auto number = value->get<int64_t>();
    if (number >= min && number <= max) return number;
  }
  Wrong(key, absl::StrCat("must be an integer from ", min, " to ", max));
  return fallback;
}

double ConfigReader::Number(Keys keys, double min, double max) {
  absl::string_view key;
  if (Find(keys, &key) == nullptr) {
    Missing(keys);
    return min;
  }
  return NumberOr(keys, min, max, min);
}

double ConfigReader::NumberOr(Keys keys, double min, double max, double fallback) {
  absl::string_view key;
  const json* value = Find(keys, &key);
  if (value == nullptr) return fallback;
  if (value->is_number()) {
    const auto number = value->get<double>();
    if (number >= min && number <= max) return number;
  }
  Wrong(key, absl::StrCat("must be a number from ", min, " to ", max));
  return fallback;
}

bool ConfigReader::FlagOr(Keys keys, bool fallback) {
  absl::string_view key;
  const json* value = Find(keys, &key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  Wrong(key, "must be true or false");
  return fallback;
}

std::string ConfigReader::TextOr(Keys keys, absl::string_view fallback) {
  absl::string_view key;
  const json* value = Find(keys, &key);
  if (value == nullptr) return std::string(fallback);
  if (value->is_string()) return value->get<std::string>();
  Wrong(key, "must be a string");
  return std::string(fallback);
}

void ConfigReader::ReadActivation(Keys keys, absl::string_view fallback, Architecture& arch) {
  absl::string_view key;
  Find(keys, &key);
  const std::string name = TextOr(keys, fallback);
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") {
    arch.activation = Activation::kGeluTanh;
  } else if (name == "gelu_fast") {
    arch.activation = Activation::kGeluTanh;
    arch.gelu_tanh_factor = 0.7978845608;  // the digits in transformers' activations.py
  } else if (name == "gelu" || name == "gelu_python") {
    arch.activation = Activation::kGeluErf;
  } else if (name == "relu") {
    arch.activation = Activation::kRelu;
  } else if (name == "silu" || name == "swish") {
    arch.activation = Activation::kSilu;
  } else {
    Unsupported(
        key, "gelu_new, gelu_pytorch_tanh, gelu_fast, gelu, gelu_python, relu, silu and swish are");
  }
}

}  // namespace hopscope::checkpoint
