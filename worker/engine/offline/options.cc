#include "worker/engine/offline/options.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/spec/catalog.h"
#include "common/spec/reasons.h"
#include "common/spec/scorer_params.h"
#include "common/status.h"
#include "worker/engine/scorers/registry.h"

namespace hopscope::engine {
namespace {

using Type = spec::ScorerParamRule::Type;

google::protobuf::Value Numbers(const std::vector<double>& numbers) {
  google::protobuf::Value value;
  value.mutable_list_value();
  for (const double number : numbers) {
    value.mutable_list_value()->add_values()->set_number_value(number);
  }
  return value;
}

absl::StatusOr<google::protobuf::Value> ParseValue(const spec::ScorerParamRule& rule,
                                                   absl::string_view option,
                                                   absl::string_view text) {
  google::protobuf::Value value;
  switch (rule.type) {
    case Type::kChoice:
      value.set_string_value(std::string(text));
      return value;
    case Type::kChoices:
      for (const absl::string_view piece : absl::StrSplit(text, ',')) {
        value.mutable_list_value()->add_values()->set_string_value(std::string(piece));
      }
      return value;
    case Type::kBool:
      if (text != "true" && text != "false") {
        return common::InvalidField(spec::kWrongType, option, text, rule.Allowed());
      }
      value.set_bool_value(text == "true");
      return value;
    case Type::kNumber:
    case Type::kInteger: {
      double number = 0;
      if (!absl::SimpleAtod(text, &number)) {
        return common::InvalidField(spec::kWrongType, option, text, rule.Allowed());
      }
      value.set_number_value(number);
      return value;
    }
    case Type::kHeadSets:
      if (text == rule.DefaultValue().string_value()) return rule.DefaultValue();
      for (const absl::string_view piece : absl::StrSplit(text, ',')) {
        value.mutable_list_value()->add_values()->set_string_value(std::string(piece));
      }
      return value;
    case Type::kPositiveNumbers:
      break;
  }
  std::vector<double> numbers;
  for (const absl::string_view piece : absl::StrSplit(text, ',')) {
    if (!absl::SimpleAtod(piece, &numbers.emplace_back())) {
      return common::InvalidField(spec::kWrongType, option, piece, "a number");
    }
  }
  return Numbers(numbers);
}

}  // namespace

absl::StatusOr<v1::Dtype> ParseDtype(absl::string_view text) {
  if (text == "float32") return v1::DTYPE_FLOAT32;
  if (text == "float64") return v1::DTYPE_FLOAT64;
  if (text == "bfloat16") return v1::DTYPE_BFLOAT16;
  if (text == "float16") return v1::DTYPE_FLOAT16;
  return common::InvalidField(spec::kNameUnknown, "--dtype", text,
                              "float32, float64, bfloat16 or float16");
}

absl::StatusOr<std::vector<v1::ScorerSpec>> ParseScorers(const std::vector<std::string>& names,
                                                         const std::vector<double>& taus,
                                                         const std::vector<std::string>& params) {
  const std::string known = absl::StrCat("one of ", absl::StrJoin(ScorerNames(), ", "));
  if (names.empty()) return common::InvalidField(spec::kFieldMissing, "--scorers", "", known);
  std::vector<v1::ScorerSpec> scorers;
  const auto find = [&](absl::string_view name) {
    return std::find_if(scorers.begin(), scorers.end(),
                        [&](const v1::ScorerSpec& scorer) { return scorer.name() == name; });
  };
  bool taken = taus.empty();
  for (const std::string& name : names) {
    if (spec::FindScorer(name) == nullptr) {
      return common::InvalidField(spec::kNameUnknown, "--scorers", name, known);
    }
    if (find(name) != scorers.end()) {
      return common::InvalidField(spec::kDuplicate, "--scorers", name, "each scorer once");
    }
    v1::ScorerSpec scorer;
    scorer.set_name(name);
    for (const spec::ScorerParamRule& rule : spec::ScorerParamRules(name)) {
      if (rule.name != "taus" || taus.empty()) continue;
      (*scorer.mutable_params()->mutable_fields())["taus"] = Numbers(taus);
      taken = true;
    }
    scorers.push_back(std::move(scorer));
  }
  if (!taken) {
    return common::InvalidField(spec::kUnsupported, "--tau", absl::StrJoin(taus, ","),
                                "none of the scorers asked for has temperatures");
  }
  for (const std::string& param : params) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(param, absl::MaxSplits('=', 1));
    const std::pair<absl::string_view, absl::string_view> path =
        absl::StrSplit(sides.first, absl::MaxSplits('.', 1));
    const auto scorer = find(path.first);
    if (path.second.empty() || sides.second.empty() || scorer == scorers.end()) {
      return common::InvalidField(spec::kWrongType, "--param", param,
                                  "SCORER.KEY=VALUE with a scorer of --scorers");
    }
    const auto& rules = spec::ScorerParamRules(path.first);
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const auto& one) { return one.name == path.second; });
    if (rule == rules.end()) {
      return common::InvalidField(
          spec::kNameUnknown, "--param", param,
          absl::StrCat("a parameter of ", path.first, ": ",
                       absl::StrJoin(rules, ", ", [](std::string* out, const auto& one) {
                         out->append(one.name);
                       })));
    }
    HOPSCOPE_ASSIGN_OR_RETURN(
        (*scorer->mutable_params()->mutable_fields())[rule->name],
        ParseValue(*rule, absl::StrCat("--param ", sides.first), sides.second));
  }
  for (v1::ScorerSpec& scorer : scorers) {
    HOPSCOPE_RETURN_IF_ERROR(spec::NormalizeScorerParams("--scorers " + scorer.name(), &scorer));
  }
  return scorers;
}

absl::StatusOr<checkpoint::Checkpoint> OpenCheckpoint(const std::string& folder) {
  absl::StatusOr<checkpoint::Checkpoint> checkpoint = checkpoint::Checkpoint::Open(folder);
  if (!checkpoint.ok()) return common::Annotate(checkpoint.status(), folder);
  return checkpoint;
}

absl::Status CheckOutput(const std::string& tokens, const std::string& output) {
  std::error_code ignored;
  if (!std::filesystem::equivalent(tokens, output, ignored)) return absl::OkStatus();
  return common::InvalidField(spec::kOutOfRange, "--output", output,
                              "it is the tokens file; give another name");
}

}  // namespace hopscope::engine
