// See tests/ops/range/walk.h.
#include "tests/ops/range/walk.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "engine/autograd.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "tracer/function/compile.h"
#include "tracer/backward/compile_backward.h"

namespace range {
namespace {

struct Format {
  double unit, least, most;  // between 1 and the next number; the smallest normal and the largest number
  int exponents;             // of the powers of 2 that cotangents are made of
};

// 16-bit types are computed in float32. A derivative without a normal float32 number is not tested, even if a cotangent
// would bring it back into the range.
bool has_digits(double v) {
  return v == 0 || std::isnan(v) || (std::abs(v) >= 0x1p-124 && std::abs(v) <= 0x1p124);
}
Format format_of(rg::ScalarType dtype) {
  switch (dtype) {
    case rg::kFloat16: return {0x1p-10, 0x1p-14, 65504, 8};
    case rg::kBFloat16: return {0x1p-7, 0x1p-126, 0x1.fep127, 120};
    case rg::kFloat32: return {0x1p-23, 0x1p-126, 0x1.fffffep127, 120};
    default: return {0x1p-52, 0x1p-1022, std::numeric_limits<double>::max(), 1000};
  }
}

enum class Mode { eager, traced, compiled };
constexpr const char* kModes[] = {"eager", "traced", "compiled"};

struct Point {
  Tensors inputs;  // leaves
  Function f;
  Mode mode = Mode::eager;

  Tensor value() const {
    if (mode != Mode::compiled) return f(inputs);
    rg::FunctionCache function(rg::FunctionKind::function);
    return function.run([&](const Tensors& in) { return Tensors{f(in)}; }, inputs).at(0);
  }
  Tensors gradients(const Tensor& y, const Tensor& g, bool create_graph) const {
    if (mode == Mode::eager) return rg::autograd::grad({y}, inputs, {g}, {}, create_graph, true);
    return rg::compile_backward().grad({y}, inputs, {g}, {}, create_graph, true);
  }
};

std::vector<double> numbers(const Tensor& t) { return rg::to(t.detach(), rg::kFloat64).to_vector(); }

// 2^k near 1 / size for each position, or, for all positions together, numbers of different sizes and signs: the
// derivative of a softmax or a normalisation in the direction of ones is 0. Without sizes k is 0.
Tensor scale_for(const std::vector<std::vector<double>>& sizes, const Tensor& like, bool each, int most) {
  std::vector<double> scale(static_cast<size_t>(like.numel()), 1);
  double all = 0;
  std::vector<double> largest(scale.size(), 0);
  for (const auto& s : sizes)
    for (size_t i = 0; i < s.size(); ++i) {
      if (!std::isfinite(s[i])) continue;
      all = std::max(all, std::abs(s[i]));
      if (each) largest[i] = std::max(largest[i], std::abs(s[i]));
    }
  for (size_t i = 0; i < scale.size(); ++i) {
    const double size = each ? largest[i] : all;
    if (!each && scale.size() > 1) scale[i] = 0.25 * static_cast<double>((i * i + 1) % 7) - 0.625;
    if (size > 0) scale[i] *= std::ldexp(1.0, std::clamp(-std::ilogb(size), -most, most));
  }
  return rg::tensor(scale, like.sizes(), {rg::kFloat64});
}

class Comparison {
 public:
  Comparison(const Walk& walk, rg::ScalarType dtype, const Tensors& inputs)
      : walk_(walk),
        format_(format_of(dtype)),
        units_(dtype == rg::kFloat32 ? walk.float_units : walk.units) {
    for (const Tensor& x : inputs) inputs_.push_back(numbers(x));
  }

