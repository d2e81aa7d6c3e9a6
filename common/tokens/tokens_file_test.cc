#include "common/tokens/tokens_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "common/status.h"

namespace hopscope::tokens {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TokensLimits Limits() { return {.vocab_size = 100, .max_line_bytes = 200, .max_tokens = 8}; }

TEST(TokensFileTest, ReadsEveryField) {
  const auto line = ParseTokensLine(
      R"({"tokens":[3,14,15], "label": 92, "queries": [1,2], "blocks": [[0,1],[1,3]], "needle": [0,1]})",
      7, Limits());
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->number, 7);
  EXPECT_THAT(line->tokens, ElementsAre(3, 14, 15));
  EXPECT_EQ(line->label, 92);
  EXPECT_THAT(line->queries, ElementsAre(1, 2));
  EXPECT_THAT(line->blocks, ElementsAre(Pair(0, 1), Pair(1, 3)));
  EXPECT_EQ(line->needle, std::make_pair(0, 1));
}

TEST(TokensFileTest, TokensAreEnough) {
  const auto line = ParseTokensLine(R"({"tokens":[0]})", 1, Limits());
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_FALSE(line->label.has_value());
  EXPECT_FALSE(line->needle.has_value());
}

TEST(TokensFileTest, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},
      {"[1]", "must be a JSON object"},
      {"{\"tokens\":[1]", ""},
      {R"({"tokens":[1]} x)", ""},
      {R"({"label":1})", "\"tokens\" is missing"},
      {R"({"tokens":[]})", "tokens must be a list of 1 to 8 integers"},
      {R"({"tokens":3})", "tokens must be a list"},
      {R"({"tokens":[1,2,3,4,5,6,7,8,9]})", "1 to 8 integers"},
      {R"({"tokens":[1,100]})", "tokens[1] must be an integer from 0 to 99"},
      {R"({"tokens":[-1]})", "tokens[0]"},
      {R"({"tokens":[1.0]})", "tokens[0]"},
      {R"({"tokens":["1"]})", "tokens[0]"},
      {R"({"tokens":[99999999999999999999]})", "tokens[0]"},
      {R"({"tokens":[1],"tokens":[2]})", ""},
      {R"({"tokens":[1],"label":100})", "label must be an integer from 0 to 99"},
      {R"({"tokens":[1],"label":null})", "label"},
      {R"({"tokens":[1,2],"queries":[2]})", "queries[0] must be an integer from 0 to 1"},
      {R"({"tokens":[1,2],"queries":[1,1]})", "queries must rise"},
      {R"({"tokens":[1,2],"queries":[]})", "queries must be a list"},
      {R"({"tokens":[1,2],"blocks":[[0,3]]})", "blocks[0][1] must be an integer from 0 to 2"},
      {R"({"tokens":[1,2],"blocks":[[1,1]]})", "blocks[0] must end after it begins"},
      {R"({"tokens":[1,2],"blocks":[[0,2],[1,2]]})", "without overlap"},
      {R"({"tokens":[1,2],"blocks":[[0]]})", "blocks[0] must be a pair"},
      {R"({"tokens":[1,2],"needle":[2,1]})", "needle"},
      {R"({"tokens":[1],"answer":1})", "unknown key \"answer\"; allowed are tokens, label"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = ParseTokensLine(text, 1, Limits()).status();
    EXPECT_EQ(common::ErrorReason(status), "TOKENS_FILE_INVALID") << text;
    EXPECT_THAT(status.message(), HasSubstr(message)) << text;
  }
}

absl::StatusOr<std::vector<TokensLine>> Read(const std::string& text) {
  std::istringstream file(text);
  return ReadTokens(file, "file.jsonl", Limits());
}

TEST(TokensFileTest, CountsLines) {
  const auto lines = Read("{\"tokens\":[1]}\n{\"tokens\":[2,3]}\n");
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 2);
  EXPECT_EQ((*lines)[1].number, 2);
  EXPECT_EQ(Read("{\"tokens\":[1]}")->size(), 1);
  EXPECT_EQ(Read("{\"tokens\":[1]}\r\n{\"tokens\":[1]}\r\n")->size(), 2);
}

