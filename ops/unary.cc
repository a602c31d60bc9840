// Derivatives of ops/unary.h (PyTorch: derivatives.yaml), and nan_to_num.
#include "ops/unary.h"

#include <limits>
#include <numbers>

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/ternary.h"

namespace retrograd {
namespace ops {
namespace {

constexpr double kLn2 = std::numbers::ln2, kLn10 = std::numbers::ln10,
                 kTwoOverRootPi = 2 * std::numbers::inv_sqrtpi;

}  // namespace

Tensor Abs::chain(const Point& p, int, const Tensor& t) { return t * sign(p.in(0)); }
Tensor Square::chain(const Point& p, int, const Tensor& t) { return t * (p.in(0) * 2); }
Tensor Exp::chain(const Point& p, int, const Tensor& t) { return t * p.out(); }
Tensor Exp2::chain(const Point& p, int, const Tensor& t) { return t * (p.out() * kLn2); }
Tensor Expm1::chain(const Point& p, int, const Tensor& t) { return t * (p.out() + 1); }
Tensor Log::chain(const Point& p, int, const Tensor& t) { return t / p.in(0); }
Tensor Log2::chain(const Point& p, int, const Tensor& t) { return t / (p.in(0) * kLn2); }
Tensor Log10::chain(const Point& p, int, const Tensor& t) { return t / (p.in(0) * kLn10); }
Tensor Log1p::chain(const Point& p, int, const Tensor& t) { return t / (p.in(0) + 1); }
Tensor Sqrt::chain(const Point& p, int, const Tensor& t) { return t / (p.out() * 2); }
Tensor Rsqrt::chain(const Point& p, int, const Tensor& t) { return t * (pow(p.out(), 3) * -0.5); }
Tensor Reciprocal::chain(const Point& p, int, const Tensor& t) { return t * -square(p.out()); }
Tensor Sin::chain(const Point& p, int, const Tensor& t) { return t * cos(p.in(0)); }
Tensor Cos::chain(const Point& p, int, const Tensor& t) { return t * -sin(p.in(0)); }
Tensor Tan::chain(const Point& p, int, const Tensor& t) { return t * (square(p.out()) + 1); }
Tensor Asin::chain(const Point& p, int, const Tensor& t) { return t * rsqrt(1 - square(p.in(0))); }
Tensor Acos::chain(const Point& p, int, const Tensor& t) { return t * -rsqrt(1 - square(p.in(0))); }
Tensor Atan::chain(const Point& p, int, const Tensor& t) { return t / (square(p.in(0)) + 1); }
Tensor Sinh::chain(const Point& p, int, const Tensor& t) { return t * cosh(p.in(0)); }
Tensor Cosh::chain(const Point& p, int, const Tensor& t) { return t * sinh(p.in(0)); }
Tensor Asinh::chain(const Point& p, int, const Tensor& t) { return t * rsqrt(square(p.in(0)) + 1); }
Tensor Acosh::chain(const Point& p, int, const Tensor& t) { return t * rsqrt(square(p.in(0)) - 1); }
Tensor Atanh::chain(const Point& p, int, const Tensor& t) { return t / (1 - square(p.in(0))); }
Tensor Erf::chain(const Point& p, int, const Tensor& t) {
  return t * (exp(-square(p.in(0))) * kTwoOverRootPi);
}
Tensor Erfc::chain(const Point& p, int, const Tensor& t) {
  return t * (exp(-square(p.in(0))) * -kTwoOverRootPi);
}
Tensor Erfinv::chain(const Point& p, int, const Tensor& t) {
  return t * (exp(square(erfinv(p.in(0)))) * (1 / kTwoOverRootPi));
}
Tensor Lgamma::chain(const Point& p, int, const Tensor& t) { return t * digamma(p.in(0)); }

Tensor Digamma::chain(const Point& p, int, const Tensor& t) {
  return t * emit<Polygamma>({p.in(0).tensor().get()}, {1}, p.where());
}

Tensor Polygamma::chain(const Point& p, int, const Tensor& t) {
  return t * emit<Polygamma>({p.in(0).tensor().get()}, {p.attrs<Attrs>().n + 1}, p.where());
}

Tensor PowScalar::chain(const Point& p, int, const Tensor& t) {
  const Attrs& a = p.attrs<Attrs>();
  return t *
         emit<PowScalar>({p.in(0).tensor().get()}, {a.exponent - 1, a.coefficient * a.exponent}, p.where());
}

Tensor NanToNum::chain(const Point& p, int, const Tensor& t) { return where(isfinite(p.in(0)), t, 0); }

}  // namespace ops

namespace {

// The largest finite number of a dtype; integers have no infinities to replace.
double largest(ScalarType dtype) {
  switch (dtype) {
    case kFloat64: return std::numeric_limits<double>::max();
    case kFloat32: return static_cast<double>(std::numeric_limits<float>::max());
    case kFloat16: return 65504;
    case kBFloat16: return 0x1.fep127;
    default: return 0;
  }
}

}  // namespace

Tensor nan_to_num(Operand x, Scalar nan, std::optional<Scalar> posinf, std::optional<Scalar> neginf) {
  const double limit = largest(x.tensor().dtype());
  return ops::Function<ops::NanToNum>()(x, nan, posinf.value_or(limit), neginf.value_or(-limit));
}

}  // namespace retrograd
