// Model families: for each model_type of config.json, one page (gptj.cc, llama.cc, ...) that turns
// the config into an Architecture and says where the tensors lie. families.cc lists the pages;
// README.md says how to add one.
//
// Plain data and pure functions; thread-safe.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_FAMILY_H_
#define HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_FAMILY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint/architecture.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/families/config_reader.h"

namespace hopscope::checkpoint {

// How a role's matrix [rows, columns] lies in its stored tensor; checkpoint.h gives the element's
// place.
enum class Storage {
  kLinear,        // [rows, columns]: nn.Linear, embeddings; [rows] for gains and biases
  kConv1d,        // [columns, rows]
  kThirds,        // query, key and value rows one after another: [q + k + v, columns]
  kThirdsConv1d,  // the same transposed: [columns, q + k + v]
  kByHead,  // for each head its d_head query, key and value rows: [heads * 3 * d_head, columns]
};

// Where one role's weight is stored. In `name`, {i} stands for the layer (a role without it has
// layer -1), and the family's prefix comes in front unless the name begins with '^'.
struct TensorRule {
  WeightRole role;
  absl::string_view name;
  Storage storage = Storage::kLinear;
};

// What a config.json says: sizes, options, and the tensors that belong to them.
struct ModelDescription {
  Architecture architecture;
  // Tried in order; the first under which the token embedding is found holds for every tensor.
  std::vector<absl::string_view> prefixes;
  // The token embedding first. Every one of them must be there.
  std::vector<TensorRule> tensors;
  // Names (as in TensorRule) of tensors that may be there and mean nothing: masks and other
  // buffers, or the copy of a tied head. Anything else that is not in `tensors` is refused, since
  // it would change the model.
  std::vector<absl::string_view> ignored;

  void Add(absl::Span<const TensorRule> rules) {
    tensors.insert(tensors.end(), rules.begin(), rules.end());
  }
};

struct Family {
  absl::string_view model_type;
  // Fills in everything but architecture.family and special_tokens. What is wrong goes to the
  // reader's status.
  void (*read)(ConfigReader& config, ModelDescription& model);
};

// All families, in the order of their names.
absl::Span<const Family> Families();

// Reads a config.json of any family, as transformers 5 writes it or as older files on the hub look.
// FAILED_PRECONDITION: CHECKPOINT_CONFIG_NOT_JSON, CHECKPOINT_CONFIG,
// CHECKPOINT_UNSUPPORTED_FAMILY, CHECKPOINT_UNSUPPORTED_OPTION.
absl::StatusOr<ModelDescription> DescribeModel(absl::string_view config_text);

// Rows and columns of a role's matrix; a vector has no columns.
struct RoleShape {
  int64_t rows = 0;
  std::optional<int64_t> columns;
};
RoleShape ShapeOf(WeightRole role, const Architecture& architecture);

// Sizes beyond which a config is refused: far above any model, and small enough that no product of
// them overflows.
inline constexpr int64_t kMaxLayers = 1024;
inline constexpr int64_t kMaxHeads = 1024;
inline constexpr int64_t kMaxHeadWidth = 1 << 14;
inline constexpr int64_t kMaxWidth = 1 << 20;
inline constexpr int64_t kMaxMlpWidth = 1 << 22;
inline constexpr int64_t kMaxVocabulary = 1 << 24;
inline constexpr int64_t kMaxPositions = 1 << 30;

// Sets layers, heads, kv_heads = heads, d_model, d_head = d_model / heads and vocab_size from the
// given keys; heads must divide d_model.
void ReadSizes(ConfigReader& config, ConfigReader::Keys layers, ConfigReader::Keys heads,
               ConfigReader::Keys d_model, Architecture& architecture);

// Every layer alike: the scale (1/sqrt(d_head) unless given) and no window.
void SetPlainAttention(Architecture& architecture);
void SetPlainAttention(Architecture& architecture, double scale);

// Adds the untied head under `name`, or ignores a stored copy of a tied one.
void ReadHead(ConfigReader& config, bool tied_by_default, absl::string_view name,
              ModelDescription& model);

// The pages.
void ReadBloom(ConfigReader& config, ModelDescription& model);
void ReadGemma2(ConfigReader& config, ModelDescription& model);
void ReadGpt2(ConfigReader& config, ModelDescription& model);
void ReadGptNeo(ConfigReader& config, ModelDescription& model);
void ReadGptNeoX(ConfigReader& config, ModelDescription& model);
void ReadGptJ(ConfigReader& config, ModelDescription& model);
void ReadHopscope(ConfigReader& config, ModelDescription& model);
void ReadLlama(ConfigReader& config, ModelDescription& model);
void ReadMistral(ConfigReader& config, ModelDescription& model);
void ReadMpt(ConfigReader& config, ModelDescription& model);
void ReadOpt(ConfigReader& config, ModelDescription& model);
void ReadQwen2(ConfigReader& config, ModelDescription& model);

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_FAMILY_H_