  /// `plain`: the same for cotangents and directions of 1, if there are any.
  void operator()(const std::string& what, const Tensor& got, const Tensor& want,
                  const Tensor& plain = {}) const {
    const std::vector<double> sizes = plain.defined() ? numbers(plain) : std::vector<double>();
    const std::vector<double> a = got.defined() ? numbers(got) : std::vector<double>(),
                              b = want.defined() ? numbers(want) : std::vector<double>();
    const size_t n = std::max(a.size(), b.size());
    double largest = 0;
    for (double v : b)
      if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
    if (!walk_.elementwise && !std::ranges::all_of(sizes, has_digits)) return;
    for (size_t i = 0; i < n; ++i) {
      if (i < sizes.size() && !has_digits(sizes[i])) continue;
      const double x = i < a.size() ? a[i] : 0, y = i < b.size() ? b[i] : 0;
      if (agree(x, y, walk_.elementwise ? 0 : largest)) continue;
      INFO(walk_.name << ", " << what << ", element " << i << place(i) << ": " << x << ", and in float64 "
                      << y);
      CHECK(agree(x, y, walk_.elementwise ? 0 : largest));
    }
  }

 private:
  bool agree(double got, double want, double largest) const {
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
    if (got == want) return true;
    if (std::abs(want) > format_.most * (1 - 4 * format_.unit))
      return std::isinf(got) || std::abs(got) > 0.9 * format_.most;
    // A result below the range may be 0.
    return std::abs(got - want) <=
           units_ * format_.unit * std::abs(want) + format_.least + 4 * format_.unit * largest;
  }
  std::string place(size_t i) const {
    std::string text;
    for (const auto& x : inputs_)
      for (size_t k = 0; k < x.size(); ++k)
        if (!walk_.elementwise || k == i) text += (text.empty() ? " at " : ", ") + std::to_string(x[k]);
    return text;
  }

