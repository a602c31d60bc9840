// A layer to test: how to make it, and a call of it with any number of inputs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "retrograd/retrograd.h"

namespace retrograd::testing {

using LayerCall = std::function<Tensor(const Tensors&)>;

/// A module with its call; a result of several tensors counts as its first one.
struct CalledLayer {
  std::unique_ptr<nn::Module> module;
  LayerCall call;
};

struct LayerCase {
  std::string name;  // of its numbers
  std::string text;  // what pretty_print writes; empty for a layer of the tests, which cannot be cloned
  std::function<CalledLayer()> make;
  LayerCall (*call_of)(const nn::Module&);
};

/// A call of a module of class L, which stays where it is.
template <class L>
LayerCall call_of(const nn::Module& module) {
  return [&layer = dynamic_cast<const L&>(module)](const Tensors& x) -> Tensor {
    const auto first = [](const auto& result) -> Tensor {
      if constexpr (requires { result.output; })
        return result.output;
      else
        return result;
    };
    if constexpr (requires { layer(x[0]); })
      if (x.size() == 1) return first(layer(x[0]));
    if constexpr (requires { layer(x[0], x[1]); })
      if (x.size() == 2) return first(layer(x[0], x[1]));
    if constexpr (requires { layer(x[0], x[1], x[2]); })
      if (x.size() == 3) return first(layer(x[0], x[1], x[2]));
    if constexpr (requires { layer(x[0], x[1], x[2], x[3]); })
      if (x.size() == 4) return first(layer(x[0], x[1], x[2], x[3]));
    throw std::invalid_argument("the layer takes another number of inputs");
  };
}

/// A case for L(parent, name, arguments...).
template <class L, class... Args>
LayerCase layer_case(std::string name, std::string text, Args... arguments) {
  const auto make = [arguments...] {
    auto module = std::make_unique<L>(nullptr, std::string(), arguments...);
    LayerCall call = call_of<L>(*module);
    return CalledLayer{std::move(module), std::move(call)};
  };
  return {std::move(name), std::move(text), make, call_of<L>};
}

/// All cases: layer_cases.cc.
std::vector<LayerCase> layer_cases();

}  // namespace retrograd::testing
