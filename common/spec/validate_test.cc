#include "common/spec/validate.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/spec/catalog.h"
#include "common/spec/text.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace hopscope::spec {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::EvalJobSpec Parse(const std::string& text) {
  v1::EvalJobSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  return spec;
}

// A sweep as people write it.
v1::EvalJobSpec Sweep() {
  return Parse(R"pb(
    name: "length-sweep"
    tasks {
      task: "number"
      hops: [ 1, 2, 3, 4 ]
      added_tokens: [ 0, 50, 100, 300, 850 ]
      samples: 1200
      checkpoints: "number/step-06750"
    }
    tasks {
      task: "letter"
      hops: [ 1, 2, 3, 4 ]
      added_tokens: [ 0, 300 ]
      samples: 600
      checkpoints: "letter/*"
    }
    scorers { name: "accuracy" }
    scorers {
      name: "positional_symbolic"
      params {
        fields {
          key: "taus"
          value { list_value { values { number_value: 0.0001 } } }
        }
      }
    }
    seeds: 42
    labels { key: "sweep" value: "lengths" }
  )pb");
}

google::protobuf::Value* Param(v1::EvalJobSpec* spec, const std::string& name) {
  return &(*spec->mutable_scorers(1)->mutable_params()->mutable_fields())[name];
}

void SetTaus(v1::EvalJobSpec* spec, const std::vector<double>& taus) {
  auto* list = Param(spec, "taus")->mutable_list_value();
  list->Clear();
  for (const double tau : taus) list->add_values()->set_number_value(tau);
}

TEST(NormalizeTest, FillsInEveryDefault) {
  const absl::StatusOr<v1::EvalJobSpec> normal =
      Normalize(Parse(R"pb(
                  tasks { task: "number" hops: 2 samples: 10 }
                  tasks {
                    task: "letter"
                    hops: 1
                    samples: 5
                    checkpoints: "own"
                    scorers { name: "positional_symbolic" }
                  }
                  checkpoints: "a"
                  checkpoints: "b*"
                )pb"),
                DefaultLimits());
  ASSERT_TRUE(normal.ok()) << normal.status();
  const v1::EvalJobSpec expected = Parse(R"pb(
    tasks {
      task: "number"
      hops: 2
      added_tokens: 0
      samples: 10
      checkpoints: [ "a", "b*" ]
      scorers {
        name: "accuracy"
        params {}
      }
      window { target: 8 pre_target: 8 }
      padding: "random"
    }
    tasks {
      task: "letter"
      hops: 1
      added_tokens: 0
      samples: 5
      checkpoints: "own"
      scorers {
        name: "positional_symbolic"
        params {
          fields {
            key: "taus"
            value { list_value { values { number_value: 0.0001 } } }
          }
          fields {
            key: "queries"
            value { string_value: "last" }
          }
          fields {
            key: "mode"
            value { string_value: "auto" }
          }
          fields {
            key: "blocks"
            value { number_value: 16 }
          }
          fields {
            key: "eps"
            value { number_value: 0 }
          }
          fields {
            key: "metrics"
            value {
              list_value {
                values { string_value: "positional" }
                values { string_value: "symbolic" }
                values { string_value: "self_mass" }
              }
            }
          }
        }
      }
      window { target: 8 pre_target: 8 }
      padding: "random"
    }
    checkpoints: [ "a", "b*" ]
    scorers {
      name: "accuracy"
      params {}
    }
    seeds: 42
    dtype: DTYPE_FLOAT32
    tenant: "default"
  )pb");
  EXPECT_TRUE(MessageDifferencer::Equals(*normal, expected)) << normal->DebugString();
}

TEST(NormalizeTest, KeepsWhatIsGiven) {
  v1::EvalJobSpec spec = Sweep();
  spec.set_dtype(v1::DTYPE_FLOAT64);
  spec.set_priority(-100);
  spec.set_tenant("team-a.2");
  spec.set_deadline_s(3600);
  spec.set_fail_fast(true);
  spec.set_mixed_workers(true);
  spec.set_no_cache(true);
  spec.add_seeds(-7);
  SetTaus(&spec, {1e-4, 0.05, 1});
  spec.mutable_tasks(1)->set_padding("pairs");
  spec.mutable_tasks(1)->mutable_window()->set_target(32);
  spec.mutable_tasks(1)->mutable_window()->set_pre_target(3);
  const absl::StatusOr<v1::EvalJobSpec> normal = Normalize(spec, DefaultLimits());
  ASSERT_TRUE(normal.ok()) << normal.status();
  EXPECT_EQ(normal->name(), "length-sweep");
  EXPECT_EQ(normal->dtype(), v1::DTYPE_FLOAT64);
  EXPECT_EQ(normal->priority(), -100);
  EXPECT_EQ(normal->tenant(), "team-a.2");
  EXPECT_EQ(normal->deadline_s(), 3600);
  EXPECT_TRUE(normal->fail_fast() && normal->mixed_workers() && normal->no_cache());
  EXPECT_THAT(normal->seeds(), ElementsAre(42, -7));
  EXPECT_EQ(normal->labels().at("sweep"), "lengths");
  EXPECT_THAT(normal->tasks(0).added_tokens(), ElementsAre(0, 50, 100, 300, 850));
  EXPECT_EQ(normal->tasks(1).padding(), "pairs");
  EXPECT_EQ(normal->tasks(1).window().target(), 32);
  ASSERT_EQ(normal->tasks(1).scorers_size(), 2);
  EXPECT_EQ(normal->tasks(1).scorers(1).params().fields().at("taus").list_value().values_size(), 3);
}

