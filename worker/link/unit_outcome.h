// What came of an attempt, as it goes to the server: a result, a failure, or the unit itself,
// handed back.
//
// A value type.
#ifndef HOPSCOPE_WORKER_LINK_UNIT_OUTCOME_H_
#define HOPSCOPE_WORKER_LINK_UNIT_OUTCOME_H_

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "hopscope/v1/dispatch.pb.h"
#include "spdlog/common.h"

namespace hopscope::link {

// Names an attempt in log lines.
struct UnitLabel {
  std::string job;
  std::string unit;  // "CELL/UNIT"
  std::string attempt_id;
  std::string trace_id;  // may be empty
};

UnitLabel LabelOf(const v1::UnitLease& lease);

// A log line about an attempt; `error` is left out where it is OK.
void LogUnit(spdlog::level::level_enum level, absl::string_view message, const UnitLabel& label,
             const absl::Status& error = absl::OkStatus());

class UnitOutcome {
 public:
  static UnitOutcome Result(UnitLabel label, const v1::UnitResult& result);

  // From an error of the engine. Its reason is kept where it is one that an attempt may fail with
  // (CHECKPOINT, OUT_OF_MEMORY, TIMEOUT, INTERNAL), else it is INTERNAL; the message is cut at
  // 1,024 bytes.
  static UnitOutcome Failure(UnitLabel label, const absl::Status& error);

  // `reason` is "drain" or "shutdown".
  static UnitOutcome HandBack(UnitLabel label, absl::string_view reason);

  const UnitLabel& label() const { return label_; }

  bool is_result() const { return std::holds_alternative<SerialisedResult>(what_); }
  bool is_failure() const { return std::holds_alternative<v1::Failure>(what_); }
  bool is_hand_back() const { return std::holds_alternative<v1::HandBack>(what_); }

  // Bytes of the serialised result; 0 for the others.
  int64_t size_bytes() const;

  // A result is sent in parts of at most `max_part_bytes` each; the others, and an empty result, in
  // one.
  int PartCount(int64_t max_part_bytes) const;

  // The report of one part, all but the worker's id.
  v1::ReportUnitRequest Part(int part, int64_t max_part_bytes) const;

 private:
  struct SerialisedResult {
    std::string bytes;
  };
  using What = std::variant<SerialisedResult, v1::Failure, v1::HandBack>;

  UnitOutcome(UnitLabel label, What what) : label_(std::move(label)), what_(std::move(what)) {}

  UnitLabel label_;
  What what_;
};

}  // namespace hopscope::link

#endif  // HOPSCOPE_WORKER_LINK_UNIT_OUTCOME_H_
