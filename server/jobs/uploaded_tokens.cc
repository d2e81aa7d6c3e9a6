#include "server/jobs/uploaded_tokens.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/jobs/proto_time.h"

namespace hopscope::jobs {
namespace {

constexpr int64_t kChunkBytes = store::ReadTransaction::kTokensChunkBytes;
// Pages end below the 1 MiB that the API promises.
constexpr int64_t kMaxPageBytes = (1 << 20) - (16 << 10);
// Indexes that are kept in memory.
constexpr size_t kMaxRecent = 16;
constexpr int kDeleteBatch = 16;

absl::Status Exhausted(absl::string_view what, int64_t bytes, int64_t limit) {
  return common::MakeError(absl::StatusCode::kResourceExhausted, "TOKENS_QUOTA_EXCEEDED",
                           absl::StrCat(what, " would take ", bytes, " bytes, more than the ",
                                        limit, " that are allowed"),
                           {{"value", absl::StrCat(bytes)}, {"allowed", absl::StrCat(limit)}});
}

}  // namespace

UploadedTokens::Upload::Upload(UploadedTokens* owner, std::string tenant)
    : owner_(*owner),
      parser_("tokens", {.max_lines = owner->options_.max_sequences},
              [this](const tokens::TokensLine& line) {
                index_.Add(line);
                return absl::OkStatus();
              }) {
  row_.tenant = std::move(tenant);
}

UploadedTokens::Upload::~Upload() {
  if (row_.key == 0) return;
  // What cannot be deleted now counts as stalled later.
  owner_.store_
      ->Write("delete_tokens",
              [&](store::Transaction& transaction) { return transaction.DeleteTokens(row_.key); })
      .IgnoreError();
}

absl::Status UploadedTokens::Upload::Append(absl::string_view piece) {
  bytes_ += static_cast<int64_t>(piece.size());
  if (bytes_ > owner_.options_.max_bytes_per_upload) {
    return Exhausted("the upload", bytes_, owner_.options_.max_bytes_per_upload);
  }
  HOPSCOPE_RETURN_IF_ERROR(parser_.Append(piece));
  hash_.Update(piece.data(), piece.size());
  while (!piece.empty()) {
    const size_t taken = std::min(piece.size(), static_cast<size_t>(kChunkBytes) - chunk_.size());
    chunk_.append(piece.data(), taken);
    piece.remove_prefix(taken);
    if (static_cast<int64_t>(chunk_.size()) == kChunkBytes) {
      HOPSCOPE_RETURN_IF_ERROR(StoreChunk());
    }
  }
  return absl::OkStatus();
}

absl::Status UploadedTokens::Upload::StoreChunk() {
  store::TokensRow row;
  HOPSCOPE_RETURN_IF_ERROR(
      owner_.store_->Write("store_tokens", [&](store::Transaction& transaction) -> absl::Status {
        row = row_;
        row.bytes += static_cast<int64_t>(chunk_.size());
        row.use_time = StoreNow(*owner_.clock_);
        HOPSCOPE_ASSIGN_OR_RETURN(const int64_t others,
                                  transaction.SumTokensBytes(row.tenant, /*complete=*/false));
        const int64_t limit = owner_.options_.max_bytes_per_tenant;
        if (others + static_cast<int64_t>(chunk_.size()) > limit) {
          return Exhausted("the uploads under way", others + static_cast<int64_t>(chunk_.size()),
                           limit);
        }
        if (row.key == 0) {
          HOPSCOPE_ASSIGN_OR_RETURN(row.key, transaction.InsertTokens(row));
        } else {
          HOPSCOPE_RETURN_IF_ERROR(transaction.UpdateTokens(row));
        }
        return transaction.PutTokensChunk(row.key, chunks_, chunk_);
      }));
  row_ = row;
  ++chunks_;
  chunk_.clear();
  return absl::OkStatus();
}

absl::StatusOr<v1::UploadTokensResponse> UploadedTokens::Upload::Finish() {
  HOPSCOPE_RETURN_IF_ERROR(parser_.Finish());
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string digest, hash_.Finish());
  v1::UploadTokensResponse response;
  response.set_digest(digest);
  response.set_sequences(static_cast<int64_t>(index_.entries.size()));
  if (!chunk_.empty()) HOPSCOPE_RETURN_IF_ERROR(StoreChunk());
  const std::string index = index_.Write();
  HOPSCOPE_RETURN_IF_ERROR(
      owner_.store_->Write("finish_tokens", [&](store::Transaction& transaction) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(std::optional<store::TokensRow> known,
                                  transaction.FindTokens(row_.tenant, digest));
        if (known.has_value()) {
          known->use_time = StoreNow(*owner_.clock_);
          HOPSCOPE_RETURN_IF_ERROR(transaction.UpdateTokens(*known));
          return transaction.DeleteTokens(row_.key);
        }
        HOPSCOPE_ASSIGN_OR_RETURN(const int64_t others,
                                  transaction.SumTokensBytes(row_.tenant, /*complete=*/true));
        if (others + bytes_ > owner_.options_.max_bytes_per_tenant) {
          return Exhausted(absl::StrCat("what is kept for tenant ", row_.tenant), others + bytes_,
                           owner_.options_.max_bytes_per_tenant);
        }
        store::TokensRow row = row_;
        row.digest = digest;
        row.sequences = response.sequences();
        row.use_time = StoreNow(*owner_.clock_);
        HOPSCOPE_RETURN_IF_ERROR(transaction.UpdateTokens(row));
        return transaction.PutTokensIndex(row.key, index);
      }));
  row_.key = 0;
  return response;
}

