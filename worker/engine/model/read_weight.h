// Copies one weight out of a checkpoint into a dense matrix of the format that is computed in.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_READ_WEIGHT_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_READ_WEIGHT_H_

#include <cstdint>

#include "common/checkpoint/checkpoint.h"

namespace hopscope::engine {

// Writes element (r, c) of the slice's role to out[r * stride + c] (see WeightSlice for where it
// lies in the stored tensor). bfloat16, float16 and float32 are widened exactly; float64 is rounded
// where T is float. The checkpoint has checked that the slice lies inside its tensor. Thread-safe.
template <typename T>
void ReadWeight(const checkpoint::WeightSlice& slice, T* out, int64_t stride);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_READ_WEIGHT_H_
