// Stock saved-tensor hooks: int8, copies on the CPU, recomputation. What comes back, what is left as it is,
// which memory is held, and what is refused.
//
// Not tested here: half, fp8 and files (stock_test.cc), the profile over many layers
// (tests/tracer/memory_profile_test.cc).
#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "hooks/recompute.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

Tensor there_and_back(rg::SavedTensorHooks& hooks, const Tensor& x) { return hooks.unpack(hooks.pack(x)); }

bool is_left_as_it_is(rg::SavedTensorHooks& hooks, const Tensor& x) {
  const std::any payload = hooks.pack(x);
  const Tensor* tensor = std::any_cast<Tensor>(&payload);
  return tensor && tensor->raw_data() == x.raw_data();
}

Tensor wave(int64_t n, double scale = 1, rg::ScalarType dtype = rg::kFloat32) {
  std::vector<double> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = scale * std::sin(0.37 * static_cast<double>(i) + 0.1) + scale / 7;
  return rg::tensor(values, {n}, {dtype});
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.sizes() != b.sizes()) return false;
  const Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.numel() == 0 || std::memcmp(x.raw_data(), y.raw_data(), static_cast<size_t>(x.nbytes())) == 0;
}

/// Largest |a - b| over elements [begin, end).
double difference(const Tensor& a, const Tensor& b, size_t begin = 0, size_t end = ~size_t{0}) {
  const std::vector<double> x = a.to_vector(), y = b.to_vector();
  REQUIRE(x.size() == y.size());
  double largest = 0;
  for (size_t i = begin; i < std::min(end, x.size()); ++i)
    largest = std::max(largest, std::fabs(x[i] - y[i]));
  return largest;
}

rg::Category category_of(const std::function<void()>& f, std::string* text = nullptr) {
  try {
    f();
  } catch (const rg::Error& e) {
    if (text) *text = e.what();
    return e.category();
  }
  FAIL("nothing was thrown");
  return rg::Category::unsupported;
}

int64_t live() { return rg::memory::stats().live_bytes; }

}  // namespace

// ---- int8
// ---------------------------------------------------------------------------------------------------

TEST_CASE("int8 gives back dtype and shape, each element within half a step of its block") {
  const auto hooks = rg::save_as_int8();
  for (rg::ScalarType dtype : {rg::kFloat64, rg::kFloat32, rg::kFloat16, rg::kBFloat16}) {
    const Tensor x = wave(1000, 3, dtype).view({20, 50});
    const Tensor y = there_and_back(*hooks, x);
    CHECK(y.dtype() == dtype);
    CHECK(y.sizes() == x.sizes());
    const double rounding = dtype == rg::kBFloat16 ? 0.02 : dtype == rg::kFloat16 ? 0.003 : 1e-6;
    CHECK(difference(x, y) <= 3.45 / 254 * 1.0001 + rounding);
    CHECK(difference(x, y) > 0);
  }
}

TEST_CASE("int8: each block has a scale of its own, and its largest element is hit") {
  const auto hooks = rg::save_as_int8();
  const Tensor x = wave(3 * rg::kInt8Block + 5);
  x.narrow(0, 0, rg::kInt8Block).mul_(1e-20);
  x.narrow(0, rg::kInt8Block, rg::kInt8Block).mul_(1e20);
  const Tensor y = there_and_back(*hooks, x);
  const size_t block = rg::kInt8Block;
  CHECK(difference(x, y, 0, block) <= 1.15e-20 / 250);
  CHECK(difference(x, y, block, 2 * block) <= 1.15e20 / 250);
  CHECK(difference(x, y, 2 * block, 3 * block) <= 1.15 / 250);
  CHECK(difference(x, y, 3 * block) <= 1.15 / 250);  // the block that is not full
  CHECK(there_and_back(*hooks, rg::full({300}, -5.0)).to_vector()[299] == Approx(-5).epsilon(1e-6));
  CHECK(there_and_back(*hooks, rg::zeros({300})).to_vector() == std::vector<double>(300, 0));
  CHECK(difference(rg::full({300}, 1e-44), there_and_back(*hooks, rg::full({300}, 1e-44))) <= FLT_MIN);
}

TEST_CASE("int8 keeps a byte an element and a scale a block, whatever the layout") {
  const auto hooks = rg::save_as_int8();
  const Tensor x = wave(20 * rg::kInt8Block).view({rg::kInt8Block, 20}).t();
  const int64_t before = live();
  const std::any payload = hooks->pack(x);
  CHECK(live() - before == x.numel() + 20 * 4);
  CHECK(difference(x, hooks->unpack(payload)) <= 1.15 / 250);
}

