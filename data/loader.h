// Loaders: batches of a data set, epoch after epoch, if wanted by worker threads ahead of their use.
//
//   auto loader = data::make_data_loader(std::move(dataset), {.batch_size = 64, .workers = 2});
//   for (int64_t epoch = 0; epoch < epochs; ++epoch)
//     for (auto& batch : *loader) ...
//
// begin() starts an epoch: it resets the sampler and has up to max_jobs batches made ahead. Iterators of an earlier
// epoch are then of no use, and say so. Without workers a batch is made when it is asked for, on the caller's thread.
// The sampler is used on the caller's thread only; each worker has a copy of the data set, unless it is stateful
// (data/dataset.h). Batches come in the sampler's order, whoever makes them, unless enforce_ordering is false.
// An exception of a data set reaches the caller: without workers as it is, else within a WorkerException. The loop can
// go on behind the batch that failed.
// state_dict() is the position of what was handed out, not of what was made ahead: the sampler at the start of the
// epoch, and the number of batches since. After load_state_dict() the next begin() goes on with that epoch; then the
// rest is bit for bit what it would have been. TrainingState (io/training_state.h) takes a loader as a part.
// Limits: one thread at a time uses a loader, which outlives its iterators. A stateful data set has no position to
// save. What is saved after a loop was left by break is a place within its epoch, with which a loaded program goes on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "data/dataset.h"
#include "data/loader_base.h"
#include "data/sampler_state.h"
#include "data/samplers.h"
#include "io/training_state.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data {

/// Asks a sampler, and a data set for what it says.
template <class Dataset, class Sampler>
class StatelessDataLoader final
    : public DataLoaderBase<Dataset, typename Dataset::BatchType, typename Sampler::BatchRequestType> {
  using Base = DataLoaderBase<Dataset, typename Dataset::BatchType, typename Sampler::BatchRequestType>;

 public:
  using typename Base::BatchRequestType;

  StatelessDataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options,
                      SourceLocation where = SourceLocation::current())
      : Base(detail::completed(options, where)), sampler_(std::move(sampler)) {
    for (size_t i = 0; i < options.workers; ++i)
      this->workers_.start(
          [dataset](BatchRequestType request) mutable { return dataset.get_batch(std::move(request)); });
    if (options.workers == 0) this->dataset_ = std::make_unique<Dataset>(std::move(dataset));
  }

  /// Keys: those of the sampler behind "sampler.", and "batches", the number of batches that were handed out in the
  /// epoch in progress, or -1. Error(unsupported) within an epoch whose workers give batches in any order.
  StateDict state_dict() const requires HasState<Sampler> {
    const bool is_within = batches_ >= 0;
    if (is_within && this->options_.workers > 0 && !this->options_.enforce_ordering)
      fail(Category::unsupported, "DataLoader::state_dict",
           "which batches were handed out is not known. Hint: enforce_ordering, or save between epochs");
    StateDict state{{"batches", detail::state_number(batches_)}};
    for (const auto& [key, tensor] : is_within ? epoch_start_ : sampler_.state_dict())
      state.emplace(std::string(kPrefix) + key, tensor);
    return state;
  }

  /// All or nothing. Errors: bad_argument for a state that is not of this sampler, or has more batches than an epoch;
  /// those of the sampler.
  void load_state_dict(const StateDict& state) requires HasState<Sampler> {
    constexpr std::string_view kName = "DataLoader::load_state_dict";
    const int64_t batches = detail::number_of(state, "batches", kName);
    if (batches < -1) fail(Category::bad_argument, kName, "the number of batches is negative");
    Sampler loaded = sampler_;
    loaded.load_state_dict(detail::without_prefix(state, kPrefix));
    StateDict epoch_start = loaded.state_dict();
    for (int64_t i = 0; i < batches; ++i)
      if (!request_of(loaded)) fail(Category::bad_argument, kName, "an epoch has fewer batches");
    this->abandon_epoch();
    sampler_ = std::move(loaded);
    epoch_start_.swap(epoch_start);
    batches_ = batches;
    is_resumed_ = batches >= 0;
  }

 private:
  static constexpr std::string_view kPrefix = "sampler.";

  std::optional<BatchRequestType> request_of(Sampler& sampler) const {
    const size_t wanted = this->options_.batch_size;
    auto request = sampler.next(wanted);
    if (request && this->options_.drop_last && request->size() < wanted) request.reset();
    return request;
  }

  void reset() override {
    if (std::exchange(is_resumed_, false)) return;
    sampler_.reset(std::nullopt);
    if constexpr (HasState<Sampler>) epoch_start_ = sampler_.state_dict();
    batches_ = 0;
  }
  std::optional<BatchRequestType> get_batch_request() override { return request_of(sampler_); }
  void batch_done(bool is_last) override { batches_ = is_last ? -1 : batches_ + 1; }

  Sampler sampler_;
  StateDict epoch_start_;    // the sampler at the start of the epoch
  int64_t batches_ = -1;     // handed out since then; -1 between epochs
  bool is_resumed_ = false;  // the next epoch is one that was loaded
};

/// Asks a stateful data set, which all workers share, for the next batches.
template <class Dataset>
class StatefulDataLoader final : public DataLoaderBase<Dataset, typename Dataset::BatchType::value_type,
                                                       typename Dataset::BatchRequestType> {
  using Base =
      DataLoaderBase<Dataset, typename Dataset::BatchType::value_type, typename Dataset::BatchRequestType>;

 public:
  using typename Base::BatchRequestType;

  explicit StatefulDataLoader(Dataset dataset, DataLoaderOptions options,
                              SourceLocation where = SourceLocation::current())
      : Base(detail::completed(options, where)) {
    this->dataset_ = std::make_unique<Dataset>(std::move(dataset));
    for (size_t i = 0; i < options.workers; ++i)
      this->workers_.start(
          [this](BatchRequestType request) { return this->dataset_->get_batch(std::move(request)); });
  }

 private:
  void reset() override { this->dataset_->reset(); }
  std::optional<BatchRequestType> get_batch_request() override { return this->options_.batch_size; }
  void batch_done(bool) override {}
};

/// A loader with a sampler of the caller's.
template <class Dataset, class Sampler>
requires(!Dataset::is_stateful) std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(
    Dataset dataset, Sampler sampler, DataLoaderOptions options,
    SourceLocation where = SourceLocation::current()) {
  return std::make_unique<StatelessDataLoader<Dataset, Sampler>>(std::move(dataset), std::move(sampler),
                                                                 options, where);
}

/// A loader with a sampler made of the data set's size. Error(bad_argument) when that is not known.
template <class Sampler = samplers::RandomSampler, class Dataset>
requires(!Dataset::is_stateful && std::is_constructible_v<Sampler, size_t>)
    std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(
        Dataset dataset, DataLoaderOptions options = {}, SourceLocation where = SourceLocation::current()) {
  const std::optional<size_t> size = dataset.size();
  if (!size)
    fail(Category::bad_argument, "make_data_loader",
         "the data set does not know its size. Hint: give a sampler", where);
  return make_data_loader(std::move(dataset), Sampler(*size), options, where);
}

/// A loader of a stateful data set.
template <class Dataset>
requires(Dataset::is_stateful) std::unique_ptr<StatefulDataLoader<Dataset>> make_data_loader(
    Dataset dataset, DataLoaderOptions options = {}, SourceLocation where = SourceLocation::current()) {
  return std::make_unique<StatefulDataLoader<Dataset>>(std::move(dataset), options, where);
}

}  // namespace retrograd::inline v0::data
#pragma GCC visibility pop
