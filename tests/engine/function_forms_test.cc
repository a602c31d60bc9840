// The forms of user-defined functions and hooks: lists of tensors and optional tensors as arguments, backward by value,
// hooks that return nothing. Other forms are refused by a static_assert, whose conditions are tested here. Not tested
// here: the behaviour of these functions in each mode (tests/tracer/function_modes_test.cc).
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"

namespace {

namespace rg = retrograd;
using rg::AutogradContext;
using rg::Tensor;
using rg::Tensors;
using Values = std::vector<double>;

Tensor leaf(const Values& v) { return rg::tensor(v, {static_cast<int64_t>(v.size())}).requires_grad_(); }

// The sum of a list, each entry times its number, and how many arguments backward counted.
struct SumOf : rg::Function<SumOf> {
  static Tensor forward(AutogradContext* ctx, const Tensors& list, const std::optional<Tensor>& more,
                        const Tensor& last) {
    ctx->saved_data["count"] = static_cast<int64_t>(list.size());
    ctx->save_for_backward(list);
    Tensor total = last * 1.0;
    for (size_t i = 0; i < list.size(); ++i) total = total + list[i] * double(i + 1);
    return more && more->defined() ? total + *more * 100.0 : total;
  }
  static Tensors backward(AutogradContext* ctx, Tensors grads) {
    const auto count = static_cast<size_t>(ctx->saved_data["count"].to_int());
    CHECK(ctx->get_saved_variables().size() == count);
    Tensors given;
    for (size_t i = 0; i < count; ++i)
      given.push_back(ctx->needs_input_grad(i) ? grads[0] * double(i + 1) : Tensor());
    given.push_back(ctx->needs_input_grad(count) ? grads[0] * 100.0 : Tensor());
    given.push_back(ctx->needs_input_grad(count + 1) ? grads[0] : Tensor());
    return given;
  }
};

}  // namespace

TEST_CASE("the tensors of a list and an optional tensor take part in a function") {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4}), c = rg::tensor({5.0, 6}), d = leaf({7, 8});
  const Tensor y = SumOf::apply(Tensors{a, c, b}, std::optional<Tensor>(d), b);
  REQUIRE(y.requires_grad());
  rg::sum(y).backward();
  CHECK(a.grad().to_vector() == Values{1, 1});
  CHECK_FALSE(c.grad().defined());
  CHECK(b.grad().to_vector() == Values{4, 4});  // 3 in the list, 1 after it
  CHECK(d.grad().to_vector() == Values{100, 100});
  const Tensor only_list = SumOf::apply(Tensors{a}, std::optional<Tensor>(), c);
  CHECK(only_list.requires_grad());
  CHECK(SumOf::apply(Tensors{}, std::optional<Tensor>(Tensor()), a * 1.0).requires_grad());
  CHECK(SumOf::apply(Tensors{c}, std::nullopt, a).requires_grad());
  CHECK_FALSE(SumOf::apply(Tensors{c}, std::nullopt, c).requires_grad());
}

TEST_CASE("a tensor in two lists, and an undefined one in a list") {
  const Tensor a = leaf({1, 2});
  struct Skips : rg::Function<Skips> {
    static Tensor forward(AutogradContext*, const Tensors& list) { return list[0] + list[2]; }
    static Tensors backward(AutogradContext*, const Tensors& grads) { return {grads[0], {}, grads[0] * 2.0}; }
  };
  rg::sum(Skips::apply(Tensors{a, Tensor(), a})).backward();
  CHECK(a.grad().to_vector() == Values{3, 3});
}

