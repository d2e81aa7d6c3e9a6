#include "common/checkpoint/model_root.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::checkpoint {
namespace {

using ::testing::ElementsAre;
using testing::GptJ;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempFolder;
using testing::WriteCheckpoint;

class ModelRootTest : public ::testing::Test {
 protected:
  // Marks a folder as a checkpoint, as far as names go.
  void Mark(absl::string_view name) { folder_.Write(absl::StrCat(name, "/config.json"), "{}"); }

  const ModelRoot& Root() {
    if (root_ == nullptr) {
      auto root = ModelRoot::Open(folder_.path());
      EXPECT_TRUE(root.ok()) << root.status();
      root_ = *std::move(root);
    }
    return *root_;
  }

  std::vector<std::string> Resolve(absl::string_view name) {
    const auto names = Root().Resolve(name);
    EXPECT_TRUE(names.ok()) << names.status();
    return names.value_or(std::vector<std::string>());
  }

  std::string Refusal(absl::string_view name) {
    const auto names = Root().Resolve(name);
    return names.ok() ? "" : common::ErrorReason(names.status());
  }

  TempFolder folder_;
  TempFolder outside_;
  std::unique_ptr<ModelRoot> root_;
};

TEST_F(ModelRootTest, SaysWhyARootCannotBeUsed) {
  const auto missing = ModelRoot::Open(folder_.Path("none"));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  folder_.Write("file", "");
  const auto file = ModelRoot::Open(folder_.Path("file"));
  EXPECT_EQ(file.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ModelRootTest, ListsCheckpointsInNaturalOrder) {
  for (const char* name : {"number/step-10", "number/step-2", "letter/step-1", "solo"}) Mark(name);
  folder_.Write("number/notes.txt", "no checkpoint");
  folder_.Write("data/model.safetensors", "no config");
  EXPECT_THAT(*Root().List(),
              ElementsAre("letter/step-1", "number/step-2", "number/step-10", "solo"));
}

TEST_F(ModelRootTest, ListsACheckpointInsideAnother) {
  Mark("run");
  Mark("run/checkpoint-500");
  EXPECT_THAT(*Root().List(), ElementsAre("run", "run/checkpoint-500"));
}

TEST_F(ModelRootTest, SkipsHiddenFolders) {
  Mark(".cache/model");
  Mark("a/.git");
  EXPECT_THAT(*Root().List(), IsEmpty());
  EXPECT_EQ(Refusal("*"), "CHECKPOINT_NOT_FOUND");
  EXPECT_EQ(Refusal(".cache/model"), "CHECKPOINT_NAME");
}

TEST_F(ModelRootTest, ANameStandsForItsCheckpoint) {
  Mark("number/step-2");
  EXPECT_THAT(Resolve("number/step-2"), ElementsAre("number/step-2"));
  EXPECT_THAT(Resolve("number/step-2/"), ElementsAre("number/step-2"));
}

TEST_F(ModelRootTest, ASeriesStandsForAllThatLieDirectlyInIt) {
  for (const char* step : {"step-100", "step-20", "step-3"}) {
    Mark(absl::StrCat("number/", step));
  }
  Mark("number/step-3/onnx");
  EXPECT_THAT(Resolve("number"), ElementsAre("number/step-3", "number/step-20", "number/step-100"));
}

TEST_F(ModelRootTest, GlobsStandForCheckpointsAlone) {
  for (const char* name : {"number/step-1", "number/step-12", "letter/step-1", "deep/er/step-1"}) {
    Mark(name);
  }
  EXPECT_THAT(Resolve("number/*"), ElementsAre("number/step-1", "number/step-12"));
  EXPECT_THAT(Resolve("*/step-1"), ElementsAre("letter/step-1", "number/step-1"));
  EXPECT_THAT(Resolve("**/step-?"),
              ElementsAre("deep/er/step-1", "letter/step-1", "number/step-1"));
  EXPECT_THAT(Resolve("[ln]*/step-1[0-9]"), ElementsAre("number/step-12"));
  EXPECT_THAT(Resolve("deep/**"), ElementsAre("deep/er/step-1"));
  EXPECT_EQ(Refusal("*"), "CHECKPOINT_NOT_FOUND");
  EXPECT_EQ(Refusal("number/step-9*"), "CHECKPOINT_NOT_FOUND");
  EXPECT_EQ(Refusal("none/*"), "CHECKPOINT_NOT_FOUND");
}

TEST_F(ModelRootTest, WhatIsNotThereIsNotFound) {
  folder_.MakeFolder("empty");
  folder_.Write("file", "");
  for (const char* name : {"none", "empty", "file", "file/x"}) {
    const auto names = Root().Resolve(name);
    EXPECT_EQ(names.status().code(), absl::StatusCode::kNotFound) << name;
    EXPECT_EQ(common::ErrorReason(names.status()), "CHECKPOINT_NOT_FOUND");
    EXPECT_THAT(std::string(names.status().message()), HasSubstr(name));
  }
}

TEST_F(ModelRootTest, RefusesNamesThatCouldLeaveTheRoot) {
  Mark("number/step-1");
  for (const char* name : {"", "/", "/etc", "..", "../x", "number/../../x", "number/..", ".",
                           "./number", "number//step-1", "a\nb/..", "*/../*", "../*", "\xFF"}) {
    const auto names = Root().Resolve(name);
    EXPECT_EQ(names.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(common::ErrorReason(names.status()), "CHECKPOINT_NAME") << name;
  }
  EXPECT_EQ(Refusal(absl::string_view("a\0b", 3)), "CHECKPOINT_NAME");
  EXPECT_EQ(Refusal(std::string(2000, 'x')), "CHECKPOINT_NAME");
}

TEST_F(ModelRootTest, RefusesFolderLinksOutOfTheRoot) {
  outside_.Write("model/config.json", "{}");
  folder_.Link(outside_.Path("model"), "escape");
  folder_.Link(outside_.path(), "up");
  for (const char* name : {"escape", "up/model", "up"}) {
    const auto names = Root().Resolve(name);
    EXPECT_EQ(names.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(common::ErrorReason(names.status()), "CHECKPOINT_OUTSIDE_ROOT") << name;
  }
  EXPECT_EQ(common::ErrorReason(Root().OpenCheckpoint("escape").status()),
            "CHECKPOINT_OUTSIDE_ROOT");
  EXPECT_EQ(common::ErrorReason(Root().Digest("escape").status()), "CHECKPOINT_OUTSIDE_ROOT");
  EXPECT_EQ(Refusal("up/*"), "CHECKPOINT_OUTSIDE_ROOT");
  EXPECT_EQ(Refusal("*/model"), "CHECKPOINT_NOT_FOUND");
  EXPECT_THAT(*Root().List(), IsEmpty());
}

TEST_F(ModelRootTest, AFolderWhoseNameBeginsLikeTheRootIsOutside) {
  TempFolder both;
  both.MakeFolder("root");
  both.Write("root-other/model/config.json", "{}");
  both.Link("../root-other/model", "root/link");
  const auto root = ModelRoot::Open(both.Path("root"));
  EXPECT_EQ(common::ErrorReason((*root)->Resolve("link").status()), "CHECKPOINT_OUTSIDE_ROOT");
}

TEST_F(ModelRootTest, RefusesFileLinksOutOfTheRoot) {
  WriteCheckpoint(folder_, "model", GptJ());
  outside_.Write("weights", testing::ReadFile(folder_.Path("model/model.safetensors")));
  folder_.Write("bad/config.json", testing::ConfigOf(GptJ()));
  folder_.Link(outside_.Path("weights"), "bad/model.safetensors");
  EXPECT_TRUE(Root().OpenCheckpoint("model").ok());
  for (const absl::Status& status :
       {Root().OpenCheckpoint("bad").status(), Root().Digest("bad").status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(common::ErrorReason(status), "CHECKPOINT_OUTSIDE_ROOT");
  }
}

TEST_F(ModelRootTest, FollowsLinksWithinTheRoot) {
  WriteCheckpoint(folder_, "store/first", GptJ());
  folder_.Link("../store/first", "runs/latest");
  // As in a cache of the hub: files that are links to blobs elsewhere under the root.
  folder_.Write("blobs/1", testing::ConfigOf(GptJ()));
  folder_.Write("blobs/2", testing::ReadFile(folder_.Path("store/first/model.safetensors")));
  folder_.Link("../../blobs/1", "hub/snapshot/config.json");
  folder_.Link("../../blobs/2", "hub/snapshot/model.safetensors");
  EXPECT_THAT(*Root().List(), ElementsAre("hub/snapshot", "runs/latest", "store/first"));
  EXPECT_THAT(Resolve("runs/*"), ElementsAre("runs/latest"));
  EXPECT_TRUE(Root().OpenCheckpoint("runs/latest").ok());
  EXPECT_TRUE(Root().OpenCheckpoint("hub/snapshot").ok());
  EXPECT_EQ(*Root().Digest("hub/snapshot"), *Root().Digest("runs/latest"));
}

TEST_F(ModelRootTest, CyclesOfLinksEnd) {
  Mark("a/model");
  folder_.Link(".", "a/self");
  folder_.Link("../a", "a/parent");
  folder_.Link("..", "a/model/up");
  folder_.Link("loop2", "loop1");
  folder_.Link("loop1", "loop2");
  EXPECT_THAT(*Root().List(), ElementsAre("a/model"));
  EXPECT_THAT(Resolve("**/model"), ElementsAre("a/model"));
}

TEST_F(ModelRootTest, LooksNoDeeperThanItsLimit) {
  std::string name = "d";
  for (int depth = 2; depth <= 16; ++depth) name += "/d";
  Mark(name);
  Mark(name + "/d");
  EXPECT_THAT(*Root().List(), ElementsAre(name));
}

TEST_F(ModelRootTest, SkipsNamesThatCannotBeShown) {
  Mark("good");
  Mark("bad-\xFF");
  EXPECT_THAT(*Root().List(), ElementsAre("good"));
}

TEST_F(ModelRootTest, ErrorsOfACheckpointCarryItsName) {
  WriteCheckpoint(folder_, "run/model", GptJ());
  folder_.Write("run/model/config.json", R"({"model_type":"unheard_of"})");
  const auto checkpoint = Root().OpenCheckpoint("run/model");
  EXPECT_EQ(common::ErrorReason(checkpoint.status()), "CHECKPOINT_UNSUPPORTED_FAMILY");
  EXPECT_THAT(std::string(checkpoint.status().message()), HasSubstr("run/model"));
  EXPECT_THAT(std::string(checkpoint.status().message()),
              ::testing::Not(HasSubstr(folder_.path())));
}

TEST_F(ModelRootTest, DigestsTellCheckpointsApart) {
  WriteCheckpoint(folder_, "a", GptJ{.seed = 1});
  WriteCheckpoint(folder_, "b", GptJ{.seed = 2});
  WriteCheckpoint(folder_, "c", GptJ{.seed = 1});
  EXPECT_NE(*Root().Digest("a"), *Root().Digest("b"));
  EXPECT_EQ(*Root().Digest("a"), *Root().Digest("c"));
}

}  // namespace
}  // namespace hopscope::checkpoint
