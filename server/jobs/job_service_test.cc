#include "server/jobs/job_service.h"

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/spec/scorer_params.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/testing/fake_worker.h"
#include "server/jobs/testing/jobs_fixture.h"

namespace hopscope::jobs {
namespace {

using testing::Bits;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeWorker;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobsTest;
using testing::ScoredSpec;
using ::testing::SizeIs;
using testing::SmallSpec;
using ::testing::StartsWith;

class JobServiceTest : public JobsTest {
 protected:
  absl::StatusOr<v1::ListEvalJobsResponse> List(const std::string& filter = "",
                                                const std::string& order = "", int page_size = 0,
                                                const std::string& token = "") {
    v1::ListEvalJobsRequest request;
    request.set_filter(filter);
    request.set_order_by(order);
    request.set_page_size(page_size);
    request.set_page_token(token);
    return service_->ListEvalJobs(request);
  }

  std::vector<std::string> Names(const std::string& filter = "", const std::string& order = "",
                                 int page_size = 0) {
    std::vector<std::string> names;
    std::string token;
    do {
      const auto page = List(filter, order, page_size, token);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      if (page_size > 0) {
        EXPECT_LE(page->jobs_size(), page_size);
      }
      for (const v1::EvalJob& job : page->jobs()) names.push_back(job.spec().name());
      token = page->next_page_token();
    } while (!token.empty());
    return names;
  }
};

TEST_F(JobServiceTest, AnAcceptedJobIsStoredWithAllThatIsKnownOfIt) {
  v1::EvalJobSpec spec = ScoredSpec();
  spec.set_name("sweep");
  (*spec.mutable_labels())["sweep"] = "lengths";
  spec.mutable_tasks(0)->set_task("letter");  // which uses fewer ids than the model has
  const auto created = TryCreate(spec, "request-1");
  ASSERT_TRUE(created.ok()) << created.status();
  const v1::EvalJob& job = created->job();
  EXPECT_THAT(job.name(), StartsWith("jobs/"));
  EXPECT_EQ(job.state(), v1::EvalJob::STATE_PENDING);
  EXPECT_EQ(job.create_time().seconds(), absl::ToUnixSeconds(clock_.Now()));
  EXPECT_EQ(job.spec().dtype(), v1::DTYPE_FLOAT32) << "defaults are filled in";
  EXPECT_EQ(job.spec().tenant(), "default");
  EXPECT_EQ(job.totals().cells(), 1);
  EXPECT_EQ(job.totals().items(), 100);
  EXPECT_EQ(job.totals().units(), created->estimate().units());
  EXPECT_GT(created->estimate().flops(), 1e10);
  EXPECT_EQ(job.request_id(), "request-1");
  ASSERT_THAT(job.checkpoints(), SizeIs(1));
  EXPECT_EQ(job.checkpoints(0).digest(), *models_->Digest("number"));
  EXPECT_THAT(job.warnings(), SizeIs(1));
  EXPECT_EQ(job.last_sequence(), 2);  // its state, and the warning
  EXPECT_EQ(job.waiting_reason(), "no worker is connected");
  Reopen();
  EXPECT_EQ(Bits(Get(job.name())), Bits(job));
  const auto events = Events(job.name());
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0].job_state_changed().state(), v1::EvalJob::STATE_PENDING);
  EXPECT_THAT(events[1].warning().message(), HasSubstr("137"));
}

TEST_F(JobServiceTest, ANewJobIsWork) {
  int work = 0;
  const auto subscription = signals_.OnWork([&work] { ++work; });
  Create(SmallSpec());
  EXPECT_EQ(work, 1);
  ASSERT_TRUE(TryCreate(SmallSpec(), "", /*validate_only=*/true).ok());
  EXPECT_EQ(work, 1);
}

TEST_F(JobServiceTest, ValidationPlansAndStoresNothing) {
  const auto checked = TryCreate(ScoredSpec(), "id", /*validate_only=*/true);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->job().name(), "");
  EXPECT_GT(checked->estimate().units(), 1);
  EXPECT_EQ(checked->job().totals().units(), checked->estimate().units());
  EXPECT_THAT(checked->job().checkpoints(), SizeIs(1));
  EXPECT_THAT(Names(), IsEmpty());
  const auto created = TryCreate(ScoredSpec(), "id");
  ASSERT_TRUE(created.ok());
  EXPECT_EQ(Bits(created->estimate()), Bits(checked->estimate()));
}

