// Training steps as graphs of launches on the host in place of a device: they compute the same as the CPU eagerly, from
// the second step on by started graphs; and the cases that a graph cannot be recorded, made or started, or that user
// code throws in between.
#include <thread>

#include "ops/embedding.h"
#include "tests/cuda/device_on_host.h"
#include "tests/cuda/new_device.h"
#include "tracer/plan/run.h"

using namespace retrograd;

namespace {

struct Net {
  Tensors parameters;

  explicit Net(Device device) {
    for (const auto& [rows, columns] :
         {std::pair(6, 16), std::pair(1, 16), std::pair(16, 3), std::pair(1, 3)})
      parameters.push_back((randn({rows, columns}) * 0.3).to(device).requires_grad_());
  }
  Tensor forward(const Tensor& x) const {
    return mm(retrograd::tanh(mm(x, parameters[0]) + parameters[1]), parameters[2]) + parameters[3];
  }
};

Tensor batch(int64_t n, int64_t k, int seed) {
  Generator& g = default_generator();
  const GeneratorState before = g.state();
  manual_seed(static_cast<uint64_t>(seed));
  Tensor x = randn({n, k});
  g.set_state(before);
  return x;
}

// A net on the CPU, trained eagerly, and one on the device, whose step is compiled. body(net, optimizer, x, y) is the
// step.
template <class Body>
class Pair {
 public:
  explicit Pair(Body body, cuda::HostDriver& device = new_device()) : driver(device), body_(std::move(body)) {
    manual_seed(1);
    plain.emplace(kCPU);
    manual_seed(1);
    recorded.emplace(kCUDA);
    plain_optimizer.emplace(plain->parameters, options());
    recorded_optimizer.emplace(recorded->parameters, options());
  }
  static optim::AdamWOptions options() { return {.lr = 0.05, .weight_decay = 0.01}; }

  Tensor eager(const Tensor& x, const Tensor& y) { return body_(*plain, *plain_optimizer, x, y).detach(); }
  Tensors on_device(const Tensors& a) { return {body_(*recorded, *recorded_optimizer, a[0], a[1])}; }

  /// A step of both, from batches of step `i`, and that they agree.
  void step(int i, double scale = 8) {
    INFO("step " << i << "\n" << cache.segments());
    const Tensor x = batch(5, 6, i), y = batch(5, 3, 100 + i);
    manual_seed(static_cast<uint64_t>(i));
    const Tensor expected = eager(x, y);
    manual_seed(static_cast<uint64_t>(i));
    const Tensor found =
        cache.run([this](const Tensors& a) { return on_device(a); }, {x.to(kCUDA), y.to(kCUDA)})[0];
    expect_same(expected, found.to(kCUDA), scale);
    for (size_t k = 0; k < plain->parameters.size(); ++k)
      expect_same(plain->parameters[k].detach(), recorded->parameters[k].detach(), scale);
  }
  LaunchStats stats() const { return cache.stats().launches; }

  cuda::HostDriver& driver;
  std::optional<Net> plain, recorded;
  std::optional<optim::AdamW> plain_optimizer, recorded_optimizer;
  FunctionCache cache{FunctionKind::step};

 private:
  Body body_;
};

// A step that makes loss_of(net, x, y) smaller.
template <class LossOf>
auto training(LossOf loss_of) {
  return [loss_of](Net& net, auto& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(net, x, y);
    loss.backward();
    optimizer.step();
    return loss;
  };
}

const auto train = training(
    [](const Net& net, const Tensor& x, const Tensor& y) { return mean(square(net.forward(x) - y)); });

}  // namespace

TEST_CASE("a whole step runs as one graph, and trains as the CPU does") {
  Pair pair(train);
  for (int i = 0; i < 6; ++i) pair.step(i);
  CHECK(pair.cache.segments() == "segment 0: 19 launches as a graph\n");
  const LaunchStats stats = pair.stats();
  CHECK(stats.segments == 1);
  CHECK(stats.launches == 19);
  CHECK(stats.recordings == 1);
  CHECK(stats.graph_launches == 5);
  CHECK(stats.given_up == 0);
}

