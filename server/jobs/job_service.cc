#include "server/jobs/job_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/families/family.h"
#include "common/spec/catalog.h"
#include "common/spec/text.h"
#include "common/spec/validate.h"
#include "common/status.h"
#include "common/version.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/jobs/effects.h"
#include "server/jobs/field_error.h"
#include "server/jobs/job_edit.h"
#include "server/jobs/job_viewer.h"
#include "server/jobs/list_filter.h"
#include "server/jobs/names.h"
#include "server/jobs/page_token.h"
#include "server/jobs/planner.h"
#include "server/jobs/proto_time.h"
#include "server/jobs/required.h"
#include "server/jobs/results.h"

namespace hopscope::jobs {
namespace {

constexpr size_t kMaxRequestIdBytes = 128;
// Pages end below the 1 MiB that the API promises, with room for what surrounds their rows.
constexpr int64_t kMaxPageBytes = (1 << 20) - (16 << 10);

absl::Status NoSuchJob(absl::string_view name) {
  return common::MakeError(absl::StatusCode::kNotFound, "JOB_NOT_FOUND",
                           absl::StrCat("there is no job ", name));
}

absl::StatusOr<store::JobRow> FindJob(store::ReadTransaction& transaction, const std::string& id) {
  HOPSCOPE_ASSIGN_OR_RETURN(std::optional<store::JobRow> job, transaction.FindJob(id));
  if (!job.has_value()) return NoSuchJob(JobName(id));
  return *std::move(job);
}

absl::Status CheckRequestId(const std::string& request_id) {
  if (request_id.size() <= kMaxRequestIdBytes && spec::IsPrintableUtf8(request_id)) {
    return absl::OkStatus();
  }
  return common::InvalidField(
      "TEXT_INVALID", "request_id", spec::Quoted(request_id),
      absl::StrCat("at most ", kMaxRequestIdBytes, " bytes of printable text"));
}

store::JobRow NewJob(const Plan& plan, absl::Time now) {
  store::JobRow job;
  const v1::PlanEstimate& estimate = plan.job.estimate;
  job.tenant = plan.job.spec.tenant();
  job.priority = plan.job.spec.priority();
  job.create_time = now;
  if (plan.job.spec.deadline_s() > 0) {
    job.deadline =
        absl::FromUnixMicros(absl::ToUnixMicros(now + absl::Seconds(plan.job.spec.deadline_s())));
  }
  job.totals.set_cells(estimate.cells());
  job.totals.set_units(estimate.units());
  job.totals.set_items(estimate.sequences());
  job.queued_units = estimate.units();
  return job;
}

// Stores a new job with its first events. Returns the row as it is stored.
absl::StatusOr<store::JobRow> InsertJob(store::Transaction& transaction, Effects& effects,
                                        const Plan& plan, absl::Time now) {
  store::JobRow job = NewJob(plan, now);
  job.id = NewJobId(now);
  job.state = v1::EvalJob::STATE_UNSPECIFIED;
  HOPSCOPE_ASSIGN_OR_RETURN(job.key, transaction.InsertJob(job, plan.job));
  std::vector<store::CellRow> cells = plan.cells;
  for (store::CellRow& cell : cells) cell.job = job.key;
  HOPSCOPE_RETURN_IF_ERROR(transaction.InsertCells(cells));
  JobEdit edit(transaction, effects, std::move(job),
               std::make_shared<const store::JobPlanRow>(plan.job), now);
  HOPSCOPE_RETURN_IF_ERROR(edit.SetState(v1::EvalJob::STATE_PENDING));
  for (const std::string& warning : plan.job.warnings) {
    v1::EvalEvent event;
    event.mutable_warning()->set_reason("VOCABULARY_DIFFERS");
    event.mutable_warning()->set_message(warning);
    HOPSCOPE_RETURN_IF_ERROR(edit.AppendEvent(std::move(event)));
  }
  effects.WorkAppeared();
  HOPSCOPE_RETURN_IF_ERROR(edit.Save());
  return edit.job();
}

}  // namespace

JobService::JobService(Options options, store::Store* store, const checkpoint::ModelRoot* models,
                       Signals* signals, const common::Clock* clock)
    : options_{.limits = spec::CompleteLimits(options.limits),
               .tokens_retention = options.tokens_retention,
               .observer = options.observer},
      store_(store),
      models_(models),
      signals_(signals),
      clock_(clock),
      tokens_({.max_bytes_per_upload = options_.limits.max_tokens_bytes_per_upload(),
               .max_bytes_per_tenant = options_.limits.max_tokens_bytes_per_tenant(),
               .retention = options_.tokens_retention},
              store, clock) {}

JobService::~JobService() = default;

absl::StatusOr<std::optional<v1::CreateEvalJobResponse>> JobService::FindCreated(
    store::ReadTransaction& transaction, const v1::EvalJobSpec& spec,
    const std::string& request_id) {
  if (request_id.empty()) return std::nullopt;
  HOPSCOPE_ASSIGN_OR_RETURN(const std::optional<store::JobRow> job,
                            transaction.FindRequest(spec.tenant(), request_id));
  if (!job.has_value()) return std::nullopt;
  HOPSCOPE_ASSIGN_OR_RETURN(const std::shared_ptr<const store::JobPlanRow> plan,
                            plans_.Get(transaction, *job));
  if (!google::protobuf::util::MessageDifferencer::Equals(plan->spec, spec)) {
    return common::MakeError(
        absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED",
        absl::StrCat("request_id ", spec::Quoted(request_id), " made ", JobName(job->id),
                     " from another spec: use a new id for a new job"),
        {{"field", "request_id"}, {"value", request_id}, {"job", JobName(job->id)}});
  }
  v1::CreateEvalJobResponse response;
  HOPSCOPE_ASSIGN_OR_RETURN(*response.mutable_job(), JobViewer(transaction, plans_).Show(*job));
  *response.mutable_estimate() = plan->estimate;
  return response;
}

absl::StatusOr<v1::CreateEvalJobResponse> JobService::CreateEvalJob(
    const v1::CreateEvalJobRequest& request, const CallContext& context) {
  HOPSCOPE_RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  v1::EvalJobSpec submitted = request.spec();
  if (submitted.tenant().empty()) submitted.set_tenant(context.tenant);
  HOPSCOPE_ASSIGN_OR_RETURN(const v1::EvalJobSpec spec,
                            spec::Normalize(submitted, options_.limits));
  std::optional<v1::CreateEvalJobResponse> created;
  if (!request.validate_only() && !request.request_id().empty()) {
    // Before planning, which may not work any more: a checkpoint may be gone.
    HOPSCOPE_RETURN_IF_ERROR(
        store_->Read("find_request", [&](store::ReadTransaction& transaction) -> absl::Status {
          HOPSCOPE_ASSIGN_OR_RETURN(created, FindCreated(transaction, spec, request.request_id()));
          return absl::OkStatus();
        }));
    if (created.has_value()) return *std::move(created);
  }

  const auto find_tokens =
      [&](const std::string& digest,
          absl::string_view field) -> absl::StatusOr<std::shared_ptr<const TokensIndex>> {
    HOPSCOPE_ASSIGN_OR_RETURN(UploadedTokens::Found found,
                              tokens_.Find(spec.tenant(), digest, field));
    return std::move(found.index);
  };
  HOPSCOPE_ASSIGN_OR_RETURN(Plan plan, MakePlan(spec, *models_, options_.limits,
                                                /*digests=*/!request.validate_only(), find_tokens));
  plan.job.request_id = request.request_id();
  plan.job.traceparent = context.traceparent;
  v1::CreateEvalJobResponse response;
  if (request.validate_only()) {
    *response.mutable_job() = DescribePlannedJob(NewJob(plan, StoreNow(*clock_)), plan.job);
    *response.mutable_estimate() = plan.job.estimate;
    return response;
  }

  Effects effects(signals_, &progress_, options_.observer);
  HOPSCOPE_RETURN_IF_ERROR(
      store_->Write("create_job", [&](store::Transaction& transaction) -> absl::Status {
        effects.Reset();
        response.Clear();
        // The same request may have been faster on another thread or server.
        HOPSCOPE_ASSIGN_OR_RETURN(created, FindCreated(transaction, spec, request.request_id()));
        if (created.has_value()) return absl::OkStatus();
        HOPSCOPE_ASSIGN_OR_RETURN(const store::JobRow job,
                                  InsertJob(transaction, effects, plan, StoreNow(*clock_)));
        for (int i = 0; i < spec.tasks_size(); ++i) {
          if (spec.tasks(i).tokens_digest().empty()) continue;
          HOPSCOPE_RETURN_IF_ERROR(tokens_.Link(transaction, job.key, spec.tenant(),
                                                spec.tasks(i).tokens_digest(),
                                                absl::StrCat("spec.tasks[", i, "].tokens_digest")));
        }
        HOPSCOPE_ASSIGN_OR_RETURN(*response.mutable_job(),
                                  JobViewer(transaction, plans_).Show(job));
        *response.mutable_estimate() = plan.job.estimate;
        return absl::OkStatus();
      }));
  effects.Raise();
  if (created.has_value()) return *std::move(created);
  return response;
}

absl::StatusOr<v1::GetEvalJobResponse> JobService::GetEvalJob(
    const v1::GetEvalJobRequest& request) {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string id, ParseJobName(request.name()));
  v1::GetEvalJobResponse response;
  HOPSCOPE_RETURN_IF_ERROR(
      store_->Read("get_job", [&](store::ReadTransaction& transaction) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(const store::JobRow job, FindJob(transaction, id));
        HOPSCOPE_ASSIGN_OR_RETURN(*response.mutable_job(),
                                  JobViewer(transaction, plans_).Show(job));
        return absl::OkStatus();
      }));
  return response;
}

