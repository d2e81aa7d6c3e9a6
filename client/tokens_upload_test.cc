#include "client/tokens_upload.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/mock_connection.h"
#include "client/spec_yaml.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

using ::testing::_;
using ::testing::HasSubstr;

constexpr char kSpec[] =
    "tasks:\n"
    "  - {task: number, hops: 1}\n"
    "  - task: tokens\n"
    "    tokens_file: data/lines.jsonl\n";

class TokensUploadTest : public ::testing::Test {
 protected:
  TokensUploadTest()
      : folder_(absl::StrCat(testing::TempDir(), "/tokens_upload_",
                             testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(folder_ + "/data");
  }
  ~TokensUploadTest() override { std::filesystem::remove_all(folder_); }

  void WriteLines(const std::string& text) {
    std::ofstream(folder_ + "/data/lines.jsonl", std::ios::binary) << text;
  }

  ParsedSpec Parse(const std::string& text = kSpec) {
    return *ParseSpecYaml(text, folder_ + "/spec.yaml");
  }

  const std::string folder_;
  std::shared_ptr<MockConnection> connection_ = std::make_shared<MockConnection>();
  const Client client_{connection_};
};

TEST_F(TokensUploadTest, FilesBesideTheSpecAreSentAndTheirDigestsTaken) {
  std::string text;
  while (text.size() < 1'500'000) text += "{\"tokens\":[1,2,3],\"label\":4}\n";
  WriteLines(text);
  std::string sent;
  EXPECT_CALL(*connection_, UploadTokens(_)).WillOnce([&](const Connection::PieceReader& read) {
    while (true) {
      const auto piece = read(static_cast<int64_t>(sent.size()));
      EXPECT_TRUE(piece.ok()) << piece.status();
      EXPECT_LE(piece->size(), 1u << 20);
      if (piece->empty()) break;
      sent += *piece;
    }
    v1::UploadTokensResponse response;
    response.set_digest("sha256:1");
    return response;
  });
  ParsedSpec parsed = Parse();
  const absl::Status status = UploadTokensFiles(client_, parsed);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(sent, text);
  EXPECT_EQ(parsed.spec.tasks(0).tokens_digest(), "");
  EXPECT_EQ(parsed.spec.tasks(1).tokens_digest(), "sha256:1");
}

TEST_F(TokensUploadTest, AWrongFileIsNotSentAndBothPlacesAreNamed) {
  WriteLines("{\"tokens\":[1]}\n{\"tokens\":[]}\n");
  EXPECT_CALL(*connection_, UploadTokens(_)).Times(0);
  ParsedSpec parsed = Parse();
  const absl::Status status = UploadTokensFiles(client_, parsed);
  EXPECT_EQ(common::ErrorReason(status), "TOKENS_FILE_INVALID");
  EXPECT_THAT(status.message(), HasSubstr("data/lines.jsonl:2: tokens"));
  EXPECT_THAT(status.message(), HasSubstr("spec.yaml:4:"));
}

TEST_F(TokensUploadTest, AMissingFileIsNamed) {
  ParsedSpec parsed = Parse();
  const absl::Status status = UploadTokensFiles(client_, parsed);
  EXPECT_EQ(common::ErrorReason(status), "FILE_NOT_FOUND");
  EXPECT_THAT(status.message(), HasSubstr("data/lines.jsonl"));
}

TEST_F(TokensUploadTest, ErrorsOfTheServerAreTheResult) {
  WriteLines("{\"tokens\":[1]}\n");
  EXPECT_CALL(*connection_, UploadTokens(_))
      .WillOnce([](const auto&) -> absl::StatusOr<v1::UploadTokensResponse> {
        return absl::ResourceExhaustedError("full");
      });
  ParsedSpec parsed = Parse();
  EXPECT_EQ(UploadTokensFiles(client_, parsed).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(TokensUploadTest, AFileAndADigestAtOnceAreRefused) {
  const auto parsed = ParseSpecYaml(
      "tasks:\n  - {task: tokens, tokens_file: a, tokens_digest: \"sha256:1\"}\n", "spec.yaml");
  EXPECT_EQ(common::ErrorReason(parsed.status()), "CONFLICTING_KEYS");
}

}  // namespace
}  // namespace hopscope::client
