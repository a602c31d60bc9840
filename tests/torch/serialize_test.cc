// torch::save and torch::load, and archives, to files, streams and functions.
#include <retrograd/torch.h>
#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

#include "tests/errors.h"
#include "tests/test_folder.h"

namespace libtorch {
namespace {

using Values = std::vector<double>;

struct Net : retrograd::nn::Module {
  retrograd::nn::Linear fc{this, "fc", 2, 1};
};

TEST_CASE("tensors and lists of tensors") {
  const std::string path = retrograd::testing::in_test_folder("tensor.pt");
  torch::save(torch::tensor({1.5, 2.5}), path);
  torch::Tensor x;
  torch::load(x, path);
  CHECK(x.to_vector() == Values{1.5, 2.5});

  std::stringstream stream;
  torch::save(std::vector<torch::Tensor>{torch::ones({2}), torch::tensor({{1, 2}})}, stream);
  std::vector<torch::Tensor> list;
  torch::load(list, stream);
  REQUIRE(list.size() == 2);
  CHECK(list[1].dtype() == torch::kLong);
  CHECK(list[1].to_vector() == Values{1, 2});

  std::stringstream braces;
  torch::save({torch::ones({2}), torch::zeros({1})}, braces);
  list.clear();
  torch::load(list, braces);
  CHECK(list.size() == 2);

  // Into the memory of a tensor of the same type.
  const torch::Tensor y = torch::zeros({2});
  torch::Tensor same = y;
  torch::load(same, path);
  CHECK(y.to_vector() == Values{1.5, 2.5});
  torch::Tensor parameter = torch::zeros({3}, torch::requires_grad());
  CHECK_THROWS_AS(torch::load(parameter, path), c10::Error);
  torch::Tensor on_cpu;
  torch::load(on_cpu, path, torch::kCPU);
  CHECK(on_cpu.device() == torch::kCPU);
}

TEST_CASE("modules and optimizers") {
  const auto one = std::make_shared<Net>(), other = std::make_shared<Net>();
  std::stringstream stream;
  torch::save(one, stream);
  torch::load(other, stream);
  CHECK(torch::equal(one->fc.weight, other->fc.weight));
  const auto third = std::make_shared<Net>();
  std::stringstream again(stream.str());
  torch::load(third, again, torch::kCPU);
  CHECK(torch::equal(one->fc.weight, third->fc.weight));

  const std::string path = retrograd::testing::in_test_folder("optimizer.pt");
  torch::optim::Adam a(one->parameters(), 0.1), b(other->parameters(), 0.1);
  for (const torch::Tensor& p : one->parameters()) p.set_grad(torch::ones_like(p));
  a.step();
  a.param_groups()[0].options().set_lr(0.25);
  torch::save(a, path);
  torch::load(b, path);
  CHECK(b.param_groups()[0].options().get_lr() == 0.25);
  CHECK(torch::equal(b.state_dict().at("0.exp_avg"), a.state_dict().at("0.exp_avg")));
  CHECK(b.state_dict().at("0.step").item<int64_t>() == 1);
}

struct StepsImpl : torch::nn::Module {
  StepsImpl() { fc = register_module("fc", torch::nn::Linear(2, 3)); }
  void save(torch::serialize::OutputArchive& archive) const {
    Module::save(archive);
    archive.write("steps", torch::IValue(steps));
  }
  void load(torch::serialize::InputArchive& archive) {
    torch::IValue value;
    archive.read("steps", value);
    steps = value.toInt();
    Module::load(archive);
  }
  torch::nn::Linear fc{nullptr};
  int64_t steps = 0;
};
TORCH_MODULE(Steps);

TEST_CASE("a module's own save() and load(), and a module within an archive") {
  Steps from, to;
  from->steps = 7;
  std::stringstream file;
  torch::save(from, file);
  torch::load(to, file);
  CHECK(to->steps == 7);
  CHECK(torch::equal(to->fc->weight, from->fc->weight));

  torch::serialize::OutputArchive all, model;
  from->fc->save(model);
  all.write("model", model);
  std::stringstream nested;
  all.save_to(nested);
  torch::serialize::InputArchive read, part;
  read.load_from(nested);
  read.read("model", part);
  torch::nn::Linear other(2, 3);
  other->load(part);
  CHECK(torch::equal(other->weight, from->fc->weight));
}

TEST_CASE("archives keep tensors, values and other archives by name") {
  torch::serialize::OutputArchive archive, inner;
  inner.write("weight", torch::ones({2}));
  inner.write("size", torch::IValue(int64_t{1} << 60));
  archive.write("x", torch::tensor({3.0}), /*is_buffer=*/true);
  archive.write("layer", inner);
  archive.write("rate", torch::IValue(0.1));
  archive.write("name", torch::IValue("a: text"));
  archive.write("on", torch::IValue(true));
  archive.write("sizes", torch::IValue(std::vector<int64_t>{2, -3}));
  archive.write("nothing", torch::IValue());
  archive("y", torch::zeros({1}));
  std::string bytes;
  archive.save_to([&](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });

  torch::serialize::InputArchive read, layer;
  read.load_from(bytes.data(), bytes.size());
  CHECK(read.keys() == std::vector<std::string>{"layer", "name", "nothing", "on", "rate", "sizes", "x", "y"});
  torch::Tensor x;
  read.read("x", x, true);
  CHECK(x.item<double>() == 3);
  torch::IValue value;
  read.read("rate", value);
  CHECK(value.toDouble() == 0.1);
  CHECK_THROWS_AS(value.toInt(), c10::Error);
  read.read("name", value);
  CHECK(value.toStringRef() == "a: text");
  read.read("on", value);
  CHECK(value.toBool());
  read.read("sizes", value);
  CHECK(value.toIntVector() == std::vector<int64_t>{2, -3});
  read.read("nothing", value);
  CHECK(value.isNone());
  read.read("x", value);
  CHECK(value.toTensor().item<double>() == 3);
  read.read("layer", layer);
  CHECK(layer.keys() == std::vector<std::string>{"size", "weight"});
  layer.read("size", value);
  CHECK(value.toInt() == int64_t{1} << 60);
  CHECK_FALSE(layer.try_read("bias", x));
  CHECK_FALSE(read.try_read("no", layer));
  CHECK_THROWS_AS(layer.read("bias", x), c10::Error);
  CHECK_THROWS_AS(archive.save_to([](const void*, size_t) { return size_t{0}; }), c10::Error);
}

TEST_CASE("a function gives the bytes of an archive") {
  const torch::Tensor saved = torch::arange(5, torch::kFloat);
  std::stringstream stream;
  torch::save(saved, stream);
  const std::string bytes = stream.str();
  size_t given = bytes.size();
  const auto read = [&](uint64_t position, void* to, size_t count) {
    bytes.copy(static_cast<char*>(to), count, position);
    return std::min(given, count);
  };
  torch::Tensor x;
  torch::load(x, read, [&] { return bytes.size(); });
  CHECK(torch::equal(x, saved));
  torch::serialize::InputArchive archive;
  archive.load_from(
      read, [&] { return bytes.size(); }, torch::Device(torch::kCPU));
  CHECK(archive.keys() == std::vector<std::string>{"0"});
  given = 3;
  CHECK_THROWS_AS(torch::load(x, read, [&] { return bytes.size(); }), c10::Error);
}

TEST_CASE("files that are none, and files of Python's torch.save") {
  const std::string path = retrograd::testing::in_test_folder("pickled.pt");
  std::ofstream(path) << std::string("PK\3\4", 4) << "archive/data.pkl and more";
  torch::Tensor x;
  try {
    torch::load(x, path);
    FAIL("nothing was thrown");
  } catch (const c10::Error& e) {
    CHECK(std::string(e.what()).find("safetensors.torch.save_file") != std::string::npos);
  }
  std::istringstream damaged("nonsense that is long enough");
  CHECK_THROWS_AS(torch::load(x, damaged), c10::Error);
  std::istringstream empty;
  CHECK_THROWS_AS(torch::load(x, empty), c10::Error);
  CHECK_THROWS_AS(torch::load(x, retrograd::testing::in_test_folder("absent.pt")), c10::Error);
}

template <class T>
concept LoadsPickles = requires(const T& bytes) {
  torch::pickle_load(bytes);
};
template <class T>
concept LoadsScripts = requires(const T& path) {
  torch::jit::load(path);
};
static_assert(!LoadsPickles<std::vector<char>> && !LoadsScripts<std::string>);

}  // namespace
}  // namespace libtorch
