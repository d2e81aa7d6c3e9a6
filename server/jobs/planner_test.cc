#include "server/jobs/planner.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/spec/catalog.h"
#include "common/spec/testing/ablation_spec.h"
#include "common/spec/validate.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::jobs {
namespace {

using checkpoint::testing::GptJ;
using checkpoint::testing::TempFolder;
using checkpoint::testing::WriteCheckpoint;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A GPT-2 model, which has learned positions.
void WriteGpt2(const TempFolder& folder, const std::string& name, int64_t n_positions) {
  constexpr int64_t kModel = 4;
  constexpr int64_t kVocabulary = 137;
  folder.Write(
      absl::StrCat(name, "/config.json"),
      absl::StrCat(R"({"model_type": "gpt2", "n_layer": 1, "n_head": 1, "n_embd": )", kModel,
                   R"(, "vocab_size": )", kVocabulary, R"(, "n_positions": )", n_positions, "}"));
  std::vector<checkpoint::testing::Tensor> tensors;
  const auto add = [&tensors](const std::string& tensor, std::vector<int64_t> shape) {
    int64_t size = 1;
    for (const int64_t axis : shape) size *= axis;
    tensors.push_back({.name = tensor,
                       .shape = std::move(shape),
                       .bytes = checkpoint::testing::Float32Bytes(std::vector<float>(size))});
  };
  add("transformer.wte.weight", {kVocabulary, kModel});
  add("transformer.wpe.weight", {n_positions, kModel});
  for (const char* norm : {"h.0.ln_1", "h.0.ln_2", "ln_f"}) {
    add(absl::StrCat("transformer.", norm, ".weight"), {kModel});
    add(absl::StrCat("transformer.", norm, ".bias"), {kModel});
  }
  const auto linear = [&add](const std::string& layer, int64_t in, int64_t out) {
    add(absl::StrCat("transformer.h.0.", layer, ".weight"), {in, out});
    add(absl::StrCat("transformer.h.0.", layer, ".bias"), {out});
  };
  linear("attn.c_attn", kModel, 3 * kModel);
  linear("attn.c_proj", kModel, kModel);
  linear("mlp.c_fc", kModel, 4 * kModel);
  linear("mlp.c_proj", 4 * kModel, kModel);
  folder.Write(absl::StrCat(name, "/model.safetensors"),
               checkpoint::testing::SafetensorsFile(tensors));
}

class PlannerTest : public ::testing::Test {
 protected:
  PlannerTest() {
    WriteCheckpoint(folder_, "number", GptJ{.n_positions = 20, .vocab_size = 137});
    WriteCheckpoint(folder_, "letter", GptJ{.vocab_size = 129});
    for (const int step : {1, 2, 10}) {
      WriteCheckpoint(folder_, absl::StrCat("series/step-", step),
                      GptJ{.vocab_size = 137, .seed = static_cast<uint32_t>(step)});
    }
    WriteGpt2(folder_, "learned", 64);
    folder_.Write("broken/config.json", "{");
    folder_.Write("broken/model.safetensors", "");
    models_ = *checkpoint::ModelRoot::Open(folder_.path());
  }

  static v1::EvalJobSpec Spec(const std::vector<std::string>& checkpoints,
                              const std::string& task_name = "number") {
    v1::EvalJobSpec spec;
    v1::TaskSpec* task = spec.add_tasks();
    task->set_task(task_name);
    task->add_hops(1);
    task->set_samples(100);
    for (const std::string& checkpoint : checkpoints) task->add_checkpoints(checkpoint);
    return spec;
  }

  absl::StatusOr<Plan> Make(const v1::EvalJobSpec& spec) {
    const auto normalised = spec::Normalize(spec, limits_);
    EXPECT_TRUE(normalised.ok()) << normalised.status();
    return MakePlan(*normalised, *models_, limits_, /*digests=*/true);
  }

