#include "server/jobs/testing/jobs_fixture.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace hopscope::jobs::testing {

std::string Bits(const google::protobuf::Message& message) {
  std::string bits;
  google::protobuf::io::StringOutputStream stream(&bits);
  google::protobuf::io::CodedOutputStream output(&stream);
  output.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&output);
  output.Trim();
  return bits;
}

v1::EvalJobSpec SmallSpec() {
  v1::EvalJobSpec spec;
  v1::TaskSpec* task = spec.add_tasks();
  task->set_task("number");
  task->add_hops(1);
  task->add_added_tokens(kLongPadding);
  task->set_samples(100);
  task->add_checkpoints("number");
  spec.add_scorers()->set_name("accuracy");
  return spec;
}

v1::EvalJobSpec ScoredSpec() {
  v1::EvalJobSpec spec = SmallSpec();
  v1::ScorerSpec* scores = spec.add_scorers();
  scores->set_name("positional_symbolic");
  // Blocks would cost too little for several units.
  (*scores->mutable_params()->mutable_fields())["mode"].set_string_value("tokens");
  return spec;
}

JobsTest::JobsTest() {
  using checkpoint::testing::GptJ;
  using checkpoint::testing::WriteCheckpoint;
  WriteCheckpoint(models_folder_, "number", GptJ{.vocab_size = 137, .seed = 1});
  WriteCheckpoint(models_folder_, "letter", GptJ{.vocab_size = 129, .seed = 2});
  for (int step = 1; step <= 3; ++step) {
    WriteCheckpoint(models_folder_, absl::StrCat("series/step-", step),
                    GptJ{.vocab_size = 137, .seed = static_cast<uint32_t>(10 + step)});
  }
  auto models = checkpoint::ModelRoot::Open(models_folder_.path());
  EXPECT_TRUE(models.ok()) << models.status();
  models_ = *std::move(models);
  Reopen();
}

void JobsTest::Reopen() {
  dispatcher_.reset();
  service_.reset();
  store_.reset();
  auto store = store::SqliteStore::Open({.path = folder_.Path("state/hopscope.db")});
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
  service_ = std::make_unique<JobService>(service_options_, store_.get(), models_.get(), &signals_,
                                          &clock_);
  dispatcher_ = std::make_unique<Dispatcher>(dispatcher_options_, store_.get(), &signals_, &clock_);
}

absl::StatusOr<v1::CreateEvalJobResponse> JobsTest::TryCreate(const v1::EvalJobSpec& spec,
                                                              const std::string& request_id,
                                                              bool validate_only) {
  v1::CreateEvalJobRequest request;
  *request.mutable_spec() = spec;
  request.set_request_id(request_id);
  request.set_validate_only(validate_only);
  return service_->CreateEvalJob(request, CallContext());
}

std::string JobsTest::Create(const v1::EvalJobSpec& spec, const std::string& request_id) {
  const auto response = TryCreate(spec, request_id);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? response->job().name() : "";
}

v1::EvalJob JobsTest::Get(const std::string& job) {
  v1::GetEvalJobRequest request;
  request.set_name(job);
  const auto response = service_->GetEvalJob(request);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? response->job() : v1::EvalJob();
}

absl::StatusOr<v1::EvalJob> JobsTest::Cancel(const std::string& job) {
  v1::CancelEvalJobRequest request;
  request.set_name(job);
  auto response = service_->CancelEvalJob(request);
  if (!response.ok()) return response.status();
  return response->job();
}

std::vector<v1::EvalEvent> JobsTest::Events(const std::string& job, int64_t after_sequence) {
  const auto page = service_->ReadEvents(job, after_sequence, 1'000'000, int64_t{1} << 40);
  EXPECT_TRUE(page.ok()) << page.status();
  return page.ok() ? page->events : std::vector<v1::EvalEvent>();
}

v1::ListEvalResultsResponse JobsTest::Results(const std::string& job) {
  v1::ListEvalResultsResponse all;
  v1::ListEvalResultsRequest request;
  request.set_name(job);
  do {
    const auto page = service_->ListEvalResults(request);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return all;
    all.mutable_cells()->MergeFrom(page->cells());
    all.mutable_heads()->MergeFrom(page->heads());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

std::string JobsTest::ResultBits(const std::string& job) { return Bits(Results(job)); }

}  // namespace hopscope::jobs::testing
