#include "worker/engine/offline/construct.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/output_file.h"
#include "common/spec/reasons.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "worker/engine/offline/safetensors_writer.h"
#include "worker/engine/theory/constructions.h"
#include "worker/engine/theory/gaps.h"

namespace hopscope::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxLayers = 64;
// Tokens of a vocabulary, and with it the width of the model: a matrix of it is 8 MiB.
constexpr int64_t kMaxTokens = 1024;
constexpr int64_t kMaxLength = int64_t{1} << 20;
constexpr double kLargest = 1e9;

enum class Kind { kIndex, kRetrieval };

absl::StatusOr<Kind> ParseKind(const std::string& name) {
  if (name == "index") return Kind::kIndex;
  if (name == "retrieval") return Kind::kRetrieval;
  return common::InvalidField(spec::kNameUnknown, "--construction", name, "index or retrieval");
}

absl::Status CheckNumber(absl::string_view option, double value, double min, double max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return common::InvalidField(spec::kOutOfRange, option, absl::StrCat(value),
                              absl::StrCat(min, " to ", max));
}

absl::Status CheckCount(absl::string_view option, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return common::InvalidField(spec::kOutOfRange, option, absl::StrCat(value),
                              absl::StrCat(min, " to ", max));
}

// T_Retrieval tells contents from positions by the sign of theta.
absl::Status CheckTheta(Kind kind, double theta) {
  return kind == Kind::kIndex ? CheckNumber("--theta", theta, -kLargest, kLargest)
                              : CheckNumber("--theta", theta, 0, 3);
}

double DefaultTheta(Kind kind) { return kind == Kind::kIndex ? 0.8 : 0.0027; }

absl::StatusOr<ConstructionOptions> Resolve(Kind kind, const ConstructOptions& options) {
  const bool index = kind == Kind::kIndex;
  const ConstructionOptions resolved{.layers = options.layers,
                                     .theta = options.theta.value_or(DefaultTheta(kind)),
                                     .beta = options.beta.value_or(index ? 3200 : 100),
                                     .letters = options.letters.value_or(index ? 120 : 8),
                                     .integers = options.integers.value_or(index ? 16 : 8)};
  HOPSCOPE_RETURN_IF_ERROR(CheckCount("--layers", resolved.layers, 1, kMaxLayers));
  HOPSCOPE_RETURN_IF_ERROR(CheckTheta(kind, resolved.theta));
  HOPSCOPE_RETURN_IF_ERROR(CheckNumber("--beta", resolved.beta, 0, kLargest));
  HOPSCOPE_RETURN_IF_ERROR(CheckCount("--letters", resolved.letters, 2, kMaxTokens));
  HOPSCOPE_RETURN_IF_ERROR(CheckCount("--integers", resolved.integers, 1, kMaxTokens));
  const int64_t tokens = index ? resolved.integers + resolved.letters
                               : resolved.letters * (resolved.integers + resolved.letters);
  if (tokens > kMaxTokens) {
    return common::InvalidField(
        spec::kOutOfRange, "--letters", absl::StrCat(resolved.letters),
        absl::StrCat("alphabets that make at most ", kMaxTokens, " tokens; these make ", tokens));
  }
  return resolved;
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && !std::filesystem::is_empty(path, error) && !error) {
    return common::InvalidField(spec::kOutOfRange, "--output", path,
                                "a folder that is new or empty");
  }
  if (!error) return absl::OkStatus();
  return common::MakeError(absl::StatusCode::kFailedPrecondition, "OUTPUT_FAILED",
                           absl::StrCat("folder ", path, ": ", error.message()));
}

Json IndexLength(double theta, int64_t tokens, bool per_offset) {
  const std::vector<double> gaps = IndexGaps(theta, tokens);
  const auto [worst, best] = std::minmax_element(gaps.begin(), gaps.end());
  const int64_t offset = worst - gaps.begin();
  Json length = {
      {"tokens", tokens},       {"worst_gap", *worst},
      {"worst_offset", offset}, {"worst_gap_bound", IndexGapBound(theta, tokens, offset)},
      {"best_gap", *best},      {"letter_query_gap", gaps[0]}};
  if (per_offset) {
    length["gap_per_offset"] = gaps;
    for (int64_t s = 0; s < tokens; ++s) {
      length["bound_per_offset"].push_back(IndexGapBound(theta, tokens, s));
    }
  }
  return length;
}