absl::StatusOr<v1::ListEvalJobsResponse> JobService::ListEvalJobs(
    const v1::ListEvalJobsRequest& request) {
  store::JobQuery query;
  HOPSCOPE_ASSIGN_OR_RETURN(const int page_size, PageSize(request.page_size(), 50, 1000));
  HOPSCOPE_RETURN_IF_ERROR(ParseFilter(request.filter(), query));
  HOPSCOPE_RETURN_IF_ERROR(ParseOrder(request.order_by(), query));
  const std::string list =
      absl::StrCat("jobs\n", query.newest_first ? "desc" : "asc", "\n", request.filter());
  if (!request.page_token().empty()) {
    HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<int64_t> cursor,
                              ReadPageToken(list, request.page_token(), 2));
    query.after = {.create_time = absl::FromUnixMicros(cursor[0]), .key = cursor[1]};
  }
  // One more says whether there is another page.
  query.limit = page_size + 1;
  v1::ListEvalJobsResponse response;
  HOPSCOPE_RETURN_IF_ERROR(
      store_->Read("list_jobs", [&](store::ReadTransaction& transaction) -> absl::Status {
        response.Clear();
        HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<store::JobRow> jobs,
                                  transaction.ListJobs(query));
        JobViewer viewer(transaction, plans_);
        int64_t bytes = 0;
        for (size_t i = 0; i < jobs.size(); ++i) {
          v1::EvalJob job;
          if (i < static_cast<size_t>(page_size)) {
            HOPSCOPE_ASSIGN_OR_RETURN(job, viewer.Show(jobs[i]));
            bytes += static_cast<int64_t>(job.ByteSizeLong()) + 6;
          }
          if (i > 0 && (i == static_cast<size_t>(page_size) || bytes > kMaxPageBytes)) {
            const store::JobRow& last = jobs[i - 1];
            response.set_next_page_token(
                MakePageToken(list, {absl::ToUnixMicros(last.create_time), last.key}));
            break;
          }
          *response.add_jobs() = std::move(job);
        }
        return absl::OkStatus();
      }));
  return response;
}

