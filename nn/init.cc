// See nn/init.h.
#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "engine/emitter.h"
#include "ops/arithmetic.h"
#include "ops/creation.h"
#include "ops/factorizations.h"
#include "ops/indexing.h"
#include "ops/operators.h"
#include "ops/random_ops.h"
#include "ops/shape_ops.h"
#include "ops/sort.h"
#include "ops/views.h"
#include "ops/widened.h"

namespace retrograd::inline v0::nn::init {

const Tensor& uniform_(const Tensor& x, double low, double high, SourceLocation where) {
  fill_uniform(x, low, high, where);
  return x;
}
const Tensor& normal_(const Tensor& x, double mean, double std, SourceLocation where) {
  fill_normal(x, mean, std, where);
  return x;
}

// By the inverse of the distribution's function, as PyTorch does; 16-bit formats are rounded once.
const Tensor& trunc_normal_(const Tensor& x, double mean, double std, double a, double b,
                            SourceLocation where) {
  if (!(std > 0) || !(a < b))
    fail(Category::bad_argument, "trunc_normal_",
         fmt::format("a deviation of {} between {} and {}: it is positive, and a < b", std, a, b), where);
  const NoGradGuard no_grad;
  const auto below = [&](double bound) { return std::erf((bound - mean) / std / std::numbers::sqrt2); };
  const Tensor y = ops::Widened(x)(empty_like(x));
  fill_uniform(y, below(a), below(b), where);
  y.erfinv_(where).mul_(std * std::numbers::sqrt2, where).add_(mean, 1, where).clamp_(a, b, where);
  return x.copy_(y, where);
}

const Tensor& constant_(const Tensor& x, double value, SourceLocation where) {
  const NoGradGuard no_grad;
  return x.fill_(value, where);
}
const Tensor& zeros_(const Tensor& x, SourceLocation where) { return constant_(x, 0, where); }
const Tensor& ones_(const Tensor& x, SourceLocation where) { return constant_(x, 1, where); }

static void require_matrix(const Tensor& x, std::string_view op, SourceLocation where) {
  if (x.dim() != 2) fail(Category::bad_dim, op, "a matrix is needed, this is " + describe(x), where);
}

const Tensor& eye_(const Tensor& x, SourceLocation where) {
  require_matrix(x, "eye_", where);
  const NoGradGuard no_grad;
  return x.copy_(eye(x.size(0), Dim(x.size(1)), {x.dtype(), x.device()}), where);
}

const Tensor& dirac_(const Tensor& x, int64_t groups, SourceLocation where) {
  if (x.dim() < 3 || x.dim() > 5)
    fail(Category::bad_dim, "dirac_", "three to five dims are needed, this is " + describe(x), where);
  if (groups < 1 || x.size(0) % groups != 0)
    fail(Category::bad_argument, "dirac_", fmt::format("{} groups of {} channels", groups, x.size(0)), where);
  const NoGradGuard no_grad;
  x.zero_(where);
  const int64_t outputs = x.size(0) / groups;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < std::min(outputs, x.size(1)); ++i) {
      Tensor kernel = x.select(0, g * outputs + i).select(0, i);
      while (kernel.dim() > 0) kernel = kernel.select(0, kernel.size(0) / 2);
      kernel.fill_(1, where);
    }
  return x;
}

const Tensor& orthogonal_(const Tensor& x, double gain, SourceLocation where) {
  if (x.dim() < 2)
    fail(Category::bad_dim, "orthogonal_", "at least two dims are needed, this is " + describe(x), where);
  if (x.numel() == 0) return x;
  const NoGradGuard no_grad;
  const CallScope scope(where);
  const int64_t rows = x.size(0), columns = x.numel() / rows;
  const Tensor normal =
      ops::Widened(x)(empty({std::max(rows, columns), std::min(rows, columns)}, {x.dtype(), x.device()}));
  fill_normal(normal, 0, 1, where);
  const auto factors = linalg::qr(normal);
  const Tensor q = factors.Q * diagonal(factors.R).sign();  // so that q is uniform
  return x.copy_((rows < columns ? q.t() : q).reshape(x.sizes()) * gain, where);
}

