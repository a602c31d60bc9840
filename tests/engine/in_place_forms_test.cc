// Every in-place form: it writes what the function of its name gives, into the same memory, through views too, keeps the
// dtype, raises the version, and passes gradients on as the function does.
// Not tested here: what all in-place ops have in common (tests/engine/inplace_test.cc).
#include "engine/autograd.h"
#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/bitwise.h"
#include "ops/comparison.h"
#include "ops/composed.h"
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/float_ops.h"
#include "ops/in_place.h"
#include "ops/index_functions.h"
#include "ops/index_ops.h"
#include "ops/indexing.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/products.h"
#include "ops/rearrange.h"
#include "ops/reduce.h"
#include "ops/scan.h"
#include "ops/scatter_reduce.h"
#include "ops/special.h"
#include "ops/statistics.h"
#include "ops/ternary.h"
#include "ops/unary.h"
#include "ops/views.h"
#include "tests/errors.h"
#include "tests/same_bits.h"
#include "tracer/backward/compile_backward.h"
#include "tracer/function/compile.h"

namespace retrograd {
namespace {

using testing::same_bits;

struct Form {
  const char* name;
  std::function<const Tensor&(const Tensor&)> write;
  std::function<Tensor(const Tensor&)> value;
};

Tensor fixed(const Shape& shape, double from = 0.2) {
  return (arange(0, shape.numel().value(), 1, {kFloat64}) * 0.07 + from).view(shape);
}

const Tensor kOther = fixed({3, 3}, 0.35), kFlags = gt(fixed({3, 3}), 0.4), kRows = tensor({2, 0}),
             kCells = tensor({2, 0, 1, 1, 2, 0}).view({2, 3});

#define RG_DEFAULT(...) = __VA_ARGS__
#define RG_NONE(...)
#define RG_FORM(NAME, ...)                                                  \
  {#NAME "_", [](const Tensor& x) -> const Tensor& { return x.NAME##_(); }, \
   [](const Tensor& x) { return NAME(x); }},
#define RG_CALL(NAME, ...)                                                             \
  {#NAME "_", [](const Tensor& x) -> const Tensor& { return x.NAME##_(__VA_ARGS__); }, \
   [](const Tensor& x) { return NAME(x __VA_OPT__(, ) __VA_ARGS__); }},

// Of a 3 by 3 matrix of numbers between 0 and 1, or of those plus 1 where a function begins at 1.
std::vector<Form> forms() {
  return {
      RG_UNARY_METHODS(RG_NONE, RG_FORM, RG_FORM)                                            //
      RG_CALL(add, kOther) RG_CALL(add, kOther, 2) RG_CALL(add, 3)                           //
      RG_CALL(sub, kOther) RG_CALL(sub, kOther, 2) RG_CALL(mul, kOther)                      //
      RG_CALL(div, kOther) RG_CALL(div, kOther, "floor") RG_CALL(pow, 2.5)                   //
      RG_CALL(pow, kOther) RG_CALL(atan2, kOther) RG_CALL(hypot, kOther)                     //
      RG_CALL(fmod, kOther) RG_CALL(remainder, kOther) RG_CALL(eq, kOther)                   //
      RG_CALL(ne, kOther) RG_CALL(lt, kOther) RG_CALL(le, kOther)                            //
      RG_CALL(gt, kOther) RG_CALL(ge, 0.5) RG_CALL(logical_and, kOther)                      //
      RG_CALL(logical_or, kOther) RG_CALL(logical_xor, kOther)                               //
      RG_CALL(threshold, 0.5, 0.1) RG_CALL(lerp, kOther, 0.3)                                //
      RG_CALL(addcmul, kOther, kOther, 2) RG_CALL(addcdiv, kOther, kOther, 2)                //
      RG_CALL(cumsum, 1) RG_CALL(cumprod, 0) RG_CALL(tril) RG_CALL(triu, 1)                  //
      RG_CALL(scatter, 0, kCells, kOther) RG_CALL(scatter, 0, kCells, 0.5)                   //
      RG_CALL(scatter_add, 0, kCells, kOther)                                                //
      RG_CALL(index_add, 0, kRows, kOther.narrow(0, 0, 2), 2)                                //
      RG_CALL(index_copy, 0, kRows, kOther.narrow(0, 0, 2))                                  //
      RG_CALL(masked_fill, kFlags, 0.5) RG_CALL(masked_scatter, kFlags, kOther)              //
      RG_CALL(addmm, kOther, kOther, 2, 3)                                                   //
      RG_CALL(sgn) RG_CALL(sinc) RG_CALL(deg2rad) RG_CALL(rad2deg)                           //
      RG_CALL(logit) RG_CALL(logit, 0.3) RG_CALL(xlogy, kOther)                              //
      RG_CALL(copysign, -kOther) RG_CALL(nextafter, kOther)                                  //
      RG_CALL(heaviside, kOther) RG_CALL(floor_divide, kOther)                               //
      RG_CALL(ldexp, kRows.narrow(0, 0, 1)) RG_CALL(float_power, 2)                          //
      RG_CALL(clamp_min, 0.4) RG_CALL(clamp_max, kOther)                                     //
      RG_CALL(index_fill, 0, kRows, 0.5) RG_CALL(put, kCells, kOther.narrow(0, 0, 2), true)  //
      RG_CALL(index_reduce, 0, kRows, kOther.narrow(0, 0, 2), "amax")                        //
      RG_CALL(scatter_reduce, 0, kCells, kOther, "sum") RG_CALL(renorm, 2, 0, 0.7)           //
      RG_CALL(addbmm, kOther.view({1, 3, 3}), kOther.view({1, 3, 3}), 2, 3)                  //
      RG_CALL(addr, kOther[0], kOther[1], 2, 3)                                              //
      {"polygamma_", [](const Tensor& x) -> const Tensor& { return x.polygamma_(1); },
       [](const Tensor& x) { return polygamma(1, x); }},
      {"clamp_", [](const Tensor& x) -> const Tensor& { return x.clamp_(0.3, 0.6); },
       [](const Tensor& x) { return clamp(x, Operand(0.3), Operand(0.6)); }},
      {"clamp_ of tensors", [](const Tensor& x) -> const Tensor& { return x.clamp_({}, kOther); },
       [](const Tensor& x) { return clamp(x, {}, kOther); }},
      {"copy_", [](const Tensor& x) -> const Tensor& { return x.copy_(kOther); },
       [](const Tensor& x) { return copy(x, kOther); }},
      {"fill_", [](const Tensor& x) -> const Tensor& { return x.fill_(2); },
       [](const Tensor& x) { return fill(x, 2); }},
      {"zero_", [](const Tensor& x) -> const Tensor& { return x.zero_(); },
       [](const Tensor& x) { return zero(x); }},
      {"index_put_",
       [](const Tensor& x) -> const Tensor& { return x.index_put_({kRows}, kOther.narrow(0, 0, 2)); },
       [](const Tensor& x) { return index_put(x, {kRows}, kOther.narrow(0, 0, 2)); }},
  };
}

#undef RG_CALL
#undef RG_FORM
#undef RG_NONE
#undef RG_DEFAULT

// The domain of acosh begins at 1.
Tensor argument(const Form& form) {
  return fixed({3, 3}, std::string_view(form.name) == "acosh_" ? 1.2 : 0.2);
}

TEST_CASE("an in-place form writes what the function gives") {
  for (const Form& form : forms()) {
    CAPTURE(form.name);
    const Tensor x = argument(form), wanted = form.value(x).to(kFloat64);
    const NoGradGuard no_grad;
    const Tensor y = x.clone(), alias = y.detach();
    CHECK(form.write(y).is_same(y));
    CHECK(y.version() == 1);
    CHECK(y.dtype() == kFloat64);
    CHECK(same_bits(alias, wanted));
    const Tensor strided = stack({x, x}, 2), part = strided.select(2, 1);
    form.write(part);
    CHECK(same_bits(part.contiguous(), wanted));
    CHECK(same_bits(strided.select(2, 0).contiguous(), x));
  }
}

// The gradient of sum(result^2) by x, of the form and of the function; a function without one gives zeros.
Tensor gradient(const Tensor& at, const std::function<Tensor(const Tensor&)>& f, bool is_traced = false) {
  const Tensor x = at.clone().requires_grad_();
  const Tensor y = f(x * 1.0), loss = sum(y.to(kFloat64) * y.to(kFloat64)) + sum(x) * 0.0;
  if (is_traced)
    compile_backward()(loss);
  else
    loss.backward();
  return x.grad();
}

TEST_CASE("gradients follow an in-place form, eagerly, traced and compiled") {
  for (const Form& form : forms()) {
    CAPTURE(form.name);
    const auto written = [&](const Tensor& y) { return form.write(y); };
    const Tensor x = argument(form), wanted = gradient(x, form.value);
    CHECK(same_bits(gradient(x, written), wanted));
    CHECK(same_bits(gradient(x, written, true), wanted));
    if (form.name == std::string_view("masked_scatter_")) continue;  // reads its mask: not recorded
    auto compiled = compile([&](const Tensor& y) { return Tensor(form.write(y * 1.0)); });
    CHECK(same_bits(compiled(x), form.value(x).to(kFloat64)));
    CHECK(same_bits(gradient(x, [&](const Tensor& y) { return compiled(y); }), wanted));
  }
}

TEST_CASE("an in-place form keeps the target's dtype and needs its shape") {
  const Tensor half = ones({2}, {kFloat16}), whole = tensor({3, 4});
  half.add_(ones({2}, {kFloat64}));
  CHECK(half.dtype() == kFloat16);
  CHECK(half.to_vector() == std::vector<double>{2, 2});
  CHECK(category_of([&] { whole.sqrt_(); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { whole.div_(2); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { half.mul_(ones({3, 2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { expand(ones({1}), {2}).exp_(); }) == Category::overlapping_write);
  const Tensor leaf = ones({2}).requires_grad_();
  const Error error = error_of([&] { leaf.sigmoid_(); });
  CHECK(error.category() == Category::leaf_inplace);
  CHECK_THAT(error.what(), Catch::Contains("sigmoid_") && Catch::Contains("in_place_forms_test.cc"));
  CHECK(category_of([&] { Tensor().relu_(); }) == Category::bad_argument);
}

TEST_CASE("in-place forms of integers") {
  const Tensor x = tensor({12, 10});
  x.bitwise_and_(tensor({10, 6})).bitwise_or_(1).bitwise_xor_(3);
  CHECK(x.to_vector() == std::vector<double>{10, 0});
  x.bitwise_not_().bitwise_left_shift_(2).bitwise_right_shift_(1);
  CHECK(x.to_vector() == std::vector<double>{-22, -2});
  x.abs_().gcd_(tensor({33, 3})).lcm_(tensor({2, 5}));
  CHECK(x.to_vector() == std::vector<double>{22, 5});
  CHECK(x.dtype() == kInt64);
  CHECK(category_of([&] { ones({2}).float_power_(2); }) == Category::dtype_mismatch);
}

TEST_CASE("functions of in-place forms are the methods") {
  const Tensor x = tensor({-1.0, 2.0});
  CHECK(relu_(x).is_same(x));
  CHECK(x.to_vector() == std::vector<double>{0, 2});
  clamp_(exp_(fill_(x, 1)), {}, 2);
  CHECK(x.to_vector() == std::vector<double>{2, 2});
  CHECK(zero_(x).to_vector() == std::vector<double>{0, 0});
}

// ---- geometry -------------------------------------------------------------------------------------------------------

struct Turn {
  const char* name;
  std::function<const Tensor&(const Tensor&)> turn;
  std::function<Tensor(const Tensor&)> view;
};

const std::vector<Turn> kTurns = {
    {"t_",
     [](const Tensor& x) -> const Tensor& { return x.select(0, 0).is_same(x) ? x : x.squeeze_(0).t_(); },
     [](const Tensor& x) { return t(squeeze(x, 0)); }},
    {"transpose_", [](const Tensor& x) -> const Tensor& { return x.transpose_(0, 2); },
     [](const Tensor& x) { return transpose(x, 0, 2); }},
    {"squeeze_", [](const Tensor& x) -> const Tensor& { return x.squeeze_(); },
     [](const Tensor& x) { return squeeze(x); }},
    {"unsqueeze_", [](const Tensor& x) -> const Tensor& { return x.unsqueeze_(1); },
     [](const Tensor& x) { return unsqueeze(x, 1); }},
    {"as_strided_",
     [](const Tensor& x) -> const Tensor& {
       return x.as_strided_({2, 2}, {3, 1}, 1);
     },
     [](const Tensor& x) {
       return as_strided(x, {2, 2}, {3, 1}, 1);
     }},
};

TEST_CASE("a change of geometry is seen by every holder of the tensor, and writes nothing") {
  for (const Turn& turn : kTurns) {
    CAPTURE(turn.name);
    const Tensor x = fixed({1, 2, 3}), handle = x, before = x.detach(), wanted = turn.view(x);
    CHECK(turn.turn(x).is_same(handle));
    CHECK(handle.sizes() == wanted.sizes());
    CHECK(handle.strides() == wanted.strides());
    CHECK(handle.raw_data() == wanted.raw_data());
    CHECK(before.sizes() == IntArray{1, 2, 3});
    CHECK(before.version() > 0);
    x.zero_();
    CHECK(same_bits(turn.view(before).contiguous(), zeros(wanted.sizes(), {kFloat64})));
  }
}

TEST_CASE("gradients go back through a change of geometry") {
  for (const Turn& turn : kTurns) {
    CAPTURE(turn.name);
    const Tensor x = fixed({1, 2, 3}), weight = fixed(turn.view(x).sizes(), 0.5);
    const auto weighted = [&](const Tensor& y) { return y * weight; };
    const Tensor wanted = gradient(x, [&](const Tensor& y) { return weighted(turn.view(y)); });
    const auto turned = [&](const Tensor& y) { return weighted(turn.turn(y)); };
    CHECK(same_bits(gradient(x, turned), wanted));
    CHECK(same_bits(gradient(x, turned, true), wanted));
    auto compiled = compile([&](const Tensor& y) { return turned(y * 1.0); });
    CHECK(same_bits(compiled(x), weighted(turn.view(x))));
    CHECK(same_bits(gradient(x, [&](const Tensor& y) { return compiled(y); }), wanted));
    // A write afterwards, and one through a view made before.
    const auto later = [&](const Tensor& y) {
      const Tensor part = y.select(1, 0);
      turn.turn(y);
      part.mul_(3.0);
      y.mul_(2.0);
      return weighted(y);
    };
    const auto functional = [&](const Tensor& y) {
      return weighted(turn.view(y * tensor({3.0, 1.0}, {kFloat64}).view({1, 2, 1})) * 2.0);
    };
    CHECK(same_bits(gradient(x, later), gradient(x, functional)));
  }
}

TEST_CASE("a change of geometry that would leave gradients of the wrong shape is refused") {
  const Tensor leaf = fixed({2, 3}).requires_grad_();
  CHECK(category_of([&] { leaf.t_(); }) == Category::leaf_inplace);
  {
    const NoGradGuard no_grad;
    CHECK(category_of([&] { leaf.t_(); }) == Category::leaf_inplace);
  }
  const Tensor y = leaf * 2.0, saved = y * y;
  y.t_();
  CHECK(category_of([&] { sum(saved).backward(); }) == Category::version_mismatch);
  CHECK(category_of([&] { fixed({2, 3}).squeeze_(5); }) == Category::bad_dim);
  // A change under no_grad keeps the history in step.
  const Tensor z = leaf * 2.0;
  {
    const NoGradGuard no_grad;
    z.t_();
  }
  sum(z * fixed({3, 2})).backward();
  CHECK(same_bits(leaf.grad(), t(fixed({3, 2}) * 2.0).contiguous()));
}

TEST_CASE("a compiled function that turns its argument runs as it is") {
  auto turns = compile([](const Tensor& x) { return Tensor(x.t_()); });
  const Tensor x = fixed({2, 3});
  turns(x);
  CHECK(x.sizes() == IntArray{3, 2});
}

}  // namespace
}  // namespace retrograd
