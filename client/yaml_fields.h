// Reads the values of a YAML tree as what they are to be, and says where they are not.
//
// Paths are those that errors of the API use, such as spec.tasks[0].hops[3]; the place of every
// value that is read is noted under its path.
#ifndef HOPSCOPE_CLIENT_YAML_FIELDS_H_
#define HOPSCOPE_CLIENT_YAML_FIELDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/yaml_tree.h"
#include "google/protobuf/struct.pb.h"

namespace hopscope::client {

// Errors are INVALID_ARGUMENT with FILE:LINE:COLUMN, the path, and one of the reasons UNKNOWN_KEY
// (names the nearest known key), WRONG_TYPE and OUT_OF_RANGE. Not thread-safe.
class YamlFields {
 public:
  using ReadFunction = std::function<absl::Status(const YamlNode& node, const std::string& path)>;

  // One key of a map: how to read its value.
  struct Field {
    std::string key;
    ReadFunction read;
  };

  // `file`: for messages. `marks` gets the place of each path, and must outlive this.
  YamlFields(std::string file, std::map<std::string, YamlMark>* marks)
      : file_(std::move(file)), marks_(*marks) {}

  // A map of known keys.
  absl::Status ReadMap(const YamlNode& node, const std::string& path,
                       const std::vector<Field>& fields);
  // One value stands for a list of one. `expected` is for messages: "a list of hops".
  absl::Status ReadList(const YamlNode& node, const std::string& path, absl::string_view expected,
                        const ReadFunction& read);
  absl::StatusOr<int64_t> ReadInteger(const YamlNode& node, const std::string& path, int64_t min,
                                      int64_t max) const;
  // Finite, in decimal; never a negative zero.
  absl::StatusOr<double> ReadNumber(const YamlNode& node, const std::string& path) const;
  // Any scalar, as it is written.
  absl::StatusOr<std::string> ReadString(const YamlNode& node, const std::string& path,
                                         absl::string_view expected) const;
  // Anything: a plain scalar is what it looks like, a quoted one a text. Whole numbers that a
  // double would round are refused.
  absl::Status ReadStruct(const YamlNode& node, const std::string& path,
                          google::protobuf::Struct* values);
  absl::Status ReadValue(const YamlNode& node, const std::string& path,
                         google::protobuf::Value* value);

  // Fields that hand a value of their type to `set`; they must not outlive this.
  Field Int32(std::string key, std::function<void(int32_t)> set);
  Field Int64(std::string key, std::function<void(int64_t)> set);
  Field Double(std::string key, std::function<void(double)> set);
  Field Bool(std::string key, std::function<void(bool)> set);
  Field String(std::string key, std::string expected, std::function<void(std::string)> set);

  absl::Status Error(const YamlNode& node, const std::string& path, absl::string_view reason,
                     absl::string_view message, absl::string_view allowed) const;
  absl::Status WrongType(const YamlNode& node, const std::string& path,
                         absl::string_view expected) const;
  void Mark(const std::string& path, YamlMark mark) { marks_.emplace(path, mark); }

 private:
  const std::string file_;
  std::map<std::string, YamlMark>& marks_;
};

}  // namespace hopscope::client

#endif  // HOPSCOPE_CLIENT_YAML_FIELDS_H_