TEST(NormalizeTest, TheResultNormalizesToItself) {
  for (v1::EvalJobSpec spec :
       {Sweep(), Parse("tasks { task: 'letter' hops: 3 samples: 1 checkpoints: 'x' }")}) {
    const absl::StatusOr<v1::EvalJobSpec> once = Normalize(spec, DefaultLimits());
    ASSERT_TRUE(once.ok()) << once.status();
    const absl::StatusOr<v1::EvalJobSpec> twice = Normalize(*once, DefaultLimits());
    ASSERT_TRUE(twice.ok()) << twice.status();
    EXPECT_TRUE(MessageDifferencer::Equals(*once, *twice)) << twice->DebugString();
  }
}

struct WrongSpec {
  std::string title;
  std::function<void(v1::EvalJobSpec*)> spoil;
  std::string field;
  std::string reason;
  std::string value;    // is in the value
  std::string allowed;  // is in what is allowed
};

void ExpectRefused(const WrongSpec& wrong, const v1::Limits& limits = DefaultLimits()) {
  SCOPED_TRACE(wrong.title);
  v1::EvalJobSpec spec = Sweep();
  ASSERT_TRUE(Normalize(spec, limits).ok()) << Normalize(spec, limits).status();
  wrong.spoil(&spec);
  const absl::Status status = Normalize(spec, limits).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  const std::optional<google::rpc::ErrorInfo> info = common::GetErrorInfo(status);
  ASSERT_TRUE(info.has_value()) << status;
  EXPECT_EQ(info->domain(), "hopscope.dev");
  EXPECT_EQ(info->reason(), wrong.reason) << status;
  EXPECT_EQ(info->metadata().at("field"), wrong.field) << status;
  EXPECT_THAT(info->metadata().at("value"), HasSubstr(wrong.value));
  EXPECT_THAT(info->metadata().at("allowed"), HasSubstr(wrong.allowed));
  // People see all three.
  EXPECT_THAT(std::string(status.message()), HasSubstr(wrong.field));
  EXPECT_THAT(std::string(status.message()), HasSubstr(wrong.value));
  EXPECT_THAT(std::string(status.message()), HasSubstr(wrong.allowed));
}

