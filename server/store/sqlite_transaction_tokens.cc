// Uploaded sequences, and which jobs they are kept for.
#include <optional>
#include <string>
#include <utility>

#include "common/status.h"
#include "server/store/sqlite_transaction.h"

namespace hopscope::store {
namespace {

#define HOPSCOPE_SELECT_TOKENS "SELECT key, tenant, digest, bytes, sequences, use_time FROM tokens"

TokensRow ReadTokens(const SqliteStatement& row) {
  return {.key = row.Int(0),
          .tenant = row.Text(1),
          .digest = row.Text(2),
          .bytes = row.Int(3),
          .sequences = row.Int(4),
          .use_time = row.Time(5)};
}

absl::StatusOr<std::string> OrNotFound(absl::StatusOr<std::optional<std::string>> found) {
  if (!found.ok()) return found.status();
  if (!found->has_value()) {
    return common::MakeError(absl::StatusCode::kNotFound, "TOKENS_NOT_FOUND",
                             "there are no such sequences");
  }
  return **std::move(found);
}

}  // namespace

absl::StatusOr<std::optional<TokensRow>> SqliteTransaction::FindTokens(
    std::optional<absl::string_view> tenant, absl::string_view digest) {
  if (!tenant.has_value()) {
    return connection_.QueryOne(
        HOPSCOPE_SELECT_TOKENS " WHERE digest = ?1 AND digest <> '' LIMIT 1", ReadTokens, digest);
  }
  return connection_.QueryOne(HOPSCOPE_SELECT_TOKENS
                              " WHERE digest = ?1 AND tenant = ?2 AND digest <> ''",
                              ReadTokens, digest, *tenant);
}

absl::StatusOr<std::string> SqliteTransaction::GetTokensChunk(TokensKey key, int64_t chunk) {
  return OrNotFound(connection_.QueryOne(
      "SELECT bytes FROM tokens_chunks WHERE tokens = ?1 AND chunk = ?2",
      [](const SqliteStatement& row) { return row.Text(0); }, key, chunk));
}

absl::StatusOr<std::string> SqliteTransaction::GetTokensIndex(TokensKey key) {
  return OrNotFound(connection_.QueryOne(
      "SELECT entries FROM tokens_indexes WHERE tokens = ?1",
      [](const SqliteStatement& row) { return row.Text(0); }, key));
}

absl::StatusOr<int64_t> SqliteTransaction::SumTokensBytes(absl::string_view tenant, bool complete) {
  HOPSCOPE_ASSIGN_OR_RETURN(
      const std::optional<int64_t> bytes,
      connection_.QueryOne(
          "SELECT COALESCE(SUM(bytes), 0) FROM tokens "
          "WHERE tenant = ?1 AND (digest <> '') = ?2",
          [](const SqliteStatement& row) { return row.Int(0); }, tenant, complete));
  return bytes.value_or(0);
}

absl::StatusOr<TokensKey> SqliteTransaction::InsertTokens(const TokensRow& row) {
  HOPSCOPE_RETURN_IF_ERROR(connection_.Run(
      "INSERT INTO tokens (tenant, digest, bytes, sequences, use_time) VALUES (?, ?, ?, ?, ?)",
      row.tenant, row.digest, row.bytes, row.sequences, row.use_time));
  return connection_.LastInsertKey();
}

absl::Status SqliteTransaction::UpdateTokens(const TokensRow& row) {
  return connection_.RunOnRow(
      "UPDATE tokens SET digest = ?, bytes = ?, sequences = ?, use_time = ? WHERE key = ?",
      row.digest, row.bytes, row.sequences, row.use_time, row.key);
}

absl::Status SqliteTransaction::PutTokensChunk(TokensKey key, int64_t chunk,
                                               absl::string_view bytes) {
  return connection_.Run("INSERT INTO tokens_chunks (tokens, chunk, bytes) VALUES (?, ?, ?)", key,
                         chunk, Blob{bytes});
}

absl::Status SqliteTransaction::PutTokensIndex(TokensKey key, absl::string_view index) {
  return connection_.Run("INSERT INTO tokens_indexes (tokens, entries) VALUES (?, ?)", key,
                         Blob{index});
}

absl::Status SqliteTransaction::DeleteTokens(TokensKey key) {
  return connection_.Run("DELETE FROM tokens WHERE key = ?1", key);
}

absl::Status SqliteTransaction::LinkTokens(JobKey job, TokensKey key) {
  return connection_.Run("INSERT OR IGNORE INTO job_tokens (job, tokens) VALUES (?, ?)", job, key);
}

absl::StatusOr<int64_t> SqliteTransaction::DeleteUnusedTokens(absl::Time unused_since,
                                                              absl::Time stalled_since, int limit) {
  HOPSCOPE_RETURN_IF_ERROR(
      connection_.Run("DELETE FROM tokens WHERE key IN (SELECT key FROM tokens t WHERE "
                      "(digest <> '' AND use_time <= ?1 AND NOT EXISTS "
                      "(SELECT 1 FROM job_tokens j WHERE j.tokens = t.key)) OR "
                      "(digest = '' AND use_time <= ?2) LIMIT ?3)",
                      unused_since, stalled_since, limit));
  return connection_.Changes();
}

}  // namespace hopscope::store
