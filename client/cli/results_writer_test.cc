#include "client/cli/results_writer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "client/cli/result_rows.h"
#include "client/cli/test_events.h"
#include "client/spec_yaml.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class ResultsWriterTest : public testing::Test {
 protected:
  ResultsWriterTest() {
    std::string path = testing::TempDir() + "/results-XXXXXX";
    folder_ = mkdtemp(path.data());
  }
  ~ResultsWriterTest() override { std::filesystem::remove_all(folder_); }

  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::set<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.insert(entry.path().filename());
    return names;
  }

  static ResultsHeader Header() {
    ResultsHeader header;
    header.client_version = "0.1.0";
    header.server_version = "0.2.0";
    header.job = MakeJob(3, 2500);
    header.job.set_state(v1::EvalJob::STATE_PARTIALLY_SUCCEEDED);
    header.job.mutable_create_time()->set_seconds(1769847300);
    header.job.mutable_create_time()->set_nanos(500'000'000);
    header.job.add_worker_kinds("cpu/avx2/2.11.0/float32");
    header.job.add_warnings("vocabulary is larger than the task's");
    v1::CheckpointRef* checkpoint = header.job.add_checkpoints();
    checkpoint->set_name("number/step-06750");
    checkpoint->set_digest("sha256:00ff");
    header.job.mutable_spec()->set_name("sweep");
    header.job.mutable_spec()->add_seeds(42);
    return header;
  }

  static v1::ListEvalResultsResponse FirstPage() {
    v1::ListEvalResultsResponse page;
    v1::CellResult result = MakeResult(MakeCell(0, 1, 0), 3, 2);
    result.set_accuracy(2.0 / 3.0);
    result.set_standard_error(1.0 / 3.0);
    result.set_ci_low(0.1);
    result.set_ci_high(0.9375);
    *page.add_cells() = result;
    *page.add_heads() =
        MakeScores(MakeCell(0, 1, 0), "positional", 2, 1, {0.1, 0.30000000000000004});
    return page;
  }

  static v1::ListEvalResultsResponse SecondPage() {
    v1::ListEvalResultsResponse page;
    v1::HeadScores planes = MakeScores(MakeCell(0, 1, 0), "share", 1, 1, {0.25, 0.75, 0.5, 0.5});
    planes.set_steps(2);
    planes.set_planes(2);
    planes.set_mean(3, std::numeric_limits<double>::quiet_NaN());
    planes.set_standard_error(3, std::numeric_limits<double>::quiet_NaN());
    planes.set_items(3, 0);
    planes.mutable_params()->clear_fields();
    *page.add_heads() = planes;
    *page.add_cells() = MakeFailedResult(MakeCell(1, 2, 50), "CHECKPOINT", "digest, \"changed\"");
    return page;
  }

  std::filesystem::path folder_;
};