TEST_CASE("a step that recomputes, or packs with a traceable pair, is one graph, too") {
  // 0: a checkpoint; 1: a scope with a policy; 2: a traceable pair.
  for (const int how : {0, 1, 2}) {
    const auto loss_of = [how](const Net& net, const Tensor& x, const Tensor& y) {
      std::optional<RecomputeScope> scope;
      std::optional<SavedTensorHooksGuard> guard;
      if (how == 1) scope.emplace(policies::save_matrix_products());
      if (how == 2)
        guard.emplace(saved_tensor_hooks([](const Tensor& t) { return t * 2.0; },
                                         [](const Tensor& t) { return t / 2.0; }, true));
      const auto forward = [&](const Tensor& in) { return net.forward(retrograd::sin(in)); };
      const Tensor found = how == 0 ? checkpoint(forward, x) : forward(x);
      return mean(square(found - y));
    };
    Pair pair(training(loss_of));
    INFO("how " << how);
    const RecomputeStats before = recompute_stats();
    for (int i = 0; i < 5; ++i) pair.step(i);
    const LaunchStats stats = pair.stats();
    CHECK(stats.segments == 1);
    CHECK(stats.recordings == 1);
    CHECK(stats.graph_launches == 4);
    CHECK(stats.given_up == 0);
    CHECK((recompute_stats().calls_recomputed > before.calls_recomputed) == (how < 2));
  }
}

TEST_CASE("what the driver is asked for: the first step, the recording, a step from then on") {
  Pair pair(train);
  const Tensor x = batch(5, 6, 1).to(kCUDA), y = batch(5, 3, 2).to(kCUDA);
  const auto log_of_step = [&] {
    pair.driver.log.clear();
    pair.cache.run([&](const Tensors& a) { return pair.on_device(a); }, {x, y});
    return pair.driver.log;
  };
  CHECK(log_of_step() == R"(copy 480 on 1
record e7 on 1
)");
  CHECK(log_of_step() == R"(capture on 4
copy 480 on 1
record e8 on 1
graph g1 of 19
instantiate g1 as x1
copy 128 on 1
record e9 on 1
launch x1 on 1
)");
  CHECK(log_of_step() == R"(copy 128 on 1
record e10 on 1
launch x1 on 1
)");
  CHECK(log_of_step() == R"(copy 128 on 1
record e11 on 1
launch x1 on 1
)");
}

TEST_CASE("numbers of the run reach a graph: learning rate and count of steps") {
  Pair pair(train);
  for (int i = 0; i < 6; ++i) {
    pair.plain_optimizer->set_lr(0.05 / (1 + i));
    pair.recorded_optimizer->set_lr(0.05 / (1 + i));
    pair.step(i);
  }
  CHECK(pair.stats().graph_launches == 5);
}

TEST_CASE("gradients are clipped together within a graph; the list of them is copied once") {
  Pair pair([](Net& net, auto& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = mean(square(net.forward(x) - y));
    loss.backward();
    optim::clip_grad_norm_(net.parameters, 0.1);
    optimizer.step();
    return loss;
  });
  for (int i = 0; i < 3; ++i) pair.step(i, 32);
  const int64_t live = cuda::gpu_of(0).memory().stats().live_bytes;
  for (int i = 3; i < 6; ++i) {
    pair.driver.log.clear();
    pair.step(i, 32);
    INFO(pair.driver.log);
    CHECK(pair.driver.log.find("capture") == std::string::npos);
    CHECK(pair.driver.log.substr(0, pair.driver.log.find("launch x")).find("copy 384") == std::string::npos);
  }
  CHECK(cuda::gpu_of(0).memory().stats().live_bytes == live);
  CHECK(pair.stats().graph_launches == 5);
  CHECK(pair.stats().given_up == 0);
}

TEST_CASE("a list that has changed is copied again: where a gradient lies elsewhere") {
  Pair pair(train);
  for (int i = 0; i < 3; ++i) pair.step(i);
  for (int i = 3; i < 6; ++i) {  // parameters move
    for (Tensor& p : pair.recorded->parameters) {
      NoGradGuard no_grad;
      const Tensor moved = p.detach() * 1.0;
      p.impl().set_storage(moved.impl().storage());
    }
    pair.step(i);
  }
  CHECK(pair.stats().given_up == 0);
}

