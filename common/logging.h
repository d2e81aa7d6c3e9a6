// Structured logs of all programs, to standard error: one record a line, as text for people or JSON
// for machines.
//
// A record has a time, a level, a message that is the same for all records of its kind, and fields.
// spdlog's own functions write records without fields into the same stream. Whatever a field or
// message holds, a record stays one line: control characters are escaped in both formats.
//
//   common::Log(spdlog::level::info, "lease expired", {{"job", job}, {"unit", unit}, {"attempt",
//   attempt_id}});
//
// Field names are snake_case; the same thing has the same name everywhere: job, unit, attempt,
// worker, tenant, checkpoint, trace_id, reason, error. "time", "level" and "message" are the
// record's own. Thread-safe.
#ifndef HOPSCOPE_COMMON_LOGGING_H_
#define HOPSCOPE_COMMON_LOGGING_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "spdlog/formatter.h"
#include "spdlog/spdlog.h"

namespace hopscope::common {

enum class LogFormat { kText, kJson };

struct LogOptions {
  // Value of --log_format.
  LogFormat format = LogFormat::kText;
  // Value of --log_level: records below it are dropped.
  spdlog::level::level_enum level = spdlog::level::info;
};

// What --log_format and --log_level may be: "text" or "json"; "debug", "info", "warning" or
// "error". INVALID_ARGUMENT names the flag.
absl::StatusOr<LogOptions> ParseLogOptions(absl::string_view format, absl::string_view level);

// Sends the records of spdlog's default logger to standard error from now on. For main().
void SetUpLogging(const LogOptions& options);

// A formatter as SetUpLogging installs it, for sinks of one's own.
std::unique_ptr<spdlog::formatter> MakeLogFormatter(LogFormat format);

// A named value: text, or a number or truth value, which JSON shows without quotes.
class LogField {
 public:
  LogField(absl::string_view name, absl::string_view text) : name_(name), text_(text) {}
  LogField(absl::string_view name, const std::string& text) : name_(name), text_(text) {}
  LogField(absl::string_view name, const char* text) : name_(name), text_(text) {}
  LogField(absl::string_view name, const absl::Status& status)
      : name_(name), text_(status.ToString(absl::StatusToStringMode::kWithNoExtraData)) {}
  LogField(absl::string_view name, bool value)
      : name_(name), text_(value ? "true" : "false"), quoted_(false) {}
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  LogField(absl::string_view name, Number value) : LogField(name, absl::AlphaNum(value)) {}

  absl::string_view name() const { return name_; }
  absl::string_view text() const { return text_; }
  bool quoted() const { return quoted_; }

 private:
  LogField(absl::string_view name, const absl::AlphaNum& number);

  absl::string_view name_;
  std::string text_;
  bool quoted_ = true;
};

// Writes a record. Cheap where its level is dropped, but for making the fields: guard records of
// hot paths with spdlog::should_log.
void Log(spdlog::level::level_enum level, absl::string_view message,
         std::initializer_list<LogField> fields = {});

// The 32 hex digits of a W3C traceparent that name its trace; empty where there is none.
absl::string_view TraceId(absl::string_view traceparent);

}  // namespace hopscope::common

#endif  // HOPSCOPE_COMMON_LOGGING_H_
