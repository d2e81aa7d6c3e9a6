#include "client/cli/accuracy_table.h"

#include <sstream>

#include "absl/strings/str_split.h"
#include "client/cli/test_events.h"
#include "client/cli/text_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

using ::testing::ElementsAre;

TEST(AccuracyTableTest, HopsGoDownAndAddedTokensAcross) {
  EXPECT_THAT(
      AccuracyTables(
          {MakeResult(MakeCell(0, 1, 0), 1200, 1200), MakeResult(MakeCell(1, 1, 50), 1200, 1100),
           MakeResult(MakeCell(2, 2, 0), 1200, 600), MakeResult(MakeCell(3, 2, 50), 1200, 0)},
          100),
      ElementsAre(
          "Accuracy: number, number/step-06750\n"
          "  hops down, added tokens across; ± is the standard error; n = 1,200 sequences a cell\n"
          "  hops              +0             +50\n"
          "     1  1.0000 ±0.0000  0.9167 ±0.0080\n"
          "     2  0.5000 ±0.0144  0.0000 ±0.0000\n"));
}

TEST(AccuracyTableTest, EachTaskCheckpointAndSeedHasItsTable) {
  const auto tables = AccuracyTables(
      {MakeResult(MakeCell(0, 1, 0, "a"), 10, 5), MakeResult(MakeCell(1, 1, 0, "b"), 10, 5),
       MakeResult(MakeCell(2, 1, 0, "a", "letter"), 10, 5),
       MakeResult(MakeCell(3, 1, 0, "a", "number", 7), 10, 5),
       // The same task once more, as a spec may have it.
       MakeResult(MakeCell(4, 1, 0, "a"), 20, 5)},
      100);
  ASSERT_EQ(tables.size(), 5u);
  EXPECT_THAT(tables[0], testing::StartsWith("Accuracy: number, a, seed 42\n"));
  EXPECT_THAT(tables[1], testing::StartsWith("Accuracy: number, b, seed 42\n"));
  EXPECT_THAT(tables[2], testing::StartsWith("Accuracy: letter, a, seed 42\n"));
  EXPECT_THAT(tables[3], testing::StartsWith("Accuracy: number, a, seed 7\n"));
  EXPECT_THAT(tables[4], testing::HasSubstr("n = 20 sequences"));
}

TEST(AccuracyTableTest, SaysWhatFailedAndWhatRestsOnFewerSequences) {
  v1::CellResult nan = MakeResult(MakeCell(0, 1, 0), 90, 45);
  nan.set_items_failed(10);
  v1::CellResult single = MakeResult(MakeCell(2, 3, 0), 1, 1);
  EXPECT_THAT(AccuracyTables({nan, MakeFailedResult(MakeCell(1, 2, 0), "CHECKPOINT", "gone"),
                              single, MakeResult(MakeCell(3, 1, 50), 100, 50)},
                             100),
              ElementsAre("Accuracy: number, number/step-06750\n"
                          "  hops down, added tokens across; ± is the standard error\n"
                          "  hops                   +0                   +50\n"
                          "     1  0.5000 ±0.0530 n=90  0.5000 ±0.0503 n=100\n"
                          "     2               failed\n"
                          "     3        1.0000 ±- n=1\n"
                          "  10 sequences gave no result (NUMERIC)\n"));
}

TEST(AccuracyTableTest, ColumnsThatDoNotFitFollowBelow) {
  std::vector<v1::CellResult> results;
  for (int added = 0; added < 12; ++added)
    results.push_back(MakeResult(MakeCell(added, 1, 10 * added), 100, 50));
  const auto tables = AccuracyTables(results, 100);
  ASSERT_EQ(tables.size(), 1u);
  int lines = 0;
  for (absl::string_view line : absl::StrSplit(tables[0], '\n')) {
    EXPECT_LE(DisplayWidth(line), 100u) << line;
    ++lines;
  }
  EXPECT_EQ(lines, 2 + 3 * 2 + 1) << tables[0];
}

}  // namespace
}  // namespace hopscope::cli
