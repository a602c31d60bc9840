// Wrapped: what the classes XxxImpl have in common. A module of torch::nn is a layer of retrograd::nn, made as a root
// from options of libtorch's kind, and held by a shared pointer (torch::nn::Xxx, a ModuleHolder):
//
//   RG_TORCH_LAYER(Linear);                                                          // in a header
//   LinearImpl::LinearImpl(const LinearOptions& o)                                   // in a .cc file
//       : Wrapped(o, o.in_features(), o.out_features(), rn::LinearOptions{.bias = o.bias()}) {}
//
// It is constructed from its options, or from the arguments of these: Linear(3, 4), Linear(LinearOptions(3, 4)).
// Parameters, forward(), state and text are the layer's. `options` is constant, since the layer would not see a change.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>

#include "torch/nn/cloneable.h"

#pragma GCC visibility push(default)
namespace torch::nn {

namespace rn = retrograd::nn;

template <class Self, class Layer, class Options>
class Wrapped : public detail::SharedClone<Self, Layer> {
 public:
  /// Gives parameters and buffers new initial values.
  void reset_parameters() { this->load_state_dict(Self(options).state_dict()); }
  void reset() { reset_parameters(); }

  const Options options;

 protected:
  template <class... Args>
  explicit Wrapped(const Options& options, const Args&... args)
      : detail::SharedClone<Self, Layer>(nullptr, "", args...), options(options) {}

 private:
  friend class detail::Remade<Self, Layer>;
  std::unique_ptr<Module> remade() const { return this->template clone_as<Self>(options); }
};

/// Of layers without options.
struct NoOptions {};

/// The holder of a layer: what TORCH_MODULE makes, but as a template, which costs nothing until a program uses it.
template <class LayerImpl>
class LayerHolder : public ModuleHolder<LayerImpl> {
 public:
  using ModuleHolder<LayerImpl>::ModuleHolder;
  using Impl = LayerImpl;
};

namespace detail {

template <class Options, class... Args>
concept ArgumentsOf =
    std::constructible_from<Options, Args...> && !(std::same_as<Options, std::remove_cvref_t<Args>> || ...);

}  // namespace detail
}  // namespace torch::nn
#pragma GCC visibility pop

// The class of the module NAME, over retrograd::nn::LAYER. What follows are more members.
#define RG_TORCH_IMPL(NAME, LAYER, OPTIONS, ...)                                              \
  class NAME##Impl : public Wrapped<NAME##Impl, rn::LAYER, OPTIONS> {                         \
   public:                                                                                    \
    explicit NAME##Impl(const OPTIONS& options);                                              \
    template <class... Args>                                                                  \
    requires detail::ArgumentsOf<OPTIONS, Args...>                                            \
    explicit NAME##Impl(Args&&... args) : NAME##Impl(OPTIONS(std::forward<Args>(args)...)) {} \
    __VA_ARGS__                                                                               \
  }
// The same with its holder; of 1, 2 and 3 dims; without options.
#define RG_TORCH_LAYER(NAME)                \
  RG_TORCH_IMPL(NAME, NAME, NAME##Options); \
  using NAME = LayerHolder<NAME##Impl>
#define RG_TORCH_LAYERS_123D(NAME) \
  RG_TORCH_LAYER(NAME##1d);        \
  RG_TORCH_LAYER(NAME##2d);        \
  RG_TORCH_LAYER(NAME##3d)
#define RG_TORCH_PLAIN_LAYER(NAME)      \
  RG_TORCH_IMPL(NAME, NAME, NoOptions); \
  using NAME = LayerHolder<NAME##Impl>
