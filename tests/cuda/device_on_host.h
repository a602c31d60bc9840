// An op on the device of tests compared with the CPU.
//
//   device_on_host();      // once or more often; from then on cuda:0 is there (tests/cuda/test_device.h)
//   expect_same(emit(op, cpu operands), emit(op, the same on cuda:0))
#pragma once

#include <retrograd/retrograd.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "cuda/executor.h"
#include "cuda/kernels/launchers.h"
#include "engine/runner.h"
#include "tests/cuda/errors_met.h"
#include "tests/cuda/test_device.h"

namespace retrograd {

/// `x` on cuda:0 in the same layout: what its storage holds is copied whole.
inline Tensor with_layout_on_device(const Tensor& x) {
  if (!x.defined()) return {};
  const Storage& storage = *x.impl().storage();
  const auto item = static_cast<int64_t>(element_size(x.dtype()));
  const Tensor all = from_blob(storage.data(), {storage.nbytes() / item}, {x.dtype()}).to(kCUDA);
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->alias(x.impl());
  cell->set_type(x.dtype(), kCUDA, x.impl().shape());
  cell->set_storage(all.impl().storage());
  return Tensor(std::move(cell));
}

/// The results of an op on operands where they are; no record.
inline Tensor emit(const OpInfo& op, const Tensors& operands, void* attrs) {
  std::vector<TensorImpl*> cells;
  for (const Tensor& x : operands) cells.push_back(x.get());
  Tensor result;
  eager_runner().emit({&op, cells, attrs, {}, 1}, &result);
  return result;
}

/// What two ways of rounding may differ by, relative to the larger of the value and `least`: near the zeros of a
/// formula, where terms cancel, the error is theirs.
inline double tolerance(ScalarType dtype) {
  switch (dtype) {
    case kFloat64: return 1e-13;
    case kFloat32: return 4e-6;
    case kFloat16: return 0x1p-10;
    case kBFloat16: return 0x1p-7;
    default: return 0;
  }
}

inline bool is_near(double a, double b, double tolerance, double least = 0.05, ErrorsMet* met = nullptr) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  const double difference = std::abs(a - b), allowed = tolerance * std::max(std::abs(b), least);
  if (met && allowed > 0) met->note(difference, allowed);
  return difference <= allowed;
}

/// `scale`: how much more than usual the results of a formula may differ by; what 16 bits round away is more than that.
/// `least`: the size of its terms.
inline void expect_same(const Tensor& expected, const Tensor& found, double scale = 1, double least = 0.05) {
  REQUIRE(found.device() == Device(kCUDA));
  REQUIRE(found.dtype() == expected.dtype());
  REQUIRE(found.sizes() == expected.sizes());
  const std::vector<double> a = expected.to_vector(), b = found.to_vector();
  const double most = tolerance(expected.dtype()) * (element_size(expected.dtype()) >= 4 ? scale : 1);
  ErrorsMet& met = errors_met(static_cast<int>(expected.dtype()));
  met.tolerance = tolerance(expected.dtype());
  for (size_t i = 0; i < a.size(); ++i) {
    if (is_near(b[i], a[i], most, least, &met)) continue;
    INFO("element " << i << " of " << to_string(expected.impl().shape()) << ": " << b[i] << " on the device, "
                    << a[i] << " on the CPU");
    REQUIRE(false);
  }
}

}  // namespace retrograd
