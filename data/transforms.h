// Transforms: what a data set does to its batches before it gives them.
//
// A BatchTransform makes one batch of another, a Transform one example of another. Lambda and BatchLambda take
// functions. A collation makes one value of all examples of a batch: Stack joins tensors along a new first dim.
// Limits: a transform that draws random numbers takes them from the generator that all threads share. In a loader with
// several workers it depends on their timing which batch gets which.
#pragma once

#include <functional>
#include <vector>

#include "data/example.h"
#include "ops/join.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data::transforms {

template <class InputBatch, class OutputBatch>
class BatchTransform {
 public:
  using InputBatchType = InputBatch;
  using OutputBatchType = OutputBatch;

  virtual ~BatchTransform() = default;
  virtual OutputBatch apply_batch(InputBatch batch) = 0;
};

template <class Input, class Output>
class Transform : public BatchTransform<std::vector<Input>, std::vector<Output>> {
 public:
  using InputType = Input;
  using OutputType = Output;

  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> inputs) override {
    std::vector<Output> outputs;
    outputs.reserve(inputs.size());
    for (Input& input : inputs) outputs.push_back(apply(std::move(input)));
    return outputs;
  }
};

template <class Input, class Output = Input>
class BatchLambda : public BatchTransform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;

  explicit BatchLambda(FunctionType function) : function_(std::move(function)) {}
  Output apply_batch(Input batch) override { return function_(std::move(batch)); }

 private:
  FunctionType function_;
};

template <class Input, class Output = Input>
class Lambda : public Transform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;

  explicit Lambda(FunctionType function) : function_(std::move(function)) {}
  Output apply(Input input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

/// Makes one T of a batch.
template <class T, class Batch = std::vector<T>>
using Collation = BatchTransform<Batch, T>;
template <class T, class Batch = std::vector<T>>
using Collate = BatchLambda<Batch, T>;

/// Stacks the tensors of the examples: n of shape (...) become one (n, ...). Error(shape_mismatch) unless all have one
/// shape, Error(bad_argument) for an empty batch.
template <class T = Example<>>
struct Stack;

template <>
struct Stack<Example<>> : Collation<Example<>> {
  Example<> apply_batch(std::vector<Example<>> examples) override {
    Tensors data, targets;
    for (Example<>& example : examples) {
      data.push_back(std::move(example.data));
      targets.push_back(std::move(example.target));
    }
    return {stack(data), stack(targets)};
  }
};

template <>
struct Stack<TensorExample> : Collation<TensorExample> {
  TensorExample apply_batch(std::vector<TensorExample> examples) override {
    Tensors data;
    for (TensorExample& example : examples) data.push_back(std::move(example.data));
    return stack(data);
  }
};

/// Transforms the tensor of an example by operator().
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  virtual Tensor operator()(Tensor input) = 0;
  Example<Tensor, Target> apply(Example<Tensor, Target> example) override {
    example.data = (*this)(std::move(example.data));
    return example;
  }
};

template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  using FunctionType = std::function<Tensor(Tensor)>;

  explicit TensorLambda(FunctionType function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

namespace detail {
/// float32 (n, 1, 1): broadcasts over images (n, height, width).
Tensor per_channel(const std::vector<double>& values);
Tensor normalized(const Tensor& input, const Tensor& mean, const Tensor& stddev);
}  // namespace detail

/// (x - mean) / stddev, with a number for each channel of an image (channels, height, width), or one for all.
template <class Target = Tensor>
struct Normalize : TensorTransform<Target> {
  Normalize(double mean, double stddev) : Normalize(std::vector<double>{mean}, std::vector<double>{stddev}) {}
  Normalize(const std::vector<double>& mean, const std::vector<double>& stddev)
      : mean(detail::per_channel(mean)), stddev(detail::per_channel(stddev)) {}
  Tensor operator()(Tensor input) override { return detail::normalized(input, mean, stddev); }

  Tensor mean, stddev;  // float32 (n, 1, 1)
};

}  // namespace retrograd::inline v0::data::transforms
#pragma GCC visibility pop