TEST(NormalizeTest, RefusesWrongTasks) {
  const WrongSpec wrongs[] = {
      {"no tasks", [](auto* spec) { spec->clear_tasks(); }, "spec.tasks", "FIELD_MISSING", "0",
       "1 to 1000"},
      {"too many tasks",
       [](auto* spec) {
         for (int i = 0; i < 1000; ++i) *spec->add_tasks() = spec->tasks(0);
       },
       "spec.tasks", "LIMIT_EXCEEDED", "1002", "1 to 1000"},
      {"unknown task", [](auto* spec) { spec->mutable_tasks(1)->set_task("leter"); },
       "spec.tasks[1].task", "NAME_UNKNOWN", "\"leter\"",
       "one of number, letter, index, retrieval, partial_induction, tokens; did you mean letter?"},
      {"no task name", [](auto* spec) { spec->mutable_tasks(0)->clear_task(); },
       "spec.tasks[0].task", "NAME_UNKNOWN", "\"\"",
       "one of number, letter, index, retrieval, partial_induction, tokens"},
      {"no hops", [](auto* spec) { spec->mutable_tasks(0)->clear_hops(); }, "spec.tasks[0].hops",
       "FIELD_MISSING", "empty", "at least one"},
      {"hop 0", [](auto* spec) { spec->mutable_tasks(0)->set_hops(2, 0); }, "spec.tasks[0].hops[2]",
       "VALUE_OUT_OF_RANGE", "0", "1 to 4"},
      {"hop 5", [](auto* spec) { spec->mutable_tasks(0)->set_hops(3, 5); }, "spec.tasks[0].hops[3]",
       "VALUE_OUT_OF_RANGE", "5", "1 to 4"},
      {"duplicate hops", [](auto* spec) { spec->mutable_tasks(0)->set_hops(3, 1); },
       "spec.tasks[0].hops[3]", "VALUE_DUPLICATE", "1", "once"},
      {"negative added tokens", [](auto* spec) { spec->mutable_tasks(0)->set_added_tokens(1, -1); },
       "spec.tasks[0].added_tokens[1]", "VALUE_OUT_OF_RANGE", "-1", "0 to 5000"},
      {"too many added tokens",
       [](auto* spec) { spec->mutable_tasks(0)->set_added_tokens(4, 5001); },
       "spec.tasks[0].added_tokens[4]", "VALUE_OUT_OF_RANGE", "5001", "0 to 5000"},
      {"duplicate added tokens", [](auto* spec) { spec->mutable_tasks(1)->set_added_tokens(1, 0); },
       "spec.tasks[1].added_tokens[1]", "VALUE_DUPLICATE", "0", "once"},
      {"no samples", [](auto* spec) { spec->mutable_tasks(1)->clear_samples(); },
       "spec.tasks[1].samples", "VALUE_OUT_OF_RANGE", "0", "1 to 10000000"},
      {"negative samples", [](auto* spec) { spec->mutable_tasks(0)->set_samples(-5); },
       "spec.tasks[0].samples", "VALUE_OUT_OF_RANGE", "-5", "1 to 10000000"},
      {"too many samples", [](auto* spec) { spec->mutable_tasks(0)->set_samples(10'000'001); },
       "spec.tasks[0].samples", "VALUE_OUT_OF_RANGE", "10000001", "1 to 10000000"},
      {"unknown padding", [](auto* spec) { spec->mutable_tasks(1)->set_padding("pair"); },
       "spec.tasks[1].padding", "NAME_UNKNOWN", "\"pair\"",
       "one of random, pairs, window, constant; did you mean pairs?"},
      {"padding of another task", [](auto* spec) { spec->mutable_tasks(0)->set_padding("pairs"); },
       "spec.tasks[0].padding", "NAME_UNKNOWN", "\"pairs\"", "random, window, constant"},
      {"empty window", [](auto* spec) { spec->mutable_tasks(0)->mutable_window(); },
       "spec.tasks[0].window.target", "VALUE_OUT_OF_RANGE", "0", "1 to 512"},
      {"window with a negative size",
       [](auto* spec) {
         spec->mutable_tasks(0)->mutable_window()->set_target(8);
         spec->mutable_tasks(0)->mutable_window()->set_pre_target(-8);
       },
       "spec.tasks[0].window.pre_target", "VALUE_OUT_OF_RANGE", "-8", "0 to 512"},
      {"window beyond the number task's",
       [](auto* spec) {
         spec->mutable_tasks(0)->mutable_window()->set_target(505);
         spec->mutable_tasks(0)->mutable_window()->set_pre_target(8);
       },
       "spec.tasks[0].window", "COMBINATION_UNSUPPORTED", "target 505 + pre_target 8",
       "at most 512"},
      {"window beyond the letter task's",
       [](auto* spec) {
         spec->mutable_tasks(1)->mutable_window()->set_target(500);
         spec->mutable_tasks(1)->mutable_window()->set_pre_target(13);
       },
       "spec.tasks[1].window", "COMBINATION_UNSUPPORTED", "target 500 + pre_target 13",
       "at most 512"},
      {"window size that would overflow",
       [](auto* spec) {
         spec->mutable_tasks(1)->mutable_window()->set_target(INT32_MAX);
         spec->mutable_tasks(1)->mutable_window()->set_pre_target(INT32_MAX);
       },
       "spec.tasks[1].window.target", "VALUE_OUT_OF_RANGE", "2147483647", "1 to 512"},
      {"window too small for the hops",
       [](auto* spec) {
         spec->mutable_tasks(0)->mutable_window()->set_target(8);
         spec->mutable_tasks(0)->mutable_window()->set_pre_target(2);
       },
       "spec.tasks[0].hops[3]", "COMBINATION_UNSUPPORTED", "4", "at most 3 hops"},
      {"window without free tokens to repeat",
       [](auto* spec) {
         spec->mutable_tasks(0)->mutable_window()->set_target(1);
         spec->mutable_tasks(0)->mutable_window()->set_pre_target(3);
         spec->mutable_tasks(0)->set_padding("window");
       },
       "spec.tasks[0].padding", "COMBINATION_UNSUPPORTED", "\"window\"", "with 4 hops"},
      {"digest of tokens for a task that makes its own",
       [](auto* spec) { spec->mutable_tasks(0)->set_tokens_digest("sha256:00"); },
       "spec.tasks[0].tokens_digest", "COMBINATION_UNSUPPORTED", "sha256:00", "nothing"},
      {"the same cell in two tasks",
       [](auto* spec) {
         v1::TaskSpec* task = spec->add_tasks();
         *task = spec->tasks(0);
         task->set_samples(7);
         task->clear_hops();
         task->add_hops(3);
         task->clear_added_tokens();
         task->add_added_tokens(10);
         task->add_added_tokens(850);
       },
       "spec.tasks[2]", "VALUE_DUPLICATE",
       "task number, hops 3, added_tokens 850, checkpoint \"number/step-06750\"", "spec.tasks[0]"},
  };
  for (const WrongSpec& wrong : wrongs) ExpectRefused(wrong);
}