  const Walk& walk_;
  Format format_;
  double units_;
  std::vector<std::vector<double>> inputs_;
};

struct Results {
  Tensor value, tangent;
  Tensors first, second;
};

Tensor like(const Tensor& wide, const Tensor& x) { return rg::to(wide, x.dtype()); }

// With cotangents g, directions v for the gradients, and tangents t.
struct Directions {
  Tensor g;
  Tensors v, t;
};

Results derivatives(const Point& p, const Directions& d, bool first, bool second) {
  Results r;
  const Tensor y = p.value();
  r.value = y.detach();
  if (!first || !y.requires_grad()) return r;
  r.first = p.gradients(y, like(d.g, y), second);
  if (p.mode == Mode::eager) {
    Tensors tangents;
    for (size_t i = 0; i < p.inputs.size(); ++i) tangents.push_back(like(d.t[i], p.inputs[i]));
    r.tangent = rg::autograd::jvp([&](const Tensors& x) { return Tensors{p.f(x)}; }, p.inputs, tangents)
                    .tangents.at(0);
  }
  if (!second) return r;
  Tensors roots, weights;
  for (size_t i = 0; i < r.first.size(); ++i)
    if (r.first[i].defined() && r.first[i].requires_grad()) {
      roots.push_back(r.first[i]);
      weights.push_back(like(d.v[i], r.first[i]));
    }
  r.second = roots.empty() ? Tensors(p.inputs.size())
                           : rg::autograd::grad(roots, p.inputs, weights, {}, false, true);
  return r;
}

std::vector<std::vector<double>> sizes_of(const Tensors& all) {
  std::vector<std::vector<double>> sizes;
  for (const Tensor& t : all)
    if (t.defined()) sizes.push_back(numbers(t));
  return sizes;
}

void check_at(const Walk& walk, rg::ScalarType dtype, const std::vector<Numbers>& inputs) {
  const Format format = format_of(dtype);
  Point wide{{}, walk.f};
  Tensors narrow;
  for (const Numbers& x : inputs) {
    const Tensor rounded = rg::to(rg::tensor(x, {static_cast<int64_t>(x.size())}, {rg::kFloat64}), dtype);
    narrow.push_back(rounded.detach().requires_grad_());
    wide.inputs.push_back(rg::to(rounded, rg::kFloat64).detach().requires_grad_());
  }
  const bool is_saved =
      !walk.saves_result || std::ranges::all_of(numbers(walk.f(wide.inputs)), [&](double v) {
        return v == 0 || (std::abs(v) >= format.least && std::abs(v) <= format.most);
      });
  const bool first = is_saved && walk.excused_first.empty(), second = first && walk.excused_second.empty();
  // Once unscaled, to see how large the derivatives are, then with what brings them near 1.
  Directions d{scale_for({}, walk.f(wide.inputs), walk.elementwise, 0), {}, {}};
  for (const Tensor& x : wide.inputs)
    d.v.push_back(scale_for({}, x, walk.elementwise, 0)), d.t.push_back(d.v.back());
  const Results unscaled = derivatives(wide, d, first, second);
  d.g = scale_for(sizes_of(unscaled.first), d.g, walk.elementwise, format.exponents);
  const Results scaled = derivatives(wide, d, first, second);
  for (size_t i = 0; i < d.v.size(); ++i) {
    d.v[i] = scale_for(sizes_of(scaled.second), d.v[i], walk.elementwise, format.exponents / 2);
    d.t[i] = scale_for(sizes_of({unscaled.tangent}), d.t[i], walk.elementwise, format.exponents);
  }
  const Results want = derivatives(wide, d, first, second);
  const Comparison compare(walk, dtype, narrow);
  for (const Mode mode : {Mode::eager, Mode::traced, Mode::compiled}) {
    INFO(rg::name(dtype) << ", " << kModes[static_cast<int>(mode)]);
    const Results got = derivatives({narrow, walk.f, mode}, d, first, second && mode == Mode::eager);
    compare("value", got.value, want.value);
    for (size_t i = 0; i < got.first.size(); ++i)
      compare("gradient " + std::to_string(i), got.first[i], want.first[i], unscaled.first[i]);
    if (mode != Mode::eager || !first) continue;
    compare("tangent", got.tangent, want.tangent, unscaled.tangent);
    for (size_t i = 0; i < got.second.size(); ++i)
      compare("second derivative " + std::to_string(i), got.second[i], want.second[i], unscaled.second[i]);
  }
}

}  // namespace

Numbers positive_powers(int least, int most, double m) {
  Numbers x;
  for (int k = least; k <= most; ++k) x.push_back(m * std::pow(10.0, k));
  return x;
}

Numbers powers(int least, int most, double m) {
  Numbers x = positive_powers(least, most, m);
  const size_t n = x.size();
  for (size_t i = 0; i < n; ++i) x.push_back(-x[i]);
  return x;
}

Numbers each(const Numbers& x, const std::function<double(double)>& f) {
  Numbers y;
  for (double v : x) y.push_back(f(v));
  return y;
}

void check(const Walk& walk) {
  for (const rg::ScalarType dtype : walk.dtypes) {
    const Format format = format_of(dtype);
    const auto fits = [&](double v) {
      return v == 0 || (std::abs(v) <= format.most && std::abs(v) >= format.least);
    };
    if (!walk.elementwise) {
      for (const int scale : walk.scales) {
        std::vector<Numbers> inputs;
        for (const Numbers& x : walk.inputs)
          inputs.push_back(each(x, [&](double v) { return v * std::pow(10.0, scale); }));
        const bool all =
            std::ranges::all_of(inputs, [&](const Numbers& x) { return std::ranges::all_of(x, fits); });
        if (all) check_at(walk, dtype, inputs);
      }
      continue;
    }
    std::vector<Numbers> inputs(walk.inputs.size());
    for (size_t i = 0; i < walk.inputs[0].size(); ++i) {
      if (!std::ranges::all_of(walk.inputs, [&](const Numbers& x) { return fits(x[i]); })) continue;
      for (size_t k = 0; k < inputs.size(); ++k) inputs[k].push_back(walk.inputs[k][i]);
    }
    check_at(walk, dtype, inputs);
  }
}

}  // namespace range
