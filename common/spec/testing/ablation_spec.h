// The spec of an ablation, for tests.
#ifndef HOPSCOPE_COMMON_SPEC_TESTING_ABLATION_SPEC_H_
#define HOPSCOPE_COMMON_SPEC_TESTING_ABLATION_SPEC_H_

#include <string>
#include <vector>

#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::spec::testing {

// With these kinds and sets of heads; of each head where there are no sets. Other parameters are
// left out.
inline v1::ScorerSpec AblationSpec(const std::vector<std::string>& kinds,
                                   const std::vector<std::string>& sets = {}) {
  v1::ScorerSpec scorer;
  scorer.set_name("ablation");
  auto& params = *scorer.mutable_params()->mutable_fields();
  for (const std::string& kind : kinds) {
    params["kinds"].mutable_list_value()->add_values()->set_string_value(kind);
  }
  for (const std::string& set : sets) {
    params["heads"].mutable_list_value()->add_values()->set_string_value(set);
  }
  return scorer;
}

}  // namespace hopscope::spec::testing

#endif  // HOPSCOPE_COMMON_SPEC_TESTING_ABLATION_SPEC_H_
