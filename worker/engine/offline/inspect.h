// hopscope-worker inspect: what a checkpoint computes for some sequences, as a safetensors file.
//
// For sequence i of the tokens file, from 0, the file holds what was asked for, in float64 where
// that is computed in, else in float32:
//   logits.i     [tokens, vocab]
//   hidden.i     [layers + 1, tokens, d_model]: what enters each block, then what leaves the last
//   one, before the
//                final norm
//   attention.i  [layers, heads, tokens, tokens]: rows are queries
#ifndef HOPSCOPE_WORKER_ENGINE_OFFLINE_INSPECT_H_
#define HOPSCOPE_WORKER_ENGINE_OFFLINE_INSPECT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/engine/engine.h"

namespace hopscope::engine {

struct InspectOptions {
  std::string checkpoint;              // folder
  std::string tokens;                  // tokens file (tokens_file.h)
  std::vector<std::string> capture;    // of logits, hidden, attention; at least one
  std::string dtype = "float32";       // or float64, bfloat16, float16
  std::string output;                  // file to write; appears complete or not at all
  const CancelFlag* cancel = nullptr;  // may be null
};

// Computes on the calling thread. INVALID_ARGUMENT and NOT_FOUND name the option or the line that
// is wrong; FAILED_PRECONDITION: the checkpoint, or the output file; RESOURCE_EXHAUSTED: a line's
// captures do not fit memory.
absl::Status RunInspect(const InspectOptions& options);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_OFFLINE_INSPECT_H_
