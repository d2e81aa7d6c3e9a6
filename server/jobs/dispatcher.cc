#include "server/jobs/dispatcher.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/spec/text.h"
#include "common/status.h"
#include "common/version.h"
#include "server/jobs/expiry.h"
#include "server/jobs/leasing.h"
#include "server/jobs/names.h"
#include "server/jobs/proto_time.h"
#include "server/jobs/reporting.h"

namespace hopscope::jobs {
namespace {

absl::Status UnknownWorker(absl::string_view worker_id) {
  return common::MakeError(
      absl::StatusCode::kNotFound, "WORKER_NOT_FOUND",
      absl::StrCat("worker ", worker_id, " is not registered, or was lost: register again"));
}

std::string VersionText(const v1::Version& version) {
  return absl::StrCat(version.major(), ".", version.minor(), ".", version.patch());
}

absl::Status CheckDescription(const v1::WorkerDescription& description) {
  const v1::Version server = common::ProgramVersion();
  if (description.version().major() != server.major()) {
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "VERSION_MISMATCH",
        absl::StrCat("the worker has version ", VersionText(description.version()), ", the server ",
                     VersionText(server), ": their major versions must be the same"),
        {{"worker_version", VersionText(description.version())},
         {"server_version", VersionText(server)}});
  }
  if (description.kind().empty() || !spec::IsPrintableUtf8(description.kind())) {
    return common::InvalidField("TEXT_INVALID", "description.kind",
                                spec::Quoted(description.kind()),
                                "a worker names its kind in printable characters");
  }
  return absl::OkStatus();
}

// A worker that may make calls: known, and not lost.
absl::StatusOr<store::WorkerRow> GetLiveWorker(store::Transaction& transaction,
                                               const std::string& worker_id) {
  HOPSCOPE_ASSIGN_OR_RETURN(std::optional<store::WorkerRow> worker,
                            transaction.GetWorker(worker_id));
  if (!worker.has_value() || worker->state == v1::Worker::STATE_LOST) {
    return UnknownWorker(worker_id);
  }
  return *std::move(worker);
}

// Renews those of the worker's leases that it names. Adds to `cancelled` the attempts that hold
// none.
absl::Status RenewLeases(store::Transaction& transaction, const v1::HeartbeatRequest& request,
                         absl::Time expiry,
                         google::protobuf::RepeatedPtrField<std::string>& cancelled) {
  HOPSCOPE_ASSIGN_OR_RETURN(std::vector<store::AttemptRow> leases,
                            transaction.LeasesOfWorker(request.worker_id()));
  std::map<std::string, store::JobKey> jobs;
  for (const std::string& attempt_id : request.attempt_ids()) {
    const absl::StatusOr<AttemptName> name = ParseAttemptId(attempt_id);
    auto lease = leases.end();
    if (name.ok()) {
      if (!jobs.contains(name->job_id)) {
        HOPSCOPE_ASSIGN_OR_RETURN(const std::optional<store::JobRow> job,
                                  transaction.FindJob(name->job_id));
        jobs[name->job_id] = job.has_value() ? job->key : -1;
      }
      const store::UnitKey unit = {
          .job = jobs[name->job_id], .cell = name->cell, .unit = name->unit};
      lease = std::find_if(leases.begin(), leases.end(), [&](const store::AttemptRow& row) {
        return row.unit == unit && row.number == name->number && row.nonce == name->nonce;
      });
    }
    if (lease == leases.end()) {
      *cancelled.Add() = attempt_id;
      continue;
    }
    lease->lease_expiry = expiry;
    HOPSCOPE_RETURN_IF_ERROR(transaction.UpdateAttempt(*lease));
  }
  return absl::OkStatus();
}

}  // namespace

Dispatcher::Dispatcher(Options options, store::Store* store, Signals* signals,
                       const common::Clock* clock)
    : options_(options),
      store_(store),
      signals_(signals),
      clock_(clock),
      no_expiry_before_(clock->Now() + options.lease_duration) {}

Dispatcher::~Dispatcher() = default;