TEST(TokensFileTest, BlankLinesAreSkippedAndCounted) {
  const auto lines = Read("\n{\"tokens\":[1]}\n \r\n{\"tokens\":[2]}\n\n");
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 2);
  EXPECT_EQ((*lines)[1].number, 4);
}

TEST(TokensFileTest, ALineHasBlocksWithinReason) {
  std::string tokens = "0";
  std::string blocks = "[0,1]";
  for (int i = 1; i < 257; ++i) {
    tokens += ",0";
    blocks += ",[" + std::to_string(i) + "," + std::to_string(i + 1) + "]";
  }
  const auto line = ParseTokensLine("{\"tokens\":[" + tokens + "],\"blocks\":[" + blocks + "]}", 1,
                                    {.vocab_size = 1});
  EXPECT_THAT(std::string(line.status().message()), HasSubstr("257 blocks; at most 256"));
}

TEST(TokensFileTest, AByteOrderMarkAtTheStartIsNoPartOfTheFirstLine) {
  const auto lines = Read("\xef\xbb\xbf{\"tokens\":[1]}\n{\"tokens\":[2]}\n");
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_EQ(lines->size(), 2u);
  EXPECT_FALSE(Read("{\"tokens\":[1]}\n\xef\xbb\xbf{\"tokens\":[2]}\n").ok()) << "elsewhere";
}

TEST(TokensFileTest, ErrorsNameTheLine) {
  EXPECT_THAT(Read("{\"tokens\":[1]}\n\n{\"tokens\":[-2]}\n").status().message(),
              HasSubstr("file.jsonl:3: "));
  EXPECT_THAT(Read("{\"tokens\":[1]}\n{\"tokens\":[500]}").status().message(),
              HasSubstr("file.jsonl:2: tokens[0]"));
  EXPECT_THAT(Read("").status().message(), HasSubstr("holds no sequence"));
}

TEST(TokensFileTest, LongLinesAreRefusedBeforeTheyAreRead) {
  EXPECT_THAT(Read("{\"tokens\":[1]}\n" + std::string(100'000, '[')).status().message(),
              HasSubstr("file.jsonl:2: the line is longer than 200 bytes"));
}

TEST(TokensParserTest, PiecesMayBeCutAnywhere) {
  const std::string text = "\n{\"tokens\":[1]}\r\n\n{\"tokens\":[2,3],\"label\":9}";
  for (size_t size = 1; size <= text.size(); ++size) {
    std::vector<TokensLine> lines;
    TokensParser parser("file.jsonl", Limits(), [&](TokensLine line) {
      lines.push_back(std::move(line));
      return absl::OkStatus();
    });
    for (size_t at = 0; at < text.size(); at += size) {
      ASSERT_TRUE(parser.Append(absl::string_view(text).substr(at, size)).ok());
    }
    ASSERT_TRUE(parser.Finish().ok());
    ASSERT_EQ(lines.size(), 2);
    EXPECT_EQ(lines[1].number, 4);
    EXPECT_EQ(lines[1].MaxId(), 9);
    // The extents are those of the lines in the file.
    EXPECT_EQ(text.substr(lines[0].offset, lines[0].bytes), "{\"tokens\":[1]}\r");
    EXPECT_EQ(text.substr(lines[1].offset, lines[1].bytes), "{\"tokens\":[2,3],\"label\":9}");
  }
}

TEST(TokensParserTest, ErrorsOfTheReceiverEndTheReading) {
  TokensParser parser("x", Limits(),
                      [](const TokensLine&) { return absl::ResourceExhaustedError("full"); });
  EXPECT_EQ(parser.Append("{\"tokens\":[1]}\n").code(), absl::StatusCode::kResourceExhausted);
}

TEST(TokensFileTest, MissingFilesAreNamed) {
  for (const std::string& path : {std::string("/nowhere/tokens.jsonl"), testing::TempDir()}) {
    const absl::Status status = ReadTokensFile(path, Limits()).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr(path));
  }
}

}  // namespace
}  // namespace hopscope::tokens
