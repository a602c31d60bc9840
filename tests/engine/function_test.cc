// Function<MyOp>: a user-defined differentiable function, eager and traced. Not tested here: forward mode (it has none)
// and hooks on its slots.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

struct ScaledSquare : rg::Function<ScaledSquare> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x, double factor) {
    ctx->save_for_backward({x});
    ctx->saved_data["factor"] = factor;
    return x * x * factor;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {grads[0] * x * 2.0 * ctx->saved_data["factor"], {}};
  }
};

struct TraceableSquare : rg::Function<TraceableSquare> {
  static constexpr bool is_traceable = true;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x, double factor) {
    return ScaledSquare::forward(ctx, x, factor);
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    return ScaledSquare::backward(ctx, grads);
  }
};

// Nothing flows back when the factor is negative.
struct BranchingScale : rg::Function<BranchingScale> {
  static constexpr bool is_traceable = true;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x, double factor) {
    ctx->saved_data["factor"] = factor;
    return x * factor;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const rg::Scalar factor = ctx->saved_data["factor"];
    return {grads[0] * (factor.to_double() < 0 ? rg::Scalar(0.0) : factor), {}};
  }
};

struct SquareWithJvp : rg::Function<SquareWithJvp> {
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    return {grads[0] * ctx->get_saved_variables()[0] * 2.0};
  }
  static Tensors jvp(rg::AutogradContext* ctx, const Tensors& tangents) {
    return {tangents[0] * ctx->get_saved_variables()[0] * 2.0};
  }
};

// Which name a number was saved under decides.
struct ByName : rg::Function<ByName> {
  static constexpr bool is_traceable = true;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x, bool alpha) {
    ctx->saved_data[alpha ? "alpha" : "beta"] = 1.0;
    return x * 1.0;
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    return {grads[0] * (ctx->saved_data.count("alpha") ? 3.0 : 5.0), {}};
  }
};

struct WrongType : rg::Function<WrongType> {
  static Tensor forward(rg::AutogradContext*, const Tensor& x) { return x * 1.0; }
  static Tensors backward(rg::AutogradContext*, const Tensors& grads) { return {grads[0].to(rg::kFloat64)}; }
};

// A jvp whose result the test determines.
struct GivesTangents : rg::Function<GivesTangents> {
  static inline Tensors tangents;
  static Tensor forward(rg::AutogradContext*, const Tensor& x) { return x * 1.0; }
  static Tensors backward(rg::AutogradContext*, const Tensors& grads) { return {grads[0]}; }
  static Tensors jvp(rg::AutogradContext*, const Tensors&) { return tangents; }
};

}  // namespace

TEST_CASE("a user-defined function has the gradient that its backward gives") {
  const Tensor x = rg::tensor({1.0, -2, 3}).requires_grad_();
  const Tensor y = ScaledSquare::apply(x, 0.5);
  CHECK(y.to_vector() == std::vector<double>{0.5, 2, 4.5});
  CHECK(y.requires_grad());
  rg::sum(y).backward();
  CHECK(x.grad().to_vector() == std::vector<double>{1, -2, 3});
}

TEST_CASE("it is differentiated twice, and traced like any other record") {
  const Tensor x = rg::tensor({1.0, -2, 3}).requires_grad_();
  const Tensor g = rg::autograd::grad({rg::sum(ScaledSquare::apply(x, 3.0))}, {x}, {}, {}, true)[0];
  CHECK(rg::autograd::grad({rg::sum(g)}, {x})[0].to_vector() == std::vector<double>{6, 6, 6});
  rg::CompiledBackward backward = rg::compile_backward();
  for (double factor : {2.0, 2.0, 4.0}) {
    const Tensor z = rg::tensor({1.0, -2, 3}).requires_grad_();
    backward(rg::sum(ScaledSquare::apply(z, factor)));
    CHECK(z.grad().to_vector() == std::vector<double>{2 * factor, -4 * factor, 6 * factor});
  }
  CHECK(backward.stats().captures == 1);
}

TEST_CASE("a traceable function is recorded through, its numbers are inputs of the graph") {
  rg::CompiledBackward backward = rg::compile_backward();
  for (double factor : {2.0, -1.0, 4.0}) {
    const Tensor z = rg::tensor({1.0, -2, 3}).requires_grad_();
    backward(rg::sum(TraceableSquare::apply(z, factor)));
    CHECK(z.grad().to_vector() == std::vector<double>{2 * factor, -4 * factor, 6 * factor});
  }
  CHECK(backward.stats().captures == 1);
  CHECK(backward.graph()->print().find("function_backward") == std::string::npos);
  CHECK(backward.graph()->print().find("unpack") != std::string::npos);
}

