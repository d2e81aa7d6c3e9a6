#include "common/checkpoint/checkpoint.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/checkpoint/errors.h"
#include "common/checkpoint/families/family.h"
#include "common/checkpoint/folder.h"
#include "common/checkpoint/safetensors.h"
#include "common/status.h"

namespace hopscope::checkpoint {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;
constexpr int kRoles = static_cast<int>(WeightRole::kHeadBias) + 1;

// A tensor by name: where it lies, or that its type cannot be evaluated.
struct StoredTensor {
  const StoredDtype* dtype = nullptr;
  TensorView view;
};

using StoredTensors = std::map<std::string, StoredTensor>;

std::string FullName(absl::string_view pattern, absl::string_view prefix, int64_t layer) {
  std::string name = absl::StartsWith(pattern, "^") ? std::string(pattern.substr(1))
                                                    : absl::StrCat(prefix, pattern);
  if (layer >= 0) absl::StrReplaceAll({{"{i}", absl::StrCat(layer)}}, &name);
  return name;
}

bool IsPerLayer(absl::string_view pattern) { return absl::StrContains(pattern, "{i}"); }

std::string ShapeText(const std::vector<int64_t>& shape) {
  constexpr size_t kShown = 8;
  if (shape.size() <= kShown) return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
  return absl::StrCat("[", absl::StrJoin(shape.begin(), shape.begin() + kShown, ", "), ", ...]");
}

// The slice of a role's weight, without its tensor, and the shape that the stored tensor must have.
struct Placement {
  WeightSlice slice;
  std::vector<int64_t> stored_shape;
};

Placement Place(const TensorRule& rule, const Architecture& arch) {
  const RoleShape role = ShapeOf(rule.role, arch);
  Placement placement;
  WeightSlice& slice = placement.slice;
  slice.rows = role.rows;
  slice.columns = role.columns.value_or(1);
  slice.block = role.rows;
  slice.stride = role.rows;
  int64_t stored_rows = role.rows;
  if (rule.storage == Storage::kThirds || rule.storage == Storage::kThirdsConv1d ||
      rule.storage == Storage::kByHead) {
    const bool is_query = rule.role == WeightRole::kQuery || rule.role == WeightRole::kQueryBias;
    const bool is_key = rule.role == WeightRole::kKey || rule.role == WeightRole::kKeyBias;
    stored_rows = (arch.heads + 2 * arch.kv_heads) * arch.d_head;
    if (rule.storage == Storage::kByHead) {
      slice.first = (is_query ? 0 : is_key ? 1 : 2) * arch.d_head;
      slice.block = arch.d_head;
      slice.stride = 3 * arch.d_head;
    } else {
      slice.first = (is_query ? 0 : is_key ? arch.heads : arch.heads + arch.kv_heads) * arch.d_head;
    }
  }
  slice.transposed = rule.storage == Storage::kConv1d || rule.storage == Storage::kThirdsConv1d;
  if (!role.columns.has_value()) {
    placement.stored_shape = {stored_rows};
  } else if (slice.transposed) {
    placement.stored_shape = {*role.columns, stored_rows};
  } else {
    placement.stored_shape = {stored_rows, *role.columns};
  }
  return placement;
}

// The prefix under which the token embedding is found.
absl::StatusOr<absl::string_view> FindPrefix(const ModelDescription& model,
                                             const StoredTensors& tensors) {
  std::vector<std::string> tried;
  for (const absl::string_view prefix : model.prefixes) {
    std::string name = FullName(model.tensors.front().name, prefix, -1);
    if (tensors.contains(name)) return prefix;
    tried.push_back(std::move(name));
  }
  return BrokenCheckpoint("CHECKPOINT_MISSING_TENSOR",
                          absl::StrCat("the weights have no tensor ", absl::StrJoin(tried, " or ")),
                          {{"tensor", tried.front()}});
}

absl::StatusOr<WeightSlice> Bind(const TensorRule& rule, const std::string& name,
                                 const Architecture& arch, const StoredTensors& tensors) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    return BrokenCheckpoint("CHECKPOINT_MISSING_TENSOR",
                            absl::StrCat("the weights have no tensor ", name), {{"tensor", name}});
  }
  const StoredTensor& tensor = found->second;
  Placement placement = Place(rule, arch);
  if (tensor.view.shape != placement.stored_shape) {
    return BrokenCheckpoint(
        "CHECKPOINT_SHAPE",
        absl::StrCat("tensor ", name, " has shape ", ShapeText(tensor.view.shape),
                     ", but config.json asks for ", ShapeText(placement.stored_shape)),
        {{"tensor", name}});
  }
  if (!tensor.dtype->usable.has_value()) {
    return BrokenCheckpoint("CHECKPOINT_DTYPE",
                            absl::StrCat("tensor ", name, " has dtype ", tensor.dtype->name,
                                         "; F16, BF16, F32 and F64 can be evaluated"),
                            {{"tensor", name}, {"value", std::string(tensor.dtype->name)}});
  }
  placement.slice.tensor = tensor.view;
  return std::move(placement.slice);
}

}  // namespace

