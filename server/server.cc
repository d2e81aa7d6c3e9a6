#include "server/server.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/checkpoint/model_root.h"
#include "common/logging.h"
#include "common/ops/ops_server.h"
#include "common/rpc/credentials.h"
#include "common/rpc/grpc_log.h"
#include "common/rpc/transport.h"
#include "common/status.h"
#include "common/version.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "server/health.h"
#include "server/job_metrics.h"
#include "server/jobs/dispatcher.h"
#include "server/jobs/job_service.h"
#include "server/jobs/signals.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/dispatch_service.h"
#include "server/rpc/evaluation_service.h"
#include "server/rpc/runtime.h"
#include "server/state_gauges.h"
#include "server/store/sqlite_store.h"
#include "server/ticker.h"
#include "server/watched_store.h"

namespace hopscope::server {
namespace {

// Time without progress after which the server counts as hung.
constexpr absl::Duration kHungAfter = absl::Seconds(60);
// How often uploaded sequences that nobody needs are looked for.
constexpr absl::Duration kTokensInterval = absl::Minutes(5);

// Linking the reflection library adds its plugin to every server; this takes it out again.
class WithoutReflection : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    const std::string reflection = grpc::reflection::ProtoServerReflectionPlugin().name();
    plugins->erase(
        std::remove_if(plugins->begin(), plugins->end(),
                       [&reflection](const auto& plugin) { return plugin->name() == reflection; }),
        plugins->end());
  }
};

absl::Status CheckOptions(const Server::Options& options) {
  if (options.lease_duration < absl::Milliseconds(100) || options.lease_duration > absl::Hours(1)) {
    return common::InvalidField("BAD_FLAG", "--lease_duration",
                                absl::FormatDuration(options.lease_duration),
                                "give 100ms to 1h, such as 30s");
  }
  if (options.max_attempts < 1 || options.max_attempts > 100) {
    return common::InvalidField("BAD_FLAG", "--max_attempts", absl::StrCat(options.max_attempts),
                                "give 1 to 100");
  }
  if (options.model_root.empty()) {
    return common::InvalidField("FLAG_MISSING", "--model_root", "\"\"",
                                "give the folder that checkpoints live under");
  }
  return absl::OkStatus();
}

// The same error with the flag that it is about.
absl::Status AboutFlag(const absl::Status& status, absl::string_view flag) {
  return common::MakeError(status.code(), common::ErrorReason(status),
                           absl::StrCat(flag, ": ", status.message()),
                           {{"field", std::string(flag)}});
}

}  // namespace

// In the order in which things depend on each other: what is below uses what is above.
struct Server::Impl {
  explicit Impl(Options given) : options(std::move(given)) {}

  Options options;
  std::string address;
  std::string metrics_address;

  std::unique_ptr<checkpoint::ModelRoot> models;
  const std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  JobMetrics job_metrics{*registry};
  Health health;
  std::unique_ptr<store::Store> store;
  jobs::Signals signals;
  std::unique_ptr<jobs::JobService> jobs;
  std::unique_ptr<jobs::Dispatcher> dispatcher;
  std::unique_ptr<rpc::Runtime> runtime;
  std::unique_ptr<rpc::EvaluationService> evaluation_service;
  std::unique_ptr<rpc::DispatchService> dispatch_service;
  std::unique_ptr<rpc::AdminService> admin_service;
  std::unique_ptr<grpc::Server> grpc_server;
  std::unique_ptr<Ticker> dispatch_ticker;
  std::unique_ptr<Ticker> probe_ticker;
  std::unique_ptr<Ticker> tokens_ticker;
  common::Mutex executor_mutex;
  // When the executor last ran a task of the probe.
  std::chrono::steady_clock::time_point executor_ran ABSL_GUARDED_BY(executor_mutex) =
      std::chrono::steady_clock::now();
  std::unique_ptr<ops::OpsServer> ops_server;

  absl::Status OpenStore();
  void WatchStore(std::unique_ptr<store::Store> opened);
  void MakeServices();
  absl::Status StartGrpc(const common::HostPort& listen);
  absl::Status StartOps();
  void Tick();
  void Probe();
  void DeleteUnusedTokens();
  absl::Status CheckAlive();
};

