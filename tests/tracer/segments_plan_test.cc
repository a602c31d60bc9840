// Whole steps on an executor that computes nothing but records launches: which segments a plan has and why, in which
// order launches are recorded, graphs started and user code called. tests/cuda/graphs_test.cc tests the results of
// graphs.
#include <catch2/catch.hpp>
#include <sstream>

#include "tests/tracer/planned_step.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;
using rg::testing::PlannedStep;

namespace {

Tensor parameter(int rows, int columns) { return rg::full({rows, columns}, 0.5).requires_grad_(); }

struct Net {
  Tensor w = parameter(4, 8), v = parameter(8, 2);
  rg::optim::SGD optimizer{Tensors{w, v}, {.lr = 0.1, .momentum = 0.9}};
  Tensor x = rg::full({3, 4}, 0.25);
};

}  // namespace

TEST_CASE("a whole step") {
  Net net;
  PlannedStep step(
      [&](const Tensors& a) -> Tensors {
        net.optimizer.zero_grad();
        const Tensor loss = rg::sum(rg::mm(rg::tanh(rg::mm(a[0], net.w)), net.v));
        loss.backward();
        net.optimizer.step();
        return {loss};
      },
      {net.x});
  CHECK(step.segments() == "segment 0: 10 launches as a graph\n");
  CHECK(step.run() == R"(arena of 196 bytes
launch mm#0 f32[3,8] at 0
launch tanh#1 f32[3,8] at 0 over operand 0
launch mm#2 f32[3,2] at 96
allocate f32[]
launch sum#3 f32[]
launch full#4 f32[] at 192
launch mm#5 f32[3,8] at 96
allocate f32[8,2]
launch mm#6 f32[8,2]
launch tanh_backward#7 f32[3,8] at 96 over operand 0
allocate f32[4,8]
launch mm#8 f32[4,8]
launch sgd_step#9 f32[4,8], f32[4,8], f32[8,2], f32[8,2] over operand 0
)");
  CHECK(step.run() == R"(allocate f32[]
allocate f32[8,2]
allocate f32[4,8]
record graph 0
launch mm#0 f32[3,8] at 0
launch tanh#1 f32[3,8] at 0 over operand 0
launch mm#2 f32[3,2] at 96
launch sum#3 f32[]
launch full#4 f32[] at 192
launch mm#5 f32[3,8] at 96
launch mm#6 f32[8,2]
launch tanh_backward#7 f32[3,8] at 96 over operand 0
launch mm#8 f32[4,8]
launch sgd_step#9 f32[4,8], f32[4,8], f32[8,2], f32[8,2] over operand 0
end
start graph 0
)");
  CHECK(step.run() == "start graph 0\n");
  step.change_numbers();
  CHECK(step.run() == "start graph 0\n");
  CHECK(step.run() == "start graph 0\n");
  // A value that moves is read at its own address at first, and through a slot from its second move on.
  step.replace_input({rg::kFloat32, {}, {3, 4}});
  CHECK(step.run().find("clone") == std::string::npos);
  step.replace_input({rg::kFloat32, {}, {3, 4}});
  CHECK(step.run() == R"(allocate f32[3,4]
launch clone#0 f32[12]
record graph 0
launch mm#1 f32[3,8] at 0
launch tanh#2 f32[3,8] at 0 over operand 0
launch mm#3 f32[3,2] at 96
launch sum#4 f32[]
launch full#5 f32[] at 192
launch mm#6 f32[3,8] at 96
launch mm#7 f32[8,2]
launch tanh_backward#8 f32[3,8] at 96 over operand 0
launch mm#9 f32[4,8]
launch sgd_step#10 f32[4,8], f32[4,8], f32[8,2], f32[8,2] over operand 0
end
start graph 0
)");
  step.replace_input({rg::kFloat32, {}, {3, 4}});
  CHECK(step.run() == R"(launch clone#0 f32[12]
start graph 0
)");
  const rg::LaunchStats stats = step.stats();
  CHECK(stats.segments == 1);
  CHECK(stats.launches == 10);
  CHECK(stats.recordings == 1);
  CHECK(stats.graph_launches == 7);
  CHECK(stats.updates == 2);
  CHECK(stats.copies == 2);
  CHECK(stats.given_up == 0);
}