absl::Status Dispatcher::Write(
    absl::string_view operation,
    absl::FunctionRef<absl::Status(store::Transaction&, Effects&, absl::Time)> body) {
  Effects effects(signals_, &progress_, options_.observer);
  const absl::Status status = store_->Write(operation, [&](store::Transaction& transaction) {
    effects.Reset();
    return body(transaction, effects, StoreNow(*clock_));
  });
  if (!status.ok()) {
    if (absl::IsUnavailable(status) || absl::IsDataLoss(status)) {
      // Whatever call it was: heartbeats may have met the same, and could renew nothing.
      common::MutexLock lock(&mutex_);
      no_expiry_before_ = clock_->Now() + options_.lease_duration;
    }
    return status;
  }
  effects.Raise();
  return absl::OkStatus();
}

absl::StatusOr<v1::RegisterWorkerResponse> Dispatcher::RegisterWorker(
    const v1::RegisterWorkerRequest& request) {
  HOPSCOPE_RETURN_IF_ERROR(CheckWorkerId(request.worker_id()));
  HOPSCOPE_RETURN_IF_ERROR(CheckDescription(request.description()));
  HOPSCOPE_RETURN_IF_ERROR(
      Write("register_worker", [&](store::Transaction& transaction, Effects&, absl::Time now) {
        HOPSCOPE_ASSIGN_OR_RETURN(std::optional<store::WorkerRow> known,
                                  transaction.GetWorker(request.worker_id()));
        store::WorkerRow worker;
        if (known.has_value()) {
          worker = *std::move(known);
        } else {
          worker.id = request.worker_id();
          worker.register_time = now;
        }
        worker.description = request.description();
        worker.state = worker.drain_wish ? v1::Worker::STATE_DRAINING : v1::Worker::STATE_ACTIVE;
        worker.heartbeat_time = now;
        return transaction.PutWorker(worker);
      }));
  v1::RegisterWorkerResponse response;
  response.set_lease_duration_ms(absl::ToInt64Milliseconds(options_.lease_duration));
  response.set_heartbeat_interval_ms(absl::ToInt64Milliseconds(options_.lease_duration / 3));
  *response.mutable_server_version() = common::ProgramVersion();
  return response;
}

absl::StatusOr<v1::LeaseUnitsResponse> Dispatcher::LeaseUnits(
    const v1::LeaseUnitsRequest& request) {
  HOPSCOPE_RETURN_IF_ERROR(CheckWorkerId(request.worker_id()));
  if (request.max_units() < 1) {
    return common::InvalidField("VALUE_OUT_OF_RANGE", "max_units",
                                absl::StrCat(request.max_units()), "at least 1");
  }
  const int max_units = std::min(request.max_units(), options_.max_units_per_lease);
  v1::LeaseUnitsResponse response;
  HOPSCOPE_RETURN_IF_ERROR(Write(
      "lease_units",
      [&](store::Transaction& transaction, Effects& effects, absl::Time now) -> absl::Status {
        response.Clear();
        HOPSCOPE_ASSIGN_OR_RETURN(store::WorkerRow worker,
                                  GetLiveWorker(transaction, request.worker_id()));
        if (worker.state != v1::Worker::STATE_ACTIVE) return absl::OkStatus();
        HOPSCOPE_RETURN_IF_ERROR(LeaseToWorker(transaction, plans_, effects, worker, request,
                                               max_units, options_.lease_duration, now, response));
        if (response.leases().empty()) return absl::OkStatus();  // and nothing to make durable
        worker.heartbeat_time = now;
        return transaction.PutWorker(worker);
      }));
  return response;
}

absl::StatusOr<Dispatcher::HeartbeatAnswer> Dispatcher::Heartbeat(
    const v1::HeartbeatRequest& request) {
  HOPSCOPE_RETURN_IF_ERROR(CheckWorkerId(request.worker_id()));
  HeartbeatAnswer answer;
  HOPSCOPE_RETURN_IF_ERROR(
      Write("heartbeat",
            [&](store::Transaction& transaction, Effects& effects, absl::Time now) -> absl::Status {
              answer.response.Clear();
              HOPSCOPE_ASSIGN_OR_RETURN(store::WorkerRow worker,
                                        GetLiveWorker(transaction, request.worker_id()));
              worker.heartbeat_time = now;
              const v1::Worker::State state = request.draining() || worker.drain_wish
                                                  ? v1::Worker::STATE_DRAINING
                                                  : v1::Worker::STATE_ACTIVE;
              // Units that another worker failed may have waited for this one.
              if (state != worker.state) effects.WorkAppeared();
              worker.state = state;
              HOPSCOPE_RETURN_IF_ERROR(transaction.PutWorker(worker));
              answer.response.set_drain(worker.drain_wish);
              return RenewLeases(transaction, request, now + options_.lease_duration,
                                 *answer.response.mutable_cancelled_attempt_ids());
            }));
  answer.urgent = answer.response.cancelled_attempt_ids_size() > 0 ||
                  answer.response.drain() != request.known_drain();
  return answer;
}