TEST_F(JobServiceTest, ARequestIdMakesOneJob) {
  const std::string job = Create(SmallSpec(), "id");
  EXPECT_EQ(Create(SmallSpec(), "id"), job);
  Reopen();
  EXPECT_EQ(Create(SmallSpec(), "id"), job);
  EXPECT_NE(Create(SmallSpec(), "other"), job);
  EXPECT_NE(Create(SmallSpec()), Create(SmallSpec()));

  v1::EvalJobSpec changed = SmallSpec();
  changed.set_name("changed");
  const auto refused = TryCreate(changed, "id");
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(common::GetErrorInfo(refused.status())->metadata().at("job"), job);

  // The same spec written another way is the same spec.
  v1::EvalJobSpec explicit_defaults = SmallSpec();
  explicit_defaults.set_dtype(v1::DTYPE_FLOAT32);
  explicit_defaults.add_seeds(42);
  EXPECT_EQ(Create(explicit_defaults, "id"), job);

  // Other tenants have ids of their own.
  v1::EvalJobSpec other_tenant = SmallSpec();
  other_tenant.set_tenant("other");
  EXPECT_NE(Create(other_tenant, "id"), job);
}

TEST_F(JobServiceTest, ARepeatedRequestNeedsNoCheckpoints) {
  v1::EvalJobSpec spec = SmallSpec();
  checkpoint::testing::WriteCheckpoint(models_folder_, "gone",
                                       checkpoint::testing::GptJ{.vocab_size = 137});
  spec.mutable_tasks(0)->set_checkpoints(0, "gone");
  const auto created = TryCreate(spec, "id");
  ASSERT_TRUE(created.ok()) << created.status();
  std::filesystem::remove_all(models_folder_.Path("gone"));
  const auto again = TryCreate(spec, "id");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Bits(*again), Bits(*created));
}