TEST_CASE("a result that is still held is copied from then on") {
  Net net;
  PlannedStep step([&](const Tensors& a) -> Tensors { return {rg::exp(rg::mm(a[0], net.w.detach()))}; },
                   {net.x});
  Tensors kept;
  for (int i = 0; i < 3; ++i) kept.push_back(step.results()[0]);
  CHECK(step.run() == R"(start graph 0
allocate f32[3,8]
launch clone#0 f32[3,8]
)");
  CHECK(step.run() == R"(start graph 0
allocate f32[3,8]
launch clone#0 f32[3,8]
)");
  for (size_t i = 1; i < kept.size(); ++i) CHECK_FALSE(kept[i].is_same(kept[0]));
}

TEST_CASE("a step with a pair of opaque hooks in the middle") {
  Net net;
  const auto pair = rg::saved_tensor_hooks([](const Tensor& t) { return t * 1.0; },
                                           [](const Tensor& t) { return t * 1.0; });
  pair->is_pure = true;
  PlannedStep step(
      [&](const Tensors& a) -> Tensors {
        Tensor h = rg::mm(a[0], net.w);
        {
          rg::SavedTensorHooksGuard guard(pair);
          h = rg::tanh(h);
        }
        const Tensor loss = rg::sum(rg::mm(h, net.v));
        loss.backward();
        net.optimizer.step();
        net.optimizer.zero_grad();
        return {loss};
      },
      {net.x});
  CHECK(step.segments() == R"(segment 0: 2 launches as a graph
cut at pack: it calls user code
segment 1: 5 launches as a graph
cut at give_grad: it puts a value where user code sees it
cut at unpack: it calls user code
segment 2: 3 launches as a graph
)");
  for (int i = 0; i < 3; ++i) {
    step.run();
    net.v.set_grad({});
  }
  CHECK(step.run() == R"(start graph 0
start graph 1
launch clone#0 f32[24]
start graph 2
)");
}

namespace {

// Keeps a copy, and notes when it is begun and when it is unpacked, by number.
class NotingPair final : public rg::SavedTensorHooks, private rg::Prefetcher {
 public:
  explicit NotingPair(rg::PrefetchOptions options) : options_(options) { is_pure = true; }

  std::any pack(const Tensor& tensor) override { return std::any(std::pair{tensor.clone(), packed_++ % 2}); }
  Tensor unpack(const std::any& payload) override {
    note("unpack", payload);
    return of(payload).first.clone();
  }
  rg::Prefetcher* prefetcher() override { return this; }
  rg::NullExecutor* notes = nullptr;

 private:
  static const std::pair<Tensor, int>& of(const std::any& payload) {
    return std::any_cast<const std::pair<Tensor, int>&>(payload);
  }
  void note(const std::string& what, const std::any& payload) {
    if (notes) notes->note(what + " " + std::to_string(of(payload).second));
  }
  rg::PrefetchOptions options() const override { return options_; }
  int64_t bytes(const std::any& payload) const override { return of(payload).first.nbytes(); }
  void begin(const std::any& payload) override { note("begin", payload); }
  void drop(const std::any&) noexcept override {}