int64_t BytesPerElement(TensorDtype dtype) {
  switch (dtype) {
    case TensorDtype::kF16:
    case TensorDtype::kBF16:
      return 2;
    case TensorDtype::kF32:
      return 4;
    case TensorDtype::kF64:
      return 8;
  }
  return 0;
}

struct Checkpoint::Impl {
  Architecture architecture;
  std::vector<MappedFile> mappings;
  int64_t weight_bytes = 0;
  std::vector<std::string> files;
  std::vector<std::optional<WeightSlice>> weights;  // [kRoles, 1 + layers]

  size_t Index(WeightRole role, int64_t layer) const {
    if (layer < -1 || layer >= architecture.layers) return weights.size();
    return static_cast<size_t>(static_cast<int>(role) * (1 + architecture.layers) + 1 + layer);
  }

  absl::Status MapWeights(const CheckpointFolder& folder, StoredTensors* tensors);
  absl::Status BindWeights(const ModelDescription& model, const StoredTensors& tensors);
};

// Maps every weight file and lists the tensors of all of them.
absl::Status Checkpoint::Impl::MapWeights(const CheckpointFolder& folder, StoredTensors* tensors) {
  std::map<std::string, std::string> file_of_tensor;
  for (const std::string& file : folder.weight_files) {
    const std::string shown = folder.index.has_value() ? Quoted(file) : file;
    HOPSCOPE_ASSIGN_OR_RETURN(MappedFile mapping,
                              MappedFile::Open(absl::StrCat(folder.path, "/", file), shown));
    absl::StatusOr<SafetensorsHeader> header =
        ParseSafetensorsHeader(mapping.bytes(), mapping.bytes().size());
    if (!header.ok()) return common::Annotate(header.status(), shown);
    const absl::string_view data = mapping.bytes().substr(header->data_start);
    for (TensorEntry& entry : header->tensors) {
      StoredTensor tensor;
      tensor.dtype = entry.dtype;
      tensor.view.dtype = entry.dtype->usable.value_or(TensorDtype::kF32);
      tensor.view.shape = std::move(entry.shape);
      tensor.view.bytes = data.substr(entry.begin, entry.end - entry.begin);
      const auto [other, inserted] = file_of_tensor.emplace(entry.name, file);
      if (!inserted) {
        return BrokenCheckpoint("CHECKPOINT_DUPLICATE_TENSOR",
                                absl::StrCat("tensor ", Quoted(entry.name), " is in both ",
                                             Quoted(other->second), " and ", shown));
      }
      tensors->emplace(std::move(entry.name), std::move(tensor));
    }
    weight_bytes += static_cast<int64_t>(mapping.bytes().size());
    mappings.push_back(std::move(mapping));
  }
  if (!folder.index.has_value()) return absl::OkStatus();
  for (const auto& [tensor, file] : folder.index->file_of_tensor) {
    const auto found = file_of_tensor.find(tensor);
    if (found == file_of_tensor.end() || found->second != file) {
      return BrokenCheckpoint("CHECKPOINT_MISSING_TENSOR",
                              absl::StrCat("the index says that tensor ", Quoted(tensor), " is in ",
                                           Quoted(file), ", but it is not"));
    }
  }
  return absl::OkStatus();
}

