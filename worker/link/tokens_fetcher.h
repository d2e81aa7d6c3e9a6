// Reads uploaded sequences from the server, page by page, and keeps those that were read lately:
// the units of several checkpoints of one series ask for the same ones.
//
// A server that cannot be reached is asked again until it can be or the run is cancelled. Errors of
// its own, and sequences that are not as they were checked at upload, are INTERNAL: the attempt
// fails with what they say. Thread-safe.
#ifndef HOPSCOPE_WORKER_LINK_TOKENS_FETCHER_H_
#define HOPSCOPE_WORKER_LINK_TOKENS_FETCHER_H_

#include <cstdint>
#include <list>
#include <string>
#include <tuple>

#include "absl/time/time.h"
#include "common/mutex.h"
#include "worker/engine/engine.h"
#include "worker/engine/tokens_reader.h"
#include "worker/link/backoff.h"
#include "worker/link/dispatch_stub.h"

namespace hopscope::link {

class TokensFetcher : public engine::TokensReader {
 public:
  struct Options {
    // Bytes of JSON lines that are kept; the last range that was read always is.
    int64_t cache_bytes = int64_t{64} << 20;
    absl::Duration call_timeout = absl::Seconds(10);
    Backoff::Options backoff = {.initial = absl::Milliseconds(100), .max = absl::Seconds(1)};
    uint64_t seed = 0;  // of the waits
  };

  // The stub must outlive the fetcher.
  TokensFetcher(const Options& options, DispatchStub* stub) : options_(options), stub_(*stub) {}

  absl::StatusOr<Lines> Read(const std::string& digest, int64_t first_item, int64_t item_count,
                             const engine::CancelFlag& cancel) override;

 private:
  using Key = std::tuple<std::string, int64_t, int64_t>;  // digest, first item, items
  struct Entry {
    Key key;
    Lines lines;
    int64_t bytes = 0;
  };

  absl::StatusOr<std::string> FetchRange(const Key& key, const engine::CancelFlag& cancel);
  absl::StatusOr<v1::FetchTokensResponse> FetchPage(const v1::FetchTokensRequest& request,
                                                    const engine::CancelFlag& cancel);
  Lines FindKept(const Key& key);
  void Keep(Entry entry);

  const Options options_;
  DispatchStub& stub_;
  common::Mutex mutex_;
  std::list<Entry> kept_ ABSL_GUARDED_BY(mutex_);  // the latest first
  int64_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_TOKENS_FETCHER_H_
