// Values and gradients of ops at the edges of their domains, compared with PyTorch's.
//
// The tables hold, for each function, inputs, the value there and the gradient for a cotangent of ones. The numbers
// were computed with PyTorch 2.15 on the CPU. NaN equals NaN; the sign of zero does not count. Each row runs eagerly,
// with a captured backward, and as a compiled function.
//
// If PyTorch's own numbers are wrong, the table has the right ones: for numbers whose squares are out of range in
// asinh, acosh, atan2, norms, std and normalisations; atan2 at infinity; prod with NaN and infinity; gelu below -8 and
// its derivative at 1e200; hardswish of 1e308; binary cross entropy with logits at infinity; the second derivative of
// softplus at 19. If an operand is infinite, the gradient of logsumexp is NaN, like that of softmax.
//
// Omitted, since the gradient here is right and PyTorch's is not: trigamma at its poles (inf), softsign and mish at
// infinity (0 and 1), acosh below -1 (not a number), logsigmoid 40 above 0 (not yet 0), a cumprod before a NaN or an
// infinity, products and norms that overflow or vanish only in intermediate results. Omitted as too rare: prod of an
// infinity and a zero, where the gradient of the infinity is 0 in PyTorch and NaN here.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ops/creation.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "tracer/function/compile.h"
#include "tracer/backward/compile_backward.h"

namespace edges {
namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

inline constexpr double inf = std::numeric_limits<double>::infinity(),
                        nan = std::numeric_limits<double>::quiet_NaN();

struct UnaryPoint {
  double x, value, gradient;
};
struct UnaryEdges {
  const char* name;
  std::function<Tensor(const Tensor&)> f;
  std::vector<UnaryPoint> points;
};

struct BinaryPoint {
  double a, b, value, by_a, by_b;
};
struct BinaryEdges {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> f;
  std::vector<BinaryPoint> points;
};

// Numbers separated by commas: a vector, the elements of the value, the gradient.
struct ListPoint {
  const char *x, *value, *gradient;
};
struct ListEdges {
  const char* name;
  std::function<Tensor(const Tensor&)> f;
  std::vector<ListPoint> points;
};

inline bool agree(double got, double want, double tolerance) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (got == want) return true;
  // Numbers that are not normal have fewer digits.
  const double smallest = tolerance > 1e-8 ? 1e-37 : 1e-307;
  return std::isfinite(got) && std::isfinite(want) &&
         std::abs(got - want) <= tolerance * std::abs(want) + smallest;
}

inline void check_numbers(const char* what, const std::vector<double>& got, const std::vector<double>& want,
                          double tolerance) {
  INFO(what);
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    INFO("element " << i << " is " << got[i] << ", PyTorch has " << want[i]);
    CHECK(agree(got[i], want[i], tolerance));
  }
}

/// One row: f at x, and the gradients of all x, concatenated.
inline void check_point(const std::function<Tensor(const Tensors&)>& f, const Tensors& x,
                        const std::vector<double>& value, const std::vector<double>& gradient,
                        double tolerance, rg::CompiledBackward& compiled) {
  rg::FunctionCache function(rg::FunctionKind::function);
  for (const std::string mode : {"eager", "traced", "compiled"}) {
    INFO(mode);
    const bool traced = mode != "eager";
    const Tensor y =
        mode == "compiled" ? function.run([&](const Tensors& in) { return Tensors{f(in)}; }, x).at(0) : f(x);
    check_numbers("the value", y.detach().to_vector(), value, tolerance);
    Tensors found(x.size());
    if (y.requires_grad()) {
      const Tensor root = rg::sum(y);
      found = traced ? compiled.grad({root}, x, {}, {}, false, true)
                     : rg::autograd::grad({root}, x, {}, {}, false, true);
    }
    std::vector<double> numbers;
    for (size_t i = 0; i < x.size(); ++i) {
      const std::vector<double> part =
          found[i].defined() ? found[i].to_vector() : std::vector<double>(static_cast<size_t>(x[i].numel()));
      numbers.insert(numbers.end(), part.begin(), part.end());
    }
    check_numbers("the gradient", numbers, gradient, tolerance);
  }
}

inline void check_unary(const std::vector<UnaryEdges>& table, rg::ScalarType dtype, double tolerance) {
  rg::CompiledBackward compiled = rg::compile_backward();
  for (const UnaryEdges& row : table)
    for (const UnaryPoint& p : row.points) {
      INFO(row.name << " at " << p.x);
      const Tensor x = rg::tensor({p.x}, {}, {dtype}).requires_grad_();
      check_point([&](const Tensors& in) { return row.f(in[0]); }, {x}, {p.value}, {p.gradient}, tolerance,
                  compiled);
    }
}

inline void check_binary(const std::vector<BinaryEdges>& table) {
  rg::CompiledBackward compiled = rg::compile_backward();
  for (const BinaryEdges& row : table)
    for (const BinaryPoint& p : row.points) {
      INFO(row.name << " at " << p.a << ", " << p.b);
      const Tensor a = rg::tensor({p.a}, {}, {rg::kFloat64}).requires_grad_(),
                   b = rg::tensor({p.b}, {}, {rg::kFloat64}).requires_grad_();
      check_point([&](const Tensors& in) { return row.f(in[0], in[1]); }, {a, b}, {p.value}, {p.by_a, p.by_b},
                  1e-9, compiled);
    }
}

inline std::vector<double> parse(const char* text) {
  std::vector<double> numbers;
  for (char* end = nullptr; *text; text = *end ? end + 1 : end) numbers.push_back(std::strtod(text, &end));
  return numbers;
}

inline void check_list(const std::vector<ListEdges>& table) {
  rg::CompiledBackward compiled = rg::compile_backward();
  for (const ListEdges& row : table)
    for (const ListPoint& p : row.points) {
      INFO(row.name << " of [" << p.x << "]");
      const std::vector<double> values = parse(p.x);
      const Tensor x =
          rg::tensor(values, {static_cast<int64_t>(values.size())}, {rg::kFloat64}).requires_grad_();
      check_point([&](const Tensors& in) { return row.f(in[0]); }, {x}, parse(p.value), parse(p.gradient),
                  1e-9, compiled);
    }
}

}  // namespace edges
