// Shared by the scenarios on hooks: a body is run eagerly once and traced several times, and must do the same.
//
// A body makes new tensors, calls backward through its Mode, logs what happens and returns the tensors to compare.
// run_both() compares events and bits of each traced run with the eager one, and bounds the number of captures.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/same_bits.h"

namespace retrograd::scenario {

using retrograd::category_of;

using Values = std::vector<double>;
using Events = std::vector<std::string>;

/// How a body calls backward: eagerly, or through a CompiledBackward.
class Mode {
 public:
  explicit Mode(CompiledBackward* compiled) : compiled_(compiled) {}
  CompiledBackward* compiled() const { return compiled_; }

  void backward(const Tensors& roots, const Tensors& cotangents = {}, std::optional<bool> retain_graph = {},
                bool create_graph = false, const std::optional<Tensors>& inputs = {}) {
    if (compiled_)
      compiled_->backward(roots, cotangents, retain_graph, create_graph, inputs);
    else
      autograd::backward(roots, cotangents, retain_graph, create_graph, inputs);
  }
  void backward(const Tensor& loss, bool retain_graph = false) { backward(Tensors{loss}, {}, retain_graph); }
  void backward_into(const Tensor& loss, const Tensors& inputs, bool retain_graph = false) {
    backward(Tensors{loss}, {}, retain_graph, false, inputs);
  }
  Tensors grad(const Tensors& roots, const Tensors& inputs, const Tensors& cotangents = {},
               std::optional<bool> retain_graph = {}, bool create_graph = false, bool allow_unused = false) {
    if (compiled_)
      return compiled_->grad(roots, inputs, cotangents, retain_graph, create_graph, allow_unused);
    return autograd::grad(roots, inputs, cotangents, retain_graph, create_graph, allow_unused);
  }
  Tensor grad(const Tensor& root, const Tensor& input, bool retain_graph = false, bool create_graph = false) {
    return grad(Tensors{root}, Tensors{input}, {}, retain_graph || create_graph, create_graph)[0];
  }

  void log(std::string event) { events.push_back(std::move(event)); }
  /// The events so far, which are then forgotten.
  Events take_events() { return std::exchange(events, {}); }

  Events events;

 private:
  CompiledBackward* compiled_;
};

using testing::same_bits;

using Body = std::function<Tensors(Mode&)>;

/// Runs `body` eagerly, then `times` times traced: same bits, same events, at most `captures` captures and
/// all of them in the first run.
inline CompiledBackward::Stats run_both(const Body& body, int64_t captures = 1, int times = 3) {
  Mode eager(nullptr);
  const Tensors expected = body(eager);
  CompiledBackward compiled = compile_backward();
  int64_t captured_at_first = 0;
  for (int i = 0; i < times; ++i) {
    Mode traced(&compiled);
    const Tensors found = body(traced);
    INFO("traced run " << i);
    REQUIRE(traced.events == eager.events);
    REQUIRE(found.size() == expected.size());
    for (size_t k = 0; k < found.size(); ++k) {
      INFO("tensor " << k << ": eager " << to_string(expected[k]) << ", traced " << to_string(found[k]));
      REQUIRE(same_bits(found[k], expected[k]));
    }
    if (i == 0) captured_at_first = compiled.stats().captures;
  }
  INFO("last capture: " << compiled.last_capture_reason());
  CHECK(compiled.stats().captures >= 1);
  CHECK(compiled.stats().captures <= captures);
  CHECK(compiled.stats().captures == captured_at_first);
  return compiled.stats();
}

inline Tensor leaf(const Values& values) {
  return tensor(values, {static_cast<int64_t>(values.size())}).requires_grad_();
}
inline Tensor scalar_leaf(double value) { return scalar_tensor(value).requires_grad_(); }
inline Values values(const Tensor& t) { return t.to_vector(); }
inline double value(const Tensor& t) { return t.item<double>(); }
/// Numbers 0.1, 0.2, ... with changing signs, of a shape.
inline Tensor some_values(const Shape& shape) {
  Values v(static_cast<size_t>(shape.numel().value()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = 0.1 * static_cast<double>(i + 1) * (i % 3 == 2 ? -1 : 1);
  return tensor(v, shape);
}
inline Tensor some_leaf(const Shape& shape) { return some_values(shape).requires_grad_(); }

/// A tensor hook that multiplies.
inline std::function<Tensor(const Tensor&)> times(double factor) {
  return [factor](const Tensor& g) { return g * factor; };
}
/// Each defined gradient of a list multiplied.
inline Tensors multiplied(const Tensors& grads, double factor) {
  Tensors out;
  for (const Tensor& g : grads) out.push_back(g.defined() ? g * factor : g);
  return out;
}

/// Saved-tensor hooks that count, and keep the tensor itself.
struct Counts {
  int packs = 0, unpacks = 0;
  RefPtr<SavedTensorHooks> hooks() {
    return saved_tensor_hooks(
        [this](const Tensor& t) {
          ++packs;
          return t;
        },
        [this](const Tensor& t) {
          ++unpacks;
          return t;
        });
  }
};
/// pack multiplies by `pack`, unpack by `unpack`.
inline RefPtr<SavedTensorHooks> scaling(double pack, double unpack) {
  return saved_tensor_hooks([pack](const Tensor& t) { return t * pack; },
                            [unpack](const Tensor& t) { return t * unpack; });
}
inline RefPtr<SavedTensorHooks> identity_hooks() { return scaling(1, 1); }

/// Runs f eagerly and traced.
inline void in_both(const std::function<void(Mode&)>& f) {
  CompiledBackward compiled = compile_backward();
  for (CompiledBackward* c : {static_cast<CompiledBackward*>(nullptr), &compiled}) {
    INFO((c ? "traced" : "eager"));
    Mode mode(c);
    f(mode);
  }
}

}  // namespace retrograd::scenario
