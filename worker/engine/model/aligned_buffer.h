// Memory for numbers, aligned to cache lines, which grows on demand and is never cleared.
//
// Alignment is part of reproducibility: the same data at another alignment may be summed in another
// order. Not thread-safe.
#ifndef HOPSCOPE_WORKER_ENGINE_MODEL_ALIGNED_BUFFER_H_
#define HOPSCOPE_WORKER_ENGINE_MODEL_ALIGNED_BUFFER_H_

#include <cstdint>
#include <memory>
#include <new>

namespace hopscope::engine {

template <typename T>
class AlignedBuffer {
 public:
  static constexpr std::align_val_t kAlignment{64};

  // At least `size` elements; contents are lost where it grows. Throws std::bad_alloc.
  T* AtLeast(int64_t size) {
    if (size > size_) {
      memory_.reset();
      size_ = 0;
      memory_.reset(static_cast<T*>(::operator new(size * sizeof(T), kAlignment)));
      size_ = size;
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(T* memory) const { ::operator delete(memory, kAlignment); }
  };

  std::unique_ptr<T, Free> memory_;
  int64_t size_ = 0;
};

}  // namespace hopscope::engine

#endif  // HOPSCOPE_WORKER_ENGINE_MODEL_ALIGNED_BUFFER_H_
