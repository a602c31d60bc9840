// Temporary memory of a kernel: elements without initialisation, aligned to 64 bytes, freed at the end of the
// scope.
#pragma once

#include <cstdint>

#include "engine/allocator.h"

namespace retrograd::cpu {

template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t size) : bytes_(static_cast<size_t>(size) * sizeof(T)) {
    if (bytes_ > 0) data_ = static_cast<T*>(detail::allocate_block(bytes_));
  }
  ~Scratch() {
    if (data_) detail::free_block(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  size_t bytes_;
  T* data_ = nullptr;
};

}  // namespace retrograd::cpu
