#include "worker/engine/offline/inspect.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/spec/reasons.h"
#include "common/status.h"
#include "common/tokens/tokens_file.h"
#include "worker/engine/host.h"
#include "worker/engine/model/capture.h"
#include "worker/engine/model/forward_pass.h"
#include "worker/engine/model/runnable.h"
#include "worker/engine/model/torch_runtime.h"
#include "worker/engine/offline/options.h"
#include "worker/engine/offline/safetensors_writer.h"

namespace hopscope::engine {
namespace {

constexpr absl::string_view kAllowedCaptures = "a list of logits, hidden and attention, each once";

struct Captures {
  bool logits = false;
  bool hidden = false;
  bool attention = false;
};

absl::StatusOr<Captures> ParseCaptures(const std::vector<std::string>& names) {
  Captures captures;
  for (const std::string& name : names) {
    bool* const which = name == "logits"      ? &captures.logits
                        : name == "hidden"    ? &captures.hidden
                        : name == "attention" ? &captures.attention
                                              : nullptr;
    if (which == nullptr) {
      return common::InvalidField(spec::kNameUnknown, "--capture", name, kAllowedCaptures);
    }
    if (std::exchange(*which, true)) {
      return common::InvalidField(spec::kDuplicate, "--capture", name, kAllowedCaptures);
    }
  }
  if (names.empty()) {
    return common::InvalidField(spec::kFieldMissing, "--capture", "", kAllowedCaptures);
  }
  return captures;
}

template <typename T>
absl::string_view Bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
absl::Status Inspect(const InspectOptions& options, const Captures& captures, const Model& model,
                     const std::vector<tokens::TokensLine>& lines) {
  const checkpoint::Architecture& a = model.architecture();
  std::vector<SafetensorsWriter::Tensor> tensors;
  for (size_t i = 0; i < lines.size(); ++i) {
    const int64_t tokens = static_cast<int64_t>(lines[i].tokens.size());
    const size_t first = tensors.size();
    const auto add = [&](absl::string_view name, std::vector<int64_t> shape) {
      tensors.push_back({.name = absl::StrCat(name, ".", i),
                         .dtype = model.float64() ? "F64" : "F32",
                         .element_bytes = sizeof(T),
                         .shape = std::move(shape)});
    };
    if (captures.logits) add("logits", {tokens, a.vocab_size});
    if (captures.hidden) add("hidden", {a.layers + 1, tokens, a.d_model});
    if (captures.attention) add("attention", {a.layers, a.heads, tokens, tokens});
    int64_t bytes = 0;
    for (size_t t = first; t < tensors.size(); ++t) bytes += tensors[t].bytes();
    if (bytes > HostMemoryBytes() / 2) {
      return common::MakeError(
          absl::StatusCode::kResourceExhausted, "OUT_OF_MEMORY",
          absl::StrCat(options.tokens, ":", lines[i].number, ": capturing ", tokens,
                       " tokens takes ", bytes, " bytes, more than half of this machine's memory; ",
                       "leave something out of --capture"));
    }
  }
  HOPSCOPE_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                            SafetensorsWriter::Create(options.output, tensors, {}));
  ForwardPass pass;
  for (const tokens::TokensLine& line : lines) {
    const int64_t tokens = static_cast<int64_t>(line.tokens.size());
    Capture<T> capture(&a, tokens, captures.hidden, captures.attention);
    absl::StatusOr<MatrixView> logits = pass.Run(model, {.sequences = 1,
                                                         .tokens = tokens,
                                                         .ids = line.tokens.data(),
                                                         .all_logits = captures.logits,
                                                         .all_queries = true,
                                                         .observer = &capture,
                                                         .cancel = options.cancel});
    if (!logits.ok()) {
      return common::Annotate(logits.status(), absl::StrCat(options.tokens, ":", line.number));
    }
    if (captures.logits) {
      std::vector<T> rows(logits->rows * logits->columns);
      CopyRows(*logits, rows.data(), logits->columns);
      HOPSCOPE_RETURN_IF_ERROR(writer.Append(Bytes(rows)));
    }
    if (captures.hidden) HOPSCOPE_RETURN_IF_ERROR(writer.Append(Bytes(capture.residual())));
    if (captures.attention) HOPSCOPE_RETURN_IF_ERROR(writer.Append(Bytes(capture.attention())));
  }
  return writer.Finish();
}

}  // namespace

absl::Status RunInspect(const InspectOptions& options) {
  HOPSCOPE_ASSIGN_OR_RETURN(const Captures captures, ParseCaptures(options.capture));
  HOPSCOPE_ASSIGN_OR_RETURN(const v1::Dtype dtype, ParseDtype(options.dtype));
  HOPSCOPE_RETURN_IF_ERROR(CheckOutput(options.tokens, options.output));
  HOPSCOPE_ASSIGN_OR_RETURN(const checkpoint::Checkpoint checkpoint,
                            OpenCheckpoint(options.checkpoint));
  HOPSCOPE_RETURN_IF_ERROR(CheckRunnable(checkpoint.architecture()));
  HOPSCOPE_ASSIGN_OR_RETURN(
      const std::vector<tokens::TokensLine> lines,
      tokens::ReadTokensFile(options.tokens, {.vocab_size = checkpoint.architecture().vocab_size}));
  PinBlasCodePath();
  UseOneTorchThread();
  HOPSCOPE_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model,
                            Model::Load(checkpoint, dtype));
  return model->float64() ? Inspect<double>(options, captures, *model, lines)
                          : Inspect<float>(options, captures, *model, lines);
}

}  // namespace hopscope::engine