// Finds the tensor of every role, and refuses those that have no meaning here.
absl::Status Checkpoint::Impl::BindWeights(const ModelDescription& model,
                                           const StoredTensors& tensors) {
  weights.resize(static_cast<size_t>(kRoles * (1 + architecture.layers)));
  HOPSCOPE_ASSIGN_OR_RETURN(const absl::string_view prefix, FindPrefix(model, tensors));
  std::set<std::string> known;
  for (const TensorRule& rule : model.tensors) {
    const int64_t first = IsPerLayer(rule.name) ? 0 : -1;
    const int64_t last = IsPerLayer(rule.name) ? architecture.layers - 1 : -1;
    for (int64_t layer = first; layer <= last; ++layer) {
      const std::string name = FullName(rule.name, prefix, layer);
      HOPSCOPE_ASSIGN_OR_RETURN(weights[Index(rule.role, layer)],
                                Bind(rule, name, architecture, tensors));
      known.insert(name);
    }
  }
  if (architecture.tied_head) {
    weights[Index(WeightRole::kHead, -1)] = weights[Index(WeightRole::kTokenEmbedding, -1)];
  }
  for (const absl::string_view ignored : model.ignored) {
    const int64_t first = IsPerLayer(ignored) ? 0 : -1;
    const int64_t last = IsPerLayer(ignored) ? architecture.layers - 1 : -1;
    for (int64_t layer = first; layer <= last; ++layer) {
      known.insert(FullName(ignored, prefix, layer));
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (known.contains(name)) continue;
    return BrokenCheckpoint(
        "CHECKPOINT_UNEXPECTED_TENSOR",
        absl::StrCat("the weights hold a tensor ", Quoted(name), ", which a ", architecture.family,
                     " model with this config.json does not have"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& path) {
  HOPSCOPE_ASSIGN_OR_RETURN(const CheckpointFolder folder, ReadCheckpointFolder(path));
  HOPSCOPE_ASSIGN_OR_RETURN(const std::string config,
                            ReadSmallFile(path, kConfigFile, kMaxConfigBytes, "CHECKPOINT_CONFIG"));
  HOPSCOPE_ASSIGN_OR_RETURN(const ModelDescription model, DescribeModel(config));
  auto impl = std::make_unique<Impl>();
  impl->architecture = model.architecture;
  StoredTensors tensors;
  HOPSCOPE_RETURN_IF_ERROR(impl->MapWeights(folder, &tensors));
  HOPSCOPE_RETURN_IF_ERROR(impl->BindWeights(model, tensors));
  for (const std::string& file : folder.digest_files()) {
    impl->files.push_back(absl::StrCat(path, "/", file));
  }
  return Checkpoint(std::move(impl));
}

Checkpoint::Checkpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

const Architecture& Checkpoint::architecture() const { return impl_->architecture; }

v1::ModelShape Checkpoint::shape() const {
  const Architecture& arch = impl_->architecture;
  v1::ModelShape shape;
  shape.set_layers(static_cast<int32_t>(arch.layers));
  shape.set_heads(static_cast<int32_t>(arch.heads));
  shape.set_kv_heads(static_cast<int32_t>(arch.kv_heads));
  shape.set_d_model(static_cast<int32_t>(arch.d_model));
  shape.set_d_head(static_cast<int32_t>(arch.d_head));
  shape.set_d_mlp(static_cast<int32_t>(arch.d_mlp));
  shape.set_vocab_size(static_cast<int32_t>(arch.vocab_size));
  shape.set_n_positions(static_cast<int32_t>(arch.n_positions));
  shape.set_learned_positions(arch.position == PositionKind::kLearned);
  return shape;
}

int64_t Checkpoint::weight_bytes() const { return impl_->weight_bytes; }

bool Checkpoint::Has(WeightRole role, int64_t layer) const {
  const size_t index = impl_->Index(role, layer);
  return index < impl_->weights.size() && impl_->weights[index].has_value();
}

const WeightSlice& Checkpoint::Weight(WeightRole role, int64_t layer) const {
  if (!Has(role, layer)) {
    std::fprintf(stderr, "Checkpoint::Weight: no weight of role %d in layer %lld\n",
                 static_cast<int>(role), static_cast<long long>(layer));
    std::abort();
  }
  return *impl_->weights[impl_->Index(role, layer)];
}

const std::vector<std::string>& Checkpoint::files() const { return impl_->files; }

}  // namespace hopscope::checkpoint
