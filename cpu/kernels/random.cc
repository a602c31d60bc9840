// Kernels of the random ops, by the functions of cpu/kernels/levels/random_rows.h.
//
// Elements are numbered in row-major order for any strides, and element i takes its number from place i of the draw's
// Philox stream, block by block; chunks are cut at multiples of a block, so the number of threads changes no bit.
// float16 and bfloat16 take their numbers from the float stream, float64 from one of its own.
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "cpu/kernels/layout.h"
#include "cpu/kernels/levels/random_rows.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "engine/philox.h"
#include "ops/dropout.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kRandomTile = 1024,
                  kRandomGrain = 16 * kRandomTile;  // elements, multiples of a Philox block

// Calls f(first element, count) for every tile, in parallel.
template <class F>
void for_tiles(int64_t numel, const F& f) {
  parallel_range(numel, kRandomGrain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kRandomTile) f(at, std::min(kRandomTile, end - at));
  });
}

PhiloxKey key_of(const ops::Draw& d) { return {d.seed_bits(), d.offset_bits()}; }

// Elements [at, at + count) of the stream; the tile has room for whole blocks.
void uniforms(const ops::Draw& d, int64_t at, int64_t count, float* tile) {
  random_table().uniform_floats(key_of(d), static_cast<uint64_t>(at) / 4, (count + 3) / 4, tile);
}
void uniforms(const ops::Draw& d, int64_t at, int64_t count, double* tile) {
  random_table().uniform_doubles(key_of(d), static_cast<uint64_t>(at) / 2, (count + 1) / 2, tile);
}
void normals(const ops::Draw& d, int64_t at, int64_t count, float* tile) {
  random_table().normal_floats(key_of(d), static_cast<uint64_t>(at) / 4, (count + 3) / 4, tile);
}
void normals(const ops::Draw& d, int64_t at, int64_t count, double* tile) {
  random_table().normal_doubles(key_of(d), static_cast<uint64_t>(at) / 2, (count + 1) / 2, tile);
}

// A uniform with so many bits that rounding it to T cannot give 1.
template <class T, class C>
C shortened(C u) {
  if constexpr (std::is_same_v<T, Half>)
    return std::floor(u * C{0x1p11}) * C{0x1p-11};
  else if constexpr (std::is_same_v<T, BFloat16>)
    return std::floor(u * C{0x1p8}) * C{0x1p-8};
  else
    return u;
}

// Calls f(T, Compute) with the tensor's type and the type to compute in.
template <class F>
void dispatch_random(ScalarType dtype, const F& f) {
  switch (dtype) {
    case kFloat64: return f(double{}, double{});
    case kFloat32: return f(float{}, float{});
    case kFloat16: return f(Half{}, float{});
    default: return f(BFloat16{}, float{});
  }
}

// u < p for a float u if and only if u < this float.
float threshold(double p) {
  const auto t = static_cast<float>(p);
  return static_cast<double>(t) < p ? std::nextafter(t, 2.0f) : t;
}

// Error(bad_argument) for the first value that is not between least and most.
template <class C>
void check_values(const Call& call, const C* tile, int64_t count, C least, C most, const char* text) {
  bool bad = false;
  for (int64_t i = 0; i < count; ++i) bad |= !(tile[i] >= least && tile[i] <= most);
  for (int64_t i = 0; bad && i < count; ++i)
    if (!(tile[i] >= least && tile[i] <= most))
      fail_call(call, Category::bad_argument, fmt::format(fmt::runtime(text), static_cast<double>(tile[i])));
}

template <class Op>
void fill_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<typename Op::Attrs>();
  TensorImpl& out = *outputs[0];
  const Layout layout(out);
  dispatch_random(out.dtype(), [&]<class T, class C>(T, C) {
    const C a = static_cast<C>(attrs.a.to_double()), b = static_cast<C>(attrs.b.to_double());
    for_tiles(layout.numel(), [&](int64_t at, int64_t count) {
      C tile[kRandomTile];
      if constexpr (std::is_same_v<Op, ops::Normal>) {
        normals(attrs.draw, at, count, tile);
        for (int64_t i = 0; i < count; ++i) tile[i] = a + b * tile[i];
      } else {
        uniforms(attrs.draw, at, count, tile);
        for (int64_t i = 0; i < count; ++i) tile[i] = a + (b - a) * shortened<T>(tile[i]);
        for (int64_t i = 0; i < count; ++i)  // what rounding has made b
          tile[i] = static_cast<C>(convert<T>(tile[i])) < b ? tile[i] : a;
      }
      scatter(tile, static_cast<T*>(out.data()), layout, at, at + count);
    });
  });
}