absl::Status Server::Impl::OpenStore() {
  if (options.store != nullptr) {
    WatchStore(std::move(options.store));
    return absl::OkStatus();
  }
  if (options.state_dir.empty()) {
    return common::InvalidField("FLAG_MISSING", "--state_dir", "\"\"",
                                "give the folder that the server keeps its database in; there is "
                                "no default where neither $XDG_STATE_HOME nor $HOME is set");
  }
  absl::StatusOr<std::unique_ptr<store::SqliteStore>> opened = store::SqliteStore::Open(
      {.path = absl::StrCat(options.state_dir, "/hopscope.db"), .observer = &job_metrics});
  if (!opened.ok()) return AboutFlag(opened.status(), "--state_dir");
  WatchStore(*std::move(opened));
  return absl::OkStatus();
}

void Server::Impl::WatchStore(std::unique_ptr<store::Store> opened) {
  store = std::make_unique<WatchedStore>(
      std::move(opened), [this](const absl::Status& status) { health.StoreFailed(status); });
}

void Server::Impl::MakeServices() {
  prometheus::BuildGauge()
      .Name("hopscope_build_info")
      .Help("1, with the version of the program.")
      .Register(*registry)
      .Add({{"version", std::string(common::VersionString())}, {"program", "hopscope-server"}})
      .Set(1);
  jobs = std::make_unique<jobs::JobService>(jobs::JobService::Options{.observer = &job_metrics},
                                            store.get(), models.get(), &signals, options.clock);
  dispatcher = std::make_unique<jobs::Dispatcher>(
      jobs::Dispatcher::Options{.lease_duration = options.lease_duration,
                                .max_attempts = options.max_attempts,
                                .observer = &job_metrics},
      store.get(), &signals, options.clock);
  runtime = std::make_unique<rpc::Runtime>(rpc::Runtime::Options{.executor = options.executor},
                                           *registry);

  rpc::DispatchService::Options dispatch;
  dispatch.max_heartbeat_wait = std::min(dispatch.max_heartbeat_wait, options.lease_duration / 3);
  evaluation_service =
      std::make_unique<rpc::EvaluationService>(runtime.get(), jobs.get(), &signals);
  dispatch_service = std::make_unique<rpc::DispatchService>(
      dispatch, runtime.get(), dispatcher.get(), &jobs->tokens(), &signals);
  admin_service = std::make_unique<rpc::AdminService>(runtime.get());
}

absl::Status Server::Impl::StartGrpc(const common::HostPort& listen) {
  HOPSCOPE_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::ServerCredentials> credentials,
      common::MakeServerCredentials({.allow_insecure = options.allow_insecure}, listen));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  common::ApplyTransportLimits(builder);
  if (!options.reflection) builder.SetOption(std::make_unique<WithoutReflection>());
  int port = 0;
  builder.AddListeningPort(listen.ToString(), credentials, &port);
  builder.RegisterService(evaluation_service.get());
  builder.RegisterService(dispatch_service.get());
  builder.RegisterService(admin_service.get());
  {
    // What it says about an address is said below, in our words.
    const common::GrpcLogSilence silence;
    grpc_server = builder.BuildAndStart();
  }
  if (grpc_server == nullptr || port == 0) {
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "ADDRESS_IN_USE",
        absl::StrCat("--listen: cannot listen on ", listen.ToString(),
                     ": another program does, or it is no address of this machine; give another "
                     "one, or port 0"),
        {{"field", "--listen"}, {"value", listen.ToString()}});
  }
  address = common::HostPort{listen.host, port}.ToString();
  grpc::HealthCheckServiceInterface* service = grpc_server->GetHealthCheckService();
  health.Start([service](bool serving) {
    for (const char* name :
         {"", v1::EvaluationService::service_full_name(), v1::DispatchService::service_full_name(),
          v1::AdminService::service_full_name()}) {
      service->SetServingStatus(name, serving);
    }
  });
  return absl::OkStatus();
}

