// vjp, jacobian, hessian, hvp, vhp against closed forms, and against each other on a small network.
#include <retrograd/retrograd.h>
#include <catch2/catch.hpp>

namespace rg = retrograd;
namespace ag = retrograd::autograd;
using rg::Tensor;
using rg::Tensors;

namespace {

constexpr ag::FunctionalOptions kGraph{.create_graph = true};

Tensor vec(std::initializer_list<double> values) {
  return rg::tensor(std::vector<double>(values), {static_cast<int64_t>(values.size())}, {rg::kFloat64});
}
Tensor spread(const rg::Shape& shape, int seed) {
  std::vector<double> values(static_cast<size_t>(shape.numel().value()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>((i * 7919 + static_cast<size_t>(seed) * 104729 + 13) % 1009) / 504.5 - 1;
  return rg::tensor(values, shape, {rg::kFloat64});
}

void check_close(const Tensor& got, const std::vector<double>& want, double tolerance = 1e-12) {
  REQUIRE(got.defined());
  const std::vector<double> values = got.to_vector();
  REQUIRE(values.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    INFO("element " << i);
    CHECK(values[i] == Approx(want[i]).epsilon(tolerance).margin(tolerance));
  }
}

std::optional<rg::Category> category_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const rg::Error& e) {
    return e.category();
  }
  return {};
}

Tensors product_and_sum(const Tensors& x) { return {x[0] * x[1], rg::sum(x[1])}; }
Tensor cubes(const Tensors& x) { return rg::sum(x[0] * x[0] * x[0]); }

// Weights 3 x 4 and 4, input fixed.
Tensor network(const Tensors& w) {
  const Tensor x = spread({5, 3}, 3);
  const Tensor hidden = rg::tanh(rg::mm(x, w[0]) + w[1]);
  return rg::sum(rg::sigmoid(hidden) * hidden);
}

struct Halve : rg::Function<Halve> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * 0.5;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    return {grads[0] * ctx->get_saved_variables()[0]};
  }
  static Tensors jvp(rg::AutogradContext* ctx, const Tensors& tangents) {
    return {tangents[0] * ctx->get_saved_variables()[0]};
  }
};

}  // namespace

TEST_CASE("vjp of several outputs") {
  const Tensor a = vec({1, 2, 3}), b = vec({4, 5, 6});
  const ag::VjpResult r = ag::vjp(product_and_sum, {a, b}, {vec({1, 10, 100}), Tensor()});
  check_close(r.outputs[0], {4, 10, 18});
  check_close(r.outputs[1], {15});
  check_close(r.gradients[0], {4, 50, 600});
  check_close(r.gradients[1], {1, 20, 300});
  CHECK_FALSE(r.outputs[0].requires_grad());
  CHECK_FALSE(r.gradients[0].requires_grad());
  CHECK_FALSE(a.requires_grad());
  CHECK_FALSE(a.grad().defined());
}

TEST_CASE("vjp without cotangents is the gradient of one element") {
  const ag::VjpResult r = ag::vjp([](const Tensors& x) { return Tensors{cubes(x)}; }, {vec({1, 2})});
  check_close(r.gradients[0], {3, 12});
  CHECK(category_of([] {
          ag::vjp(product_and_sum, {vec({1}), vec({2})});
        }) == rg::Category::non_scalar_backward_without_cotangent);
}

TEST_CASE("vjp refuses cotangents of another type") {
  const Tensors x{vec({1, 2, 3}), vec({4, 5, 6})};
  const auto given = [&](const Tensors& c) { return category_of([&] { ag::vjp(product_and_sum, x, c); }); };
  CHECK(given({vec({1, 2})}) == rg::Category::cotangent_mismatch);
  CHECK(given({vec({1, 2}), Tensor()}) == rg::Category::cotangent_mismatch);
  CHECK(given({rg::ones({3}), Tensor()}) == rg::Category::cotangent_mismatch);
}