// low + floor(range * bits / 2^64): a bias of at most range / 2^64.
void randint_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::RandInt::Attrs>();
  TensorImpl& out = *outputs[0];
  const Layout layout(out);
  const uint64_t low = static_cast<uint64_t>(attrs.a.to_int()),
                 range = static_cast<uint64_t>(attrs.b.to_int()) - low;
  for_tiles(layout.numel(), [&](int64_t at, int64_t count) {
    int64_t tile[kRandomTile];
    uint32_t words[2 * kRandomTile];
    random_table().words(key_of(attrs.draw), static_cast<uint64_t>(at) / 2, (count + 1) / 2, words);
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = uint64_t{words[2 * i]} << 32 | words[2 * i + 1];
      tile[i] = static_cast<int64_t>(
          low + static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * range >> 64));
    }
    dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
      scatter(tile, static_cast<T*>(out.data()), layout, at, at + count);
    });
  });
}

// In double for every dtype, from the double stream: else the tail would end at 24 bits.
void exponential_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::Exponential::Attrs>();
  TensorImpl& out = *outputs[0];
  const Layout layout(out);
  const double rate = attrs.a.to_double();
  dispatch_random(out.dtype(), [&]<class T, class C>(T, C) {
    for_tiles(layout.numel(), [&](int64_t at, int64_t count) {
      double tile[kRandomTile];
      uniforms(attrs.draw, at, count, tile);
      for (int64_t i = 0; i < count; ++i) tile[i] = -std::log1p(-tile[i]) / rate;
      scatter(tile, static_cast<T*>(out.data()), layout, at, at + count);
    });
  });
}

void bernoulli_number_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::BernoulliNumber::Attrs>();
  TensorImpl& out = *outputs[0];
  const Layout layout(out);
  const float p = threshold(attrs.a.to_double());
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    for_tiles(layout.numel(), [&](int64_t at, int64_t count) {
      float tile[kRandomTile];
      uniforms(attrs.draw, at, count, tile);
      for (int64_t i = 0; i < count; ++i) tile[i] = tile[i] < p ? 1.0f : 0.0f;
      scatter(tile, static_cast<T*>(out.data()), layout, at, at + count);
    });
  });
}

// One of the two parameters of a normal draw: a tensor repeated to the result's shape, or a number.
template <class T, class C>
class Parameter {
 public:
  Parameter(const TensorImpl* x, Scalar number, const TensorImpl& out)
      : x_(x), number_(static_cast<C>(number.to_double())), layout_(x ? *x : out, out.shape()) {}

  void read(int64_t at, int64_t count, C* tile) const {
    if (x_)
      gather(static_cast<const T*>(x_->data()), layout_, at, at + count, tile);
    else
      std::fill_n(tile, count, number_);
  }

 private:
  const TensorImpl* x_;
  C number_;
  Layout layout_;
};

void normal_around_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::NormalAround::Attrs>();
  TensorImpl& out = *outputs[0];
  const Layout to(out);
  dispatch_random(out.dtype(), [&]<class T, class C>(T, C) {
    const Parameter<T, C> means(call.operands[0], attrs.mean, out), stds(call.operands[1], attrs.std, out);
    for_tiles(to.numel(), [&](int64_t at, int64_t count) {
      C mean[kRandomTile], std[kRandomTile], z[kRandomTile];
      means.read(at, count, mean);
      stds.read(at, count, std);
      normals(attrs.draw, at, count, z);
      check_values(call, std, count, C{0}, std::numeric_limits<C>::infinity(), "the std {} is negative");
      for (int64_t i = 0; i < count; ++i) z[i] = mean[i] + std[i] * z[i];
      scatter(z, static_cast<T*>(out.data()), to, at, at + count);
    });
  });
}

