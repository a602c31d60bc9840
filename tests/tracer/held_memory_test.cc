// What live bytes are held for: tracer/observe/held_memory.h, by hand and of real steps, and the areas of a page.
#include <catch2/catch.hpp>

#include "ir/text.h"
#include "ops/all_ops.h"
#include "tests/tracer/budgeted.h"
#include "tracer/observe/held_memory.h"

namespace rg = retrograd;
using namespace budgeted;
using rg::HeldBytes;
using rg::HeldFor;
using rg::Profile;

namespace {

int64_t of(const HeldBytes& held, HeldFor kind) { return held[static_cast<size_t>(kind)]; }

// The most that is held for one purpose after a step.
int64_t most(const std::vector<HeldBytes>& all, HeldFor kind) {
  int64_t found = 0;
  for (const HeldBytes& held : all) found = std::max(found, of(held, kind));
  return found;
}

// Of the second call of a step with a budget.
Profile profile_of(const Net& net, rg::MemoryBudget budget) {
  const Tensor x = input_of(net);
  Training training(net);
  const Step step = training.compiled(Form::step, budget);
  step(x);
  Profile profile;
  rg::ProfileScope scope(profile);
  step(x);
  return profile;
}

}  // namespace

TEST_CASE("what is held, by hand") {
  // c is saved, a and b are not; e is a computed again; d and f are gradients.
  const auto graph = std::make_shared<const rg::ir::Graph>(rg::ir::parse(R"(graph @step(%0: f32[256]) {
  %1 = exp %0 : f32[256]
  %2 = sin %1 : f32[256]
  %3 = exp %2 : f32[256]
  %4 = mul %3, %3 : f32[256]  // exp#0 rule
  %5 = exp %0 : f32[256]
  %6 = mul %4, %5 : f32[256]  // sin#1 rule
  return %6
}
)",
                                                                         rg::ops::find_op));
  constexpr int64_t kBytes = 1024, kBefore = 5000;
  Profile::Run run{.graph = graph,
                   .records = {},
                   .steps = {},
                   .begin = 0,
                   .end = 60,
                   .live_bytes = kBefore,
                   .numbers = {}};
  const int64_t live[] = {1, 1, 1, 1, 2, 1};
  for (uint32_t n = 0; n < 6; ++n)
    run.steps.push_back({n, false, 10 * n, 10 * n + 5, kBefore + kBytes * live[n]});
  const std::vector<HeldBytes> held = rg::held_memory(run);
  const std::vector<HeldBytes> expected{{kBefore, 0, 0, 0, kBytes},      {kBefore, 0, 0, 0, kBytes},
                                        {kBefore, kBytes, 0, 0, 0},      {kBefore, 0, 0, kBytes, 0},
                                        {kBefore, 0, kBytes, kBytes, 0}, {kBefore, 0, 0, kBytes, 0}};
  CHECK(held == expected);
  // Where less is measured than there was before, what was there goes first; unended steps do not count.
  run.steps.back().live_bytes = kBefore - 100;
  run.steps.front().end = 0;
  const std::vector<HeldBytes> less = rg::held_memory(run);
  REQUIRE(less.size() == 5);
  CHECK(less.back() == HeldBytes{kBefore - 100 - kBytes, 0, 0, kBytes, 0});
}

TEST_CASE("what the steps of a training hold") {
  constexpr int kLayers = 12;
  constexpr int64_t kBytes = 64 * 32 * 4;
  const Net net = chain(kLayers, 64, 32);
  for (const double part : {1.0, 0.7}) {
    const Profile profile = profile_of(net, rg::MemoryBudget::fraction(part));
    REQUIRE(profile.runs().size() == 1);
    const Profile::Run& run = profile.runs()[0];
    const std::vector<HeldBytes> held = rg::held_memory(run);
    REQUIRE(held.size() == run.steps.size());
    for (size_t i = 0; i < held.size(); ++i) {
      int64_t sum = 0;
      for (int64_t bytes : held[i]) {
        CHECK(bytes >= 0);
        sum += bytes;
      }
      CHECK(sum == run.steps[i].live_bytes);
    }
    const int64_t saved = most(held, HeldFor::saved), again = most(held, HeldFor::recomputed);
    CHECK(most(held, HeldFor::gradients) >= kBytes);
    if (part == 1) {
      CHECK(saved >= (kLayers - 1) * kBytes);
      CHECK(again <= 4);  // the loss
    } else {
      CHECK(saved < (kLayers - 1) * kBytes);
      CHECK(again >= kBytes);
    }
    CHECK(of(held.back(), HeldFor::saved) == 0);
    const std::string page = rg::html_page(*run.graph, &profile);
    for (std::string_view name : rg::kHeldFor)
      CHECK(page.find("<polygon class=\"area " + std::string(name) + "\"") != std::string::npos);
  }
}
