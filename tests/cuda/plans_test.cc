// Plans on a device against eager execution there, bit for bit: fused groups, whole steps as graphs of launches, saved
// values kept on the host. On a machine's own device this runs code compiled by NVRTC, started graphs, and copies
// concurrent with kernels; on the host in its place groups are launched one by one. Not tested here: the requests of
// plans to the device (graphs_test.cc, offload_plans_test.cc), single groups (fusion_test.cc).
#include "cuda/fusion/fusion.h"
#include "tests/cuda/against_cpu.h"
#include "tests/cuda/fused_step.h"

using namespace retrograd;

namespace {

void expect_bits(const Tensors& expected, const Tensors& found) {
  REQUIRE(expected.size() == found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("tensor " << i);
    CHECK(found[i].to_vector() == expected[i].to_vector());
  }
}

struct Net : nn::Module {
  nn::Linear first{this, "first", 12, 32}, second{this, "second", 32, 5};
  nn::LayerNorm norm{this, "norm", {32}};
  Tensor loss(const Tensor& x, const Tensor& y) const {
    return cross_entropy(second(norm(gelu(first(x)))), y);
  }
};

// The parameters and losses of a few steps; `compiled`: each step is one plan. `batches`: the sizes of the batches.
Tensors trained(bool compiled, const std::vector<int64_t>& batches, FunctionCache::Stats* stats = nullptr) {
  manual_seed(4);
  Net net;
  net.to(kCUDA);
  optim::AdamW optimizer(net.parameters(), {.lr = 0.05});
  const auto body = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = net.loss(x, y);
    loss.backward();
    optim::clip_grad_norm_(net.parameters(), 0.5);
    optimizer.step();
    return loss;
  };
  auto step = compile_step(body);
  Tensors found;
  for (size_t i = 0; i < batches.size(); ++i) {
    const Tensor x = randn({batches[i], 12}).cuda(), y = randint(0, 5, {batches[i]}).cuda();
    found.push_back((compiled ? step(x, y) : body(x, y)).detach().cpu());
    cuda::finish_compiling();
    optimizer.set_lr(0.05 / static_cast<double>(i + 2));
  }
  for (const Tensor& p : net.parameters()) found.push_back(p.detach());
  if (stats) *stats = step.stats();
  return found;
}

}  // namespace

TEST_CASE("fused groups on a device give the bits of single kernels") {
  device_on_host();
  const FusedStep step;
  const auto loss = [&](const Tensor& x) { return step.loss(x); };
  Tensors expected;
  for (const Tensor& x : step.gradients(loss)) expected.push_back(x.clone());
  auto compiled = compile(loss);
  const cuda::FusionStats before = cuda::fusion_stats();
  for (int i = 0; i < 3; ++i) {  // while kernels are being compiled, and with them
    expect_bits(expected, step.gradients(compiled));
    cuda::finish_compiling();
  }
  if (is_on_host()) return;
  INFO(cuda::fusion_problem() << " " << cuda::last_fusion_note());
  const cuda::FusionStats after = cuda::fusion_stats();
  CHECK(after.failed == before.failed);
  CHECK(after.launches > before.launches);
}

TEST_CASE("captured backwards with fused groups give the bits of eager ones, also where they are left") {
  device_on_host();
  const FusedStep step;
  CompiledBackward backward = compile_backward();
  const cuda::FusionStats before = cuda::fusion_stats();
  const std::function<Tensor(const Tensor&)> losses[] = {
      [&](const Tensor& x) { return step.loss(x); }, [&](const Tensor& x) { return step.hooked_loss(x); }};
  for (const auto& loss : losses) {
    Tensors expected;
    for (const Tensor& x : step.gradients(loss)) expected.push_back(x.clone());
    for (int i = 0; i < 3; ++i) {
      const CompiledBackwardScope scope(backward);
      expect_bits(expected, step.gradients(loss));
      cuda::finish_compiling();
    }
  }
  CHECK(backward.stats().left == 3);
  if (is_on_host()) return;
  INFO(cuda::fusion_problem() << " " << cuda::last_fusion_note());
  const cuda::FusionStats after = cuda::fusion_stats();
  CHECK(after.failed == before.failed);
  CHECK(after.launches > before.launches);
}

TEST_CASE("steps on a device as graphs of launches give the bits of eager steps") {
  device_on_host();
  const std::vector<int64_t> batches(6, 8);
  FunctionCache::Stats stats;
  expect_bits(trained(false, batches), trained(true, batches, &stats));
  if (is_on_host()) return;
  CHECK(stats.launches.graph_launches > 0);
  CHECK(stats.launches.given_up == 0);
}

TEST_CASE("steps on a device at several sizes: one recording with symbols, a plan for each size") {
  device_on_host();
  const std::vector<int64_t> batches{8, 5, 6, 8, 5, 6, 8, 5, 6};
  FunctionCache::Stats stats;
  expect_bits(trained(false, batches), trained(true, batches, &stats));
  CHECK(stats.captures == 2);
  CHECK(stats.plans == 4);
  if (is_on_host()) return;
  CHECK(stats.launches.graph_launches > 0);
  CHECK(stats.launches.given_up == 0);
}

TEST_CASE("a compiled function on a device at several sizes: the gradients of eager calls") {
  device_on_host();
  Net net;
  net.to(kCUDA);
  const auto gradients = [&](auto& loss_of, int64_t batch) {
    manual_seed(static_cast<uint64_t>(batch));
    const Tensor x = randn({batch, 12}).cuda(), y = randint(0, 5, {batch}).cuda();
    return autograd::grad({loss_of(x, y)}, net.parameters());
  };
  const auto loss = [&](const Tensor& x, const Tensor& y) { return net.loss(x, y); };
  auto compiled = compile(loss);
  for (const int64_t batch : {8, 5, 6, 3, 8, 5}) {
    expect_bits(gradients(loss, batch), gradients(compiled, batch));
    cuda::finish_compiling();
  }
  CHECK(compiled.stats().captures == 2);
  CHECK(compiled.stats().plans == 5);
}

TEST_CASE("values saved on the host come back as they were, eagerly and in plans") {
  device_on_host();
  const Tensor x = random_numbers({64, 40}, kFloat32).cuda(), w = random_numbers({40, 64}, kFloat32);
  const auto gradient = [&](bool offloaded, bool pinned, bool traced) {
    const Tensor leaf = w.cuda().requires_grad_();
    CompiledBackward backward = compile_backward();
    Tensor found;
    for (int i = 0; i < 2; ++i) {
      leaf.set_grad({});
      std::optional<SavedTensorHooksGuard> guard;
      if (offloaded) guard.emplace(save_on_cpu(pinned));
      const Tensor loss = sum(square(retrograd::tanh(mm(x, leaf)) * retrograd::sigmoid(mm(x, leaf))));
      guard.reset();
      if (traced)
        backward(loss);
      else
        loss.backward();
      found = leaf.grad();
    }
    return found;
  };
  const Tensor expected = gradient(false, false, false);
  for (const bool pinned : {false, true})
    for (const bool traced : {false, true}) {
      INFO("pinned " << pinned << ", traced " << traced);
      expect_bits({expected}, {gradient(true, pinned, traced)});
    }
}
