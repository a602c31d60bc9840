// gradcheck and gradgradcheck: what they accept, and that each kind of wrong derivative is found and named.
#include <retrograd/retrograd.h>
#include <catch2/catch.hpp>

namespace rg = retrograd;
namespace ag = retrograd::autograd;
using Catch::Matchers::Contains;
using rg::Tensor;
using rg::Tensors;

namespace {

Tensor leaf(const std::vector<double>& values, const rg::Shape& shape) {
  return rg::tensor(values, shape, {rg::kFloat64}).requires_grad_();
}
Tensor matrix() { return leaf({0.5, -1.25, 2.25, 0.75, -0.5, 1.5}, {2, 3}); }

std::string failure_of(const ag::VectorFunction& f, const Tensors& x, ag::GradcheckOptions options = {}) {
  options.raise = false;
  const ag::GradcheckResult result = ag::gradcheck(f, x, options);
  CHECK(result.passed == result.failure.empty());
  return result.failure;
}

// x^2 in the first and x^3 in the second result, with mistakes to choose from.
enum class Mistake { none, value, forward, undefined, repeat };
struct Powers : rg::Function<Powers> {
  static inline Mistake mistake = Mistake::none;
  static inline int calls = 0;
  static Tensors forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    ctx->set_materialize_grads(false);
    return {x * x, x * x * x};
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    const Tensor x = ctx->get_saved_variables()[0];
    Tensor sum = rg::zeros_like(x);
    if (g[0].defined()) sum = sum + g[0] * x * (mistake == Mistake::value ? 3 : 2);
    if (g[1].defined()) sum = sum + g[1] * x * x * 3;
    if (mistake == Mistake::undefined && !g[1].defined()) sum = sum + 1e-9;
    if (mistake == Mistake::repeat) sum = sum + 1e-12 * ++calls;
    return {sum};
  }
  static Tensors jvp(rg::AutogradContext* ctx, const Tensors& t) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {t[0] * x * 2, t[0] * x * x * (mistake == Mistake::forward ? 4 : 3)};
  }
};

std::string failure_with(Mistake mistake) {
  Powers::mistake = mistake;
  const std::string text =
      failure_of([](const Tensors& x) { return Powers::apply(x[0]); }, {leaf({1.5, -0.5}, {2})});
  Powers::mistake = Mistake::none;
  return text;
}

// Without a jvp.
struct Twice : rg::Function<Twice> {
  static Tensor forward(rg::AutogradContext*, const Tensor& x) { return x * 2; }
  static Tensors backward(rg::AutogradContext*, const Tensors& g) { return {g[0] * 2}; }
};

// Right at first order, wrong in the second derivative: the gradient does not know that it depends on x.
struct Detached : rg::Function<Detached> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    return {g[0] * ctx->get_saved_variables()[0].detach() * 2};
  }
  static Tensors jvp(rg::AutogradContext* ctx, const Tensors& t) {
    return {t[0] * ctx->get_saved_variables()[0] * 2};
  }
};

}  // namespace

TEST_CASE("right derivatives pass") {
  const auto f = [](const Tensors& x) { return Tensors{rg::tanh(x[0]) * x[1], rg::sum(rg::exp(x[1]), {0})}; };
  const Tensors x{matrix(), leaf({0.25, -0.5, 1}, {3})};
  CHECK(ag::gradcheck(f, x));
  CHECK(ag::gradgradcheck(f, x));
  ag::GradcheckOptions options = ag::kGradgradcheckOptions;
  options.non_contiguous_cotangents = true;
  CHECK(ag::gradgradcheck(f, x, {}, options));
  CHECK(ag::gradgradcheck(f, x, {rg::ones({2, 3}, {rg::kFloat64}), rg::ones({}, {rg::kFloat64})}));
  CHECK(failure_with(Mistake::none).empty());
}

TEST_CASE("a wrong gradient is named with element and both numbers") {
  const std::string text = failure_with(Mistake::value);
  CHECK_THAT(text, Contains("output 0, element [0]") && Contains("input 0, element [0]"));
  CHECK_THAT(text, Contains("4.5 in reverse mode") && Contains("by differences"));
  Powers::mistake = Mistake::value;
  const auto f = [](const Tensors& x) { return Powers::apply(x[0]); };
  CHECK_THROWS_AS(ag::gradcheck(f, {leaf({1}, {})}), ag::GradcheckError);
  Powers::mistake = Mistake::none;
}

TEST_CASE("a wrong tangent, a wrong sum over missing cotangents, other bits") {
  CHECK_THAT(failure_with(Mistake::forward), Contains("output 1") && Contains("in forward mode"));
  CHECK_THAT(failure_with(Mistake::undefined), Contains("zeros for the others"));
  CHECK_THAT(failure_with(Mistake::repeat), Contains("other bits"));
}

