// User code in compiled functions and steps whose arguments have other sizes in each call: hooks and pairs see the
// sizes of the run, and one recording serves all of them.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using Catch::Contains;

using Pair = rg::RefPtr<rg::SavedTensorHooks>;
using Seen = std::vector<std::string>;  // what user code saw

struct Row {
  const char* name;
  std::function<Tensor(const Tensor& x, const Tensor& w, Seen& seen)> function;
  std::function<Pair(Seen& seen)> pair = [](Seen&) { return Pair(); };  // around the call
};

void note(Seen& seen, const char* who, const Tensor& t) {
  seen.push_back(who + rg::to_string(t.impl().type()));
}

Pair halving_pair(Seen& seen) {
  return rg::saved_tensor_hooks(
      [&seen](const Tensor& t) {
        note(seen, "pack ", t);
        return t * 0.5;
      },
      [&seen](const Tensor& t) {
        note(seen, "unpack ", t);
        return t * 2.0;
      });
}

Tensor model(const Tensor& x, const Tensor& w) { return rg::tanh(rg::matmul(x, w)) * x.sym_size(0); }

const Row kRows[] = {
    {"a hook on a value",
     [](const Tensor& x, const Tensor& w, Seen& seen) {
       const Tensor y = model(x, w);
       y.register_hook([&seen](const Tensor& g) {
         note(seen, "hook ", g);
         return g * static_cast<double>(g.size(0));
       });
       return y * y;
     }},
    {"hooks on a node",
     [](const Tensor& x, const Tensor& w, Seen& seen) {
       const Tensor y = model(x, w);
       y.grad_fn().register_prehook([&seen](const Tensors& g) {
         note(seen, "pre ", g[0]);
         return g;
       });
       y.grad_fn().register_hook([&seen](const Tensors& inputs, const Tensors&) {
         note(seen, "post ", inputs[0]);
         return inputs;
       });
       return y * y;
     }},
    {"a hook on several values",
     [](const Tensor& x, const Tensor& w, Seen& seen) {
       const Tensor y = model(x, w), z = rg::sin(y);
       rg::autograd::register_multi_grad_hook({y, z}, [&seen](const Tensors& g) {
         for (const Tensor& t : g) note(seen, "multi ", t);
       });
       return y * z;
     }},
    {"a pair around the call", [](const Tensor& x, const Tensor& w, Seen&) { return model(x, w); },
     halving_pair},
    {"a pair in the function",
     [](const Tensor& x, const Tensor& w, Seen& seen) {
       const rg::SavedTensorHooksGuard guard(halving_pair(seen));
       return rg::exp(model(x, w)) * x;
     }},
    {"a stock pair",
     [](const Tensor& x, const Tensor& w, Seen&) {
       return rg::exp(model(rg::repeat(x, {1, 50}), rg::repeat(w, {50, 1})));
     },
     [](Seen&) { return rg::save_as_half(); }},
    {"a traceable pair",
     [](const Tensor& x, const Tensor& w, Seen& seen) {
       const Pair pair = halving_pair(seen);
       pair->traceable = true;
       const rg::SavedTensorHooksGuard guard(pair);
       seen.clear();  // it is called at the recording only
       return rg::exp(model(x, w)) * x;
     }},
    {"memory that is written to before a hook",
     [](const Tensor& x, const Tensor& w, Seen& seen) {
       const Tensor y = model(x, w).clone();
       y.narrow(0, 0, 1).mul_(3.0);
       y.register_hook([&seen](const Tensor& g) {
         note(seen, "hook ", g);
         return g + 1.0;
       });
       y.mul_(2.0);
       return y * x;
     }},
};

constexpr int64_t kSizes[] = {3, 5, 4, 7, 3, 2};

struct Outcome {
  Tensors tensors;
  Seen seen;
};

// Value and gradients; `f` gives the value.
template <class F>
Outcome outcome(const Row& row, F&& f, int64_t size, const Tensor& w) {
  Outcome made;
  const Tensor x = parameter(rg::Shape{size, 4}, 1);
  w.set_grad({});
  Tensor y;
  {
    std::optional<rg::SavedTensorHooksGuard> guard;
    if (const Pair pair = row.pair(made.seen)) guard.emplace(pair);
    y = f(x, made.seen);
  }
  rg::sum(y).backward();
  made.tensors = {y.detach(), x.grad(), w.grad()};
  return made;
}

}  // namespace

TEST_CASE("user code sees the sizes of the run, and needs no recording of its own for them") {
  const Tensor w = parameter(rg::Shape{4, 4}, 2);
  for (const Row& row : kRows) {
    INFO(row.name);
    Seen seen;  // of hooks that the function adds
    auto compiled = rg::compile([&](const Tensor& x) { return row.function(x, w, seen); });
    for (const int64_t size : kSizes) {
      INFO("size " << size << ": " << compiled.last_capture_reason() << compiled.last_eager_reason());
      const Outcome eager = outcome(
          row, [&](const Tensor& x, Seen& s) { return row.function(x, w, s); }, size, w);
      seen.clear();
      Outcome recorded = outcome(
          row, [&](const Tensor& x, Seen&) { return compiled(x); }, size, w);
      recorded.seen.insert(recorded.seen.end(), seen.begin(), seen.end());
      check_same(eager.tensors, recorded.tensors);
      if (std::string(row.name) != "a traceable pair") CHECK(eager.seen == recorded.seen);
    }
    CHECK(compiled.stats().captures <= 2);
    CHECK(compiled.stats().eager == 0);
    CHECK(compiled.stats().plans == 6);  // of the first recording, and of each size
  }
}