TEST_CASE("places of random draws reach a graph") {
  Pair pair(training([](const Net& net, const Tensor& x, const Tensor& y) {
    return mean(square(net.forward(dropout(x, 0.3)) - y));
  }));
  for (int i = 0; i < 5; ++i) pair.step(i);
  CHECK(pair.stats().graph_launches == 4);
  CHECK(pair.stats().given_up == 0);
}

TEST_CASE("the data of a pool's axes are kept outside of the graph") {
  Pair pair(training([](const Net& net, const Tensor& x, const Tensor& y) {
    const Tensor hidden = view(retrograd::tanh(mm(x, net.parameters[0])), {5, 1, 4, 4});
    const Tensor pooled =
        max_pool2d(hidden, {2, 2}, {1, 1}, {1, 1}) + avg_pool2d(hidden, {2, 2}, {1, 1}, {1, 1});
    return mean(square(sum(pooled) - y));
  }));
  for (int i = 0; i < 5; ++i) pair.step(i);
  CHECK(pair.stats().graph_launches == 4);
  CHECK(pair.stats().given_up == 0);
}

TEST_CASE("gradients that stay, and results that are kept, are copied out") {
  Pair pair([](Net& net, auto& optimizer, const Tensor& x, const Tensor& y) {
    const Tensor loss = mean(square(net.forward(x) - y));
    loss.backward();
    optimizer.step();
    return loss;
  });
  Tensors losses, expected;
  for (int i = 0; i < 6; ++i) pair.step(i);
  const LaunchStats before = pair.stats();
  for (int i = 0; i < 3; ++i) {
    const Tensor x = batch(5, 6, i), y = batch(5, 3, 100 + i);
    expected.push_back(pair.eager(x, y));
    losses.push_back(
        pair.cache.run([&](const Tensors& a) { return pair.on_device(a); }, {x.to(kCUDA), y.to(kCUDA)})[0]);
  }
  for (size_t i = 0; i < losses.size(); ++i) expect_same(expected[i], losses[i], 8);
  CHECK(pair.stats().graph_launches == before.graph_launches + 3);
  CHECK(pair.stats().copies > before.copies);
  CHECK(pair.stats().given_up == 0);
}

TEST_CASE("a pair of hooks in the middle of a step") {
  int packs = 0;
  const auto hooks = saved_tensor_hooks(
      [&](const Tensor& t) {
        ++packs;
        return t * 2.0;
      },
      [](const Tensor& t) { return t / 2.0; });
  hooks->is_pure = true;
  Pair pair([&](Net& net, auto& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor h = mm(x, net.parameters[0]) + net.parameters[1];
    {
      SavedTensorHooksGuard guard(hooks);
      h = retrograd::tanh(h);
    }
    const Tensor loss = mean(square(mm(h, net.parameters[2]) + net.parameters[3] - y));
    loss.backward();
    optimizer.step();
    return loss;
  });
  for (int i = 0; i < 5; ++i) pair.step(i);
  CHECK(packs == 2 * 5);
  CHECK(pair.cache.segments() == R"(segment 0: 3 launches as a graph
cut at pack: it calls user code
segment 1: 9 launches as a graph
cut at give_grad: it puts a value where user code sees it
segment 2: 3 launches as a graph
cut at give_grad: it puts a value where user code sees it
cut at unpack: it calls user code
segment 3: 4 launches as a graph
)");
  CHECK(pair.stats().graph_launches == 4 * 4);
  CHECK(pair.stats().given_up == 0);
}

TEST_CASE(
    "saved values are copied to the host outside of the graphs; prefetched ones between single launches") {
  const int nodes = GENERATE(0, 1);
  reset_offload_stats();
  Pair pair([nodes](Net& net, auto& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor h = mm(x, net.parameters[0]) + net.parameters[1];
    Tensor wide = cat({h, h, h, h, h, h}, 0);  // small ones stay where they are
    {
      SavedTensorHooksGuard guard(save_on_cpu(true, net.parameters, {.nodes = nodes}));
      for (int i = 0; i < 3; ++i) wide = retrograd::sin(retrograd::tanh(wide));
      wide = mm(wide, net.parameters[2]);
    }
    const Tensor loss = mean(square(wide + net.parameters[3] - cat({y, y, y, y, y, y}, 0)));
    loss.backward();
    optimizer.step();
    return loss;
  });
  for (int i = 0; i < 5; ++i) pair.step(i, 32);
  CHECK(pair.stats().graph_launches > 4);
  CHECK(pair.stats().given_up == 0);
  CHECK(offload_stats().bytes_to_host > 0);
  CHECK((offload_stats().early > 0) == (nodes > 0));
  CHECK(offload_stats().in_flight == 0);
}

