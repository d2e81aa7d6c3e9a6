#include "client/spec_yaml.h"

#include <string>

#include "client/testing/full_spec.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kFullSpec;
using testing::Parse;
using ::testing::StartsWith;

absl::Status ParseError(absl::string_view text) {
  return ParseSpecYaml(text, "spec.yaml").status();
}

std::string Field(const absl::Status& status) {
  const auto info = common::GetErrorInfo(status);
  return info.has_value() && info->metadata().contains("field") ? info->metadata().at("field") : "";
}

TEST(SpecYamlTest, ReadsEveryKey) {
  const v1::EvalJobSpec spec = Parse(kFullSpec);
  EXPECT_EQ(spec.name(), "length-sweep");
  ASSERT_EQ(spec.tasks_size(), 2);
  const v1::TaskSpec& number = spec.tasks(0);
  EXPECT_EQ(number.task(), "number");
  EXPECT_THAT(number.hops(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(number.added_tokens(), ElementsAre(0, 50));
  EXPECT_EQ(number.samples(), 1200);
  EXPECT_THAT(number.checkpoints(), ElementsAre("number/step-06750"));
  EXPECT_EQ(number.window().target(), 8);
  EXPECT_EQ(number.window().pre_target(), 8);
  EXPECT_EQ(number.padding(), "random");
  ASSERT_EQ(number.scorers_size(), 1);
  EXPECT_EQ(number.scorers(0).name(), "accuracy");
  EXPECT_THAT(spec.tasks(1).hops(), ElementsAre(3)) << "one value stands for a list";
  EXPECT_THAT(spec.checkpoints(), ElementsAre("letter/*"));
  ASSERT_EQ(spec.scorers_size(), 2);
  EXPECT_FALSE(spec.scorers(0).has_params());
  const auto& params = spec.scorers(1).params().fields();
  EXPECT_EQ(params.at("taus").list_value().values(0).number_value(), 1e-4);
  EXPECT_EQ(params.at("taus").list_value().values(1).number_value(), 0.05);
  EXPECT_EQ(params.at("queries").string_value(), "last");
  EXPECT_EQ(params.at("blocks").number_value(), 16);
  EXPECT_TRUE(params.at("exact").bool_value());
  EXPECT_EQ(params.at("note").string_value(), "1") << "quoted, so a text";
  EXPECT_THAT(spec.seeds(), ElementsAre(42));
  EXPECT_EQ(spec.labels().at("sweep"), "lengths");
  EXPECT_EQ(spec.labels().at("year"), "2026");
  EXPECT_EQ(spec.dtype(), v1::DTYPE_FLOAT64);
  EXPECT_EQ(spec.priority(), -5);
  EXPECT_EQ(spec.tenant(), "lab");
  EXPECT_TRUE(spec.fail_fast());
  EXPECT_EQ(spec.deadline_s(), 3600);
  EXPECT_FALSE(spec.mixed_workers());
  EXPECT_TRUE(spec.no_cache());
}

TEST(SpecYamlTest, ReadsSeedsAndScorersInEveryForm) {
  EXPECT_THAT(Parse("seeds: [1, 2]").seeds(), ElementsAre(1, 2));
  EXPECT_THAT(Parse("seeds: 7").seeds(), ElementsAre(7));
  EXPECT_THAT(Parse("seed: -9223372036854775808").seeds(), ElementsAre(INT64_MIN));
  EXPECT_EQ(Parse("scorers: accuracy").scorers(0).name(), "accuracy");
  EXPECT_EQ(Parse("scorers: [accuracy: ]").scorers(0).name(), "accuracy");
  EXPECT_EQ(Parse("scorers: [{accuracy: {}}]").scorers(0).name(), "accuracy");
  EXPECT_FALSE(Parse("scorers: [{accuracy: {}}]").scorers(0).has_params());
}

TEST(SpecYamlTest, LeavesTheContentToTheServer) {
  const v1::EvalJobSpec spec =
      Parse("tasks: [{task: no-such-task, hops: [], samples: -3}]\npriority: 1000\n");
  EXPECT_EQ(spec.tasks(0).task(), "no-such-task");
  EXPECT_EQ(spec.tasks(0).samples(), -3);
}

TEST(SpecYamlTest, UnknownKeysNameTheNearestKnownOne) {
  const absl::Status status = ParseError("name: x\ntasks:\n  - task: number\n    hop: [1]\n");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(common::ErrorReason(status), "UNKNOWN_KEY");
  EXPECT_EQ(status.message(),
            "spec.yaml:4:5: spec.tasks[0]: unknown key \"hop\"; did you mean \"hops\"?");
  EXPECT_EQ(Field(status), "spec.tasks[0].hop");
  EXPECT_THAT(std::string(ParseError("temperature: 3").message()),
              HasSubstr("unknown key \"temperature\"; known are name, tasks, scorers,"));
  EXPECT_EQ(Field(ParseError("tasks: [{task: a, window: {size: 3}}]")),
            "spec.tasks[0].window.size");
  EXPECT_EQ(Field(ParseError("<<: {name: x}")), "spec.<<") << "merge keys are not known";
}

TEST(SpecYamlTest, WrongTypesNamePathAndPlace) {
  struct Case {
    const char* text;
    const char* field;
    const char* message;
  };
  for (const Case& c : {
           Case{"[1]", "spec", "spec.yaml:1:1: spec: expected a map, found a list"},
           Case{"tasks: 3", "spec.tasks[0]", "spec.tasks[0]: expected a map, found \"3\""},
           Case{"tasks: [{task: a, hops: [1, two]}]", "spec.tasks[0].hops[1]",
                "spec.yaml:1:29: spec.tasks[0].hops[1]: expected a whole number, found \"two\""},
           Case{"tasks: [{task: a, hops: [1.5]}]", "spec.tasks[0].hops[0]",
                "expected a whole number, found \"1.5\""},
           Case{"tasks: [{task: a, hops: ['1']}]", "spec.tasks[0].hops[0]", "found the text \"1\""},
           Case{"tasks: [{task: a, hops: }]", "spec.tasks[0].hops",
                "expected a list of whole numbers, found nothing"},
           Case{"tasks: [{task: [a]}]", "spec.tasks[0].task",
                "expected the name of a task, found a list"},
           Case{"seed: [1]", "spec.seed",
                "expected a whole number (seeds takes a list), found a list"},
           Case{"fail_fast: yes", "spec.fail_fast", "expected true or false, found \"yes\""},
           Case{"deadline_s: soon", "spec.deadline_s", "expected a number, found \"soon\""},
           Case{"dtype: double", "spec.dtype",
                "expected one of float32, float64, bfloat16, float16, found \"double\""},
           Case{"labels: [a]", "spec.labels", "expected a map of texts, found a list"},
           Case{"labels: {a: [b]}", "spec.labels.a", "expected a text, found a list"},
           Case{"scorers: [{a: {}, b: {}}]", "spec.scorers[0]", "a map of one key"},
           Case{"scorers: [{a: 3}]", "spec.scorers[0].params",
                "expected a map of parameters, found \"3\""},
           Case{"name: {}", "spec.name", "expected a text, found a map"},
       }) {
    const absl::Status status = ParseError(c.text);
    EXPECT_EQ(common::ErrorReason(status), "WRONG_TYPE") << c.text << ": " << status;
    EXPECT_EQ(Field(status), c.field) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(SpecYamlTest, NumbersThatDoNotFitAreRefused) {
  EXPECT_EQ(common::ErrorReason(ParseError("priority: 3000000000")), "OUT_OF_RANGE");
  EXPECT_EQ(common::ErrorReason(ParseError("seed: 9223372036854775808")), "OUT_OF_RANGE");
  EXPECT_EQ(common::ErrorReason(ParseError("deadline_s: 1e999")), "OUT_OF_RANGE");
  EXPECT_EQ(common::ErrorReason(ParseError("scorers: [{a: {n: 9007199254740993}}]")),
            "OUT_OF_RANGE")
      << "a double would round it";
}

TEST(SpecYamlTest, MissingAndConflictingKeysAreRefused) {
  EXPECT_EQ(common::ErrorReason(ParseError("tasks: [{hops: [1]}]")), "MISSING_KEY");
  EXPECT_EQ(common::ErrorReason(ParseError("seed: 1\nseeds: [2]")), "CONFLICTING_KEYS");
}

}  // namespace
}  // namespace hopscope::client
