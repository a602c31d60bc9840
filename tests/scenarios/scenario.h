// Helpers of the scenario tests: one body, run eagerly and through a CompiledBackward, step by step, and
// compared bit for bit.
//
//   run_both({.steps = 3, .captures = 1}, [](Mode& mode, int step) {
//     const Tensor x = leaf({1, 2, 3});
//     mode.backward(rg::sum(x * x));
//     CHECK(values(x.grad()) == std::vector<double>{2, 4, 6});   // exact numbers, where the scenario has them
//     return Tensors{x.grad()};                                  // what must agree between the two modes
//   });
//
// A body that keeps tensors over the steps takes a state, of which each mode has its own:
// run_both<State>(expect, body(state, mode, step)).
#pragma once

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "retrograd/retrograd.h"
#include "tests/same_bits.h"

namespace scenario {

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

/// How a body calls its backwards: eagerly, or through a CompiledBackward.
class Mode {
 public:
  explicit Mode(rg::CompiledBackward* compiled = nullptr) : compiled_(compiled) {}
  bool traced() const { return compiled_ != nullptr; }
  /// Null in eager mode.
  rg::CompiledBackward* compiled() const { return compiled_; }
  int64_t captures() const { return traced() ? compiled_->stats().captures : 0; }
  /// Backwards called so far.
  int64_t calls() const { return calls_; }

  void backward(const Tensor& loss) { backward(Tensors{loss}); }
  void backward(const Tensors& roots, const Tensors& cotangents = {}, std::optional<bool> retain_graph = {},
                bool create_graph = false, const std::optional<Tensors>& inputs = {}) {
    ++calls_;
    if (traced())
      compiled_->backward(roots, cotangents, retain_graph, create_graph, inputs);
    else
      rg::autograd::backward(roots, cotangents, retain_graph, create_graph, inputs);
  }
  Tensors grad(const Tensors& roots, const Tensors& inputs, const Tensors& cotangents = {},
               std::optional<bool> retain_graph = {}, bool create_graph = false, bool allow_unused = false) {
    ++calls_;
    if (traced()) return compiled_->grad(roots, inputs, cotangents, retain_graph, create_graph, allow_unused);
    return rg::autograd::grad(roots, inputs, cotangents, retain_graph, create_graph, allow_unused);
  }

 private:
  rg::CompiledBackward* compiled_;
  int64_t calls_ = 0;
};

/// The strides, too.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  return rg::testing::same_bits(a, b) && (!a.defined() || a.strides() == b.strides());
}

inline void check_same(const Tensors& eager, const Tensors& traced) {
  REQUIRE(eager.size() == traced.size());
  for (size_t i = 0; i < eager.size(); ++i) {
    INFO("result " << i << ", eager " << eager[i] << ", traced " << traced[i]);
    CHECK(same_bits(eager[i], traced[i]));
  }
}

struct Expect {
  int steps = 3;
  int64_t captures = 1;  // at most
};

/// Runs body(state, mode, step) in both modes and compares what it returns. Each backward must be a hit or a
/// capture.
template <class State, class Body>
void run_both(Expect expect, Body body) {
  rg::CompiledBackward compiled = rg::compile_backward();
  Mode eager, traced(&compiled);
  State eager_state, traced_state;
  for (int step = 0; step < expect.steps; ++step) {
    INFO("step " << step);
    const Tensors expected = [&] {
      INFO("eager");
      return body(eager_state, eager, step);
    }();
    const Tensors found = [&] {
      INFO("traced");
      return body(traced_state, traced, step);
    }();
    check_same(expected, found);
  }
  INFO("last capture: " << compiled.last_capture_reason());
  CHECK(compiled.stats().captures >= 1);
  CHECK(compiled.stats().captures <= expect.captures);
}

template <class Body>
void run_both(Expect expect, Body body) {
  struct None {};
  run_both<None>(expect, [&](None&, Mode& mode, int step) { return body(mode, step); });
}

/// A float32 leaf that wants a gradient.
inline Tensor leaf(std::initializer_list<double> values) { return rg::tensor(values).requires_grad_(); }
inline Tensor leaf(const std::vector<double>& values, const rg::Shape& size) {
  return rg::tensor(values, size).requires_grad_();
}

/// All elements; empty for an undefined tensor.
inline std::vector<double> values(const Tensor& t) {
  return t.defined() ? t.to_vector() : std::vector<double>();
}

/// `count` numbers between -1 and 1 with many bits set, the same ones for the same seed.
inline std::vector<double> spread(int64_t count, int seed = 0) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<double>((i * 7919 + seed * 104729 + 13) % 1009) / 504.5 - 1);
  return numbers;
}
inline Tensor spread(const rg::Shape& size, int seed = 0) {
  return rg::tensor(spread(size.numel().value(), seed), size);
}

/// A leaf of spread numbers.
inline Tensor parameter(const rg::Shape& size, int seed = 0) { return spread(size, seed).requires_grad_(); }

/// How many nodes of this op the graph has.
inline int count_nodes(const rg::ir::Graph& graph, std::string_view op) {
  int count = 0;
  for (const rg::ir::Node& node : graph.nodes()) count += node.op->name == op;
  return count;
}

/// The category of the Error that f throws, none when it returns; other exceptions pass.
template <class F>
std::optional<rg::Category> category_of(F f) {
  try {
    f();
  } catch (const rg::Error& e) {
    return e.category();
  }
  return {};
}

/// The text of the exception that f throws, empty when it returns.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

/// A function whose backward must not run: identity forward, throws std::runtime_error("this backward must
/// not run").
struct ThrowsInBackward : rg::Function<ThrowsInBackward> {
  static Tensor forward(rg::AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors backward(rg::AutogradContext*, const Tensors&) {
    throw std::runtime_error("this backward must not run");
  }
};

}  // namespace scenario
