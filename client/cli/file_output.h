// Standard output as a stream that remembers why a write failed, which std::cout does not.
#ifndef HOPSCOPE_CLIENT_CLI_FILE_OUTPUT_H_
#define HOPSCOPE_CLIENT_CLI_FILE_OUTPUT_H_

#include <array>
#include <streambuf>

namespace hopscope::cli {

// Writes to a file descriptor, which it does not own. What is not flushed when it is destroyed is
// lost. Not thread-safe.
class FileOutput : public std::streambuf {
 public:
  explicit FileOutput(int descriptor);

  // errno of the first write that failed; 0: none did. Nothing is written after it.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type byte) override;
  int sync() override;

 private:
  // Writes what is buffered. False: it failed, now or before.
  bool Flush();

  const int descriptor_;
  int error_ = 0;
  std::array<char, 1 << 14> buffer_;
};

}  // namespace hopscope::cli

#endif  // HOPSCOPE_CLIENT_CLI_FILE_OUTPUT_H_
