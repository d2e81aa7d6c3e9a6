#include "client/cli/text_table.h"

#include "gtest/gtest.h"

namespace hopscope::cli {
namespace {

TEST(TextTableTest, AlignsColumnsByWhatIsSeen) {
  TextTable table({Align::kLeft, Align::kRight, Align::kLeft});
  table.AddRow({"name", "n", "note"});
  table.AddRow({"a", "1,200",
                "0.5 \xc2\xb1"
                "0.1"});
  table.AddRow({"longer"});
  EXPECT_EQ(table.Render(2),
            "  name        n  note\n"
            "  a       1,200  0.5 \xc2\xb1"
            "0.1\n"
            "  longer\n");
}

TEST(TextTableTest, CutsLongTexts) {
  EXPECT_EQ(CutToWidth("abcdef", 6), "abcdef");
  EXPECT_EQ(CutToWidth("abcdef", 4), "abc~");
  EXPECT_EQ(CutToWidth("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f", 3), "\xc3\xa4\xc3\xb6~");
  EXPECT_EQ(CutToWidth("abc", 0), "");
}

}  // namespace
}  // namespace hopscope::cli
