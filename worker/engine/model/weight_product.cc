#include "worker/engine/model/weight_product.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace hopscope::engine {
namespace {

// Elements of a matrix that are widened at a time: its copy is 16 MiB at most, or one row.
constexpr int64_t kWidened = int64_t{1} << 22;

// BLAS sums the rows of whole blocks in one way and what is left over in others.
constexpr int64_t kRowBlock = 16;

bool IsHalf(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
}

// Whether LibTorch's product of two such tensors sums in float32 by itself.
bool IsNative(const at::Tensor& rows, const at::Tensor& out) {
  return !IsHalf(rows) || (rows.is_cuda() && IsHalf(out));
}

// Calls product(rows, out) for all rows, with both in the format of `type` and, on CPUs, a number
// of rows that fills whole blocks; out holds what it held before, and gets the result.
template <typename Product>
void InWholeBlocks(const at::Tensor& rows, const at::Tensor& out, at::ScalarType type,
                   Product product) {
  int64_t done = 0;
  if (rows.scalar_type() == type && out.scalar_type() == type) {
    const int64_t count = rows.size(0);
    done = rows.is_cuda() ? count : count - count % kRowBlock;
    if (done > 0) product(rows.narrow(0, 0, done), out.narrow(0, 0, done));
  }
  const int64_t left = rows.size(0) - done;
  if (left == 0) return;
  const int64_t filled_rows =
      rows.is_cuda() ? left : (left + kRowBlock - 1) / kRowBlock * kRowBlock;
  const auto filled = [&](const at::Tensor& tensor) {
    const at::Tensor copy = at::zeros({filled_rows, tensor.size(1)}, tensor.options().dtype(type));
    copy.narrow(0, 0, left).copy_(tensor.narrow(0, done, left));
    return copy;
  };
  const at::Tensor result = filled(out);
  product(filled(rows), result);
  out.narrow(0, done, left).copy_(result.narrow(0, 0, left));
}

// Calls product(part of the matrix, columns of out) for all of them, a part being float32.
template <typename Product>
void ForEachWidened(const at::Tensor& matrix, const at::Tensor& out, Product product) {
  const int64_t outputs = matrix.size(0);
  const int64_t step = std::max<int64_t>(1, kWidened / std::max<int64_t>(1, matrix.size(1)));
  for (int64_t first = 0; first < outputs; first += step) {
    const int64_t count = std::min(step, outputs - first);
    product(matrix.narrow(0, first, count).to(at::kFloat), out.narrow(1, first, count));
  }
}

// Calls product(rows, matrix, out) in the format that sums are to have.
template <typename Product>
void InFormatOfSums(const at::Tensor& rows, const at::Tensor& matrix, const at::Tensor& out,
                    Product product) {
  if (IsNative(rows, out)) {
    InWholeBlocks(rows, out, rows.scalar_type(),
                  [&](const at::Tensor& in, const at::Tensor& to) { product(in, matrix, to); });
    return;
  }
  InWholeBlocks(rows, out, at::kFloat, [&](const at::Tensor& in, const at::Tensor& to) {
    ForEachWidened(matrix, to, [&](const at::Tensor& part, const at::Tensor& columns) {
      product(in, part, columns);
    });
  });
}

}  // namespace

void MultiplyByWeights(const at::Tensor& rows, const at::Tensor& matrix, const at::Tensor& out) {
  InFormatOfSums(rows, matrix, out,
                 [](const at::Tensor& in, const at::Tensor& part, const at::Tensor& to) {
                   at::Tensor result = to;
                   at::mm_out(result, in, part.t());
                 });
}

void AddMultipliedByWeights(const at::Tensor& rows, const at::Tensor& matrix,
                            const at::Tensor& out) {
  InFormatOfSums(rows, matrix, out,
                 [](const at::Tensor& in, const at::Tensor& part, const at::Tensor& to) {
                   at::Tensor(to).addmm_(in, part.t());
                 });
}

}  // namespace hopscope::engine
