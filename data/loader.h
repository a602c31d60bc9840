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
// Limits: one thread at a time uses a loader. A stateful data set has no position to save.
#pragma once

#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "data/dataset.h"
#include "data/iterator.h"
#include "data/sampler_state.h"
#include "data/samplers.h"
#include "data/worker_exception.h"
#include "data/workers.h"
#include "io/training_state.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::data {

struct DataLoaderOptions {
  size_t batch_size = 1;
  size_t workers = 0;                                     // threads; 0: the caller's
  std::optional<size_t> max_jobs = {};                    // batches made ahead; 2 * workers unless given
  std::optional<std::chrono::milliseconds> timeout = {};  // of the wait for a batch of a worker
  bool enforce_ordering = true;
  bool drop_last = false;  // leaves out a last batch that is smaller
};

namespace detail {
/// The options with max_jobs. Error(bad_argument) for batches of nothing, or workers with no jobs.
DataLoaderOptions completed(DataLoaderOptions options, SourceLocation where);
}  // namespace detail

/// What loaders have in common. `Batch` is what a loop over it gives, `Dataset` what makes it.
template <class Dataset, class Batch, class BatchRequest>
class DataLoaderBase {
 public:
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;

  explicit DataLoaderBase(DataLoaderOptions options) : options_(options) {}
  DataLoaderBase(const DataLoaderBase&) = delete;
  DataLoaderBase& operator=(const DataLoaderBase&) = delete;
  virtual ~DataLoaderBase() = default;

  /// The first batch of a new epoch.
  Iterator<Batch> begin() {
    workers_.drop();
    is_exhausted_ = false;
    ++epoch_;
    reset();
    refill();
    return Iterator<Batch>([this, epoch = epoch_] { return next(epoch); });
  }
  Iterator<Batch> end() const { return {}; }

  /// Ends the workers. After it there are no more epochs.
  void join() {
    workers_.drop();
    workers_.stop();
    is_joined_ = true;
  }
  const DataLoaderOptions& options() const { return options_; }

 protected:
  /// Begins an epoch, or goes on with one that was loaded.
  virtual void reset() = 0;
  /// What to ask for next; nothing at the end of the epoch.
  virtual std::optional<BatchRequest> get_batch_request() = 0;
  /// Called when a batch is handed out, or has failed; at the end of an epoch is_last.
  virtual void batch_done(bool is_last) = 0;

  /// Forgets the epoch that is in progress.
  void abandon_epoch() {
    workers_.drop();
    is_exhausted_ = true;
    ++epoch_;
  }

  const DataLoaderOptions options_;
  std::unique_ptr<Dataset> dataset_;  // of this thread, or shared by the workers
  detail::Workers<BatchRequest, typename Dataset::BatchType> workers_;  // ends first

 private:
  std::optional<Batch> next(uint64_t epoch) {
    if (epoch != epoch_)
      fail(Category::bad_argument, "data loader",
           "its iterator is of an epoch that was left for another one");
    std::optional<Batch> batch = options_.workers > 0 ? next_of_workers() : next_here();
    if (!batch) batch_done(/*is_last=*/true);
    return batch;
  }

  std::optional<Batch> next_here() {
    std::optional<BatchRequest> request;
    if (!is_exhausted_) request = get_batch_request();
    if (!request) return std::nullopt;
    batch_done(/*is_last=*/false);
    return dataset_->get_batch(*std::move(request));
  }

  std::optional<Batch> next_of_workers() {
    refill();  // also when the last batch has failed
    while (workers_.pending() > 0) {
      auto outcome = workers_.take(options_.enforce_ordering, options_.timeout);
      batch_done(/*is_last=*/false);
      if (outcome.error) throw WorkerException(outcome.error);
      std::optional<Batch> batch = *std::move(outcome.result);
      if (batch) {
        refill();
        return batch;
      }
      is_exhausted_ = true;  // says a stateful data set
    }
    return std::nullopt;
  }

  void refill() {
    if (is_joined_) fail(Category::bad_argument, "data loader", "its workers were joined");
    while (options_.workers > 0 && !is_exhausted_ && workers_.pending() < *options_.max_jobs) {
      if (std::optional<BatchRequest> request = get_batch_request())
        workers_.submit(*std::move(request));
      else
        is_exhausted_ = true;
    }
  }

  uint64_t epoch_ = 0;
  bool is_exhausted_ = false;  // the epoch has no more requests
  bool is_joined_ = false;
};

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