TEST_F(JobServiceTest, OneRequestIdOnManyThreadsMakesOneJob) {
  std::vector<std::string> names(8);
  std::vector<std::thread> threads;
  for (std::string& name : names) {
    threads.emplace_back([this, &name] { name = Create(SmallSpec(), "id"); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 1u);
  EXPECT_EQ(List()->jobs_size(), 1);
}

TEST_F(JobServiceTest, TheCallersTenantCountsWhereTheSpecNamesNone) {
  v1::CreateEvalJobRequest request;
  *request.mutable_spec() = SmallSpec();
  EXPECT_EQ(service_->CreateEvalJob(request, {.tenant = "team"})->job().spec().tenant(), "team");
  request.mutable_spec()->set_tenant("mine");
  EXPECT_EQ(service_->CreateEvalJob(request, {.tenant = "team"})->job().spec().tenant(), "mine");
}

TEST_F(JobServiceTest, TheTraceOfTheCallTravelsWithTheUnits) {
  v1::CreateEvalJobRequest request;
  *request.mutable_spec() = SmallSpec();
  ASSERT_TRUE(service_->CreateEvalJob(request, {.traceparent = "00-aa-bb-01"}).ok());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  EXPECT_EQ(worker.LeaseOne().unit().traceparent(), "00-aa-bb-01");
}

struct BadSpec {
  std::string field;
  absl::StatusCode code;
  std::function<void(v1::EvalJobSpec&)> breakage;
};

TEST_F(JobServiceTest, BadSpecsNameTheirField) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kNotFound = absl::StatusCode::kNotFound;
  constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
  const auto task = [](v1::EvalJobSpec& s) { return s.mutable_tasks(0); };
  const std::vector<BadSpec> bad = {
      {"spec.tasks", kInvalid, [](auto& s) { s.clear_tasks(); }},
      {"spec.tasks[0].task", kInvalid, [&](auto& s) { task(s)->set_task("numbre"); }},
      {"spec.tasks[0].hops", kInvalid, [&](auto& s) { task(s)->clear_hops(); }},
      {"spec.tasks[0].hops[0]", kInvalid, [&](auto& s) { task(s)->set_hops(0, 0); }},
      {"spec.tasks[0].hops[1]", kInvalid, [&](auto& s) { task(s)->add_hops(5); }},
      {"spec.tasks[0].hops[1]", kInvalid, [&](auto& s) { task(s)->add_hops(1); }},
      {"spec.tasks[0].added_tokens[0]", kInvalid,
       [&](auto& s) { task(s)->set_added_tokens(0, -1); }},
      {"spec.tasks[0].added_tokens[0]", kInvalid,
       [&](auto& s) { task(s)->set_added_tokens(0, 1'000'000); }},
      {"spec.tasks[0].samples", kInvalid, [&](auto& s) { task(s)->set_samples(0); }},
      {"spec.tasks[0].samples", kInvalid, [&](auto& s) { task(s)->set_samples(int64_t{1} << 60); }},
      {"spec.tasks[0].padding", kInvalid, [&](auto& s) { task(s)->set_padding("noise"); }},
      {"spec.tasks[0].checkpoints[0]", kInvalid,
       [&](auto& s) { task(s)->set_checkpoints(0, "../number"); }},
      {"spec.tasks[0].checkpoints[0]", kInvalid,
       [&](auto& s) { task(s)->set_checkpoints(0, "/etc"); }},
      {"spec.tasks[0].checkpoints[0]", kNotFound,
       [&](auto& s) { task(s)->set_checkpoints(0, "unknown"); }},
      {"spec.tasks[0].checkpoints[1]", kNotFound,
       [&](auto& s) { task(s)->add_checkpoints("unknown/*"); }},
      {"spec.tasks[0].checkpoints[0]", kPrecondition,
       [&](auto& s) { task(s)->set_checkpoints(0, "letter"); }},
      {"spec.scorers[1].name", kInvalid, [](auto& s) { s.add_scorers()->set_name("magic"); }},
      {"spec.dtype", kInvalid, [](auto& s) { s.set_dtype(static_cast<v1::Dtype>(99)); }},
      {"spec.priority", kInvalid, [](auto& s) { s.set_priority(1000); }},
      {"spec.deadline_s", kInvalid, [](auto& s) { s.set_deadline_s(-1); }},
      {"spec.name", kInvalid, [](auto& s) { s.set_name(std::string(201, 'x')); }},
      {"spec.tasks[1].task", kInvalid, [](auto& s) { s.add_tasks(); }},
  };
  for (const BadSpec& each : bad) {
    v1::EvalJobSpec spec = SmallSpec();
    each.breakage(spec);
    for (const bool validate_only : {false, true}) {
      const absl::Status status = TryCreate(spec, "", validate_only).status();
      EXPECT_EQ(status.code(), each.code) << each.field << ": " << status;
      const auto info = common::GetErrorInfo(status);
      ASSERT_TRUE(info.has_value()) << each.field << ": " << status;
      const auto field = info->metadata().find("field");
      ASSERT_NE(field, info->metadata().end()) << status;
      EXPECT_EQ(field->second, each.field) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(each.field));
    }
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(JobServiceTest, BadRequestIdsAreRefused) {
  for (const std::string& id : {std::string(129, 'x'), std::string("a\nb"), std::string("\xff")}) {
    EXPECT_EQ(TryCreate(SmallSpec(), id).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(TryCreate(SmallSpec(), std::string(128, 'x')).ok());
}

TEST_F(JobServiceTest, MalformedAndUnknownNamesAreToldApart) {
  const std::string unknown = "jobs/01hzzzzzzzzzzzzzzzzzzzzzzz";
  for (const auto& [name, code] : {std::pair("nonsense", absl::StatusCode::kInvalidArgument),
                                   std::pair("", absl::StatusCode::kInvalidArgument),
                                   std::pair(unknown.c_str(), absl::StatusCode::kNotFound)}) {
    v1::GetEvalJobRequest get;
    get.set_name(name);
    EXPECT_EQ(service_->GetEvalJob(get).status().code(), code);
    EXPECT_EQ(Cancel(name).status().code(), code);
    v1::ListEvalResultsRequest results;
    results.set_name(name);
    EXPECT_EQ(service_->ListEvalResults(results).status().code(), code);
    EXPECT_EQ(service_->ReadEvents(name, 0, 10, 1000).status().code(), code);
  }
}

TEST_F(JobServiceTest, JobsAreListedFilteredAndPaged) {
  for (int i = 0; i < 5; ++i) {
    v1::EvalJobSpec spec = SmallSpec();
    spec.set_name(absl::StrCat("j", i));
    (*spec.mutable_labels())["parity"] = i % 2 == 0 ? "even" : "odd";
    const std::string job = Create(spec);
    if (i == 2) {
      ASSERT_TRUE(Cancel(job).ok());
    }
    clock_.Advance(absl::Hours(1));
  }
  EXPECT_THAT(Names(), ElementsAre("j4", "j3", "j2", "j1", "j0"));
  EXPECT_THAT(Names("", "create_time", 2), ElementsAre("j0", "j1", "j2", "j3", "j4"));
  EXPECT_THAT(Names("", "create_time desc", 1), ElementsAre("j4", "j3", "j2", "j1", "j0"));
  EXPECT_THAT(Names("state=CANCELLED"), ElementsAre("j2"));
  EXPECT_THAT(Names("label.parity=even AND state=PENDING", "", 1), ElementsAre("j4", "j0"));
  const absl::Time middle = absl::FromUnixSeconds(1'800'000'000) + absl::Hours(2);
  EXPECT_THAT(Names(absl::StrCat("create_time>", absl::FormatTime(middle, absl::UTCTimeZone()))),
              ElementsAre("j4", "j3"));
  // A token goes with its list.
  const std::string token = List("state=PENDING", "", 1)->next_page_token();
  ASSERT_FALSE(token.empty());
  EXPECT_TRUE(List("state=PENDING", "", 2, token).ok());
  EXPECT_EQ(List("", "", 1, token).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(List("state=PENDING", "create_time", 1, token).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(List("", "", -1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(List("state=WEIRD").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(List("", "name").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JobServiceTest, AListPageStaysSmall) {
  // Labels are small; many task entries are not.
  v1::EvalJobSpec spec = SmallSpec();
  while (spec.tasks_size() < 1000) {
    *spec.add_tasks() = spec.tasks(0);
    spec.mutable_tasks(spec.tasks_size() - 1)->set_added_tokens(0, spec.tasks_size());
  }
  for (int i = 0; i < 25; ++i) {
    spec.set_name(absl::StrCat(i));
    Create(spec);
  }
  const auto first = List("", "", 1000);
  ASSERT_TRUE(first.ok());
  EXPECT_LT(first->ByteSizeLong(), size_t{1} << 20);
  EXPECT_LT(first->jobs_size(), 25);
  EXPECT_THAT(Names("", "", 1000), SizeIs(25));
}

TEST_F(JobServiceTest, AJobSaysWhatItWaitsFor) {
  v1::EvalJobSpec spec = SmallSpec();
  const std::string first = Create(spec);
  clock_.Advance(absl::Seconds(1));
  const std::string second = Create(spec);
  EXPECT_EQ(Get(second).waiting_reason(), "no worker is connected");
  v1::WorkerDescription description = testing::AbleWorker();
  description.clear_model_families();
  FakeWorker useless(dispatcher_.get(), "workers/useless", description);
  EXPECT_THAT(Get(second).waiting_reason(), HasSubstr("none of 1 connected worker(s)"));
  EXPECT_THAT(Get(second).waiting_reason(), HasSubstr("it does not run model family gptj"));
  FakeWorker worker(dispatcher_.get(), "workers/a");
  EXPECT_THAT(Get(second).waiting_reason(), HasSubstr(first));
  EXPECT_THAT(Get(first).waiting_reason(), HasSubstr("waits for one of 1 worker(s)"));
  spec.set_priority(3);
  const std::string urgent = Create(spec);
  EXPECT_THAT(Get(first).waiting_reason(), HasSubstr(urgent));
  EXPECT_THAT(Get(first).waiting_reason(), HasSubstr("priority 3"));
  worker.Lease(100);  // all of the urgent one, the first and the second
  EXPECT_EQ(Get(first).waiting_reason(), "");
}

TEST_F(JobServiceTest, ResultsComeInPagesInTheOrderOfThePlan) {
  v1::EvalJobSpec spec = ScoredSpec();
  for (const int hops : {2, 3, 4}) spec.mutable_tasks(0)->add_hops(hops);
  spec.mutable_tasks(0)->set_samples(10);
  const std::string job = Create(spec);
  v1::ListEvalResultsRequest request;
  request.set_name(job);
  EXPECT_THAT(service_->ListEvalResults(request)->cells(), IsEmpty());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  worker.RunAll();

  const v1::ListEvalResultsResponse all = Results(job);
  ASSERT_THAT(all.cells(), SizeIs(4));
  ASSERT_THAT(all.heads(), SizeIs(12));
  // 4 rows a cell; a page of 3 ends within one.
  request.set_page_size(3);
  int pages = 0;
  v1::ListEvalResultsResponse joined;
  do {
    const auto page = service_->ListEvalResults(request);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->cells_size() + page->heads_size(), 3);
    joined.mutable_cells()->MergeFrom(page->cells());
    joined.mutable_heads()->MergeFrom(page->heads());
    request.set_page_token(page->next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 6);
  ASSERT_THAT(joined.heads(), SizeIs(12));
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(joined.heads(i).cell().index(), i / 3);
    EXPECT_EQ(joined.heads(i).metric(), all.heads(i).metric());
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(joined.cells(i).cell().hops(), i + 1);

  request.set_page_size(0);
  request.set_cells_only(true);
  const auto cells = service_->ListEvalResults(request);
  ASSERT_TRUE(cells.ok());
  EXPECT_THAT(cells->cells(), SizeIs(4));
  EXPECT_THAT(cells->heads(), IsEmpty());
  EXPECT_EQ(cells->next_page_token(), "");
  request.set_page_token("x");
  EXPECT_EQ(service_->ListEvalResults(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JobServiceTest, AResultPageStaysBelowAMebibyte) {
  // A model of 32 x 64 heads: 2,048 values of 17 bytes a metric, 16 temperatures, 3 metrics.
  checkpoint::testing::WriteCheckpoint(models_folder_, "wide",
                                       checkpoint::testing::GptJ{.layers = 32,
                                                                 .heads = 64,
                                                                 .d_model = 256,
                                                                 .d_mlp = 1,
                                                                 .rotary_dim = 4,
                                                                 .vocab_size = 137});
  v1::EvalJobSpec spec = ScoredSpec();
  spec.mutable_tasks(0)->set_checkpoints(0, "wide");
  spec.mutable_tasks(0)->clear_added_tokens();
  spec.mutable_tasks(0)->set_samples(2);
  auto* taus =
      (*spec.mutable_scorers(1)->mutable_params()->mutable_fields())["taus"].mutable_list_value();
  for (int i = 1; i <= 16; ++i) taus->add_values()->set_number_value(i);
  const std::string job = Create(spec);
  FakeWorker worker(dispatcher_.get(), "workers/a");
  const v1::UnitLease lease = worker.LeaseOne();
  v1::UnitResult result;
  result.set_kind("cpu/test/float32");
  result.set_items(2);
  const auto params = spec::ResultParams(lease.unit().scorers(1));
  ASSERT_EQ(params.size(), 16u);
  for (int tau = 1; tau <= 16; ++tau) {
    for (const char* metric : {"positional", "symbolic", "self_mass"}) {
      v1::ScoreMoments* score = result.add_scores();
      score->set_scorer("positional_symbolic");
      score->set_metric(metric);
      *score->mutable_params() = params[tau - 1];
      score->set_layers(32);
      score->set_heads(64);
      for (int i = 0; i < 32 * 64; ++i) {
        score->add_count(2);
        score->add_mean(1.0 / (i + tau));
        score->add_m2(0.1);
      }
    }
  }
  ASSERT_EQ(worker.Report(lease, result, 4).value(), v1::ReportUnitResponse::DISPOSITION_APPLIED);
  v1::ListEvalResultsRequest request;
  request.set_name(job);
  request.set_page_size(1000);
  int pages = 0;
  int heads = 0;
  do {
    const auto page = service_->ListEvalResults(request);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LT(page->ByteSizeLong(), size_t{1} << 20);
    heads += page->heads_size();
    request.set_page_token(page->next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(heads, 48);
  EXPECT_GT(pages, 1);
}

TEST_F(JobServiceTest, EventsArePagedAndTheLastOneEndsThem) {
  const std::string job = Create(SmallSpec());
  FakeWorker worker(dispatcher_.get(), "workers/a");
  worker.RunAll();
  const auto first = service_->ReadEvents(job, 0, 2, 1 << 20);
  ASSERT_TRUE(first.ok());
  ASSERT_THAT(first->events, SizeIs(2));
  EXPECT_FALSE(first->finished);
  const auto rest = service_->ReadEvents(job, 2, 100, 1 << 20);
  ASSERT_TRUE(rest.ok());
  EXPECT_TRUE(rest->finished);
  EXPECT_EQ(rest->events.front().sequence(), 3);
  const auto none = service_->ReadEvents(job, rest->events.back().sequence(), 100, 1 << 20);
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(none->events, IsEmpty());
  EXPECT_FALSE(none->finished);
  EXPECT_EQ(service_->ReadEvents(job, -1, 100, 1 << 20).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(JobServiceTest, CapabilitiesAreWhatTheCatalogueHas) {
  const auto capabilities = service_->GetCapabilities({});
  ASSERT_TRUE(capabilities.ok());
  std::vector<std::string> tasks, scorers;
  for (const auto& task : capabilities->tasks()) tasks.push_back(task.name());
  for (const auto& scorer : capabilities->scorers()) scorers.push_back(scorer.name());
  EXPECT_THAT(tasks, Contains("number"));
  EXPECT_THAT(scorers, Contains("positional_symbolic"));
  EXPECT_THAT(capabilities->model_families(), Contains("gptj"));
  EXPECT_THAT(capabilities->dtypes(), Contains(v1::DTYPE_FLOAT32));
  EXPECT_GT(capabilities->limits().max_cells_per_job(), 0);
  EXPECT_THAT(capabilities->version(), HasSubstr("."));
}

TEST_F(JobServiceTest, CheckpointsAreListedWithWhatIsWrongWithThem) {
  models_folder_.Write("broken/config.json", "{");
  const auto list = [this](const std::string& pattern, int page_size, const std::string& token) {
    v1::ListCheckpointsRequest request;
    request.set_pattern(pattern);
    request.set_page_size(page_size);
    request.set_page_token(token);
    return service_->ListCheckpoints(request);
  };
  std::vector<std::string> names;
  std::string token;
  do {
    const auto page = list("", 2, token);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->checkpoints_size(), 2);
    for (const v1::Checkpoint& checkpoint : page->checkpoints()) {
      names.push_back(checkpoint.ref().name());
      if (checkpoint.ref().name() == "broken") {
        EXPECT_NE(checkpoint.problem(), "");
        EXPECT_EQ(checkpoint.ref().digest(), "");
      } else {
        EXPECT_EQ(checkpoint.problem(), "");
        EXPECT_THAT(checkpoint.ref().digest(), StartsWith("sha256:"));
        EXPECT_EQ(checkpoint.family(), "gptj");
        EXPECT_EQ(checkpoint.shape().layers(), 2);
        EXPECT_GT(checkpoint.weight_bytes(), 0);
      }
    }
    token = page->next_page_token();
  } while (!token.empty());
  EXPECT_THAT(names, ElementsAre("broken", "letter", "number", "series/step-1", "series/step-2",
                                 "series/step-3"));
  EXPECT_THAT(list("series/*", 0, "")->checkpoints(), SizeIs(3));
  EXPECT_EQ(list("nothing", 0, "").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(list("../x", 0, "").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(list("", -1, "").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(list("", 0, "junk").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hopscope::jobs
