#include "common/spec/scorer_params.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
                        absl::StrCat("a text, ", rule.Allowed()));
  }
  if (std::find(rule.choices.begin(), rule.choices.end(), value.string_value()) ==
      rule.choices.end()) {
    return InvalidField(kNameUnknown, field, ValueText(value),
                        OneOf(value.string_value(), rule.choices));
  }
  return absl::OkStatus();
}

absl::Status CheckPositiveNumbers(const ScorerParamRule& rule, const Value& value,
                                  absl::string_view field) {
  if (value.kind_case() != Value::kListValue) {
    return InvalidField(kWrongType, field, ValueText(value),
                        absl::StrCat("a list, ", rule.Allowed()));
  }
  const auto& values = value.list_value().values();
  if (values.empty() || values.size() > rule.max_count) {
    return InvalidField(values.empty() ? kFieldMissing : kLimitExceeded, field, ValueText(value),
                        rule.Allowed());
  }
  std::set<double> seen;
  for (int i = 0; i < values.size(); ++i) {
    const std::string element = absl::StrCat(field, "[", i, "]");
    if (values[i].kind_case() != Value::kNumberValue) {
      return InvalidField(kWrongType, element, ValueText(values[i]), "a number");
    }
    const double number = values[i].number_value();
    if (!std::isfinite(number) || number <= 0) {
      return InvalidField(kOutOfRange, element, ValueText(values[i]), "a finite number above 0");
    }
    if (!seen.insert(number).second) {
      return InvalidField(kDuplicate, element, ValueText(values[i]), "each number once");
    }
  }
  return absl::OkStatus();
}

}  // namespace

Value ScorerParamRule::DefaultValue() const {
  Value value;
  if (type == Type::kChoice) {
    value.set_string_value(choices.front());
  } else {
    for (const double number : default_numbers) {
      value.mutable_list_value()->add_values()->set_number_value(number);
    }
  }
  return value;
}

std::string ScorerParamRule::Allowed() const {
  return type == Type::kChoice
             ? absl::StrCat("one of ", absl::StrJoin(choices, ", "))
             : absl::StrCat("1 to ", max_count, " different finite numbers above 0");
}

const std::vector<ScorerParamRule>& ScorerParamRules(absl::string_view scorer) {
  static const auto* const none = new std::vector<ScorerParamRule>;
  static const auto* const positional_symbolic = new std::vector<ScorerParamRule>{
      {.name = "taus",
       .description =
           "Temperatures of the swap weights softmax(|D_i - D_j| / tau), D the attention "
           "of the query; one result for each.",
       .type = Type::kPositiveNumbers,
       .max_count = 16,
       .default_numbers = {1e-4}},
      {.name = "queries",
       .description = "Slots whose attention is scored: last, the last token.",
       .choices = {"last"}},
      {.name = "mode",
       .description = "What is swapped: tokens, every pair of keys before the query.",
       .choices = {"tokens"}},
  };
  return scorer == "positional_symbolic" ? *positional_symbolic : *none;
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
    HOPSCOPE_RETURN_IF_ERROR(rule->type == Type::kChoice
                                 ? CheckChoice(*rule, params.at(name), path)
                                 : CheckPositiveNumbers(*rule, params.at(name), path));
  }
  for (const ScorerParamRule& rule : rules) {
    if (given.count(rule.name) == 0) params[rule.name] = rule.DefaultValue();
  }
  return absl::OkStatus();
}

bool ScorersOverlap(const v1::ScorerSpec& a, const v1::ScorerSpec& b) {
  if (a.name() != b.name()) return false;
  for (const ScorerParamRule& rule : ScorerParamRules(a.name())) {
    const Value& left = a.params().fields().at(rule.name);
    const Value& right = b.params().fields().at(rule.name);
    if (rule.type == Type::kChoice) {
      if (!MessageDifferencer::Equals(left, right)) return false;
      continue;
    }
    const auto& numbers = right.list_value().values();
    const bool common = std::any_of(
        left.list_value().values().begin(), left.list_value().values().end(),
        [&numbers](const Value& number) {
          return std::any_of(numbers.begin(), numbers.end(), [&number](const Value& other) {
            return other.number_value() == number.number_value();
          });
        });
    if (!common) return false;
  }
  return true;
}

std::vector<google::protobuf::Struct> ResultParams(const v1::ScorerSpec& scorer) {
  std::vector<google::protobuf::Struct> sets = {scorer.params()};
  for (const ScorerParamRule& rule : ScorerParamRules(scorer.name())) {
    if (rule.type != Type::kPositiveNumbers) continue;
    std::vector<google::protobuf::Struct> split;
    for (const google::protobuf::Struct& set : sets) {
      for (const Value& number : set.fields().at(rule.name).list_value().values()) {
        split.push_back(set);
        (*split.back().mutable_fields())[rule.name] = number;
      }
    }
    sets = std::move(split);
  }
  return sets;
}

}  // namespace hopscope::spec
