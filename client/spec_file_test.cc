#include "client/spec_file.h"

#include <cstdio>
#include <fstream>
#include <string>

#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

using ::testing::StartsWith;

constexpr char kSpec[] = R"(name: sweep
tasks:
  - task: number
    hops: [1, 2]
scorers:
  - accuracy
  - positional_symbolic: {taus: [1.0e-4, 0.05]}
)";

TEST(SpecFileTest, ServerErrorsAreLocated) {
  const auto parsed = ParseSpecYaml(kSpec, "spec.yaml");
  ASSERT_TRUE(parsed.ok());
  const absl::Status error =
      common::InvalidField("UNKNOWN_PARAMETER", "spec.scorers[1].params.taus[1]", "0.05", "x");
  const absl::Status located = LocateInSpec(*parsed, error);
  EXPECT_THAT(std::string(located.message()),
              StartsWith("spec.yaml:7:42: spec.scorers[1].params.taus[1]: 0.05"));
  EXPECT_EQ(common::GetErrorInfo(located)->metadata().at("field"),
            "spec.scorers[1].params.taus[1]");
  // A field that the file leaves to its default: the nearest thing around it.
  EXPECT_THAT(std::string(LocateInSpec(*parsed, common::InvalidField(
                                                    "R", "spec.tasks[0].window.target", "8", "x"))
                              .message()),
              StartsWith("spec.yaml:3:5: "));
  const absl::Status other = absl::UnavailableError("gone");
  EXPECT_EQ(LocateInSpec(*parsed, other), other);
}

TEST(SpecFileTest, FilesThatCannotBeReadAreNamed) {
  EXPECT_EQ(ReadSpecFile("/nonexistent/spec.yaml").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadSpecFile("/nonexistent/spec.yaml").status().message()),
              StartsWith("/nonexistent/spec.yaml: "));
  EXPECT_FALSE(ReadSpecFile("/").ok()) << "a folder";
}

TEST(SpecFileTest, ReadsFiles) {
  const std::string path = testing::TempDir() + "/spec_yaml_test.yaml";
  std::ofstream(path) << kSpec;
  const auto parsed = ReadSpecFile(path);
  std::remove(path.c_str());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->spec.name(), "sweep");
  EXPECT_EQ(parsed->file, path);
}

}  // namespace
}  // namespace hopscope::client
