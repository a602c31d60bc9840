// Layers that compute nothing, or what a function computes: Identity, Flatten, Unflatten, Functional. They give a
// Sequential what is not a layer.
//
//   body.emplace_back<nn::Functional>([](const Tensor& x) { return x * 2.0; });
#pragma once

#include "nn/module.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

/// x -> x.
class Identity : public Module {
 public:
  using Module::Module;
  Tensor forward(Operand x) const { return x.defined_tensor("Identity"); }
  Tensor operator()(Operand x) const { return call(*this, x); }
  std::unique_ptr<Module> clone() const override;
};

struct FlattenOptions {
  int64_t start_dim = 1, end_dim = -1;
};

/// Makes the dims start_dim to end_dim one: (batch, 3, 4) -> (batch, 12). Error(bad_dim) as of flatten().
class Flatten : public Module {
 public:
  Flatten(Module* parent, std::string name, FlattenOptions options = {})
      : Module(parent, std::move(name)), options_(options) {}
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }
  void pretty_print(std::ostream& out) const override;
  std::unique_ptr<Module> clone() const override;

 private:
  FlattenOptions options_;
};

/// Makes the dim `dim` several, of these sizes, of which one may be -1: dim 1 as {3, 4}: (batch, 12) -> (batch, 3, 4).
/// Errors as of unflatten().
class Unflatten : public Module {
 public:
  Unflatten(Module* parent, std::string name, int64_t dim, IntArray sizes)
      : Module(parent, std::move(name)), dim_(dim), sizes_(std::move(sizes)) {}
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }
  void pretty_print(std::ostream& out) const override;
  std::unique_ptr<Module> clone() const override;

 private:
  int64_t dim_;
  IntArray sizes_;
};

/// A function of one tensor as a module. Copies of the module have copies of the function.
class Functional : public Module {
 public:
  /// Error(bad_argument) for an empty function.
  Functional(Module* parent, std::string name, std::function<Tensor(const Tensor&)> function,
             SourceLocation where = SourceLocation::current());
  Tensor forward(Operand x) const;
  Tensor operator()(Operand x) const { return call(*this, x); }
  std::unique_ptr<Module> clone() const override;

 private:
  std::function<Tensor(const Tensor&)> function_;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
