#include "server/jobs/testing/fake_worker.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/spec/catalog.h"
#include "common/spec/scorer_params.h"
#include "common/version.h"
#include "gtest/gtest.h"

namespace hopscope::jobs::testing {
namespace {

// Layers and heads of checkpoint::testing::GptJ.
constexpr int kLayers = 2;
constexpr int kHeads = 2;

// A number in [0, 1) of what it is given: the finaliser of SplitMix64 (Steele, Lea, Flood, 2014).
double Hashed(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t z = (a * 0x9e3779b97f4a7c15) ^ (b * 0xbf58476d1ce4e5b9) ^ (c * 0x94d049bb133111eb);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

void AddValue(v1::ScoreMoments& score, int head, double value) {
  const int64_t n = score.count(head) + 1;
  const double delta = value - score.mean(head);
  score.set_count(head, n);
  score.set_mean(head, score.mean(head) + delta / static_cast<double>(n));
  score.set_m2(head, score.m2(head) + delta * (value - score.mean(head)));
}

}  // namespace

v1::WorkerDescription AbleWorker(const std::string& kind) {
  v1::WorkerDescription worker;
  worker.set_host("testhost");
  worker.set_pid(4711);
  worker.set_device("cpu");
  worker.set_kind(kind);
  worker.set_capacity(1);
  worker.set_threads(1);
  worker.set_memory_bytes(int64_t{1} << 30);
  *worker.mutable_version() = common::ProgramVersion();
  worker.add_dtypes(v1::DTYPE_FLOAT32);
  worker.add_dtypes(v1::DTYPE_FLOAT64);
  worker.add_model_families("gptj");
  for (const v1::TaskCapability& task : spec::Tasks()) worker.add_tasks(task.name());
  for (const v1::ScorerCapability& scorer : spec::Scorers()) worker.add_scorers(scorer.name());
  return worker;
}

v1::UnitResult ComputeUnit(const v1::WorkUnit& unit, const std::string& kind,
                           const std::vector<int64_t>& numeric) {
  v1::UnitResult result;
  result.set_kind(absl::StrCat(kind, "/", v1::Dtype_Name(unit.dtype())));
  for (const v1::ScorerSpec& scorer : unit.scorers()) {
    if (scorer.name() == "accuracy") continue;
    for (const google::protobuf::Struct& params : spec::ResultParams(scorer)) {
      for (const std::string& metric : spec::ResultMetrics(scorer)) {
        v1::ScoreMoments* score = result.add_scores();
        score->set_scorer(scorer.name());
        *score->mutable_params() = params;
        score->set_metric(metric);
        const bool per_head = spec::ScoresEachHead(scorer);
        const int steps =
            scorer.name() == spec::kAccuracyByPosition ? unit.sequences().window().target() : 0;
        const int size = per_head ? kLayers * kHeads : std::max(steps, 1);
        score->set_steps(steps);
        score->set_layers(per_head ? kLayers : 0);
        score->set_heads(per_head ? kHeads : 0);
        for (int head = 0; head < size; ++head) {
          score->add_count(0);
          score->add_mean(0);
          score->add_m2(0);
        }
      }
    }
  }
  const auto seed = static_cast<uint64_t>(unit.sequences().seed() * 31 + unit.sequences().hops());
  for (int64_t i = 0; i < unit.item_count(); ++i) {
    const int64_t item = unit.first_item() + i;
    if (std::find(numeric.begin(), numeric.end(), item) != numeric.end()) {
      result.set_items_failed(result.items_failed() + 1);
      v1::ItemFailure* failure = result.add_item_failures();
      failure->set_item(item);
      failure->mutable_failure()->set_reason("NUMERIC");
      failure->mutable_failure()->set_message("a logit is not finite");
      continue;
    }
    result.set_items(result.items() + 1);
    if (Hashed(seed, item, 0) < 0.75) result.set_correct(result.correct() + 1);
    for (int s = 0; s < result.scores_size(); ++s) {
      for (int head = 0; head < result.scores(s).count_size(); ++head) {
        AddValue(*result.mutable_scores(s), head, Hashed(seed, item, 1 + s * 100 + head));
      }
    }
  }
  return result;
}

FakeWorker::FakeWorker(Dispatcher* dispatcher, std::string id,
                       const v1::WorkerDescription& description)
    : dispatcher_(dispatcher), id_(std::move(id)), description_(description) {
  const absl::Status status = Register();
  EXPECT_TRUE(status.ok()) << status;
}

absl::Status FakeWorker::Register() {
  v1::RegisterWorkerRequest request;
  request.set_worker_id(id_);
  *request.mutable_description() = description_;
  return dispatcher_->RegisterWorker(request).status();
}

absl::StatusOr<std::vector<v1::UnitLease>> FakeWorker::TryLease(
    int max_units, const std::vector<std::string>& loaded_digests) {
  v1::LeaseUnitsRequest request;
  request.set_worker_id(id_);
  request.set_max_units(max_units);
  for (const std::string& digest : loaded_digests) request.add_loaded_digests(digest);
  const auto response = dispatcher_->LeaseUnits(request);
  if (!response.ok()) return response.status();
  return std::vector<v1::UnitLease>(response->leases().begin(), response->leases().end());
}

std::vector<v1::UnitLease> FakeWorker::Lease(int max_units,
                                             const std::vector<std::string>& loaded_digests) {
  const auto leases = TryLease(max_units, loaded_digests);
  EXPECT_TRUE(leases.ok()) << leases.status();
  return leases.ok() ? *leases : std::vector<v1::UnitLease>();
}

v1::UnitLease FakeWorker::LeaseOne() {
  const std::vector<v1::UnitLease> leases = Lease(1);
  EXPECT_EQ(leases.size(), 1u) << id_ << " found nothing to lease";
  return leases.empty() ? v1::UnitLease() : leases.front();
}

absl::StatusOr<Dispatcher::HeartbeatAnswer> FakeWorker::Heartbeat(
    const std::vector<v1::UnitLease>& held, bool draining, bool known_drain) {
  v1::HeartbeatRequest request;
  request.set_worker_id(id_);
  for (const v1::UnitLease& lease : held) request.add_attempt_ids(lease.attempt_id());
  request.set_draining(draining);
  request.set_known_drain(known_drain);
  return dispatcher_->Heartbeat(request);
}

absl::StatusOr<FakeWorker::Disposition> FakeWorker::ReportPart(const v1::UnitLease& lease,
                                                               const std::string& bytes, int part,
                                                               int part_count) {
  v1::ReportUnitRequest request;
  request.set_worker_id(id_);
  request.set_attempt_id(lease.attempt_id());
  request.set_part(part);
  request.set_part_count(part_count);
  request.set_result_part(bytes);
  const auto response = dispatcher_->ReportUnit(request);
  if (!response.ok()) return response.status();
  return response->disposition();
}

absl::StatusOr<FakeWorker::Disposition> FakeWorker::Report(const v1::UnitLease& lease,
                                                           const v1::UnitResult& result,
                                                           int parts) {
  const std::string bytes = result.SerializeAsString();
  const size_t size = (bytes.size() + parts - 1) / parts;
  absl::StatusOr<Disposition> disposition;
  for (int part = 0; part < parts; ++part) {
    const size_t begin = std::min(bytes.size(), part * size);
    disposition = ReportPart(lease, bytes.substr(begin, size), part, parts);
    if (!disposition.ok()) break;
  }
  return disposition;
}

absl::StatusOr<FakeWorker::Disposition> FakeWorker::Complete(const v1::UnitLease& lease) {
  return Report(lease, ComputeUnit(lease.unit(), description_.kind()));
}

absl::StatusOr<FakeWorker::Disposition> FakeWorker::Fail(const v1::UnitLease& lease,
                                                         const std::string& reason,
                                                         const std::string& message) {
  v1::ReportUnitRequest request;
  request.set_worker_id(id_);
  request.set_attempt_id(lease.attempt_id());
  request.set_part_count(1);
  request.mutable_failure()->set_reason(reason);
  request.mutable_failure()->set_message(message);
  const auto response = dispatcher_->ReportUnit(request);
  if (!response.ok()) return response.status();
  return response->disposition();
}

absl::StatusOr<FakeWorker::Disposition> FakeWorker::HandBack(const v1::UnitLease& lease) {
  v1::ReportUnitRequest request;
  request.set_worker_id(id_);
  request.set_attempt_id(lease.attempt_id());
  request.set_part_count(1);
  request.mutable_hand_back()->set_reason("drain");
  const auto response = dispatcher_->ReportUnit(request);
  if (!response.ok()) return response.status();
  return response->disposition();
}

int FakeWorker::RunAll(int batch) {
  int units = 0;
  for (;;) {
    const std::vector<v1::UnitLease> leases = Lease(batch);
    if (leases.empty()) return units;
    for (const v1::UnitLease& lease : leases) {
      const auto disposition = Complete(lease);
      EXPECT_TRUE(disposition.ok()) << disposition.status();
      if (!disposition.ok()) return units;
      ++units;
    }
  }
}

}  // namespace hopscope::jobs::testing
