#include "common/checkpoint/safetensors.h"

#include <sys/stat.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SafetensorsFile;
using testing::TempFolder;

absl::StatusOr<SafetensorsHeader> Parse(absl::string_view file) {
  return ParseSafetensorsHeader(file, file.size());
}

// The reason for which a file with that header, and so many bytes of data, is refused; "" where it
// is not.
std::string Reason(absl::string_view header, size_t data_bytes = 0) {
  const auto parsed = Parse(SafetensorsFile(header, std::string(data_bytes, 'd')));
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_LT(parsed.status().message().size(), 1000U);
  return common::ErrorReason(parsed.status());
}

std::string Entry(absl::string_view shape, absl::string_view offsets,
                  absl::string_view dtype = "F32") {
  return absl::StrCat(R"({"t":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)",
                      offsets, "}}");
}

TEST(SafetensorsHeader, ReadsTensorsInTheOrderOfTheirBytes) {
  const std::string file =
      SafetensorsFile(R"({"b":{"dtype":"F16","shape":[2,1],"data_offsets":[8,12]},)"
                      R"("__metadata__":{"format":"pt","note":""},)"
                      R"("a":{"data_offsets":[0,8],"shape":[],"dtype":"F64"}})",
                      "0123456789ab");
  const auto header = Parse(file);
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_EQ(header->tensors.size(), 2U);
  EXPECT_EQ(header->data_start, file.size() - 12);
  const TensorEntry& a = header->tensors[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.dtype->usable, TensorDtype::kF64);
  EXPECT_THAT(a.shape, IsEmpty());
  EXPECT_EQ(a.end, 8U);
  const TensorEntry& b = header->tensors[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_THAT(b.shape, ElementsAre(2, 1));
  EXPECT_EQ(b.begin, 8U);
  EXPECT_EQ(header->metadata.at("format"), "pt");
}

TEST(SafetensorsHeader, TakesWhiteSpaceAroundTheJson) {
  EXPECT_EQ(Reason("{}"), "");
  EXPECT_EQ(Reason(" \t\r\n{} \t\r\n  "), "");
}

TEST(SafetensorsHeader, TakesScalarsAndTensorsWithoutElements) {
  EXPECT_EQ(Reason(Entry("[]", "[0,4]"), 4), "");
  EXPECT_EQ(Reason(Entry("[0]", "[0,0]")), "");
  EXPECT_EQ(Reason(Entry("[3,0,9223372036854775807]", "[0,0]")), "");
  // Empty tensors may lie at either end of another.
  EXPECT_EQ(Reason(R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                   R"("y":{"dtype":"U8","shape":[0],"data_offsets":[4,4]},)"
                   R"("z":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                   4),
            "");
}

TEST(SafetensorsHeader, KnowsEveryDtypeOfTheFormat) {
  const struct {
    const char* name;
    int bits;
  } dtypes[] = {{"BOOL", 8},        {"U8", 8},         {"I8", 8},   {"I16", 16},    {"U16", 16},
                {"I32", 32},        {"U32", 32},       {"I64", 64}, {"U64", 64},    {"F16", 16},
                {"BF16", 16},       {"F32", 32},       {"F64", 64}, {"C64", 64},    {"F8_E4M3", 8},
                {"F8_E5M2", 8},     {"F8_E8M0", 8},    {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},
                {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}};
  for (const auto& dtype : dtypes) {
    const size_t bytes = static_cast<size_t>(dtype.bits);  // of 8 elements
    EXPECT_EQ(Reason(Entry("[8]", absl::StrCat("[0,", bytes, "]"), dtype.name), bytes), "")
        << dtype.name;
  }
  EXPECT_EQ(Reason(Entry("[8]", "[0,8]", "f32"), 8), "CHECKPOINT_DTYPE");
  EXPECT_EQ(Reason(Entry("[8]", "[0,8]", "U4"), 8), "CHECKPOINT_DTYPE");
}

TEST(SafetensorsHeader, RefusesElementsThatDoNotFillBytes) {
  EXPECT_EQ(Reason(Entry("[4]", "[0,3]", "F6_E2M3"), 3), "");
  EXPECT_EQ(Reason(Entry("[3]", "[0,2]", "F4"), 2), "CHECKPOINT_SHAPE");
}

TEST(SafetensorsHeader, RefusesFilesShorterThanTheLength) {
  for (size_t size = 0; size < 8; ++size) {
    EXPECT_EQ(common::ErrorReason(Parse(std::string(size, '\0')).status()), "CHECKPOINT_TRUNCATED");
  }
}

TEST(SafetensorsHeader, ChecksTheLengthBeforeAnythingElse) {
  const auto with_length = [](uint64_t length) {
    std::string bytes(8, '\0');
    for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
    // The claimed file is big enough, so that nothing but the cap can stop it.
    return common::ErrorReason(
        ParseSafetensorsHeader(bytes, std::numeric_limits<uint64_t>::max()).status());
  };
  EXPECT_EQ(with_length(100'000'001), "CHECKPOINT_HEADER_TOO_LARGE");
  EXPECT_EQ(with_length(std::numeric_limits<uint64_t>::max()), "CHECKPOINT_HEADER_TOO_LARGE");
  EXPECT_EQ(with_length(100'000'000), "CHECKPOINT_TRUNCATED");
}

TEST(SafetensorsHeader, RefusesAHeaderBeyondTheFile) {
  std::string file = SafetensorsFile("{}", "");
  file[0] = 3;
  EXPECT_EQ(common::ErrorReason(Parse(file).status()), "CHECKPOINT_TRUNCATED");
}

TEST(SafetensorsHeader, RefusesTextThatIsNotUtf8) {
  EXPECT_EQ(Reason("{\"\xFF\":{}}"), "CHECKPOINT_HEADER_NOT_UTF8");
}

TEST(SafetensorsHeader, RefusesTextThatIsNotJson) {
  for (const char* header : {"", "   ", "{", "{} x", "{}{}", "\xEF\xBB\xBF{}", "{\"a\":}", "nul"}) {
    EXPECT_EQ(Reason(header), "CHECKPOINT_HEADER_NOT_JSON") << header;
  }
  EXPECT_EQ(Reason(absl::string_view("{}\0", 3)), "CHECKPOINT_HEADER_NOT_JSON");
}

TEST(SafetensorsHeader, RefusesJsonOfAnotherLayout) {
  for (const char* header :
       {"[]",
        "null",
        "\"x\"",
        "7",
        R"({"t":null})",
        R"({"t":[]})",
        R"({"t":{}})",
        R"({"t":{"dtype":"F32","shape":[1]}})",
        R"({"t":{"dtype":7,"shape":[],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":{},"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":[],"data_offsets":[4]}})",
        R"({"t":{"dtype":"F32","shape":[],"data_offsets":[0,4,4]}})",
        R"({"t":{"dtype":"F32","shape":[],"data_offsets":[-4,0]}})",
        R"({"t":{"dtype":"F32","shape":[],"data_offsets":[0,4],"extra":{"deep":[[[[1]]]]}}})",
        R"({"t":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}})",
        R"({"__metadata__":{"a":1}})",
        R"({"__metadata__":{"a":{}}})",
        R"({"__metadata__":[]})",
        R"({"__metadata__":{"a":"1","a":"2"}})"}) {
    EXPECT_EQ(Reason(header, 4), "CHECKPOINT_HEADER_INVALID") << header;
  }
}