TEST_CASE("vjp can be differentiated again") {
  const Tensor x = vec({1, 2}).requires_grad_();
  const ag::VjpResult r =
      ag::vjp([](const Tensors& in) { return Tensors{in[0] * in[0] * in[0]}; }, {x}, {vec({1, 10})}, kGraph);
  check_close(r.gradients[0], {3, 120});
  check_close(ag::grad({rg::sum(r.gradients[0])}, {x})[0], {6, 120});
}

TEST_CASE("inputs that are not used") {
  const auto f = [](const Tensors& x) { return Tensors{x[0] * 2}; };
  const Tensors x{vec({1, 2}), vec({3})};
  check_close(ag::vjp(f, x, {vec({1, 1})}).gradients[1], {0});
  const auto rows = ag::jacobian(f, x);
  CHECK(rows[0][1].sizes() == rg::IntArray{2, 1});
  check_close(rows[0][1], {0, 0});
  CHECK(category_of([&] { ag::vjp(f, x, {vec({1, 1})}, {.strict = true}); }) == rg::Category::unused_input);
  CHECK(category_of([&] { ag::jacobian(f, x, {.strict = true}); }) == rg::Category::unused_input);
  const auto linear = [](const Tensors& in) { return rg::sum(in[0]); };
  check_close(ag::hessian(linear, x)[0][0], {0, 0, 0, 0});
  check_close(ag::hvp(linear, x, {vec({1, 1}), vec({1})}).product[0], {0, 0});
  check_close(ag::vhp(linear, x, {vec({1, 1}), vec({1})}).product[1], {0});
  CHECK(category_of([&] { ag::hvp(linear, x, x, {.strict = true}); }) == rg::Category::unused_input);
  CHECK(category_of([&] { ag::vhp(linear, x, x, {.strict = true}); }) == rg::Category::unused_input);
  CHECK(category_of([&] { ag::hessian(linear, x, {.strict = true}); }) == rg::Category::unused_input);
}

TEST_CASE("a function that is constant") {
  const auto f = [](const Tensors&) { return rg::ones({2}, {rg::kFloat64}); };
  check_close(ag::jacobian([&](const Tensors& x) { return Tensors{f(x)}; }, {vec({1})})[0][0], {0, 0});
  const auto scalar = [&](const Tensors& x) { return rg::sum(f(x)); };
  check_close(ag::hessian(scalar, {vec({1})})[0][0], {0});
  check_close(ag::hvp(scalar, {vec({1})}, {vec({1})}).product[0], {0});
  check_close(ag::vhp(scalar, {vec({1})}, {vec({1})}).product[0], {0});
}

TEST_CASE("jacobian of a product with a matrix") {
  const Tensor a = spread({2, 3}, 1), x = spread({3}, 2);
  const auto j = ag::jacobian([](const Tensors& in) { return Tensors{rg::mv(in[0], in[1])}; }, {a, x});
  CHECK(j[0][0].sizes() == rg::IntArray{2, 2, 3});
  check_close(j[0][1], a.to_vector());
  const std::vector<double> v = x.to_vector();
  check_close(j[0][0], {v[0], v[1], v[2], 0, 0, 0, 0, 0, 0, v[0], v[1], v[2]});
}

TEST_CASE("jacobian of outputs of no elements, of one, of other dtypes") {
  const auto f = [](const Tensors& x) { return Tensors{rg::narrow(x[0], 0, 0, 0), rg::sum(x[0] * x[0])}; };
  const auto j = ag::jacobian(f, {rg::tensor({1.0, 2})});
  CHECK(j[0][0].sizes() == rg::IntArray{0, 2});
  CHECK(j[1][0].sizes() == rg::IntArray{2});
  CHECK(j[1][0].dtype() == rg::kFloat32);
  check_close(j[1][0], {2, 4});
  const Tensor half = rg::tensor({1, 2}, {rg::kFloat16});
  check_close(ag::jacobian([](const Tensors& x) { return Tensors{x[0] * x[0]}; }, {half})[0][0],
              {2, 0, 0, 4});
}

