#include "client/spec_yaml.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/yaml_fields.h"
#include "common/status.h"

namespace hopscope::client {
namespace {

using Kind = YamlNode::Kind;

// Walks a tree and fills a spec in; the first error ends it.
class SpecReader : private YamlFields {
 public:
  explicit SpecReader(ParsedSpec* parsed)
      : YamlFields(parsed->file, &parsed->marks),
        spec_(parsed->spec),
        tokens_files_(parsed->tokens_files) {}

  absl::Status ReadSpec(const YamlNode& root);

 private:
  Field Checkpoints(google::protobuf::RepeatedPtrField<std::string>* checkpoints);
  Field Scorers(google::protobuf::RepeatedPtrField<v1::ScorerSpec>* scorers);

  absl::Status ReadTask(const YamlNode& node, const std::string& path, v1::TaskSpec* task);
  absl::Status ReadScorer(const YamlNode& node, const std::string& path, v1::ScorerSpec* scorer);
  absl::Status ReadDtype(const YamlNode& node, const std::string& path);
  absl::Status ReadLabels(const YamlNode& node, const std::string& path);
  absl::Status ReadSeeds(const YamlNode& node, const std::string& path);

  v1::EvalJobSpec& spec_;
  std::map<int, std::string>& tokens_files_;
};

YamlFields::Field SpecReader::Checkpoints(
    google::protobuf::RepeatedPtrField<std::string>* checkpoints) {
  return {"checkpoints", [this, checkpoints](const YamlNode& node, const std::string& path) {
            return ReadList(node, path, "a list of checkpoints",
                            [this, checkpoints](const YamlNode& item,
                                                const std::string& item_path) -> absl::Status {
                              HOPSCOPE_ASSIGN_OR_RETURN(
                                  std::string name,
                                  ReadString(item, item_path, "the name of a checkpoint"));
                              checkpoints->Add(std::move(name));
                              return absl::OkStatus();
                            });
          }};
}

YamlFields::Field SpecReader::Scorers(google::protobuf::RepeatedPtrField<v1::ScorerSpec>* scorers) {
  return {"scorers", [this, scorers](const YamlNode& node, const std::string& path) {
            return ReadList(node, path, "a list of scorers",
                            [this, scorers](const YamlNode& item, const std::string& item_path) {
                              return ReadScorer(item, item_path, scorers->Add());
                            });
          }};
}

absl::Status SpecReader::ReadScorer(const YamlNode& node, const std::string& path,
                                    v1::ScorerSpec* scorer) {
  if (node.kind == Kind::kScalar) {
    scorer->set_name(node.text);
    Mark(absl::StrCat(path, ".name"), node.mark);
    return absl::OkStatus();
  }
  if (node.kind != Kind::kMap || node.entries.size() != 1) {
    return WrongType(node, path, "a scorer's name, or a map of one key, NAME: {PARAMETER: VALUE}");
  }
  const YamlNode::Entry& entry = node.entries[0];
  scorer->set_name(entry.key);
  Mark(absl::StrCat(path, ".name"), entry.key_mark);
  const std::string params_path = absl::StrCat(path, ".params");
  Mark(params_path, entry.value->mark);
  const bool is_empty_map = entry.value->kind == Kind::kMap && entry.value->entries.empty();
  if (entry.value->kind == Kind::kNull || is_empty_map) return absl::OkStatus();
  return ReadStruct(*entry.value, params_path, scorer->mutable_params());
}

absl::Status SpecReader::ReadTask(const YamlNode& node, const std::string& path,
                                  v1::TaskSpec* task) {
  const auto int32_list = [this](const YamlNode& list, const std::string& list_path,
                                 google::protobuf::RepeatedField<int32_t>* values) {
    return ReadList(
        list, list_path, "a list of whole numbers",
        [this, values](const YamlNode& item, const std::string& item_path) -> absl::Status {
          HOPSCOPE_ASSIGN_OR_RETURN(
              const int64_t value, ReadInteger(item, item_path, std::numeric_limits<int32_t>::min(),
                                               std::numeric_limits<int32_t>::max()));
          values->Add(static_cast<int32_t>(value));
          return absl::OkStatus();
        });
  };
  const std::vector<Field> fields = {
      String("task", "the name of a task",
             [task](std::string value) { task->set_task(std::move(value)); }),
      {"hops",
       [&](const YamlNode& list, const std::string& list_path) {
         return int32_list(list, list_path, task->mutable_hops());
       }},
      {"added_tokens",
       [&](const YamlNode& list, const std::string& list_path) {
         return int32_list(list, list_path, task->mutable_added_tokens());
       }},
      Int64("samples", [task](int64_t value) { task->set_samples(value); }),
      Checkpoints(task->mutable_checkpoints()),
      Scorers(task->mutable_scorers()),
      {"window",
       [&](const YamlNode& map, const std::string& map_path) {
         v1::Window* window = task->mutable_window();
         return ReadMap(
             map, map_path,
             {Int32("target", [window](int32_t value) { window->set_target(value); }),
              Int32("pre_target", [window](int32_t value) { window->set_pre_target(value); })});
       }},
      String("padding", "the name of a kind of padding",
             [task](std::string value) { task->set_padding(std::move(value)); }),
      String("tokens_digest", "a digest, sha256:...",
             [task](std::string value) { task->set_tokens_digest(std::move(value)); }),
      String(
          "tokens_file", "the path of a tokens file",
          [this](std::string value) { tokens_files_[spec_.tasks_size() - 1] = std::move(value); }),
  };
  HOPSCOPE_RETURN_IF_ERROR(ReadMap(node, path, fields));
  if (task->task().empty()) {
    return Error(node, path, "MISSING_KEY", "the key \"task\" is missing: which task is it?",
                 "task: NAME");
  }
  if (tokens_files_.contains(spec_.tasks_size() - 1) && !task->tokens_digest().empty()) {
    return Error(node, path, "CONFLICTING_KEYS",
                 "both tokens_file and tokens_digest are there; one of them is enough",
                 "tokens_file or tokens_digest");
  }
  return absl::OkStatus();
}

absl::Status SpecReader::ReadDtype(const YamlNode& node, const std::string& path) {
  static const std::vector<std::pair<std::string, v1::Dtype>>& dtypes =
      *new std::vector<std::pair<std::string, v1::Dtype>>{{"float32", v1::DTYPE_FLOAT32},
                                                          {"float64", v1::DTYPE_FLOAT64},
                                                          {"bfloat16", v1::DTYPE_BFLOAT16},
                                                          {"float16", v1::DTYPE_FLOAT16}};
  for (const auto& [name, dtype] : dtypes) {
    if (node.kind == Kind::kScalar && node.text == name) {
      spec_.set_dtype(dtype);
      return absl::OkStatus();
    }
  }
  return WrongType(node, path, "one of float32, float64, bfloat16, float16");
}

absl::Status SpecReader::ReadLabels(const YamlNode& node, const std::string& path) {
  if (node.kind != Kind::kMap) return WrongType(node, path, "a map of texts");
  for (const YamlNode::Entry& entry : node.entries) {
    const std::string label_path = absl::StrCat(path, ".", entry.key);
    Mark(label_path, entry.value->mark);
    HOPSCOPE_ASSIGN_OR_RETURN((*spec_.mutable_labels())[entry.key],
                              ReadString(*entry.value, label_path, "a text"));
  }
  return absl::OkStatus();
}

absl::Status SpecReader::ReadSeeds(const YamlNode& node, const std::string& path) {
  if (spec_.seeds_size() > 0) {
    return Error(node, path, "CONFLICTING_KEYS",
                 "both seed and seeds are there; one of them is enough", "seed or seeds");
  }
  return ReadList(node, "spec.seeds", "a list of whole numbers",
                  [this](const YamlNode& item, const std::string& item_path) -> absl::Status {
                    HOPSCOPE_ASSIGN_OR_RETURN(
                        const int64_t seed,
                        ReadInteger(item, item_path, std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max()));
                    spec_.add_seeds(seed);
                    return absl::OkStatus();
                  });
}

absl::Status SpecReader::ReadSpec(const YamlNode& root) {
  Mark("spec", root.mark);
  const auto seeds = [this](const YamlNode& node, const std::string& path) {
    return ReadSeeds(node, path);
  };
  const std::vector<Field> fields = {
      String("name", "a text", [this](std::string value) { spec_.set_name(std::move(value)); }),
      {"tasks",
       [this](const YamlNode& node, const std::string& path) {
         return ReadList(node, path, "a list of tasks",
                         [this](const YamlNode& item, const std::string& at) {
                           return ReadTask(item, at, spec_.add_tasks());
                         });
       }},
      Scorers(spec_.mutable_scorers()),
      {"seeds", seeds},
      {"seed",
       [this](const YamlNode& node, const std::string& path) -> absl::Status {
         if (node.kind == Kind::kList)
           return WrongType(node, path, "a whole number (seeds takes a list)");
         return ReadSeeds(node, path);
       }},
      Checkpoints(spec_.mutable_checkpoints()),
      {"labels",
       [this](const YamlNode& node, const std::string& path) { return ReadLabels(node, path); }},
      {"dtype",
       [this](const YamlNode& node, const std::string& path) { return ReadDtype(node, path); }},
      Int32("priority", [this](int32_t value) { spec_.set_priority(value); }),
      String("tenant", "a text", [this](std::string value) { spec_.set_tenant(std::move(value)); }),
      Bool("fail_fast", [this](bool value) { spec_.set_fail_fast(value); }),
      Double("deadline_s", [this](double value) { spec_.set_deadline_s(value); }),
      Bool("mixed_workers", [this](bool value) { spec_.set_mixed_workers(value); }),
      Bool("no_cache", [this](bool value) { spec_.set_no_cache(value); }),
  };
  return ReadMap(root, "spec", fields);
}

}  // namespace

absl::StatusOr<ParsedSpec> ParseSpecYaml(absl::string_view text, absl::string_view file) {
  HOPSCOPE_ASSIGN_OR_RETURN(const std::shared_ptr<const YamlNode> root, ParseYaml(text, file));
  ParsedSpec parsed;
  parsed.file = std::string(file);
  HOPSCOPE_RETURN_IF_ERROR(SpecReader(&parsed).ReadSpec(*root));
  return parsed;
}

}  // namespace hopscope::client
