#include "worker/link/tokens_fetcher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/status.h"

namespace hopscope::link {
namespace {

// A wait looks at whether the run was cancelled this often.
constexpr absl::Duration kCancelPoll = absl::Milliseconds(50);

absl::Status Cancelled() { return absl::CancelledError("the unit was cancelled"); }

absl::Status Broken(absl::string_view message) {
  return common::MakeError(absl::StatusCode::kInternal, "INTERNAL",
                           absl::StrCat("reading the uploaded sequences: ", message));
}

// What another try may mend.
bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

// False: cancelled meanwhile.
bool Pause(absl::Duration wait, const engine::CancelFlag& cancel) {
  const absl::Time end = absl::Now() + wait;
  while (!cancel.cancelled()) {
    const absl::Duration left = end - absl::Now();
    if (left <= absl::ZeroDuration()) return true;
    absl::SleepFor(std::min(left, kCancelPoll));
  }
  return false;
}

}  // namespace

absl::StatusOr<engine::TokensReader::Lines> TokensFetcher::Read(const std::string& digest,
                                                                int64_t first_item,
                                                                int64_t item_count,
                                                                const engine::CancelFlag& cancel) {
  const Key key(digest, first_item, item_count);
  if (Lines lines = FindKept(key); lines != nullptr) return lines;
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string data, FetchRange(key, cancel));
  auto lines = std::make_shared<std::vector<tokens::TokensLine>>();
  tokens::TokensParser parser("tokens", {}, [&lines](tokens::TokensLine line) {
    lines->push_back(std::move(line));
    return absl::OkStatus();
  });
  absl::Status status = parser.Append(data);
  if (status.ok()) status = parser.Finish();
  if (!status.ok()) return Broken(status.message());
  if (static_cast<int64_t>(lines->size()) != item_count) {
    return Broken(absl::StrCat(lines->size(), " sequences in place of ", item_count));
  }
  Keep({.key = key, .lines = lines, .bytes = static_cast<int64_t>(data.size())});
  return Lines(std::move(lines));
}

absl::StatusOr<std::string> TokensFetcher::FetchRange(const Key& key,
                                                      const engine::CancelFlag& cancel) {
  v1::FetchTokensRequest request;
  request.set_digest(std::get<0>(key));
  request.set_first_item(std::get<1>(key));
  request.set_item_count(std::get<2>(key));
  std::string data;
  while (true) {
    request.set_offset(static_cast<int64_t>(data.size()));
    HOPSCOPE_ASSIGN_OR_RETURN(const v1::FetchTokensResponse page, FetchPage(request, cancel));
    if (page.data().empty()) return Broken("the server sent an empty page");
    data += page.data();
    if (static_cast<int64_t>(data.size()) >= page.total_bytes()) return data;
  }
}

absl::StatusOr<v1::FetchTokensResponse> TokensFetcher::FetchPage(
    const v1::FetchTokensRequest& request, const engine::CancelFlag& cancel) {
  Backoff backoff(options_.backoff, options_.seed);
  while (!cancel.cancelled()) {
    Call call(options_.call_timeout);
    absl::StatusOr<v1::FetchTokensResponse> page = stub_.FetchTokens(request, &call);
    if (page.ok()) return page;
    if (!IsTransient(page.status())) return Broken(page.status().message());
    if (!Pause(backoff.Next(), cancel)) break;
  }
  return Cancelled();
}

engine::TokensReader::Lines TokensFetcher::FindKept(const Key& key) {
  common::MutexLock lock(&mutex_);
  for (auto entry = kept_.begin(); entry != kept_.end(); ++entry) {
    if (entry->key != key) continue;
    kept_.splice(kept_.begin(), kept_, entry);
    return entry->lines;
  }
  return nullptr;
}

void TokensFetcher::Keep(Entry entry) {
  common::MutexLock lock(&mutex_);
  for (const Entry& known : kept_) {
    if (known.key == entry.key) return;
  }
  kept_bytes_ += entry.bytes;
  kept_.push_front(std::move(entry));
  while (kept_bytes_ > options_.cache_bytes && kept_.size() > 1) {
    kept_bytes_ -= kept_.back().bytes;
    kept_.pop_back();
  }
}

}  // namespace hopscope::link
