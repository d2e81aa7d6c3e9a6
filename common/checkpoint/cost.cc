#include "common/checkpoint/cost.h"

namespace hopscope::checkpoint {
namespace {

// Elements of one layer's matrices, by what the last layer needs for every position and what for
// the query alone.
struct LayerElements {
  double key_value = 0;
  double query_and_mlp = 0;
};

LayerElements CountLayer(const Architecture& arch) {
  const auto d_model = static_cast<double>(arch.d_model);
  const double query = static_cast<double>(arch.heads) * static_cast<double>(arch.d_head);
  const double key = static_cast<double>(arch.kv_heads) * static_cast<double>(arch.d_head);
  const double mlp_matrices = arch.gated_mlp ? 3 : 2;
  return {.key_value = 2 * d_model * key,
          .query_and_mlp =
              2 * d_model * query + mlp_matrices * d_model * static_cast<double>(arch.d_mlp)};
}

}  // namespace

double ForwardFlops(const Architecture& arch, int64_t tokens, Outputs outputs,
                    int64_t first_layer) {
  const auto all = static_cast<double>(tokens);
  const double queried = outputs == Outputs::kLastPosition ? 1 : all;
  const LayerElements layer = CountLayer(arch);
  const double pair = 4 * static_cast<double>(arch.heads) * static_cast<double>(arch.d_head);
  // A layer whose output is needed for `queries` positions.
  const auto layer_flops = [&](double queries) {
    return 2 * (layer.key_value * all + layer.query_and_mlp * queries) + pair * queries * all;
  };
  const double rows = outputs == Outputs::kEveryPosition ? all : 1;
  const double head =
      2 * static_cast<double>(arch.d_model) * static_cast<double>(arch.vocab_size) * rows;
  return static_cast<double>(arch.layers - 1 - first_layer) * layer_flops(all) +
         layer_flops(queried) + head;
}

double WeightBytes(const Architecture& arch, int64_t bytes_per_element) {
  const LayerElements layer = CountLayer(arch);
  const auto d_model = static_cast<double>(arch.d_model);
  const double vocabulary = d_model * static_cast<double>(arch.vocab_size);
  double elements = static_cast<double>(arch.layers) * (layer.key_value + layer.query_and_mlp);
  elements += arch.tied_head ? vocabulary : 2 * vocabulary;
  if (arch.position == PositionKind::kLearned) {
    elements += d_model * static_cast<double>(arch.n_positions + arch.learned_offset);
  }
  return elements * static_cast<double>(bytes_per_element);
}

}  // namespace hopscope::checkpoint
