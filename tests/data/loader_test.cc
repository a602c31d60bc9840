// Loaders: batches and epochs, with and without worker threads, errors of workers, loops that are left, and states from
// which an epoch goes on with the same batches.
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <future>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "retrograd/data.h"
#include "tests/errors.h"
#include "tests/test_folder.h"

namespace rg = retrograd;
namespace data = retrograd::data;
using data::DataLoaderOptions;
using data::make_data_loader;
using data::samplers::RandomSampler;
using data::samplers::SequentialSampler;
using rg::Category;
using rg::category_of;

namespace {

using Batch = std::vector<size_t>;
using Batches = std::vector<Batch>;

// Example i is i.
struct Numbers : data::datasets::Dataset<Numbers, size_t> {
  explicit Numbers(size_t count) : count(count) {}
  size_t get(size_t index) override { return index; }
  std::optional<size_t> size() const override { return count; }
  size_t count;
};

// The same, but the example `bad` throws.
template <class E>
struct Failing : data::datasets::Dataset<Failing<E>, size_t> {
  explicit Failing(size_t count, size_t bad) : count(count), bad(bad) {}
  size_t get(size_t index) override {
    if (index == bad) throw E("number " + std::to_string(index));
    return index;
  }
  std::optional<size_t> size() const override { return count; }
  size_t count, bad;
};

// Counts the objects and calls of one test.
struct Counts {
  std::atomic<int> alive = 0, calls = 0;
};

struct Counted : data::datasets::Dataset<Counted, std::thread::id> {
  explicit Counted(Counts& counts) : counts(&counts) { ++counts.alive; }
  Counted(const Counted& other) : counts(other.counts) { ++counts->alive; }
  ~Counted() override { --counts->alive; }
  std::thread::id get(size_t) override {
    ++counts->calls;
    return std::this_thread::get_id();
  }
  std::optional<size_t> size() const override { return 100; }
  Counts* counts;
};

// A stream of batches that several workers take from: each has the next numbers.
struct Counter : data::datasets::StatefulDataset<Counter, Batch> {
  std::optional<Batch> get_batch(size_t count) override {
    const size_t first = state->next.fetch_add(count);
    if (first >= 10) return std::nullopt;
    Batch batch(std::min(count, 10 - first));
    std::iota(batch.begin(), batch.end(), first);
    return batch;
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  void reset() override { state->next = 0; }
  struct State {
    std::atomic<size_t> next = 0;
  };
  std::shared_ptr<State> state = std::make_shared<State>();
};

template <class Loader>
Batches epoch_of(Loader& loader) {
  Batches batches;
  for (auto& batch : loader) batches.push_back(batch);
  return batches;
}

Batch joined(const Batches& batches) {
  Batch all;
  for (const Batch& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

const DataLoaderOptions kPlain{.batch_size = 4}, kWorkers{.batch_size = 4, .workers = 3};

}  // namespace

TEST_CASE("an epoch has all examples in order, and the next one again") {
  for (const DataLoaderOptions& options : {kPlain, kWorkers}) {
    auto loader = make_data_loader<SequentialSampler>(Numbers(10), options);
    const Batches expected{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}};
    CHECK(epoch_of(*loader) == expected);
    CHECK(epoch_of(*loader) == expected);
  }
}

TEST_CASE("drop_last leaves out a smaller batch") {
  for (DataLoaderOptions options : {kPlain, kWorkers}) {
    options.drop_last = true;
    CHECK(epoch_of(*make_data_loader<SequentialSampler>(Numbers(10), options)).size() == 2);
    CHECK(epoch_of(*make_data_loader<SequentialSampler>(Numbers(8), options)).size() == 2);
    CHECK(epoch_of(*make_data_loader<SequentialSampler>(Numbers(3), options)).empty());
    CHECK(epoch_of(*make_data_loader<SequentialSampler>(Numbers(0), options)).empty());
  }
}

TEST_CASE("shuffled epochs are those of the seed, however many workers there are") {
  std::vector<Batches> runs;
  for (const DataLoaderOptions& options : {kPlain, kWorkers}) {
    rg::manual_seed(11);
    auto loader = make_data_loader(Numbers(10), options);
    runs.push_back(epoch_of(*loader));
    runs.push_back(epoch_of(*loader));
  }
  CHECK(runs[0] == runs[2]);
  CHECK(runs[1] == runs[3]);
  CHECK(runs[0] != runs[1]);
  Batch all = joined(runs[1]);
  std::sort(all.begin(), all.end());
  CHECK(all == Batch{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("without an order, all batches come") {
  DataLoaderOptions options = kWorkers;
  options.enforce_ordering = false;
  auto loader = make_data_loader<SequentialSampler>(Numbers(30), options);
  for (int epoch = 0; epoch < 2; ++epoch) {
    Batch all = joined(epoch_of(*loader));
    std::sort(all.begin(), all.end());
    CHECK(all.size() == 30);
    CHECK(std::set<size_t>(all.begin(), all.end()).size() == 30);
  }
}

TEST_CASE("an iterator is at one place, and at the end where the loop stops") {
  auto loader = make_data_loader<SequentialSampler>(Numbers(3), {.batch_size = 2});
  auto it = loader->begin();
  const auto copy = it;
  CHECK(it == copy);
  CHECK(it != loader->end());
  CHECK(*it == Batch{0, 1});
  CHECK(it->size() == 2);
  ++it;
  CHECK(*copy == Batch{2});
  ++it;
  CHECK(it == loader->end());
  CHECK(category_of([&] { *it; }) == Category::bad_argument);
  CHECK(category_of([&] { ++it; }) == Category::bad_argument);
  std::vector<Batch> copied;
  std::copy(loader->begin(), loader->end(), std::back_inserter(copied));
  CHECK(copied.size() == 2);
}

TEST_CASE("an epoch that is left makes way for the next one") {
  for (const DataLoaderOptions& options : {kPlain, kWorkers}) {
    auto loader = make_data_loader<SequentialSampler>(Numbers(100), options);
    auto left = loader->begin();
    CHECK(*left == Batch{0, 1, 2, 3});
    CHECK(epoch_of(*loader).size() == 25);
    std::string text;
    CHECK(category_of([&] { ++left; }, &text) == Category::bad_argument);
    CHECK(text.find("an epoch that was left") != std::string::npos);
  }
}

TEST_CASE("batches are made ahead, but no more than max_jobs") {
  Counts counts;
  auto loader =
      make_data_loader<SequentialSampler>(Counted(counts), {.batch_size = 1, .workers = 2, .max_jobs = 3});
  auto it = loader->begin();
  while (counts.calls < 3) std::this_thread::yield();
  CHECK(counts.calls == 3);
  (void)*it;
  while (counts.calls < 4) std::this_thread::yield();
  CHECK(counts.calls == 4);
}

TEST_CASE("workers have copies of the data set, which are gone with the loader") {
  Counts counts;
  {
    auto loader = make_data_loader<SequentialSampler>(Counted(counts), {.batch_size = 5, .workers = 3});
    CHECK(counts.alive == 3);
    for (const auto& batch : *loader) {
      CHECK(std::count(batch.begin(), batch.end(), std::this_thread::get_id()) == 0);
      break;  // with other batches under way
    }
  }
  CHECK(counts.alive == 0);
  CHECK(counts.calls < 100);
  auto loader = make_data_loader<SequentialSampler>(Counted(counts));
  CHECK(counts.alive == 1);
  CHECK(loader->begin()->at(0) == std::this_thread::get_id());
}

TEST_CASE("a loader is destroyed while its workers wait, or have not begun") {
  make_data_loader(Numbers(5), kWorkers);
  auto loader = make_data_loader(Numbers(50), kWorkers);
  loader->begin();
  loader.reset();
  auto joined_loader = make_data_loader(Numbers(50), kWorkers);
  joined_loader->begin();
  joined_loader->join();
  joined_loader->join();
  CHECK(category_of([&] { joined_loader->begin(); }) == Category::bad_argument);
}

TEST_CASE("an exception of a worker arrives with its type, and the epoch goes on") {
  auto loader = make_data_loader<SequentialSampler>(Failing<std::out_of_range>(20, 6), kWorkers);
  auto it = loader->begin();
  CHECK(*it == Batch{0, 1, 2, 3});
  try {
    ++it;
    FAIL("nothing was thrown");
  } catch (const data::WorkerException& e) {
    CHECK(std::string(e.what()).find("number 6") != std::string::npos);
    CHECK_THROWS_AS(std::rethrow_exception(e.original_exception), std::out_of_range);
  }
  ++it;
  CHECK(*it == Batch{8, 9, 10, 11});
  size_t batches = 1;
  while (++it != loader->end()) ++batches;
  CHECK(batches == 3);
}

TEST_CASE("each batch may fail") {
  auto loader = make_data_loader<SequentialSampler>(Failing<std::runtime_error>(3, 0),
                                                    {.batch_size = 1, .workers = 1, .max_jobs = 1});
  auto it = loader->begin();
  CHECK_THROWS_AS(it == loader->end(), data::WorkerException);
  CHECK(*it == Batch{1});
  // A new epoch forgets the error of the last one.
  CHECK_THROWS_AS(*loader->begin(), data::WorkerException);
}

TEST_CASE("without workers an exception arrives as it is") {
  auto loader = make_data_loader<SequentialSampler>(Failing<std::out_of_range>(8, 5), kPlain);
  auto it = loader->begin();
  CHECK(*it == Batch{0, 1, 2, 3});
  CHECK_THROWS_AS(++it, std::out_of_range);
}

TEST_CASE("an exception of any type is carried") {
  struct Throws : data::datasets::Dataset<Throws, int> {
    int get(size_t) override { throw 7; }
    std::optional<size_t> size() const override { return 1; }
  };
  auto loader = make_data_loader(Throws(), {.workers = 1});
  try {
    *loader->begin();
    FAIL("nothing was thrown");
  } catch (const data::WorkerException& e) {
    CHECK_THROWS_AS(std::rethrow_exception(e.original_exception), int);
  }
}

TEST_CASE("a wait has an end, and the batch can still be had") {
  std::promise<void> gate;
  struct Slow : data::datasets::Dataset<Slow, size_t> {
    explicit Slow(std::shared_future<void> gate) : gate(std::move(gate)) {}
    size_t get(size_t index) override {
      gate.wait();
      return index;
    }
    std::optional<size_t> size() const override { return 2; }
    std::shared_future<void> gate;
  };
  auto loader = make_data_loader<SequentialSampler>(Slow(gate.get_future()),
                                                    {.workers = 1, .timeout = std::chrono::milliseconds(5)});
  auto it = loader->begin();
  CHECK_THROWS_AS(*it, rg::RuntimeError);
  gate.set_value();
  for (bool is_here = false; !is_here;) try {
      CHECK(*it == Batch{0});
      is_here = true;
    } catch (const rg::RuntimeError&) {
    }
}

TEST_CASE("a stateful data set ends its epoch itself") {
  for (size_t workers : {0, 1, 3}) {
    auto loader = make_data_loader(Counter(), {.batch_size = 4, .workers = workers});
    for (int epoch = 0; epoch < 2; ++epoch) {
      Batch all = joined(epoch_of(*loader));
      std::sort(all.begin(), all.end());
      CHECK(all == Batch{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    }
  }
}

TEST_CASE("options that make no sense are refused") {
  CHECK(category_of([] { make_data_loader(Numbers(3), {.batch_size = 0}); }) == Category::bad_argument);
  CHECK(category_of([] { make_data_loader(Numbers(3), {.workers = 1, .max_jobs = 0}); }) ==
        Category::bad_argument);
  struct Unsized : data::datasets::Dataset<Unsized, size_t> {
    size_t get(size_t index) override { return index; }
    std::optional<size_t> size() const override { return std::nullopt; }
  };
  CHECK(category_of([] { make_data_loader(Unsized()); }) == Category::bad_argument);
  auto loader = make_data_loader(Unsized(), SequentialSampler(3), {.batch_size = 2, .workers = 2});
  CHECK(epoch_of(*loader) == Batches{{0, 1}, {2}});
  CHECK(loader->options().max_jobs == 4u);
}

TEST_CASE("workers compute with tensors at the same time") {
  using Example = data::Example<>;
  const rg::Tensor rows = rg::arange(64.0).view({16, 4});
  struct Rows : data::datasets::Dataset<Rows> {
    explicit Rows(rg::Tensor rows) : rows(std::move(rows)) {}
    Example get(size_t index) override {
      const auto i = static_cast<int64_t>(index);
      return {rows[i].mul(2).add(1), rg::tensor(i)};
    }
    std::optional<size_t> size() const override { return 16; }
    rg::Tensor rows;
  };
  auto loader = make_data_loader<SequentialSampler>(Rows(rows).map(data::transforms::Stack<>()), kWorkers);
  rg::Tensors batches;
  for (Example& batch : *loader) batches.push_back(batch.data);
  CHECK(rg::cat(batches).to_vector() == (rows * 2 + 1).to_vector());
}

// The rest of a training of three epochs, from a state that was saved after `seen` batches.
static Batches batches_after(size_t seen, const DataLoaderOptions& before, const DataLoaderOptions& after) {
  const std::string path = rg::testing::in_test_folder("loader.safetensors");
  rg::manual_seed(5);
  auto loader = make_data_loader(Numbers(10), before);
  int64_t epoch = 0;
  rg::TrainingState state;
  state.add("loader", *loader).add("generator", rg::default_generator()).add("epoch", epoch);
  size_t count = 0;
  if (seen == 0) state.save(path);
  for (; epoch < 3 && count < seen; ++epoch)
    for ([[maybe_unused]] auto& batch : *loader)
      if (++count == seen) {
        state.save(path);
        break;
      }

  rg::manual_seed(77);
  auto resumed = make_data_loader(Numbers(10), after);
  epoch_of(*resumed);
  int64_t resumed_epoch = 0;
  rg::TrainingState loaded;
  loaded.add("loader", *resumed)
      .add("generator", rg::default_generator())
      .add("epoch", resumed_epoch)
      .load(path);
  Batches rest;
  for (; resumed_epoch < 3; ++resumed_epoch)
    for (auto& batch : *resumed) rest.push_back(batch);
  return rest;
}

TEST_CASE("a training goes on with the same batches from every place of every epoch") {
  const Batches all = batches_after(0, kPlain, kPlain);
  REQUIRE(all.size() == 9);
  for (size_t seen = 1; seen < all.size(); ++seen) {
    INFO(seen << " batches");
    const Batches rest(all.begin() + static_cast<std::ptrdiff_t>(seen), all.end());
    CHECK(batches_after(seen, kPlain, kPlain) == rest);
    CHECK(batches_after(seen, kWorkers, kPlain) == rest);
    CHECK(batches_after(seen, kPlain, kWorkers) == rest);
    CHECK(batches_after(seen, kWorkers, kWorkers) == rest);
  }
}

TEST_CASE("between two epochs the next one begins") {
  rg::manual_seed(2);
  auto loader = make_data_loader(Numbers(6), kPlain);
  epoch_of(*loader);
  const rg::StateDict state = loader->state_dict();
  const rg::GeneratorState place = rg::default_generator().state();
  const Batches next = epoch_of(*loader);
  loader->load_state_dict(state);
  rg::default_generator().set_state(place);
  CHECK(epoch_of(*loader) == next);
}

TEST_CASE("a state that does not fit changes nothing") {
  auto loader = make_data_loader<SequentialSampler>(Numbers(10), kPlain);
  auto it = loader->begin();
  CHECK(*it == Batch{0, 1, 2, 3});
  rg::StateDict state = loader->state_dict();
  CHECK(category_of([&] { loader->load_state_dict({}); }) == Category::bad_argument);
  state["batches"] = rg::tensor(int64_t{9});
  CHECK(category_of([&] { loader->load_state_dict(state); }) == Category::bad_argument);
  state["batches"] = rg::tensor(int64_t{-2});
  CHECK(category_of([&] { loader->load_state_dict(state); }) == Category::bad_argument);
  CHECK(category_of([&] {
          make_data_loader<SequentialSampler>(Numbers(9), kPlain)->load_state_dict(loader->state_dict());
        }) == Category::bad_argument);
  ++it;
  CHECK(*it == Batch{4, 5, 6, 7});
  // One that fits ends what was in progress.
  loader->load_state_dict(loader->state_dict());
  CHECK(category_of([&] { ++it; }) == Category::bad_argument);
  CHECK(epoch_of(*loader) == Batches{{8, 9}});
}

TEST_CASE("batches in any order have no position within an epoch") {
  DataLoaderOptions options = kWorkers;
  options.enforce_ordering = false;
  auto loader = make_data_loader<SequentialSampler>(Numbers(10), options);
  loader->state_dict();
  auto it = loader->begin();
  CHECK(category_of([&] { loader->state_dict(); }) == Category::unsupported);
  while (it != loader->end()) ++it;
  loader->load_state_dict(loader->state_dict());
  CHECK(epoch_of(*loader).size() == 3);
}

TEST_CASE("a sampler without a state serves a loader that cannot be saved") {
  struct Backwards : data::samplers::Sampler<> {
    void reset(std::optional<size_t>) override { next_index = 3; }
    std::optional<std::vector<size_t>> next(size_t) override {
      if (next_index == 0) return std::nullopt;
      return std::vector<size_t>{--next_index};
    }
    size_t next_index = 3;
  };
  auto loader = make_data_loader(Numbers(3), Backwards(), {});
  CHECK(joined(epoch_of(*loader)) == Batch{2, 1, 0});
  static_assert(!rg::HasState<std::remove_reference_t<decltype(*loader)>>);
}
