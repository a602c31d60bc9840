// Numbers at the ends of int64 as sizes, strides, offsets, positions, counts, amounts of padding: a function that takes
// such a number either refuses with Error or OutOfMemory, or gives a tensor that is within its memory, can be read, and
// can be differentiated. Nothing wraps around (checked by the sanitizers' build of the tests), hangs, or allocates
// before the sizes are checked.
//
// each() and each_pair() put kNumbers through a function. Tests hold a MemoryLimit: more than 1 GiB is refused, so that
// no result depends on the machine's memory.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <limits>

#include "engine/allocator.h"
#include "ops/creation.h"
#include "ops/reduce.h"

namespace retrograd::extreme {

inline constexpr int64_t kMax = std::numeric_limits<int64_t>::max(),
                         kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t power(int n) { return int64_t{1} << n; }
inline constexpr int64_t kNumbers[] = {kMax,
                                       kMax - 1,
                                       kMin,
                                       kMin + 1,
                                       kMin + power(31),
                                       power(62),
                                       -power(62),
                                       power(61) + 1,
                                       power(48) + 1,
                                       -power(48),
                                       power(32),
                                       INT32_MAX,
                                       -1,
                                       0,
                                       1,
                                       3};

class MemoryLimit {
 public:
  MemoryLimit() { memory::set_limit(power(30)); }
  ~MemoryLimit() { memory::set_limit(0); }
};

inline Tensor leaf(const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(shape.numel().value()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.25 + 0.5 * static_cast<double>(i % 7);
  return tensor(values, shape).requires_grad_();
}

/// The first and the last element are within the memory.
inline bool lies_in_memory(const Tensor& t) {
  if (t.numel() == 0) return true;
  int64_t last = t.storage_offset();
  for (int64_t d = 0; d < t.dim(); ++d)
    last = Dim::checked_add(last, Dim::checked_mul(t.size(d) - 1, t.stride(d)));
  return t.storage_offset() >= 0 &&
         last * static_cast<int64_t>(element_size(t.dtype())) < t.impl().storage()->nbytes();
}

/// Reads and differentiates a result, unless it is large: then it repeats its memory.
inline void use(const Tensor& t) {
  for (const Dim d : t.impl().shape()) CHECK(d.value() >= 0);
  CHECK(lies_in_memory(t));
  if (t.numel() > 10000) return;
  t.to_vector();
  if (t.requires_grad()) t.sum().backward();
}

using Results = std::function<Tensors()>;

inline void check(const std::string& name, const Results& f) {
  INFO(name);
  try {
    for (const Tensor& t : f()) use(t);
  } catch (const Error&) {
  } catch (const OutOfMemory&) {
  } catch (const std::exception& e) {
    FAIL_CHECK("neither Error nor OutOfMemory: " << e.what());
  }
}

template <class F>
void each(const std::string& name, F f) {
  for (const int64_t a : kNumbers) check(name + " " + std::to_string(a), [&] { return Tensors{f(a)}; });
}

template <class F>
void each_pair(const std::string& name, F f) {
  for (const int64_t a : kNumbers)
    for (const int64_t b : kNumbers)
      check(name + " " + std::to_string(a) + ", " + std::to_string(b), [&] { return Tensors{f(a, b)}; });
}

}  // namespace retrograd::extreme
