// See optim/adam8bit.h.
#include "optim/adam8bit.h"

#include <cmath>

#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/rearrange.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"

namespace retrograd::inline v0::optim {
namespace {

constexpr int64_t kBlock = 256, kLeastCoded = 4096;
constexpr double kZeroOfSigned = 127, kLeastLargest = 0x1p-126;
constexpr int kDecades = 7;
struct Adam8bitState {
  enum : size_t { exp_avg, exp_avg_sq, largest };  // then that of exp_avg_sq
};
struct Adam8bitFactor {
  enum : size_t { fresh1, beta2, fresh2, size, scale2, eps, decay, keep };
};

bool is_coded(const Tensor& param) { return param.numel() >= kLeastCoded; }

// The values of a map that are at least 0: place 0 is 0; decade d = 0 to 6, up to 10^(d - 6), has parts * 2^d places;
// the last place, 255 or 128, is 1.
struct Magnitudes {
  int parts;

  int last() const { return parts * ((1 << kDecades) - 1) + 1; }

  Tensor values(const Tensor& places) const {
    // parts - 1 makes the first place of decade d parts * 2^d. A quarter keeps log2 off whole numbers.
    const Tensor shifted = maximum(places, 1) + (parts - 1);
    const Tensor decade = floor(log2((shifted + 0.25) / parts)), count = round(exp2(decade)) * parts;
    const Tensor part = (shifted - count + 0.5) / count;
    const Tensor value = pow(10.0, decade - (kDecades - 1)) * (part * 0.9 + 0.1);
    return where(gt(places, 0), minimum(value, 1), 0);
  }

  // The nearest, of 0 <= x <= 1; of nan 0.
  Tensor places(const Tensor& x) const {
    const Tensor decade = clamp(floor(log10(x)) + kDecades, 0, kDecades - 1);
    const Tensor count = round(exp2(decade)) * parts, scaled = x * pow(10.0, (kDecades - 1) - decade);
    const Tensor part = minimum(maximum(floor((scaled - 0.1) / 0.9 * count), 0), count - 1);
    // Half way from the last value of the decade before, 0.1 - 0.09 / count, to the first, 0.1 + 0.45 / count.
    const Tensor place = where(lt(scaled, 0.18 / count + 0.1), count - parts, part + count - (parts - 1));
    const double of_least = std::pow(10, 1 - kDecades) * (0.1 + 0.45 / parts) / 2;
    const double of_one = 1 - 0.225 / (parts << (kDecades - 1));
    return where(gt(x, of_one), last(), where(ge(x, of_least), maximum(place, 1), 0));
  }
};
constexpr Magnitudes kSigned{1}, kUnsigned{2};

struct Coded {
  Tensor codes, largest;
};

Coded coded(const Tensor& x, bool has_sign) {
  const Tensor size = has_sign ? abs(x) : x, largest = maximum(amax(size, {1}, true), kLeastLargest);
  if (!has_sign) return {kUnsigned.places(size / largest).to(kUInt8), largest};
  const Tensor places = kSigned.places(size / largest);
  const Tensor down = minimum(places, kZeroOfSigned);  // there is no -1
  return {(where(lt(x, 0), -down, places) + kZeroOfSigned).to(kUInt8), largest};
}

Tensor decoded(const Coded& c, bool has_sign) {
  const Tensor codes = c.codes.to(c.largest.dtype());
  if (!has_sign) return kUnsigned.values(codes) * c.largest;
  const Tensor places = codes - kZeroOfSigned;
  return kSigned.values(abs(places)) * sign(places) * c.largest;
}

// The moments of a parameter, and tensors of its sizes in the moments' shape.
class Moments {
 public:
  explicit Moments(const detail::ParamUpdate& u) : u_(u), is_coded_(is_coded(u.param)) {}