TEST_CASE("int8 leaves what it cannot serve: infinite or nan, small, kept, expanded, integers") {
  const Tensor weight = wave(1024);
  const auto hooks = rg::save_as_int8({weight});
  for (double bad : {double(INFINITY), -double(INFINITY), double(NAN)}) {
    const Tensor x = wave(1000);
    x.select(0, 700).fill_(bad);
    CHECK(is_left_as_it_is(*hooks, x));
  }
  CHECK(is_left_as_it_is(*hooks, rg::full({300}, 1e300, {rg::kFloat64})));  // beyond float32
  CHECK(is_left_as_it_is(*hooks, wave(rg::kSmallestPacked - 1)));
  CHECK(is_left_as_it_is(*hooks, rg::zeros({1000}, {rg::kInt64})));
  CHECK(is_left_as_it_is(*hooks, wave(1000).to(rg::kFloat8_e4m3fn)));
  CHECK(is_left_as_it_is(*hooks, weight.view({32, 32}).t()));
  CHECK(is_left_as_it_is(*hooks, rg::expand(wave(4), {1000, 4})));
  CHECK_FALSE(is_left_as_it_is(*hooks, wave(rg::kSmallestPacked)));
}

// ---- copies on the CPU
// --------------------------------------------------------------------------------------

TEST_CASE("save_on_cpu gives back bits and strides of every layout, in memory of its own") {
  const Tensor base = wave(360).view({3, 10, 12});
  const Tensors layouts = {base,
                           base.transpose(0, 2),
                           rg::permute(base, {1, 2, 0}),
                           base.narrow(0, 1, 2),
                           rg::expand(wave(12), {7, 12}),
                           rg::expand(wave(36).view({3, 1, 12}).transpose(0, 2), {12, 5, 3}),
                           wave(1).view({}),
                           rg::zeros({0, 4}),
                           rg::zeros({3, 0, 2}).transpose(0, 2),
                           rg::arange(0, 50),
                           wave(9, 1, rg::kFloat64),
                           wave(8).to(rg::kBool)};
  for (const bool pinned : {false, true}) {
    const auto hooks = rg::save_on_cpu(pinned);
    for (const Tensor& x : layouts) {
      INFO(rg::describe(x) << (pinned ? ", pinned" : ""));
      const std::any payload = hooks->pack(x);
      const Tensor y = hooks->unpack(payload), again = hooks->unpack(payload);
      CHECK(same_bits(x, y));
      CHECK(same_bits(x, again));
      if (x.numel() > 0) CHECK(y.strides() == x.strides());
      CHECK_FALSE(y.impl().storage() == x.impl().storage());
    }
  }
}

TEST_CASE("save_on_cpu closes gaps of a view and keeps an expanded tensor unexpanded") {
  const auto hooks = rg::save_on_cpu();
  const Tensor base = wave(400).view({20, 20});
  const Tensor window = base.narrow(1, 3, 4).t(), diagonal = rg::diagonal(base),
               rows = rg::expand(wave(20), {50, 20});
  const int64_t before = live();
  const std::any a = hooks->pack(window), b = hooks->pack(diagonal), c = hooks->pack(rows);
  CHECK(live() - before == 4 * (80 + 20 + 20));
  CHECK(same_bits(hooks->unpack(a), window));
  CHECK(same_bits(hooks->unpack(b), diagonal));
  CHECK(same_bits(hooks->unpack(c), rows));
  // Windows that overlap are written out.
  const Tensor windows = rg::unfold(wave(10), 0, 4, 1);
  CHECK(same_bits(there_and_back(*hooks, windows), windows));
}

TEST_CASE("save_on_cpu: a later write does not reach what was saved; kept tensors stay as they are") {
  const Tensor weight = wave(64).view({8, 8});
  const auto hooks = rg::save_on_cpu(false, {weight});
  CHECK(is_left_as_it_is(*hooks, weight.t()));
  for (const bool traced : {false, true}) {
    const Tensor a = wave(8).requires_grad_(), b = a.clone();
    Tensor loss;
    {
      rg::SavedTensorHooksGuard guard(hooks);
      loss = rg::sum(b * b);
    }
    rg::NoGradGuard no_grad;
    b.zero_();
    if (traced)
      rg::compile_backward()(loss);
    else
      loss.backward();
    CHECK(same_bits(a.grad(), a.detach() * 2.0));
  }
}