  const rg::PrefetchOptions options_;
  int packed_ = 0;
};

// The beginnings, unpacks and graphs of a step that saves two values elsewhere, when it is warm.
std::string order_with(rg::PrefetchOptions options) {
  Net net;
  const auto pair = rg::RefPtr<NotingPair>::adopt(new NotingPair(options));
  const auto tanh_elsewhere = [&](const Tensor& h) {
    rg::SavedTensorHooksGuard guard(rg::RefPtr<rg::SavedTensorHooks>(pair.get()));
    return rg::tanh(h);
  };
  PlannedStep step(
      [&](const Tensors& a) -> Tensors {
        const Tensor h = tanh_elsewhere(rg::mm(a[0], net.w));
        const Tensor loss = rg::sum(tanh_elsewhere(rg::exp(rg::mm(h, net.v))));
        loss.backward();
        net.optimizer.step();
        net.optimizer.zero_grad();
        return {loss};
      },
      {net.x});
  for (int i = 0; i < 3; ++i) {
    step.run();
    net.v.set_grad({});
    net.w.set_grad({});
  }
  pair->notes = &step.executor;
  std::istringstream lines(step.run());
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("begin") || line.starts_with("unpack") || line.starts_with("start"))
      text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("values of a step that are brought back ahead are begun between graphs") {
  CHECK(order_with({.nodes = 0}) == R"(start graph 0
start graph 1
start graph 2
unpack 1
start graph 3
unpack 0
start graph 4
)");
  CHECK(order_with({.nodes = 1, .room_bytes = 1 << 20}) == R"(start graph 0
start graph 1
begin 1
start graph 2
unpack 1
begin 0
start graph 3
unpack 0
start graph 4
)");
  CHECK(order_with({.nodes = 64, .room_bytes = 1 << 20}) == R"(start graph 0
start graph 1
begin 1
begin 0
start graph 2
unpack 1
start graph 3
unpack 0
start graph 4
)");
}

TEST_CASE("a step in which the host reads") {
  PlannedStep step(R"(graph @g(%0: f32[4,4]) {
  %1 = exp %0 : f32[4,4]
  %2 = neg %1 : f32[4,4]
  %3 = to_device %2 : f32[4,4]
  %4 = sin %1 : f32[4,4]
  return %3, %4
}
)");
  CHECK(step.segments() == R"(segment 0: 2 launches as a graph
cut at to_device: the host waits for what it reads
segment 1: 1 launch, which is not worth a graph
)");
  CHECK(step.run() == R"(arena of 128 bytes
launch exp#0 f32[4,4] at 0
launch neg#1 f32[4,4] at 64
allocate f32[4,4]
launch to_device#2 f32[4,4]
allocate f32[4,4]
launch sin#3 f32[4,4]
)");
  CHECK(step.run() == R"(record graph 0
launch exp#0 f32[4,4] at 0
launch neg#1 f32[4,4] at 64
end
start graph 0
allocate f32[4,4]
launch to_device#2 f32[4,4]
allocate f32[4,4]
launch sin#3 f32[4,4]
)");
  CHECK(step.run() == R"(start graph 0
allocate f32[4,4]
launch to_device#0 f32[4,4]
allocate f32[4,4]
launch sin#1 f32[4,4]
)");
}

TEST_CASE("what lies elsewhere in each run and is written to cannot be started as a graph") {
  Net net;
  PlannedStep step(
      [&](const Tensors& a) -> Tensors {
        const Tensor loss = rg::sum(rg::mm(rg::tanh(rg::mm(a[0], net.w)), net.v));
        net.optimizer.zero_grad();
        loss.backward();
        net.optimizer.step();
        return {};
      },
      {net.x});
  for (int i = 0; i < 10; ++i) {
    step.run();
    step.replace_input({rg::kFloat32, {}, {4, 8}});
  }
  CHECK(step.stats().given_up == 1);
  CHECK(step.stats().graph_launches == 5);
  CHECK(step.segments() ==
        "segment 0: 8 launches, one by one: what it reads and writes lies elsewhere in each run\n");
}

TEST_CASE("an executor that records no launches has no segments") {
  Net net;
  PlannedStep step([&](const Tensors& a) -> Tensors { return {rg::exp(rg::mm(a[0], net.w.detach()))}; },
                   {net.x}, false);
  CHECK(step.segments() == "no segments: the null executor records no launches\n");
  CHECK(step.stats().segments == 0);
  const std::string first = step.run();
  CHECK(step.run() == first);
  CHECK(first.find("record") == std::string::npos);
}

TEST_CASE("a launch with numbers of the run that a graph would not follow is a cut") {
  PlannedStep step(R"(graph @g[s0 = 2.0, s1 = 7, s2 = 0](%0: f32[4,4]) {
  %1 = exp %0 : f32[4,4]
  %2 = dropout %1 {p=0.5, seed=s1, offset=s2} : f32[4,4]
  %3 = mul %2, s0 : f32[4,4]
  %4 = neg %3 : f32[4,4]
  return %4
}
)");
  CHECK(step.segments() == R"(segment 0: 2 launches as a graph
cut at mul: its numbers differ in each run
segment 1: 1 launch, which is not worth a graph
)");
  for (int i = 0; i < 2; ++i) step.run();
  const std::string one = R"(start graph 0
launch mul#0 f32[4,4] at 0 over operand 0
allocate f32[4,4]
launch neg#1 f32[4,4]
)";
  CHECK(step.run() == one);
  step.change_numbers();
  CHECK(step.run() == one);
  CHECK(step.stats().updates == 0);
}