const Tensor& sparse_(const Tensor& x, double sparsity, double std, SourceLocation where) {
  require_matrix(x, "sparse_", where);
  if (!(sparsity >= 0 && sparsity <= 1))
    fail(Category::bad_argument, "sparse_", fmt::format("a sparsity of {}: it is in [0, 1]", sparsity),
         where);
  const NoGradGuard no_grad;
  const int64_t zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(x.size(0))));
  fill_normal(x, 0, std, where);
  const Tensor order =
      argsort(rand({x.size(0), x.size(1)}, {kFloat32, x.device()}), 0);  // random, in each column
  return x.scatter_(0, order.narrow(0, 0, zeros), 0.0, where);
}

Fans fans(const Tensor& weight, SourceLocation where) {
  if (weight.dim() < 2)
    fail(Category::bad_dim, "fans", "a weight of at least two dims is needed, this is " + describe(weight),
         where);
  int64_t kernel = 1;
  for (int64_t d = 2; d < weight.dim(); ++d) kernel *= weight.size(d);
  return {weight.size(1) * kernel, weight.size(0) * kernel};
}

double calculate_gain(std::string_view nonlinearity, double param, SourceLocation where) {
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::numbers::sqrt2;
  if (nonlinearity == "leaky_relu") return std::sqrt(2 / (1 + param * param));
  if (nonlinearity == "selu") return 0.75;
  for (const char* linear : {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                             "conv_transpose3d", "sigmoid"})
    if (nonlinearity == linear) return 1;
  fail(Category::bad_argument, "calculate_gain", fmt::format("the nonlinearity \"{}\"", nonlinearity), where);
}

static double kaiming_deviation(const Tensor& weight, double a, std::string_view mode,
                                std::string_view nonlinearity, SourceLocation where) {
  if (mode != "fan_in" && mode != "fan_out")
    fail(Category::bad_argument, "kaiming", fmt::format("the mode \"{}\", which is fan_in or fan_out", mode),
         where);
  const Fans f = fans(weight, where);
  return calculate_gain(nonlinearity, a, where) /
         std::sqrt(static_cast<double>(mode == "fan_in" ? f.in : f.out));
}

static double xavier_deviation(const Tensor& weight, double gain, SourceLocation where) {
  const Fans f = fans(weight, where);
  return gain * std::sqrt(2 / static_cast<double>(f.in + f.out));
}

// A uniform distribution of this deviation.
static const Tensor& spread_(const Tensor& x, double deviation, SourceLocation where) {
  const double bound = std::numbers::sqrt3 * deviation;
  return x.numel() == 0 ? x : uniform_(x, -bound, bound, where);
}

const Tensor& kaiming_uniform_(const Tensor& weight, double a, std::string_view mode,
                               std::string_view nonlinearity, SourceLocation where) {
  return spread_(weight, kaiming_deviation(weight, a, mode, nonlinearity, where), where);
}
const Tensor& kaiming_normal_(const Tensor& weight, double a, std::string_view mode,
                              std::string_view nonlinearity, SourceLocation where) {
  const double deviation = kaiming_deviation(weight, a, mode, nonlinearity, where);
  return weight.numel() == 0 ? weight : normal_(weight, 0, deviation, where);
}
const Tensor& xavier_uniform_(const Tensor& weight, double gain, SourceLocation where) {
  return spread_(weight, xavier_deviation(weight, gain, where), where);
}
const Tensor& xavier_normal_(const Tensor& weight, double gain, SourceLocation where) {
  const double deviation = xavier_deviation(weight, gain, where);
  return weight.numel() == 0 ? weight : normal_(weight, 0, deviation, where);
}

}  // namespace retrograd::nn::init
