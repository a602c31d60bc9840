// User-defined functions: wrong results of backward, special results, side effects, depth, hooks on their slots. Not
// tested here: which properties are structure (function_key_test.cc), second derivatives
// (tests/engine/function_test.cc).
#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

enum class Answer { too_few, too_many, surplus, wrong_shape, wrong_dtype, for_a_number, undefined };
struct Wrong : Function<Wrong> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& y, Answer answer) {
    ctx->saved_data["answer"] = static_cast<int64_t>(answer);
    return x + y;
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& g) {
    switch (static_cast<Answer>(ctx->saved_data["answer"].to_int())) {
      case Answer::too_few: return {g[0]};
      case Answer::too_many: return {g[0], g[0], {}, g[0]};
      case Answer::surplus: return {g[0], g[0] * 2.0, {}, {}, {}};
      case Answer::wrong_shape: return {g[0], sum(g[0]), {}};
      case Answer::wrong_dtype: return {g[0], g[0].to(kFloat64), {}};
      case Answer::for_a_number: return {g[0], g[0], g[0]};
      case Answer::undefined: return {g[0], {}, {}};
    }
    return {};
  }
};

struct Sign : Function<Sign> {  // a differentiable result and an integer-like one
  static Tensors forward(AutogradContext* ctx, const Tensor& x) {
    const Tensor sign_of_x = sign(x);
    ctx->mark_non_differentiable({sign_of_x});
    return {x * 2.0, sign_of_x};
  }
  static Tensors backward(AutogradContext*, const Tensors& g) { return {g[0] * 2.0}; }
};

struct Passes : Function<Passes> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static Tensors backward(AutogradContext*, const Tensors& g) { return {g[0] * 10.0}; }
};

struct ThroughIntermediate : Function<ThroughIntermediate> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    const Tensor intermediate = (x * 2.0).detach().requires_grad_();
    ctx->save_for_backward({intermediate});
    return x * 4.0;
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& g) {
    return {g[0] * ctx->get_saved_variables()[0]};
  }
};

struct WritesToSaved : Function<WritesToSaved> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * 1.0;
  }
  static Tensors backward(AutogradContext* ctx, const Tensors& g) {
    const Tensor x = ctx->get_saved_variables()[0];
    const NoGradGuard no_grad;
    x.add_(ones({2}));
    return {g[0] * x};
  }
};

struct DrawsOnly : Function<DrawsOnly> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x * 2.0; }
  static Tensors backward(AutogradContext*, const Tensors& g) {
    randn({3});  // nobody uses it
    return {g[0] * 2.0};
  }
};

/// The text of the error that backward gives for this answer, eagerly or traced; its category is checked.
std::string error_of(Answer answer, bool traced, Category expected) {
  CompiledBackward compiled = compile_backward();
  Mode mode(traced ? &compiled : nullptr);
  const Tensor x = leaf({1, 2}), y = leaf({3, 4}), loss = sum(Wrong::apply(x, y, answer));
  std::string text;
  CHECK(category_of([&] { mode.backward(loss); }, &text) == expected);
  CHECK_FALSE(x.grad().defined());
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("S124 a gradient of a wrong shape or dtype, or for a number, is an error that names the argument") {
  for (const bool traced : {false, true}) {
    const std::string shape = error_of(Answer::wrong_shape, traced, Category::cotangent_mismatch);
    CHECK(contains(shape, "argument 1"));
    CHECK(contains(shape, "f32[]"));
    const std::string dtype = error_of(Answer::wrong_dtype, traced, Category::cotangent_mismatch);
    CHECK(contains(dtype, "argument 1"));
    CHECK(contains(dtype, "f64["));
    CHECK(contains(error_of(Answer::for_a_number, traced, Category::bad_argument), "argument 2"));
  }
}

TEST_CASE("S124 too few gradients are an error") {
  for (const bool traced : {false, true})
    CHECK(contains(error_of(Answer::too_few, traced, Category::bad_argument), "gradient"));
}

TEST_CASE("S124 a gradient beyond the arguments is an error that says what to give") {
  for (const bool traced : {false, true}) {
    const std::string text = error_of(Answer::too_many, traced, Category::bad_argument);
    CHECK(contains(text, "gradient 3"));
    CHECK(contains(text, "3 arguments"));
    CHECK(contains(text, "Hint: give one gradient for each argument"));
  }
}

TEST_CASE("S124 undefined gradients beyond the arguments are dropped") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({1, 2}), y = leaf({3, 4});
    mode.backward(sum(Wrong::apply(x, y, Answer::surplus)));
    CHECK(values(x.grad()) == Values{1, 1});
    CHECK(values(y.grad()) == Values{2, 2});
    return Tensors{x.grad(), y.grad()};
  });
}

TEST_CASE("S124 the error names the user's function and the line that called it") {
  const std::pair<Answer, Category> answers[] = {{Answer::too_few, Category::bad_argument},
                                                 {Answer::too_many, Category::bad_argument},
                                                 {Answer::wrong_shape, Category::cotangent_mismatch},
                                                 {Answer::wrong_dtype, Category::cotangent_mismatch},
                                                 {Answer::for_a_number, Category::bad_argument}};
  for (const auto& [answer, category] : answers)
    for (const bool traced : {false, true}) {
      const std::string text = error_of(answer, traced, category);
      INFO(text);
      CHECK(contains(text, "Wrong"));
      CHECK(contains(text, "function_results_test.cc"));
    }
}

