// Cloneable<Net>: a module whose clone() makes its parts anew by reset(), and copies the values:
//
//   struct NetImpl : torch::nn::Cloneable<NetImpl> {
//     NetImpl() { reset(); }
//     void reset() override { fc = register_module("fc", torch::nn::Linear(3, 4)); }
//     torch::nn::Linear fc{nullptr};
//   };
//
// A clone is a copy of the object, in which reset() registers parameters, buffers and modules again. So a Cloneable has
// members that can be copied: holders and tensors, not the Parameters and layers of retrograd's own style, which have
// clone_as().
#pragma once

#include <memory>
#include <optional>

#include "torch/nn/pimpl.h"

#pragma GCC visibility push(default)
namespace torch::nn {

namespace detail {

/// Module::clone() by Self::remade(), which gives a root.
template <class Self, class Base>
class Remade : public Base {
 public:
  using Base::Base;
  std::unique_ptr<Module> clone() const override { return static_cast<const Self&>(*this).remade(); }
};

/// clone() with libtorch's result, a shared pointer, for std::dynamic_pointer_cast<NetImpl>(net->clone()). It hides the
/// one above, which it cannot override; it is a template, since a function that hides another is warned of.
template <class Self, class Base>
class SharedClone : public Remade<Self, Base> {
 public:
  using Remade<Self, Base>::Remade;
  template <class...>
  std::shared_ptr<Module> clone(const std::optional<retrograd::Device>& device = {}) const {
    std::shared_ptr<Module> copy = Remade<Self, Base>::clone();
    if (device) copy->to(*device);
    return copy;
  }
};

}  // namespace detail

template <class Derived>
class Cloneable : public detail::SharedClone<Derived, Module> {
 public:
  using detail::SharedClone<Derived, Module>::SharedClone;
  virtual void reset() = 0;

 private:
  friend class detail::Remade<Derived, Module>;
  std::unique_ptr<Module> remade() const {
    const retrograd::nn::detail::KeptRandomState kept;
    auto copy = std::make_unique<Derived>(static_cast<const Derived&>(*this));
    Cloneable& made = *copy;
    made.unregister_all();
    made.reset();
    made.take_values_of(*this);
    return copy;
  }
};

}  // namespace torch::nn
#pragma GCC visibility pop