TEST_F(ResultsWriterTest, WritesTheDocumentedFormat) {
  auto writer = WriteResultsTo(folder_.string());
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Add(FirstPage()).ok());
  ASSERT_TRUE((*writer)->Add(SecondPage()).ok());
  ASSERT_TRUE((*writer)->Finish(Header()).ok());
  EXPECT_EQ(Read("results.json"),
            R"({
"job": {"name":"jobs/1","state":"PARTIALLY_SUCCEEDED","create_time":"2026-01-31T08:15:00.5Z","start_time":null,"end_time":null,"totals":{"cells":3,"cells_completed":0,"cells_failed":0,"units":0,"units_completed":0,"units_failed":0,"items":2500,"items_completed":0,"items_failed":0},"warnings":["vocabulary is larger than the task's"],"failure":null,"failed_cells":[{"checkpoint":"number/step-06750","task":"number","hops":2,"added_tokens":50,"seed":42,"reason":"CHECKPOINT","message":"digest, \"changed\""}]},
"spec": {"name":"sweep","seeds":[42]},
"versions": {"client":"0.1.0","server":"0.2.0","worker_kinds":["cpu/avx2/2.11.0/float32"]},
"checkpoints": [{"name":"number/step-06750","digest":"sha256:00ff"}],
"cells": [
  {"checkpoint":"number/step-06750","task":"number","hops":1,"added_tokens":0,"seed":42,"items":3,"items_failed":0,"correct":2,"accuracy":0.6666666666666666,"stderr":0.3333333333333333,"ci_low":0.1,"ci_high":0.9375,"items_unlabelled":0,"tokens":null},
  {"checkpoint":"number/step-06750","task":"number","hops":2,"added_tokens":50,"seed":42,"items":0,"items_failed":0,"correct":0,"accuracy":null,"stderr":null,"ci_low":null,"ci_high":null,"items_unlabelled":0,"tokens":null}
],
"heads": [
  {"checkpoint":"number/step-06750","task":"number","hops":1,"added_tokens":0,"seed":42,"scorer":"positional_symbolic","params":{"queries":"last","tau":0.0001},"metric":"positional","step":null,"layer":0,"head":0,"plane":null,"mean":0.1,"stderr":0.01,"items":100,"tokens":null},
  {"checkpoint":"number/step-06750","task":"number","hops":1,"added_tokens":0,"seed":42,"scorer":"positional_symbolic","params":{"queries":"last","tau":0.0001},"metric":"positional","step":null,"layer":1,"head":0,"plane":null,"mean":0.30000000000000004,"stderr":0.01,"items":100,"tokens":null},
  {"checkpoint":"number/step-06750","task":"number","hops":1,"added_tokens":0,"seed":42,"scorer":"positional_symbolic","params":{},"metric":"share","step":0,"layer":0,"head":0,"plane":0,"mean":0.25,"stderr":0.01,"items":100,"tokens":null},
  {"checkpoint":"number/step-06750","task":"number","hops":1,"added_tokens":0,"seed":42,"scorer":"positional_symbolic","params":{},"metric":"share","step":0,"layer":0,"head":0,"plane":1,"mean":0.75,"stderr":0.01,"items":100,"tokens":null},
  {"checkpoint":"number/step-06750","task":"number","hops":1,"added_tokens":0,"seed":42,"scorer":"positional_symbolic","params":{},"metric":"share","step":1,"layer":0,"head":0,"plane":0,"mean":0.5,"stderr":0.01,"items":100,"tokens":null},
  {"checkpoint":"number/step-06750","task":"number","hops":1,"added_tokens":0,"seed":42,"scorer":"positional_symbolic","params":{},"metric":"share","step":1,"layer":0,"head":0,"plane":1,"mean":null,"stderr":null,"items":0,"tokens":null}
]
}
)");
  EXPECT_EQ(
      Read("cells.csv"),
      "checkpoint,task,hops,added_tokens,seed,items,items_failed,correct,accuracy,stderr,ci_low,ci_"
      "high,items_unlabelled,tokens\n"
      "number/step-06750,number,1,0,42,3,0,2,0.6666666666666666,0.3333333333333333,0.1,0.9375,0,\n"
      "number/step-06750,number,2,50,42,0,0,0,,,,,0,\n");
  EXPECT_THAT(
      Read("heads.csv"),
      StartsWith(
          "checkpoint,task,hops,added_tokens,seed,scorer,params,metric,step,layer,head,plane,"
          "mean,stderr,items,min,max,tokens\n"
          "number/"
          "step-06750,number,1,0,42,positional_symbolic,\"{\"\"queries\"\":\"\"last\"\","
          "\"\"tau\"\":0.0001}\","
          "positional,,0,0,,0.1,0.01,100,,,\n"
          "number/"
          "step-06750,number,1,0,42,positional_symbolic,\"{\"\"queries\"\":\"\"last\"\","
          "\"\"tau\"\":0.0001}\","
          "positional,,1,0,,0.30000000000000004,0.01,100,,,\n"));
  const std::string heads = Read("heads.csv");
  EXPECT_EQ(std::count(heads.begin(), heads.end(), '\n'), 1 + 6);
  EXPECT_THAT(heads, EndsWith("positional_symbolic,{},share,1,0,0,1,,,0,,,\n"));
  EXPECT_THAT(Files(), UnorderedElementsAre("results.json", "cells.csv", "heads.csv"));
}

TEST_F(ResultsWriterTest, ExtremesStandWhereAMetricHasThem) {
  v1::ListEvalResultsResponse page;
  v1::HeadScores gap = MakeScores(MakeCell(0, 1, 0), "gap", 1, 2, {0.5, 0.25});
  for (const double value : {-1.5, std::numeric_limits<double>::quiet_NaN()}) {
    gap.add_min(value);
    gap.add_max(value);
  }
  *page.add_heads() = gap;
  auto writer = WriteResultsTo(folder_.string());
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Add(page).ok());
  ASSERT_TRUE((*writer)->Finish(Header()).ok());
  EXPECT_THAT(Read("heads.csv"), HasSubstr("gap,,0,0,,0.5,0.01,100,-1.5,-1.5,\n"));
  EXPECT_THAT(Read("heads.csv"), HasSubstr("gap,,0,1,,0.25,0.01,100,,,\n"));
  const auto json = ordered_json::parse(Read("results.json"));
  EXPECT_EQ(json["heads"][0]["min"], -1.5);
  EXPECT_TRUE(json["heads"][1]["max"].is_null());
  gap.add_min(0);
  *page.mutable_heads(0) = gap;
  std::ostringstream stream;
  EXPECT_FALSE(WriteResultsTo(&stream)->Add(page).ok()) << "a smallest value too many";
}

TEST_F(ResultsWriterTest, AStreamGetsTheSameDocument) {
  std::ostringstream stream;
  const auto to_stream = WriteResultsTo(&stream);
  auto to_folder = WriteResultsTo(folder_.string());
  ASSERT_TRUE(to_folder.ok());
  for (const auto& page : {FirstPage(), SecondPage()}) {
    ASSERT_TRUE(to_stream->Add(page).ok());
    ASSERT_TRUE((*to_folder)->Add(page).ok());
  }
  ASSERT_TRUE(to_stream->Finish(Header()).ok());
  ASSERT_TRUE((*to_folder)->Finish(Header()).ok());
  EXPECT_EQ(stream.str(), Read("results.json"));
}