std::unique_ptr<UploadedTokens::Upload> UploadedTokens::StartUpload(std::string tenant) {
  return std::unique_ptr<Upload>(new Upload(this, std::move(tenant)));
}

absl::StatusOr<std::shared_ptr<const TokensIndex>> UploadedTokens::ReadIndex(
    store::ReadTransaction& transaction, const store::TokensRow& row) {
  {
    common::MutexLock lock(&mutex_);
    for (auto it = recent_.begin(); it != recent_.end(); ++it) {
      if (it->first != row.digest) continue;
      recent_.splice(recent_.begin(), recent_, it);
      return it->second;
    }
  }
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string bytes, transaction.GetTokensIndex(row.key));
  HOPSCOPE_ASSIGN_OR_RETURN(TokensIndex read, TokensIndex::Read(bytes));
  auto index = std::make_shared<const TokensIndex>(std::move(read));
  common::MutexLock lock(&mutex_);
  recent_.emplace_front(row.digest, index);
  if (recent_.size() > kMaxRecent) recent_.pop_back();
  return index;
}

absl::StatusOr<UploadedTokens::Found> UploadedTokens::Find(absl::string_view tenant,
                                                           const std::string& digest,
                                                           absl::string_view field) {
  Found found;
  HOPSCOPE_RETURN_IF_ERROR(
      store_->Read("find_tokens", [&](store::ReadTransaction& transaction) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(const std::optional<store::TokensRow> row,
                                  transaction.FindTokens(tenant, digest));
        if (!row.has_value()) return TokensNotFound(digest, field);
        found.row = *row;
        HOPSCOPE_ASSIGN_OR_RETURN(found.index, ReadIndex(transaction, *row));
        return absl::OkStatus();
      }));
  return found;
}

absl::StatusOr<v1::FetchTokensResponse> UploadedTokens::Fetch(
    const v1::FetchTokensRequest& request) {
  v1::FetchTokensResponse response;
  HOPSCOPE_RETURN_IF_ERROR(
      store_->Read("fetch_tokens", [&](store::ReadTransaction& transaction) -> absl::Status {
        response.Clear();
        HOPSCOPE_ASSIGN_OR_RETURN(const std::optional<store::TokensRow> row,
                                  transaction.FindTokens(std::nullopt, request.digest()));
        if (!row.has_value()) return TokensNotFound(request.digest(), "digest");
        HOPSCOPE_ASSIGN_OR_RETURN(const std::shared_ptr<const TokensIndex> index,
                                  ReadIndex(transaction, *row));
        const auto items = static_cast<int64_t>(index->entries.size());
        if (request.first_item() < 0 || request.item_count() < 1 || request.first_item() >= items ||
            request.item_count() > items - request.first_item()) {
          return common::InvalidField(
              "VALUE_OUT_OF_RANGE", "first_item",
              absl::StrCat(request.item_count(), " from ", request.first_item()),
              absl::StrCat("there are ", items, " sequences"));
        }
        const int64_t begin = index->entries[request.first_item()].offset;
        const TokensIndex::Entry& last =
            index->entries[request.first_item() + request.item_count() - 1];
        const int64_t total = last.offset + last.bytes - begin;
        if (request.offset() < 0 || request.offset() >= total) {
          return common::InvalidField("VALUE_OUT_OF_RANGE", "offset",
                                      absl::StrCat(request.offset()),
                                      absl::StrCat("0 to ", total - 1));
        }
        response.set_total_bytes(total);
        int64_t at = begin + request.offset();
        const int64_t end = std::min(begin + total, at + kMaxPageBytes);
        std::string& data = *response.mutable_data();
        while (at < end) {
          HOPSCOPE_ASSIGN_OR_RETURN(const std::string chunk,
                                    transaction.GetTokensChunk(row->key, at / kChunkBytes));
          const auto from = static_cast<size_t>(at % kChunkBytes);
          if (from >= chunk.size()) {
            return common::MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                                     "the store's file is damaged: sequences are cut short");
          }
          data.append(chunk, from, static_cast<size_t>(end - at));
          at = begin + request.offset() + static_cast<int64_t>(data.size());
        }
        return absl::OkStatus();
      }));
  return response;
}

absl::Status UploadedTokens::Link(store::Transaction& transaction, store::JobKey job,
                                  absl::string_view tenant, const std::string& digest,
                                  absl::string_view field) {
  HOPSCOPE_ASSIGN_OR_RETURN(std::optional<store::TokensRow> row,
                            transaction.FindTokens(tenant, digest));
  if (!row.has_value()) return TokensNotFound(digest, field);
  row->use_time = StoreNow(*clock_);
  HOPSCOPE_RETURN_IF_ERROR(transaction.UpdateTokens(*row));
  return transaction.LinkTokens(job, row->key);
}

absl::Status UploadedTokens::DeleteUnused() {
  const absl::Time now = StoreNow(*clock_);
  int64_t deleted = 0;
  do {
    HOPSCOPE_RETURN_IF_ERROR(
        store_->Write("delete_tokens", [&](store::Transaction& transaction) -> absl::Status {
          HOPSCOPE_ASSIGN_OR_RETURN(
              deleted, transaction.DeleteUnusedTokens(now - options_.retention,
                                                      now - options_.stall, kDeleteBatch));
          return absl::OkStatus();
        }));
  } while (deleted == kDeleteBatch);
  return absl::OkStatus();
}

}  // namespace hopscope::jobs
