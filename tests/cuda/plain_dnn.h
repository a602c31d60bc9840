// A library of convolutions for tests: computes by the simplest method, from the definition in ops/convolution.h, in
// host memory. It records its calls, and declines the convolutions that the test selects.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <utility>
#include <vector>

#include "engine/float_formats.h"
#include "tests/cuda/host_driver.h"

namespace retrograd {

namespace plain_dnn {

inline int64_t volume(const int64_t (&size)[3]) { return size[0] * size[1] * size[2]; }

/// Calls body(x, g, w) with the memory positions of each three elements that meet.
template <class Body>
void for_terms(const cuda::DnnConvolution& c, const Body& body) {
  const auto place = [](const int64_t(&size)[3], const int64_t(&at)[3]) {
    return (at[0] * size[1] + at[1]) * size[2] + at[2];
  };
  const auto for_places = [](const int64_t(&size)[3], const auto& visit) {
    for (int64_t i = 0; i < size[0]; ++i)
      for (int64_t j = 0; j < size[1]; ++j)
        for (int64_t l = 0; l < size[2]; ++l) visit({i, j, l});
  };
  using Place = const int64_t(&)[3];
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t feature = 0; feature < c.groups * c.features; ++feature)
      for (int64_t channel = 0; channel < c.channels; ++channel) {
        const int64_t input = n * c.groups * c.channels + feature / c.features * c.channels + channel;
        const int64_t output = n * c.groups * c.features + feature;
        for_places(c.small, [&](Place o) {
          for_places(c.kernel, [&](Place t) {
            int64_t i[3];
            for (int d = 0; d < 3; ++d) {
              i[d] = o[d] * c.stride[d] + t[d] * c.dilation[d] - c.padding[d];
              if (i[d] < 0 || i[d] >= c.large[d]) return;
            }
            body(input * volume(c.large) + place(c.large, i), output * volume(c.small) + place(c.small, o),
                 (feature * c.channels + channel) * volume(c.kernel) + place(c.kernel, t));
          });
        });
      }
}

template <class T, class C>
void compute(const cuda::DnnConvolution& c) {
  const auto value = [](const void* data, int64_t i) {
    return static_cast<C>(static_cast<const T*>(data)[i]);
  };
  std::vector<C> sums;
  const auto give = [&](void* data, int64_t results, const auto& add_term) {
    sums.resize(static_cast<size_t>(results));
    for_terms(c, add_term);
    T* const out = static_cast<T*>(data);
    for (size_t i = 0; i < sums.size(); ++i)
      out[i] = static_cast<T>(c.adds ? sums[i] + static_cast<C>(out[i]) : sums[i]);
  };
  const auto sum = [&](int64_t i) -> C& { return sums[static_cast<size_t>(i)]; };
  const int64_t planes = c.batch * c.groups, filters = c.groups * c.features * c.channels;
  switch (c.wanted) {
    case cuda::DnnWanted::small:
      return give(c.g, planes * c.features * volume(c.small),
                  [&](int64_t x, int64_t g, int64_t w) { sum(g) += value(c.x, x) * value(c.w, w); });
    case cuda::DnnWanted::large:
      return give(c.x, planes * c.channels * volume(c.large),
                  [&](int64_t x, int64_t g, int64_t w) { sum(x) += value(c.g, g) * value(c.w, w); });
    case cuda::DnnWanted::weight:
      return give(c.w, filters * volume(c.kernel),
                  [&](int64_t x, int64_t g, int64_t w) { sum(w) += value(c.x, x) * value(c.g, g); });
  }
}

inline void compute(const cuda::DnnConvolution& c) {
  switch (c.type) {
    case cuda::DnnType::f32: return compute<float, float>(c);
    case cuda::DnnType::f64: return compute<double, double>(c);
    case cuda::DnnType::f16: return compute<Half, float>(c);
    case cuda::DnnType::bf16: return compute<BFloat16, float>(c);
  }
}

}  // namespace plain_dnn

/// The calls of PlainDnn, and what it declines.
struct DnnLog {
  cuda::DnnConvolution last;
  int asked = 0, computed = 0;
  std::function<bool(const cuda::DnnConvolution&)> declines;
  bool fails = false;  // when all is prepared
};

class PlainDnn final : public cuda::Dnn {
 public:
  PlainDnn(cuda::HostDriver& driver, DnnLog& log) : driver_(driver), log_(log) {}

  std::string name() const override { return "plain"; }
  std::optional<int64_t> workspace(const cuda::DnnConvolution& c) override {
    ++log_.asked;
    REQUIRE(c.batch * c.groups * c.channels * c.features > 0);
    if (log_.declines && log_.declines(c)) return {};
    return kBytes;
  }
  bool convolve(const cuda::DnnConvolution& c, void* workspace, int64_t bytes, CUstream_st* stream) override {
    REQUIRE(workspace);
    REQUIRE(bytes == kBytes);
    for (const void* side : {c.x, c.g, c.w}) REQUIRE(reinterpret_cast<uintptr_t>(side) % kAlignment == 0);
    log_.last = c;
    if (log_.fails) return false;
    ++log_.computed;
    const auto run = [c, workspace] {
      std::memset(workspace, 0xff, kBytes);
      plain_dnn::compute(c);
    };
    if (driver_.captures(stream))
      driver_.capture(run);
    else
      run();
    return true;
  }

 private:
  static constexpr int64_t kBytes = 96;
  cuda::HostDriver& driver_;
  DnnLog& log_;
};

}  // namespace retrograd
