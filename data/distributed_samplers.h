// Samplers of one process among several that share an epoch.
//
// An epoch is cut into `num_replicas` parts of equal length; the process numbered `rank` has the rank-th. When the size
// is no multiple, the first examples of the epoch occur again at its end (allow_duplicates), or the last ones are left
// out. set_epoch() tells all processes the number of the epoch, from which alone they draw its order: so their parts
// are of the same order, whatever else each of them has drawn.
// Their states are those of data/samplers.h; the epoch is part of it.
#pragma once

#include "data/samplers.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data::samplers {

template <class BatchRequest = std::vector<size_t>>
class DistributedSampler : public Sampler<BatchRequest> {
 public:
  /// Error(bad_argument) unless rank < num_replicas.
  DistributedSampler(size_t size, size_t num_replicas = 1, size_t rank = 0, bool allow_duplicates = true,
                     SourceLocation where = SourceLocation::current())
      : size_(size), num_replicas_(num_replicas), rank_(rank), allow_duplicates_(allow_duplicates) {
    if (rank >= num_replicas)
      fail(Category::bad_argument, "DistributedSampler", "the rank is not below the number of replicas",
           where);
  }
  /// Takes effect at the next reset().
  void set_epoch(size_t epoch) { epoch_ = epoch; }
  size_t epoch() const { return epoch_; }

 protected:
  size_t local_sample_count() const {
    return size_ / num_replicas_ + (allow_duplicates_ && size_ % num_replicas_ != 0);
  }

  size_t size_, num_replicas_, rank_;
  size_t epoch_ = 0;
  bool allow_duplicates_;
};

/// The examples of this process in their order.
class DistributedSequentialSampler : public DistributedSampler<> {
 public:
  using DistributedSampler<>::DistributedSampler;
  void reset(std::optional<size_t> new_size = {}) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  /// The place in the whole epoch.
  size_t index() const { return rank_ * local_sample_count() + index_; }

  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  size_t index_ = 0;  // within the part
};

/// The same of a random order of all examples, another one for each epoch.
class DistributedRandomSampler : public DistributedSampler<> {
 public:
  DistributedRandomSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                           bool allow_duplicates = true, SourceLocation where = SourceLocation::current());
  void reset(std::optional<size_t> new_size = {}) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  size_t index() const { return rank_ * local_sample_count() + index_; }

  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  Tensor order_;            // int64 (size)
  size_t order_epoch_ = 0;  // the epoch that it was drawn for
  size_t index_ = 0;
};

}  // namespace retrograd::inline v0::data::samplers
#pragma GCC visibility pop