TEST(NormalizeTest, TheSameTaskMayComeTwiceWithOtherCells) {
  v1::EvalJobSpec spec = Sweep();
  for (const char* padding : {"pairs", "window", "constant"}) {
    v1::TaskSpec* task = spec.add_tasks();
    *task = spec.tasks(1);
    task->set_padding(padding);
  }
  v1::TaskSpec* other_window = spec.add_tasks();
  *other_window = spec.tasks(1);
  other_window->mutable_window()->set_target(9);
  other_window->mutable_window()->set_pre_target(8);
  v1::TaskSpec* other_checkpoint = spec.add_tasks();
  *other_checkpoint = spec.tasks(1);
  other_checkpoint->set_checkpoints(0, "letter-43/*");
  const absl::Status status = Normalize(spec, DefaultLimits()).status();
  EXPECT_TRUE(status.ok()) << status;
}

TEST(NormalizeTest, TheSameCellThroughTheJobsCheckpointsIsADuplicateToo) {
  v1::EvalJobSpec spec = Sweep();
  spec.add_checkpoints("letter/*");
  *spec.add_tasks() = spec.tasks(1);
  spec.mutable_tasks(2)->clear_checkpoints();
  const absl::Status status = Normalize(spec, DefaultLimits()).status();
  EXPECT_EQ(common::ErrorReason(status), "VALUE_DUPLICATE") << status;
}

std::vector<std::string> ScorerNames() {
  std::vector<std::string> names;
  for (const v1::ScorerCapability& scorer : Scorers()) names.push_back(scorer.name());
  return names;
}

