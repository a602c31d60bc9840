// Profiles of traced backwards: tracer/observe/profile.h. Not tested here: their Chrome traces (chrome_trace_test.cc),
// their display on a page (page_test.cc).
#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "retrograd/retrograd.h"
#include "tests/tracer/profiled_model.h"
#include "tracer/observe/profile.h"

namespace rg = retrograd;
using nlohmann::json;
using rg::Profile;
using rg::ProfileScope;
using rg::Tensor;
using rg::testing::Model;

TEST_CASE("a profile has the steps of a plan, in order") {
  Model model;
  rg::CompiledBackward backward = rg::compile_backward();
  backward(model.loss());
  Profile profile;
  {
    ProfileScope scope(profile);
    for (int step = 0; step < 2; ++step) backward(model.loss());
  }
  backward(model.loss());  // not profiled
  REQUIRE(profile.runs().size() == 2);
  for (const Profile::Run& run : profile.runs()) {
    CHECK(run.graph == backward.graph());
    int64_t before = run.begin;
    uint32_t next = 0;
    for (const Profile::Step& s : run.steps) {
      CHECK(before <= s.begin);
      CHECK(s.begin <= s.end);
      CHECK(s.live_bytes > 0);
      before = s.end;
      if (s.frees) continue;
      while (next < s.node) CHECK(run.graph->nodes()[next++].op->name == "unpack");  // folded into this step
      CHECK(s.node == next++);
    }
    CHECK(next == run.graph->nodes().size());
    CHECK(before <= run.end);
  }
  profile.clear();
  CHECK(profile.runs().empty());
  CHECK(profile.calls().empty());
}

TEST_CASE("live bytes follow what a replay holds") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = rg::full({1000}, 0.5).requires_grad_();
  const Tensor held = rg::full({1000}, 1.0);
  backward(rg::sum(rg::exp(x)));  // after it x.grad has its memory
  const Tensor loss = rg::sum(rg::exp(x));
  Profile profile;
  {
    ProfileScope scope(profile);
    backward(loss);
  }
  const Profile::Run& run = profile.runs().at(0);
  CHECK(run.steps.back().live_bytes ==
        rg::memory::stats().live_bytes + 4);  // the cotangent of the loss was still there
  int64_t highest = 0;
  for (const Profile::Step& s : run.steps) highest = std::max(highest, s.live_bytes);
  CHECK(highest >= run.live_bytes);
  CHECK(highest <= run.live_bytes + 3 * 4000);
}

TEST_CASE("profiling changes neither the gradients nor what is captured") {
  Model plain, seen;
  rg::CompiledBackward first = rg::compile_backward(), second = rg::compile_backward();
  Profile profile;
  for (int step = 0; step < 3; ++step) {
    first(plain.loss());
    ProfileScope scope(profile);
    second(seen.loss());
  }
  CHECK(std::memcmp(plain.w.grad().raw_data(), seen.w.grad().raw_data(), 16) == 0);
  CHECK(first.graph()->nodes().size() == second.graph()->nodes().size());
  CHECK(second.stats().captures == 1);
  CHECK(second.stats().hits == 2);
}

TEST_CASE("the nodes of a rule lead to the forward call of its record") {
  Model model;
  rg::CompiledBackward backward = rg::compile_backward();
  Profile profile;
  {
    ProfileScope scope(profile);
    backward(model.loss());
  }
  std::map<uint64_t, Profile::Call> made;
  for (const Profile::Call& c : profile.calls())
    if (c.record != Profile::kNoRecord) made[c.record] = c;
  const Profile::Run& run = profile.runs().at(0);
  std::vector<std::string> ops;
  for (const Profile::ForwardRecord& r : run.records) ops.emplace_back(r.op);
  CHECK(ops == std::vector<std::string>{"sum", "mul", "exp", "mm"});
  int linked = 0;
  for (const rg::ir::Node& node : run.graph->nodes()) {
    if (node.origin < 0 || run.graph->origin(node.origin).part != "rule" || node.op->name == "accumulate")
      continue;
    const rg::ir::Origin& origin = run.graph->origin(node.origin);
    const Profile::Call& call = made.at(run.records.at(origin.ordinal).seq);
    CHECK(call.op == origin.op);
    CHECK(call.where.line == node.where.line);
    CHECK(call.end <= run.begin);
    ++linked;
  }
  CHECK(linked > 5);
}