TEST_CASE("what the host reads in the middle of a step is read after all launches") {
  Pair pair([](Net& net, auto& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = mean(square(net.forward(x) - y));
    const Tensor read = loss.to(kCPU);
    loss.backward();
    optimizer.step();
    return read;
  });
  for (int i = 0; i < 4; ++i) pair.step(i);
  CHECK(pair.cache.segments() == R"(segment 0: 19 launches as a graph
cut at to_device: the host waits for what it reads
)");
  CHECK(pair.stats().given_up == 0);
}

TEST_CASE("linear algebra by the library's own kernels is part of a step's graph") {
  Pair pair(training([](const Net& net, const Tensor& x, const Tensor& y) {
    const Tensor gram = mm(net.parameters[0], net.parameters[0].t());
    const Tensor regular = gram + eye(6, {}, {kFloat32, x.device()});
    return mean(square(net.forward(x) - y)) + sum(inverse(regular));
  }));
  for (int i = 0; i < 4; ++i) pair.step(i, 32);
  INFO(pair.cache.segments());
  CHECK(pair.cache.segments().find("cut at inverse") == std::string::npos);
  CHECK(pair.stats().given_up == 0);
  CHECK(pair.stats().graph_launches > 0);
}

TEST_CASE("a hook that throws between two segments leaves the next step as it should be") {
  bool throws = false;
  Pair pair([&](Net& net, auto& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor h = net.forward(x);
    h.register_hook([&](const Tensor& g) {
      if (throws) throw std::range_error("by the hook");
      return g * 0.5;
    });
    const Tensor loss = mean(square(h - y));
    loss.backward();
    optimizer.step();
    return loss;
  });
  for (int i = 0; i < 7; ++i) {
    throws = i == 3;
    if (!throws)
      pair.step(i);
    else
      CHECK_THROWS_AS(pair.step(i), std::range_error);
    if (!throws) continue;
    const Tensor x = batch(5, 6, i).to(kCUDA), y = batch(5, 3, 100 + i).to(kCUDA);
    CHECK_THROWS_AS(pair.cache.run([&](const Tensors& a) { return pair.on_device(a); }, {x, y}),
                    std::range_error);
  }
  CHECK(pair.stats().given_up == 0);
  CHECK(pair.stats().graph_launches == 2 * 6 - 1);
}

TEST_CASE("a graph that cannot be made is launched step by step, and says why") {
  Pair pair(train);
  pair.step(0);
  pair.driver.next_instantiate = 801;
  for (int i = 1; i < 4; ++i) pair.step(i);
  CHECK(pair.stats().given_up == 1);
  CHECK(pair.stats().graph_launches == 0);
  CHECK(pair.stats().launches == 4 * 19);
  CHECK(pair.cache.segments() ==
        "segment 0: 19 launches, one by one: cuda:0: making a graph: something failed (CUDA error 801)\n");
}

TEST_CASE("a graph that cannot be started once is not tried again") {
  Pair pair(train);
  for (int i = 0; i < 3; ++i) pair.step(i);
  pair.driver.next_graph_launch = 2;
  for (int i = 3; i < 6; ++i) pair.step(i);
  CHECK(pair.stats().given_up == 1);
  CHECK(pair.stats().graph_launches == 2);
}

TEST_CASE("graphs go with the function, and their memory") {
  cuda::HostDriver& driver = new_device();
  cuda::Gpu& gpu = cuda::gpu_of(0);
  const size_t graphs = driver.graphs();
  const int64_t bytes = gpu.memory().stats().live_bytes;
  {
    Pair pair(train, driver);
    for (int i = 0; i < 3; ++i) pair.step(i);
    CHECK(driver.graphs() > graphs);
  }
  CHECK(driver.graphs() == graphs);
  CHECK(gpu.memory().stats().live_bytes == bytes);
}