TEST_CASE("a list of any length") {
  for (const size_t length : {1, 7, 8, 9, 40, 100}) {
    INFO("length " << length);
    struct Total : rg::Function<Total> {
      static Tensor forward(AutogradContext* ctx, const Tensors& list) {
        ctx->saved_data["count"] = static_cast<int64_t>(list.size());
        Tensor total = list[0];
        for (size_t i = 1; i < list.size(); ++i) total = total + list[i];
        return total * 1.0;
      }
      static Tensors backward(AutogradContext* ctx, const Tensors& grads) {
        Tensors given;
        for (int64_t i = 0; i < ctx->saved_data["count"].to_int(); ++i)
          given.push_back(grads[0] * double(i + 1));
        return given;
      }
    };
    const auto body = [&](const Tensor& x) {
      Tensors list;
      for (size_t i = 0; i < length; ++i) list.push_back(x * double(i));
      return rg::sum(Total::apply(list));
    };
    double expected = 0;
    for (size_t i = 0; i < length; ++i) expected += double(i * (i + 1));
    const auto check = [&](const char* mode, auto&& run) {
      INFO(mode);
      const Tensor x = leaf({1, 2});
      run(x);
      CHECK(x.grad().to_vector() == Values{expected, expected});
    };
    rg::CompiledBackward backward = rg::compile_backward();
    auto compiled = rg::compile(body);
    auto step = rg::compile_step([&](const Tensor& x) { body(x).backward(); });
    for (int i = 0; i < 3; ++i) {
      check("eager", [&](const Tensor& x) { body(x).backward(); });
      check("compile_backward", [&](const Tensor& x) { backward(body(x)); });
      check("compile", [&](const Tensor& x) { compiled(x).backward(); });
      check("compile_step", [&](const Tensor& x) { step(x); });
    }
  }
}

TEST_CASE("jvp may take its tangents by value, too") {
  struct Twice : rg::Function<Twice> {
    static Tensor forward(AutogradContext*, Tensor x) { return x * 2.0; }
    static Tensors backward(AutogradContext*, Tensors grads) { return {grads[0] * 2.0}; }
    static Tensors jvp(AutogradContext*, Tensors tangents) { return {tangents[0] * 2.0}; }
  };
  const auto f = [](const Tensors& x) { return Tensors{Twice::apply(x[0])}; };
  CHECK(rg::autograd::jvp(f, {rg::tensor({1.0, 3})}, {rg::tensor({1.0, 10})}).tangents[0].to_vector() ==
        Values{2, 20});
}

TEST_CASE("too few gradients for a list are an error that says how they are counted") {
  struct TooFew : rg::Function<TooFew> {
    static Tensor forward(AutogradContext*, const Tensors& list) { return list[0] + list[1]; }
    static Tensors backward(AutogradContext*, const Tensors& grads) { return {grads[0]}; }
  };
  const Tensor a = leaf({1, 2}), y = rg::sum(TooFew::apply(Tensors{a, a}));
  CHECK_THROWS_WITH(y.backward(),
                    Catch::Contains("gave 1 gradients, forward has 2 arguments") && Catch::Contains("Hint"));
}

TEST_CASE("hooks that return nothing look only, at each place") {
  const Tensor x = leaf({1, 2}), y = x * 2.0;
  int calls = 0;
  y.register_hook([&](const Tensor&) { ++calls; });
  y.register_hook([&](Tensor g) mutable { calls += g.defined(); });
  y.grad_fn().register_prehook([&](const Tensors&) { ++calls; });
  y.grad_fn().register_hook([&](const Tensors&, const Tensors&) { ++calls; });
  x.register_hook([&](const auto&) { ++calls; });
  x.register_accumulate_grad_prehook([&](const Tensors&) { ++calls; });
  x.register_accumulate_grad_posthook([&](const Tensors&, const Tensors&) { ++calls; });
  x.register_post_accumulate_grad_hook([&](const Tensor& leaf) { return ++calls, leaf; });
  rg::autograd::register_multi_grad_hook({x, y}, [&](const Tensors&) { ++calls; });
  const std::function<void(const Tensor&)> kept = [&](const Tensor&) { ++calls; };
  y.register_hook(kept);
  rg::sum(y).backward();
  CHECK(calls == 10);
  CHECK(x.grad().to_vector() == Values{2, 2});
}

