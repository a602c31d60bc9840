// What all loaders have in common (data/loader.h): options, epochs, and batches of worker threads.
//
// A derived class says what is asked for next; the base hands requests to the workers, up to max_jobs ahead, or makes a
// batch itself. An epoch has a number, which its iterators know. It is exhausted when there are no more requests; it is
// over when all that was asked for was handed out.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "data/iterator.h"
#include "data/worker_exception.h"
#include "data/workers.h"

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

}  // namespace retrograd::inline v0::data
#pragma GCC visibility pop
