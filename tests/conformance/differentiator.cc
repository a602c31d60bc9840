// One class per way to run a backward.
#include "tests/conformance/differentiator.h"

#include "engine/autograd.h"
#include "tracer/backward/compile_backward.h"

namespace retrograd::conformance {
namespace {

class Eager final : public Differentiator {
 public:
  void backward(const Backward& r, const std::optional<Tensors>& inputs) override {
    autograd::backward(r.roots, r.cotangents, r.retain_graph, r.create_graph, inputs);
  }
  Tensors grad(const Backward& r, const Tensors& inputs, bool allow_unused) override {
    return autograd::grad(r.roots, inputs, r.cotangents, r.retain_graph, r.create_graph, allow_unused);
  }
};

class Traced final : public Differentiator {
 public:
  void backward(const Backward& r, const std::optional<Tensors>& inputs) override {
    compiled_.backward(r.roots, r.cotangents, r.retain_graph, r.create_graph, inputs);
  }
  Tensors grad(const Backward& r, const Tensors& inputs, bool allow_unused) override {
    return compiled_.grad(r.roots, inputs, r.cotangents, r.retain_graph, r.create_graph, allow_unused);
  }

 private:
  CompiledBackward compiled_;
};

}  // namespace

std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::eager: return "eager";
    case Mode::traced: return "traced";
    case Mode::compiled: return "compiled";
    case Mode::dynamic: return "dynamic";
    case Mode::step: return "step";
  }
  return "?";
}

std::unique_ptr<Differentiator> make_differentiator(Mode mode) {
  switch (mode) {
    case Mode::eager: return std::make_unique<Eager>();
    case Mode::traced:
    case Mode::compiled:
    case Mode::dynamic:
    case Mode::step: return std::make_unique<Traced>();
  }
  return nullptr;
}

}  // namespace retrograd::conformance
