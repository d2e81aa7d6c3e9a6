#include "server/jobs/uploaded_tokens.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/testing/fake_worker.h"
#include "server/jobs/testing/jobs_fixture.h"

namespace hopscope::jobs {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class UploadedTokensTest : public testing::JobsTest {
 protected:
  static std::string Lines(int count, int first = 0) {
    std::string lines;
    for (int i = 0; i < count; ++i) {
      absl::StrAppend(&lines, "{\"tokens\":[", 1 + (first + i) % 100, ",2,3],\"label\":4}\n");
    }
    return lines;
  }

  absl::StatusOr<v1::UploadTokensResponse> Upload(UploadedTokens& tokens, const std::string& text,
                                                  const std::string& tenant = "default",
                                                  size_t piece = 1000) {
    const auto upload = tokens.StartUpload(tenant);
    for (size_t at = 0; at < text.size(); at += piece) {
      HOPSCOPE_RETURN_IF_ERROR(upload->Append(absl::string_view(text).substr(at, piece)));
    }
    return upload->Finish();
  }

  std::string Digest(const std::string& text) {
    const auto response = Upload(service_->tokens(), text);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? response->digest() : "";
  }

  static std::string FetchAll(UploadedTokens& tokens, const std::string& digest, int64_t first,
                              int64_t count) {
    v1::FetchTokensRequest request;
    request.set_digest(digest);
    request.set_first_item(first);
    request.set_item_count(count);
    std::string data;
    while (true) {
      request.set_offset(static_cast<int64_t>(data.size()));
      const auto page = tokens.Fetch(request);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) return data;
      EXPECT_LT(page->ByteSizeLong(), 1u << 20);
      data += page->data();
      if (static_cast<int64_t>(data.size()) >= page->total_bytes()) return data;
    }
  }

  static v1::EvalJobSpec TokensSpec(const std::string& digest) {
    v1::EvalJobSpec spec;
    v1::TaskSpec* task = spec.add_tasks();
    task->set_task("tokens");
    task->set_tokens_digest(digest);
    task->add_checkpoints("number");
    return spec;
  }
};

TEST_F(UploadedTokensTest, AnUploadIsKeptByContentWhateverItsPieces) {
  const std::string text = Lines(10);
  const auto first = Upload(service_->tokens(), text);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(first->digest(), StartsWith("sha256:"));
  EXPECT_EQ(first->digest().size(), 7u + 64u);
  EXPECT_EQ(first->sequences(), 10);
  const auto again = Upload(service_->tokens(), text, "default", 7);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->digest(), first->digest());
  EXPECT_NE(Digest(Lines(11)), first->digest());
}