absl::StatusOr<v1::CancelEvalJobResponse> JobService::CancelEvalJob(
    const v1::CancelEvalJobRequest& request) {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string id, ParseJobName(request.name()));
  v1::CancelEvalJobResponse response;
  Effects effects(signals_, &progress_, options_.observer);
  HOPSCOPE_RETURN_IF_ERROR(
      store_->Write("cancel_job", [&](store::Transaction& transaction) -> absl::Status {
        effects.Reset();
        response.Clear();
        HOPSCOPE_ASSIGN_OR_RETURN(store::JobRow job, FindJob(transaction, id));
        if (job.state == v1::EvalJob::STATE_CANCELLED) {
          HOPSCOPE_ASSIGN_OR_RETURN(*response.mutable_job(),
                                    JobViewer(transaction, plans_).Show(job));
          return absl::OkStatus();
        }
        if (HasEnded(job.state)) {
          return common::MakeError(absl::StatusCode::kFailedPrecondition, "JOB_ENDED",
                                   absl::StrCat(JobName(id), " has ended already, in state ",
                                                v1::EvalJob::State_Name(job.state)));
        }
        HOPSCOPE_ASSIGN_OR_RETURN(std::shared_ptr<const store::JobPlanRow> plan,
                                  plans_.Get(transaction, job));
        JobEdit edit(transaction, effects, std::move(job), std::move(plan), StoreNow(*clock_));
        HOPSCOPE_RETURN_IF_ERROR(edit.Finish(v1::EvalJob::STATE_CANCELLED));
        HOPSCOPE_RETURN_IF_ERROR(edit.Save());
        HOPSCOPE_ASSIGN_OR_RETURN(*response.mutable_job(),
                                  JobViewer(transaction, plans_).Show(edit.job()));
        return absl::OkStatus();
      }));
  effects.Raise();
  return response;
}