absl::StatusOr<v1::ReportUnitResponse> Dispatcher::ReportUnit(
    const v1::ReportUnitRequest& request) {
  HOPSCOPE_ASSIGN_OR_RETURN(const AttemptName name, CheckReport(request));
  v1::ReportUnitResponse response;
  HOPSCOPE_RETURN_IF_ERROR(Write(
      "report_unit",
      [&](store::Transaction& transaction, Effects& effects, absl::Time now) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(
            const v1::ReportUnitResponse::Disposition disposition,
            ApplyReport(transaction, plans_, effects, request, name, options_.max_attempts, now));
        response.set_disposition(disposition);
        return absl::OkStatus();
      }));
  return response;
}

absl::Status Dispatcher::SetDrainWish(const std::string& worker_id, bool drain) {
  HOPSCOPE_RETURN_IF_ERROR(CheckWorkerId(worker_id, "name"));
  return Write("drain_worker",
               [&](store::Transaction& transaction, Effects& effects, absl::Time) -> absl::Status {
                 HOPSCOPE_ASSIGN_OR_RETURN(store::WorkerRow worker,
                                           GetLiveWorker(transaction, worker_id));
                 if (worker.drain_wish == drain) return absl::OkStatus();
                 worker.drain_wish = drain;
                 // From now on, without waiting for the worker to say so; that it drains no more is
                 // for its heartbeat to tell.
                 if (drain) worker.state = v1::Worker::STATE_DRAINING;
                 effects.WorkerHasNews(worker_id);
                 effects.WorkAppeared();
                 return transaction.PutWorker(worker);
               });
}

absl::Status Dispatcher::Repeat(
    absl::string_view operation,
    absl::FunctionRef<absl::StatusOr<bool>(store::Transaction&, Effects&, absl::Time)> step) {
  for (bool more = true; more;) {
    HOPSCOPE_RETURN_IF_ERROR(Write(
        operation,
        [&](store::Transaction& transaction, Effects& effects, absl::Time now) -> absl::Status {
          HOPSCOPE_ASSIGN_OR_RETURN(more, step(transaction, effects, now));
          return absl::OkStatus();
        }));
  }
  return absl::OkStatus();
}

absl::Status Dispatcher::Tick() {
  bool may_expire = false;
  {
    common::MutexLock lock(&mutex_);
    may_expire = clock_->Now() >= no_expiry_before_;
  }
  return ApplyTime(may_expire);
}

absl::Status Dispatcher::ApplyTime(bool may_expire) {
  HOPSCOPE_RETURN_IF_ERROR(Repeat("end_overdue_jobs", [this](store::Transaction& transaction,
                                                             Effects& effects, absl::Time now) {
    return EndOverdueJobs(transaction, plans_, effects, now);
  }));
  if (!may_expire) return absl::OkStatus();
  HOPSCOPE_RETURN_IF_ERROR(Repeat(
      "lose_workers", [this](store::Transaction& transaction, Effects& effects, absl::Time now) {
        return LoseSilentWorkers(transaction, plans_, effects, options_.lease_duration,
                                 options_.max_attempts, now);
      }));
  HOPSCOPE_RETURN_IF_ERROR(Repeat(
      "end_leases", [this](store::Transaction& transaction, Effects& effects, absl::Time now) {
        return EndExpiredLeases(transaction, plans_, effects, options_.max_attempts, now);
      }));
  return Write("forget_workers", [this](store::Transaction& transaction, Effects&, absl::Time now) {
    return transaction.DeleteLostWorkers(now - options_.lost_worker_retention);
  });
}

absl::StatusOr<store::StateCounts> Dispatcher::CountStates() {
  store::StateCounts counts;
  HOPSCOPE_RETURN_IF_ERROR(
      store_->Read("count_states", [&counts](store::ReadTransaction& transaction) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(counts, transaction.CountStates());
        return absl::OkStatus();
      }));
  return counts;
}

}  // namespace hopscope::jobs
