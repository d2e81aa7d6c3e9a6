#include "common/checkpoint/shard_index.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::string Reason(absl::string_view text) {
  const auto index = ParseShardIndex(text);
  return index.ok() ? "" : common::ErrorReason(index.status());
}

TEST(ShardIndex, ReadsTheMap) {
  const auto index = ParseShardIndex(
      R"({"metadata":{"total_size":1e99,"x":null},
          "weight_map":{"b":"model_00002-of-00072","a":"pytorch_model-1.safetensors",
                        "c":"model_00002-of-00072"}})");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_THAT(index->file_of_tensor,
              ElementsAre(Pair("a", "pytorch_model-1.safetensors"),
                          Pair("b", "model_00002-of-00072"), Pair("c", "model_00002-of-00072")));
  EXPECT_THAT(index->files, ElementsAre("model_00002-of-00072", "pytorch_model-1.safetensors"));
}

TEST(ShardIndex, NeedsNoMetadata) { EXPECT_EQ(Reason(R"({"weight_map":{"a":"f"}})"), ""); }

TEST(ShardIndex, RefusesOtherLayouts) {
  for (const char* text :
       {"", "[]", "{}", "nonsense", R"({"weight_map":null})", R"({"weight_map":[]})",
        R"({"weight_map":{}})", R"({"weight_map":{"a":{"file":"x"}}})", R"({"weight_map":{"a":1}})",
        R"({"weight_map":{"a":"x","a":"y"}})"}) {
    EXPECT_EQ(Reason(text), "CHECKPOINT_INDEX") << text;
  }
}

TEST(ShardIndex, RefusesNamesThatAreNotInTheFolder) {
  for (const char* file :
       {"", ".", "..", "../x", "/etc/passwd", "a/b", "x/", ".hidden", "a\\u0000b"}) {
    EXPECT_EQ(Reason(absl::StrCat(R"({"weight_map":{"a":")", file, R"("}})")), "CHECKPOINT_INDEX")
        << file;
  }
  EXPECT_EQ(Reason(absl::StrCat(R"({"weight_map":{"a":")", std::string(256, 'x'), R"("}})")),
            "CHECKPOINT_INDEX");
}

TEST(ShardIndex, BoundsTheNumberOfFiles) {
  const auto index_of = [](int files) {
    std::string text = R"({"weight_map":{)";
    for (int i = 0; i < files; ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ",", "\"t", i, "\":\"f", i, "\"");
    }
    return text + "}}";
  };
  EXPECT_EQ(Reason(index_of(4096)), "");
  EXPECT_EQ(Reason(index_of(4097)), "CHECKPOINT_INDEX");
}

}  // namespace
}  // namespace hopscope::checkpoint