TEST(NormalizeTest, RefusesWrongScorers) {
  using google::protobuf::NULL_VALUE;
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const auto taus = [](const std::vector<double>& values) {
    return [values](auto* spec) { SetTaus(spec, values); };
  };
  std::vector<double> seventeen;
  for (int i = 1; i <= 17; ++i) seventeen.push_back(i);
  const WrongSpec wrongs[] = {
      {"unknown scorer", [](auto* spec) { spec->mutable_scorers(0)->set_name("acuracy"); },
       "spec.scorers[0].name", "NAME_UNKNOWN", "\"acuracy\"", OneOf("acuracy", ScorerNames())},
      {"unknown scorer of a task",
       [](auto* spec) { spec->mutable_tasks(1)->add_scorers()->set_name("magic"); },
       "spec.tasks[1].scorers[0].name", "NAME_UNKNOWN", "\"magic\"", OneOf("magic", ScorerNames())},
      {"duplicate scorer", [](auto* spec) { spec->add_scorers()->set_name("accuracy"); },
       "spec.scorers[2]", "VALUE_DUPLICATE", "\"accuracy\"", "spec.scorers[0]"},
      {"duplicate scorer by its defaults",
       [](auto* spec) { spec->add_scorers()->set_name("positional_symbolic"); }, "spec.scorers[2]",
       "VALUE_DUPLICATE", "\"positional_symbolic\"", "spec.scorers[1]"},
      {"one tau in two scorers",
       [](auto* spec) {
         *spec->add_scorers() = spec->scorers(1);
         SetTaus(spec, {0.5, 1e-4});
       },
       "spec.scorers[2]", "VALUE_DUPLICATE", "\"positional_symbolic\"", "spec.scorers[1]"},
      {"one result by two modes",
       [](auto* spec) {
         *spec->add_scorers() = spec->scorers(1);
         (*spec->mutable_scorers(2)->mutable_params()->mutable_fields())["mode"].set_string_value(
             "tokens");
       },
       "spec.scorers[2]", "VALUE_DUPLICATE", "\"positional_symbolic\"", "spec.scorers[1]"},
      {"every query of long sequences",
       [](auto* spec) {
         Param(spec, "queries")->set_string_value("all");
         spec->mutable_tasks(1)->set_added_tokens(1, 600);
       },
       "spec.scorers[1].params.queries", "LIMIT_EXCEEDED", "\"all\"",
       "n^3 / 6 = 1.1e+08 pairs of keys"},
      {"every query of long sequences, by a task's own scorer",
       [](auto* spec) {
         *spec->mutable_tasks(1)->add_scorers() = spec->scorers(1);
         (*spec->mutable_tasks(1)
               ->mutable_scorers(0)
               ->mutable_params()
               ->mutable_fields())["queries"]
             .set_string_value("all");
         spec->mutable_tasks(1)->set_added_tokens(1, 600);
       },
       "spec.tasks[1].scorers[0].params.queries", "LIMIT_EXCEEDED", "\"all\"",
       "n^3 / 6 = 3.9e+07 pairs of keys"},
      {"too many scorers",
       [](auto* spec) {
         for (int i = 0; i < 15; ++i) spec->add_scorers()->set_name("accuracy");
       },
       "spec.scorers", "LIMIT_EXCEEDED", "17", "at most 16"},
      {"unknown parameter", [](auto* spec) { Param(spec, "tau")->set_number_value(1); },
       "spec.scorers[1].params.tau", "NAME_UNKNOWN", "\"tau\"",
       "one of taus, queries, mode, blocks, eps, metrics; did you mean taus?"},
      {"parameter of a scorer that takes none",
       [](auto* spec) {
         (*spec->mutable_scorers(0)->mutable_params()->mutable_fields())["k"].set_number_value(1);
       },
       "spec.scorers[0].params.k", "NAME_UNKNOWN", "\"k\"", "takes no parameters"},
      {"the first of two unknown parameters by name",
       [](auto* spec) {
         Param(spec, "zeta")->set_number_value(1);
         Param(spec, "alpha")->set_number_value(1);
       },
       "spec.scorers[1].params.alpha", "NAME_UNKNOWN", "\"alpha\"", "taus"},
      {"number for a list", [](auto* spec) { Param(spec, "taus")->set_number_value(0.5); },
       "spec.scorers[1].params.taus", "TYPE_MISMATCH", "0.5", "a list"},
      {"text for a list", [](auto* spec) { Param(spec, "taus")->set_string_value("1e-4"); },
       "spec.scorers[1].params.taus", "TYPE_MISMATCH", "\"1e-4\"", "a list"},
      {"null for a list", [](auto* spec) { Param(spec, "taus")->set_null_value(NULL_VALUE); },
       "spec.scorers[1].params.taus", "TYPE_MISMATCH", "null", "a list"},
      {"nothing for a list", [](auto* spec) { Param(spec, "taus")->Clear(); },
       "spec.scorers[1].params.taus", "TYPE_MISMATCH", "nothing", "a list"},
      {"text in a list of numbers",
       [](auto* spec) {
         Param(spec, "taus")->mutable_list_value()->add_values()->set_string_value("x");
       },
       "spec.scorers[1].params.taus[1]", "TYPE_MISMATCH", "\"x\"", "a number"},
      {"no tau", taus({}), "spec.scorers[1].params.taus", "FIELD_MISSING", "a list of 0",
       "1 to 16 different finite numbers above 0"},
      {"too many taus", taus(seventeen), "spec.scorers[1].params.taus", "LIMIT_EXCEEDED",
       "a list of 17", "1 to 16"},
      {"tau 0", taus({1, 0}), "spec.scorers[1].params.taus[1]", "VALUE_OUT_OF_RANGE", "0",
       "above 0"},
      {"negative tau", taus({-1e-4}), "spec.scorers[1].params.taus[0]", "VALUE_OUT_OF_RANGE",
       "-0.0001", "above 0"},
      {"NaN for tau", taus({nan}), "spec.scorers[1].params.taus[0]", "VALUE_OUT_OF_RANGE", "nan",
       "finite"},
      {"infinite tau", taus({infinity}), "spec.scorers[1].params.taus[0]", "VALUE_OUT_OF_RANGE",
       "inf", "finite"},
      {"duplicate tau", taus({1, 2, 1}), "spec.scorers[1].params.taus[2]", "VALUE_DUPLICATE", "1",
       "once"},
      {"unknown queries", [](auto* spec) { Param(spec, "queries")->set_string_value("laste"); },
       "spec.scorers[1].params.queries", "NAME_UNKNOWN", "\"laste\"", "one of last"},
      {"queries of the wrong type",
       [](auto* spec) { Param(spec, "queries")->set_bool_value(true); },
       "spec.scorers[1].params.queries", "TYPE_MISMATCH", "true", "a text, one of last"},
      {"unknown mode", [](auto* spec) { Param(spec, "mode")->set_string_value("block"); },
       "spec.scorers[1].params.mode", "NAME_UNKNOWN", "\"block\"",
       "one of auto, tokens, blocks; did you mean blocks?"},
      {"one block", [](auto* spec) { Param(spec, "blocks")->set_number_value(1); },
       "spec.scorers[1].params.blocks", "VALUE_OUT_OF_RANGE", "1", "a whole number from 2 to 256"},
      {"negative eps", [](auto* spec) { Param(spec, "eps")->set_number_value(-1e-8); },
       "spec.scorers[1].params.eps", "VALUE_OUT_OF_RANGE", "-1e-08", "a number from 0 to 1"},
      {"unknown metric",
       [](auto* spec) {
         Param(spec, "metrics")->mutable_list_value()->add_values()->set_string_value("entropy");
       },
       "spec.scorers[1].params.metrics[0]", "NAME_UNKNOWN", "\"entropy\"", "one of positional"},
      {"mode of the wrong type", [](auto* spec) { Param(spec, "mode")->mutable_struct_value(); },
       "spec.scorers[1].params.mode", "TYPE_MISMATCH", "a map of 0", "a text"},
  };
  for (const WrongSpec& wrong : wrongs) ExpectRefused(wrong);
}

