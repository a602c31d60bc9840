// torch::data as programs for libtorch spell it: options, bases with requests of their own type, samplers in archives.
// What data sets, samplers and loaders do is tested in tests/data.
#include <catch2/catch.hpp>

#include <sstream>

#include "retrograd/torch.h"
#include "tests/errors.h"

namespace data = torch::data;
using data::samplers::DistributedRandomSampler;
using data::samplers::RandomSampler;
using data::samplers::SequentialSampler;

namespace {

using Indices = std::vector<size_t>;

// A data set that makes its batches itself.
struct Rows : data::datasets::BatchDataset<Rows, torch::Tensor> {
  torch::Tensor get_batch(torch::ArrayRef<size_t> request) override {
    std::vector<int64_t> rows(request.begin(), request.end());
    return torch::tensor(rows);
  }
  torch::optional<size_t> size() const override { return 5; }
};

struct Letters : data::datasets::Dataset<Letters, char> {
  char get(size_t index) override { return static_cast<char>('a' + index); }
  std::vector<char> get_batch(c10::ArrayRef<size_t> indices) override {
    auto batch = data::datasets::Dataset<Letters, char>::get_batch(indices);
    batch.push_back('.');
    return batch;
  }
  torch::optional<size_t> size() const override { return 3; }
};

struct Countdown : data::datasets::StatefulDataset<Countdown, int> {
  torch::optional<int> get_batch(size_t) override {
    return left > 0 ? torch::optional<int>(--left) : torch::nullopt;
  }
  torch::optional<size_t> size() const override { return torch::nullopt; }
  void reset() override { left = 3; }
  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("left", torch::tensor(int64_t{left}));
  }
  void load(torch::serialize::InputArchive& archive) override {
    torch::Tensor number;
    archive.read("left", number);
    left = number.item<int>();
  }
  int left = 0;
};

// Every second index.
struct Even : data::samplers::Sampler<> {
  void reset(torch::optional<size_t> = torch::nullopt) override { next_index = 0; }
  torch::optional<Indices> next(size_t) override {
    if (next_index >= 5) return torch::nullopt;
    const size_t index = next_index;
    next_index += 2;
    return Indices{index};
  }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}
  size_t next_index = 0;
};

// Through an archive.
template <class T>
void carry(const T& from, T& to) {
  torch::serialize::OutputArchive out;
  from.save(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  to.load(in);
}

}  // namespace

TEST_CASE("options are chained, or the size of a batch") {
  auto options =
      data::DataLoaderOptions(8).workers(2).max_jobs(5).enforce_ordering(false).drop_last(true).timeout(
          std::chrono::milliseconds(100));
  CHECK(options.batch_size() == 8);
  auto loader = data::make_data_loader(Rows(), options);
  CHECK(loader->options().workers == 2);
  CHECK(loader->options().max_jobs == 5u);
  CHECK_FALSE(loader->options().enforce_ordering);
  CHECK(loader->options().drop_last);
  CHECK(loader->options().timeout == std::chrono::milliseconds(100));
  const data::FullDataLoaderOptions full(options), rest(data::DataLoaderOptions(3).workers(2));
  CHECK(full.max_jobs == 5);
  CHECK(full.timeout == std::chrono::milliseconds(100));
  CHECK(rest.batch_size == 3);
  CHECK(rest.max_jobs == 4);
  CHECK(rest.enforce_ordering);
  CHECK_FALSE(rest.drop_last);
  CHECK(data::make_data_loader(Rows(), 3)->options().batch_size == 3);
  CHECK(data::make_data_loader(Rows())->options().batch_size == 1);
}

TEST_CASE("a data set of one's own gets an ArrayRef") {
  std::vector<double> seen;
  auto rows = data::make_data_loader<SequentialSampler>(Rows(), 2);
  for (torch::Tensor& batch : *rows)
    for (double row : batch.to_vector()) seen.push_back(row);
  CHECK(seen == std::vector<double>{0, 1, 2, 3, 4});
  CHECK(Rows().get_batch({3, 1}).to_vector() == std::vector<double>{3, 1});
  std::string text;
  auto letters = data::make_data_loader<SequentialSampler>(Letters(), 2);
  for (const auto& batch : *letters) text.append(batch.begin(), batch.end());
  CHECK(text == "ab.c.");
}

TEST_CASE("a sampler of one's own") {
  std::string text;
  auto letters = data::make_data_loader(Letters(), SequentialSampler(2), 1);
  for (const auto& batch : *letters) text += batch[0];
  CHECK(text == "ab");
  std::vector<int64_t> seen;
  auto even = data::make_data_loader(Rows(), Even(), data::DataLoaderOptions().workers(1));
  for (auto& batch : *even) seen.push_back(batch.item<int64_t>());
  CHECK(seen == std::vector<int64_t>{0, 2, 4});
}

TEST_CASE("a stateful data set") {
  auto loader = data::make_data_loader(Countdown(), data::DataLoaderOptions());
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int> seen;
    for (int number : *loader) seen.push_back(number);
    CHECK(seen == std::vector<int>{2, 1, 0});
  }
  Countdown from, to;
  from.left = 7;
  carry(from, to);
  CHECK(to.left == 7);
}

TEST_CASE("samplers are carried by archives") {
  RandomSampler from(10), to(10);
  from.next(4);
  carry(from, to);
  CHECK(to.index() == 4);
  CHECK(to.next(6) == from.next(6));

  DistributedRandomSampler third(10, 2, 1), other(10, 2, 1);
  third.set_epoch(3);
  third.reset();
  third.next(2);
  torch::serialize::OutputArchive out;
  out << third;
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  in >> other;
  CHECK(other.epoch() == 3);
  CHECK(other.next(3) == third.next(3));
}

namespace torch::data::datasets {
// Programs also define their data sets in the library's namespace.
struct Ones : Dataset<Ones> {
  Example<> get(size_t) override { return {torch::ones({2}), torch::tensor(1)}; }
  torch::optional<size_t> size() const override { return 2; }
};
}  // namespace torch::data::datasets

TEST_CASE("a data set in the library's namespace") {
  auto ones = data::datasets::Ones().map(data::transforms::Stack<>());
  CHECK(ones.get_batch({0, 1}).data.sizes() == torch::IntArrayRef{2, 2});
}
