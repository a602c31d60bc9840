// Types and constants of namespace torch: dtypes, devices, options, scalars, errors, guards. All are names for the
// library's own.
//
// Constants for what does not exist, 8- and 16-bit integers, complex numbers, sparse layouts, can be mentioned, but
// convert to no dtype and no layout (NoDtype, NoLayout): using one does not compile.
#pragma once

#include <optional>
#include <sstream>

#include "cpu/parallel.h"
#include "engine/accessor.h"
#include "engine/device.h"
#include "engine/grad_mode.h"
#include "engine/random.h"
#include "engine/tensor_options.h"
#include "io/rng_state.h"
#include "torch/array_ref.h"

#pragma GCC visibility push(default)
namespace torch {

using retrograd::Device;
using retrograd::DeviceType;
using retrograd::Dim;
using retrograd::Generator;
using Layout = retrograd::TensorLayout;
using retrograd::MemoryFormat;
using retrograd::Scalar;
using retrograd::ScalarType;
using retrograd::Tensor;
using retrograd::TensorOptions;
using Dtype = ScalarType;
using TensorBase = Tensor;
template <class T, size_t N>
using TensorAccessor = retrograd::TensorAccessor<T, static_cast<int>(N)>;
using DeviceIndex = int8_t;
using TensorList = ArrayRef<Tensor>;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;

using retrograd::kBFloat16;
using retrograd::kBool;
using retrograd::kByte;
using retrograd::kDouble;
using retrograd::kFloat;
using retrograd::kFloat16;
using retrograd::kFloat32;
using retrograd::kFloat64;
using retrograd::kFloat8_e4m3fn;
using retrograd::kFloat8_e5m2;
using retrograd::kHalf;
using retrograd::kInt;
using retrograd::kInt32;
using retrograd::kInt64;
using retrograd::kLong;
using retrograd::kUInt8;
inline constexpr Dtype kU8 = kUInt8, kI32 = kInt32, kI64 = kInt64, kF16 = kFloat16, kF32 = kFloat32,
                       kF64 = kFloat64;

/// A dtype that does not exist: that of no tensor.
struct NoDtype {
  template <class T>
  operator T() const = delete;  // there are kUInt8, kInt32, kInt64, and no complex numbers
  friend constexpr bool operator==(ScalarType, const NoDtype&) { return false; }
};
inline constexpr NoDtype kChar, kInt8, kI8, kShort, kInt16, kI16, kUInt16, kUInt32, kUInt64, kComplexHalf,
    kComplexFloat, kComplexDouble, kQInt8, kQUInt8, kQInt32;

using retrograd::kCPU;
using retrograd::kCUDA;
inline constexpr Layout kStrided = Layout::Strided;
/// Sparse tensors do not exist.
struct NoLayout {
  template <class T>
  operator T() const = delete;  // tensors are dense: kStrided
};
inline constexpr NoLayout kSparse, kSparseCsr, kMkldnn;

using retrograd::get_default_dtype;
using retrograd::name;
using retrograd::promote_types;
using retrograd::set_default_dtype;
using retrograd::operator<<;

// libtorch has a second type for dtypes, TypeMeta; here it is the same.
inline ScalarType typeMetaToScalarType(ScalarType dtype) { return dtype; }
inline ScalarType scalarTypeToTypeMeta(ScalarType dtype) { return dtype; }
/// "Float", "Long".
const char* toString(ScalarType dtype);
inline size_t elementSize(ScalarType dtype) { return retrograd::element_size(dtype); }
inline bool isFloatingType(ScalarType dtype) { return retrograd::is_floating(dtype); }
inline bool isIntegralType(ScalarType dtype, bool include_bool) {
  return retrograd::is_integral(dtype, include_bool);
}

// Options that are given one by one: torch::dtype(torch::kDouble).device(torch::kCUDA).
inline TensorOptions dtype(ScalarType dtype) { return dtype; }
template <class T>
TensorOptions dtype() {
  return TensorOptions().dtype<T>();
}
inline TensorOptions device(Device device) { return device; }
inline TensorOptions layout(Layout layout) { return TensorOptions().layout(layout); }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }

using retrograd::AutoGradMode;
using retrograd::GradMode;
using retrograd::InferenceMode;
using retrograd::NoGradGuard;

using retrograd::default_generator;
using retrograd::get_rng_state;
using retrograd::manual_seed;
using retrograd::set_rng_state;
using retrograd::cpu::get_num_threads;
using retrograd::cpu::set_num_threads;

/// What the library throws; Error of retrograd, with its category, among others (engine/error.h).
using Error = retrograd::Exception;

namespace cuda {
using retrograd::cuda::device_count;
using retrograd::cuda::is_available;
// One generator serves all devices.
using retrograd::manual_seed;
inline void manual_seed_all(uint64_t seed) { manual_seed(seed); }
/// -1: all devices that there are.
inline void synchronize(int64_t index = -1) {
  const int64_t begin = index < 0 ? 0 : index, end = index < 0 ? device_count() : index + 1;
  for (int64_t i = begin; i < end; ++i) retrograd::synchronize({kCUDA, static_cast<int8_t>(i)});
}
}  // namespace cuda

namespace detail {
template <class... Parts>
std::string joined(const Parts&... parts) {
  std::ostringstream text;
  ((text << parts), ...);
  return text.str();
}
/// Error(bad_argument): a condition of the user's program does not hold.
[[noreturn]] void check_failed(const char* condition, const std::string& text,
                               retrograd::SourceLocation where);
}  // namespace detail

}  // namespace torch
#pragma GCC visibility pop

namespace at = torch;
namespace c10 = torch;

/// Throws torch::Error with the text of the arguments, unless the condition holds.
#define TORCH_CHECK(condition, ...)                                                              \
  ((condition) ? (void)0                                                                         \
               : ::torch::detail::check_failed(#condition, ::torch::detail::joined(__VA_ARGS__), \
                                               ::retrograd::SourceLocation::current()))
#define TORCH_INTERNAL_ASSERT(condition, ...) TORCH_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
