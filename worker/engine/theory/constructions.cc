#include "worker/engine/theory/constructions.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace hopscope::engine {
namespace {

class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), values_(rows * columns, 0) {}

  double& at(int64_t row, int64_t column) { return values_[row * columns_ + column]; }

  // Column `column` of a query or key matrix: rho(angle)^-1 v in the two columns that turn.
  void SetTurned(int64_t column, double angle) {
    at(0, column) = std::sin(angle);
    at(1, column) = std::cos(angle);
  }

  ConstructedTensor Named(std::string name) const {
    return {.name = std::move(name), .shape = {rows_, columns_}, .values = values_};
  }

 private:
  const int64_t rows_;
  const int64_t columns_;
  std::vector<double> values_;
};

Matrix Identity(int64_t size) {
  Matrix matrix(size, size);
  for (int64_t i = 0; i < size; ++i) matrix.at(i, i) = 1;
  return matrix;
}

// What the two have in common. `width` is that of the stream and of the head.
struct Parts {
  Matrix embedding;
  Matrix query;
  Matrix key;
  Matrix value;
  Matrix head;
  bool residual = false;
};

ConstructedModel Assemble(const ConstructionOptions& options, int64_t vocab_size, int64_t width,
                          const Parts& parts) {
  const nlohmann::ordered_json config = {
      {"model_type", "hopscope"},
      {"vocab_size", vocab_size},
      {"layers", options.layers},
      {"heads", 1},
      {"d_model", width},
      {"d_head", width},
      {"positions", {{"type", "rotary_interleaved"}, {"angles", {options.theta}}}},
      {"norm", "none"},
      {"residual", parts.residual},
      {"attention_scale", options.beta},
      {"tied_head", false}};
  ConstructedModel model{.config = config.dump(2) + "\n"};
  model.tensors.push_back(parts.embedding.Named("embedding.weight"));
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const auto add = [&](const Matrix& matrix, const char* name) {
      model.tensors.push_back(matrix.Named(absl::StrCat("layers.", layer, ".", name, ".weight")));
    };
    add(parts.query, "query");
    add(parts.key, "key");
    add(parts.value, "value");
    add(Identity(width), "attention_out");
  }
  model.tensors.push_back(parts.head.Named("head.weight"));
  return model;
}

// The one-hot part of embedding and head: token id t, 1 or more, is coordinate t - 1.
Matrix OneHot(int64_t vocab_size, int64_t width) {
  Matrix matrix(vocab_size, width);
  for (int64_t token = 1; token < vocab_size; ++token) matrix.at(token, token - 1) = 1;
  return matrix;
}

}  // namespace

ConstructedModel ConstructIndex(const ConstructionOptions& options) {
  const int64_t vocab_size = 1 + options.integers + options.letters;
  const int64_t constant = vocab_size - 1;
  const int64_t width = vocab_size;
  Parts parts{.embedding = OneHot(vocab_size, width),
              .query = Matrix(width, width),
              .key = Matrix(width, width),
              .value = Matrix(width, width),
              .head = OneHot(vocab_size, width),
              .residual = true};
  for (int64_t token = 0; token < vocab_size; ++token) parts.embedding.at(token, constant) = 1;
  parts.key.SetTurned(constant, 0);
  for (int64_t integer = 1; integer <= options.integers; ++integer) {
    parts.query.SetTurned(integer - 1, static_cast<double>(integer) * options.theta);
  }
  for (int64_t letter = 0; letter < options.letters; ++letter) {
    const int64_t coordinate = options.integers + letter;
    parts.query.SetTurned(coordinate, 0);
    parts.value.at(coordinate, coordinate) = 2;
  }
  return Assemble(options, vocab_size, width, parts);
}

ConstructedModel ConstructRetrieval(const ConstructionOptions& options) {
  const int64_t with_integer = options.letters * options.integers;
  const int64_t width = with_integer + options.letters * options.letters;
  const int64_t vocab_size = 1 + width;
  const double omega = 2 * std::numbers::pi / static_cast<double>(options.letters);
  Parts parts{.embedding = OneHot(vocab_size, width),
              .query = Matrix(width, width),
              .key = Matrix(width, width),
              .value = Identity(width),
              .head = OneHot(vocab_size, width),
              .residual = false};
  for (int64_t pair = 0; pair < width; ++pair) {
    const bool is_answer = pair < with_integer;
    const int64_t first =
        is_answer ? pair / options.integers : (pair - with_integer) / options.letters;
    const int64_t wanted = is_answer ? first : (pair - with_integer) % options.letters;
    parts.key.SetTurned(pair, static_cast<double>(1 + first) * omega);
    parts.query.SetTurned(pair, static_cast<double>(1 + wanted) * omega);
  }
  return Assemble(options, vocab_size, width, parts);
}

}  // namespace hopscope::engine
