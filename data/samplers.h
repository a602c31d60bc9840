// Samplers: which examples a loader asks for next.
//
// reset() begins an epoch, next(n) gives the indices of up to n examples, and nothing at its end. The samplers here can
// be saved: state_dict() has the position within an epoch, and for a random order the place in the stream of random
// numbers that it was drawn from (seed and offset, not the order itself). load_state_dict() copies it, all or nothing;
// Error(bad_argument) for a missing key or the state of a sampler of another size.
// A sampler of one's own that is to be resumed has these two functions (HasState in io/training_state.h) and a copy
// constructor.
#pragma once

#include <optional>
#include <vector>

#include "engine/random.h"
#include "io/state_dict.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data::samplers {

template <class BatchRequest = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = BatchRequest;

  virtual ~Sampler() = default;
  /// Begins an epoch, over a data set of another size if one is given.
  virtual void reset(std::optional<size_t> new_size = {}) = 0;
  /// The next request, for at most `batch_size` examples.
  virtual std::optional<BatchRequest> next(size_t batch_size) = 0;
};

/// 0, 1, ..., size - 1.
class SequentialSampler : public Sampler<> {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  void reset(std::optional<size_t> new_size = {}) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  size_t index() const { return index_; }

  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  size_t size_, index_ = 0;
};

/// The same in random order, drawn from the default generator when the sampler is made and at each reset().
class RandomSampler : public Sampler<> {
 public:
  /// Indices are kept with this dtype. Error(bad_argument) for a negative size, or one that the dtype does not hold.
  explicit RandomSampler(int64_t size, ScalarType index_dtype = kInt64);
  void reset(std::optional<size_t> new_size = {}) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  size_t index() const { return index_; }

  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  GeneratorState drawn_;  // the place of the order in the stream of random numbers
  Tensor indices_;        // the order: (size)
  size_t index_ = 0;
};

/// A request that is more than a list of indices.
struct CustomBatchRequest {
  virtual ~CustomBatchRequest() = default;
  /// The number of examples.
  virtual size_t size() const = 0;
};

/// A number of examples.
struct BatchSize : CustomBatchRequest {
  explicit BatchSize(size_t size) : size_(size) {}
  size_t size() const override { return size_; }
  operator size_t() const { return size_; }

  size_t size_;
};

/// Asks for numbers of examples, in all `epoch_size`: for data sets that decide themselves which come next.
class StreamSampler : public Sampler<BatchSize> {
 public:
  explicit StreamSampler(size_t epoch_size) : size_(epoch_size) {}
  void reset(std::optional<size_t> new_size = {}) override;
  std::optional<BatchSize> next(size_t batch_size) override;

  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  size_t size_, index_ = 0;
};

}  // namespace retrograd::inline v0::data::samplers
#pragma GCC visibility pop
