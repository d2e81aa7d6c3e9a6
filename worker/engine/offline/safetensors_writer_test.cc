#include "worker/engine/offline/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/status.h"

namespace hopscope::engine {
namespace {

using checkpoint::testing::ReadFile;
using checkpoint::testing::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(SafetensorsWriterTest, WritesWhatTheReaderReads) {
  const TempFolder folder;
  const std::string path = folder.Path("out.safetensors");
  auto writer = SafetensorsWriter::Create(
      path,
      {{.name = "b", .dtype = "F64", .element_bytes = 8, .shape = {2, 1}},
       {.name = "a", .dtype = "F32", .element_bytes = 4, .shape = {3}},
       {.name = "none", .dtype = "F32", .element_bytes = 4, .shape = {0, 5}}},
      {{"made by", "a test"}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  const double b[] = {1.5, -2};
  const float a[] = {3, 4, 5};
  ASSERT_TRUE(writer->Append({reinterpret_cast<const char*>(b), 8}).ok());
  ASSERT_TRUE(writer->Append({reinterpret_cast<const char*>(b) + 8, 8}).ok());
  ASSERT_TRUE(writer->Append({reinterpret_cast<const char*>(a), 12}).ok());
  ASSERT_TRUE(writer->Finish().ok());

  const std::string bytes = ReadFile(path);
  const auto header = checkpoint::ParseSafetensorsHeader(bytes, bytes.size());
  ASSERT_TRUE(header.ok()) << header.status();
  ASSERT_EQ(header->tensors.size(), 3);
  EXPECT_EQ(header->data_start % 8, 0);
  EXPECT_EQ(header->metadata.at("made by"), "a test");
  for (const auto& tensor : header->tensors) {
    const char* const data = bytes.data() + header->data_start + tensor.begin;
    if (tensor.name == "b") {
      EXPECT_THAT(tensor.shape, ElementsAre(2, 1));
      EXPECT_EQ(std::string(data, 16), std::string(reinterpret_cast<const char*>(b), 16));
    } else if (tensor.name == "a") {
      EXPECT_EQ(tensor.dtype->name, "F32");
      EXPECT_EQ(std::string(data, 12), std::string(reinterpret_cast<const char*>(a), 12));
    }
  }
}

TEST(SafetensorsWriterTest, AFileThatIsNotFullDoesNotAppear) {
  const TempFolder folder;
  auto writer = SafetensorsWriter::Create(
      folder.Path("out"), {{.name = "a", .dtype = "F32", .element_bytes = 4, .shape = {3}}}, {});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->Append("1234").ok());
  EXPECT_FALSE(writer->Finish().ok());
  EXPECT_FALSE(writer->Append("123456789").ok());
  EXPECT_FALSE(std::filesystem::exists(folder.Path("out")));
}

}  // namespace
}  // namespace hopscope::engine
