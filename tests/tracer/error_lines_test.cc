// Errors of recorded functions and of hooks name the op, the user's line, and what to do: the line of the call that is
// recorded, of the compiled call, or of the registration of the hook.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
namespace ag = rg::autograd;

struct Row {
  const char* name;
  const char* text;  // somewhere in the error
  std::function<void()> call;
};

template <class F>
void as_step(F f) {
  rg::compile_step(std::move(f))();
}

const Row kRows[] = {
    {"a tensor from outside with a history, in a step", "has a history",
     [] {
       const Tensor h = leaf({1}) * 2.0;
       as_step([h] { return h * 2.0; });
     }},
    {"a tensor from outside with a history, in a function", "has a history",
     [] {
       const Tensor h = leaf({1}) * 2.0;
       rg::compile([h](const Tensor& x) { return h * x; })(leaf({1}));
     }},
    {"an argument of a step with a history", "argument 0",
     [] {
       auto step = rg::compile_step([](const Tensor& x) { return x * 2.0; });
       step(leaf({1}) * 2.0);
     }},
    {"a tensor from outside gets a history", "history",
     [] {
       const Tensor p = rg::zeros({1});
       rg::compile([p](const Tensor& x) {
         p.add_(x);
         return x * 2.0;
       })(leaf({1}));
     }},
    {"hooks on a leaf that the function makes", "registers hooks",
     [] {
       rg::compile([](const Tensor& x) {
         const Tensor p = rg::zeros({1}).requires_grad_();
         p.register_hook([](const Tensor& g) { return g; });
         return Tensors{p, x};
       })(leaf({1}));
     }},
    {"written memory that is seen in two ways", "argument",
     [] {
       const Tensor p = rg::zeros({2});
       auto step = rg::compile_step([p](const Tensor& x) {
         rg::NoGradGuard no_grad;
         p.add_(rg::ones({2}));
         return x * p;
       });
       step(p);
     }},
    {"an undefined tensor", "undefined", [] { rg::exp(Tensor()); }},
    {"an undefined operand", "undefined", [] { rg::ones({2}) * Tensor(); }},
    {"a hook that gives another type", "the hook registered here",
     [] {
       const Tensor h = leaf({1, 2}) * 2.0;
       h.register_hook([](const Tensor&) { return rg::ones({3}); });
       rg::sum(h).backward();
     }},
    {"a pre-hook that gives too many", "the hook registered here",
     [] {
       const Tensor h = leaf({1, 2}) * 2.0;
       h.grad_fn().register_prehook([](const Tensors& g) { return Tensors{g[0], g[0]}; });
       rg::sum(h).backward();
     }},
    {"a hook in a step that gives another type", "the hook registered here",
     [] {
       const Tensor w = leaf({1, 2});
       w.register_hook([](const Tensor&) { return rg::ones({3}); });
       as_step([w] { rg::sum(w * w).backward(); });
     }},
    {"item in a function", "item",
     [] { rg::compile([](const Tensor& x) { return x * x.item<double>(); })(leaf({1})); }},
};

}  // namespace

TEST_CASE("errors name the user's line") {
  for (const Row& row : kRows) {
    const std::string error = error_of(row.call);
    INFO(row.name << ": " << error);
    CHECK(error.find(row.text) != std::string::npos);
    CHECK(error.find("error_lines_test.cc:") != std::string::npos);
    CHECK(error.find("compile.h") == std::string::npos);
    CHECK(error.find("Hint:") != std::string::npos);
  }
}
