// Random graphs, planned for an executor that records launches, give in each run the same as a plan without graphs, bit
// for bit: with inputs that stay, move or change their layout, results that are released or kept, numbers that change,
// recordings that fail, and hooks in between, which keep their arguments.
#include <catch2/catch.hpp>

#include "engine/each_field.h"
#include "ir/passes/pipeline.h"
#include "ir/replay.h"
#include "retrograd/retrograd.h"
#include "rewrites/rewrites.h"
#include "tests/fuzz/random.h"
#include "tests/ir/passes/random_graph.h"
#include "tests/ir/passes/recording_executor.h"
#include "tests/same_bits.h"
#include "tracer/plan/run.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;
using Kind = rg::ir::Input::Kind;

namespace {

using rg::testing::same_bits;

class Runs {
 public:
  Runs(uint64_t seed, rg::LaunchStats& stats)
      : random_(seed), graph_(random_graph::make(seed)), stats_(stats) {}

  /// Only graphs whose inputs are tensors and hooks; and none whose run is an error.
  void run() {
    for (const rg::ir::Input& i : graph_.inputs())
      if (i.kind != Kind::tensor && i.kind != Kind::hook) return;
    if (random_.chance(0.5)) rg::ir::run_passes(graph_, {.input = passes()});
    if (random_.chance(0.5)) make_numbers();
    for (int32_t id = 0; id < graph_.symbols.size(); ++id) numbers_.push_back(graph_.symbols.expr(id).hint);
    rg::RecordingExecutor recording;
    if (random_.chance(0.2)) recording.launches_to_failure = 1 + static_cast<int>(random_.below(12));
    const rg::Plan plain = plan_for(rg::cpu_executor(), {}), started = plan_for(recording, 0);
    for (const rg::ir::Input& input : graph_.inputs()) bindings_.push_back(binding(input));
    for (int i = 0; i < 8; ++i) {
      INFO("run " << i << " of\n" << graph_.print() << started.segments_text());
      change();
      const auto expected = results(plain), found = results(started);
      REQUIRE(expected.has_value() == found.has_value());
      if (!expected) return;
      for (size_t k = 0; k < expected->size(); ++k) REQUIRE(same_bits((*expected)[k], (*found)[k]));
      if (random_.chance(0.4)) kept_.push_back({*expected, *found});
    }
    for (const auto& [a, b] : kept_)  // no later run has written to them
      for (size_t k = 0; k < a.size(); ++k) REQUIRE(same_bits(a[k], b[k]));
    stats_.add(started.launch_stats());
  }

 private:
  static rg::ir::PassInput passes() {
    rg::ir::PassInput input = rg::rewrites::all();
    input.executor = &rg::cpu_executor();
    return input;
  }
  // Some numbers of attributes become numbers of the run.
  void make_numbers() {
    for (const rg::ir::Node& node : graph_.nodes())
      rg::ir::for_each_field(*node.op, node.attrs, [&](auto, rg::Scalar& v) {
        if (v.is_symbolic() || v.number().kind != rg::Number::Kind::Float || random_.chance(0.7)) return;
        v = rg::Scalar::symbol(graph_.symbols.add_symbol(v.number()), v.number());
      });
  }
  rg::Plan plan_for(rg::Executor& executor, std::optional<int64_t> waste) const {
    return rg::Plan({.graph = graph_, .values = numbers_, .executor = executor, .arena_waste = waste});
  }
  std::optional<Tensors> results(const rg::Plan& plan) {
    try {
      return rg::run_plan(plan, bindings_, numbers_);
    } catch (const rg::Exception&) {
      return {};
    }
  }

  Tensor some(const rg::TensorType& symbolic) {
    const rg::TensorType type = rg::ir::concrete_type(symbolic, numbers_);
    std::vector<double> values(static_cast<size_t>(type.shape.numel().value()));
    for (double& v : values)
      v = rg::is_floating(type.dtype) ? random_.number(-1.5, 1.5) : static_cast<double>(random_.chance(0.5));
    Tensor t = rg::tensor(values, type.shape, {type.dtype});
    if (t.dim() >= 2 && is_turned_) t = rg::transpose(rg::clone(rg::transpose(t, 0, -1)), 0, -1);
    return t;
  }
  rg::ir::Binding binding(const rg::ir::Input& input) {
    rg::ir::Binding b;
    if (input.kind == Kind::tensor) {
      b.tensor = some(graph_.type(input));
      return b;
    }
    b.hook = rg::RefPtr<rg::Hook>::adopt(new rg::Hook);
    b.hook->tensor = [this](const Tensor& g) {
      given_.push_back(g);
      if (given_.size() > 3) given_.erase(given_.begin());
      return rg::is_floating(g.dtype()) ? g * 0.5 : g;
    };
    b.hook->kind = rg::Hook::Kind::post;
    b.hook->post = [this](const Tensors& inputs, const Tensors&) {
      given_ = inputs;
      return inputs;
    };
    for (const rg::ir::Node& n : graph_.nodes())
      if (n.handle == static_cast<int32_t>(bindings_.size()) && n.operands == 1 && n.results == 1)
        b.hook->kind = rg::Hook::Kind::tensor;
    return b;
  }

  // Before a run: other values in place, other tensors, other numbers.
  void change() {
    for (size_t i = 0; i < bindings_.size(); ++i) {
      Tensor& t = bindings_[i].tensor;
      if (!t.defined() || random_.chance(0.3)) continue;
      if (random_.chance(0.5)) {
        gone_.push_back(std::exchange(t, some(graph_.type(graph_.inputs()[i]))));
      } else if (rg::is_floating(t.dtype())) {
        t.mul_(0.75);
      }
    }
    if (gone_.size() > 4) gone_.clear();  // addresses are reused
    for (rg::Number& n : numbers_)
      if (n.kind == rg::Number::Kind::Float && random_.chance(0.3)) n = rg::Number::of(n.as_double() * 0.5);
  }

  fuzz::Random random_;
  rg::ir::Graph graph_;
  rg::LaunchStats& stats_;
  const bool is_turned_ = random_.chance(0.2);
  std::vector<rg::Number> numbers_;
  std::vector<rg::ir::Binding> bindings_;
  Tensors given_, gone_;
  std::vector<std::pair<Tensors, Tensors>> kept_;
};

}  // namespace

TEST_CASE("started graphs give what their steps give") {
  rg::LaunchStats stats;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    INFO("seed " << seed);
    Runs(seed, stats).run();
  }
  CAPTURE(stats.graph_launches, stats.recordings, stats.updates, stats.copies, stats.given_up,
          stats.launches);
  CHECK(stats.graph_launches > 1000);
  CHECK(stats.copies > 100);
  CHECK(stats.updates > 100);
  CHECK(stats.given_up > 50);
}
