#include "worker/engine/scorers/plane_logits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace hopscope::engine {
namespace {

using checkpoint::Architecture;
using checkpoint::PositionKind;

// One head on some slots: an architecture, its table, and random contents.
struct Case {
  explicit Case(std::mt19937_64* random) {
    const auto below = [&](int64_t n) {
      return std::uniform_int_distribution<int64_t>(0, n - 1)(*random);
    };
    std::normal_distribution<double> normal(0, 2);
    architecture.d_head = 2 * (1 + below(8));
    architecture.rotary_dim = 2 * (1 + below(architecture.d_head / 2));
    architecture.position =
        below(2) == 0 ? PositionKind::kRotaryInterleaved : PositionKind::kRotaryHalfSplit;
    for (int64_t t = 0; t < architecture.rotary_dim / 2; ++t) {
      architecture.rotary_angles.push_back(std::pow(
          10000, -2.0 * static_cast<double>(t) / static_cast<double>(architecture.rotary_dim)));
    }
    slots = 1 + below(12);
    for (int64_t i = 0; i < slots * architecture.d_head; ++i) keys.push_back(normal(*random));
    for (int64_t i = 0; i < architecture.d_head; ++i) query.push_back(normal(*random));
  }

  double* key(int64_t slot) { return keys.data() + slot * architecture.d_head; }

  PlaneLogits Compute() {
    const RotaryTable<double> table(architecture, slots);
    PlaneLogits planes(&architecture);
    planes.Start(table, slots, query.data(), keys.data(), architecture.d_head);
    return planes;
  }

  Architecture architecture;
  int64_t slots = 0;
  std::vector<double> keys;  // [slots, d_head]
  std::vector<double> query;
};

// k_j^T R^(n-j) q_n by its definition: both turned to where they stand.
double Logit(Case& c, int64_t slot) {
  const auto turned = [&](const double* x, int64_t position) {
    std::vector<double> out(x, x + c.architecture.d_head);
    for (int64_t t = 0; t < c.architecture.rotary_dim / 2; ++t) {
      const auto [a, b] = PlaneColumns(c.architecture, t);
      const double angle = static_cast<double>(position) * c.architecture.rotary_angles[t];
      out[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
      out[b] = x[a] * std::sin(angle) + x[b] * std::cos(angle);
    }
    return out;
  };
  const std::vector<double> query = turned(c.query.data(), c.slots - 1);
  const std::vector<double> key = turned(c.key(slot), slot);
  double sum = 0;
  for (size_t i = 0; i < key.size(); ++i) sum += query[i] * key[i];
  return sum;
}

TEST(PlaneLogitsTest, PlanesAndTheRestMakeUpTheLogit) {
  std::mt19937_64 random(1);
  for (int repeat = 0; repeat < 3000; ++repeat) {
    Case c(&random);
    const PlaneLogits planes = c.Compute();
    ASSERT_EQ(planes.planes(), c.architecture.rotary_dim / 2);
    for (int64_t slot = 0; slot < c.slots; ++slot) {
      double sum = planes.rest()[slot];
      for (int64_t t = 0; t < planes.planes(); ++t) sum += planes.logits(t)[slot];
      const double expected = Logit(c, slot);
      ASSERT_NEAR(sum, expected, 1e-10 * (1 + std::abs(expected))) << "case " << repeat;
      ASSERT_NEAR(planes.total()[slot], expected, 1e-10 * (1 + std::abs(expected)));
    }
    if (c.architecture.rotary_dim == c.architecture.d_head) {
      for (const double rest : planes.rest()) ASSERT_EQ(rest, 0);
    }
  }
}

// Turning both columns of a plane of all queries and keys by one angle, and making queries larger
// by what keys are made smaller by, changes nothing that a head does.
TEST(PlaneLogitsTest, DoNotDependOnTheBasisOfAPlane) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> angle(-4, 4);
  for (int repeat = 0; repeat < 3000; ++repeat) {
    Case c(&random);
    const PlaneLogits before = c.Compute();
    const double factor = std::exp(angle(random));
    for (int64_t t = 0; t < before.planes(); ++t) {
      const auto [a, b] = PlaneColumns(c.architecture, t);
      const double phi = angle(random);
      const auto turn = [&, x = a, y = b](double* row) {
        const double first = row[x];
        row[x] = first * std::cos(phi) - row[y] * std::sin(phi);
        row[y] = first * std::sin(phi) + row[y] * std::cos(phi);
      };
      turn(c.query.data());
      for (int64_t slot = 0; slot < c.slots; ++slot) turn(c.key(slot));
    }
    for (double& value : c.query) value *= factor;
    for (double& value : c.keys) value /= factor;
    const PlaneLogits after = c.Compute();
    for (int64_t t = 0; t < before.planes(); ++t) {
      for (int64_t slot = 0; slot < c.slots; ++slot) {
        ASSERT_NEAR(after.logits(t)[slot], before.logits(t)[slot],
                    1e-10 * (1 + std::abs(before.logits(t)[slot])));
      }
    }
  }
}

TEST(PlaneLogitsTest, MovedContentsGetTheLogitOfTheirNewSlot) {
  std::mt19937_64 random(3);
  for (int repeat = 0; repeat < 500; ++repeat) {
    Case c(&random);
    if (c.slots < 3) continue;
    const PlaneLogits planes = c.Compute();
    const int64_t keys = c.slots - 1;
    std::vector<int32_t> order;
    for (int32_t i = 0; i < keys; ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random);
    for (int64_t t = 0; t < planes.planes(); ++t) {
      MovedPlaneLogits moved;
      moved.Start(planes.plane(t), 0.5);
      moved.SetOrder(order.data(), keys);
      std::vector<double> forward(keys * keys);
      std::vector<double> backward(keys * keys);
      moved.Compute(0, keys, 0, keys, forward.data(), keys);
      moved.ComputeTransposed(0, keys, 0, keys, backward.data(), keys);
      for (int64_t content = 0; content < keys; ++content) {
        for (int64_t slot = 0; slot < keys; ++slot) {
          Case swapped = c;
          std::copy_n(c.key(order[content]), c.architecture.d_head, swapped.key(order[slot]));
          const double expected = 0.5 * swapped.Compute().logits(t)[order[slot]];
          ASSERT_NEAR(forward[content * keys + slot], expected, 1e-11);
          ASSERT_EQ(backward[slot * keys + content], forward[content * keys + slot]);
          double along = 0;
          moved.ComputeAlong(order[content], order[slot], 1, &along);
          ASSERT_NEAR(along, expected, 1e-11);
        }
      }
    }
  }
}

TEST(PlaneLogitsTest, ModelsThatDoNotRotateHaveNoPlanes) {
  Architecture architecture;
  architecture.position = PositionKind::kAlibi;
  EXPECT_EQ(RotaryPlanes(architecture), 0);
  architecture.position = PositionKind::kRotaryHalfSplit;
  architecture.rotary_dim = 16;
  EXPECT_EQ(RotaryPlanes(architecture), 8);
}

}  // namespace
}  // namespace hopscope::engine
