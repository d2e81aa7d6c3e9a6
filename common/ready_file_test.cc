#include "common/ready_file.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/status.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hopscope::common {
namespace {

TEST(WriteReadyFile, WritesJsonAndNothingBesideIt) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("ready_file_test." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "ready.json";
  ASSERT_TRUE(WriteReadyFile(path, {{"listen", "127.0.0.1:1"}}).ok());
  ASSERT_TRUE(WriteReadyFile(path, {{"listen", "[::1]:2"}, {"metrics_listen", "a:3"}}).ok());

  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file);
  EXPECT_EQ(json["listen"], "[::1]:2");
  EXPECT_EQ(json["metrics_listen"], "a:3");
  EXPECT_EQ(json["pid"], getpid());
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++files;
  EXPECT_EQ(files, 1);
  std::filesystem::remove_all(folder);
}

TEST(WriteReadyFile, NamesItsFlagWhereItCannotWrite) {
  const absl::Status status = WriteReadyFile("/no/such/folder/ready.json", {});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "--ready_file");
}

}  // namespace
}  // namespace hopscope::common
