// Temporary memory of a kernel: elements without initialisation, aligned to 64 bytes, freed at the end of the
// scope. OutOfMemory when there is none, or when the size in bytes has no number.
#pragma once

#include <cstdint>

#include "engine/allocator.h"

namespace retrograd::cpu {

template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t size) {
    if (__builtin_mul_overflow(static_cast<size_t>(size), sizeof(T), &bytes_))
      detail::fail_allocation(~size_t{0} >> 1);
    if (bytes_ > 0) data_ = static_cast<T*>(detail::allocate_block(bytes_));
  }
  ~Scratch() {
    if (data_) detail::free_block(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  size_t bytes_ = 0;
  T* data_ = nullptr;
};

}  // namespace retrograd::cpu
