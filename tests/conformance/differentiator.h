// The modes, and the implementation of backward and grad in each: eager uses the engine's own, traced and compiled a
// captured backward that is then run. dynamic is as compiled, with sizes as symbols: the recording that serves a case
// is made with larger inputs, where the case allows that. step, of cases with optimizers, records a whole training step,
// where compiled records forward and update each by itself.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "engine/tensor.h"

namespace retrograd::conformance {

enum class Mode { eager, traced, compiled, dynamic, step };
/// Those that the format names.
inline constexpr Mode kModes[] = {Mode::eager, Mode::traced, Mode::compiled};
inline bool compiles(Mode mode) { return mode >= Mode::compiled; }

std::string_view to_string(Mode mode);

/// What one backward starts from; as the parameters of autograd::backward and autograd::grad.
struct Backward {
  Tensors roots, cotangents;
  std::optional<bool> retain_graph;
  bool create_graph = false;
};

class Differentiator {
 public:
  virtual ~Differentiator() = default;
  virtual void backward(const Backward& request, const std::optional<Tensors>& inputs) = 0;
  virtual Tensors grad(const Backward& request, const Tensors& inputs, bool allow_unused) = 0;
};

/// A fresh differentiator.
std::unique_ptr<Differentiator> make_differentiator(Mode mode);

}  // namespace retrograd::conformance