TEST_CASE("jacobian has at most eight dims") {
  const Tensor x = rg::ones({1, 1, 1, 1, 1});
  CHECK(category_of([&] { ag::jacobian([](const Tensors& in) { return Tensors{in[0] * 2}; }, {x}); }) ==
        rg::Category::bad_argument);
}

TEST_CASE("jacobian through a user-defined function") {
  const auto f = [](const Tensors& x) { return Tensors{Halve::apply(x[0]) + x[1]}; };
  const auto j = ag::jacobian(f, {vec({1, 2}), vec({5, 6})});
  check_close(j[0][0], {1, 0, 0, 2});
  check_close(j[0][1], {1, 0, 0, 1});
  const auto g = [](const Tensors& x) { return rg::sum(Halve::apply(x[0])); };
  check_close(ag::hessian(g, {vec({1, 2})})[0][0], {1, 0, 0, 1});
  check_close(ag::hvp(g, {vec({1, 2})}, {vec({3, 4})}).product[0], {3, 4});
  check_close(ag::vhp(g, {vec({1, 2})}, {vec({3, 4})}).product[0], {3, 4});
}

TEST_CASE("a jacobian is itself differentiable") {
  const Tensor x = vec({2, 3}).requires_grad_();
  const auto f = [](const Tensors& in) { return Tensors{in[0] * in[0] * in[0]}; };
  const Tensor j = ag::jacobian(f, {x}, kGraph)[0][0];
  REQUIRE(j.requires_grad());
  check_close(j, {12, 0, 0, 27});
  check_close(ag::grad({rg::sum(j)}, {x})[0], {12, 18});
  CHECK_FALSE(ag::jacobian(f, {x})[0][0].requires_grad());
}

TEST_CASE("a jacobian of a jacobian") {
  const auto inner = [](const Tensors& x) { return Tensors{x[0] * x[0] * x[0]}; };
  const auto outer = [&](const Tensors& x) { return ag::jacobian(inner, x, kGraph)[0]; };
  const Tensor jj = ag::jacobian(outer, {vec({2, 3})})[0][0];
  CHECK(jj.sizes() == rg::IntArray{2, 2, 2});
  check_close(jj, {12, 0, 0, 0, 0, 0, 0, 18});
}

TEST_CASE("the rows of a jacobian are replays of one backward") {
  int captured = 0, hits = 0;
  rg::logging::set_topics("exec");
  rg::logging::set_sink([&](rg::logging::Topic, std::string_view line) {
    captured += line.find("captured") != line.npos;
    hits += line.find("hit") != line.npos;
  });
  const auto f = [](const Tensors& x) { return Tensors{rg::tanh(x[0]) * x[0]}; };
  ag::jacobian(f, {spread({2, 3}, 1)});
  CHECK(captured == 1);
  CHECK(hits == 5);
  ag::hessian(cubes, {spread({4}, 1)});
  CHECK(captured == 2);
  CHECK(hits == 8);
  rg::logging::set_topics("");
  rg::logging::set_sink({});
}

TEST_CASE("hessian of a polynomial") {
  const auto f = [](const Tensors& x) { return rg::sum(x[0] * x[0] * x[1]); };
  const auto h = ag::hessian(f, {vec({1, 2}), vec({3, 4})});
  check_close(h[0][0], {6, 0, 0, 8});
  check_close(h[0][1], {2, 0, 0, 4});
  check_close(h[1][0], {2, 0, 0, 4});
  check_close(h[1][1], {0, 0, 0, 0});
  CHECK(category_of([&] {
          ag::hessian([](const Tensors& x) { return x[0]; }, {vec({1, 2})});
        }) == rg::Category::non_scalar_backward_without_cotangent);
}

