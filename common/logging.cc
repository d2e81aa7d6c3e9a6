#include "common/logging.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "spdlog/sinks/stdout_sinks.h"

namespace hopscope::common {
namespace {

// Fields of the record that this thread is writing: the default logger formats on the thread that
// logs, so that a formatter finds them here.
thread_local absl::Span<const LogField> fields_of_this_record;

absl::string_view LevelName(spdlog::level::level_enum level) {
  const spdlog::string_view_t name = spdlog::level::to_string_view(level);
  return {name.data(), name.size()};
}

std::string JsonString(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool NeedsQuotes(absl::string_view text) {
  if (text.empty()) return true;
  for (const unsigned char c : text) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f) return true;
  }
  return false;
}

void Append(absl::string_view text, spdlog::memory_buf_t& line) {
  line.append(text.data(), text.data() + text.size());
}

class Formatter : public spdlog::formatter {
 public:
  explicit Formatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& record, spdlog::memory_buf_t& line) override {
    const absl::string_view message(record.payload.data(), record.payload.size());
    const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromChrono(record.time),
                                              absl::UTCTimeZone());
    if (format_ == LogFormat::kJson) {
      Append(absl::StrCat("{\"time\":\"", time, "\",\"level\":\"", LevelName(record.level),
                          "\",\"message\":", JsonString(message)),
             line);
      for (const LogField& field : fields_of_this_record) {
        Append(absl::StrCat(",", JsonString(field.name()), ":",
                            field.quoted() ? JsonString(field.text()) : field.text()),
               line);
      }
      Append("}", line);
    } else {
      Append(absl::StrCat(time, " ", LevelName(record.level), " ", absl::Utf8SafeCEscape(message)),
             line);
      for (const LogField& field : fields_of_this_record) {
        Append(absl::StrCat(" ", field.name(), "="), line);
        if (NeedsQuotes(field.text())) {
          Append(absl::StrCat("\"", absl::Utf8SafeCEscape(field.text()), "\""), line);
        } else {
          Append(field.text(), line);
        }
      }
    }
    Append("\n", line);
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<Formatter>(format_);
  }

 private:
  const LogFormat format_;
};

}  // namespace

absl::StatusOr<LogOptions> ParseLogOptions(absl::string_view format, absl::string_view level) {
  LogOptions options;
  if (format == "text") {
    options.format = LogFormat::kText;
  } else if (format == "json") {
    options.format = LogFormat::kJson;
  } else {
    return InvalidField("BAD_FLAG", "--log_format", format, "use text or json");
  }
  if (level == "debug") {
    options.level = spdlog::level::debug;
  } else if (level == "info") {
    options.level = spdlog::level::info;
  } else if (level == "warning") {
    options.level = spdlog::level::warn;
  } else if (level == "error") {
    options.level = spdlog::level::err;
  } else {
    return InvalidField("BAD_FLAG", "--log_level", level, "use debug, info, warning or error");
  }
  return options;
}

void SetUpLogging(const LogOptions& options) {
  auto logger = std::make_shared<spdlog::logger>("hopscope",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(MakeLogFormatter(options.format));
  logger->set_level(options.level);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

std::unique_ptr<spdlog::formatter> MakeLogFormatter(LogFormat format) {
  return std::make_unique<Formatter>(format);
}

LogField::LogField(absl::string_view name, const absl::AlphaNum& number)
    : name_(name), text_(number.Piece()) {
  // JSON has no word for "nan" and "inf": they stay text.
  quoted_ = !absl::ascii_isdigit(text_.back());
}

void Log(spdlog::level::level_enum level, absl::string_view message,
         std::initializer_list<LogField> fields) {
  if (!spdlog::should_log(level)) return;
  fields_of_this_record = absl::MakeConstSpan(fields.begin(), fields.size());
  spdlog::default_logger_raw()->log(level, spdlog::string_view_t(message.data(), message.size()));
  fields_of_this_record = {};
}

absl::string_view TraceId(absl::string_view traceparent) {
  // "00-" trace id "-" parent id "-" flags; see
  // https://www.w3.org/TR/trace-context/#traceparent-header.
  if (traceparent.size() < 55 || traceparent[2] != '-' || traceparent[35] != '-') return {};
  const absl::string_view id = traceparent.substr(3, 32);
  for (const char c : id) {
    if (!absl::ascii_isxdigit(c)) return {};
  }
  return id;
}

}  // namespace hopscope::common
