// Two transformers whose weights are written down rather than learned (arXiv 2605.31558, sec. 3 and
// App. F): T_Index looks up the token that lies as many slots back as its token says, T_Retrieval
// the token whose first letter its token names. A layer makes one hop, so that a stack of N solves
// N hops of the tasks number and letter.
//
// Both are models of the family "hopscope" (docs/hopscope_model.md) with one head of full width, no
// norm and no MLP; the first two columns of the head turn by theta a slot, and beta is the scale of
// attention. With v = (0, 1) and rho the rotation by an angle:
//
//   T_Index. Embedding: one-hot, and a constant 1. Key: v for every token. Query: v for a letter,
//   rho(theta)^-i v for the integer i, so that the logit of the key t slots back is beta cos((t -
//   i) theta). Value: twice the letters' coordinates. x += attention. A letter reads itself. theta
//   / (2 pi) must be irrational (as it is for any rational theta but 0): the paper asks it of
//   theta, but pi / 4 takes slots 8 apart for one. In a stack an integer that has found its letter
//   goes on looking, so that a stack of N solves sequences of N hops; what softmax leaks to other
//   tokens grows from layer to layer, and beta must be large (1,600 for 4 hops at theta 0.8).
//
//   T_Retrieval. Embedding: one-hot. omega = 2 pi / letters. Key: rho(omega)^-a v for a token whose
//   first letter is number a. Query: the same of its second letter, or of its first where the
//   second is an integer. The logit of the key t slots back is beta cos((a - b) omega + t theta).
//   Value: the token. x = attention. It wants a match, and all matches to be the same token; theta
//   may be 0 and must be below omega / (2 n) for n tokens. A stack of N solves up to N hops.
//
// Pure functions; thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_THEORY_CONSTRUCTIONS_H_
#define HOPSCOPE_WORKER_ENGINE_THEORY_CONSTRUCTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace hopscope::engine {

struct ConstructedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<double> values;
};

// A checkpoint's content.
struct ConstructedModel {
  std::string config;  // config.json
  std::vector<ConstructedTensor> tensors;
};

// Alphabets are the tasks' unless told otherwise: token ids as in tasks/number.h and
// tasks/letter.h, with the padding id 0.
struct ConstructionOptions {
  int64_t layers = 4;
  double theta = 0;
  double beta = 0;
  int64_t letters = 0;
  int64_t integers = 0;
};

ConstructedModel ConstructIndex(const ConstructionOptions& options);
ConstructedModel ConstructRetrieval(const ConstructionOptions& options);

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_THEORY_CONSTRUCTIONS_H_
