// Example: what a data set gives for one index: data and a target, such as an image and its label. A type without a
// target, Example<Data, example::NoTarget>, converts to its data, so that loops over unlabelled data read as ones over
// tensors.
#pragma once

#include <utility>

#include "engine/tensor.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data {

template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;

  Example() = default;
  Example(Data data, Target target) : data(std::move(data)), target(std::move(target)) {}

  Data data;
  Target target;
};

namespace example {
using NoTarget = void;
}

template <class Data>
struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;

  Example() = default;
  Example(Data data) : data(std::move(data)) {}
  operator Data&() { return data; }
  operator const Data&() const { return data; }

  Data data;
};

using TensorExample = Example<Tensor, example::NoTarget>;

}  // namespace retrograd::inline v0::data
#pragma GCC visibility pop