namespace {

template <class F>
constexpr bool is_tensor_hook = rg::detail::is_hook<F, Tensor, const Tensor&>;
template <class F>
constexpr bool is_pre_hook = rg::detail::is_hook<F, Tensors, const Tensors&>;
template <class F>
constexpr bool is_post_hook = rg::detail::is_hook<F, Tensors, const Tensors&, const Tensors&>;

static_assert(is_tensor_hook<Tensor (*)(const Tensor&)> && is_tensor_hook<Tensor (*)(Tensor)> &&
              is_tensor_hook<void (*)(const Tensor&)>);
static_assert(!is_tensor_hook<Tensor (*)(Tensor&)> && !is_tensor_hook<Tensor (*)()> &&
              !is_tensor_hook<int (*)(const Tensor&)> && !is_tensor_hook<Tensors (*)(const Tensor&)> &&
              !is_tensor_hook<int> && !is_tensor_hook<std::nullptr_t>);
static_assert(is_pre_hook<Tensors (*)(Tensors)> && is_pre_hook<void (*)(const Tensors&)>);
static_assert(!is_pre_hook<Tensor (*)(const Tensors&)> && !is_pre_hook<Tensors (*)(const Tensor&)>);
static_assert(is_post_hook<Tensors (*)(const Tensors&, Tensors)>);
static_assert(!is_post_hook<Tensors (*)(const Tensors&)> &&
              !is_post_hook<bool (*)(const Tensors&, const Tensors&)>);

using rg::detail::can_pack;
using rg::detail::can_unpack;
static_assert(can_pack<int (*)(const Tensor&)>() && !can_pack<void (*)(const Tensor&)>() &&
              !can_pack<int (*)()>());
static_assert(can_unpack<int (*)(const Tensor&), Tensor (*)(int)>());
static_assert(
    !can_unpack<int (*)(const Tensor&), int (*)(int)>() &&
    !can_unpack<int (*)(const Tensor&), Tensor (*)(const std::string&)>() &&
    !can_unpack<std::unique_ptr<int> (*)(const Tensor&), Tensor (*)(const std::unique_ptr<int>&)>());

struct ByReference {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext*, const Tensors& grads) { return grads; }
};
struct ByValue {
  static Tensors forward(AutogradContext*, Tensor x, int, std::string) { return {x}; }
  static Tensors backward(AutogradContext*, Tensors grads) { return grads; }
};
struct Wrong {
  static int forward(AutogradContext*, const Tensor&) { return 0; }
  static Tensor backward(AutogradContext*, const Tensors&) { return {}; }
};
struct WithoutContext {
  static Tensor forward(const Tensor& x) { return x; }
  static Tensors backward(const Tensors& grads) { return grads; }
};
class Private {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext*, const Tensors& grads) { return grads; }
};
using rg::detail::has_backward;
using rg::detail::has_forward;
static_assert(has_forward<ByReference, Tensor>() && has_backward<ByReference>());
static_assert(has_forward<ByValue, Tensor, int, const char*>() && has_backward<ByValue>());
static_assert(!has_forward<ByReference, std::string>() && !has_forward<ByReference, Tensor, int>());
static_assert(!has_forward<Wrong, Tensor>() && !has_backward<Wrong>());
static_assert(!has_forward<WithoutContext, Tensor>() && !has_backward<WithoutContext>());
static_assert(!has_forward<Private, Tensor>() && !has_backward<Private>() && !has_backward<int>());

using rg::detail::hides_tensors;
static_assert(hides_tensors<std::array<Tensor, 2>>() && hides_tensors<std::span<const Tensor>>() &&
              hides_tensors<std::vector<std::optional<Tensor>>>() && hides_tensors<std::vector<Tensors>>() &&
              hides_tensors<Tensor[2]>());
static_assert(!hides_tensors<Tensor>() && !hides_tensors<Tensors>() &&
              !hides_tensors<std::optional<Tensor>>() && !hides_tensors<std::string>() &&
              !hides_tensors<std::vector<int64_t>>() && !hides_tensors<double>() &&
              !hides_tensors<char[4]>());

}  // namespace
