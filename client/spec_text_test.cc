#include "client/spec_text.h"

#include <string>

#include "client/spec_yaml.h"
#include "client/testing/full_spec.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

using testing::kFullSpec;
using testing::Parse;

TEST(SpecTextTest, YamlReadsBackAsTheSameSpec) {
  v1::EvalJobSpec spec = Parse(kFullSpec);
  spec.set_name("true: # \"odd\" \\ n\xc3\xa4me\n");
  spec.mutable_labels()->insert({"null", "~"});
  (*spec.mutable_scorers(1)->mutable_params()->mutable_fields())["big"].set_number_value(
      9007199254740994.0);
  (*spec.mutable_scorers(1)->mutable_params()->mutable_fields())["text"].set_string_value("0.5");
  (*spec.mutable_scorers(1)->mutable_params()->mutable_fields())["none"].set_null_value({});
  for (const std::string& text :
       {SpecToYaml(spec), SpecToJson(spec).dump(), SpecToJson(spec).dump(2)}) {
    const v1::EvalJobSpec again = Parse(text);
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(again, spec)) << text;
  }
}

TEST(SpecTextTest, ASpecOfNothingReadsBackToo) {
  EXPECT_EQ(SpecToYaml({}), "{}\n");
  EXPECT_EQ(Parse("{}").ByteSizeLong(), 0u);
}

TEST(SpecTextTest, YamlLooksLikeWhatPeopleWrite) {
  EXPECT_EQ(SpecToYaml(Parse(kFullSpec)),
            R"(name: length-sweep
tasks:
  - task: number
    hops: [1, 2, 3, 4]
    added_tokens: [0, 50]
    samples: 1200
    checkpoints: [number/step-06750]
    scorers: [accuracy]
    window: {target: 8, pre_target: 8}
    padding: random
  - task: letter
    hops: [3]
    samples: 600
checkpoints: ["letter/*"]
scorers:
  - accuracy
  - positional_symbolic: {blocks: 16, exact: true, note: "1", queries: last, taus: [1e-04, 0.05]}
seeds: [42]
labels: {sweep: lengths, year: "2026"}
dtype: float64
priority: -5
tenant: lab
fail_fast: true
deadline_s: 3600.0
no_cache: true
)");
}

}  // namespace
}  // namespace hopscope::client
