// Errors of compiled functions name the line of their call: when it is recorded, and when it runs again.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

// That the text of an error ends with a place in this file, and at this line unless it is 0.
void check_place(const rg::Error& e, int line) {
  const std::string text = e.what(), place = "compile_place_test.cc:" + (line ? std::to_string(line) : "");
  CAPTURE(text, place);
  CHECK(text.find("compile.h") == std::string::npos);
  CHECK(text.find(place) != std::string::npos);
}

const Tensor kTwo = rg::ones({2}), kThree = rg::ones({3});

TEST_CASE("An argument that cannot be one: the line of the call") {
  const auto check_both = [](auto&& compiled) {
    check_place(rg::error_of([&] { compiled(Tensor(), kTwo); }), __LINE__);
    check_place(rg::error_of([&] { compiled(kTwo, Tensor()); }), __LINE__);
    compiled(kTwo, kTwo);  // recorded
    check_place(rg::error_of([&] { compiled(kTwo, Tensor()); }), __LINE__);
  };
  check_both(rg::compile([](const Tensor& a, const Tensor& b) { return a * b; }));
  check_both(rg::compile_step([](const Tensor& a, const Tensor& b) { return a * b; }));
}

TEST_CASE("A backward that comes too late: the line of the call, the first and later ones") {
  auto f = rg::compile([](const Tensor& x) { return rg::sum(x * x); });
  for (int run = 0; run < 3; ++run) {
    const Tensor x = rg::ones({2}).requires_grad_();
    const Tensor y = f(x);
    constexpr int call = __LINE__ - 1;
    y.backward();
    check_place(rg::error_of([&] { y.backward(); }), call);
  }
}

TEST_CASE("A saved argument that was written to: the line of the call, the first and later ones") {
  auto f = rg::compile([](const Tensor& x) { return rg::sum(x * x); });
  for (int run = 0; run < 3; ++run) {
    const Tensor x = rg::ones({2}).requires_grad_(), h = x * 1;
    const Tensor y = f(h);
    constexpr int call = __LINE__ - 1;
    h.mul_(2);
    check_place(rg::error_of([&] { y.backward(); }), call);
  }
}

TEST_CASE("An op inside: its own line, where it is recorded and where shapes ask for another recording") {
  auto step = rg::compile_step([](const Tensor& a, const Tensor& b) { return a + b; });
  constexpr int inside = __LINE__ - 1;
  check_place(rg::error_of([&] { step(kTwo, kThree); }), inside);
  step(kTwo, kTwo);
  check_place(rg::error_of([&] { step(kTwo, kThree); }), inside);
}

TEST_CASE("An op that fails while a plan runs: its own line") {
  auto step = rg::compile_step([](const Tensor& x, const Tensor& i) { return rg::index_select(x, 0, i); });
  constexpr int inside = __LINE__ - 1;
  const Tensor good = rg::tensor({0, 1}, {rg::kInt64}), bad = rg::tensor({0, 2}, {rg::kInt64});
  step(kTwo, good);
  check_place(rg::error_of([&] { step(kTwo, bad); }), inside);
}

TEST_CASE("A function without arguments has the line of its call, too") {
  const Tensor x = rg::ones({2}).requires_grad_();
  auto f = rg::compile([&x] { return rg::sum(x * x); });
  for (int run = 0; run < 3; ++run) {
    const Tensor y = f();
    constexpr int call = __LINE__ - 1;
    y.backward();
    check_place(rg::error_of([&] { y.backward(); }), call);
  }
}

}  // namespace
