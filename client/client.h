// Hopscope's client for C++: submit evaluation jobs, follow them, read what they found.
//
//   auto connection = client::Connect({.server = "127.0.0.1:7070"});
//   client::Client client(*connection);
//   auto job = client.CreateEvalJob(spec);
//   auto events = client.WatchEvalJob(job->name());
//   while (true) {
//     auto event = events->Next();
//     if (!event.ok() || !event->has_value()) break;
//   }
//   client.ReadEvalResults(job->name(), [](const v1::ListEvalResultsResponse& page) {
//     return absl::OkStatus();
//   });
//
// Copies share the connection. Errors are those of Connection. Thread-safe.
#ifndef HOPSCOPE_CLIENT_CLIENT_H_
#define HOPSCOPE_CLIENT_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/connection.h"
#include "hopscope/v1/evaluation.pb.h"

namespace hopscope::client {

// "jobs/ID" for "jobs/ID" and for "ID", as people type it.
std::string JobName(absl::string_view text);

class Client {
 public:
  explicit Client(std::shared_ptr<Connection> connection);

  // Stores the job and returns it. A random request_id makes it safe to try again, so that a lost
  // answer does not make two jobs.
  absl::StatusOr<v1::EvalJob> CreateEvalJob(const v1::EvalJobSpec& spec) const;

  // Checks and plans; nothing is stored.
  absl::StatusOr<v1::CreateEvalJobResponse> ValidateEvalJob(const v1::EvalJobSpec& spec) const;

  absl::StatusOr<v1::EvalJob> GetEvalJob(const std::string& job) const;

  // Newest first, at most `limit` of them, over as many pages as it takes. `filter` as
  // ListEvalJobsRequest has it.
  absl::StatusOr<std::vector<v1::EvalJob>> ListEvalJobs(const std::string& filter,
                                                        int64_t limit) const;

  // The job as it is after that.
  absl::StatusOr<v1::EvalJob> CancelEvalJob(const std::string& job) const;

  // Stores sequences for task "tokens", and returns their digest. `read` gives the piece of a
  // tokens file that begins at an offset (at most 1 MiB; empty: the end), and may be asked again.
  absl::StatusOr<v1::UploadTokensResponse> UploadTokens(const Connection::PieceReader& read) const;

  // Events with a larger sequence than `after_sequence`, to the job's end. The client must outlive
  // the reader.
  std::unique_ptr<EventReader> WatchEvalJob(const std::string& job,
                                            int64_t after_sequence = 0) const;

  // Hands out the pages of a job's results in the order of the plan, until `on_page` returns an
  // error.
  absl::Status ReadEvalResults(
      const std::string& job,
      const std::function<absl::Status(const v1::ListEvalResultsResponse&)>& on_page) const;

  absl::StatusOr<v1::GetCapabilitiesResponse> GetCapabilities() const;

  // Checkpoints under the server's model root that match a folder or glob; empty: all.
  absl::StatusOr<std::vector<v1::Checkpoint>> ListCheckpoints(const std::string& pattern) const;

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_CLIENT_H_
