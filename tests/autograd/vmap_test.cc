// vmap: dims and structures, what it refuses, random numbers, writes in place, hooks, and the transforms around it.
// That each op agrees with a loop is in tests/ops/derivatives/batching_test.cc.
#include <retrograd/retrograd.h>
#include <catch2/catch.hpp>

#include "ops/batching.h"
#include "ops/total_norm.h"
#include "tests/autograd/numbers.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace ag = retrograd::autograd;
namespace func = retrograd::func;
using rg::Tensor;
using rg::Tensors;
using rg::testing::check_close;
using rg::testing::numbers;
using std::nullopt;

namespace {

bool are_equal(const Tensor& a, const Tensor& b) { return a.to_vector() == b.to_vector(); }

template <class F>
void check_error(const F& f, rg::Category category, std::string_view part) {
  std::string text;
  CHECK(rg::category_of(f, &text) == category);
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

const auto dot = [](const Tensor& x, const Tensor& w) { return rg::dot(x, w); };
const auto twice = [](const Tensor& x) { return x * 2.0; };

// ---- dims and structures --------------------------------------------------------------------------------------------

TEST_CASE("in_dims name the batch dim of each argument, out_dims of each result") {
  const Tensor x = numbers({3, 4}), w = numbers({4}, 2);
  check_close(rg::vmap(dot, {0, nullopt})(x, w), rg::mv(x, w));
  check_close(rg::vmap(dot, {1, nullopt})(x.t(), w), rg::mv(x, w));
  check_close(rg::vmap(dot, {-1, nullopt})(x.t(), w), rg::mv(x, w));
  check_close(rg::vmap(dot)(x, x), rg::sum(x * x, 1));
  check_close(rg::vmap(twice, 0, 1)(x), (x * 2.0).t());
  check_close(rg::vmap(twice, 0, -1)(x), (x * 2.0).t());
}

TEST_CASE("a result that depends on no batched value is repeated") {
  const Tensor x = numbers({3, 4}), w = numbers({2}, 2);
  const auto f = [&w](const Tensor& x) { return std::tuple(x, w); };
  const auto [same, repeated] = rg::vmap(f, 0, {0, 1})(x);
  check_close(same, x);
  check_close(repeated, rg::expand(rg::unsqueeze(w, 1), {2, 3}));
  const auto [all, one] = rg::vmap(f, 0, {0, nullopt})(x);
  check_close(one, w);
  check_error([&] { rg::vmap(f, 0, nullopt)(x); }, rg::Category::bad_argument,
              "`f` can not return a BatchedTensor when out_dim is None");
}

struct Pair {
  Tensor sum;
  std::vector<Tensor> parts;
};

TEST_CASE("arguments and results are structures") {
  const auto f = [](const std::vector<Tensor>& x, double factor) {
    return Pair{x[0] + x[1], {x[0] * factor}};
  };
  const Tensor a = numbers({3, 2}), b = numbers({3, 2}, 2);
  const Pair got = rg::vmap(f)(std::vector<Tensor>{a, b}, 3.0);
  check_close(got.sum, a + b);
  check_close(got.parts.at(0), a * 3.0);
}

TEST_CASE("chunks give the same") {
  const Tensor x = numbers({5, 4}), w = numbers({4}, 2);
  check_close(rg::vmap(dot, {0, nullopt}, 0, "error", 2)(x, w), rg::mv(x, w));
  check_close(rg::vmap(twice, 0, 1, "error", 2)(x), (x * 2.0).t());
}

TEST_CASE("an empty batch gives an empty result of the right type") {
  const Tensor x = numbers({0, 4}), w = numbers({4}, 2);
  CHECK(rg::vmap(dot, {0, nullopt})(x, w).impl().shape() == rg::Shape{0});
  const auto loops = [](const Tensor& x) { return rg::median(x); };
  CHECK(rg::vmap(loops)(x).impl().shape() == rg::Shape{0});
  const auto convolve = [](const Tensor& x, const Tensor& w) { return rg::conv1d(x, w); };
  const Tensor convolved = rg::vmap(convolve)(numbers({0, 1, 2, 5}), numbers({0, 3, 2, 2}));
  CHECK(convolved.impl().shape() == rg::Shape{0, 1, 3, 4});
}

/// f of a batch, and a loop over its samples; and whether vmap called it in one.
template <class F>
void check_in_one_call(const char* op, const F& f, const Tensor& x) {
  INFO(op);
  Tensors each;
  for (int64_t k = 0; k < x.size(0); ++k) each.push_back(f(x[k]));
  check_close(rg::vmap(f)(x), rg::stack(each));
  const std::vector<std::string> looped = rg::ops::looped_ops();
  CHECK(std::ranges::find(looped, op) == looped.end());
}

TEST_CASE("ops without a derivative are called once for all samples") {
  const Tensor x = numbers({3, 2, 5});
  const auto third = [](const Tensor& x) { return x * 3.0; };
  for (const rg::ScalarType dtype : {rg::kFloat64, rg::kFloat32, rg::kBFloat16}) {
    // Values on the edges of bins, outside, and NaN.
    const Tensor edges = rg::tensor({-1., 0., .25, .5, .75, 1., 2., std::nan("")}, {2, 4}, {dtype});
    check_in_one_call(
        "histc", [](const Tensor& x) { return rg::histc(x, 4, 0, 1); }, edges);
    check_in_one_call(
        "histc", [](const Tensor& x) { return rg::histc(x, 3, -0.5, 1.5); }, x.to(dtype));
    for (const double p : {1.0, 2.0, 3.5, double(INFINITY)})
      check_in_one_call(
          "total_norm",
          [&](const Tensor& x) {
            return rg::total_norm({x[0], x, third(x)}, p);
          },
          x.to(dtype));
  }
}

TEST_CASE("bags of indices that do not fit are refused for each sample") {
  const Tensor table = numbers({4, 2}), starts = rg::tensor({0, 2}, {rg::kInt64});
  const auto bags = [&](const Tensor& index) {
    return rg::embedding_bag(index, table, starts, false, "sum");
  };
  const Tensor right = rg::tensor({0, 1, 2, 3, 3, 0}, {2, 3}, {rg::kInt64});
  check_close(rg::vmap(bags)(right), rg::stack({bags(right[0]), bags(right[1])}));
  const Tensor beyond = rg::tensor({0, 1, 4, 3, 3, 0}, {2, 3}, {rg::kInt64});
  CHECK(rg::category_of([&] { rg::vmap(bags)(beyond); }) == rg::Category::index_out_of_range);
}

TEST_CASE("a linear map for each sample may have no results") {
  const auto linear = [](const Tensor& x, const Tensor& w) { return rg::linear(x, w); };
  CHECK(rg::vmap(linear)(numbers({3, 2, 4}), numbers({3, 0, 4})).impl().shape() == rg::Shape{3, 2, 0});
}

// ---- refusals -------------------------------------------------------------------------------------------------------

TEST_CASE("errors are PyTorch's") {
  const Tensor x = numbers({3, 4}), y = numbers({2, 4});
  check_error([&] { rg::vmap(dot)(x, y); }, rg::Category::shape_mismatch,
              "Expected all tensors to have the same size in the mapped dimension, got sizes [3, 2]");
  check_error(
      [&] {
        rg::vmap(dot, {nullopt, nullopt})(x, y);
      },
      rg::Category::bad_argument, "Expected at least one Tensor to vmap over");
  check_error([&] { rg::vmap(dot, {0})(x, y); }, rg::Category::bad_argument,
              "in_dims is not compatible with the structure");
  check_error([&] { rg::vmap(twice, 2)(x); }, rg::Category::bad_dim, "Got in_dim=2 for some input");
  check_error([&] { rg::vmap(twice, 0, 3)(x); }, rg::Category::bad_dim, "out_dim 3");
  check_error(
      [&] {
        rg::vmap(twice, 0, {0, 0})(x);
      },
      rg::Category::bad_argument, "out_dims is not compatible");
  check_error([&] { rg::vmap(twice, 0, 0, "any")(x); }, rg::Category::bad_argument,
              "Only allowed values for randomness");
  check_error([&] { rg::vmap(twice, 0, 0, "error", 0)(x); }, rg::Category::bad_argument, "chunk_size");
  const auto none = [](const std::vector<Tensor>&) { return rg::zeros({1}); };
  check_error([&] { rg::vmap(none)(std::vector<Tensor>{}); }, rg::Category::bad_argument, "got no inputs");
}

TEST_CASE("type errors are about one sample") {
  const auto product = [](const Tensor& x) { return rg::mm(x, x); };
  check_error(
      [&] {
        rg::vmap(product)(numbers({5, 2, 3}));
      },
      rg::Category::shape_mismatch, "f64[2,3], f64[2,3]");
}

TEST_CASE("values cannot be read") {
  const Tensor x = numbers({3});
  const auto item = [](const Tensor& x) { return x * x.item<double>(); };
  check_error([&] { rg::vmap(item)(x); }, rg::Category::bad_argument,
              "It looks like you're calling .item() on a Tensor");
  const auto data = [](const Tensor& x) { return x * *x.data_ptr<double>(); };
  check_error([&] { rg::vmap(data)(x); }, rg::Category::bad_argument, "vmap");
  std::string text;
  rg::vmap([&](const Tensor& x) {
    text = rg::to_string(x);
    return x;
  })(x);
  CHECK(text.starts_with("BatchedTensor(lvl="));
  Tensor leaked;
  rg::vmap([&](const Tensor& x) { return leaked = x; })(x);
  check_error([&] { leaked.item(); }, rg::Category::bad_argument, "vmap that is over");
  check_error([&] { leaked + 1.0; }, rg::Category::bad_argument, "vmap that is over");
}

// ---- random numbers -------------------------------------------------------------------------------------------------

TEST_CASE("random numbers are refused, the same, or different") {
  const Tensor x = rg::zeros({64, 3}, {rg::kFloat64});
  const auto noise = [](const Tensor& x) { return x + rg::randn({3}, {rg::kFloat64}); };
  check_error([&] { rg::vmap(noise)(x); }, rg::Category::unsupported,
              "called random operation while in randomness error mode");
  const Tensor same = rg::vmap(noise, 0, 0, "same")(x);
  for (int64_t k = 1; k < 64; ++k) CHECK(are_equal(same[k], same[0]));
  const Tensor different = rg::vmap(noise, 0, 0, "different")(x);
  for (int64_t k = 1; k < 64; ++k) CHECK_FALSE(are_equal(different[k], different[0]));
  CHECK_FALSE(are_equal(rg::vmap(noise, 0, 0, "different")(x), different));
}

TEST_CASE("dropout of a batch: one mask, or one for each sample, also in its gradient") {
  const Tensor x = rg::ones({8, 100}, {rg::kFloat64}).requires_grad_();
  const auto drop = [](const Tensor& x) { return rg::dropout(x, 0.5, true); };
  for (const char* randomness : {"same", "different"}) {
    const Tensor y = rg::vmap(drop, 0, 0, randomness)(x);
    check_close(ag::grad({rg::sum(y)}, {x})[0], y);
    int64_t equal = 0;
    for (int64_t k = 1; k < 8; ++k) equal += are_equal(y[k].detach(), y[0].detach());
    CHECK(equal == (std::string_view(randomness) == "same" ? 7 : 0));
    const auto inside = [&](const Tensor& x) {
      return func::grad([&](const Tensor& x) { return rg::sum(drop(x)); })(x);
    };
    const Tensor g = rg::vmap(inside, 0, 0, randomness)(x.detach());
    CHECK(are_equal(g[0], g[1]) == (std::string_view(randomness) == "same"));
  }
}

TEST_CASE("permutations and choices differ between samples") {
  const Tensor x = rg::ones({16, 20}, {rg::kFloat64});
  const auto permutation = [](const Tensor& x) { return rg::randperm(20) + rg::sum(x).to(rg::kInt64) * 0; };
  const auto choice = [](const Tensor& x) { return rg::multinomial(x, 5); };
  for (const std::function<Tensor(const Tensor&)>& f :
       {std::function<Tensor(const Tensor&)>(permutation), std::function<Tensor(const Tensor&)>(choice)}) {
    const Tensor same = rg::vmap(f, 0, 0, "same")(x), different = rg::vmap(f, 0, 0, "different")(x);
    CHECK(are_equal(same[1], same[0]));
    CHECK_FALSE(are_equal(different[1], different[0]));
  }
}

TEST_CASE("in vmap of vmap, each of the samples has numbers of its own") {
  const Tensor x = rg::ones({3, 4, 20}, {rg::kFloat64});
  const auto permutation = [](const Tensor& x) { return rg::randperm(20) + rg::sum(x).to(rg::kInt64) * 0; };
  const auto choice = [](const Tensor& x) { return rg::multinomial(x, 10); };
  const auto noise = [](const Tensor& x) { return x + rg::randn({20}, {rg::kFloat64}); };
  const auto check = [&](const auto& f) {
    const auto rows = [&](const Tensor& x) { return rg::vmap(f, 0, 0, "different")(x); };
    const Tensor all = rg::vmap(rows, 0, 0, "different")(x).flatten(0, 1);
    for (int64_t i = 0; i < 12; ++i)
      for (int64_t j = 0; j < i; ++j) CHECK_FALSE(are_equal(all[i], all[j]));
    const Tensor same = rg::vmap(rows, 0, 0, "same")(x);
    CHECK(are_equal(same[0], same[2]));
    CHECK_FALSE(are_equal(same[0][0], same[0][1]));
  };
  check(permutation), check(choice), check(noise);
}

TEST_CASE("activations that draw: the same, or different") {
  const Tensor x = rg::ones({4, 50}, {rg::kFloat64}) * -1.0;
  const auto slopes = [](const Tensor& x) { return rg::rrelu(x, 0.1, 0.3, true); };
  const auto classes = [](const Tensor& x) { return rg::gumbel_softmax(x, 1.0); };
  for (const std::function<Tensor(const Tensor&)>& f :
       {std::function<Tensor(const Tensor&)>(slopes), std::function<Tensor(const Tensor&)>(classes)}) {
    const Tensor same = rg::vmap(f, 0, 0, "same")(x), different = rg::vmap(f, 0, 0, "different")(x);
    CHECK(are_equal(same[1], same[0]));
    CHECK_FALSE(are_equal(different[1], different[0]));
  }
}

// ---- writes in place ------------------------------------------------------------------------------------------------

TEST_CASE("writes in place") {
  const Tensor x = numbers({3, 4});
  SECTION("into a batched value") {
    const Tensor y = x.clone();
    check_close(rg::vmap([](const Tensor& y) { return y.add_(1.0).mul_(y); })(y), (x + 1.0) * (x + 1.0));
    check_close(y, (x + 1.0) * (x + 1.0));
  }
  SECTION("through a view, with gradients inside and outside") {
    const auto f = [](const Tensor& x) {
      const Tensor y = x * 2.0;
      y.select(0, 1).mul_(x.select(0, 0));
      return rg::sum(y * y);
    };
    const Tensor inside = rg::vmap(func::grad(f))(x);
    const Tensor leaf = x.clone().requires_grad_();
    const Tensor outside = ag::grad({rg::sum(rg::vmap(f)(leaf))}, {leaf})[0];
    for (int64_t k = 0; k < 3; ++k) {
      const Tensor sample = x[k].clone().requires_grad_();
      const Tensor want = ag::grad({f(sample)}, {sample})[0];
      check_close(inside[k], want);
      check_close(outside[k], want);
    }
  }
  SECTION("into what is made like a batched value, by each sample") {
    const auto f = [](const Tensor& x) {
      const Tensor sum = rg::zeros_like(x), copy = rg::empty_like(x), last = x.new_full({2}, 3.0);
      sum.add_(x).add_(1.0);
      copy.copy_(sum);
      last.select(0, 1).copy_(x.select(0, 0));
      return std::tuple(copy, last);
    };
    const auto [copy, last] = rg::vmap(f)(x);
    check_close(copy, x + 1.0);
    check_close(last, rg::stack({rg::full({3}, 3.0, {rg::kFloat64}), rg::select(x, 1, 0)}, 1));
    const auto g = [&](const Tensor& x) {
      return rg::vmap([&](const Tensor& x) { return std::get<0>(f(x)); })(x);
    };
    check_close(rg::vmap(g)(rg::reshape(x, {3, 2, 2})), rg::reshape(x + 1.0, {3, 2, 2}));
    const Tensor leaf = x.clone().requires_grad_();
    check_close(ag::grad({rg::sum(g(leaf) * x)}, {leaf})[0], x);
  }
  SECTION("a leaf like a batched value") {
    const auto slope = [](const Tensor& x) {
      const Tensor at = rg::ones_like(x, rg::TensorOptions().requires_grad(true));
      return ag::grad({rg::sum(at * at * x)}, {at})[0];
    };
    check_close(rg::vmap(slope)(x), x * 2.0);
  }
  SECTION("of a batched value into one that is not is refused") {
    const Tensor sum = rg::zeros({4}, {rg::kFloat64});
    check_error([&] { rg::vmap([&](const Tensor& x) { return sum.add_(x); })(x); }, rg::Category::unsupported,
                "vmap: add_(self, *extra_args) is not possible");
    CHECK(are_equal(sum, rg::zeros({4}, {rg::kFloat64})));
  }
  SECTION("one that is refused outside leaves the history inside as it was") {
    const Tensor leaf = numbers({3, 4}).requires_grad_(), w = numbers({4}, 2).requires_grad_();
    const auto f = [&](const Tensor& x) {
      CHECK(rg::category_of([&] { x.mul_(w); }) == rg::Category::leaf_inplace);
      CHECK(x.is_leaf());
      return x * 1.0;
    };
    check_close(rg::vmap(f)(leaf), numbers({3, 4}));
  }
}

// ---- gradients, hooks, transforms -----------------------------------------------------------------------------------

TEST_CASE("a backward from a mapped result reaches captured tensors") {
  const Tensor x = numbers({3, 4}), w = numbers({4}, 2).requires_grad_();
  rg::sum(rg::vmap([&](const Tensor& x) { return rg::dot(x, w); })(x)).backward();
  check_close(w.grad(), rg::sum(x, 0));
}

TEST_CASE("gradients inside of vmap of a graph from outside: rows of a Jacobian") {
  const Tensor x = numbers({3}).requires_grad_();
  const Tensor y = rg::exp(x) * rg::sum(x);
  const auto row = [&](const Tensor& v) { return ag::grad({y}, {x}, {v}, true)[0]; };
  const Tensor jacobian = rg::vmap(row)(rg::eye(3, {}, {rg::kFloat64}));
  const auto f = [](const Tensors& x) { return Tensors{rg::exp(x[0]) * rg::sum(x[0])}; };
  check_close(jacobian, ag::jacobian(f, {x})[0][0]);
}

TEST_CASE("the gradient of each sample is not accumulated into one leaf") {
  const Tensor x = numbers({3, 4}), w = numbers({4}, 2).requires_grad_();
  const auto f = [&](const Tensor& x) {
    const Tensor loss = rg::dot(x, w);
    loss.backward();
    return loss;
  };
  check_error([&] { rg::vmap(f)(x); }, rg::Category::unsupported, "accumulated into one leaf from outside");
  // A leaf of an outer vmap is from outside, too.
  const auto outer = [&](const Tensor& w) {
    const Tensor leaf = (w * 1.0).requires_grad_();
    const auto inner = [&](const Tensor& x) {
      const Tensor loss = rg::dot(x, leaf);
      loss.backward();
      return loss;
    };
    return rg::vmap(inner)(x);
  };
  check_error(
      [&] {
        rg::vmap(outer)(numbers({2, 4}, 2));
      },
      rg::Category::unsupported, "accumulated into one leaf from outside");
}

TEST_CASE("a gradient of gradients of the samples") {
  const Tensor x = numbers({3, 4}).requires_grad_(), w = numbers({4}, 2).requires_grad_();
  const auto loss = [](const Tensor& x, const Tensor& w) { return rg::sum(rg::sin(x * w)); };
  const Tensor got = rg::sum(rg::square(rg::vmap(func::grad(loss), {0, nullopt})(x, w)));
  const Tensors gradients = ag::grad({got}, {x, w});
  const Tensor g = ag::grad({rg::sum(rg::sin(x * w))}, {x}, {}, {}, true)[0];
  const Tensors want = ag::grad({rg::sum(rg::square(g))}, {x, w});
  check_close(gradients[0], want[0]);
  check_close(gradients[1], want[1]);
}

TEST_CASE("hooks inside see one sample, hooks outside the batch") {
  const Tensor x = numbers({3, 4}).requires_grad_();
  std::vector<rg::Shape> seen;
  const auto note = [&](const Tensor& g) { seen.push_back(g.impl().shape()); };
  x.register_hook(note);
  const auto loss = [&](const Tensor& x) {
    const Tensor y = x * 2.0;
    if (y.requires_grad())
      y.register_hook([&](const Tensor& g) {
        seen.push_back(g.impl().shape());
        return g * 3.0;
      });
    return rg::sum(y * y);
  };
  const Tensor inside = rg::vmap(func::grad(loss))(x.detach());
  check_close(inside, x.detach() * 24.0);
  REQUIRE(seen.size() == 1);
  CHECK(seen[0] == rg::Shape{4});
  seen.clear();
  rg::sum(rg::vmap([](const Tensor& x) { return rg::sum(x * x); })(x)).backward();
  REQUIRE(seen.size() == 1);
  CHECK(seen[0] == rg::Shape{3, 4});
}

TEST_CASE("saved-tensor hooks from outside see batches, those from inside samples") {
  std::vector<rg::Shape> packed;
  const auto pair = [&] {
    return rg::saved_tensor_hooks(
        [&](const Tensor& t) {
          packed.push_back(t.impl().shape());
          return t;
        },
        [](const Tensor& t) { return t; });
  };
  const Tensor x = numbers({3, 4}).requires_grad_();
  {
    const rg::SavedTensorHooksGuard guard(pair());
    rg::vmap([](const Tensor& x) { return rg::sin(x); })(x);
  }
  REQUIRE(packed.size() == 1);
  CHECK(packed[0] == rg::Shape{3, 4});
  packed.clear();
  const Tensor g = rg::vmap(func::grad([&](const Tensor& x) {
    const rg::SavedTensorHooksGuard guard(pair());
    return rg::sum(rg::sin(x));
  }))(x.detach());
  REQUIRE(packed.size() == 1);
  CHECK(packed[0] == rg::Shape{4});
  check_close(g, rg::cos(x.detach()));
}

TEST_CASE("compiled: the recording has the operations on batches") {
  const Tensor w = numbers({4}, 2).requires_grad_();
  const auto f = [&](const Tensor& x) {
    return rg::vmap(func::grad([](const Tensor& w, const Tensor& x) { return rg::sum(rg::sin(x * w)); }),
                    {nullopt, 0})(w, x);
  };
  const auto compiled = rg::compile(f);
  for (const int seed : {1, 2, 3}) {
    const Tensor x = numbers({3, 4}, seed);
    const Tensor got = compiled(x), want = f(x);
    check_close(got, want);
    check_close(ag::grad({rg::sum(got * got)}, {w})[0], ag::grad({rg::sum(want * want)}, {w})[0]);
  }
  CHECK(compiled.stats().captures == 1);
  CHECK(compiled.stats().eager == 0);
}

TEST_CASE("compiled for batches of any size") {
  rg::CompileOptions options;
  options.dynamic = rg::DynamicSizes::always;
  const Tensor w = numbers({2, 4}, 2);
  const auto f = [&](const Tensor& x) {
    return rg::vmap([&](const Tensor& x) { return rg::softmax(rg::linear(x, w), -1) * rg::sum(x); })(x);
  };
  const auto compiled = rg::compile(f, options);
  for (const int64_t samples : {3, 5, 7}) {
    const Tensor x = numbers({samples, 6, 4});
    check_close(compiled(x), f(x));
  }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("a compiled function with a hook inside of vmap runs eagerly") {
  int calls = 0;
  const auto loss = [&](const Tensor& x) {
    const Tensor y = x * 2.0;
    y.register_hook([&](const Tensor& g) {
      ++calls;
      return g * 3.0;
    });
    return rg::sum(y * y);
  };
  const auto compiled = rg::compile([&](const Tensor& x) { return rg::vmap(func::grad(loss))(x); });
  for (const int seed : {1, 2}) {
    const Tensor x = numbers({3, 4}, seed);
    check_close(compiled(x), x * 24.0);
  }
  CHECK(calls == 2);
  CHECK(compiled.stats().eager == 2);
}

TEST_CASE("autocast inside and outside") {
  const Tensor x = numbers({3, 2, 4}).to(rg::kFloat32);
  const Tensor w = numbers({5, 4}, 2).to(rg::kFloat32).requires_grad_();
  const auto f = [&](const Tensor& x) { return rg::linear(x, w); };
  const auto inside = [&](const Tensor& x) {
    const rg::autocast guard(rg::kBFloat16);
    return f(x);
  };
  const Tensor a = rg::vmap(inside)(x);
  const rg::autocast guard(rg::kBFloat16);
  const Tensor b = rg::vmap(f)(x), want = f(x);
  CHECK(a.dtype() == rg::kBFloat16);
  check_close(a, want);
  check_close(b, want);
}

TEST_CASE("a compiled function inside of vmap runs as it is") {
  const auto compiled = rg::compile([](const Tensor& x) { return rg::sin(x) * x; });
  const Tensor x = numbers({3, 4});
  check_close(rg::vmap(compiled)(x), rg::sin(x) * x);
  CHECK(compiled.stats().eager == 1);
}

TEST_CASE("a checkpoint around vmap; inside it is refused") {
  const Tensor x = numbers({3, 4}).requires_grad_();
  const auto f = [](const Tensor& x) { return rg::sum(rg::sin(x) * x); };
  const auto around = [&](const Tensor& x) { return rg::vmap(f)(x); };
  const Tensor got = ag::grad({rg::sum(rg::checkpoint(around, x))}, {x})[0];
  check_close(got, rg::cos(x.detach()) * x.detach() + rg::sin(x.detach()));
  const auto inside = [&](const Tensor& x) { return rg::checkpoint(f, x); };
  check_error([&] { rg::vmap(func::grad(inside))(x.detach()); }, rg::Category::unsupported,
              "cannot be inside of vmap");
}

TEST_CASE("vmap of vmap over different dims, and jvp on either side") {
  const Tensor a = numbers({2, 3, 4}), b = numbers({5, 4}, 2);
  const auto rows = [&](const Tensor& x) { return rg::vmap(dot, {nullopt, 0})(x, b); };  // [4] -> [5]
  check_close(rg::vmap(rg::vmap(rows))(a), rg::matmul(a, b.t()));
  check_close(rg::vmap(rg::vmap(rows, 1, 1), 0, 0)(a.transpose(1, 2)), rg::matmul(a, b.t()).transpose(1, 2));
  const Tensor x = numbers({3, 4}, 3), t = numbers({3, 4}, 4);
  const auto f = [](const Tensor& x) { return rg::sin(x) * rg::sum(x); };
  const auto [y, outside] = func::jvp([&](const Tensor& x) { return rg::vmap(f)(x); }, x, t);
  const auto tangent = [&](const Tensor& x, const Tensor& t) { return func::jvp(f, x, t).second; };
  check_close(rg::vmap(tangent)(x, t), outside);
  check_close(y, rg::sin(x) * rg::sum(x, 1, true));
}

TEST_CASE("a user-defined function: gradients inside, refused outside") {
  struct Cube : rg::Function<Cube> {
    static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
      ctx->save_for_backward({x});
      return x * x * x;
    }
    static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
      const Tensor x = ctx->get_saved_variables()[0];
      return {grads[0] * x * x * 3.0};
    }
  };
  const Tensor x = numbers({3, 4});
  const auto f = [](const Tensor& x) { return rg::sum(Cube::apply(x)); };
  check_close(rg::vmap(f)(x), rg::sum(x * x * x, 1));
  check_close(rg::vmap(func::grad(f))(x), x * x * 3.0);
  const Tensor leaf = x.clone().requires_grad_();
  check_error([&] { rg::vmap(f)(leaf); }, rg::Category::unsupported, "differentiated outside of vmap");
}

}  // namespace
