// Data sets and transforms: what a batch is made of, what map() does to it, and MNIST's files, also damaged ones.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "retrograd/data.h"
#include "tests/errors.h"
#include "tests/test_folder.h"

namespace rg = retrograd;
namespace data = retrograd::data;
namespace transforms = retrograd::data::transforms;
using data::datasets::MNIST;
using data::datasets::TensorDataset;
using rg::Category;
using rg::category_of;
using rg::Tensor;

namespace {

using Values = std::vector<double>;

// Example i: the numbers 10 i and 10 i + 1, labelled i.
struct Tens : data::datasets::Dataset<Tens> {
  data::Example<> get(size_t index) override {
    const auto i = static_cast<double>(index);
    return {rg::tensor({10 * i, 10 * i + 1}), rg::tensor(static_cast<int64_t>(index))};
  }
  std::optional<size_t> size() const override { return 5; }
};

// Gives its batches until the epoch is over.
struct TwoBatches : data::datasets::StatefulDataset<TwoBatches, std::vector<int>> {
  std::optional<std::vector<int>> get_batch(size_t count) override {
    if (next == 2) return std::nullopt;
    return std::vector<int>(count, next++);
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  void reset() override { next = 0; }
  int next = 0;
};

std::string error_text(const std::function<void()>& f) {
  try {
    f();
  } catch (const rg::FileError& e) {
    return e.what();
  }
  return "";
}

// A folder for the files of one test.
class Folder {
 public:
  explicit Folder(const std::string& name) : path_(rg::testing::in_test_folder(name)) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// The header of an IDX file: its type, and sizes below 256.
std::string header(char type, const std::string& sizes) {
  std::string bytes{0, 0, type, static_cast<char>(sizes.size())};
  for (char size : sizes) bytes += std::string{0, 0, 0, size};
  return bytes;
}

// Three images of 1 by 2 pixels.
void write_mnist(const Folder& folder, const std::string& prefix, const std::string& labels = {7, 0, 9}) {
  write(folder / (prefix + "-images-idx3-ubyte"),
        header(8, {3, 1, 2}) + std::string{0, 51, 102, -103, -52, -1});
  write(folder / (prefix + "-labels-idx1-ubyte"), header(8, {static_cast<char>(labels.size())}) + labels);
}

}  // namespace

TEST_CASE("a data set makes a batch of the examples asked for") {
  Tens tens;
  const auto batch = tens.get_batch({3, 0, 3});
  REQUIRE(batch.size() == 3);
  CHECK(batch[0].data.to_vector() == Values{30, 31});
  CHECK(batch[1].target.item<int64_t>() == 0);
  CHECK(batch[2].data.to_vector() == Values{30, 31});
  CHECK(tens.get_batch({}).empty());
}

TEST_CASE("Stack joins examples in a new first dim") {
  auto stacked = Tens().map(transforms::Stack<>());
  const data::Example<> batch = stacked.get_batch({1, 4});
  CHECK(batch.data.sizes() == rg::IntArray{2, 2});
  CHECK(batch.data.to_vector() == Values{10, 11, 40, 41});
  CHECK(batch.target.dtype() == rg::kInt64);
  CHECK(batch.target.to_vector() == Values{1, 4});
  CHECK(stacked.size() == 5u);
  CHECK(category_of([&] { stacked.get_batch({}); }) == Category::bad_argument);
}

TEST_CASE("transforms are applied in the order of map()") {
  using Batch = std::vector<data::Example<>>;
  Tens tens;
  auto mapped = tens.map(transforms::TensorLambda<>([](Tensor x) { return x + 1; }))
                    .map(transforms::Lambda<data::Example<>, Tensor>(
                        [](data::Example<> e) { return e.data * e.target; }))
                    .map(transforms::BatchLambda<rg::Tensors, double>([](rg::Tensors batch) {
                      double sum = 0;
                      for (const Tensor& x : batch) sum += x.sum().item<double>();
                      return sum;
                    }));
  CHECK(mapped.get_batch({1, 2}) == (11 + 12) * 1 + (21 + 22) * 2);
  CHECK(tens.map(transforms::Collate<data::Example<>>([](Batch batch) { return batch.back(); }))
            .get_batch({0, 2})
            .target.item<int64_t>() == 2);
  CHECK(data::datasets::map(tens, transforms::Stack<>()).get_batch({2}).target.to_vector() == Values{2});
}

TEST_CASE("Normalize takes a number for each channel or for all") {
  const Tensor image = rg::tensor(Values{1, 2, 3, 4}, {2, 1, 2});
  CHECK(transforms::Normalize<>(1, 2)(image).to_vector() == Values{0, 0.5, 1, 1.5});
  CHECK(transforms::Normalize<>({1, 3}, {1, 0.5})(image).to_vector() == Values{0, 1, 0, 2});
  CHECK(transforms::Normalize<>({1}, {2})(image).sizes() == image.sizes());
  CHECK(category_of([&] {
          transforms::Normalize<>({1, 2, 3}, {1, 1, 1})(image);
        }) == Category::shape_mismatch);
}

TEST_CASE("a data set of a tensor has the entries of its first dim") {
  TensorDataset entries(rg::arange(6, rg::TensorOptions{rg::kFloat32}).view({3, 2}));
  CHECK(entries.size() == 3u);
  const Tensor one = entries.get(1);
  CHECK(one.to_vector() == Values{2, 3});
  CHECK(category_of([&] { entries.get(3); }) == Category::index_out_of_range);
  const Tensor batch = entries.map(transforms::Stack<data::TensorExample>()).get_batch({2, 0});
  CHECK(batch.to_vector() == Values{4, 5, 0, 1});
  CHECK(TensorDataset(rg::Tensors{rg::ones({2}), rg::zeros({2})}).tensor.sizes() == rg::IntArray{2, 2});
  CHECK(category_of([] { TensorDataset(rg::tensor(1.0)).get(0); }) == Category::bad_dim);
}

TEST_CASE("a stateful data set ends an epoch, also through map()") {
  auto sums = TwoBatches().map(transforms::BatchLambda<std::vector<int>, size_t>(
      [](std::vector<int> batch) { return batch.size() + static_cast<size_t>(batch[0]); }));
  static_assert(decltype(sums)::is_stateful && !Tens::is_stateful);
  CHECK(sums.get_batch(3) == 3u);
  CHECK(sums.get_batch(3) == 4u);
  CHECK(sums.get_batch(3) == std::nullopt);
  sums.reset();
  CHECK(sums.get_batch(1) == 1u);
}

TEST_CASE("a shared data set is one object") {
  auto shared = data::datasets::make_shared_dataset<TwoBatches>();
  auto copy = shared;
  CHECK(copy.get_batch(1)->at(0) == 0);
  CHECK(shared.get_batch(1)->at(0) == 1);
  CHECK(copy->next == 2);
  copy.reset();
  CHECK((*shared).next == 0);
}

TEST_CASE("MNIST gives images from 0 to 1 and their labels") {
  const Folder folder("mnist");
  write_mnist(folder, "train");
  write_mnist(folder, "t10k", {1, 2, 3});
  MNIST training(folder.path());
  CHECK(training.is_train());
  CHECK(training.size() == 3u);
  CHECK(training.images().sizes() == rg::IntArray{3, 1, 1, 2});
  CHECK(training.get(1).data.to_vector<float>() == std::vector<float>{102.f / 255, 153.f / 255});
  CHECK(training.get(2).target.item<int64_t>() == 9);
  CHECK(category_of([&] { training.get(3); }) == Category::index_out_of_range);
  const MNIST test(folder.path(), MNIST::Mode::kTest);
  CHECK_FALSE(test.is_train());
  CHECK(test.targets().to_vector() == Values{1, 2, 3});
}

TEST_CASE("MNIST refuses files that are damaged or do not belong together") {
  const Folder folder("damaged");
  const std::string images = folder / "train-images-idx3-ubyte", labels = folder / "train-labels-idx1-ubyte";
  const auto text = [&] { return error_text([&] { MNIST(folder.path()); }); };
  CHECK(text().find(images + ": cannot open: ") == 0);
  write_mnist(folder, "train", {1, 2});
  CHECK(text() == labels + ": 2 labels for 3 images");
  write(labels, header(8, {3, 1}) + std::string(3, 1));
  CHECK(text() == labels + ": u8[3,1], not 1 dims of uint8");
  write(images, header(8, {3, 1, 2}) + std::string(5, 0));
  CHECK(text() == images + ": [3,1,2] elements of 1 bytes are 6 bytes, not 5");
}

TEST_CASE("an IDX file is read with its type") {
  const Folder folder("idx");
  const std::string path = folder / "file";
  const auto read = [&](const std::string& bytes) {
    write(path, bytes);
    return data::read_idx(path);
  };
  CHECK(read(header(0x0c, {2}) + std::string{0, 0, 1, 2, -1, -1, -1, -2}).to_vector() == Values{258, -2});
  CHECK(read(header(0x0d, {1}) + std::string{0x3f, -64, 0, 0}).to_vector() == Values{1.5});
  CHECK(read(header(0x0e, {1}) + std::string{-64, 4, 0, 0, 0, 0, 0, 0}).to_vector() == Values{-2.5});
  const Tensor none = read(header(8, {0, 4}));
  CHECK(none.sizes() == rg::IntArray{0, 4});
  CHECK(read(header(8, "") + "x").item<int64_t>() == 'x');
}

TEST_CASE("another file than an IDX file is named") {
  const Folder folder("not_idx");
  const std::string path = folder / "file";
  const auto text = [&](const std::string& bytes) {
    write(path, bytes);
    return error_text([&] { data::read_idx(path); });
  };
  CHECK(text("") == path + ": it ends within its header");
  CHECK(text(header(8, {3, 1}).substr(0, 10)) == path + ": it ends within its header");
  CHECK(text(std::string{0x1f, -117, 8, 0, 0, 0}) == path + ": it is compressed. Hint: gunzip it");
  CHECK(text("PNG file") == path + ": not an IDX file: it begins with 0x504e4720");
  CHECK(text(header(9, {1}) + "x") ==
        path + ": elements of the type 0x09; uint8, int32, float32 and float64 are read");
  CHECK(text(std::string{0, 0, 8, 0x7f}) == path + ": 127 dims, at most 8 are read");
  CHECK(text(std::string{0, 0, 14, 2} + std::string(8, -1)).find("are too many bytes, not 0") !=
        std::string::npos);
  CHECK(error_text([&] { data::read_idx(folder.path()); }) == folder.path() + ": it is not a regular file");
}
