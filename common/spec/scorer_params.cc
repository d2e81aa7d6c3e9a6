#include "common/spec/scorer_params.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/spec/catalog.h"
#include "common/spec/head_set.h"
#include "common/spec/reasons.h"
#include "common/spec/text.h"
#include "common/status.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/message_differencer.h"

namespace hopscope::spec {
namespace {

using common::InvalidField;
using google::protobuf::Value;
using google::protobuf::util::MessageDifferencer;
using Type = ScorerParamRule::Type;
using List = ScorerParamRule::List;

std::string ValueText(const Value& value) {
  switch (value.kind_case()) {
    case Value::kNullValue:
      return "null";
    case Value::kNumberValue:
      return absl::StrCat(value.number_value());
    case Value::kStringValue:
      return Quoted(value.string_value());
    case Value::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case Value::kListValue:
      return absl::StrCat("a list of ", value.list_value().values_size());
    case Value::kStructValue:
      return absl::StrCat("a map of ", value.struct_value().fields_size());
    case Value::KIND_NOT_SET:
      break;
  }
  return "nothing";
}

absl::Status CheckChoice(const ScorerParamRule& rule, const Value& value, absl::string_view field) {
  if (value.kind_case() != Value::kStringValue) {
    return InvalidField(kWrongType, field, ValueText(value),
                        absl::StrCat("a text, one of ", absl::StrJoin(rule.choices, ", ")));
  }
  if (std::find(rule.choices.begin(), rule.choices.end(), value.string_value()) ==
      rule.choices.end()) {
    return InvalidField(kNameUnknown, field, ValueText(value),
                        OneOf(value.string_value(), rule.choices));
  }
  return absl::OkStatus();
}

// A list of 1 to `max_count` values, each of which passes `check_element` and differs, by `key`,
// from those before it.
template <typename Check, typename Key>
absl::Status CheckList(const ScorerParamRule& rule, const Value& value, int max_count,
                       absl::string_view field, Check check_element, Key key) {
  if (value.kind_case() != Value::kListValue) {
    return InvalidField(kWrongType, field, ValueText(value),
                        absl::StrCat("a list, ", rule.Allowed()));
  }
  const auto& values = value.list_value().values();
  if (values.empty() || values.size() > max_count) {
    return InvalidField(values.empty() ? kFieldMissing : kLimitExceeded, field, ValueText(value),
                        rule.Allowed());
  }
  std::set<decltype(key(values[0]))> seen;
  for (int i = 0; i < values.size(); ++i) {
    const std::string element = absl::StrCat(field, "[", i, "]");
    HOPSCOPE_RETURN_IF_ERROR(check_element(values[i], element));
    if (!seen.insert(key(values[i])).second) {
      return InvalidField(kDuplicate, element, ValueText(values[i]), "each value once");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPositiveNumber(const Value& value, absl::string_view field) {
  if (value.kind_case() != Value::kNumberValue) {
    return InvalidField(kWrongType, field, ValueText(value), "a number");
  }
  const double number = value.number_value();
  if (!std::isfinite(number) || number <= 0) {
    return InvalidField(kOutOfRange, field, ValueText(value), "a finite number above 0");
  }
  return absl::OkStatus();
}

absl::Status CheckNumber(const ScorerParamRule& rule, const Value& value, absl::string_view field) {
  if (value.kind_case() != Value::kNumberValue) {
    return InvalidField(kWrongType, field, ValueText(value), rule.Allowed());
  }
  const double number = value.number_value();
  const bool whole = rule.type != Type::kInteger || number == std::floor(number);
  // Written so that NaN fails.
  if (!(number >= rule.min && number <= rule.max) || !whole) {
    return InvalidField(kOutOfRange, field, ValueText(value), rule.Allowed());
  }
  return absl::OkStatus();
}

constexpr absl::string_view kEachHead = "each";

absl::Status CheckHeadSet(const Value& value, absl::string_view field) {
  if (value.kind_case() != Value::kStringValue) {
    return InvalidField(kWrongType, field, ValueText(value),
                        absl::StrCat("a text, ", kHeadSetForm));
  }
  if (!ParseHeadSet(value.string_value()).has_value()) {
    return InvalidField(kOutOfRange, field, ValueText(value),
                        absl::StrCat(kHeadSetForm, ", each part once"));
  }
  return absl::OkStatus();
}

absl::Status CheckParam(const ScorerParamRule& rule, const Value& value, absl::string_view field) {
  switch (rule.type) {
    case Type::kChoice:
      return CheckChoice(rule, value, field);
    case Type::kChoices:
      return CheckList(
          rule, value, static_cast<int>(rule.choices.size()), field,
          [&rule](const Value& one, absl::string_view at) { return CheckChoice(rule, one, at); },
          [](const Value& one) { return one.string_value(); });
    case Type::kBool:
      if (value.kind_case() == Value::kBoolValue) return absl::OkStatus();
      return InvalidField(kWrongType, field, ValueText(value), rule.Allowed());
    case Type::kNumber:
    case Type::kInteger:
      return CheckNumber(rule, value, field);
    case Type::kPositiveNumbers:
      return CheckList(rule, value, rule.max_count, field, CheckPositiveNumber,
                       [](const Value& one) { return one.number_value(); });
    case Type::kHeadSets:
      if (value.kind_case() == Value::kStringValue && value.string_value() == kEachHead) {
        return absl::OkStatus();
      }
      if (value.kind_case() != Value::kListValue) {
        return InvalidField(kWrongType, field, ValueText(value), rule.Allowed());
      }
      return CheckList(rule, value, rule.max_count, field, CheckHeadSet, [](const Value& one) {
        return ParseHeadSet(one.string_value()).value_or(std::vector<HeadPattern>());
      });
  }
  return absl::InternalError("a parameter of no known type");
}

bool IsList(const Value& value) { return value.kind_case() == Value::kListValue; }

bool IsIdle(const ScorerParamRule& rule, const google::protobuf::Struct& params) {
  return !rule.idle_param.empty() &&
         params.fields().at(rule.idle_param).string_value() == rule.idle_value;
}

bool SelectsMetrics(const ScorerParamRule& rule) {
  return rule.type == Type::kChoices && rule.list == List::kSelectsMetrics;
}

}  // namespace

Value ScorerParamRule::DefaultValue() const {
  Value value;
  switch (type) {
    case Type::kChoice:
      value.set_string_value(choices.front());
      break;
    case Type::kChoices:
      for (const std::string& choice : default_choices) {
        value.mutable_list_value()->add_values()->set_string_value(choice);
      }
      break;
    case Type::kBool:
      value.set_bool_value(default_number != 0);
      break;
    case Type::kNumber:
    case Type::kInteger:
      value.set_number_value(default_number);
      break;
    case Type::kPositiveNumbers:
      for (const double number : default_numbers) {
        value.mutable_list_value()->add_values()->set_number_value(number);
      }
      break;
    case Type::kHeadSets:
      value.set_string_value(std::string(kEachHead));
      break;
  }
  return value;
}

std::string ScorerParamRule::Allowed() const {
  switch (type) {
    case Type::kChoice:
      return absl::StrCat("one of ", absl::StrJoin(choices, ", "));
    case Type::kChoices:
      return absl::StrCat("some of ", absl::StrJoin(choices, ", "), ", each once");
    case Type::kBool:
      return "true or false";
    case Type::kNumber:
      return absl::StrCat("a number from ", min, " to ", max);
    case Type::kInteger:
      return absl::StrCat("a whole number from ", min, " to ", max);
    case Type::kPositiveNumbers:
      return absl::StrCat("1 to ", max_count, " different finite numbers above 0");
    case Type::kHeadSets:
      return absl::StrCat(kEachHead, ", or 1 to ", max_count,
                          " different sets of heads: ", kHeadSetForm);
  }
  return "";
}

absl::Status NormalizeScorerParams(absl::string_view field, v1::ScorerSpec* scorer) {
  const std::vector<ScorerParamRule>& rules = ScorerParamRules(scorer->name());
  auto& params = *scorer->mutable_params()->mutable_fields();
  std::vector<std::string> known;
  for (const ScorerParamRule& rule : rules) known.push_back(rule.name);
  // Maps have no order: look at the names sorted, so that the same spec always gets the same error.
  std::set<std::string> given;
  for (const auto& [name, value] : params) given.insert(name);
  for (const std::string& name : given) {
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&name](const auto& one) { return one.name == name; });
    const std::string path = absl::StrCat(field, ".params.", name);
    if (rule == rules.end()) {
      const std::string allowed =
          known.empty() ? absl::StrCat("scorer ", scorer->name(), " takes no parameters")
                        : absl::StrCat("the parameter must be ", OneOf(name, known));
      return InvalidField(kNameUnknown,
                          IsPrintableUtf8(name) ? path : absl::StrCat(field, ".params"),
                          Quoted(name), allowed);
    }
    HOPSCOPE_RETURN_IF_ERROR(CheckParam(*rule, params.at(name), path));
  }
  for (const ScorerParamRule& rule : rules) {
    if (given.count(rule.name) == 0) params[rule.name] = rule.DefaultValue();
  }
  return absl::OkStatus();
}

bool ScorersOverlap(const v1::ScorerSpec& a, const v1::ScorerSpec& b) {
  if (a.name() != b.name()) return false;
  for (const ScorerParamRule& rule : ScorerParamRules(a.name())) {
    if (IsIdle(rule, a.params()) && IsIdle(rule, b.params())) continue;
    const Value& left = a.params().fields().at(rule.name);
    const Value& right = b.params().fields().at(rule.name);
    if (!IsList(left) || !IsList(right)) {
      if (!MessageDifferencer::Equals(left, right)) return false;
      continue;
    }
    const auto& others = right.list_value().values();
    const bool common =
        std::any_of(left.list_value().values().begin(), left.list_value().values().end(),
                    [&others](const Value& one) {
                      return std::any_of(others.begin(), others.end(), [&one](const Value& other) {
                        return MessageDifferencer::Equals(one, other);
                      });
                    });
    if (!common) return false;
  }
  return true;
}

std::vector<google::protobuf::Struct> ResultParams(const v1::ScorerSpec& scorer) {
  std::vector<google::protobuf::Struct> sets = {scorer.params()};
  for (const ScorerParamRule& rule : ScorerParamRules(scorer.name())) {
    if (IsIdle(rule, scorer.params())) {
      for (google::protobuf::Struct& set : sets) set.mutable_fields()->erase(rule.name);
      continue;
    }
    if (!IsList(scorer.params().fields().at(rule.name))) continue;
    if (SelectsMetrics(rule)) {
      for (google::protobuf::Struct& set : sets) set.mutable_fields()->erase(rule.name);
      continue;
    }
    std::vector<google::protobuf::Struct> split;
    for (const google::protobuf::Struct& set : sets) {
      for (const Value& one : set.fields().at(rule.name).list_value().values()) {
        split.push_back(set);
        (*split.back().mutable_fields())[rule.name] = one;
      }
    }
    sets = std::move(split);
  }
  return sets;
}

bool ScoresEachHead(const v1::ScorerSpec& scorer) {
  if (scorer.name() == "accuracy" || scorer.name() == kAccuracyByPosition ||
      scorer.name() == "loss") {
    return false;
  }
  for (const ScorerParamRule& rule : ScorerParamRules(scorer.name())) {
    if (rule.type == Type::kHeadSets && IsList(scorer.params().fields().at(rule.name)))
      return false;
  }
  return true;
}

}  // namespace hopscope::spec