void bernoulli_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::Bernoulli::Attrs>();
  const TensorImpl& p = *call.operands[0];
  const Layout from(p), to(*outputs[0]);
  dispatch_random(p.dtype(), [&]<class T, class C>(T, C) {
    for_tiles(from.numel(), [&](int64_t at, int64_t count) {
      C tile[kRandomTile], u[kRandomTile];
      gather(static_cast<const T*>(p.data()), from, at, at + count, tile);
      uniforms(attrs.draw, at, count, u);
      check_values(call, tile, count, C{0}, C{1}, "the probability {} is outside [0, 1]");
      for (int64_t i = 0; i < count; ++i) tile[i] = u[i] < tile[i] ? C{1} : C{0};
      scatter(tile, static_cast<T*>(outputs[0]->data()), to, at, at + count);
    });
  });
}

void drop(PhiloxKey key, int64_t at, int64_t count, DropChance chance, const float* x, float scale,
          float* y) {
  random_table().dropout_floats(key, static_cast<uint64_t>(at) / 8, count, chance, x, scale, y);
}
void drop(PhiloxKey key, int64_t at, int64_t count, DropChance chance, const double* x, double scale,
          double* y) {
  random_table().dropout_doubles(key, static_cast<uint64_t>(at) / 8, count, chance, x, scale, y);
}

// In tiles if elements are converted or not contiguous: read before they are written, since the output may share the
// operand's memory.
void dropout_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::Dropout::Attrs>();
  const TensorImpl& x = *call.operands[0];
  TensorImpl& out = *outputs[0];
  const Layout from(x), to(out);
  const double p = attrs.p.to_double();
  const Chance chance = chance_of(p);
  const DropChance dropped{chance.high, chance.low};
  const PhiloxKey key = key_of(attrs.draw);
  dispatch_random(x.dtype(), [&]<class T, class C>(T, C) {
    const C scale = p < 1 ? static_cast<C>(1 / (1 - p)) : C{0};
    const T* const source = static_cast<const T*>(x.data());
    T* const target = static_cast<T*>(out.data());
    if constexpr (std::is_same_v<T, C>)
      if (x.is_contiguous() && out.is_contiguous())
        return parallel_range(from.numel(), kRandomGrain, [&](int64_t begin, int64_t end) {
          drop(key, begin, end - begin, dropped, source + begin, scale, target + begin);
        });
    for_tiles(from.numel(), [&](int64_t at, int64_t count) {
      C tile[kRandomTile];
      gather(source, from, at, at + count, tile);
      drop(key, at, count, dropped, tile, scale, tile);
      scatter(tile, target, to, at, at + count);
    });
  });
}

// What is added does not carry into the exponent of an infinity or the bits of a NaN.
float rounded(float x, uint32_t random) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) + random;
  return std::isfinite(x) ? std::bit_cast<float>(bits & 0xffff0000) : x;
}

void stochastic_round_kernel(const Call& call, TensorImpl* const* outputs) {
  const auto& attrs = call.attrs_as<ops::StochasticRound::Attrs>();
  const TensorImpl& x = *call.operands[0];
  TensorImpl& out = *outputs[0];
  const Layout from(x), to(out);
  for_tiles(from.numel(), [&](int64_t at, int64_t count) {
    float tile[kRandomTile];
    uint32_t words[kRandomTile / 2];
    gather(static_cast<const float*>(x.data()), from, at, at + count, tile);
    random_table().words(key_of(attrs.draw), static_cast<uint64_t>(at) / 8, (count + 7) / 8, words);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t word = words[i / 2];
      tile[i] = rounded(tile[i], i % 2 ? word >> 16 : word & 0xffff);
    }
    scatter(tile, static_cast<BFloat16*>(out.data()), to, at, at + count);
  });
}

}  // namespace

void add_random_kernels(KernelTable& table) {
  table.set(&ops::info<ops::StochasticRound>, stochastic_round_kernel);
  table.set(&ops::info<ops::Uniform>, fill_kernel<ops::Uniform>);
  table.set(&ops::info<ops::Normal>, fill_kernel<ops::Normal>);
  table.set(&ops::info<ops::RandInt>, randint_kernel);
  table.set(&ops::info<ops::Exponential>, exponential_kernel);
  table.set(&ops::info<ops::BernoulliNumber>, bernoulli_number_kernel);
  table.set(&ops::info<ops::Bernoulli>, bernoulli_kernel);
  table.set(&ops::info<ops::NormalAround>, normal_around_kernel);
  table.set(&ops::info<ops::Dropout>, dropout_kernel);
}

}  // namespace retrograd::cpu
