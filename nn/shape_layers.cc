// See nn/shape_layers.h. Each forward opens a scope with its caller's line, so that no error names a line of this file.
#include "nn/shape_layers.h"

#include <ostream>

#include "ops/reshaping.h"
#include "ops/views.h"

namespace retrograd::inline v0::nn {

std::unique_ptr<Module> Identity::clone() const { return clone_as<Identity>(); }
std::unique_ptr<Module> Flatten::clone() const { return clone_as<Flatten>(options_); }
std::unique_ptr<Module> Unflatten::clone() const { return clone_as<Unflatten>(dim_, sizes_); }
std::unique_ptr<Module> Functional::clone() const { return clone_as<Functional>(function_); }

Tensor Flatten::forward(Operand x) const {
  CallScope scope(x.where());
  return flatten(x, options_.start_dim, options_.end_dim);
}

void Flatten::pretty_print(std::ostream& out) const {
  out << "Flatten(start_dim=" << options_.start_dim << ", end_dim=" << options_.end_dim << ')';
}

Tensor Unflatten::forward(Operand x) const {
  CallScope scope(x.where());
  return unflatten(x, dim_, sizes_);
}

void Unflatten::pretty_print(std::ostream& out) const {
  out << "Unflatten(dim=" << dim_ << ", unflattened_size={";
  for (size_t i = 0; i < sizes_.size(); ++i) out << (i ? ", " : "") << sizes_[i];
  out << "})";
}

Functional::Functional(Module* parent, std::string name, std::function<Tensor(const Tensor&)> function,
                       SourceLocation where)
    : Module(parent, std::move(name)), function_(std::move(function)) {
  require_function(static_cast<bool>(function_), "Functional", where);
}

Tensor Functional::forward(Operand x) const {
  const CallScope::Suspend own_lines;
  return function_(x.defined_tensor("Functional"));
}

}  // namespace retrograd::nn
