#include "client/yaml_tree.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Reason(absl::string_view text, const YamlLimits& limits = {}) {
  const auto tree = ParseYaml(text, "f.yaml", limits);
  return tree.ok() ? "OK" : common::ErrorReason(tree.status());
}

std::string Message(absl::string_view text, const YamlLimits& limits = {}) {
  return std::string(ParseYaml(text, "f.yaml", limits).status().message());
}

TEST(YamlTreeTest, RemembersWhereEverythingStood) {
  const auto tree = ParseYaml("a: 1\nb:\n  - x\n  - 'y'\n", "f.yaml");
  ASSERT_TRUE(tree.ok()) << tree.status();
  const YamlNode& root = **tree;
  ASSERT_EQ(root.kind, YamlNode::Kind::kMap);
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.entries[0].key, "a");
  EXPECT_EQ(root.entries[0].value->text, "1");
  EXPECT_EQ(root.entries[0].value->mark.line, 1);
  EXPECT_EQ(root.entries[0].value->mark.column, 4);
  EXPECT_EQ(root.entries[1].key_mark.line, 2);
  const YamlNode& list = *root.entries[1].value;
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_FALSE(list.items[0]->quoted);
  EXPECT_TRUE(list.items[1]->quoted);
  EXPECT_EQ(list.items[1]->mark.line, 4);
  EXPECT_EQ(list.items[1]->mark.column, 5);
}

TEST(YamlTreeTest, ReadsJson) {
  const auto tree = ParseYaml(R"({"a": [1, {"b": null}], "c": "x"})", "f.json");
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ((*tree)->entries[0].value->items[1]->entries[0].value->kind, YamlNode::Kind::kNull);
  EXPECT_TRUE((*tree)->entries[1].value->quoted);
}

TEST(YamlTreeTest, ErrorsSayFileLineAndColumn) {
  EXPECT_THAT(Message("a: 1\nb: [1, 2\n"), StartsWith("f.yaml:3:1: "));
  EXPECT_THAT(Message("a: 1\na: 2\n"), StartsWith("f.yaml:2:1: the key \"a\" stands twice"));
  EXPECT_THAT(Message("a: 1\nb: x\xff\n"), StartsWith("f.yaml:2:5: "));
}

TEST(YamlTreeTest, RefusesWhatASpecNeverNeeds) {
  EXPECT_EQ(Reason(""), "BAD_YAML");
  EXPECT_EQ(Reason("# only a comment\n"), "BAD_YAML");
  EXPECT_EQ(Reason("a: 1\n---\nb: 2\n"), "BAD_YAML") << "a second document";
  EXPECT_EQ(Reason("[1, 2]: 3\n"), "BAD_YAML") << "a list as key";
  EXPECT_EQ(Reason("a: !!int 3\n"), "BAD_YAML") << "a tag";
  EXPECT_EQ(Reason("a: *nowhere\n"), "BAD_YAML") << "an unknown anchor";
  EXPECT_EQ(Reason("a: &x [1, *x]\n"), "BAD_YAML") << "an alias to its own parent";
  EXPECT_EQ(Reason("a: 1\nb: {c: 1, c: 2}\n"), "DUPLICATE_KEY");
  EXPECT_EQ(Reason("\xfe\xff\0a"), "NOT_UTF8") << "UTF-16";
  EXPECT_EQ(Reason(std::string("a: \0", 4)), "NOT_UTF8");
}

TEST(YamlTreeTest, AliasesStandForTheirAnchors) {
  const auto tree = ParseYaml("a: &h [1, 2]\nb: *h\n", "f.yaml");
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ((*tree)->entries[1].value->items[1]->text, "2");
}

TEST(YamlTreeTest, BoundsSizeNodesAndDepth) {
  EXPECT_EQ(Reason("aaaa: 1", {.max_bytes = 6}), "FILE_TOO_LARGE");
  EXPECT_EQ(Reason("[1, 2, 3]", {.max_nodes = 4}), "OK");
  EXPECT_EQ(Reason("[1, 2, 3]", {.max_nodes = 3}), "YAML_TOO_LARGE");
  EXPECT_EQ(Reason("[[[1]]]", {.max_depth = 3}), "OK");
  EXPECT_EQ(Reason("[[[[1]]]]", {.max_depth = 3}), "YAML_TOO_DEEP");
  EXPECT_EQ(Reason("{a: &x [[1]], b: [[*x]]}", {.max_depth = 4}), "YAML_TOO_DEEP")
      << "depth through an alias";
  EXPECT_EQ(Reason("{a: &x [[1]], b: [*x]}", {.max_depth = 4}), "OK");
  EXPECT_THAT(Reason(std::string(100'000, '[')), ::testing::AnyOf("YAML_TOO_DEEP", "BAD_YAML"));
}

TEST(YamlTreeTest, ControlCharactersAndLongKeysAreRefused) {
  EXPECT_EQ(Reason("a: \"x\\u0007\""), "BAD_YAML");
  EXPECT_EQ(Reason("a: \"x\\x7f\""), "BAD_YAML");
  EXPECT_EQ(Reason("a: \"x\\n\\t\\u00e9\""), "OK");
  EXPECT_EQ(Reason("abcd: 1", {.max_key_bytes = 4}), "OK");
  EXPECT_EQ(Reason("abcde: 1", {.max_key_bytes = 4}), "BAD_YAML");
}

TEST(YamlTreeTest, TextsThatMultiplyAreRefusedToo) {
  std::string text = absl::StrCat("a: &x ", std::string(10'000, 'x'), "\nb: [*x");
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, ", *x");
  EXPECT_EQ(Reason(text + "]\n"), "YAML_TOO_LARGE");
}

TEST(YamlTreeTest, AliasesThatMultiplyAreRefusedAtOnce) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) absl::StrAppend(&bomb, j > 0 ? ", " : "", "*a", i - 1);
    absl::StrAppend(&bomb, "]\n");
  }
  EXPECT_EQ(Reason(bomb), "YAML_TOO_LARGE");
}

}  // namespace
}  // namespace hopscope::client