TEST(SafetensorsHeader, RefusesDeepNestingWithoutRecursion) {
  EXPECT_EQ(Reason(std::string(5'000'000, '[')), "CHECKPOINT_HEADER_INVALID");
}

TEST(SafetensorsHeader, RefusesNamesThatStandTwice) {
  const std::string entry = R"("t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_EQ(Reason(absl::StrCat("{", entry, ",", entry, "}"), 4), "CHECKPOINT_DUPLICATE_TENSOR");
  EXPECT_EQ(Reason(R"({"__metadata__":{},"__metadata__":{}})"), "CHECKPOINT_DUPLICATE_TENSOR");
}

TEST(SafetensorsHeader, RefusesShapesThatOverflow) {
  EXPECT_EQ(Reason(Entry("[2,18446744073709551614]", "[0,4]"), 4), "CHECKPOINT_SHAPE");
  EXPECT_EQ(Reason(Entry("[4611686018427387904,4]", "[0,0]")), "CHECKPOINT_SHAPE");
  EXPECT_EQ(Reason(Entry("[99999999999999999999999]", "[0,4]"), 4), "CHECKPOINT_HEADER_INVALID");
  std::string dims = "1";
  for (int i = 1; i < 64; ++i) dims += ",1";
  EXPECT_EQ(Reason(Entry("[" + dims + "]", "[0,4]"), 4), "");
  EXPECT_EQ(Reason(Entry("[" + dims + ",1]", "[0,4]"), 4), "CHECKPOINT_SHAPE");
}

