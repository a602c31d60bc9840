// recompute: what is dropped, recomputed and checked.
// Not tested here: its effect on the memory of a whole backward (tests/tracer/memory_profile_test.cc).
#include "hooks/recompute.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/hooks/pairs.h"

namespace rg = retrograd;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;
using rg::testing::is_left_as_it_is;
using rg::testing::same_bits;
using rg::testing::shifted_wave;
using rg::testing::there_and_back;

namespace {

int64_t live() { return rg::memory::stats().live_bytes; }

}  // namespace

TEST_CASE("recompute drops the value of a slot and runs the function when it is needed") {
  for (const bool traced : {false, true}) {
    rg::CompiledBackward compiled = rg::compile_backward();
    for (int step = 0; step < 3; ++step) {
      const Tensor x = shifted_wave(1000).requires_grad_();
      int runs = 0;
      Tensor h = rg::sin(x);
      const int64_t with_h = live();
      const Tensor y = rg::cos(h);  // saves h
      y.grad_fn().register_saved_tensor_hooks(0, rg::recompute([&] { return ++runs, rg::sin(x.detach()); }));
      h.reset();
      CHECK(live() == with_h);  // y was added, h was dropped
      CHECK(runs == 0);
      if (traced)
        compiled(rg::sum(y));
      else
        rg::sum(y).backward();
      CHECK(runs == 1);
      const Tensor plain = x.detach().requires_grad_();
      rg::sum(rg::cos(rg::sin(plain))).backward();
      CHECK(same_bits(x.grad(), plain.grad()));
    }
    if (traced) CHECK(compiled.stats().captures == 1);
  }
}

TEST_CASE("recompute of a value drops it and the views of it, and leaves everything else") {
  const Tensor x = shifted_wave(600).view({20, 30}).requires_grad_(),
               w = shifted_wave(900, 0.1).view({30, 30}).requires_grad_();
  const auto forward = [&](bool drop, int& runs) {
    const Tensor h = rg::tanh(rg::mm(x, w));
    rg::RefPtr<rg::SavedTensorHooks> hooks =
        rg::saved_tensor_hooks([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; });
    if (drop) hooks = rg::recompute(h, [&x, &w, &runs] { return ++runs, rg::tanh(rg::mm(x, w)); });
    rg::SavedTensorHooksGuard guard(hooks);
    const Tensor g = rg::mm(h.t(), h);  // saves h and a view of it
    return rg::sum(rg::mm(h.narrow(1, 3, 20), w.narrow(0, 0, 20))) + rg::sum(g * g);
  };
  int runs = 0;
  forward(false, runs).backward();
  const Tensor want_x = x.grad(), want_w = w.grad();
  for (const bool traced : {false, true}) {
    x.set_grad({});
    w.set_grad({});
    runs = 0;
    const Tensor loss = forward(true, runs);
    CHECK(runs == 0);
    if (traced)
      rg::compile_backward()(loss);
    else
      loss.backward();
    CHECK(runs == 3);  // h, its transpose, its window
    CHECK(same_bits(x.grad(), want_x));
    CHECK(same_bits(w.grad(), want_w));
  }
}

TEST_CASE("recompute of a value frees it once its last user is gone") {
  const Tensor x = shifted_wave(10000).requires_grad_();
  Tensor h = rg::sin(x);
  const int64_t held = live();
  Tensor y;
  {
    rg::SavedTensorHooksGuard guard(rg::recompute(h, [&] { return rg::sin(x); }));
    y = rg::sum(rg::cos(h));
  }
  h.reset();
  CHECK(live() < held - 39000);
  y.backward();
  CHECK(x.grad().defined());
}

TEST_CASE("recompute of a value: another tensor on the memory of a value that is gone is not taken for it") {
  const Tensor x = shifted_wave(5000).requires_grad_();
  int runs = 0;
  Tensor h = rg::sin(x);
  const void* address = h.raw_data();
  const auto hooks = rg::recompute(h, [&] { return ++runs, rg::sin(x); });
  h.reset();
  const Tensor other = rg::empty({5000});
  INFO("same address: " << (other.raw_data() == address));
  CHECK(is_left_as_it_is(*hooks, other));
}

