// autocast: scopes, the cache of converted leaves, and where autocast is off. Dtypes of ops: autocast_dtypes_test.cc;
// gradients: autocast_gradients_test.cc; recorded code: tests/tracer/autocast_test.cc.
#include <catch2/catch.hpp>

#include <memory>
#include <thread>

#include "engine/inplace.h"
#include "retrograd/retrograd.h"
#include "tests/engine/autocast.h"
#include "tests/errors.h"

namespace {

using namespace autocast_tests;
using rg::autocast;
using rg::Category;
using rg::category_of;
using rg::kBFloat16;
using rg::kFloat16;
using rg::kFloat32;
using rg::Tensor;

}  // namespace

TEST_CASE("scopes nest, can be off, and end in any order") {
  const auto dtype = [] { return rg::mm(values({2, 2}), values({2, 2})).dtype(); };
  CHECK_FALSE(rg::is_autocast_enabled());
  CHECK(rg::get_autocast_dtype() == kBFloat16);
  CHECK(dtype() == kFloat32);
  auto outer = std::make_unique<autocast>(kFloat16);
  CHECK(rg::is_autocast_enabled());
  CHECK(dtype() == kFloat16);
  auto inner = std::make_unique<autocast>(kBFloat16);
  CHECK(dtype() == kBFloat16);
  auto off = std::make_unique<autocast>(kFloat16, rg::AutocastOptions{.enabled = false});
  CHECK_FALSE(rg::is_autocast_enabled());
  CHECK(rg::get_autocast_dtype() == kFloat16);
  CHECK(dtype() == kFloat32);
  outer.reset();
  CHECK(dtype() == kFloat32);
  std::thread([&] { off.reset(); }).join();
  CHECK(dtype() == kBFloat16);
  inner.reset();
  CHECK(dtype() == kFloat32);
  {
    const autocast scope;
    std::thread([&] { CHECK_FALSE(rg::is_autocast_enabled()); }).join();
  }
  std::string text;
  CHECK(category_of([] { autocast wrong(kFloat32); }, &text) == Category::bad_argument);
  CHECK_THAT(text, Catch::Contains("float32") && Catch::Contains("autocast_test.cc"));
}

TEST_CASE("a leaf is converted once per scope, and again after a write") {
  const Tensor w = parameter({4, 4}), x = values({2, 4});
  const autocast scope;
  CHECK(casts_of([&] { rg::mm(x, w); }) == Casts{2, 0});
  CHECK(casts_of([&] { rg::mm(x, w); }) == Casts{2, 1});
  {
    const autocast inner(kBFloat16);
    CHECK(casts_of([&] { rg::matmul(x, w); }) == Casts{2, 1});
    const autocast uncached(kBFloat16, {.cache_enabled = false});
    CHECK(casts_of([&] { rg::mm(x, w); }) == Casts{2, 0});
  }
  {
    const autocast half(kFloat16);
    CHECK(casts_of([&] { CHECK(rg::mm(x, w).dtype() == kFloat16); }) == Casts{2, 0});
  }
  {
    const rg::NoGradGuard no_grad;
    w.mul_(3);
  }
  rg::mm(x, w);
  Tensor stale = rg::mm(x, w), fresh;
  {
    const autocast uncached(kBFloat16, {.cache_enabled = false});
    fresh = rg::mm(x, w);
  }
  check_equal(stale, fresh);
}

TEST_CASE("the cache ends with the outermost scope") {
  const Tensor w = parameter({128, 128}), x = values({1, 128});
  const rg::NoGradGuard no_grad;
  const int64_t before = rg::memory::stats().live_bytes;
  {
    const autocast scope;
    rg::mm(x, w);
    CHECK(rg::memory::stats().live_bytes >= before + 128 * 128 * 2);
  }
  CHECK_FALSE(rg::is_autocast_enabled());
  CHECK(rg::memory::stats().live_bytes < before + 128 * 128);
}

TEST_CASE("the cache changes no bit, and serves with and without gradients") {
  const auto train = [](bool cached) {
    const Tensor w = parameter({4, 4}), x = values({3, 4});
    const autocast scope(kBFloat16, {.cache_enabled = cached});
    {
      const rg::NoGradGuard no_grad;
      rg::mm(x, w);
    }
    Tensor h = x;
    for (int i = 0; i < 5; ++i) h = rg::tanh(rg::mm(h, w));
    rg::sum(h).backward();
    rg::sum(rg::mm(x, w)).backward();  // a second graph through the same conversion
    return w.grad();
  };
  check_equal(train(true), train(false));
}

TEST_CASE("what a pack hook writes to a converted leaf is not used again") {
  const Tensor w = parameter({2, 2}), x = parameter({2, 2});
  const autocast scope;
  const Tensor y = rg::mm(x, w);
  const rg::Record& record = *y.impl().grad_fn;
  {
    const rg::NoGradGuard no_grad;
    Tensor(rg::RefPtr<rg::TensorImpl>(record.slot(0).value())).zero_();
    Tensor(rg::RefPtr<rg::TensorImpl>(record.slot(1).value())).zero_();
  }
  check_equal(rg::mm(x, w), y);
}

TEST_CASE("writes in place, hooks and packs are not cast") {
  const autocast scope;
  Tensor sum = values({2, 2});
  rg::apply_inplace(
      sum,
      [](const Tensor& old) {
        return rg::addmm(old, values({2, 2}), values({2, 2}));
      },
      "addmm_");
  check_equal(sum, [] {
    const autocast off(kBFloat16, {.enabled = false});
    return rg::addmm(values({2, 2}), values({2, 2}), values({2, 2}));
  }());
  const Tensor w = parameter({2, 2});
  int called = 0;
  const auto is_off = [&] {
    ++called;
    CHECK_FALSE(rg::is_autocast_enabled());
    CHECK(rg::mm(values({2, 2}), values({2, 2})).dtype() == kFloat32);
    const autocast inner(kFloat16);  // a scope that the hook opens counts
    CHECK(rg::mm(values({2, 2}), values({2, 2})).dtype() == kFloat16);
  };
  Tensor y;
  {
    const rg::SavedTensorHooksGuard pair(
        [&](const Tensor& t) {
          is_off();
          return t;
        },
        [&](const Tensor& t) {
          is_off();
          return t;
        });
    y = rg::tanh(rg::mm(w, w));
  }
  y.register_hook([&](const Tensor&) {
    is_off();
    return Tensor();
  });
  rg::sum(y).backward();
  CHECK(called == 7);  // three values packed and unpacked, a hook
}
