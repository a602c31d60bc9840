// Data sets: classes with the examples of a training, by number.
//
//   struct Lines : data::datasets::Dataset<Lines> {
//     data::Example<> get(size_t index) override { ... }
//     std::optional<size_t> size() const override { ... }
//   };
//   auto batches = Lines().map(data::transforms::Normalize<>(0.5, 0.25)).map(data::transforms::Stack<>());
//
// BatchDataset is the interface: a request (a list of indices; for a stream the number of examples) gives a batch, any
// type. Dataset makes a batch, a vector, of single examples. A stateful data set decides itself what comes next: its
// get_batch() gives an optional, empty at the end of an epoch. The first template parameter of a base is the class that
// derives from it: map() copies or moves that into a MapDataset, which applies a transform (data/transforms.h).
// Limits: a loader copies a data set that is not stateful once for each worker. Data that is large, or shared, is held
// in tensors or behind a shared_ptr (SharedBatchDataset).
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "data/example.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data::datasets {

namespace detail {
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
}  // namespace detail

template <class Source, class Transform>
class MapDataset;

/// Gives a batch for a request.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = std::vector<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;
  static constexpr bool is_stateful = detail::is_optional<Batch>;

  virtual ~BatchDataset() = default;
  virtual Batch get_batch(BatchRequest request) = 0;
  /// The number of examples; empty when it is not known.
  virtual std::optional<size_t> size() const = 0;

  /// This data set, followed by a transform of its batches.
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) & {
    return {static_cast<Self&>(*this), std::move(transform)};
  }
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) && {
    return {std::move(static_cast<Self&>(*this)), std::move(transform)};
  }
};

/// Gives single examples, and batches of those.
template <class Self, class SingleExample = Example<>, class BatchRequest = std::vector<size_t>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>, BatchRequest> {
 public:
  using ExampleType = SingleExample;

  virtual SingleExample get(size_t index) = 0;
  std::vector<SingleExample> get_batch(BatchRequest indices) override {
    std::vector<SingleExample> batch;
    batch.reserve(indices.size());
    for (const size_t index : indices) batch.push_back(get(index));
    return batch;
  }
};

/// Gives the next examples; a request is their number.
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, size_t>;

/// Gives the next batch of an epoch, and nothing at its end. Workers share it: get_batch() must allow concurrent calls
/// when there are several.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = size_t>
class StatefulDataset : public BatchDataset<Self, std::optional<Batch>, BatchRequest> {
 public:
  /// Begins an epoch.
  virtual void reset() = 0;
};

namespace detail {
template <class Source, class Transform>
using MappedBatch =
    std::conditional_t<Source::is_stateful, std::optional<typename Transform::OutputBatchType>,
                       typename Transform::OutputBatchType>;
}

/// The batches of `Source`, transformed.
template <class Source, class Transform>
class MapDataset : public BatchDataset<MapDataset<Source, Transform>, detail::MappedBatch<Source, Transform>,
                                       typename Source::BatchRequestType> {
 public:
  using DatasetType = Source;
  using TransformType = Transform;
  using BatchRequestType = typename Source::BatchRequestType;
  using OutputBatchType = detail::MappedBatch<Source, Transform>;

  MapDataset(Source dataset, Transform transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}

  OutputBatchType get_batch(BatchRequestType request) override {
    auto batch = dataset_.get_batch(std::move(request));
    if constexpr (Source::is_stateful) {
      if (!batch) return std::nullopt;
      return transform_.apply_batch(std::move(*batch));
    } else {
      return transform_.apply_batch(std::move(batch));
    }
  }
  std::optional<size_t> size() const override { return dataset_.size(); }
  /// Begins an epoch of a stateful data set.
  void reset() requires(Source::is_stateful) { dataset_.reset(); }

  const Source& dataset() const { return dataset_; }
  const Transform& transform() const { return transform_; }

 private:
  Source dataset_;
  Transform transform_;
};

/// The same as dataset.map(transform).
template <class Source, class Transform>
MapDataset<Source, Transform> map(Source dataset, Transform transform) {
  return {std::move(dataset), std::move(transform)};
}

/// One data set for all workers, which must allow concurrent calls.
template <class Underlying>
class SharedBatchDataset : public BatchDataset<SharedBatchDataset<Underlying>, typename Underlying::BatchType,
                                               typename Underlying::BatchRequestType> {
 public:
  using BatchType = typename Underlying::BatchType;
  using BatchRequestType = typename Underlying::BatchRequestType;

  SharedBatchDataset(std::shared_ptr<Underlying> dataset) : dataset_(std::move(dataset)) {}
  BatchType get_batch(BatchRequestType request) override { return dataset_->get_batch(std::move(request)); }
  std::optional<size_t> size() const override { return dataset_->size(); }
  void reset() requires(Underlying::is_stateful) { dataset_->reset(); }

  Underlying& operator*() const { return *dataset_; }
  Underlying* operator->() const { return dataset_.get(); }

 private:
  std::shared_ptr<Underlying> dataset_;
};

template <class Underlying, class... Args>
SharedBatchDataset<Underlying> make_shared_dataset(Args&&... args) {
  return std::make_shared<Underlying>(std::forward<Args>(args)...);
}

}  // namespace retrograd::inline v0::data::datasets
#pragma GCC visibility pop