TEST_CASE("recompute of a value that was written to since leaves it: it is not what the function gives") {
  const Tensor x = shifted_wave(500);
  const Tensor h = rg::sin(x);
  const auto hooks = rg::recompute(h, [&] { return rg::sin(x); });
  CHECK_FALSE(is_left_as_it_is(*hooks, h));
  h.mul_(2.0);
  CHECK(is_left_as_it_is(*hooks, h));
}

TEST_CASE("recompute keeps the layout of what it dropped") {
  const Tensor x = shifted_wave(600).view({20, 30});
  const Tensor h = rg::sin(x).t();
  const auto by_slot = rg::recompute([&] { return rg::sin(x).t().contiguous(); });
  const Tensor y = there_and_back(*by_slot, h);
  CHECK(y.strides() == h.strides());
  CHECK(same_bits(y, h));
  const auto by_value = rg::recompute(h, [&] { return rg::sin(x).t().contiguous(); });
  const Tensor view = h.narrow(0, 5, 10), z = there_and_back(*by_value, view);
  CHECK(z.strides() == view.strides());
  CHECK(same_bits(z, view));
}

TEST_CASE("recompute checks dtype, shape and bits of what the function gives") {
  for (const bool traced : {false, true}) {
    std::string text;
    const auto error_of = [&](std::function<Tensor(const Tensor&)> fn,
                              rg::RecomputeCheck check = rg::RecomputeCheck::bits) {
      const Tensor x = shifted_wave(300).requires_grad_(), y = rg::sin(x);
      y.grad_fn().register_saved_tensor_hooks(0, rg::recompute([=] { return fn(x.detach()); }, check));
      const rg::Category category = category_of(
          [&] {
            if (traced)
              rg::compile_backward()(rg::sum(y));
            else
              rg::sum(y).backward();
          },
          &text);
      CHECK_FALSE(x.grad().defined());
      return category;
    };
    CHECK(error_of([](const Tensor&) { return Tensor(); }) == rg::Category::hook_bad_result);
    CHECK_THAT(text, Catch::Contains("undefined") && Catch::Contains("f32[300]"));
    CHECK(error_of([](const Tensor& x) { return x.to(rg::kFloat64); }) == rg::Category::hook_bad_result);
    CHECK_THAT(text, Catch::Contains("f64[300]"));
    CHECK(error_of([](const Tensor& x) { return x.view({3, 100}); }) == rg::Category::hook_bad_result);
    CHECK_THAT(text, Catch::Contains("f32[3,100]"));
    CHECK(error_of([](const Tensor& x) { return x * 1.0000001; }) == rg::Category::hook_bad_result);
    CHECK_THAT(text, Catch::Contains("other values"));
    CHECK(error_of(
              [](const Tensor& x) {
                return x.view({3, 100});
              },
              rg::RecomputeCheck::type) == rg::Category::hook_bad_result);
  }
  // Without the check of bits another value of the type is accepted: it is used in the gradient.
  const Tensor x = shifted_wave(300).requires_grad_(), y = rg::sin(x);
  y.grad_fn().register_saved_tensor_hooks(
      0, rg::recompute([] { return rg::zeros({300}); }, rg::RecomputeCheck::type));
  rg::sum(y).backward();
  CHECK(x.grad().to_vector() == std::vector<double>(300, 1));
}

TEST_CASE("recompute: an input that was written to since is noticed, never a silently other gradient") {
  const Tensor x = shifted_wave(300).requires_grad_(), u = x * 2.0, h = rg::sin(u), y = rg::cos(h);
  y.grad_fn().register_saved_tensor_hooks(0, rg::recompute([u] { return rg::sin(u.detach()); }));
  u.detach().add_(rg::ones({300}));
  std::string text;
  CHECK(category_of([&] { rg::sum(y).backward(); }, &text) == rg::Category::hook_bad_result);
  CHECK_THAT(text, Catch::Contains("other values") && Catch::Contains("Hint"));
}

TEST_CASE("recompute: exceptions of the function pass; backward again with retain_graph recomputes again") {
  int runs = 0;
  const Tensor x = shifted_wave(300).requires_grad_(), y = rg::sin(x), loss = rg::sum(y);
  y.grad_fn().register_saved_tensor_hooks(0, rg::recompute([&] {
                                            if (++runs == 1) throw 7;
                                            return x.detach();
                                          }));
  CHECK_THROWS_AS(loss.backward({}, true), int);
  loss.backward({}, true);
  loss.backward();
  CHECK(runs == 3);
  CHECK(same_bits(x.grad(), rg::cos(x.detach()) * 2.0));
}

