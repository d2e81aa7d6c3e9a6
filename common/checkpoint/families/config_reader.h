// Typed, range-checked access to a config.json, for the families' pages.
//
// The first thing that is wrong is kept; from then on every getter returns the smallest allowed or
// the fallback value, so that a page reads like a list and asks status() where it matters. A key
// that is null counts as absent. Where a getter takes several keys (the names that one setting has
// had), those present must agree.
//
// Errors, FAILED_PRECONDITION with metadata "field", "value" and "allowed": CHECKPOINT_CONFIG (a
// key is missing, of the wrong type or out of range, or two contradict each other),
// CHECKPOINT_UNSUPPORTED_OPTION. Not thread-safe.
#ifndef HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_CONFIG_READER_H_
#define HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_CONFIG_READER_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/architecture.h"
#include "nlohmann/json.hpp"

namespace hopscope::checkpoint {

class ConfigReader {
 public:
  using Keys = std::initializer_list<absl::string_view>;

  // `object` must outlive the reader; anything but an object is an error.
  explicit ConfigReader(const nlohmann::json& object);

  // A nested object, empty where it is absent. Errors go to this reader's status, with keys as
  // "KEY.SUBKEY".
  ConfigReader Section(absl::string_view key);

  bool Has(absl::string_view key) const;
  // Whether the key is there, be it null: some settings have a default that only an explicit null
  // turns off.
  bool Contains(absl::string_view key) const;
  // Records CHECKPOINT_CONFIG where the key is not even there with null.
  void Require(absl::string_view key);

  int64_t Integer(Keys keys, int64_t min, int64_t max);
  int64_t IntegerOr(Keys keys, int64_t min, int64_t max, int64_t fallback);
  double Number(Keys keys, double min, double max);
  double NumberOr(Keys keys, double min, double max, double fallback);
  bool FlagOr(Keys keys, bool fallback);
  std::string TextOr(Keys keys, absl::string_view fallback);
  // Sets activation and, for names that mean a cut-off constant, gelu_tanh_factor.
  void ReadActivation(Keys keys, absl::string_view fallback, Architecture& architecture);
  // The value as it stands, or null.
  const nlohmann::json& Raw(absl::string_view key) const;

  // Records CHECKPOINT_UNSUPPORTED_OPTION: the key's value asks for something that is not
  // implemented.
  void Unsupported(absl::string_view key, absl::string_view why);
  // Unsupported(), where the key is present with another value than `value`.
  void Only(absl::string_view key, const nlohmann::json& value, absl::string_view why);
  // Unsupported(), for every key that is there, null aside, and not among `keys`: for objects in
  // which nothing is without meaning.
  void Allow(Keys keys);
  // Records CHECKPOINT_CONFIG.
  void Wrong(absl::string_view key, absl::string_view allowed);

  bool ok() const { return status_->ok(); }
  const absl::Status& status() const { return *status_; }

 private:
  ConfigReader(const nlohmann::json* object, std::string prefix,
               std::shared_ptr<absl::Status> status);

  // The value of the first key that is there; null where none is. `found` gets its key.
  const nlohmann::json* Find(Keys keys, absl::string_view* found);
  void Missing(Keys keys);
  void Record(absl::string_view reason, absl::string_view key, absl::string_view allowed);

  const nlohmann::json* object_;
  std::string prefix_;
  std::shared_ptr<absl::Status> status_;
};

// A value for a message: one line of JSON, cut where it is long.
std::string ShortJson(const nlohmann::json& value);

}  // namespace hopscope::checkpoint

#endif  // HOPSCOPE_COMMON_CHECKPOINT_FAMILIES_CONFIG_READER_H_