TEST_CASE("hvp and vhp give the columns and rows of the hessian of a network") {
  const Tensors w{spread({3, 4}, 1), spread({4}, 2)};
  const auto h = ag::hessian(network, w);
  CHECK(h[0][1].sizes() == rg::IntArray{3, 4, 4});
  for (int64_t c = 0; c < 4; ++c) {
    Tensor v = rg::zeros({4}, {rg::kFloat64});
    v.data_ptr<double>()[c] = 1;
    const ag::HessianProduct column = ag::hvp(network, w, {Tensor(), v});
    const ag::HessianProduct row = ag::vhp(network, w, {Tensor(), v});
    CHECK(column.output.item<double>() == row.output.item<double>());
    check_close(column.product[0], rg::select(h[0][1], 2, c).to_vector());
    check_close(column.product[1], rg::select(h[1][1], 1, c).to_vector());
    check_close(row.product[0], rg::select(h[1][0], 0, c).to_vector());
    check_close(row.product[1], rg::select(h[1][1], 0, c).to_vector());
    CHECK_FALSE(column.product[0].requires_grad());
    CHECK_FALSE(row.product[0].requires_grad());
  }
}

TEST_CASE("hvp, vhp and hessian can be differentiated again") {
  const Tensor x = vec({2, 3}).requires_grad_(), v = vec({1, 10}).requires_grad_();
  for (const auto product : {ag::hvp, ag::vhp}) {
    const ag::HessianProduct r = product(cubes, {x}, {v}, kGraph, {});
    check_close(r.product[0], {12, 180});
    const Tensors g = ag::grad({rg::sum(r.product[0])}, {x, v});
    check_close(g[0], {6, 60});
    check_close(g[1], {12, 18});
  }
  const Tensor h = ag::hessian(cubes, {x}, kGraph)[0][0];
  check_close(ag::grad({rg::sum(h)}, {x})[0], {6, 6});
}

TEST_CASE("hvp and vhp refuse a vector of another type") {
  const Tensors x{vec({1, 2})};
  for (const auto product : {ag::hvp, ag::vhp}) {
    CHECK(category_of([&] { product(cubes, x, {vec({1})}, {}, {}); }) == rg::Category::cotangent_mismatch);
    CHECK(category_of([&] { product(cubes, x, {}, {}, {}); }) == rg::Category::cotangent_mismatch);
    CHECK(category_of([&] { product([](const Tensors& in) { return in[0]; }, x, x, {}, {}); }) ==
          rg::Category::non_scalar_backward_without_cotangent);
  }
}

TEST_CASE("derivatives of functions are refused in inference mode, where they would be zeros") {
  const Tensor x = vec({2, 3}), v = vec({1, 1});
  const rg::InferenceMode mode;
  const auto same = [](const Tensors& in) { return Tensors{in[0]}; };
  CHECK(category_of([&] { ag::vjp(same, {x}, {v}); }) == rg::Category::bad_argument);
  CHECK(category_of([&] { ag::jacobian(same, {x}); }) == rg::Category::bad_argument);
  CHECK(category_of([&] { ag::hessian(cubes, {x}); }) == rg::Category::bad_argument);
  CHECK(category_of([&] { ag::hvp(cubes, {x}, {v}); }) == rg::Category::bad_argument);
  CHECK(category_of([&] { ag::vhp(cubes, {x}, {v}); }) == rg::Category::bad_argument);
}

TEST_CASE("derivatives of functions do not depend on the modes outside") {
  const Tensor x = vec({2, 3});
  const auto both = [&] {
    check_close(ag::jacobian([](const Tensors& in) { return Tensors{in[0] * in[0]}; }, {x})[0][0],
                {4, 0, 0, 6});
    check_close(ag::hvp(cubes, {x}, {vec({1, 1})}).product[0], {12, 18});
  };
  {
    rg::NoGradGuard no_grad;
    both();
  }
  rg::CompiledBackward compiled = rg::compile_backward();
  rg::CompiledBackwardScope scope(compiled);
  both();
}