TEST_CASE("recompute: second derivatives go through the recomputed value") {
  const auto second = [](bool drop) {
    const Tensor x = shifted_wave(300, 1, rg::kFloat64).requires_grad_(), h = rg::sin(x);
    Tensor y;
    {
      const auto plain =
          rg::saved_tensor_hooks([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; });
      rg::SavedTensorHooksGuard guard(drop ? rg::recompute(h, [x] { return rg::sin(x.detach()); }) : plain);
      y = h * h * h;
    }
    const Tensor g = rg::autograd::grad({rg::sum(y)}, {x}, {}, {}, true)[0];
    return rg::autograd::grad({rg::sum(g * g)}, {x})[0];
  };
  CHECK(same_bits(second(true), second(false)));
}

TEST_CASE("recompute of a value needs one that owns a dense block") {
  const Tensor base = shifted_wave(400).view({20, 20});
  CHECK(category_of([&] { rg::recompute(base.narrow(1, 0, 3), [&] { return base; }); }) ==
        rg::Category::bad_argument);
  CHECK(category_of([&] {
          rg::recompute(rg::expand(shifted_wave(4), {9, 4}), [&] { return base; });
        }) == rg::Category::bad_argument);
  CHECK(category_of([&] { rg::recompute(Tensor(), [&] { return base; }); }) == rg::Category::bad_argument);
}

TEST_CASE("recompute in a recorded function is part of the backward's graph") {
  const Tensor w = shifted_wave(40 * 30, 0.2).view({40, 30}).requires_grad_();
  for (const bool of_value : {false, true}) {
    int64_t calls = 0;
    const auto f = [&](const Tensor& x) {
      const Tensor u = x * 2.0, h = rg::tanh(u);
      const auto again = [u, &calls] {
        ++calls;
        return rg::tanh(u);
      };
      Tensor y, z;
      {
        const rg::SavedTensorHooksGuard guard(rg::recompute(h, again));
        y = of_value ? rg::mm(h, w) : Tensor();
        z = rg::sum(rg::exp(h.narrow(0, 1, 3)) *
                    rg::sin(rg::transpose(h, 0, 1)).narrow(0, 0, 1).view({1, -1}).narrow(1, 0, 1));
      }
      if (!of_value) {
        y = rg::mm(h, w);
        y.grad_fn().register_saved_tensor_hooks(0, rg::recompute(again));
      }
      return rg::sum(y * y) + z;
    };
    const auto compiled = rg::compile(f);
    const auto step = rg::compile_step([&](const Tensor& x) {
      const Tensor y = f(x);
      y.backward();
      return y;
    });
    for (const int64_t rows : {20, 20, 25}) {
      const Tensor x = shifted_wave(rows * 40).view({rows, 40}).requires_grad_();
      const auto grads = [&](const auto& run) {
        x.set_grad({});
        w.set_grad({});
        run();
        return Tensors{x.grad(), w.grad()};
      };
      const Tensors want = grads([&] { f(x).backward(); });
      const Tensors got = grads([&] { compiled(x).backward(); }), in_step = grads([&] { step(x); });
      for (size_t i = 0; i < 2; ++i) {
        CHECK(same_bits(got[i], want[i]));
        CHECK(same_bits(in_step[i], want[i]));
      }
    }
    CHECK(compiled.last_eager_reason() == "");
    const int64_t before = calls;
    const Tensor x = shifted_wave(25 * 40).view({25, 40}).requires_grad_();
    compiled(x).backward();
    CHECK(calls == before);  // it is in the graph
  }
  const auto wrong = rg::compile([&](const Tensor& x) {
    const Tensor h = rg::tanh(x);
    const rg::SavedTensorHooksGuard guard(rg::recompute(h, [x] { return rg::sum(x); }));
    return rg::sum(rg::exp(h) * h);
  });
  CHECK(category_of([&] { wrong(shifted_wave(40).requires_grad_()).backward(); }) ==
        rg::Category::hook_bad_result);
}
