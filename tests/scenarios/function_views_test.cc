// A function that returns its argument, or a view of memory that others can see, without mark_dirty: the result is a
// view that would lose its place in the graph by a write. So a write is refused, through the result and through the
// memory it shows, and so is a later use of the result. Not tested here: mark_dirty (function_dirty_test.cc).
#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

enum class Returns { argument, view, view_of_view, outside, own_view, two_views };
Tensor outside;

template <bool Traceable>
struct Shows : Function<Shows<Traceable>> {
  static constexpr bool is_traceable = Traceable;
  static Tensors forward(AutogradContext* ctx, const Tensor& x, Returns what) {
    ctx->saved_data["what"] = static_cast<int64_t>(what);
    switch (what) {
      case Returns::argument: return {x};
      case Returns::view: return {x.view({2, 1})};
      case Returns::view_of_view: return {x.view({2, 1}).view({1, 2})};
      case Returns::outside: return {outside.view({2, 1})};
      case Returns::own_view: return {(x * 1.0).view({2, 1})};
      case Returns::two_views: return {x, x.view({2, 1})};
    }
    return {};
  }
  static Tensors backward(AutogradContext*, const Tensors& g) { return {g[0].view({2}) * 10.0, {}}; }
};

const Returns kShared[] = {Returns::argument, Returns::view, Returns::view_of_view, Returns::outside,
                           Returns::two_views};

template <class F>
std::string refused(F f) {
  std::string text;
  CHECK(category_of([&] { f(); }, &text) == Category::view_inplace_forbidden);
  CHECK(text.find("Function has returned") != std::string::npos);
  CHECK(text.find("Hint: clone the result") != std::string::npos);
  return text;
}

template <bool Traceable>
void check_writes() {
  using F = Shows<Traceable>;
  for (const Returns what : kShared) {
    INFO("returns " << static_cast<int>(what));
    outside = tensor({3.0, 4});
    const Tensor x = leaf({1, 2}), h = x * 1.0;
    const Tensor y = F::apply(h, what)[0];
    CHECK(refused([&] { y.mul_(3.0); }).find("function_views_test.cc") != std::string::npos);
    refused([&] { y.view({2}).mul_(3.0); });  // a view of it, as well
    y.detach().mul_(3.0);
    if (what != Returns::outside) CHECK(values(h.detach()) == Values{3, 6});
    refused([&] { sum(y).backward(); });  // its memory has been written to
  }
}

template <bool Traceable>
void check_use() {
  using F = Shows<Traceable>;
  for (const Returns what : kShared) {
    if (what == Returns::outside) continue;
    INFO("returns " << static_cast<int>(what));
    const Tensor x = leaf({1, 2}), h = x * 1.0;
    const Tensors y = F::apply(h, what);
    h.mul_(3.0);
    sum(h).backward();
    CHECK(values(x.grad()) == Values{3, 3});
    for (const Tensor& t : y) refused([&] { sum(t); });
  }
}

}  // namespace

TEST_CASE("a write to a result that shows an argument, or other memory, is refused") {
  check_writes<false>();
  check_writes<true>();
}

TEST_CASE("a result that shows an argument cannot be used when the argument was written to") {
  check_use<false>();
  check_use<true>();
}

TEST_CASE("a result on memory of its own, or one that was cloned, may be written to") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({1, 2}), own = Shows<false>::apply(x, Returns::own_view)[0];
    own.mul_(3.0);
    const Tensor copy = Shows<false>::apply(x, Returns::argument)[0].clone();
    copy.mul_(5.0);
    mode.backward(sum(own) + sum(copy));
    CHECK(values(x.grad()) == Values{80, 80});
    CHECK(values(x.detach()) == Values{1, 2});
    return Tensors{x.grad()};
  });
}

TEST_CASE("without gradients, and where a result is not differentiable, it is detached from what it shows") {
  struct Constant : Function<Constant> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x) {
      ctx->mark_non_differentiable({x});
      return x;
    }
    static Tensors backward(AutogradContext*, const Tensors&) { return {Tensor()}; }
  };
  const Tensor x = leaf({1, 2});
  CHECK_FALSE(Constant::apply(x).requires_grad());
  NoGradGuard no_grad;
  const Tensor y = Shows<false>::apply(x, Returns::argument)[0];
  CHECK_FALSE(y.requires_grad());
  y.mul_(2.0);
  CHECK(values(x.detach()) == Values{2, 4});
}

namespace {

template <class F>
void refused_when_compiled(F body) {
  auto compiled = compile(body);
  auto step = compile_step(body);
  for (int i = 0; i < 3; ++i) {
    refused([&] { compiled(leaf({1, 2})); });
    refused([&] { step(leaf({1, 2})); });
  }
}

template <bool Traceable>
void check_modes() {
  refused_when_compiled([](const Tensor& x) {
    const Tensor y = Shows<Traceable>::apply(x * 1.0, Returns::argument)[0];
    y.mul_(3.0);
    return sum(y);
  });
  refused_when_compiled([](const Tensor& x) {
    const Tensor h = x * 1.0, y = Shows<Traceable>::apply(h, Returns::view)[0];
    h.mul_(3.0);
    return sum(y);
  });
  auto gives = compile([](const Tensor& x) { return Shows<Traceable>::apply(x, Returns::view)[0]; });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = leaf({1, 2}), h = x * 1.0;
    refused([&] { gives(h).mul_(2.0); });
  }
}

}  // namespace

TEST_CASE("the errors are those of a compiled function and of a step, too") {
  check_modes<false>();
  check_modes<true>();
}

TEST_CASE("what an opaque function shows is seen by who gets it from a compiled function") {
  NoGradGuard no_grad;
  auto gives = compile([](const Tensor& x) { return Shows<false>::apply(x, Returns::argument)[0]; });
  auto own = compile([](const Tensor& x) { return Shows<false>::apply(x * 1.0, Returns::argument)[0]; });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = tensor({1.0, 2}), y = gives(x);
    x.mul_(2.0);
    CHECK(values(y) == Values{2, 4});
    CHECK(values(own(x)) == Values{2, 4});
  }
  CHECK(own.stats().captures == 1);  // nobody else can see that memory
}

}  // namespace retrograd::scenario