TEST_CASE("a number that a traceable function looks at is part of the structure") {
  rg::CompiledBackward backward = rg::compile_backward();
  for (double factor : {2.0, -1.0, -1.0, 2.0}) {
    const Tensor z = rg::tensor({1.0, -2}).requires_grad_();
    backward(rg::sum(BranchingScale::apply(z, factor)));
    const double expected = factor < 0 ? 0 : factor;
    CHECK(z.grad().to_vector() == std::vector<double>{expected, expected});
  }
  CHECK(backward.stats().captures == 2);
}

TEST_CASE("the names of the numbers that a traceable function saves are part of the structure") {
  rg::CompiledBackward backward = rg::compile_backward();
  for (bool alpha : {true, false, true}) {
    const Tensor z = rg::tensor({1.0, -2}).requires_grad_();
    backward(rg::sum(ByName::apply(z, alpha)));
    const double expected = alpha ? 3 : 5;
    CHECK(z.grad().to_vector() == std::vector<double>{expected, expected});
  }
  CHECK(backward.stats().captures == 2);
}

TEST_CASE("forward mode goes through jvp, and is refused without one") {
  const auto doubled = [](const rg::Tensors& x) { return rg::Tensors{SquareWithJvp::apply(x[0])}; };
  const rg::autograd::JvpResult r = rg::autograd::jvp(doubled, {rg::tensor({1.0, 3})}, {rg::tensor({1.0, 10})});
  CHECK(r.outputs[0].to_vector() == std::vector<double>{1, 9});
  CHECK(r.tangents[0].to_vector() == std::vector<double>{2, 60});
  const auto without = [](const rg::Tensors& x) { return rg::Tensors{ScaledSquare::apply(x[0], 2.0)}; };
  try {
    rg::autograd::jvp(without, {rg::tensor({1.0, 3})}, {rg::tensor({1.0, 10})});
    FAIL("a tangent was made up");
  } catch (const rg::Error& e) {
    CHECK(e.category() == rg::Category::unsupported);
  }
}

TEST_CASE("tangents of a wrong type or number are errors that name the function") {
  const auto f = [](const Tensors& x) { return Tensors{GivesTangents::apply(x[0])}; };
  const auto run = [&](const Tensors& tangents) {
    GivesTangents::tangents = tangents;
    return rg::autograd::jvp(f, {rg::tensor({1.0, 3})}, {rg::tensor({1.0, 10})});
  };
  CHECK(run({rg::tensor({4.0, 5})}).tangents[0].to_vector() == std::vector<double>{4, 5});
  CHECK_FALSE(run({Tensor()}).tangents[0].defined());
  const auto error_of = [&](const Tensors& tangents, rg::Category expected) {
    try {
      run(tangents);
      FAIL_CHECK("the tangents were accepted");
    } catch (const rg::Error& e) {
      CHECK(e.category() == expected);
      CHECK(std::string(e.what()).find("GivesTangents") != std::string::npos);
    }
  };
  error_of({rg::tensor({4.0})}, rg::Category::cotangent_mismatch);
  error_of({rg::tensor({4, 5}, {rg::kFloat64})}, rg::Category::cotangent_mismatch);
  error_of({}, rg::Category::bad_argument);
  error_of({rg::tensor({4.0, 5}), Tensor()}, rg::Category::bad_argument);
}

TEST_CASE("without a gradient wanted it records nothing, and a gradient of another type is refused") {
  CHECK_FALSE(ScaledSquare::apply(rg::tensor({1.0, 2}), 1.0).requires_grad());
  const Tensor x = rg::tensor({1.0, 2}).requires_grad_();
  try {
    rg::sum(WrongType::apply(x)).backward();
    FAIL("the gradient was accepted");
  } catch (const rg::Error& e) {
    CHECK(e.category() == rg::Category::cotangent_mismatch);
  }
}

TEST_CASE("a saved tensor that is written to afterwards is an error") {
  const Tensor x = rg::tensor({1.0, 2}).requires_grad_();
  const Tensor y = x * 1.0;
  const Tensor z = ScaledSquare::apply(y, 1.0);
  y.mul_(2.0);
  try {
    rg::sum(z).backward();
    FAIL("the overwritten value was used");
  } catch (const rg::Error& e) {
    CHECK(e.category() == rg::Category::version_mismatch);
  }
}