TEST(NormalizeTest, AScorerMayComeTwiceWithOtherTaus) {
  v1::EvalJobSpec spec = Sweep();
  *spec.add_scorers() = spec.scorers(1);
  SetTaus(&spec, {0.05, 1});
  const absl::Status status = Normalize(spec, DefaultLimits()).status();
  EXPECT_TRUE(status.ok()) << status;
}

TEST(NormalizeTest, RefusesWrongJobFields) {
  const std::string long_text(64, 'a');
  const WrongSpec wrongs[] = {
      {"long name", [](auto* spec) { spec->set_name(std::string(201, 'n')); }, "spec.name",
       "LIMIT_EXCEEDED", "201 bytes", "at most 200 bytes"},
      {"name that is not UTF-8", [](auto* spec) { spec->set_name("a\xff"); }, "spec.name",
       "TEXT_INVALID", "a", "UTF-8"},
      {"name with a line break", [](auto* spec) { spec->set_name("a\nb"); }, "spec.name",
       "TEXT_INVALID", "\"a\\nb\"", "control characters"},
      {"duplicate seeds", [](auto* spec) { spec->add_seeds(42); }, "spec.seeds[1]",
       "VALUE_DUPLICATE", "42", "once"},
      {"no checkpoints", [](auto* spec) { spec->mutable_tasks(1)->clear_checkpoints(); },
       "spec.tasks[1].checkpoints", "FIELD_MISSING", "empty", "spec.checkpoints"},
      {"empty checkpoint", [](auto* spec) { spec->mutable_tasks(1)->set_checkpoints(0, ""); },
       "spec.tasks[1].checkpoints[0]", "FIELD_MISSING", "\"\"", "folder or glob"},
      {"empty checkpoint of the job", [](auto* spec) { spec->add_checkpoints(""); },
       "spec.checkpoints[0]", "FIELD_MISSING", "\"\"", "folder or glob"},
      {"duplicate checkpoints",
       [](auto* spec) {
         spec->add_checkpoints("a");
         spec->add_checkpoints("b");
         spec->add_checkpoints("a");
       },
       "spec.checkpoints[2]", "VALUE_DUPLICATE", "\"a\"", "once"},
      {"duplicate checkpoints of a task",
       [](auto* spec) { spec->mutable_tasks(1)->add_checkpoints("letter/*"); },
       "spec.tasks[1].checkpoints[1]", "VALUE_DUPLICATE", "\"letter/*\"", "once"},
      {"long checkpoint",
       [](auto* spec) { spec->mutable_tasks(1)->set_checkpoints(0, std::string(1025, 'c')); },
       "spec.tasks[1].checkpoints[0]", "LIMIT_EXCEEDED", "1025 bytes", "at most 1024"},
      {"checkpoint with a control character",
       [](auto* spec) { spec->mutable_tasks(1)->set_checkpoints(0, std::string("a\0b", 3)); },
       "spec.tasks[1].checkpoints[0]", "TEXT_INVALID", "\"a\\000b\"", "control characters"},
      {"too many labels",
       [](auto* spec) {
         for (int i = 0; i < 32; ++i)
           (*spec->mutable_labels())[absl::StrCat("k", i)] = std::string("v");
       },
       "spec.labels", "LIMIT_EXCEEDED", "33", "at most 32"},
      {"long label key",
       [&](auto* spec) { (*spec->mutable_labels())[long_text] = std::string("v"); }, "spec.labels",
       "TEXT_INVALID", long_text, "1 to 63"},
      {"empty label key", [](auto* spec) { (*spec->mutable_labels())[""] = std::string("v"); },
       "spec.labels", "TEXT_INVALID", "\"\"", "1 to 63"},
      {"label key with a space",
       [](auto* spec) { (*spec->mutable_labels())["a b"] = std::string("v"); }, "spec.labels",
       "TEXT_INVALID", "\"a b\"", "letters, digits"},
      {"long label value", [&](auto* spec) { (*spec->mutable_labels())["sweep"] = long_text; },
       "spec.labels[sweep]", "LIMIT_EXCEEDED", "64 bytes", "at most 63"},
      {"label value with a control character",
       [](auto* spec) { (*spec->mutable_labels())["sweep"] = std::string(1, 1); },
       "spec.labels[sweep]", "TEXT_INVALID", "\\001", "control characters"},
      {"unknown dtype", [](auto* spec) { spec->set_dtype(static_cast<v1::Dtype>(9)); },
       "spec.dtype", "VALUE_OUT_OF_RANGE", "9", "DTYPE_FLOAT32"},
      {"priority too high", [](auto* spec) { spec->set_priority(101); }, "spec.priority",
       "VALUE_OUT_OF_RANGE", "101", "-100 to 100"},
      {"priority too low", [](auto* spec) { spec->set_priority(INT32_MIN); }, "spec.priority",
       "VALUE_OUT_OF_RANGE", "-2147483648", "-100 to 100"},
      {"negative deadline", [](auto* spec) { spec->set_deadline_s(-1); }, "spec.deadline_s",
       "VALUE_OUT_OF_RANGE", "-1", "0 (none)"},
      {"NaN deadline", [](auto* spec) { spec->set_deadline_s(std::nan("")); }, "spec.deadline_s",
       "VALUE_OUT_OF_RANGE", "nan", "0 (none)"},
      {"infinite deadline",
       [](auto* spec) { spec->set_deadline_s(std::numeric_limits<double>::infinity()); },
       "spec.deadline_s", "VALUE_OUT_OF_RANGE", "inf", "0 (none)"},
      {"tenant with a slash", [](auto* spec) { spec->set_tenant("a/b"); }, "spec.tenant",
       "TEXT_INVALID", "\"a/b\"", "letters, digits"},
      {"tenant that begins with a dot", [](auto* spec) { spec->set_tenant(".a"); }, "spec.tenant",
       "TEXT_INVALID", "\".a\"", "beginning with a letter or digit"},
      {"long tenant", [&](auto* spec) { spec->set_tenant(long_text); }, "spec.tenant",
       "TEXT_INVALID", "aaa", "1 to 63"},
  };
  for (const WrongSpec& wrong : wrongs) ExpectRefused(wrong);
}

