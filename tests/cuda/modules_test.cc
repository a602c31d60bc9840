// Modules, optimizers, saved states and the stock pairs of hooks on a device against the CPU: the parts of training
// besides ops.
#include <unistd.h>

#include <filesystem>

#include "tests/cuda/against_cpu.h"

using namespace retrograd;

namespace {

struct Net : nn::Module {
  nn::Linear first{this, "first", 6, 8}, second{this, "second", 8, 3};
  Tensor loss(const Tensor& x) const { return sum(square(second(retrograd::tanh(first(x))))); }
};

// Two of one seed, the second on the device.
template <class T>
struct Twins {
  std::unique_ptr<T> here, there;
  template <class... Args>
  explicit Twins(Args&&... args) {
    device_on_host();
    for (std::unique_ptr<T>* twin : {&here, &there}) {
      manual_seed(3);
      *twin = std::make_unique<T>(args...);
    }
    there->to(kCUDA);
  }
};

void expect_same_parameters(const nn::Module& here, const nn::Module& there, double scale = 20) {
  const Tensors a = here.parameters(), b = there.parameters();
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) expect_same(a[i], b[i], scale);
}

// A folder that is removed with its content.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("modules_test." + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

Tensor input() { return random_numbers({5, 6}, kFloat32); }

}  // namespace

TEST_CASE("a module moves to a device with its gradients; who holds a parameter holds the moved one") {
  device_on_host();
  Net net, twin;
  twin.load_state_dict(net.state_dict());
  const Tensor held = net.first.weight, x = input();
  net.loss(x).backward();
  twin.loss(x).backward();
  net.to(kCUDA);
  optim::AdamW optimizer(net.parameters()), other(twin.parameters());
  CHECK(held.device() == Device(kCUDA));
  CHECK(held.is_leaf());
  CHECK(held.requires_grad());
  expect_same(twin.first.weight.grad(), held.grad());
  for (int i = 0; i < 2; ++i) {
    optimizer.step();
    other.step();
  }
  expect_same_parameters(twin, net);
  net.to(kCPU);
  CHECK(held.device() == kCPU);
  CHECK(held.grad().device() == kCPU);
}

TEST_CASE("a module that cannot be moved stays where it is") {
  device_on_host();
  Net net;
  const std::vector<double> before = net.first.weight.to_vector();
  CHECK_THROWS_AS(net.to(Device(kCUDA, 99)), Error);
  for (const Tensor& p : net.parameters()) CHECK(p.device() == kCPU);
  CHECK(net.first.weight.to_vector() == before);
}

TEST_CASE("training steps of a module on a device") {
  const Twins<Net> twins;
  optim::SGD here(twins.here->parameters(), {.lr = 0.01, .momentum = 0.9});
  optim::SGD there(twins.there->parameters(), {.lr = 0.01, .momentum = 0.9});
  for (int i = 0; i < 3; ++i) {
    const Tensor x = input();
    const Tensor a = twins.here->loss(x), b = twins.there->loss(x.cuda());
    expect_same(a, b, 20);
    a.backward();
    b.backward();
    optim::clip_grad_norm_(twins.here->parameters(), 0.5);
    optim::clip_grad_norm_(twins.there->parameters(), 0.5);
    here.step();
    there.step();
    here.zero_grad();
    there.zero_grad();
  }
  expect_same_parameters(*twins.here, *twins.there);
}

TEST_CASE("recurrent layers on a device") {
  const Tensor x = random_numbers({4, 3, 6}, kFloat32);
  const auto compare = [&](const auto& twins) {
    const Tensor a = (*twins.here)(x).output, b = (*twins.there)(x.cuda()).output;
    expect_same(a, b, 20);
    sum(square(a)).backward();
    sum(square(b)).backward();
    const Tensors p = twins.here->parameters(), q = twins.there->parameters();
    for (size_t i = 0; i < p.size(); ++i) expect_same(p[i].grad(), q[i].grad(), 50);
  };
  nn::Module* const none = nullptr;
  compare(Twins<nn::LSTM>(none, "", 6, 5));
  compare(Twins<nn::GRU>(none, "", 6, 5));
  compare(Twins<nn::RNN>(none, "", 6, 5));
}

TEST_CASE("a state is saved from a device, and loaded into a module there") {
  const Folder folder;
  const std::string file = (folder.path / "state").string();
  const Twins<Net> twins;
  optim::AdamW optimizer(twins.there->parameters());
  twins.there->loss(input().cuda()).backward();
  optimizer.step();
  save(twins.there->state_dict(), file);
  Net loaded;
  loaded.load_state_dict(load(file));
  expect_same_parameters(loaded, *twins.there);
  Net other;
  other.to(kCUDA);
  other.load_state_dict(load(file));
  CHECK(other.first.weight.device() == Device(kCUDA));
  expect_same_parameters(loaded, other);

  save(optimizer.state_dict(), file);
  optim::AdamW second(other.parameters());
  second.load_state_dict(load(file));
  const StateDict a = optimizer.state_dict(), b = second.state_dict();
  REQUIRE(a.size() == b.size());
  for (const auto& [name, value] : a) CHECK(value.to_vector() == b.at(name).to_vector());
}

TEST_CASE("stock pairs of hooks keep on a device what they keep on the CPU") {
  device_on_host();
  const Folder folder;
  const Tensor x = random_numbers({40, 50}, kFloat32), w = random_numbers({40, 50}, kFloat32);
  const auto gradient = [&](const RefPtr<SavedTensorHooks>& hooks, Device device) {
    const Tensor leaf = w.detach().clone().to(device).requires_grad_();
    Tensor loss;
    {
      const SavedTensorHooksGuard guard(hooks);
      loss = sum(square(leaf * x.to(device)));
    }
    loss.backward();
    return leaf.grad();
  };
  for (const auto& hooks :
       {save_as_half(), save_as_fp8(), save_as_int8(), save_to_file(folder.path.string())})
    expect_same(gradient(hooks, kCPU), gradient(hooks, kCUDA), 20);
}

TEST_CASE("copy_ brings values from another device, converted") {
  device_on_host();
  const Tensor x = random_numbers({3, 4}, kFloat64), y = zeros({3, 4}, {kFloat32, kCUDA});
  y.copy_(x);
  expect_same(x.to(kFloat32), y);
  const Tensor z = zeros({3, 4});
  z.copy_(y);
  CHECK(z.device() == kCPU);
  CHECK(z.to_vector() == y.to_vector());
}
