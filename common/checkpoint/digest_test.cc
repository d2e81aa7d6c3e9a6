#include "common/checkpoint/digest.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/testing/write_checkpoint.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hopscope::checkpoint {
namespace {

using testing::ReadFile;
using testing::TempFolder;

// Later than any file of a test, so that digests are remembered.
absl::Time Later() { return absl::Now() + absl::Hours(1); }

std::string LittleEndian(uint64_t value) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string HexSha256(absl::string_view bytes) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(hash), sizeof(hash)));
}

std::string MustDigest(DigestCache& cache, const TempFolder& folder) {
  const auto digest = cache.Digest(folder.path());
  EXPECT_TRUE(digest.ok()) << digest.status();
  return digest.value_or("");
}

TEST(Digest, HasTheDocumentedFormat) {
  TempFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", "weights");
  folder.Write("README.md", "not part of it");
  DigestCache cache;
  const std::string hashed =
      absl::StrCat(LittleEndian(11), "config.json", LittleEndian(2), "{}", LittleEndian(17),
                   "model.safetensors", LittleEndian(7), "weights");
  EXPECT_EQ(MustDigest(cache, folder), "sha256:" + HexSha256(hashed));
  // The same, computed with Python's hashlib.
  EXPECT_EQ(MustDigest(cache, folder),
            "sha256:e77516c2eac2628d1878e9393c422c81d92a3ee7233a3d6db214f859379163ec");
}

TEST(Digest, CoversTheShardsInTheOrderOfTheirNames) {
  TempFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors.index.json", R"({"weight_map":{"x":"b","y":"a","z":"b"}})");
  folder.Write("a", "first");
  folder.Write("b", "second");
  DigestCache cache;
  const std::string hashed = absl::StrCat(LittleEndian(1), "a", LittleEndian(5), "first",
                                          LittleEndian(1), "b", LittleEndian(6), "second",
                                          LittleEndian(11), "config.json", LittleEndian(2), "{}");
  EXPECT_EQ(MustDigest(cache, folder), "sha256:" + HexSha256(hashed));
}

TEST(Digest, IsRememberedWhileTheFilesStay) {
  TempFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", std::string(3'000'000, 'w'));
  const common::FakeClock clock(Later());
  DigestCache cache(&clock);
  const std::string digest = MustDigest(cache, folder);
  EXPECT_EQ(cache.bytes_hashed(), 3'000'002);
  EXPECT_EQ(MustDigest(cache, folder), digest);
  EXPECT_EQ(cache.bytes_hashed(), 3'000'002);
}

TEST(Digest, IsNotRememberedWhileTheFilesAreFresh) {
  TempFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", "weights");
  struct stat file = {};
  ASSERT_EQ(stat(folder.Path("model.safetensors").c_str(), &file), 0);
  common::FakeClock clock(absl::TimeFromTimespec(file.st_mtim) + absl::Milliseconds(10));
  DigestCache cache(&clock);
  MustDigest(cache, folder);
  MustDigest(cache, folder);
  EXPECT_EQ(cache.bytes_hashed(), 18);
  clock.Advance(DigestCache::kSettleTime);
  MustDigest(cache, folder);
  MustDigest(cache, folder);
  EXPECT_EQ(cache.bytes_hashed(), 27);
}

TEST(Digest, ChangesWithAnyByteOfAnyFile) {
  TempFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", "weights");
  const common::FakeClock clock(Later());
  DigestCache cache(&clock);
  const std::string first = MustDigest(cache, folder);
  folder.Write("model.safetensors", "weightz");  // the same size
  const std::string second = MustDigest(cache, folder);
  folder.Write("config.json", "[]");
  const std::string third = MustDigest(cache, folder);
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
  EXPECT_NE(first, third);
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", "weights");
  EXPECT_EQ(MustDigest(cache, folder), first);
}

TEST(Digest, IsTakenAgainWhenATimeChanges) {
  TempFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", "weights");
  const common::FakeClock clock(Later());
  DigestCache cache(&clock);
  const std::string digest = MustDigest(cache, folder);
  const timespec times[2] = {{1'000'000, 0}, {1'000'000, 1}};
  ASSERT_EQ(utimensat(AT_FDCWD, folder.Path("model.safetensors").c_str(), times, 0), 0);
  EXPECT_EQ(MustDigest(cache, folder), digest);
  EXPECT_EQ(cache.bytes_hashed(), 18);
  // A replaced file may have the old one's size and mtime: its inode and ctime tell.
  folder.Write("new", "WEIGHTS");
  ASSERT_EQ(utimensat(AT_FDCWD, folder.Path("new").c_str(), times, 0), 0);
  std::filesystem::rename(folder.Path("new"), folder.Path("model.safetensors"));
  EXPECT_NE(MustDigest(cache, folder), digest);
}

TEST(Digest, IsTheSameThroughALink) {
  TempFolder folder;
  folder.Write("blobs/1", "weights");
  folder.Write("snapshot/config.json", "{}");
  folder.Link("../blobs/1", "snapshot/model.safetensors");
  TempFolder plain;
  plain.Write("config.json", "{}");
  plain.Write("model.safetensors", "weights");
  const common::FakeClock clock(Later());
  DigestCache cache(&clock);
  EXPECT_EQ(*cache.Digest(folder.Path("snapshot")), MustDigest(cache, plain));
  folder.Write("blobs/1", "WEIGHTS");
  EXPECT_NE(*cache.Digest(folder.Path("snapshot")), MustDigest(cache, plain));
}

TEST(Digest, SaysWhatIsMissing) {
  TempFolder folder;
  DigestCache cache;
  const auto reason = [&] { return common::ErrorReason(cache.Digest(folder.path()).status()); };
  EXPECT_EQ(reason(), "CHECKPOINT_MISSING_CONFIG");
  folder.Write("config.json", "{}");
  EXPECT_EQ(reason(), "CHECKPOINT_MISSING_WEIGHTS");
  folder.Write("model.safetensors.index.json", R"({"weight_map":{"x":"a"}})");
  EXPECT_EQ(reason(), "CHECKPOINT_MISSING_FILE");
  folder.MakeFolder("a");
  EXPECT_EQ(reason(), "CHECKPOINT_UNREADABLE");
  EXPECT_EQ(common::ErrorReason(cache.Digest(folder.Path("none")).status()),
            "CHECKPOINT_NOT_FOUND");
}

TEST(Digest, ThreadsShareOneComputation) {
  TempFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", std::string(4'000'000, 'w'));
  const common::FakeClock clock(Later());
  DigestCache cache(&clock);
  std::vector<std::string> digests(8);
  std::vector<std::thread> threads;
  for (std::string& digest : digests) {
    threads.emplace_back([&] { digest = cache.Digest(folder.path()).value_or("failed"); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(digests, ::testing::Each(digests[0]));
  EXPECT_NE(digests[0], "failed");
  EXPECT_EQ(cache.bytes_hashed(), 4'000'002);
}

}  // namespace
}  // namespace hopscope::checkpoint
