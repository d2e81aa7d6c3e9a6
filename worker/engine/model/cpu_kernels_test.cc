// Each table of kernels that this machine can run, against plain loops in float64.
#include "worker/engine/model/cpu_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace hopscope::engine {
namespace {

template <typename T>
std::vector<T> Random(int64_t count, double spread, int seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, spread);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(normal(random));
  return values;
}

template <typename T>
double Unit() {
  return std::numeric_limits<T>::epsilon();
}

// Odd sizes exercise the ends of rows.
constexpr int64_t kColumns[] = {1, 7, 16, 48, 67, 128};
constexpr int64_t kRows = 3;
constexpr int64_t kGap = 5;  // elements between the rows of a matrix

template <typename Param>
class CpuKernelsTest : public testing::Test {
 protected:
  void ForEachTable(void (*check)(const CpuKernels<Param>& kernels)) {
    for (const CpuIsa isa : {CpuIsa::kBaseline, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
      if (!CpuHas(isa)) continue;
      SCOPED_TRACE(static_cast<int>(isa));
      check(CpuKernelsOf<Param>(isa));
    }
  }
};

using Formats = testing::Types<float, double>;
TYPED_TEST_SUITE(CpuKernelsTest, Formats);

TYPED_TEST(CpuKernelsTest, NormCentresAndScalesRows) {
  using T = TypeParam;
  this->ForEachTable([](const CpuKernels<T>& kernels) {
    for (const int64_t columns : kColumns) {
      for (const bool rms : {false, true}) {
        const int64_t stride = columns + kGap;
        const auto in = Random<T>(kRows * stride, 3, 1);
        const auto gain = Random<T>(columns, 1, 2);
        const auto bias = Random<T>(columns, 1, 3);
        std::vector<T> out(kRows * stride, T{7});
        kernels.norm({.rows = kRows,
                      .columns = columns,
                      .in = in.data(),
                      .in_stride = stride,
                      .gain = gain.data(),
                      .bias = rms ? nullptr : bias.data(),
                      .epsilon = 1e-5,
                      .rms = rms,
                      .out = out.data(),
                      .out_stride = stride});
        for (int64_t r = 0; r < kRows; ++r) {
          double mean = 0, square = 0;
          for (int64_t c = 0; c < columns; ++c) mean += in[r * stride + c];
          mean = rms ? 0 : mean / static_cast<double>(columns);
          for (int64_t c = 0; c < columns; ++c) square += std::pow(in[r * stride + c] - mean, 2);
          const double deviation = std::sqrt(square / static_cast<double>(columns) + 1e-5);
          for (int64_t c = 0; c < columns; ++c) {
            const double expected = (in[r * stride + c] - mean) / deviation * gain[c] +
                                    (rms ? 0 : static_cast<double>(bias[c]));
            EXPECT_NEAR(out[r * stride + c], expected, 40 * Unit<T>());
          }
          EXPECT_EQ(out[r * stride + columns], T{7});
        }
      }
    }
  });
}

TYPED_TEST(CpuKernelsTest, ActivationsAgreeWithTheirFormulas) {
  using T = TypeParam;
  this->ForEachTable([](const CpuKernels<T>& kernels) {
    const double c = std::sqrt(2 / M_PI);
    for (const int64_t columns : kColumns) {
      for (const bool gated : {false, true}) {
        auto in = Random<T>(columns, 4, 4);
        in[0] = static_cast<T>(-30);
        const auto bias = Random<T>(columns, 1, 5);
        const auto up = Random<T>(columns, 1, 6);
        const auto check = [&](ActivationKind kind, double (*formula)(double, double)) {
          std::vector<T> out(columns);
          kernels.activate({.kind = kind,
                            .gelu_tanh_factor = c,
                            .rows = 1,
                            .columns = columns,
                            .in = in.data(),
                            .in_stride = columns,
                            .bias = bias.data(),
                            .up = gated ? up.data() : nullptr,
                            .up_stride = columns,
                            .up_bias = gated ? bias.data() : nullptr,
                            .out = out.data(),
                            .out_stride = columns});
          for (int64_t i = 0; i < columns; ++i) {
            const T x = in[i] + bias[i];
            const double expected =
                formula(x, c) * (gated ? static_cast<double>(T(up[i] + bias[i])) : 1.0);
            EXPECT_NEAR(out[i], expected, 4 * Unit<T>() * std::max(1.0, std::abs(expected)))
                << static_cast<int>(kind) << " of " << x;
          }
        };
        check(ActivationKind::kGeluTanh, [](double x, double factor) {
          return x / 2 * (1 + std::tanh(factor * (x + 0.044715 * x * x * x)));
        });
        check(ActivationKind::kGeluErf,
              [](double x, double) { return x / 2 * (1 + std::erf(x / std::sqrt(2))); });
        check(ActivationKind::kRelu, [](double x, double) { return std::max(x, 0.0); });
        check(ActivationKind::kSilu, [](double x, double) { return x / (1 + std::exp(-x)); });
      }
    }
  });
}

TYPED_TEST(CpuKernelsTest, GeluIsPreciseFarFromZero) {
  using T = TypeParam;
  this->ForEachTable([](const CpuKernels<T>& kernels) {
    const double c = std::sqrt(2 / M_PI);
    for (double value = -5; value < 5; value += 0.01) {
      const T x = static_cast<T>(value);
      T out;
      kernels.activate({.kind = ActivationKind::kGeluTanh,
                        .gelu_tanh_factor = c,
                        .rows = 1,
                        .columns = 1,
                        .in = &x,
                        .in_stride = 1,
                        .out = &out,
                        .out_stride = 1});
      // x/2 (1 + tanh z) = x / (1 + e^-2z), which does not cancel.
      const double z = c * (static_cast<double>(x) + 0.044715 * std::pow(x, 3));
      const double expected = static_cast<double>(x) / (1 + std::exp(-2 * z));
      // The rounding of z counts 2z-fold.
      EXPECT_NEAR(out, expected, (4 + 4 * std::abs(z)) * Unit<T>() * std::abs(expected) + 1e-300);
    }
  });
}

TYPED_TEST(CpuKernelsTest, RotationTurnsPairsAndLeavesTheRest) {
  using T = TypeParam;
  this->ForEachTable([](const CpuKernels<T>& kernels) {
    for (const int64_t columns : {2, 7, 16, 48, 128}) {
      for (const int64_t rotary : {int64_t{0}, columns / 4 * 2, columns / 2 * 2}) {
        for (const bool interleaved : {true, false}) {
          for (const bool backwards : {false, true}) {
            const auto in = Random<T>(kRows * columns, 1, 7);
            const auto angles = Random<double>(kRows * rotary / 2, 3, 8);
            std::vector<T> cosines(kRows * rotary), sines(kRows * rotary);
            const auto first = [&](int64_t plane) { return interleaved ? 2 * plane : plane; };
            const auto second = [&](int64_t plane) {
              return interleaved ? 2 * plane + 1 : plane + rotary / 2;
            };
            for (int64_t r = 0; r < kRows; ++r) {
              for (int64_t plane = 0; plane < rotary / 2; ++plane) {
                const double angle = angles[r * rotary / 2 + plane];
                cosines[r * rotary + first(plane)] = static_cast<T>(std::cos(angle));
                cosines[r * rotary + second(plane)] = static_cast<T>(std::cos(angle));
                sines[r * rotary + first(plane)] = static_cast<T>(-std::sin(angle));
                sines[r * rotary + second(plane)] = static_cast<T>(std::sin(angle));
              }
            }
            std::vector<T> out(kRows * columns);
            const int64_t start = backwards ? (kRows - 1) * rotary : 0;
            kernels.rotate({.rows = kRows,
                            .columns = columns,
                            .rotary_columns = rotary,
                            .interleaved = interleaved,
                            .cosines = cosines.data() + start,
                            .sines = sines.data() + start,
                            .table_step = backwards ? -rotary : rotary,
                            .factor = T{2},
                            .in = in.data(),
                            .in_stride = columns,
                            .out = out.data(),
                            .out_stride = columns});
            for (int64_t r = 0; r < kRows; ++r) {
              const int64_t table = backwards ? kRows - 1 - r : r;
              std::vector<double> expected(in.begin() + r * columns,
                                           in.begin() + (r + 1) * columns);
              for (int64_t plane = 0; plane < rotary / 2; ++plane) {
                const double angle = angles[table * rotary / 2 + plane];
                const double x = in[r * columns + first(plane)];
                const double y = in[r * columns + second(plane)];
                expected[first(plane)] = x * std::cos(angle) - y * std::sin(angle);
                expected[second(plane)] = x * std::sin(angle) + y * std::cos(angle);
              }
              for (int64_t c = 0; c < columns; ++c) {
                EXPECT_NEAR(out[r * columns + c], 2 * expected[c], 20 * Unit<T>());
              }
            }
          }
        }
      }
    }
  });
}

TYPED_TEST(CpuKernelsTest, SoftmaxHidesLaterKeysAndThoseOutsideTheWindow) {
  using T = TypeParam;
  this->ForEachTable([](const CpuKernels<T>& kernels) {
    for (const int64_t first_query : {0, 3, 40}) {
      for (const int64_t window : {0, 1, 5}) {
        for (const double cap : {0.0, 2.0}) {
          for (const double slope : {0.0, 0.25}) {
            const int64_t rows = 20;
            const int64_t first_key =
                window > 0 ? std::max<int64_t>(0, first_query - window + 1) : 0;
            const int64_t columns = first_query + rows - first_key;
            const int64_t stride = columns + kGap;
            const auto logits = Random<T>(rows * stride, 3, 9);
            auto out = logits;
            kernels.softmax({.rows = rows,
                             .columns = columns,
                             .logits = out.data(),
                             .stride = stride,
                             .first_query = first_query,
                             .first_key = first_key,
                             .window = window,
                             .softcap = cap,
                             .alibi_slope = slope});
            for (int64_t r = 0; r < rows; ++r) {
              const int64_t query = first_query + r;
              const auto weight = [&](int64_t c) {
                const int64_t key = first_key + c;
                if (key > query || (window > 0 && key <= query - window)) return 0.0;
                double logit = logits[r * stride + c];
                if (cap > 0) logit = cap * std::tanh(logit / cap);
                return std::exp(logit + slope * static_cast<double>(key - query));
              };
              double total = 0;
              for (int64_t c = 0; c < columns; ++c) total += weight(c);
              for (int64_t c = 0; c < columns; ++c) {
                EXPECT_NEAR(out[r * stride + c], weight(c) / total, 100 * Unit<T>());
                if (weight(c) == 0) {
                  EXPECT_EQ(out[r * stride + c], 0);
                }
              }
              EXPECT_EQ(out[r * stride + columns], logits[r * stride + columns]);
            }
          }
        }
      }
    }
  });
}

TYPED_TEST(CpuKernelsTest, SoftmaxStandsLogitsOfAnySize) {
  using T = TypeParam;
  this->ForEachTable([](const CpuKernels<T>& kernels) {
    std::vector<T> logits = {T{3e4}, T{-3e4}, T{3e4}};
    kernels.softmax(
        {.rows = 1, .columns = 3, .logits = logits.data(), .stride = 3, .first_query = 2});
    EXPECT_NEAR(logits[0], 0.5, Unit<T>());
    EXPECT_EQ(logits[1], 0);
    EXPECT_NEAR(logits[2], 0.5, Unit<T>());
  });
}

TYPED_TEST(CpuKernelsTest, NotANumberIsNeverLost) {
  using T = TypeParam;
  this->ForEachTable([](const CpuKernels<T>& kernels) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    std::vector<T> row(20, T{1});
    row[13] = nan;
    std::vector<T> out(20);
    for (const ActivationKind kind : {ActivationKind::kGeluTanh, ActivationKind::kGeluErf,
                                      ActivationKind::kRelu, ActivationKind::kSilu}) {
      kernels.activate({.kind = kind,
                        .gelu_tanh_factor = 0.8,
                        .rows = 1,
                        .columns = 20,
                        .in = row.data(),
                        .in_stride = 20,
                        .out = out.data(),
                        .out_stride = 20});
      EXPECT_TRUE(std::isnan(out[13])) << static_cast<int>(kind);
      EXPECT_TRUE(std::isfinite(out[12])) << static_cast<int>(kind);
    }
    EXPECT_EQ(kernels.argmax(20, row.data()), -1);
    kernels.softmax(
        {.rows = 1, .columns = 20, .logits = row.data(), .stride = 20, .first_query = 19});
    for (const T weight : row) EXPECT_TRUE(std::isnan(weight));
  });
}

