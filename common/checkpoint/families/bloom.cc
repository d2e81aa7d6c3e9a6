// BLOOM: ALiBi, a LayerNorm right after the embedding, query, key and value fused head by head.
#include "common/checkpoint/families/alibi.h"
#include "common/checkpoint/families/family.h"

namespace hopscope::checkpoint {
namespace {

constexpr TensorRule kTensors[] = {
    {WeightRole::kTokenEmbedding, "word_embeddings.weight"},
    {WeightRole::kEmbeddingNormGain, "word_embeddings_layernorm.weight"},
    {WeightRole::kEmbeddingNormBias, "word_embeddings_layernorm.bias"},
    {WeightRole::kNorm1Gain, "h.{i}.input_layernorm.weight"},
    {WeightRole::kNorm1Bias, "h.{i}.input_layernorm.bias"},
    {WeightRole::kQuery, "h.{i}.self_attention.query_key_value.weight", Storage::kByHead},
    {WeightRole::kQueryBias, "h.{i}.self_attention.query_key_value.bias", Storage::kByHead},
    {WeightRole::kKey, "h.{i}.self_attention.query_key_value.weight", Storage::kByHead},
    {WeightRole::kKeyBias, "h.{i}.self_attention.query_key_value.bias", Storage::kByHead},
    {WeightRole::kValue, "h.{i}.self_attention.query_key_value.weight", Storage::kByHead},
    {WeightRole::kValueBias, "h.{i}.self_attention.query_key_value.bias", Storage::kByHead},
    {WeightRole::kAttentionOut, "h.{i}.self_attention.dense.weight"},
    {WeightRole::kAttentionOutBias, "h.{i}.self_attention.dense.bias"},
    {WeightRole::kNorm2Gain, "h.{i}.post_attention_layernorm.weight"},
    {WeightRole::kNorm2Bias, "h.{i}.post_attention_layernorm.bias"},
    {WeightRole::kMlpUp, "h.{i}.mlp.dense_h_to_4h.weight"},
    {WeightRole::kMlpUpBias, "h.{i}.mlp.dense_h_to_4h.bias"},
    {WeightRole::kMlpDown, "h.{i}.mlp.dense_4h_to_h.weight"},
    {WeightRole::kMlpDownBias, "h.{i}.mlp.dense_4h_to_h.bias"},
    {WeightRole::kFinalNormGain, "ln_f.weight"},
    {WeightRole::kFinalNormBias, "ln_f.bias"},
};

}  // namespace

void ReadBloom(ConfigReader& config, ModelDescription& model) {
  Architecture& arch = model.architecture;
  ReadSizes(config, {"n_layer", "num_hidden_layers"}, {"n_head", "num_attention_heads"},
            {"n_embed", "hidden_size"}, arch);
  arch.d_mlp = 4 * arch.d_model;
  config.Only("n_inner", arch.d_mlp, "the hidden layer of the MLP is always 4 times as wide");
  arch.n_positions = config.IntegerOr({"seq_length"}, 1, kMaxPositions, 0);
  arch.position = PositionKind::kAlibi;
  arch.alibi_slopes = BloomSlopes(arch.heads);
  arch.embedding_norm = true;
  arch.norm_epsilon = config.NumberOr({"layer_norm_epsilon"}, 0, 1, 1e-5);
  arch.activation = Activation::kGeluTanh;
  arch.gelu_tanh_factor = 0.79788456;  // the digits in transformers' modeling_bloom.py
  config.Only("apply_residual_connection_post_layernorm", false,
              "a residual stream that starts behind the norm is not implemented");
  SetPlainAttention(arch);

  model.prefixes = {"transformer.", ""};
  model.Add(kTensors);
  ReadHead(config, /*tied_by_default=*/true, "^lm_head.weight", model);
}

}  // namespace hopscope::checkpoint