TEST(NormalizeTest, CountsCellsBeforeItExpandsThem) {
  v1::Limits limits;
  limits.set_max_cells_per_job(28);  // 4 x 5 x 1 + 4 x 2 x 1
  ASSERT_TRUE(Normalize(Sweep(), limits).ok());
  ExpectRefused({"another seed", [](auto* spec) { spec->add_seeds(1); }, "spec", "LIMIT_EXCEEDED",
                 "56 cells", "at most 28 cells"},
                limits);
  ExpectRefused(
      {"another checkpoint", [](auto* spec) { spec->mutable_tasks(1)->add_checkpoints("x"); },
       "spec", "LIMIT_EXCEEDED", "36 cells", "at most 28 cells"},
      limits);
  v1::Limits units;
  units.set_max_units_per_job(28);
  ExpectRefused({"a unit for each cell", [](auto* spec) { spec->add_seeds(1); }, "spec",
                 "LIMIT_EXCEEDED", "56 cells", "at most 28 units"},
                units);
}

// 4 x 5,001 x 40,000 x 40,000 x 5 tasks: beyond 2^32 cells, and terabytes if it were expanded.
TEST(NormalizeTest, HugeMatricesAreRefusedWithoutBeingBuilt) {
  v1::EvalJobSpec spec;
  for (int i = 0; i < 5; ++i) {
    v1::TaskSpec* task = spec.add_tasks();
    task->set_task("number");
    task->set_samples(10'000'000);
    for (int hops = 1; hops <= 4; ++hops) task->add_hops(hops);
    for (int added = 0; added <= 5000; ++added) task->add_added_tokens(added);
  }
  for (int i = 0; i < 40000; ++i) {
    spec.add_seeds(i);
    spec.add_checkpoints(absl::StrCat("c", i));
  }
  const absl::Status status = Normalize(spec, DefaultLimits()).status();
  EXPECT_EQ(common::ErrorReason(status), "LIMIT_EXCEEDED") << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat(int64_t{4} * 5001 * 40000 * 40000 * 5)));
}