TYPED_TEST(CpuKernelsTest, ArgmaxTakesTheLowestOfEqualOnes) {
  using T = TypeParam;
  this->ForEachTable([](const CpuKernels<T>& kernels) {
    const std::vector<T> row = {1, 5, 2, 5, 0};
    EXPECT_EQ(kernels.argmax(5, row.data()), 1);
    const std::vector<T> infinite = {1, std::numeric_limits<T>::infinity(), 2};
    EXPECT_EQ(kernels.argmax(3, infinite.data()), -1);
  });
}

TYPED_TEST(CpuKernelsTest, SoftcapAndBiasWorkInPlace) {
  using T = TypeParam;
  this->ForEachTable([](const CpuKernels<T>& kernels) {
    for (const int64_t columns : kColumns) {
      const auto in = Random<T>(columns, 20, 10);
      const auto bias = Random<T>(columns, 1, 11);
      auto capped = in;
      kernels.softcap(1, columns, 30, capped.data(), columns);
      auto biased = in;
      kernels.add_bias(1, columns, bias.data(), biased.data(), columns);
      for (int64_t c = 0; c < columns; ++c) {
        EXPECT_NEAR(capped[c], 30 * std::tanh(in[c] / 30.0), 60 * Unit<T>());
        EXPECT_EQ(biased[c], in[c] + bias[c]);
      }
    }
  });
}

}  // namespace
}  // namespace hopscope::engine