TEST_CASE("a backward inside a hook is a run of its own, within the step of the hook") {
  rg::CompiledBackward outer = rg::compile_backward(), inner = rg::compile_backward();
  const Tensor x = rg::full({3}, 0.5).requires_grad_(), y = rg::full({5}, 0.5).requires_grad_();
  const Tensor z = rg::exp(x);
  z.register_hook([&](const Tensor& g) {
    rg::EnableGradGuard records;
    inner(rg::sum(rg::exp(y)));
    return g * 2.0;
  });
  const Tensor loss = rg::sum(z);
  Profile profile;
  {
    ProfileScope scope(profile);
    outer(loss);
  }
  REQUIRE(profile.runs().size() == 2);
  const Profile::Run &o = profile.runs()[0], &i = profile.runs()[1];
  CHECK(o.graph == outer.graph());
  CHECK(i.graph == inner.graph());
  CHECK(o.steps.back().node + 1 == o.graph->nodes().size());
  CHECK(i.steps.back().node + 1 == i.graph->nodes().size());
  for (const Profile::Step& s : o.steps) {
    const bool is_hook = o.graph->nodes()[s.node].op->name == "hook" && !s.frees;
    CHECK((s.begin <= i.begin && i.end <= s.end) == is_hook);
  }
  CHECK(profile.calls().size() == 1);  // the gradient of the loss; what the hook does is part of its step
  CHECK(json::accept(profile.chrome_trace()));
}

TEST_CASE("a hook that throws ends its step and its run") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = rg::full({3}, 0.5).requires_grad_();
  Profile profile;
  ProfileScope scope(profile);
  for (bool fails : {true, false}) {
    const Tensor z = rg::exp(x);
    z.register_hook([&](const Tensor& g) {
      if (fails) throw std::logic_error("no");
      return g;
    });
    if (fails)
      CHECK_THROWS_AS(backward(rg::sum(z)), std::logic_error);
    else
      backward(rg::sum(z));
  }
  REQUIRE(profile.runs().size() == 2);
  CHECK(profile.runs()[0].steps.size() < profile.runs()[1].steps.size());
  CHECK(profile.runs()[0].steps.back().end > 0);
  CHECK(profile.runs()[0].end > 0);
  CHECK(json::accept(profile.chrome_trace()));
}

TEST_CASE("a backward that is replayed node by node is a run without steps") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = rg::full({3}, 0.5).requires_grad_();
  Profile profile;
  {
    ProfileScope scope(profile);
    const Tensor g = backward.grad({rg::sum(rg::exp(x))}, {x}, {}, {}, true)[0];
    CHECK(g.requires_grad());
  }
  REQUIRE(profile.runs().size() == 1);
  CHECK(profile.runs()[0].steps.empty());
  CHECK(json::accept(profile.chrome_trace()));
}

TEST_CASE("of nested scopes the innermost collects") {
  Model model;
  rg::CompiledBackward backward = rg::compile_backward();
  Profile outer, inner;
  ProfileScope first(outer);
  backward(model.loss());
  {
    ProfileScope second(inner);
    backward(model.loss());
  }
  backward(model.loss());
  CHECK(outer.runs().size() == 2);
  CHECK(inner.runs().size() == 1);
}

TEST_CASE("an eager backward is seen as calls") {
  Model model;
  Profile profile;
  {
    ProfileScope scope(profile);
    model.loss().backward();
  }
  CHECK(profile.runs().empty());
  CHECK(
      std::ranges::any_of(profile.calls(), [](const Profile::Call& c) { return c.op == "accumulate_grad"; }));
  CHECK(std::ranges::count_if(profile.calls(),
                              [](const Profile::Call& c) { return c.record != Profile::kNoRecord; }) == 4);
}

TEST_CASE("compiled functions and steps are runs as well, and run as plans under a profile") {
  const Tensor w = rg::ones({100}).requires_grad_(), x = rg::full({100}, 0.5);
  auto f = rg::compile([&](const Tensor& t) { return rg::sum(rg::exp(t * w) * 2.0); });
  auto step = rg::compile_step([&](const Tensor& t) { rg::sum(rg::tanh(t * w)).backward(); });
  f(x).backward();
  step(x);
  Profile profile;
  {
    ProfileScope outer(profile);
    ProfileScope scope(profile);
    f(x).backward();
    step(x);
  }
  CHECK(f.stats().captures == 1);
  REQUIRE(profile.runs().size() == 3);
  CHECK(profile.runs()[0].graph == f.graph());
  CHECK(profile.runs()[1].graph->name == "backward");
  CHECK(profile.runs()[2].graph == step.graph());
  for (const Profile::Run& run : profile.runs()) {
    CHECK(run.end > run.begin);
    std::vector<uint32_t> ran;
    for (size_t i = 0; i < run.steps.size(); ++i) {
      if (run.steps[i].frees) continue;
      const std::vector<uint32_t> nodes = run.nodes_of(i);
      CHECK(nodes.back() == run.steps[i].node);
      ran.insert(ran.end(), nodes.begin(), nodes.end());
    }
    std::vector<uint32_t> all(run.graph->nodes().size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i);
    CHECK(ran == all);
  }
  CHECK(profile.table().find("fused") != std::string::npos);
  CHECK(json::parse(profile.chrome_trace()).contains("traceEvents"));
}