TEST_CASE("a step whose hooks update leaves, with gradients of the argument") {
  const auto train = [](bool recorded) {
    Seen seen;
    const Tensor w = parameter(rg::Shape{4, 4}, 2);
    w.register_hook([&seen](const Tensor& g) { note(seen, "leaf ", g); });
    w.register_post_accumulate_grad_hook([&seen](const Tensor& leaf) {
      note(seen, "update ", leaf);
      const rg::NoGradGuard guard;
      leaf.add_(leaf.grad(), -0.125);
      leaf.set_grad({});
    });
    const auto body = [&](const Tensor& x) {
      const Tensor loss = rg::sum(model(x, w) * x);
      loss.backward();
      return loss;
    };
    auto step = rg::compile_step(body);
    Tensors all;
    for (const int64_t size : kSizes) {
      const Tensor x = parameter(rg::Shape{size, 4}, static_cast<int>(size));
      all.push_back((recorded ? step(x) : body(x)).detach());
      all.push_back(x.grad());
    }
    all.push_back(w.detach());
    if (recorded) {
      INFO(step.last_capture_reason() << step.last_eager_reason());
      CHECK(step.stats().captures == 2);
      CHECK(step.stats().eager == 0);
      CHECK(step.stats().plans == 6);
    }
    return std::pair(all, seen);
  };
  const auto [eager, seen_eagerly] = train(false);
  const auto [recorded, seen] = train(true);
  check_same(eager, recorded);
  CHECK(seen_eagerly == seen);
}

TEST_CASE("a write of a hook to a saved argument is an error that names its type in this run") {
  const Tensor w = parameter(rg::Shape{4, 4}, 2);
  Tensor written;
  auto compiled = rg::compile([&](const Tensor& x) {
    const Tensor y = rg::matmul(rg::exp(x * x), w);
    y.register_hook([&](const Tensor& g) {
      if (written.defined()) written.fill_(1.0);
      return g;
    });
    return rg::sum(y * y);
  });
  for (const int64_t size : {3, 5, 6, 4}) {
    const Tensor x = parameter(rg::Shape{size, 4}, 1);
    const Tensor loss = compiled(x);
    written = size == 4 ? x.detach() : Tensor();
    const auto error = error_of([&] { loss.backward(); });
    if (size == 4)
      CHECK_THAT(error, Contains("modified") && Contains("[4,4]"));
    else
      CHECK(error == "");
  }
  CHECK(compiled.stats().captures == 2);
}

namespace {

// Keeps a size as a number of its backward.
struct Mean : rg::Function<Mean> {
  static constexpr bool is_traceable = true;
  static Tensor forward(rg::AutogradContext* ctx, const Tensor& x, const Tensor& w) {
    ctx->save_for_backward({x, w});
    ctx->saved_data["count"] = x.sym_size(0);
    ctx->saved_data["factor"] = 0.5;
    return rg::sum(rg::matmul(x, w), {0}) / x.sym_size(0);
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& g) {
    const Tensors saved = ctx->get_saved_variables();
    const Tensor all = rg::expand(g[0], {saved[0].sym_size(0), g[0].sym_size(0)}) / ctx->saved_data["count"];
    return {rg::matmul(all, saved[1].t()) * ctx->saved_data["factor"], rg::matmul(saved[0].t(), all)};
  }
};

}  // namespace

TEST_CASE("traceable functions at several sizes: values, gradients, and gradients of these") {
  const auto function = [](const Tensor& x, const Tensor& w) { return rg::tanh(Mean::apply(rg::exp(x), w)); };
  auto compiled = rg::compile(function);
  const auto derivatives = [](const auto& f, int64_t size) {
    const auto leaf = [](const rg::Shape& shape, int seed) {
      return parameter(shape, seed).detach().to(rg::kFloat64).requires_grad_();
    };
    const Tensor x = leaf({size, 4}, 1), w = leaf({4, 3}, 2), y = f(x, w);
    const Tensors first = rg::autograd::grad({rg::sum(y * y)}, {x, w}, {}, {}, /*create_graph=*/true);
    const Tensors second = rg::autograd::grad({rg::sum(first[0] * first[0]) + rg::sum(first[1])}, {x, w});
    return std::pair(Tensors{y.detach(), first[0].detach(), first[1].detach()}, second);
  };
  for (const int64_t size : kSizes) {
    INFO("size " << size << ": " << compiled.last_capture_reason());
    const auto [eager, eager_second] = derivatives(function, size);
    const auto [recorded, second] =
        derivatives([&](const Tensor& x, const Tensor& w) { return compiled(x, w); }, size);
    check_same(eager, recorded);
    for (size_t i = 0; i < second.size(); ++i)
      CHECK(rg::amax(rg::abs(eager_second[i] - second[i])).item<double>() < 1e-12);
  }
  CHECK(compiled.stats().captures == 2);
  CHECK(compiled.stats().eager == 0);
}

TEST_CASE("an opaque function keeps sizes fixed: only its results at the sizes of one call are known") {
  struct Doubled : rg::Function<Doubled> {
    static Tensors forward(rg::AutogradContext*, const Tensor& x) { return {x * 2.0}; }
    static Tensors backward(rg::AutogradContext*, const Tensors& g) { return {g[0] * 2.0}; }
  };
  const auto function = [](const Tensor& x) { return rg::sum(Doubled::apply(x)[0] * x); };
  auto compiled = rg::compile(function);
  for (int round = 0; round < 2; ++round)
    for (const int64_t size : {4, 5, 6}) {
      const Tensor x = parameter(rg::Shape{size, 3}, 1);
      check_same(rg::autograd::grad({function(x)}, {x}), rg::autograd::grad({compiled(x)}, {x}));
    }
  CHECK(compiled.stats().eager == 3);  // dry runs
  CHECK(compiled.stats().captures == 3);
}
