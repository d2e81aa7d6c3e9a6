#include "worker/link/unit_outcome.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status.h"
#include "common/utf8.h"

namespace hopscope::link {
namespace {

constexpr size_t kMaxMessageBytes = 1024;

}  // namespace

UnitLabel LabelOf(const v1::UnitLease& lease) {
  const v1::WorkUnit& unit = lease.unit();
  return {.job = unit.job(),
          .unit = absl::StrCat(unit.ref().cell_index(), "/", unit.ref().unit_index()),
          .attempt_id = lease.attempt_id(),
          .trace_id = std::string(common::TraceId(unit.traceparent()))};
}

void LogUnit(spdlog::level::level_enum level, absl::string_view message, const UnitLabel& label,
             const absl::Status& error) {
  if (!spdlog::should_log(level)) return;
  if (error.ok()) {
    common::Log(level, message,
                {{"job", label.job},
                 {"unit", label.unit},
                 {"attempt", label.attempt_id},
                 {"trace_id", label.trace_id}});
  } else {
    common::Log(level, message,
                {{"job", label.job},
                 {"unit", label.unit},
                 {"attempt", label.attempt_id},
                 {"trace_id", label.trace_id},
                 {"reason", common::ErrorReason(error)},
                 {"error", error}});
  }
}

UnitOutcome UnitOutcome::Result(UnitLabel label, const v1::UnitResult& result) {
  return UnitOutcome(std::move(label), SerialisedResult{result.SerializeAsString()});
}

UnitOutcome UnitOutcome::Failure(UnitLabel label, const absl::Status& error) {
  static constexpr std::array<absl::string_view, 4> kReasons = {"CHECKPOINT", "OUT_OF_MEMORY",
                                                                "TIMEOUT", "INTERNAL"};
  v1::Failure failure;
  const std::string reason = common::ErrorReason(error);
  const bool known = std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end();
  failure.set_reason(known ? reason : "INTERNAL");
  const std::string message = common::ReplaceInvalidUtf8(
      known ? std::string(error.message()) : absl::StrCat(reason, ": ", error.message()));
  failure.set_message(std::string(common::CutUtf8(message, kMaxMessageBytes)));
  return UnitOutcome(std::move(label), std::move(failure));
}

UnitOutcome UnitOutcome::HandBack(UnitLabel label, absl::string_view reason) {
  v1::HandBack hand_back;
  hand_back.set_reason(std::string(reason));
  return UnitOutcome(std::move(label), std::move(hand_back));
}

int64_t UnitOutcome::size_bytes() const {
  const auto* result = std::get_if<SerialisedResult>(&what_);
  return result == nullptr ? 0 : static_cast<int64_t>(result->bytes.size());
}

int UnitOutcome::PartCount(int64_t max_part_bytes) const {
  return static_cast<int>(
      std::max<int64_t>(1, (size_bytes() + max_part_bytes - 1) / max_part_bytes));
}

v1::ReportUnitRequest UnitOutcome::Part(int part, int64_t max_part_bytes) const {
  v1::ReportUnitRequest request;
  request.set_attempt_id(label_.attempt_id);
  request.set_part(part);
  request.set_part_count(PartCount(max_part_bytes));
  if (const auto* result = std::get_if<SerialisedResult>(&what_)) {
    request.set_result_part(result->bytes.substr(part * max_part_bytes, max_part_bytes));
  } else if (const auto* failure = std::get_if<v1::Failure>(&what_)) {
    *request.mutable_failure() = *failure;
  } else {
    *request.mutable_hand_back() = std::get<v1::HandBack>(what_);
  }
  return request;
}

}  // namespace hopscope::link