TEST_F(ResultsWriterTest, AJobWithoutResultsIsValidJson) {
  std::ostringstream stream;
  ASSERT_TRUE(WriteResultsTo(&stream)->Finish({}).ok());
  const auto json = ordered_json::parse(stream.str());
  EXPECT_TRUE(json["cells"].empty());
  EXPECT_TRUE(json["heads"].empty());
  EXPECT_TRUE(json["versions"]["server"].is_null());
}

TEST_F(ResultsWriterTest, TheSpecReadsBack) {
  const auto spec =
      client::ParseSpecYaml("name: x\ntasks: [{task: number, hops: [1], samples: 3}]\n", "s");
  ASSERT_TRUE(spec.ok());
  ResultsHeader header = Header();
  *header.job.mutable_spec() = spec->spec;
  std::ostringstream stream;
  ASSERT_TRUE(WriteResultsTo(&stream)->Finish(header).ok());
  const auto again = client::ParseSpecYaml(ordered_json::parse(stream.str())["spec"].dump(), "s");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->spec.SerializeAsString(), spec->spec.SerializeAsString());
}

TEST_F(ResultsWriterTest, NothingIsThereBeforeAllIsThere) {
  {
    auto writer = WriteResultsTo(folder_.string());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Add(FirstPage()).ok());
    for (const std::string& name : Files()) EXPECT_THAT(name, HasSubstr(".tmp"));
  }
  EXPECT_THAT(Files(), ElementsAre()) << "what is not finished leaves nothing behind";
}

TEST_F(ResultsWriterTest, OldResultsStayUntilNewOnesAreComplete) {
  std::ofstream(folder_ / "results.json") << "old";
  auto writer = WriteResultsTo(folder_.string());
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(Read("results.json"), "old");
  ASSERT_TRUE((*writer)->Finish(Header()).ok());
  EXPECT_NE(Read("results.json"), "old");
}

TEST_F(ResultsWriterTest, FoldersAreMadeAndBadOnesRefusedAtOnce) {
  EXPECT_TRUE(WriteResultsTo((folder_ / "a" / "b").string()).ok());
  std::ofstream(folder_ / "file") << "x";
  const auto refused = WriteResultsTo((folder_ / "file").string());
  EXPECT_EQ(common::ErrorReason(refused.status()), "OUTPUT_NOT_WRITABLE");
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr((folder_ / "file").string()));
}

TEST_F(ResultsWriterTest, ScoresOfWholeSequencesHaveNeitherLayerNorHead) {
  std::ostringstream stream;
  const auto writer = WriteResultsTo(&stream);
  v1::ListEvalResultsResponse page;
  *page.add_heads() = MakeScores(MakeCell(0, 1, 0), "loss", 0, 0, {0.5});
  ASSERT_TRUE(writer->Add(page).ok());
  ASSERT_TRUE(writer->Finish(Header()).ok());
  const ordered_json heads = ordered_json::parse(stream.str()).at("heads");
  ASSERT_EQ(heads.size(), 1u);
  EXPECT_TRUE(heads[0].at("layer").is_null());
  EXPECT_TRUE(heads[0].at("head").is_null());
  EXPECT_EQ(heads[0].at("mean"), 0.5);
  page.mutable_heads(0)->set_layers(1);
  EXPECT_EQ(common::ErrorReason(writer->Add(page)), "RESULTS_MALFORMED");
}

TEST_F(ResultsWriterTest, ScoresThatContradictThemselvesAreAnError) {
  std::ostringstream stream;
  const auto writer = WriteResultsTo(&stream);
  v1::ListEvalResultsResponse page;
  *page.add_heads() = MakeScores(MakeCell(0, 1, 0), "positional", 3, 2, {0.5});
  EXPECT_EQ(common::ErrorReason(writer->Add(page)), "RESULTS_MALFORMED");
  page.mutable_heads(0)->set_layers(std::numeric_limits<int32_t>::max());
  page.mutable_heads(0)->set_heads(std::numeric_limits<int32_t>::max());
  page.mutable_heads(0)->set_planes(std::numeric_limits<int32_t>::max());
  EXPECT_EQ(common::ErrorReason(writer->Add(page)), "RESULTS_MALFORMED");
  page.mutable_heads(0)->set_layers(1);
  page.mutable_heads(0)->set_heads(1);
  page.mutable_heads(0)->set_planes(0);
  EXPECT_TRUE(writer->Add(page).ok());
  page.mutable_heads(0)->clear_items();
  EXPECT_EQ(common::ErrorReason(writer->Add(page)), "RESULTS_MALFORMED");
}

}  // namespace
}  // namespace hopscope::cli
