// The parameters of each scorer, and the one place that says what they may be.
//
// Static data and pure functions; thread-safe.
#ifndef HOPSCOPE_COMMON_SPEC_SCORER_PARAMS_H_
#define HOPSCOPE_COMMON_SPEC_SCORER_PARAMS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::spec {

struct ScorerParamRule {
  enum class Type {
    kChoice,           // one of `choices`; the default is the first
    kChoices,          // some of `choices`, each once; the default is `default_choices`
    kBool,             // the default is `default_number` != 0
    kNumber,           // a finite number from `min` to `max`
    kInteger,          // a whole number from `min` to `max`
    kPositiveNumbers,  // 1 to `max_count` different finite numbers above 0: one result for each
    // "each", the default: every head by itself; or 1 to `max_count` different sets of heads
    // (head_set.h): one result for each
    kHeadSets,
  };
  // What a list of choices does.
  enum class List {
    kOneResultEach,   // results are reported with the one choice that they belong to
    kSelectsMetrics,  // the choices name metrics; results do not repeat the list
  };
  std::string name;
  std::string description;
  Type type = Type::kChoice;
  std::vector<std::string> choices;
  std::vector<std::string> default_choices;
  List list = List::kOneResultEach;
  double min = 0;
  double max = 0;
  double default_number = 0;
  int max_count = 0;
  std::vector<double> default_numbers;
  // The parameter changes nothing where another one, `idle_param`, has the value `idle_value`:
  // results then do not name it.
  std::string idle_param;
  std::string idle_value;

  google::protobuf::Value DefaultValue() const;
  // What is allowed, for people.
  std::string Allowed() const;
};

// Empty where the scorer is unknown or takes none. They stand in scorer_rules.cc.
const std::vector<ScorerParamRule>& ScorerParamRules(absl::string_view scorer);

// Checks the parameters of a known scorer and fills in those that are left out. `field` is the
// scorer's path.
absl::Status NormalizeScorerParams(absl::string_view field, v1::ScorerSpec* scorer);

// Whether two scorers, both normalized, would give one of their results twice.
bool ScorersOverlap(const v1::ScorerSpec& a, const v1::ScorerSpec& b);

// The parameters under which each of a normalized scorer's results is reported: where a parameter
// lists several values, one set for each, with the value itself in place of the list, in the order
// of the list. {"taus": [1e-4, 1], "mode": "tokens"} gives {"taus": 1e-4, "mode": "tokens"} and
// {"taus": 1, "mode": "tokens"}. A list that selects metrics is left out, and so is a parameter
// that changes nothing.
std::vector<google::protobuf::Struct> ResultParams(const v1::ScorerSpec& scorer);

// Whether the results of a normalized scorer have a value for each layer and head; otherwise they
// have one value, and no such axes.
bool ScoresEachHead(const v1::ScorerSpec& scorer);

}  // namespace hopscope::spec

#endif  // HOPSCOPE_COMMON_SPEC_SCORER_PARAMS_H_
