// Layer: what the layers have in common. A layer is a class with a type_name, forward(), its arguments, and the text of
// its arguments if there are any; calling, printing and cloning it follow from these:
//
//   struct Softsign : Layer<Softsign> {
//     static constexpr std::string_view type_name = "Softsign";
//     using Layer::Layer;
//     Tensor forward(Operand x) const;
//   };
//
// Invariants: arguments() gives what the constructor takes after the parent and the name; members that hold arguments
// are const, since a recorded function would not see a change. A layer is declared as a member of its parent; parent
// null and an empty name make a root.
// A forward that is one function of x needs no CallScope, as x carries its caller's line; one that is made of several
// functions, or whose first operand is another tensor, opens one.
#pragma once

#include <iosfwd>
#include <tuple>

#include "nn/module.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

namespace detail {

/// One of three names, for 1, 2 and 3 dims.
constexpr std::string_view name_for(int dims, std::string_view one, std::string_view two,
                                    std::string_view three) {
  return dims == 1 ? one : dims == 2 ? two : three;
}

/// A tensor on the memory of `given`, for a buffer; undefined if that is.
Tensor sharing(const Tensor& given);

/// "[3, 3]": a list of one number per dim, or of one for all.
std::string list_text(const IntList& list, int dims);

/// The text of a layer.
void print_layer(std::ostream& out, const Module& layer, std::string_view type, const std::string& arguments);

}  // namespace detail

/// `Base`: a module that Self derives from.
template <class Self, class Base = Module>
class Layer : public Base {
 public:
  using Base::Base;

  /// forward(x, more...), with hooks.
  template <class... More>
  auto operator()(Operand x, const More&... more) const requires requires(const Self& self) {
    self.forward(x, more...);
  }
  { return Module::call(self(), x, more...); }
  /// The layer: so the parts of a layer may be written as libtorch's, which are in holders: layer->linear1->weight.
  Self* operator->() { return static_cast<Self*>(this); }
  const Self* operator->() const { return &self(); }
  std::unique_ptr<Module> clone() const override {
    if constexpr (requires { self().arguments(); })
      return std::apply([this](const auto&... all) { return this->template clone_as<Self>(all...); },
                        self().arguments());
    else
      return this->template clone_as<Self>();
  }
  /// "Linear(in_features=64, out_features=10, bias=false)"; of a layer with children, which follow, the name alone.
  void pretty_print(std::ostream& out) const override {
    if constexpr (requires { self().extra_repr(); })
      detail::print_layer(out, *this, Self::type_name, self().extra_repr());
    else
      detail::print_layer(out, *this, Self::type_name, {});
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

/// A layer whose only arguments are its options, a struct.
template <class Self, class Options>
class OptionsLayer : public Layer<Self> {
 public:
  explicit OptionsLayer(Module* parent = nullptr, std::string name = {}, Options options = {})
      : Layer<Self>(parent, std::move(name)), options(std::move(options)) {}
  std::tuple<Options> arguments() const { return {options}; }

  const Options options;
};

}  // namespace retrograd::nn
#pragma GCC visibility pop