TEST_CASE("S124 an undefined gradient is none: the other argument has its own, and other paths add up") {
  for (const bool traced : {false, true})
    for (const bool create_graph : {false, true}) {
      CompiledBackward compiled = compile_backward();
      Mode mode(traced ? &compiled : nullptr);
      const Tensor x = leaf({1, 2}), y = leaf({3, 4});
      mode.backward(Tensors{sum(Wrong::apply(x, y, Answer::undefined))}, {}, {}, create_graph);
      CHECK(x.grad().detach().to_vector() == std::vector<double>{1, 1});
      CHECK_FALSE(y.grad().defined());
      mode.backward(Tensors{sum(Wrong::apply(x, y, Answer::undefined) * y)}, {}, {}, create_graph);
      CHECK(y.grad().detach().to_vector() == std::vector<double>{4, 6});
      for (const Tensor& t : {x, y})
        t.set_grad({});  // with create_graph it refers to x and y, and they to it
    }
}

TEST_CASE("S125 a result marked as not differentiable has no gradient, the other one has") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({3, -4});
    const Tensors out = Sign::apply(x);
    CHECK(out[0].requires_grad());
    CHECK_FALSE(out[1].requires_grad());
    CHECK(values(out[1]) == Values{1, -1});
    mode.backward(sum(out[0] * out[1]));
    CHECK(values(x.grad()) == Values{2, -2});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S125 a function that gives back its argument makes a result of its own on the same memory") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({1, 2}), y = Passes::apply(x);
    CHECK_FALSE(y.is_same(x));
    CHECK(y.raw_data() == x.raw_data());
    CHECK(x.is_leaf());
    CHECK_FALSE(y.is_leaf());
    mode.backward(sum(y + x));
    CHECK(values(x.grad()) == Values{11, 11});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S126 an opaque hook that only draws random numbers is kept") {
  run_both([](Mode& mode) {
    manual_seed(7);
    const Tensor x = leaf({1, 2}), y = x * 2.0;
    y.register_hook([](const Tensor&) { return randn({3}), Tensor(); });
    mode.backward(sum(y));
    CHECK(values(x.grad()) == Values{2, 2});
    return Tensors{randn({4})};
  });
}

TEST_CASE("S126 a backward that draws random numbers for nothing: the draw is not removed") {
  const auto drawn = [](Mode& mode, int backwards) {
    manual_seed(7);
    Tensors out;
    for (int i = 0; i < backwards; ++i) {
      const Tensor x = leaf({1, 2});
      mode.backward(sum(DrawsOnly::apply(x)));
      CHECK(values(x.grad()) == Values{2, 2});
    }
    return randn({4});
  };
  Mode eager(nullptr);
  CompiledBackward compiled = compile_backward();
  Mode traced(&compiled);
  CHECK_FALSE(same_bits(drawn(eager, 1), drawn(eager, 0)));
  for (const int backwards : {1, 3}) CHECK(same_bits(drawn(traced, backwards), drawn(eager, backwards)));
}

TEST_CASE("S127 a chain of 150000 records is differentiated and freed without a deep stack") {
  const int64_t before = memory::stats().live_tensors;
  {
    const Tensor x = leaf({1, 2});
    const auto chain = [&] {
      Tensor y = x;
      for (int i = 0; i < 150000; ++i) y = y + 1.0;
      return sum(y);
    };
    chain();  // freed without a backward
    chain().backward();
    CHECK(values(x.grad()) == Values{1, 1});
    CompiledBackward compiled = compile_backward();
    for (int i = 0; i < 2; ++i) {
      x.set_grad({});
      compiled(chain());
      CHECK(values(x.grad()) == Values{1, 1});
    }
    CHECK(compiled.stats().captures == 1);
  }
  CHECK(memory::stats().live_tensors == before);
}

TEST_CASE("hook 21 a function that saves a detached intermediate that requires a gradient, under hooks") {
  run_both([](Mode& mode) {
    Counts counts;
    const Tensor x = leaf({1, 2});
    Tensor y;
    {
      SavedTensorHooksGuard guard(counts.hooks());
      y = ThroughIntermediate::apply(x);
    }
    mode.backward(sum(y));
    CHECK(counts.packs == counts.unpacks);
    CHECK(counts.packs > 0);
    CHECK(values(x.grad()) == Values{2, 4});
    return Tensors{x.grad()};
  });
}

TEST_CASE("hook 22 a backward that writes to its unpacked tensor leaves the original alone") {
  CompiledBackward compiled = compile_backward();
  for (const bool traced : {false, true}) {
    Mode mode(traced ? &compiled : nullptr);
    const Tensor x = leaf({1, 2}), input = x * 1.0;
    Tensor loss;
    {
      SavedTensorHooksGuard guard([](const Tensor& t) { return clone(t); },
                                  [](const Tensor& t) { return clone(t); });
      loss = sum(WritesToSaved::apply(input));
    }
    const uint32_t version = input.version();
    mode.backward(loss);
    CHECK(values(x.grad()) == Values{2, 3});
    CHECK(input.version() == version);
    CHECK(values(input) == Values{1, 2});
  }
}

}  // namespace retrograd::scenario
