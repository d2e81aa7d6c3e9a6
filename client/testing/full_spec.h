// A spec in which every key stands, for tests.
#ifndef HOPSCOPE_CLIENT_TESTING_FULL_SPEC_H_
#define HOPSCOPE_CLIENT_TESTING_FULL_SPEC_H_

#include "absl/strings/string_view.h"
#include "client/spec_yaml.h"
#include "gtest/gtest.h"

namespace hopscope::client::testing {

inline constexpr absl::string_view kFullSpec = R"(
name: length-sweep
tasks:
  - task: number
    hops: [1, 2, 3, 4]
    added_tokens: [0, 50]
    samples: 1200
    checkpoints: [number/step-06750]
    window: {target: 8, pre_target: 8}
    padding: random
    scorers:
      - accuracy
  - task: letter
    hops: 3
    samples: 600
checkpoints: letter/*
scorers:
  - accuracy
  - positional_symbolic: {taus: [1.0e-4, 0.05], queries: last, blocks: 16, exact: true, note: "1"}
seed: 42
labels: {sweep: lengths, year: 2026}
dtype: float64
priority: -5
tenant: lab
fail_fast: true
deadline_s: 3600
mixed_workers: false
no_cache: true
)";

// A spec that is good; otherwise the test fails.
inline v1::EvalJobSpec Parse(absl::string_view text) {
  const auto parsed = ParseSpecYaml(text, "spec.yaml");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? parsed->spec : v1::EvalJobSpec();
}

}  // namespace hopscope::client::testing

#endif  // HOPSCOPE_CLIENT_TESTING_FULL_SPEC_H_