TEST(SafetensorsHeader, RefusesOffsetsThatDoNotFit) {
  EXPECT_EQ(Reason(Entry("[1]", "[4,0]"), 4), "CHECKPOINT_OFFSETS");  // end before begin
  EXPECT_EQ(Reason(Entry("[1]", "[0,8]"), 8), "CHECKPOINT_OFFSETS");  // another size than the shape
  EXPECT_EQ(Reason(Entry("[1]", "[4,8]"), 8), "CHECKPOINT_OFFSETS");  // a hole in front
  EXPECT_EQ(Reason(Entry("[1]", "[18446744073709551612,18446744073709551615]"), 8),
            "CHECKPOINT_OFFSETS");
  const auto two = [](absl::string_view a, absl::string_view b) {
    return absl::StrCat(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)", a,
                        R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)", b, "}}");
  };
  EXPECT_EQ(Reason(two("[4,8]", "[0,4]"), 8), "");                      // any order of keys
  EXPECT_EQ(Reason(two("[0,4]", "[8,12]"), 12), "CHECKPOINT_OFFSETS");  // a hole
  EXPECT_EQ(Reason(two("[0,4]", "[2,6]"), 6), "CHECKPOINT_OFFSETS");    // an overlap
  EXPECT_EQ(Reason(two("[0,4]", "[0,4]"), 4), "CHECKPOINT_OFFSETS");    // the same bytes twice
}

TEST(SafetensorsHeader, RefusesAnotherFileSize) {
  EXPECT_EQ(Reason(Entry("[2]", "[0,8]"), 7), "CHECKPOINT_TRUNCATED");
  EXPECT_EQ(Reason(Entry("[2]", "[0,8]"), 9), "CHECKPOINT_TRAILING_BYTES");
  EXPECT_EQ(Reason("{}", 1), "CHECKPOINT_TRAILING_BYTES");
}

TEST(SafetensorsHeader, MessagesShowHostileNamesCutAndEscaped) {
  const auto parsed =
      Parse(SafetensorsFile(absl::StrCat("{\"\\n\\u0001", std::string(5000, 'x'), "\":{}}"), ""));
  EXPECT_LT(parsed.status().message().size(), 500U);
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("\\n\\x01xxx"));
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  TempFolder folder;
  folder.Write("file", "content");
  folder.Write("empty", "");
  auto file = MappedFile::Open(folder.Path("file"), "file");
  ASSERT_TRUE(file.ok()) << file.status();
  MappedFile moved = *std::move(file);
  EXPECT_EQ(moved.bytes(), "content");
  const auto empty = MappedFile::Open(folder.Path("empty"), "empty");
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->bytes(), "");
  moved = *MappedFile::Open(folder.Path("empty"), "empty");
  EXPECT_EQ(moved.bytes(), "");
}

TEST(MappedFile, SaysWhatIsWrongWithAFile) {
  TempFolder folder;
  folder.MakeFolder("folder");
  ASSERT_EQ(mkfifo(folder.Path("fifo").c_str(), 0600), 0);
  const auto missing = MappedFile::Open(folder.Path("missing"), "missing");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(common::ErrorReason(missing.status()), "CHECKPOINT_MISSING_FILE");
  for (const char* name : {"folder", "fifo"}) {
    const auto file = MappedFile::Open(folder.Path(name), name);
    EXPECT_EQ(common::ErrorReason(file.status()), "CHECKPOINT_UNREADABLE") << name;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(name));
  }
}

}  // namespace
}  // namespace hopscope::checkpoint
