// For tests: a worker that calls the dispatcher directly. Its "engine" makes results that depend on
// each item alone, with scores whose sums depend on the order in which they are added up, as those
// of a real one do.
#ifndef HOPSCOPE_SERVER_JOBS_TESTING_FAKE_WORKER_H_
#define HOPSCOPE_SERVER_JOBS_TESTING_FAKE_WORKER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hopscope/v1/dispatch.pb.h"
#include "server/jobs/dispatcher.h"

namespace hopscope::jobs::testing {

// A worker that can do everything that the catalogue lists, for GPT-J models in float32 and
// float64.
v1::WorkerDescription AbleWorker(const std::string& kind = "cpu/test");

// What the engine of a worker finds. Items whose index is in `numeric` give no result.
v1::UnitResult ComputeUnit(const v1::WorkUnit& unit, const std::string& kind = "cpu/test",
                           const std::vector<int64_t>& numeric = {});

class FakeWorker {
 public:
  // Registers, which must work.
  FakeWorker(Dispatcher* dispatcher, std::string id,
             const v1::WorkerDescription& description = AbleWorker());

  absl::Status Register();
  const std::string& id() const { return id_; }
  // After the dispatcher was made anew.
  void Use(Dispatcher* dispatcher) { dispatcher_ = dispatcher; }

  absl::StatusOr<std::vector<v1::UnitLease>> TryLease(
      int max_units, const std::vector<std::string>& loaded_digests = {});
  // As TryLease, which must work.
  std::vector<v1::UnitLease> Lease(int max_units,
                                   const std::vector<std::string>& loaded_digests = {});
  // The one unit that there must be.
  v1::UnitLease LeaseOne();

  absl::StatusOr<Dispatcher::HeartbeatAnswer> Heartbeat(const std::vector<v1::UnitLease>& held = {},
                                                        bool draining = false,
                                                        bool known_drain = false);

  using Disposition = v1::ReportUnitResponse::Disposition;
  absl::StatusOr<Disposition> Report(const v1::UnitLease& lease, const v1::UnitResult& result,
                                     int parts = 1);
  absl::StatusOr<Disposition> ReportPart(const v1::UnitLease& lease, const std::string& bytes,
                                         int part, int part_count);
  // Computes the unit and reports it.
  absl::StatusOr<Disposition> Complete(const v1::UnitLease& lease);
  absl::StatusOr<Disposition> Fail(const v1::UnitLease& lease, const std::string& reason,
                                   const std::string& message = "");
  absl::StatusOr<Disposition> HandBack(const v1::UnitLease& lease);

  // Computes whatever there is, `batch` units at a time. Returns how many those were.
  int RunAll(int batch = 1);

 private:
  Dispatcher* dispatcher_;
  const std::string id_;
  const v1::WorkerDescription description_;
};

}  // namespace hopscope::jobs::testing

#endif  // HOPSCOPE_SERVER_JOBS_TESTING_FAKE_WORKER_H_