TEST_CASE("an index out of range in a graph is reported when the host waits") {
  new_device();
  const Tensor table = (ones({4, 2}) * 0.5).to(kCUDA);
  FunctionCache cache(FunctionKind::step);
  const auto body = [&](const Tensors& a) -> Tensors {
    return {retrograd::exp(embedding(table, a[0]) * 2.0)};
  };
  const Tensor good = tensor({0, 3}, {kInt64}).to(kCUDA), bad = tensor({0, 4}, {kInt64}).to(kCUDA);
  for (int i = 0; i < 3; ++i) CHECK(cache.run(body, {good})[0].to_vector().size() == 4);
  const Tensor result = cache.run(body, {bad})[0];
  CHECK(cache.stats().launches.graph_launches == 3);
  CHECK_THROWS_AS(result.to_vector(), Error);
  CHECK(cache.run(body, {good})[0].to_vector().size() == 4);
}

TEST_CASE("a graph does not forget the faults of its earlier runs") {
  cuda::HostDriver& driver = new_device();
  cuda::Gpu& gpu = cuda::gpu_of(0);
  cuda::Graph graph(gpu);
  driver.log.clear();
  graph.begin();
  gpu.faults().note(ops::info<ops::Embedding>);  // the first on this device
  graph.end();
  INFO(driver.log);
  CHECK(driver.log.find("graph g1 of 0\n") != std::string::npos);
  gpu.synchronize();
}

TEST_CASE("a fault is told though another thread looks between its note and its launch") {
  new_device();
  cuda::Gpu& gpu = cuda::gpu_of(0);
  const cuda::FaultNote note = gpu.faults().note(ops::info<ops::Embedding>);
  std::thread([&] { gpu.faults().look(); }).join();
  note.fault->is_taken = 1;  // as the kernel does
  note.fault->kind = cuda::FaultKind::index;
  note.fault->op = note.op;
  note.fault->index = 4;
  note.fault->entries = 4;
  gpu.launched("embedding");
  CHECK_THROWS_WITH(gpu.synchronize(), Catch::Contains("index 4 is out of range for 4 entries"));
  gpu.synchronize();
}

TEST_CASE("a graph that is recorded again is updated; with other nodes it is made again") {
  cuda::HostDriver& driver = new_device();
  cuda::Gpu& gpu = cuda::gpu_of(0);
  const Tensor from = ones({4}).to(kCUDA), to = zeros({8}).to(kCUDA);
  cuda::Graph graph(gpu);
  const auto recorded = [&](std::vector<int> places) {
    driver.log.clear();
    graph.begin();
    for (const int place : places)
      gpu.copy(static_cast<float*>(to.impl().data()) + place, from.impl().data(), 16);
    graph.end();
    return driver.log.substr(driver.log.find("graph g"));
  };
  CHECK(recorded({0}) == "graph g1 of 1\ninstantiate g1 as x1\n");
  CHECK(recorded({2}) == "graph g2 of 1\nupdate x1 by g2\n");
  graph.start();
  CHECK(to.to_vector() == std::vector<double>{0, 0, 1, 1, 1, 1, 0, 0});
  CHECK(recorded({1, 4}) == "graph g3 of 2\ninstantiate g3 as x2\n");
  graph.start();
  CHECK(to.to_vector() == std::vector<double>{0, 1, 1, 1, 1, 1, 1, 1});
  CHECK(driver.graphs() == 1);
}

TEST_CASE("graphs can be switched off") {
  setenv("RETROGRAD_CUDA_GRAPHS", "0", 1);
  Pair pair(train);
  for (int i = 0; i < 3; ++i) pair.step(i);
  unsetenv("RETROGRAD_CUDA_GRAPHS");
  CHECK(pair.stats().graph_launches == 0);
  CHECK(pair.cache.segments() == "no segments: the cuda executor records no launches\n");
}

TEST_CASE("on a device that is lost a step is refused with the first error") {
  Pair pair(train);
  for (int i = 0; i < 3; ++i) pair.step(i);
  const Tensor x = batch(5, 6, 3).to(kCUDA), y = batch(5, 3, 3).to(kCUDA);
  pair.driver.next_graph_launch = 700;
  for (int i = 0; i < 2; ++i) {
    std::string text;
    try {
      pair.cache.run([&](const Tensors& a) { return pair.on_device(a); }, {x, y});
    } catch (const cuda::DeviceError& e) {
      CHECK(e.is_sticky);
      text = e.what();
    }
    CHECK(text.find("starting a graph") != std::string::npos);
  }
}