Json RetrievalLength(double theta, int64_t letters, int64_t tokens) {
  const RetrievalGap worst = WorstRetrievalGap(theta, letters, tokens);
  return {{"tokens", tokens},
          {"worst_gap", worst.gap},
          {"match_offset", worst.match_offset},
          {"competitor_offset", worst.competitor_offset},
          {"letter_difference", worst.letter_difference},
          {"worst_gap_bound", RetrievalGapBound(theta, letters, tokens)}};
}

}  // namespace

absl::Status RunConstruct(const ConstructOptions& options) {
  HOPSCOPE_ASSIGN_OR_RETURN(const Kind kind, ParseKind(options.construction));
  HOPSCOPE_ASSIGN_OR_RETURN(const ConstructionOptions resolved, Resolve(kind, options));
  HOPSCOPE_RETURN_IF_ERROR(MakeFolder(options.output));
  const ConstructedModel model =
      kind == Kind::kIndex ? ConstructIndex(resolved) : ConstructRetrieval(resolved);

  std::vector<SafetensorsWriter::Tensor> tensors;
  for (const ConstructedTensor& tensor : model.tensors) {
    tensors.push_back({.name = tensor.name,
                       .dtype = "F64",
                       .element_bytes = sizeof(double),
                       .shape = tensor.shape});
  }
  HOPSCOPE_ASSIGN_OR_RETURN(
      SafetensorsWriter weights,
      SafetensorsWriter::Create(options.output + "/model.safetensors", tensors, {}));
  for (const ConstructedTensor& tensor : model.tensors) {
    HOPSCOPE_RETURN_IF_ERROR(weights.Append({reinterpret_cast<const char*>(tensor.values.data()),
                                             tensor.values.size() * sizeof(double)}));
  }
  HOPSCOPE_RETURN_IF_ERROR(weights.Finish());
  // Last: without it the folder is no checkpoint.
  HOPSCOPE_ASSIGN_OR_RETURN(common::OutputFile config,
                            common::OutputFile::Create(options.output + "/config.json"));
  HOPSCOPE_RETURN_IF_ERROR(config.Write(model.config));
  return config.Commit();
}

absl::Status RunTheory(const TheoryOptions& options) {
  HOPSCOPE_ASSIGN_OR_RETURN(const Kind kind, ParseKind(options.construction));
  const double theta = options.theta.value_or(DefaultTheta(kind));
  HOPSCOPE_RETURN_IF_ERROR(CheckTheta(kind, theta));
  const int64_t letters = options.letters.value_or(8);
  HOPSCOPE_RETURN_IF_ERROR(CheckCount("--letters", letters, 2, kMaxTokens));
  if (kind == Kind::kIndex && options.letters.has_value()) {
    return common::InvalidField(spec::kUnsupported, "--letters", absl::StrCat(letters),
                                "the gaps of index do not depend on its alphabet");
  }
  if (kind == Kind::kRetrieval && options.per_offset) {
    return common::InvalidField(spec::kUnsupported, "--per_offset", "true",
                                "index alone has a gap for each offset");
  }
  if (options.lengths.empty()) {
    return common::InvalidField(spec::kFieldMissing, "--lengths", "", "2 or more tokens");
  }
  Json report = {{"construction", options.construction}, {"theta", theta}};
  if (kind == Kind::kRetrieval) {
    report["letters"] = letters;
    const double reach = RetrievalReach(theta, letters);
    report["reach"] = std::isfinite(reach) ? Json(reach) : Json(nullptr);
  }
  for (const int64_t tokens : options.lengths) {
    HOPSCOPE_RETURN_IF_ERROR(CheckCount("--lengths", tokens, 2, kMaxLength));
    report["lengths"].push_back(kind == Kind::kIndex
                                    ? IndexLength(theta, tokens, options.per_offset)
                                    : RetrievalLength(theta, letters, tokens));
  }
  const std::string text = report.dump(2) + "\n";
  if (options.output.empty()) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
        std::fflush(stdout) == 0) {
      return absl::OkStatus();
    }
    return common::MakeError(absl::StatusCode::kFailedPrecondition, "OUTPUT_FAILED",
                             "standard output cannot be written to");
  }
  HOPSCOPE_ASSIGN_OR_RETURN(common::OutputFile file, common::OutputFile::Create(options.output));
  HOPSCOPE_RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

}  // namespace hopscope::engine