TEST_CASE("gradients under the pairs: exact through copies, close through int8, eager and traced") {
  const Tensor x0 = wave(512).view({16, 32}), w = (wave(1024, 0.2).view({32, 32})).requires_grad_();
  const auto gradient = [&](const rg::RefPtr<rg::SavedTensorHooks>& hooks, bool traced) {
    const Tensor x = x0.clone().requires_grad_();
    Tensor loss;
    {
      rg::SavedTensorHooksGuard guard(hooks);
      loss = rg::sum(rg::tanh(rg::mm(x.t(), rg::mm(x, w.t())) * 0.1) * rg::mm(x.t(), x));
    }
    if (traced)
      rg::compile_backward()(loss);
    else
      loss.backward();
    return x.grad();
  };
  const auto plain =
      rg::saved_tensor_hooks([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; });
  const Tensor want = gradient(plain, false);
  for (const bool traced : {false, true}) {
    CHECK(same_bits(gradient(rg::save_on_cpu(), traced), want));
    CHECK(same_bits(gradient(rg::save_on_cpu(true, {w}), traced), want));
    const Tensor close = gradient(rg::save_as_int8({w}), traced);
    CHECK(difference(want, close) < 0.05 * difference(want, rg::zeros({16, 32})));
    CHECK(difference(want, close) > 0);
  }
}

// ---- recomputation
// ------------------------------------------------------------------------------------------

TEST_CASE("recompute drops the value of a slot and runs the function when it is needed") {
  for (const bool traced : {false, true}) {
    rg::CompiledBackward compiled = rg::compile_backward();
    for (int step = 0; step < 3; ++step) {
      const Tensor x = wave(1000).requires_grad_();
      int runs = 0;
      Tensor h = rg::sin(x);
      const int64_t with_h = live();
      const Tensor y = rg::cos(h);  // saves h
      y.grad_fn().register_saved_tensor_hooks(0, rg::recompute([&] { return ++runs, rg::sin(x.detach()); }));
      h.reset();
      CHECK(live() == with_h);  // y came, h went
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
  const Tensor x = wave(600).view({20, 30}).requires_grad_(),
               w = wave(900, 0.1).view({30, 30}).requires_grad_();
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
  const Tensor x = wave(10000).requires_grad_();
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
  const Tensor x = wave(5000).requires_grad_();
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
  const Tensor x = wave(500);
  const Tensor h = rg::sin(x);
  const auto hooks = rg::recompute(h, [&] { return rg::sin(x); });
  CHECK_FALSE(is_left_as_it_is(*hooks, h));
  h.mul_(2.0);
  CHECK(is_left_as_it_is(*hooks, h));
}

TEST_CASE("recompute keeps the layout of what it dropped") {
  const Tensor x = wave(600).view({20, 30});
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
      const Tensor x = wave(300).requires_grad_(), y = rg::sin(x);
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
  // Without the check of bits another value of the type passes: it stands in the gradient.
  const Tensor x = wave(300).requires_grad_(), y = rg::sin(x);
  y.grad_fn().register_saved_tensor_hooks(
      0, rg::recompute([] { return rg::zeros({300}); }, rg::RecomputeCheck::type));
  rg::sum(y).backward();
  CHECK(x.grad().to_vector() == std::vector<double>(300, 1));
}

TEST_CASE("recompute: an input that was written to since is noticed, never a silently other gradient") {
  const Tensor x = wave(300).requires_grad_(), u = x * 2.0, h = rg::sin(u), y = rg::cos(h);
  y.grad_fn().register_saved_tensor_hooks(0, rg::recompute([u] { return rg::sin(u.detach()); }));
  u.detach().add_(rg::ones({300}));
  std::string text;
  CHECK(category_of([&] { rg::sum(y).backward(); }, &text) == rg::Category::hook_bad_result);
  CHECK_THAT(text, Catch::Contains("other values") && Catch::Contains("Hint"));
}

TEST_CASE("recompute: exceptions of the function pass; backward again with retain_graph recomputes again") {
  int runs = 0;
  const Tensor x = wave(300).requires_grad_(), y = rg::sin(x), loss = rg::sum(y);
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
    const Tensor x = wave(300, 1, rg::kFloat64).requires_grad_(), h = rg::sin(x);
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
  const Tensor base = wave(400).view({20, 20});
  CHECK(category_of([&] { rg::recompute(base.narrow(1, 0, 3), [&] { return base; }); }) ==
        rg::Category::bad_argument);
  CHECK(category_of([&] {
          rg::recompute(rg::expand(wave(4), {9, 4}), [&] { return base; });
        }) == rg::Category::bad_argument);
  CHECK(category_of([&] { rg::recompute(Tensor(), [&] { return base; }); }) == rg::Category::bad_argument);
}