  Tensor moment(size_t state) const {
    const Tensor& s = u_.states[state];
    return is_coded_ ? decoded({s, u_.states[Adam8bitState::largest + state]}, has_sign(state)) : s;
  }
  // As it is kept.
  Coded kept(size_t state, const Tensor& moment) const {
    return is_coded_ ? coded(moment, has_sign(state)) : Coded{moment, {}};
  }
  void set(size_t state, const Coded& next) const {
    u_.set(u_.states[state], next.codes);
    if (is_coded_) u_.set(u_.states[Adam8bitState::largest + state], next.largest);
  }
  Tensor blocks_of(const Tensor& x) const {
    if (!is_coded_) return x;
    const int64_t n = x.numel(), rest = (kBlock - n % kBlock) % kBlock;
    const Tensor flat = x.reshape({n});
    return (rest > 0 ? pad(flat, {0, rest}) : flat).reshape({(n + rest) / kBlock, kBlock});
  }
  Tensor without_blocks(const Tensor& x) const {
    const Tensor& p = u_.param;
    return is_coded_ ? narrow(x.reshape({x.numel()}), 0, 0, p.numel()).reshape(p.sizes()) : x;
  }

 private:
  static bool has_sign(size_t state) { return state == Adam8bitState::exp_avg; }

  const detail::ParamUpdate& u_;
  bool is_coded_;
};

void step_8bit(const detail::ParamUpdate& u, bool decays) {
  const auto& f = u.factors;
  const Moments moments(u);
  const Tensor before = moments.moment(Adam8bitState::exp_avg), param = u.param.to(before.dtype());
  Tensor g = u.grad.to(before.dtype());
  if (decays) g = g + param * f[Adam8bitFactor::decay];
  g = moments.blocks_of(g);
  const Tensor exp_avg = before + (g - before) * f[Adam8bitFactor::fresh1];
  const Tensor exp_avg_sq = moments.moment(Adam8bitState::exp_avg_sq) * f[Adam8bitFactor::beta2] +
                            square(g) * f[Adam8bitFactor::fresh2];
  const Tensor change = exp_avg / (sqrt(exp_avg_sq) * f[Adam8bitFactor::scale2] + f[Adam8bitFactor::eps]);
  const Tensor next =
      param * f[Adam8bitFactor::keep] - moments.without_blocks(change) * f[Adam8bitFactor::size];
  const Coded kept = moments.kept(Adam8bitState::exp_avg, exp_avg),
              kept_sq = moments.kept(Adam8bitState::exp_avg_sq, exp_avg_sq);
  moments.set(Adam8bitState::exp_avg, kept);
  moments.set(Adam8bitState::exp_avg_sq, kept_sq);
  u.set(u.param, next);
  u.done();
}

}  // namespace

ScalarType Adam8bitFormula::state_dtype(size_t state, const Tensor& param, ScalarType dtype) {
  if (is_coded(param) && state < Adam8bitState::largest) return kUInt8;
  return element_size(dtype) < 4 ? kFloat32 : dtype;
}

Tensor Adam8bitFormula::make_state(size_t state, const Tensor& param, ScalarType dtype) {
  const bool is_largest = state >= Adam8bitState::largest;
  const TensorOptions like{dtype, param.device()};
  if (!is_coded(param)) return is_largest ? Tensor() : zeros(param.sizes(), like);
  const int64_t blocks = (param.numel() + kBlock - 1) / kBlock;
  if (is_largest) return zeros({blocks, 1}, like);
  return full({blocks, kBlock}, state == Adam8bitState::exp_avg ? kZeroOfSigned : 0, like);
}

void Adam8bitFormula::factors_of(double lr, const std::array<double, 2>& betas, double eps, double decay,
                                 double keep, double step, double* f) {
  f[Adam8bitFactor::fresh1] = 1 - betas[0];
  f[Adam8bitFactor::beta2] = betas[1];
  f[Adam8bitFactor::fresh2] = 1 - betas[1];
  f[Adam8bitFactor::size] = lr / (1 - std::pow(betas[0], step));
  f[Adam8bitFactor::scale2] = 1 / std::sqrt(1 - std::pow(betas[1], step));
  f[Adam8bitFactor::eps] = eps;
  f[Adam8bitFactor::decay] = decay;
  f[Adam8bitFactor::keep] = keep;
}

void Adam8bitFormula::update(std::span<const detail::ParamUpdate> updates, SourceLocation) {
  for (const detail::ParamUpdate& u : updates) step_8bit(u, u.structure[0]);
}

}  // namespace retrograd::optim
