// What the tests of autocast share.
#pragma once

#include <catch2/catch.hpp>
#include <ostream>

#include "retrograd/retrograd.h"

namespace autocast_tests {

namespace rg = retrograd;

/// Values within (0, 1), not representable in 16 bits.
inline rg::Tensor values(const rg::Shape& shape, rg::ScalarType dtype = rg::kFloat32) {
  const rg::Tensor flat =
      rg::frac(rg::arange(shape.numel().value(), rg::TensorOptions{rg::kFloat32}) * 0.37 + 0.123);
  return rg::to(rg::reshape_to(flat * 0.8 + 0.1, shape), dtype);
}
/// A leaf with memory of its own.
inline rg::Tensor parameter(const rg::Shape& shape) { return values(shape).clone().requires_grad_(); }

inline void check_equal(const rg::Tensor& a, const rg::Tensor& b) {
  CHECK(a.dtype() == b.dtype());
  CHECK(a.to_vector() == b.to_vector());
}

/// Casts of one piece of code: all, and those that the cache served.
struct Casts {
  int64_t all, cached;
  friend bool operator==(const Casts&, const Casts&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Casts& c) {
    return out << c.all << ", cached " << c.cached;
  }
};
template <class F>
Casts casts_of(const F& f) {
  const Casts before{rg::autocast_counters.casts, rg::autocast_counters.cached};
  f();
  return {rg::autocast_counters.casts - before.all, rg::autocast_counters.cached - before.cached};
}

}  // namespace autocast_tests
