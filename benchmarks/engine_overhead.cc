// Cost of the engine itself: a chain y = y * w of 1,000 one-element float32 ops on one thread, as in
// peers/engine_overhead.cpp.
//   engine_overhead [--device cpu|cuda] [--rounds N] [--batch B]
// Prints one JSON line, medians of 200 rounds; on a device times include waiting for it. As in the peer, a round does
// these three in turn:
//   record_ns    an op with a record, the user's line included            (peer: "forward recording")
//   backward_ns  a record in an eager backward, with a new cotangent         (peer: "backward")
//   forward_ns   an op without a record                                      (peer: "forward no-grad")
// Then, in separate rounds:
//   replay_ns            a record in a backward through compile_backward(), captured before: look-up,
//                        binding, run
//   replay_ns_per_node   the same for a graph node (there are an unpack and a mul per record)
//   capture_us_per_node  a graph node in the first such backward: walk, key, recording, planning and its run
//   location_ns          the part of record_ns for carrying the user's file and line
// On a device, a line before it for a whole compiled step (bench replay) of mlp and of gpt-char (train/models.h), with
// batches of B, in us:
//   launch_us   until the call of a step returns, with an idle device before: an upper bound of the cost of a step
//               besides its kernels, since these run meanwhile
//   alone_us    until the device has finished, too
//   stream_us   per step, among many that are not waited for
//   segments    of the plan that are started as graphs of launches; graph_launches, launches and copies are
//               the numbers of graph starts, single kernel launches and memory copies per step
// The sides of a comparison must alternate on a shared machine.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/common/line.h"
#include "benchmarks/common/program.h"
#include "benchmarks/train/models.h"

namespace rg = retrograd;
using Clock = std::chrono::steady_clock;

namespace bench {
namespace {

constexpr int kNodes = 1000;

struct Options {
  int rounds = 200;
  BatchSize size;
};

double ns_of(const Place& place, const std::function<void()>& work) {
  place.synchronize();
  const auto begin = Clock::now();
  work();
  place.synchronize();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kNodes;
}

double median(std::vector<double>& times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

rg::Tensor ones(const Place& place) { return rg::ones({1}, {rg::kFloat32, place.device()}); }

// y becomes y * w, kNodes times.
void extend(rg::Tensor& y, const rg::Tensor& w) {
  for (int i = 0; i < kNodes; ++i) y = y * w;
}

void extend_without_location(rg::Tensor& y, const rg::Tensor& w) {
  for (int i = 0; i < kNodes; ++i)
    y = rg::mul(rg::Operand(y, rg::SourceLocation{}), rg::Operand(w, rg::SourceLocation{}));
}

rg::Tensor chain(const rg::Tensor& x, const rg::Tensor& w) {
  rg::Tensor y = x;
  extend(y, w);
  return y;
}

struct Eager {
  const Place& place;
  std::vector<double> forward{}, record{}, backward{};

  void round(const rg::Tensor& x, const rg::Tensor& w) {
    rg::Tensor y = x;
    record.push_back(ns_of(place, [&] { extend(y, w); }));
    backward.push_back(ns_of(place, [&] { y.backward(ones(place)); }));
    rg::NoGradGuard no_grad;
    rg::Tensor z = w;
    forward.push_back(ns_of(place, [&] { extend(z, w); }));
  }
};

struct Traced {
  const Place& place;
  rg::CompiledBackward captured = rg::compile_backward(), fresh = rg::compile_backward();
  std::vector<double> replay{}, capture{};

  void round(const rg::Tensor& x, const rg::Tensor& w) {
    for (auto [backward, times] : {std::pair(&fresh, &capture), std::pair(&captured, &replay)}) {
      const rg::Tensor y = chain(x, w);
      times->push_back(ns_of(place, [&] { backward->backward({y}, {ones(place)}); }));
    }
    fresh.reset();
  }
  double nodes_per_record() const { return static_cast<double>(captured.stats().nodes) / kNodes; }
};

void measure_chain(const Place& place, int rounds) {
  const rg::Tensor x = ones(place).requires_grad_(), w = ones(place) * 0.999;
  Eager eager{place};
  for (int r = 0; r < rounds; ++r) eager.round(x, w);
  Traced traced{place};
  for (int r = 0; r < rounds; ++r) traced.round(x, w);
  std::vector<double> unlocated, located;
  for (int r = 0; r < rounds; ++r) {
    rg::Tensor y = x, z = x;
    located.push_back(ns_of(place, [&] { extend(y, w); }));
    unlocated.push_back(ns_of(place, [&] { extend_without_location(z, w); }));
  }
  const double replay = median(traced.replay), nodes = traced.nodes_per_record();
  Line()
      .text("device", place.name())
      .number("forward_ns", median(eager.forward), 1)
      .number("record_ns", median(eager.record), 1)
      .number("backward_ns", median(eager.backward), 1)
      .number("replay_ns", replay, 1)
      .number("replay_ns_per_node", replay / nodes, 1)
      .number("capture_us_per_node", median(traced.capture) / nodes / 1000, 3)
      .number("location_ns", median(located) - median(unlocated), 1)
      .print();
}

void measure_replay(const Place& place, const std::string& name, const Options& options) {
  const auto model = make_model(name, options.size, rg::kFloat32, place.device());
  rg::optim::AdamW optimizer(model->parameters());
  auto step = rg::compile_step([&] {
    optimizer.zero_grad();
    const rg::Tensor loss = model->loss();
    loss.backward();
    optimizer.step();
    return loss;
  });
  const auto run = [&] { step(); };
  const auto us_since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  };
  for (int i = 0; i < 3; ++i) {
    run();
    place.settle();
  }
  const rg::LaunchStats before = step.stats().launches;
  std::vector<double> launch, alone;
  for (int r = 0; r < options.rounds; ++r) {
    place.synchronize();
    const auto begin = Clock::now();
    run();
    launch.push_back(us_since(begin));
    place.synchronize();
    alone.push_back(us_since(begin));
  }
  const rg::LaunchStats after = step.stats().launches;
  const auto each = [&](int64_t n) { return static_cast<double>(n) / options.rounds; };
  const int samples = std::min(options.rounds, 15);
  Line()
      .text("bench", "replay")
      .text("device", place.name())
      .text("model", name)
      .number("launch_us", median(launch), 1)
      .number("alone_us", median(alone), 1)
      .number("stream_us", median_seconds(place, run, samples) * 1e6, 1)
      .count("segments", after.segments)
      .number("graph_launches", each(after.graph_launches - before.graph_launches), 2)
      .number("launches", each(after.launches - before.launches), 2)
      .number("copies", each(after.copies - before.copies), 2)
      .print();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  CLI::App app("Cost of the engine itself");
  app.add_option("--rounds", options.rounds, "to take the median of")->check(CLI::PositiveNumber);
  app.add_option("--batch", options.size.batch, "sequences or images of a replayed step")
      ->check(CLI::PositiveNumber);
  return bench::run_program(app, argc, argv, [&](const bench::Place& place) {
    rg::cpu::set_num_threads(1);
    rg::manual_seed(0);
    if (!place.is_cpu())
      for (const char* model : {"mlp", "gpt-char"}) bench::measure_replay(place, model, options);
    bench::measure_chain(place, options.rounds);
  });
}
