#include "client/cli/file_output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace hopscope::cli {

FileOutput::FileOutput(int descriptor) : descriptor_(descriptor) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

FileOutput::int_type FileOutput::overflow(int_type byte) {
  if (!Flush()) return traits_type::eof();
  if (!traits_type::eq_int_type(byte, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(byte);
    pbump(1);
  }
  return traits_type::not_eof(byte);
}

int FileOutput::sync() { return Flush() ? 0 : -1; }

bool FileOutput::Flush() {
  const char* next = pbase();
  while (error_ == 0 && next < pptr()) {
    const ssize_t written = write(descriptor_, next, static_cast<size_t>(pptr() - next));
    if (written >= 0) {
      next += written;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // Whoever shares the descriptor has made it non-blocking.
      pollfd room = {.fd = descriptor_, .events = POLLOUT, .revents = 0};
      if (poll(&room, 1, -1) < 0 && errno != EINTR) error_ = errno;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return error_ == 0;
}

}  // namespace hopscope::cli
