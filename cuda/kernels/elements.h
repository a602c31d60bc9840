// Elements of tensors as kernels read and write them: a pointer, an element type that is known at run time, and an
// index.
//
// A kernel computes in float, double or int64_t (T below); an element stored in another type is converted when it is
// read or written, as on the CPU (ops/convert.h). All threads of a launch take the same branch for the type.
#pragma once

#include "engine/float_formats.h"
#include "ops/convert.h"

namespace retrograd::inline v0::cuda {

/// The numbers equal those of ScalarType.
enum class Element : uint8_t { f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, u8, b8 };

/// The largest number of dims of a tensor.
inline constexpr int kMaxDims = 8;

namespace RG_TARGET {

/// convert(), with the device's own instructions for 16-bit formats.
template <class To, class From>
RG_HD inline To converted(From v) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<From, Half>) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(v.bits));
    return converted<To>(wide);
  } else if constexpr (std::is_same_v<To, Half> && !std::is_same_v<From, bool>) {
    Half narrow;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(rounded_to_odd(v)));
    return narrow;
  } else if constexpr (std::is_same_v<To, BFloat16> && !std::is_same_v<From, bool>) {
    BFloat16 narrow;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(rounded_to_odd(v)));
    return narrow;
  } else {
    return convert<To>(v);
  }
#else
  return convert<To>(v);
#endif
}

template <class T>
RG_HD inline T load(const void* data, Element element, int64_t i) {
  switch (element) {
    case Element::f64: return converted<T>(static_cast<const double*>(data)[i]);
    case Element::f32: return converted<T>(static_cast<const float*>(data)[i]);
    case Element::f16: return converted<T>(static_cast<const Half*>(data)[i]);
    case Element::bf16: return converted<T>(static_cast<const BFloat16*>(data)[i]);
    case Element::f8e4m3: return converted<T>(static_cast<const Float8_e4m3fn*>(data)[i]);
    case Element::f8e5m2: return converted<T>(static_cast<const Float8_e5m2*>(data)[i]);
    case Element::i64: return converted<T>(static_cast<const int64_t*>(data)[i]);
    case Element::i32: return converted<T>(static_cast<const int32_t*>(data)[i]);
    case Element::u8: return converted<T>(static_cast<const uint8_t*>(data)[i]);
    case Element::b8: return converted<T>(static_cast<const bool*>(data)[i]);
  }
  return {};
}

template <class T>
RG_HD inline void store(void* data, Element element, int64_t i, T v) {
  switch (element) {
    case Element::f64: static_cast<double*>(data)[i] = converted<double>(v); break;
    case Element::f32: static_cast<float*>(data)[i] = converted<float>(v); break;
    case Element::f16: static_cast<Half*>(data)[i] = converted<Half>(v); break;
    case Element::bf16: static_cast<BFloat16*>(data)[i] = converted<BFloat16>(v); break;
    case Element::f8e4m3: static_cast<Float8_e4m3fn*>(data)[i] = converted<Float8_e4m3fn>(v); break;
    case Element::f8e5m2: static_cast<Float8_e5m2*>(data)[i] = converted<Float8_e5m2>(v); break;
    case Element::i64: static_cast<int64_t*>(data)[i] = converted<int64_t>(v); break;
    case Element::i32: static_cast<int32_t*>(data)[i] = converted<int32_t>(v); break;
    case Element::u8: static_cast<uint8_t*>(data)[i] = converted<uint8_t>(v); break;
    case Element::b8: static_cast<bool*>(data)[i] = converted<bool>(v); break;
  }
}

/// N elements at a multiple of their size: read and written together.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};

}  // namespace RG_TARGET
}  // namespace retrograd::cuda