TEST(NormalizeTest, ASpecThatItsDefaultsMakeTooLongIsRefused) {
  v1::EvalJobSpec spec = Parse("tasks { task: 'letter' hops: 1 samples: 1 }");
  for (int added = 1; added < 100; ++added) {
    v1::TaskSpec* task = spec.add_tasks();
    *task = spec.tasks(0);
    task->add_added_tokens(added);
  }
  for (int i = 0; i < 100; ++i) {
    spec.add_checkpoints(absl::StrCat(std::string(500, 'c'), i));
  }
  EXPECT_LT(spec.ByteSizeLong(), 60'000u);
  const absl::Status status = Normalize(spec, DefaultLimits()).status();
  EXPECT_EQ(common::ErrorReason(status), "LIMIT_EXCEEDED") << status;
  EXPECT_EQ(common::GetErrorInfo(status)->metadata().at("field"), "spec");
}

TEST(NormalizeTest, LimitsOfTheServerAreAppliedInPlaceOfTheDefaults) {
  v1::Limits limits;
  limits.set_max_added_tokens(900);
  limits.set_max_samples_per_cell(1200);
  ASSERT_TRUE(Normalize(Sweep(), limits).ok());
  ExpectRefused(
      {"added tokens", [](auto* spec) { spec->mutable_tasks(0)->set_added_tokens(0, 901); },
       "spec.tasks[0].added_tokens[0]", "VALUE_OUT_OF_RANGE", "901", "0 to 900"},
      limits);
  ExpectRefused({"samples", [](auto* spec) { spec->mutable_tasks(1)->set_samples(1201); },
                 "spec.tasks[1].samples", "VALUE_OUT_OF_RANGE", "1201", "1 to 1200"},
                limits);
}

// A task of uploaded sequences.
v1::EvalJobSpec TokensSpec() {
  v1::EvalJobSpec spec;
  v1::TaskSpec* task = spec.add_tasks();
  task->set_task("tokens");
  task->set_tokens_digest("sha256:" + std::string(64, 'a'));
  task->add_checkpoints("letter/step-06750");
  return spec;
}

TEST(NormalizeTest, SequencesOfTheUsersOwnHaveOneHopAndNothingAdded) {
  const auto normal = Normalize(TokensSpec(), {});
  ASSERT_TRUE(normal.ok()) << normal.status();
  EXPECT_THAT(normal->tasks(0).hops(), ::testing::ElementsAre(1));
  EXPECT_THAT(normal->tasks(0).added_tokens(), ::testing::ElementsAre(0));
  EXPECT_EQ(normal->tasks(0).samples(), 0);
  EXPECT_FALSE(normal->tasks(0).has_window());
  EXPECT_EQ(normal->tasks(0).padding(), "");
  EXPECT_EQ(Normalize(*normal, {})->SerializeAsString(), normal->SerializeAsString());
  v1::EvalJobSpec two = TokensSpec();
  *two.add_tasks() = two.tasks(0);
  EXPECT_EQ(common::ErrorReason(Normalize(two, {}).status()), "VALUE_DUPLICATE");
  two.mutable_tasks(1)->set_tokens_digest("sha256:" + std::string(64, 'b'));
  EXPECT_TRUE(Normalize(two, {}).ok());
}

TEST(NormalizeTest, RefusesWhatSequencesOfTheUsersOwnCannotHave) {
  struct Case {
    const char* field;
    void (*spoil)(v1::EvalJobSpec*);
  };
  const Case cases[] = {
      {"spec.tasks[0].hops", [](auto* spec) { spec->mutable_tasks(0)->add_hops(2); }},
      {"spec.tasks[0].added_tokens",
       [](auto* spec) { spec->mutable_tasks(0)->add_added_tokens(5); }},
      {"spec.tasks[0].window",
       [](auto* spec) { spec->mutable_tasks(0)->mutable_window()->set_target(8); }},
      {"spec.tasks[0].padding", [](auto* spec) { spec->mutable_tasks(0)->set_padding("random"); }},
      {"spec.tasks[0].samples", [](auto* spec) { spec->mutable_tasks(0)->set_samples(-1); }},
      {"spec.tasks[0].tokens_digest",
       [](auto* spec) { spec->mutable_tasks(0)->clear_tokens_digest(); }},
      {"spec.tasks[0].tokens_digest",
       [](auto* spec) { spec->mutable_tasks(0)->set_tokens_digest("sha256:AB"); }},
      {"spec.tasks[0].scorers",
       [](auto* spec) { spec->add_scorers()->set_name("accuracy_by_position"); }},
      {"spec.tasks[0].scorers",
       [](auto* spec) {
         v1::ScorerSpec* ablation = spec->add_scorers();
         ablation->set_name("ablation");
         (*ablation->mutable_params()->mutable_fields())["kinds"]
             .mutable_list_value()
             ->add_values()
             ->set_string_value("mean");
       }},
  };
  for (const Case& one : cases) {
    v1::EvalJobSpec spec = TokensSpec();
    one.spoil(&spec);
    const absl::Status status = Normalize(spec, {}).status();
    ASSERT_TRUE(common::GetErrorInfo(status).has_value()) << one.field;
    EXPECT_EQ(common::GetErrorInfo(status)->metadata().at("field"), one.field) << status;
  }
}

}  // namespace
}  // namespace hopscope::spec