TEST_F(UploadedTokensTest, RangesComeBackAsTheyWereUploadedInPagesAndAfterARestart) {
  // More than two chunks of the store, with blank lines between.
  std::string text;
  for (int i = 0; i < 3; ++i) absl::StrAppend(&text, "\n", Lines(30'000, i * 7));
  const std::string digest = Digest(text);
  Reopen();
  UploadedTokens& tokens = service_->tokens();
  const std::string all = FetchAll(tokens, digest, 0, 90'000);
  EXPECT_EQ(all, text.substr(1, text.size() - 2));
  EXPECT_EQ(FetchAll(tokens, digest, 3, 1), "{\"tokens\":[4,2,3],\"label\":4}");
  v1::FetchTokensRequest request;
  request.set_digest(digest);
  request.set_first_item(89'999);
  request.set_item_count(2);
  EXPECT_EQ(tokens.Fetch(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.set_digest("sha256:0");
  EXPECT_EQ(common::ErrorReason(tokens.Fetch(request).status()), "TOKENS_NOT_FOUND");
}

TEST_F(UploadedTokensTest, AWrongLineIsNamedAndNothingIsKept) {
  const auto wrong = Upload(service_->tokens(), Lines(50'000) + "{\"tokens\":[]}\n");
  EXPECT_EQ(common::ErrorReason(wrong.status()), "TOKENS_FILE_INVALID");
  EXPECT_THAT(wrong.status().message(), HasSubstr("tokens:50001: "));
  int64_t bytes = -1;
  ASSERT_TRUE(store_
                  ->Read("test",
                         [&](store::ReadTransaction& t) -> absl::Status {
                           HOPSCOPE_ASSIGN_OR_RETURN(bytes, t.SumTokensBytes("default", false));
                           return absl::OkStatus();
                         })
                  .ok());
  EXPECT_EQ(bytes, 0);
}

TEST_F(UploadedTokensTest, QuotasAreKeptAndWhatIsThereMayBeUploadedAgain) {
  UploadedTokens tokens({.max_bytes_per_upload = 2000, .max_bytes_per_tenant = 3000}, store_.get(),
                        &clock_);
  const std::string text = Lines(60);  // some 1,700 bytes
  ASSERT_TRUE(Upload(tokens, text).ok());
  const auto other = Upload(tokens, Lines(60, 1));
  EXPECT_EQ(other.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(common::ErrorReason(other.status()), "TOKENS_QUOTA_EXCEEDED");
  EXPECT_TRUE(Upload(tokens, text).ok()) << "already kept";
  EXPECT_TRUE(Upload(tokens, Lines(60, 1), "another").ok()) << "a quota of its own";
  const auto large = Upload(tokens, Lines(100), "third");
  EXPECT_EQ(large.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(UploadedTokensTest, SequencesStayWithTheirJobsAndForATimeBesides) {
  const std::string used = Digest(Lines(5));
  const std::string unused = Digest(Lines(6));
  Create(TokensSpec(used));
  clock_.Advance(absl::Hours(23));
  ASSERT_TRUE(service_->tokens().DeleteUnused().ok());
  EXPECT_TRUE(service_->tokens().Find("default", unused, "x").ok());
  clock_.Advance(absl::Hours(2));
  ASSERT_TRUE(service_->tokens().DeleteUnused().ok());
  EXPECT_TRUE(service_->tokens().Find("default", used, "x").ok());
  EXPECT_EQ(common::ErrorReason(service_->tokens().Find("default", unused, "x").status()),
            "TOKENS_NOT_FOUND");
}

TEST_F(UploadedTokensTest, AnUploadThatIsCutOffIsDeletedInTime) {
  auto upload = service_->tokens().StartUpload("default");
  ASSERT_TRUE(upload->Append(Lines(50'000)).ok());
  upload->Leave();
  upload.reset();
  const auto under_way = [this] {
    int64_t bytes = -1;
    EXPECT_TRUE(store_
                    ->Read("test",
                           [&](store::ReadTransaction& t) -> absl::Status {
                             HOPSCOPE_ASSIGN_OR_RETURN(bytes, t.SumTokensBytes("default", false));
                             return absl::OkStatus();
                           })
                    .ok());
    return bytes;
  };
  EXPECT_GT(under_way(), 0);
  clock_.Advance(absl::Hours(2));
  ASSERT_TRUE(service_->tokens().DeleteUnused().ok());
  EXPECT_EQ(under_way(), 0);
}

TEST_F(UploadedTokensTest, AJobHasOneCellForEachCheckpointAndUnitsOfBoundedCost) {
  // Long and short sequences.
  std::string text;
  for (int i = 0; i < 300; ++i) {
    absl::StrAppend(&text, "{\"tokens\":[1");
    for (int t = 0; t < (i % 2 == 0 ? 5000 : 20); ++t) absl::StrAppend(&text, ",2");
    absl::StrAppend(&text, "]}\n");
  }
  v1::EvalJobSpec spec = TokensSpec(Digest(text));
  *spec.mutable_scorers() = testing::ScoredSpec().scorers();
  spec.add_seeds(1);
  spec.add_seeds(2);
  const std::string job = Create(spec);
  const v1::EvalJob created = Get(job);
  EXPECT_EQ(created.totals().cells(), 1);
  EXPECT_EQ(created.totals().items(), 300);
  EXPECT_GT(created.totals().units(), 1);
  Reopen();
  testing::FakeWorker worker(dispatcher_.get(), "workers/1");
  int64_t next = 0;
  while (true) {
    const auto leases = worker.Lease(1);
    if (leases.empty()) break;
    const v1::WorkUnit& unit = leases[0].unit();
    EXPECT_EQ(unit.first_item(), next);
    next += unit.item_count();
    EXPECT_EQ(unit.sequences().task(), "tokens");
    EXPECT_EQ(unit.sequences().tokens_digest(), spec.tasks(0).tokens_digest());
    EXPECT_FALSE(unit.sequences().has_window());
    v1::UnitResult result = testing::ComputeUnit(unit);
    result.set_correct(0);
    result.set_items_unlabelled(result.items());
    ASSERT_TRUE(worker.Report(leases[0], result).ok());
  }
  EXPECT_EQ(next, 300);
  EXPECT_EQ(Get(job).state(), v1::EvalJob::STATE_SUCCEEDED);
  const v1::CellResult cell = Results(job).cells(0);
  EXPECT_EQ(cell.items(), 300);
  EXPECT_EQ(cell.items_unlabelled(), 300);
  EXPECT_FALSE(cell.has_accuracy());
  EXPECT_EQ(cell.cell().tokens_digest(), spec.tasks(0).tokens_digest());
}

TEST_F(UploadedTokensTest, WhatDoesNotFitIsRefusedWithTheLine) {
  const std::string digest = Digest("{\"tokens\":[1]}\n\n{\"tokens\":[130]}\n");
  v1::EvalJobSpec spec = TokensSpec(digest);
  EXPECT_TRUE(TryCreate(spec).ok());
  spec.mutable_tasks(0)->set_checkpoints(0, "letter");
  const absl::Status small = TryCreate(spec).status();
  EXPECT_EQ(common::ErrorReason(small), "VOCABULARY_TOO_SMALL");
  EXPECT_THAT(small.message(), HasSubstr("line 3 of the sequences has token id 130"));
  EXPECT_THAT(small.message(), HasSubstr("0 to 128"));
  spec.mutable_tasks(0)->set_samples(1);
  EXPECT_TRUE(TryCreate(spec).ok()) << "the first line alone";
  spec.mutable_tasks(0)->set_samples(3);
  EXPECT_EQ(common::GetErrorInfo(TryCreate(spec).status())->metadata().at("field"),
            "spec.tasks[0].samples");
  spec = TokensSpec("sha256:" + std::string(64, '0'));
  const absl::Status unknown = TryCreate(spec).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(common::GetErrorInfo(unknown)->metadata().at("field"), "spec.tasks[0].tokens_digest");
}

}  // namespace
}  // namespace hopscope::jobs
