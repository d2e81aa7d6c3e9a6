#include "common/ops/ops_server.h"

#include <civetweb.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <exception>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/mutex.h"
#include "common/status.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace hopscope::ops {
namespace {

struct Response {
  int code = 200;
  absl::string_view reason = "OK";
  std::string body;
  absl::string_view content_type = "text/plain; charset=utf-8";
  absl::string_view more_headers;
};

Response RunChecks(const std::vector<OpsServer::Check>& checks) {
  Response response;
  for (const OpsServer::Check& check : checks) {
    if (const absl::Status status = check.run(); !status.ok()) {
      response.code = 503;
      response.reason = "Service Unavailable";
      absl::StrAppend(&response.body, check.name, ": ", status.message(), "\n");
    }
  }
  if (response.code == 200) response.body = "ok\n";
  return response;
}

Response Metrics(const OpsServer::Options& options) {
  std::vector<prometheus::MetricFamily> families;
  for (const std::shared_ptr<prometheus::Collectable>& collectable : options.metrics) {
    for (prometheus::MetricFamily& family : collectable->Collect()) {
      families.push_back(std::move(family));
    }
  }
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = prometheus::TextSerializer().Serialize(families);
  return response;
}

Response Answer(const OpsServer::Options& options, absl::string_view method,
                absl::string_view path) {
  if (method != "GET" && method != "HEAD") {
    return {405, "Method Not Allowed", "use GET\n", "text/plain; charset=utf-8",
            "Allow: GET, HEAD\r\n"};
  }
  if (path == "/metrics") return Metrics(options);
  if (path == "/livez") return RunChecks(options.live);
  if (path == "/readyz") return RunChecks(options.ready);
  return {404, "Not Found", "there are /metrics, /livez and /readyz\n"};
}

// Connects and hangs up: civetweb's accepting thread sleeps two seconds at a time, and sees only
// then, or on a new connection, that it should stop.
void KnockAt(const common::HostPort& address) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found) != 0) {
    return;
  }
  const int fd = socket(found->ai_family, found->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                        found->ai_protocol);
  if (fd >= 0) {
    (void)connect(fd, found->ai_addr, found->ai_addrlen);
    close(fd);
  }
  freeaddrinfo(found);
}

}  // namespace

// civetweb calls back with this as its user data.
struct OpsServer::Impl {
  Options options;
  common::HostPort address;
  mg_context* web = nullptr;
  common::Mutex mutex;
  bool started ABSL_GUARDED_BY(mutex) = false;
  // What civetweb says until then.
  std::string start_messages ABSL_GUARDED_BY(mutex);

  static int OnRequest(mg_connection* connection) {
    const mg_request_info* request = mg_get_request_info(connection);
    const auto* impl = static_cast<const Impl*>(request->user_data);
    const absl::string_view method = request->request_method;
    Response response;
    // The one place where exceptions of prometheus-cpp end; civetweb is C.
    try {
      response = Answer(impl->options, method, request->local_uri ? request->local_uri : "");
    } catch (const std::exception& e) {
      response = {500, "Internal Server Error", absl::StrCat(e.what(), "\n")};
    }
    const std::string head = absl::StrCat(
        "HTTP/1.1 ", response.code, " ", response.reason, "\r\n", response.more_headers,
        "Content-Type: ", response.content_type, "\r\nContent-Length: ", response.body.size(),
        "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n");
    mg_write(connection, head.data(), head.size());
    if (method != "HEAD") mg_write(connection, response.body.data(), response.body.size());
    return response.code;
  }

  static int OnLog(const mg_connection* connection, const char* message) {
    auto* impl = static_cast<Impl*>(mg_get_user_data(mg_get_context(connection)));
    if (impl != nullptr) {
      common::MutexLock lock(&impl->mutex);
      if (!impl->started) {
        absl::StrAppend(&impl->start_messages, impl->start_messages.empty() ? "" : "; ", message);
      }
    }
    common::Log(spdlog::level::debug, "metrics endpoint", {{"error", message}});
    return 1;  // not to be written to civetweb's own log
  }
};

absl::StatusOr<std::unique_ptr<OpsServer>> OpsServer::Start(Options options) {
  HOPSCOPE_ASSIGN_OR_RETURN(const common::HostPort address,
                            common::ParseHostPort(options.flag, options.listen));
  static const unsigned initialised = mg_init_library(MG_FEATURES_IPV6);
  (void)initialised;

  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->address = address;
  mg_callbacks callbacks = {};
  callbacks.begin_request = &Impl::OnRequest;
  callbacks.log_message = &Impl::OnLog;
  const std::string listen = address.ToString();
  // Connections end with their response: a thread serves one connection at a time, and a scraper
  // that kept its own open would keep probes out.
  const char* settings[] = {"listening_ports",    listen.c_str(), "num_threads", "16",
                            "request_timeout_ms", "1000",         nullptr};
  impl->web = mg_start(&callbacks, impl.get(), settings);
  std::string start_messages;
  {
    common::MutexLock lock(&impl->mutex);
    impl->started = true;
    start_messages = impl->start_messages;
  }
  if (impl->web == nullptr) {
    return common::MakeError(
        absl::StatusCode::kFailedPrecondition, "ADDRESS_IN_USE",
        absl::StrCat("cannot listen on ", listen, " for metrics and probes (", start_messages,
                     "): give another address with ", impl->options.flag, ", or port 0"),
        {{"field", impl->options.flag}, {"value", listen}});
  }
  mg_server_port port = {};
  if (mg_get_server_ports(impl->web, 1, &port) == 1) impl->address.port = port.port;
  return std::unique_ptr<OpsServer>(new OpsServer(std::move(impl)));
}

OpsServer::OpsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

OpsServer::~OpsServer() {
  common::Mutex mutex;
  common::CondVar changed;
  bool stopped = false;
  std::thread stopping([&] {
    mg_stop(impl_->web);
    common::MutexLock lock(&mutex);
    stopped = true;
    changed.Signal();
  });
  {
    common::MutexLock lock(&mutex);
    while (!stopped) {
      KnockAt(impl_->address);
      changed.WaitWithTimeout(&mutex, absl::Milliseconds(20));
    }
  }
  stopping.join();
}

const common::HostPort& OpsServer::address() const { return impl_->address; }

}  // namespace hopscope::ops