  static std::vector<std::string> CellNames(const Plan& plan) {
    std::vector<std::string> names;
    for (const store::CellRow& cell : plan.cells) {
      EXPECT_EQ(cell.index, static_cast<int32_t>(names.size()));
      names.push_back(absl::StrCat(plan.job.spec.tasks(cell.task).task(), " ",
                                   plan.job.checkpoints[cell.checkpoint].ref.name(), " ", cell.hops,
                                   " +", cell.added_tokens, " #", cell.seed));
    }
    return names;
  }

  TempFolder folder_;
  v1::Limits limits_ = spec::DefaultLimits();
  std::unique_ptr<checkpoint::ModelRoot> models_;
};

TEST_F(PlannerTest, AScorerThatACheckpointCannotHaveIsRefused) {
  v1::EvalJobSpec spec = Spec({"number", "learned"});
  spec.add_scorers()->set_name("logit_gap");
  spec.add_scorers()->set_name("frequency_use");
  const absl::Status status = Make(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(common::ErrorReason(status), "POSITIONS_NOT_ROTARY");
  EXPECT_EQ(common::GetErrorInfo(status)->metadata().at("field"), "spec.tasks[0].scorers[1]");
  EXPECT_THAT(status.message(), HasSubstr("learned"));
  spec.mutable_tasks(0)->mutable_checkpoints()->RemoveLast();
  EXPECT_TRUE(Make(spec).ok()) << Make(spec).status();
}

TEST_F(PlannerTest, ValuesOfPlanesCountInTheSizeOfResults) {
  v1::EvalJobSpec one = Spec({"number"});
  one.add_scorers()->set_name("logit_gap");  // three metrics
  v1::EvalJobSpec planes = Spec({"number"});
  planes.add_scorers()->set_name("frequency_use");  // one, of two planes
  const auto bytes = [this](const v1::EvalJobSpec& spec) {
    return Make(spec)->job.estimate.result_bytes();
  };
  const int64_t base = bytes(Spec({"number"}));
  EXPECT_EQ(3 * (bytes(planes) - base), 2 * (bytes(one) - base));
}

TEST_F(PlannerTest, CellsComeInTheDocumentedOrder) {
  v1::EvalJobSpec spec = Spec({"series", "number"});
  spec.mutable_tasks(0)->add_hops(3);
  spec.mutable_tasks(0)->add_added_tokens(10);
  spec.mutable_tasks(0)->add_added_tokens(0);
  spec.add_seeds(7);
  spec.add_seeds(5);
  *spec.add_tasks() = Spec({"letter"}, "letter").tasks(0);
  const auto plan = Make(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<std::string> names = CellNames(*plan);
  ASSERT_THAT(names, SizeIs(4 * 2 * 2 * 2 + 2));
  EXPECT_EQ(names[0], "number series/step-1 1 +10 #7");
  EXPECT_EQ(names[1], "number series/step-1 1 +10 #5");
  EXPECT_EQ(names[2], "number series/step-1 1 +0 #7");
  EXPECT_EQ(names[4], "number series/step-1 3 +10 #7");
  EXPECT_EQ(names[8], "number series/step-2 1 +10 #7");
  EXPECT_EQ(names[16], "number series/step-10 1 +10 #7");
  EXPECT_EQ(names[24], "number number 1 +10 #7");
  EXPECT_EQ(names[32], "letter letter 1 +0 #7");
  EXPECT_EQ(names[33], "letter letter 1 +0 #5");
  EXPECT_THAT(plan->job.checkpoints, SizeIs(5));
  EXPECT_EQ(plan->job.checkpoints[3].ref.name(), "number");
  EXPECT_EQ(plan->job.checkpoints[3].ref.digest(), *models_->Digest("number"));
  EXPECT_EQ(plan->job.checkpoints[3].family, "gptj");
  EXPECT_EQ(plan->job.checkpoints[3].layers, 2);
  EXPECT_EQ(plan->job.checkpoints[3].heads, 2);
  EXPECT_GT(plan->job.checkpoints[3].weight_bytes, 0);
}

TEST_F(PlannerTest, WeightsTakeWhatTheFormatOfTheJobTakes) {
  v1::EvalJobSpec spec = Spec({"number"});
  const auto bytes = [&](v1::Dtype dtype) {
    spec.set_dtype(dtype);
    const auto plan = Make(spec);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? plan->job.checkpoints[0].weight_bytes : 0;
  };
  const int64_t float32 = bytes(v1::DTYPE_FLOAT32);
  EXPECT_GT(float32, 0);
  EXPECT_EQ(bytes(v1::DTYPE_FLOAT64), 2 * float32);
  EXPECT_EQ(2 * bytes(v1::DTYPE_BFLOAT16), float32);
  EXPECT_EQ(2 * bytes(v1::DTYPE_FLOAT16), float32);
}

TEST_F(PlannerTest, UnitsHaveAboutTheSameCostAndDependOnTheCellAlone) {
  v1::EvalJobSpec spec = Spec({"number"});
  spec.mutable_tasks(0)->set_samples(100'000);
  for (const int added : {0, 500, 2000, 5000}) spec.mutable_tasks(0)->add_added_tokens(added);
  const auto plan = Make(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  int64_t units = 0;
  for (const store::CellRow& cell : plan->cells) {
    const double unit_flops = cell.flops_per_item * static_cast<double>(cell.items_per_unit);
    if (cell.units() > 1) {
      EXPECT_LE(unit_flops, kUnitFlops);
      EXPECT_GT(unit_flops, 0.9 * kUnitFlops);
    }
    units += cell.units();
  }
  EXPECT_GT(plan->cells[3].units(), 1000);
  const v1::PlanEstimate& estimate = plan->job.estimate;
  EXPECT_EQ(estimate.cells(), 4);
  EXPECT_EQ(estimate.units(), units);
  EXPECT_EQ(estimate.sequences(), 400'000);
  EXPECT_EQ(estimate.tokens(), 100'000 * (4 * 17 + 7500));
  double flops = 0;
  for (const store::CellRow& cell : plan->cells) flops += cell.flops_per_item * 100'000;
  EXPECT_DOUBLE_EQ(estimate.flops(), flops);

  // The same cell among others is cut alike.
  const auto again = Make(spec);
  spec.mutable_tasks(0)->clear_added_tokens();
  spec.mutable_tasks(0)->add_added_tokens(2000);
  const auto alone = Make(spec);
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(again->cells[2].items_per_unit, plan->cells[2].items_per_unit);
  EXPECT_EQ(alone->cells[0].items_per_unit, plan->cells[2].items_per_unit);
}

TEST_F(PlannerTest, ScoresAddToTheCostAndToTheResults) {
  v1::EvalJobSpec spec = Spec({"number"});
  spec.mutable_tasks(0)->add_added_tokens(1000);
  const auto plain = Make(spec);
  v1::ScorerSpec* scores = spec.add_scorers();
  scores->set_name("positional_symbolic");
  (*scores->mutable_params()->mutable_fields())["mode"].set_string_value("tokens");
  const auto scored = Make(spec);
  auto* taus = (*scores->mutable_params()->mutable_fields())["taus"].mutable_list_value();
  taus->add_values()->set_number_value(1e-4);
  taus->add_values()->set_number_value(0.1);
  const auto twice = Make(spec);
  ASSERT_TRUE(plain.ok() && scored.ok() && twice.ok());
  // At n keys, about n^2 swaps a layer and head: 2 layers of 2 heads, n = 1016.
  const double extra = scored->cells[0].flops_per_item - plain->cells[0].flops_per_item;
  EXPECT_GT(extra, 4 * 1016.0 * 1016.0);
  EXPECT_LT(extra, 4 * 1016.0 * 1016.0 * 100);
  EXPECT_GT(twice->cells[0].flops_per_item, scored->cells[0].flops_per_item);
  EXPECT_GT(scored->job.estimate.result_bytes(), plain->job.estimate.result_bytes());
  EXPECT_GT(twice->job.estimate.result_bytes(), scored->job.estimate.result_bytes());
}

TEST_F(PlannerTest, TheCostOfScoresFollowsWhatTheyAskFor) {
  const auto cost = [this](const std::string& param, const google::protobuf::Value& value,
                           int32_t hops, int32_t added) {
    v1::EvalJobSpec spec = Spec({"number"});
    spec.mutable_tasks(0)->set_hops(0, hops);
    spec.mutable_tasks(0)->add_added_tokens(added);
    v1::ScorerSpec* scores = spec.add_scorers();
    scores->set_name("positional_symbolic");
    (*scores->mutable_params()->mutable_fields())[param] = value;
    const auto plan = Make(spec);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan->cells[0].flops_per_item;
  };
  const auto text = [](const std::string& value) {
    google::protobuf::Value result;
    result.set_string_value(value);
    return result;
  };
  google::protobuf::Value centred;
  centred.mutable_list_value()->add_values()->set_string_value("positional_centred");
  // Long sequences have their blocks swapped.
  EXPECT_EQ(cost("mode", text("auto"), 1, 1000), cost("mode", text("blocks"), 1, 1000));
  EXPECT_EQ(cost("mode", text("auto"), 1, 10), cost("mode", text("tokens"), 1, 10));
  EXPECT_LT(cost("mode", text("blocks"), 1, 1000), cost("mode", text("tokens"), 1, 1000));
  EXPECT_LT(cost("queries", text("last"), 3, 10), cost("queries", text("hops"), 3, 10));
  EXPECT_LT(cost("queries", text("hops"), 1, 10), cost("queries", text("hops"), 3, 10));
  EXPECT_LT(cost("queries", text("hops"), 3, 10), cost("queries", text("all"), 3, 10));
  EXPECT_LT(cost("mode", text("auto"), 1, 10), cost("metrics", centred, 1, 10));
}

TEST_F(PlannerTest, ACheckpointCountsOnceInATaskEntry) {
  const auto plan = Make(Spec({"series/step-1", "series/*", "series", "**/step-1*"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(CellNames(*plan),
              ElementsAre("number series/step-1 1 +0 #42", "number series/step-2 1 +0 #42",
                          "number series/step-10 1 +0 #42"));
  v1::EvalJobSpec two_entries = Spec({"number"});
  *two_entries.add_tasks() = two_entries.tasks(0);
  two_entries.mutable_tasks(1)->set_hops(0, 2);
  const auto twice = Make(two_entries);
  ASSERT_TRUE(twice.ok()) << twice.status();
  EXPECT_THAT(twice->cells, SizeIs(2));
  EXPECT_THAT(twice->job.checkpoints, SizeIs(1));
}

TEST_F(PlannerTest, TwoTaskEntriesDoNotShareACell) {
  v1::EvalJobSpec spec = Spec({"series/*"});
  *spec.add_tasks() = Spec({"number", "series/step-2"}).tasks(0);
  const absl::Status status = Make(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(common::ErrorReason(status), "VALUE_DUPLICATE");
  EXPECT_EQ(common::GetErrorInfo(status)->metadata().at("field"), "spec.tasks[1]");
  EXPECT_THAT(std::string(status.message()), HasSubstr("series/step-2"));
  spec.mutable_tasks(1)->set_padding("constant");
  EXPECT_TRUE(Make(spec).ok()) << Make(spec).status();
}

TEST_F(PlannerTest, AnotherVocabularyThatIsLargeEnoughBringsAWarning) {
  EXPECT_THAT(Make(Spec({"number"}))->job.warnings, IsEmpty());
  EXPECT_THAT(Make(Spec({"letter"}, "letter"))->job.warnings, IsEmpty());
  const auto plan = Make(Spec({"number", "num*"}, "letter"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->job.warnings, SizeIs(1));
  EXPECT_THAT(plan->job.warnings[0], HasSubstr("137"));
  EXPECT_THAT(plan->job.warnings[0], HasSubstr("129"));
}

TEST_F(PlannerTest, EveryCheckpointMustHaveTheHeadsOfAnAblation) {
  v1::EvalJobSpec spec = Spec({"number", "learned"});
  *spec.mutable_tasks(0)->add_scorers() = spec::testing::AblationSpec({"zero"}, {"0.0"});
  EXPECT_TRUE(Make(spec).ok()) << Make(spec).status();
  *spec.mutable_tasks(0)->mutable_scorers(0) =
      spec::testing::AblationSpec({"zero"}, {"0.0", "1.*"});
  const absl::Status status = Make(spec).status();
  EXPECT_EQ(common::ErrorReason(status), "VALUE_OUT_OF_RANGE");
  EXPECT_EQ(common::GetErrorInfo(status)->metadata().at("field"),
            "spec.tasks[0].scorers[0].params.heads[1]");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("checkpoint \"learned\" has: layers 0 to 0"));
}

TEST_F(PlannerTest, AnAblationOfLearnedPositionsBringsAWarning) {
  v1::EvalJobSpec spec = Spec({"number", "learned"});
  *spec.mutable_tasks(0)->add_scorers() = spec::testing::AblationSpec({"symbolic_only"});
  const auto plan = Make(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->job.warnings, SizeIs(1));
  EXPECT_THAT(plan->job.warnings[0], HasSubstr("checkpoint \"learned\" adds positions"));
}

TEST_F(PlannerTest, UnitsShrinkAsAblationsGrow) {
  const auto flops = [&](const std::vector<v1::ScorerSpec>& scorers) {
    v1::EvalJobSpec spec = Spec({"number"});  // 2 layers of 2 heads
    for (const v1::ScorerSpec& scorer : scorers) *spec.mutable_tasks(0)->add_scorers() = scorer;
    return Make(spec)->cells[0].flops_per_item;
  };
  v1::ScorerSpec accuracy;
  accuracy.set_name("accuracy");
  const double plain = flops({accuracy});
  // From layer 0 on, a whole pass; from layer 1 on, less.
  EXPECT_DOUBLE_EQ(flops({spec::testing::AblationSpec({"zero"}, {"0.0"})}), 2 * plain);
  EXPECT_DOUBLE_EQ(flops({spec::testing::AblationSpec({"zero", "mean"}, {"0.0", "*.*"})}),
                   5 * plain);
  const double late = flops({spec::testing::AblationSpec({"zero"}, {"1.*"})}) - plain;
  EXPECT_GT(late, 0);
  EXPECT_LT(late, plain);
  EXPECT_DOUBLE_EQ(flops({spec::testing::AblationSpec({"zero"})}), plain + 2 * plain + 2 * late);
}

TEST_F(PlannerTest, RotaryModelsGoBeyondTheirTrainingContextLearnedOnesDoNot) {
  v1::EvalJobSpec spec = Spec({"number"});  // n_positions 20
  spec.mutable_tasks(0)->add_added_tokens(5000);
  EXPECT_TRUE(Make(spec).ok());
  spec = Spec({"learned"});
  spec.mutable_tasks(0)->add_added_tokens(0);
  spec.mutable_tasks(0)->add_added_tokens(47);  // 64 in all
  EXPECT_TRUE(Make(spec).ok()) << Make(spec).status();
  spec.mutable_tasks(0)->add_added_tokens(48);
  const absl::Status status = Make(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(common::ErrorReason(status), "SEQUENCE_TOO_LONG");
  EXPECT_EQ(common::GetErrorInfo(status)->metadata().at("field"), "spec.tasks[0].added_tokens[2]");
  EXPECT_THAT(std::string(status.message()), HasSubstr("65"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("64"));
}

TEST_F(PlannerTest, WithoutDigestsNoneAreComputed) {
  const auto normalised = spec::Normalize(Spec({"number"}), limits_);
  const auto plan = MakePlan(*normalised, *models_, limits_, /*digests=*/false);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->job.checkpoints[0].ref.digest(), "");
}

struct BadPlan {
  std::vector<std::string> checkpoints;
  std::string task;
  absl::StatusCode code;
  std::string reason;  // empty: any
  std::string field;
};

TEST_F(PlannerTest, WhatCannotBePlannedNamesItsField) {
  folder_.Link("/etc", "outside");
  for (const BadPlan& bad : std::vector<BadPlan>{
           {{"number", "nothing"},
            "number",
            absl::StatusCode::kNotFound,
            "",
            "spec.tasks[0].checkpoints[1]"},
           {{"none/*"}, "number", absl::StatusCode::kNotFound, "", "spec.tasks[0].checkpoints[0]"},
           {{"broken"},
            "number",
            absl::StatusCode::kFailedPrecondition,
            "CHECKPOINT_CONFIG_NOT_JSON",
            "spec.tasks[0].checkpoints[0]"},
           {{"letter"},
            "number",
            absl::StatusCode::kFailedPrecondition,
            "VOCABULARY_TOO_SMALL",
            "spec.tasks[0].checkpoints[0]"},
           {{"number", "letter"},
            "number",
            absl::StatusCode::kFailedPrecondition,
            "VOCABULARY_TOO_SMALL",
            "spec.tasks[0].checkpoints[1]"},
           {{"outside"},
            "number",
            absl::StatusCode::kInvalidArgument,
            "",
            "spec.tasks[0].checkpoints[0]"}}) {
    const absl::Status status = Make(Spec(bad.checkpoints, bad.task)).status();
    EXPECT_EQ(status.code(), bad.code) << status;
    if (!bad.reason.empty()) {
      EXPECT_EQ(common::ErrorReason(status), bad.reason);
    }
    const auto info = common::GetErrorInfo(status);
    ASSERT_TRUE(info.has_value()) << status;
    EXPECT_EQ(info->metadata().at("field"), bad.field) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.field));
  }
  // Both sizes are named.
  const absl::Status status = Make(Spec({"letter"})).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("129"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("137"));
}

// Nothing of what a glob stands for is opened, let alone read for its digest, before it is known to
// be few enough.
TEST_F(PlannerTest, AGlobOfTooManyCheckpointsIsRefusedBeforeAnyIsOpened) {
  for (int i = 0; i < 300; ++i) {
    folder_.Write(absl::StrCat("many/step-", i, "/config.json"), "no checkpoint");
  }
  const v1::EvalJobSpec spec = Spec({"number", "many/*"});
  absl::Status status = Make(spec).status();
  EXPECT_NE(common::ErrorReason(status), "LIMIT_EXCEEDED") << "they cannot be opened: " << status;
  limits_.set_max_cells_per_job(300);
  status = Make(spec).status();
  EXPECT_EQ(common::ErrorReason(status), "LIMIT_EXCEEDED");
  EXPECT_THAT(std::string(status.message()), HasSubstr("301 cells"));
}

TEST_F(PlannerTest, TooManyCellsOrUnitsAreRefused) {
  v1::EvalJobSpec spec = Spec({"series/*"});
  limits_.set_max_cells_per_job(3);
  EXPECT_TRUE(Make(spec).ok());
  limits_.set_max_cells_per_job(2);
  absl::Status status = Make(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(common::ErrorReason(status), "LIMIT_EXCEEDED");
  EXPECT_THAT(std::string(status.message()), HasSubstr("3 cells"));

  limits_ = spec::DefaultLimits();
  limits_.set_max_units_per_job(5);
  spec.mutable_tasks(0)->add_added_tokens(5000);
  status = Make(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("6 units"));
}

}  // namespace
}  // namespace hopscope::jobs
