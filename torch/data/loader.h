// torch::data::make_data_loader, and its options with chained setters.
#pragma once

#include "data/loader.h"
#include "torch/arg.h"
#include "torch/data/samplers.h"

#pragma GCC visibility push(default)
namespace torch::data {

using retrograd::data::Iterator;
using retrograd::data::StatefulDataLoader;
using retrograd::data::StatelessDataLoader;
using retrograd::data::WorkerException;

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t batch_size) : batch_size_(batch_size) {}
  operator retrograd::data::DataLoaderOptions() const {
    return {batch_size_, workers_, max_jobs_, timeout_, enforce_ordering_, drop_last_};
  }

  TORCH_ARG(size_t, batch_size) = 1;
  TORCH_ARG(size_t, workers) = 0;
  TORCH_ARG(std::optional<size_t>, max_jobs);
  TORCH_ARG(std::optional<std::chrono::milliseconds>, timeout);
  TORCH_ARG(bool, enforce_ordering) = true;
  TORCH_ARG(bool, drop_last) = false;
};

/// The same with the number of jobs that follows from the others.
struct FullDataLoaderOptions {
  explicit FullDataLoaderOptions(DataLoaderOptions options)
      : batch_size(options.batch_size()),
        workers(options.workers()),
        max_jobs(options.max_jobs().value_or(2 * workers)),
        timeout(options.timeout()),
        enforce_ordering(options.enforce_ordering()),
        drop_last(options.drop_last()) {}

  size_t batch_size, workers, max_jobs;
  std::optional<std::chrono::milliseconds> timeout;
  bool enforce_ordering, drop_last;
};

/// With a sampler of the caller's.
template <class Dataset, class Sampler>
requires(!Dataset::is_stateful) std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(
    Dataset dataset, Sampler sampler, DataLoaderOptions options,
    retrograd::SourceLocation where = retrograd::SourceLocation::current()) {
  return retrograd::data::make_data_loader(std::move(dataset), std::move(sampler), options, where);
}

/// With a sampler that is made of the data set's size.
template <class Sampler = samplers::RandomSampler, class Dataset>
requires(!Dataset::is_stateful && std::is_constructible_v<Sampler, size_t>)
    std::unique_ptr<StatelessDataLoader<Dataset, Sampler>> make_data_loader(
        Dataset dataset, DataLoaderOptions options = {},
        retrograd::SourceLocation where = retrograd::SourceLocation::current()) {
  return retrograd::data::make_data_loader<Sampler>(std::move(dataset), options, where);
}

/// For a stateful data set.
template <class Dataset>
requires(Dataset::is_stateful) std::unique_ptr<StatefulDataLoader<Dataset>> make_data_loader(
    Dataset dataset, DataLoaderOptions options = {},
    retrograd::SourceLocation where = retrograd::SourceLocation::current()) {
  return retrograd::data::make_data_loader(std::move(dataset), options, where);
}

}  // namespace torch::data
#pragma GCC visibility pop