absl::StatusOr<v1::ListEvalResultsResponse> JobService::ListEvalResults(
    const v1::ListEvalResultsRequest& request) {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string id, ParseJobName(request.name()));
  HOPSCOPE_ASSIGN_OR_RETURN(const int page_size, PageSize(request.page_size(), 100, 1000));
  const std::string list = absl::StrCat("results\n", id, request.cells_only() ? "\ncells" : "");
  ResultCursor from;
  if (!request.page_token().empty()) {
    HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<int64_t> cursor,
                              ReadPageToken(list, request.page_token(), 2));
    from = {.cell = static_cast<int32_t>(cursor[0]), .row = static_cast<int32_t>(cursor[1])};
  }
  v1::ListEvalResultsResponse response;
  HOPSCOPE_RETURN_IF_ERROR(
      store_->Read("list_results", [&](store::ReadTransaction& transaction) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(const store::JobRow job, FindJob(transaction, id));
        HOPSCOPE_ASSIGN_OR_RETURN(const std::shared_ptr<const store::JobPlanRow> plan,
                                  plans_.Get(transaction, job));
        HOPSCOPE_ASSIGN_OR_RETURN(
            ResultPage page, ReadResults(transaction, job, *plan, from, page_size, kMaxPageBytes,
                                         request.cells_only()));
        response = std::move(page.response);
        if (page.more) {
          response.set_next_page_token(MakePageToken(list, {page.next.cell, page.next.row}));
        }
        return absl::OkStatus();
      }));
  return response;
}

absl::StatusOr<v1::GetCapabilitiesResponse> JobService::GetCapabilities(
    const v1::GetCapabilitiesRequest&) {
  v1::GetCapabilitiesResponse response;
  for (const v1::TaskCapability& task : spec::Tasks()) *response.add_tasks() = task;
  for (const v1::ScorerCapability& scorer : spec::Scorers()) *response.add_scorers() = scorer;
  for (const checkpoint::Family& family : checkpoint::Families()) {
    response.add_model_families(std::string(family.model_type));
  }
  for (const v1::Dtype dtype :
       {v1::DTYPE_FLOAT32, v1::DTYPE_FLOAT64, v1::DTYPE_BFLOAT16, v1::DTYPE_FLOAT16}) {
    response.add_dtypes(dtype);
  }
  *response.mutable_limits() = options_.limits;
  response.set_version(std::string(common::VersionString()));
  return response;
}

absl::StatusOr<v1::ListCheckpointsResponse> JobService::ListCheckpoints(
    const v1::ListCheckpointsRequest& request) {
  HOPSCOPE_ASSIGN_OR_RETURN(const int page_size, PageSize(request.page_size(), 100, 1000));
  const std::string list = absl::StrCat("checkpoints\n", request.pattern());
  size_t first = 0;
  if (!request.page_token().empty()) {
    HOPSCOPE_ASSIGN_OR_RETURN(const std::vector<int64_t> cursor,
                              ReadPageToken(list, request.page_token(), 1));
    first = static_cast<size_t>(cursor[0]);
  }
  const absl::StatusOr<std::vector<std::string>> names =
      request.pattern().empty() ? models_->List() : models_->Resolve(request.pattern());
  if (!names.ok()) {
    return request.pattern().empty() ? names.status() : AtField(names.status(), "pattern");
  }
  v1::ListCheckpointsResponse response;
  const size_t end = std::min(names->size(), first + page_size);
  for (size_t i = first; i < end; ++i) {
    const std::string& name = (*names)[i];
    v1::Checkpoint& checkpoint = *response.add_checkpoints();
    checkpoint.mutable_ref()->set_name(name);
    const absl::StatusOr<checkpoint::Checkpoint> opened = models_->OpenCheckpoint(name);
    absl::StatusOr<std::string> digest = opened.ok() ? models_->Digest(name) : opened.status();
    if (!digest.ok()) {
      checkpoint.set_problem(std::string(digest.status().message()));
      continue;
    }
    checkpoint.mutable_ref()->set_digest(*std::move(digest));
    checkpoint.set_family(opened->architecture().family);
    *checkpoint.mutable_shape() = opened->shape();
    checkpoint.set_weight_bytes(opened->weight_bytes());
  }
  if (end < names->size()) {
    response.set_next_page_token(MakePageToken(list, {static_cast<int64_t>(end)}));
  }
  return response;
}

absl::StatusOr<JobService::EventPage> JobService::ReadEvents(const std::string& name,
                                                             int64_t after_sequence, int max_events,
                                                             int64_t max_bytes) {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string id, ParseJobName(name));
  if (after_sequence < 0) {
    return common::InvalidField("VALUE_OUT_OF_RANGE", "after_sequence",
                                absl::StrCat(after_sequence), "at least 0");
  }
  EventPage page;
  HOPSCOPE_RETURN_IF_ERROR(
      store_->Read("read_events", [&](store::ReadTransaction& transaction) -> absl::Status {
        HOPSCOPE_ASSIGN_OR_RETURN(const store::JobRow job, FindJob(transaction, id));
        HOPSCOPE_ASSIGN_OR_RETURN(
            page.events, transaction.ListEvents(job.key, after_sequence, max_events, max_bytes));
        return absl::OkStatus();
      }));
  for (v1::EvalEvent& event : page.events) event.set_job(name);
  page.finished = !page.events.empty() && page.events.back().has_job_finished();
  return page;
}

}  // namespace hopscope::jobs
