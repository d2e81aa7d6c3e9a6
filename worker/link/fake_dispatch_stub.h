// A server in memory for tests of the link: it has units to lease, takes reports in, can vanish,
// restart, cancel and drain, and remembers what it was asked.
//
// Long polls block as the real ones do: until there is news, the call is cancelled, or its wait is
// over. Tests wait for what they expect with Await, never for time to pass. Thread-safe.
#ifndef HOPSCOPE_WORKER_LINK_FAKE_DISPATCH_STUB_H_
#define HOPSCOPE_WORKER_LINK_FAKE_DISPATCH_STUB_H_

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "hopscope/v1/dispatch.pb.h"
#include "worker/link/dispatch_stub.h"

namespace hopscope::link {

class FakeDispatchStub : public DispatchStub {
 public:
  // What the server has seen, in order.
  struct Seen {
    std::vector<v1::RegisterWorkerRequest> registrations;
    std::vector<v1::LeaseUnitsRequest> lease_requests;
    std::vector<v1::HeartbeatRequest> heartbeats;
    std::vector<v1::ReportUnitRequest> reports;   // every part that arrived
    std::vector<std::string> leased;              // attempts
    std::vector<v1::FetchTokensRequest> fetches;  // answered ones
    int failed_calls = 0;  // answered with an error while the server was down
    // What was applied, by attempt.
    std::map<std::string, v1::UnitResult> results;
    std::map<std::string, v1::Failure> failures;
    std::map<std::string, v1::HandBack> hand_backs;

    size_t applied() const { return results.size() + failures.size() + hand_backs.size(); }
  };

  // What registrations are answered with; 10 s at first.
  void SetHeartbeatInterval(absl::Duration interval);

  // Puts a unit into the queue; its attempt will be called `attempt_id`.
  void AddUnit(const std::string& attempt_id, v1::WorkUnit unit = {});

  // The job of an attempt is cancelled.
  void CancelAttempt(const std::string& attempt_id);
  void SetDrain(bool drain);

  // Every call fails with `error` from now on, those in progress at once, until Up.
  void Down(const absl::Status& error = absl::UnavailableError("connection refused"));
  // Answers again, and knows no worker where `forget` is true; leases and results are kept.
  void Up(bool forget = false);

  // The next RegisterWorker calls fail with this, until it is OK.
  void RefuseRegistration(const absl::Status& error);
  // The next `count` reports fail: before they are looked at, or after they were applied.
  void FailReports(int count, const absl::Status& error, bool applied = false);
  // When this part of a result arrives, those before it are lost, once: as if they had been kept in
  // the memory of a server that went away.
  void ForgetPartsBefore(int part);

  // The lines of an upload, handed out in pages of so many bytes.
  void SetTokens(const std::string& digest, std::vector<std::string> lines, size_t page_bytes);

  // Until the condition holds for what was seen; false, which fails the test, after half a minute.
  bool Await(const std::function<bool(const Seen&)>& condition);
  Seen seen() const;

  absl::StatusOr<v1::RegisterWorkerResponse> RegisterWorker(
      const v1::RegisterWorkerRequest& request, Call* call) override;
  absl::StatusOr<v1::LeaseUnitsResponse> LeaseUnits(const v1::LeaseUnitsRequest& request,
                                                    Call* call) override;
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request,
                                                  Call* call) override;
  absl::StatusOr<v1::ReportUnitResponse> ReportUnit(const v1::ReportUnitRequest& request,
                                                    Call* call) override;
  absl::StatusOr<v1::FetchTokensResponse> FetchTokens(const v1::FetchTokensRequest& request,
                                                      Call* call) override;

 private:
  // Blocks until `ready` holds (OK), the server goes down (has been so more than `outages` times),
  // the call was cancelled, or `wait` is over (OK).
  absl::Status Poll(Call* call, absl::Duration wait, int outages,
                    const std::function<bool()>& ready);
  absl::StatusOr<v1::ReportUnitResponse> Apply(const v1::ReportUnitRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Check(const std::string& worker_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable common::Mutex mutex_;
  common::CondVar changed_;
  Seen seen_ ABSL_GUARDED_BY(mutex_);
  absl::Status down_ ABSL_GUARDED_BY(mutex_);
  int outages_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status last_outage_ ABSL_GUARDED_BY(mutex_);
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  absl::Duration heartbeat_interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(10);
  std::set<std::string> workers_ ABSL_GUARDED_BY(mutex_);
  std::deque<v1::UnitLease> units_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::map<int, std::string>> parts_ ABSL_GUARDED_BY(mutex_);
  int forget_before_ ABSL_GUARDED_BY(mutex_) = 0;
  bool drain_ ABSL_GUARDED_BY(mutex_) = false;
  int failing_reports_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status report_error_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::string>> tokens_ ABSL_GUARDED_BY(mutex_);
  size_t page_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool report_error_after_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_FAKE_DISPATCH_STUB_H_
