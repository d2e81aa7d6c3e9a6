#include "server/jobs/list_filter.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/spec/text.h"
#include "common/status.h"

namespace hopscope::jobs {
namespace {

constexpr absl::string_view kStatePrefix = "STATE_";
constexpr absl::string_view kLabelPrefix = "label.";

template <typename... Parts>
absl::Status Invalid(absl::string_view what, const Parts&... allowed) {
  return common::InvalidField("FILTER_INVALID", "filter", spec::Quoted(what),
                              absl::StrCat(allowed...));
}

// Takes the text apart from the front.
class Scanner {
 public:
  explicit Scanner(absl::string_view text) : rest_(text) { SkipSpace(); }

  bool done() const { return rest_.empty(); }
  absl::string_view rest() const { return rest_; }

  // A field's name: up to a comparison or a space.
  absl::string_view Name() {
    const absl::string_view name = rest_.substr(0, rest_.find_first_of(" \t\r\n=<>!\""));
    rest_.remove_prefix(name.size());
    SkipSpace();
    return name;
  }

  absl::string_view Comparison() {
    const size_t end = std::min(rest_.find_first_not_of("=<>!"), rest_.size());
    const absl::string_view comparison = rest_.substr(0, end);
    rest_.remove_prefix(end);
    SkipSpace();
    return comparison;
  }

  // A value, in quotes or up to a space.
  absl::StatusOr<std::string> Value() {
    std::string value;
    if (!absl::ConsumePrefix(&rest_, "\"")) {
      value = std::string(rest_.substr(0, rest_.find_first_of(" \t\r\n\"")));
      if (value.empty()) return Invalid(rest_, "a value must follow the comparison");
      rest_.remove_prefix(value.size());
    } else {
      for (;; rest_.remove_prefix(1)) {
        if (rest_.empty()) return Invalid(value, "the closing \" is missing");
        if (rest_[0] == '"') break;
        if (rest_[0] == '\\') {
          rest_.remove_prefix(1);
          if (rest_.empty() || (rest_[0] != '"' && rest_[0] != '\\')) {
            return Invalid(value, "within quotes, \\ stands in front of \" or \\ alone");
          }
        }
        value.push_back(rest_[0]);
      }
      rest_.remove_prefix(1);
    }
    SkipSpace();
    return value;
  }

 private:
  void SkipSpace() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  absl::string_view rest_;
};

absl::Status AddState(absl::string_view comparison, const std::string& value,
                      store::JobQuery& query) {
  v1::EvalJob::State state = v1::EvalJob::STATE_UNSPECIFIED;
  if (comparison == "=" && v1::EvalJob::State_Parse(absl::StrCat(kStatePrefix, value), &state) &&
      state != v1::EvalJob::STATE_UNSPECIFIED) {
    if (query.state.has_value()) return Invalid("state", "state can be compared once");
    query.state = state;
    return absl::OkStatus();
  }
  std::vector<absl::string_view> names;
  for (int i = 1; i < v1::EvalJob::State_descriptor()->value_count(); ++i) {
    names.push_back(
        absl::StripPrefix(v1::EvalJob::State_descriptor()->value(i)->name(), kStatePrefix));
  }
  return Invalid(absl::StrCat("state", comparison, value), "state= one of ",
                 absl::StrJoin(names, ", "));
}

absl::Status AddLabel(absl::string_view key, absl::string_view comparison, std::string value,
                      store::JobQuery& query) {
  if (comparison != "=") {
    return Invalid(absl::StrCat(kLabelPrefix, key, comparison),
                   "labels can only be compared with =");
  }
  query.labels.emplace_back(key, std::move(value));
  return absl::OkStatus();
}

absl::Status AddCreateTime(absl::string_view comparison, const std::string& value,
                           store::JobQuery& query) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, value, &time, &error) ||
      time == absl::InfiniteFuture() || time == absl::InfinitePast()) {
    return Invalid(absl::StrCat("create_time", comparison, value),
                   "an RFC 3339 time such as 2026-01-01T00:00:00Z");
  }
  // Stored times are whole microseconds: each comparison becomes one with such a bound.
  const absl::Time down = absl::FromUnixMicros(absl::ToUnixMicros(time));
  const absl::Time up = down == time ? down : down + absl::Microseconds(1);
  if (comparison == ">=" || comparison == ">") {
    const absl::Time from =
        comparison == ">=" ? up : (down == time ? down + absl::Microseconds(1) : up);
    query.created_from = std::max(query.created_from.value_or(from), from);
  } else if (comparison == "<" || comparison == "<=") {
    const absl::Time before =
        comparison == "<" ? up : (down == time ? down + absl::Microseconds(1) : up);
    query.created_before = std::min(query.created_before.value_or(before), before);
  } else {
    return Invalid(absl::StrCat("create_time", comparison, value),
                   "create_time with <, <=, > or >=");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseFilter(absl::string_view filter, store::JobQuery& query) {
  Scanner scanner(filter);
  if (scanner.done()) return absl::OkStatus();
  for (;;) {
    const absl::string_view name = scanner.Name();
    const absl::string_view comparison = scanner.Comparison();
    if (comparison.empty()) {
      return Invalid(absl::StrCat(name, scanner.rest()),
                     "comparisons such as state=RUNNING, joined by AND");
    }
    HOPSCOPE_ASSIGN_OR_RETURN(std::string value, scanner.Value());
    if (name == "state") {
      HOPSCOPE_RETURN_IF_ERROR(AddState(comparison, value, query));
    } else if (name == "create_time") {
      HOPSCOPE_RETURN_IF_ERROR(AddCreateTime(comparison, value, query));
    } else if (absl::StartsWith(name, kLabelPrefix) && name.size() > kLabelPrefix.size()) {
      HOPSCOPE_RETURN_IF_ERROR(
          AddLabel(name.substr(kLabelPrefix.size()), comparison, std::move(value), query));
    } else {
      return Invalid(name, "the fields state, label.KEY and create_time");
    }
    if (scanner.done()) return absl::OkStatus();
    const absl::string_view conjunction = scanner.Name();
    if (conjunction != "AND" || scanner.done()) {
      return Invalid(absl::StrCat(conjunction, scanner.rest()), "comparisons joined by AND");
    }
  }
}

absl::Status ParseOrder(absl::string_view order_by, store::JobQuery& query) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(order_by, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.empty() || words == std::vector<absl::string_view>{"create_time", "desc"}) {
    query.newest_first = true;
  } else if (words == std::vector<absl::string_view>{"create_time"}) {
    query.newest_first = false;
  } else {
    return common::InvalidField("ORDER_INVALID", "order_by", spec::Quoted(order_by),
                                "\"create_time desc\" or \"create_time\"");
  }
  return absl::OkStatus();
}

}  // namespace hopscope::jobs