absl::Status Server::Impl::StartOps() {
  if (options.metrics_listen.empty()) return absl::OkStatus();
  const auto gauges = std::make_shared<StateGauges>([this] { return dispatcher->CountStates(); });
  HOPSCOPE_ASSIGN_OR_RETURN(
      ops_server,
      ops::OpsServer::Start({.listen = options.metrics_listen,
                             .metrics = {registry, gauges},
                             .live = {{"server", [this] { return CheckAlive(); }}},
                             .ready = {{"server", [this] { return health.Check(); }}}}));
  metrics_address = ops_server->address().ToString();
  return absl::OkStatus();
}

void Server::Impl::Tick() {
  if (const absl::Status status = dispatcher->Tick(); !status.ok()) {
    // A store that is gone is the probe's to tell.
    common::Log(absl::IsUnavailable(status) ? spdlog::level::debug : spdlog::level::err,
                "leases not checked", {{"error", status}});
  }
}

void Server::Impl::DeleteUnusedTokens() {
  if (const absl::Status status = jobs->tokens().DeleteUnused(); !status.ok()) {
    common::Log(absl::IsUnavailable(status) ? spdlog::level::debug : spdlog::level::err,
                "unused sequences not deleted", {{"error", status}});
  }
}

void Server::Impl::Probe() {
  (void)runtime->executor.TrySubmit([this] {
    common::MutexLock lock(&executor_mutex);
    executor_ran = std::chrono::steady_clock::now();
  });
  health.SetStore(store->Probe());
}

absl::Status Server::Impl::CheckAlive() {
  common::MutexLock lock(&executor_mutex);
  const absl::Duration longest =
      std::max({dispatch_ticker->SinceLastRun(), probe_ticker->SinceLastRun(),
                absl::FromChrono(std::chrono::steady_clock::now() - executor_ran)});
  if (longest < kHungAfter) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("no progress for ", absl::FormatDuration(longest)));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Options options) {
  HOPSCOPE_RETURN_IF_ERROR(CheckOptions(options));
  HOPSCOPE_ASSIGN_OR_RETURN(const common::HostPort listen,
                            common::ParseHostPort("--listen", options.listen));
  // Before anything is opened: an address that is refused is refused whatever else is wrong.
  HOPSCOPE_RETURN_IF_ERROR(
      common::MakeServerCredentials({.allow_insecure = options.allow_insecure}, listen).status());

  auto impl = std::make_unique<Impl>(std::move(options));
  absl::StatusOr<std::unique_ptr<checkpoint::ModelRoot>> models =
      checkpoint::ModelRoot::Open(impl->options.model_root);
  if (!models.ok()) return AboutFlag(models.status(), "--model_root");
  impl->models = *std::move(models);
  HOPSCOPE_RETURN_IF_ERROR(impl->OpenStore());
  impl->MakeServices();
  Impl* const raw = impl.get();
  const absl::Duration tick =
      std::clamp(impl->options.lease_duration / 5, absl::Milliseconds(20), absl::Seconds(5));
  impl->dispatch_ticker = std::make_unique<Ticker>(tick, [raw] { raw->Tick(); });
  impl->probe_ticker =
      std::make_unique<Ticker>(impl->options.probe_interval, [raw] { raw->Probe(); });
  impl->tokens_ticker =
      std::make_unique<Ticker>(kTokensInterval, [raw] { raw->DeleteUnusedTokens(); });
  auto server = std::unique_ptr<Server>(new Server(std::move(impl)));
  HOPSCOPE_RETURN_IF_ERROR(raw->StartOps());
  HOPSCOPE_RETURN_IF_ERROR(raw->StartGrpc(listen));
  return server;
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { Shutdown(absl::ZeroDuration()); }

const std::string& Server::address() const { return impl_->address; }
const std::string& Server::metrics_address() const { return impl_->metrics_address; }

void Server::Shutdown(absl::Duration grace) {
  Impl& impl = *impl_;
  impl.health.Drain();
  impl.runtime->open_calls.EndAll(rpc::ShuttingDownError());
  if (impl.grpc_server != nullptr) {
    impl.grpc_server->Shutdown(std::chrono::system_clock::now() +
                               absl::ToChronoMilliseconds(grace));
    impl.grpc_server->Wait();
  }
  impl.dispatch_ticker.reset();
  impl.probe_ticker.reset();
  impl.tokens_ticker.reset();
  impl.runtime->executor.Shutdown();
  impl.ops_server.reset();
}

}  // namespace hopscope::server
