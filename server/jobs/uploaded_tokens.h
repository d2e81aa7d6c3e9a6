// Sequences of the users' own: taken in as tokens files, kept by content digest within a quota for
// each tenant, read by workers, deleted when nobody needs them.
//
// Contract
// 1. Finish() returns once everything is durable. An upload that is given up, or cut off with its
//    server, leaves nothing that is not deleted in time.
// 2. The same content gives the same digest, and is kept once a tenant: an upload may be repeated.
// 3. Sequences stay for as long as there is a job with them, and for `retention` after they were
//    last uploaded or given to a new job.
// Methods block on the store. Thread-safe, but for an Upload, which is used by one thread at a
// time.
#ifndef HOPSCOPE_SERVER_JOBS_UPLOADED_TOKENS_H_
#define HOPSCOPE_SERVER_JOBS_UPLOADED_TOKENS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/sha256.h"
#include "common/tokens/tokens_file.h"
#include "hopscope/v1/dispatch.pb.h"
#include "hopscope/v1/evaluation.pb.h"
#include "server/jobs/tokens_index.h"
#include "server/store/store.h"

namespace hopscope::jobs {

class UploadedTokens {
 public:
  struct Options {
    int64_t max_bytes_per_upload = int64_t{256} << 20;
    int64_t max_bytes_per_tenant = int64_t{1} << 30;
    int64_t max_sequences = 1'000'000;  // of an upload
    absl::Duration retention = absl::Hours(24);
    // An upload that sends nothing for so long is given up.
    absl::Duration stall = absl::Hours(1);
  };

  // Pointers must outlive the object.
  UploadedTokens(const Options& options, store::Store* store, const common::Clock* clock)
      : options_(options), store_(store), clock_(clock) {}

  class Upload {
   public:
    // Gives up what was not finished.
    ~Upload();

    // INVALID_ARGUMENT (TOKENS_FILE_INVALID) names the line; RESOURCE_EXHAUSTED
    // (TOKENS_QUOTA_EXCEEDED) the limit. Nothing may follow an error.
    absl::Status Append(absl::string_view piece);
    absl::StatusOr<v1::UploadTokensResponse> Finish();

    // Leaves what was stored to be deleted as stalled; the destructor then does nothing.
    void Leave() { row_.key = 0; }

   private:
    friend class UploadedTokens;
    Upload(UploadedTokens* owner, std::string tenant);
    absl::Status StoreChunk();

    UploadedTokens& owner_;
    store::TokensRow row_;  // without a key before the first chunk is stored
    TokensIndex index_;
    tokens::TokensParser parser_;
    common::Sha256 hash_;
    std::string chunk_;
    int64_t chunks_ = 0;
    int64_t bytes_ = 0;
  };

  std::unique_ptr<Upload> StartUpload(std::string tenant);

  // Complete sequences of a tenant. NOT_FOUND (TOKENS_NOT_FOUND) names `field`.
  struct Found {
    store::TokensRow row;
    std::shared_ptr<const TokensIndex> index;
  };
  absl::StatusOr<Found> Find(absl::string_view tenant, const std::string& digest,
                             absl::string_view field);

  // A page of a range of sequences, of any tenant: a digest is as good as the content.
  absl::StatusOr<v1::FetchTokensResponse> Fetch(const v1::FetchTokensRequest& request);

  // Keeps what a new job needs. In the transaction that stores the job. NOT_FOUND where it was
  // deleted meanwhile.
  absl::Status Link(store::Transaction& transaction, store::JobKey job, absl::string_view tenant,
                    const std::string& digest, absl::string_view field);

  // Deletes what nobody needs any more. To be called now and then, on any replica.
  absl::Status DeleteUnused();

 private:
  absl::StatusOr<std::shared_ptr<const TokensIndex>> ReadIndex(store::ReadTransaction& transaction,
                                                               const store::TokensRow& row);

  const Options options_;
  store::Store* const store_;
  const common::Clock* const clock_;

  common::Mutex mutex_;
  // Indexes that were used lately, the latest first. They never change.
  std::list<std::pair<std::string, std::shared_ptr<const TokensIndex>>> recent_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hopscope::jobs

#endif  // HOPSCOPE_SERVER_JOBS_UPLOADED_TOKENS_H_