TEST_CASE("forward mode that is nearly right differs from reverse mode") {
  const auto f = [](const Tensors& x) {
    Tensor y = x[0] * x[0];
    if (y.requires_grad()) y.register_hook([](const Tensor& g) { return g * (1 + 1e-10); });
    return Tensors{y};
  };
  CHECK_THAT(failure_of(f, {matrix()}), Contains("<w, J t>"));
}

TEST_CASE("a second derivative that is missing") {
  const auto f = [](const Tensors& x) { return Tensors{Detached::apply(x[0])}; };
  CHECK(ag::gradcheck(f, {matrix()}));
  ag::GradcheckOptions options = ag::kGradgradcheckOptions;
  options.raise = false;
  CHECK_THAT(ag::gradgradcheck(f, {matrix()}, {}, options).failure,
             Contains("gradgradcheck") && Contains("the gradient of input 0"));
}

TEST_CASE("a function without forward mode") {
  const auto f = [](const Tensors& x) { return Tensors{Twice::apply(x[0])}; };
  CHECK_THROWS_AS(ag::gradcheck(f, {matrix()}), rg::Error);
  CHECK(ag::gradcheck(f, {matrix()}, {.check_forward = false}));
  ag::GradcheckOptions options = ag::kGradgradcheckOptions;
  options.check_forward = false;
  CHECK(ag::gradgradcheck(f, {matrix()}, {}, options));
}

TEST_CASE("an output that hides its dependence") {
  CHECK_THAT(failure_of([](const Tensors& x) { return Tensors{x[0].detach() * 2}; }, {matrix()}),
             Contains("is 0 in reverse mode, 2") || Contains("is -0 in reverse mode, 2"));
  CHECK(ag::gradcheck([](const Tensors& x) { return Tensors{rg::floor(x[0].detach())}; }, {matrix()}));
}

TEST_CASE("inputs of any layout, elements that share memory, none, no dims") {
  const auto f = [](const Tensors& x) { return Tensors{rg::exp(x[0]) * x[0]}; };
  const Tensor transposed = matrix().detach().t().requires_grad_();
  const Tensor expanded = rg::expand(leaf({0.5, -1}, {2, 1}).detach(), {2, 3}).requires_grad_();
  const Tensor strided = rg::slice(matrix().detach(), 1, 0, 3, 2).requires_grad_();
  const Tensor windows = rg::unfold(leaf({1, 2, 3, 4}, {4}).detach(), 0, 2, 1).requires_grad_();
  for (const Tensor& x : {transposed, expanded, strided, windows, leaf({}, {0, 3}), leaf({0.5}, {})}) {
    INFO(x.sizes().size() << " dims");
    CHECK(ag::gradcheck(f, {x}));
    CHECK(ag::gradgradcheck(f, {x}));
    CHECK_FALSE(x.grad().defined());
  }
}

TEST_CASE("outputs that are views of the inputs, or the inputs") {
  const auto f = [](const Tensors& x) { return Tensors{x[0], x[0].t(), rg::select(x[0], 0, 1)}; };
  CHECK(ag::gradcheck(f, {matrix()}));
  CHECK(ag::gradgradcheck(f, {matrix()}));
}

TEST_CASE("inputs that are not checked, outputs that have no gradient") {
  const Tensor index = rg::tensor({2, 0}, {rg::kInt64}), weight = rg::tensor({1, 2}, {rg::kFloat32});
  const auto f = [](const Tensors& x) {
    const auto [values, indices] = rg::max(rg::index_select(x[0], 1, x[1]), 1);
    return Tensors{values, indices, x[2] * 2, Tensor()};
  };
  CHECK(ag::gradcheck(f, {matrix(), index, weight}));
  CHECK(ag::gradgradcheck(f, {matrix(), index, weight}));
}

TEST_CASE("what cannot be checked is refused") {
  const auto f = [](const Tensors& x) { return Tensors{x[0] * 2}; };
  const auto category = [](const auto& call) {
    try {
      call();
    } catch (const rg::Error& e) {
      return e.category();
    }
    return rg::Category::unsupported;
  };
  CHECK(category([&] { ag::gradcheck(f, {rg::ones({2}).requires_grad_()}); }) ==
        rg::Category::dtype_mismatch);
  CHECK(category([&] { ag::gradcheck(f, {matrix().detach()}); }) == rg::Category::bad_argument);
  CHECK(category([&] {
          ag::gradcheck([](const Tensors& x) { return Tensors{x[0].to(rg::kFloat32)}; }, {matrix()});
        }) == rg::Category::dtype_mismatch);
}
