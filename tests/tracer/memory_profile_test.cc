// The memory that a backward holds at each of its nodes, with and without pairs of saved-tensor hooks, eager and
// replayed from a captured graph.
//
// The model is a chain of kLayers layers h = gelu(mm(h, w)): mm saves its input h, gelu its input u. Probes read the
// live bytes: tensor hooks of every u and h, before the rule that receives their gradients, and post-hooks of every
// record, after it. The bytes are tensor data as requested, less those that were live before the forward (parameters,
// input). `memory_profile_test "[.table]"` prints the table of docs/memory.md.
#include <stdlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "hooks/recompute.h"
#include "retrograd/retrograd.h"
#include "tests/own_folder.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

constexpr int kLayers = 6;
constexpr int64_t kRows = 256, kWidth = 64, kActivation = kRows * kWidth * 4, kWeight = kWidth * kWidth * 4;

using rg::testing::OwnFolder;

int64_t live() { return rg::memory::stats().live_bytes; }

struct Reading {
  std::string at;
  int64_t bytes;
  bool operator==(const Reading&) const = default;
};

struct Profile {
  int64_t forward = 0;            // after the forward
  std::vector<Reading> readings;  // in the order of the backward
  int64_t peak = 0;               // during the backward
  int64_t after = 0;
  Tensors gradients;

  std::optional<int64_t> at(const std::string& place) const {
    const auto found = std::ranges::find(readings, place, &Reading::at);
    return found == readings.end() ? std::optional<int64_t>() : found->bytes;
  }
};

struct Model {
  Tensors weights;
  Tensor input;
  OwnFolder folder;

  Model() {
    rg::manual_seed(7);
    input = rg::randn({kRows, kWidth});
    for (int i = 0; i < kLayers; ++i)
      weights.push_back((rg::randn({kWidth, kWidth}) * 0.15).requires_grad_());
  }
};

enum class Pair { none, half, int8, file, recompute };
constexpr Pair kPairs[] = {Pair::none, Pair::half, Pair::int8, Pair::file, Pair::recompute};
const char* name_of(Pair pair) {
  constexpr const char* names[] = {"no hooks", "half", "int8", "file", "recompute"};
  return names[static_cast<size_t>(pair)];
}

rg::RefPtr<rg::SavedTensorHooks> hooks_of(Pair pair, const Model& model) {
  switch (pair) {
    case Pair::half: return rg::save_as_half(model.weights);
    case Pair::int8: return rg::save_as_int8(model.weights);
    case Pair::file: return rg::save_to_file(model.folder.path, model.weights);
    default: return {};
  }
}

// mm(h, w) with h dropped: it is made again from the u that gelu saved.
Tensor mm_dropping(const Tensor& h, const Tensor& u, const Tensor& w) {
  rg::SavedTensorHooksGuard guard(rg::recompute(h, [u] { return rg::gelu(u); }));
  return rg::mm(h, w);
}

class Probes {
 public:
  Probes(Profile& profile, int64_t base) : profile_(profile), base_(base) {}
  void on_weight(const Tensor& w, const std::string& name) {
    handles_.push_back(
        w.register_hook([=, this](const Tensor&) { return read("gradient of " + name), Tensor(); }));
    handles_.push_back(
        w.register_post_accumulate_grad_hook([=, this](const Tensor&) { read("accumulated " + name); }));
  }
  void on_result(const Tensor& t, const std::string& name) {
    t.register_hook([=, this](const Tensor&) { return read("gradient of " + name), Tensor(); });
    t.grad_fn().register_prehook(
        [=, this](const Tensors&) { return read("before the rule of " + name), Tensors(); });
    t.grad_fn().register_hook(
        [=, this](const Tensors&, const Tensors&) { return read("after the rule of " + name), Tensors(); });
  }
  ~Probes() {
    for (rg::HookHandle& handle : handles_) handle.remove();
  }

 private:
  void read(const std::string& at) { profile_.readings.push_back({at, live() - base_}); }
  Profile& profile_;
  int64_t base_;
  std::vector<rg::HookHandle> handles_;  // of the weights, which outlive the graph
};

Tensor forward(const Model& model, Pair pair, Probes& probes) {
  const auto hooks = hooks_of(pair, model);
  std::optional<rg::SavedTensorHooksGuard> guard;
  if (hooks) guard.emplace(hooks);
  Tensor h = model.input, u;
  for (int i = 0; i < kLayers; ++i) {
    const Tensor& w = model.weights[static_cast<size_t>(i)];
    u = pair == Pair::recompute && i > 0 ? mm_dropping(h, u, w) : rg::mm(h, w);
    probes.on_weight(w, "w" + std::to_string(i + 1));
    probes.on_result(u, "u" + std::to_string(i + 1));
    h = rg::gelu(u);
    probes.on_result(h, "h" + std::to_string(i + 1));
  }
  return rg::sum(h);
}

// `compiled` null: eager.
Profile profile_of(const Model& model, Pair pair, rg::CompiledBackward* compiled) {
  Profile profile;
  for (const Tensor& w : model.weights) w.set_grad({});
  const int64_t base = live();
  Probes probes(profile, base);
  Tensor loss = forward(model, pair, probes);
  profile.forward = live() - base;
  rg::memory::reset_peak();
  if (compiled)
    (*compiled)(loss);
  else
    loss.backward();
  profile.peak = rg::memory::stats().peak_bytes - base;
  loss.reset();
  profile.after = live() - base;
  for (const Tensor& w : model.weights) profile.gradients.push_back(w.grad().clone());
  return profile;
}

bool same_bits(const Tensors& a, const Tensors& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].raw_data(), b[i].raw_data(), static_cast<size_t>(a[i].nbytes())) != 0) return false;
  return a.size() == b.size();
}

// The part of the forward that is held when the gradient of h_i has arrived: the inputs of i calls of mm and of gelu.
// The first of these is the model's input, which exists anyway, and h_i itself is not among them.
int64_t held(Pair pair, int layer) {
  switch (pair) {
    case Pair::half: return layer * kActivation;  // 2 i halves
    case Pair::int8:
      return 2 * layer * (kActivation + kActivation / rg::kInt8Block * 4) / 4;  // bytes, and a step a block
    case Pair::file: return 0;
    case Pair::recompute: return layer * kActivation;  // the inputs of gelu
    default: return (2 * layer - 1) * kActivation;
  }
}

}  // namespace

TEST_CASE("at every node a replay holds what the eager backward holds, and nowhere more") {
  const Model model;
  for (const Pair pair : kPairs) {
    rg::CompiledBackward compiled = rg::compile_backward();
    const Profile eager = profile_of(model, pair, nullptr);
    REQUIRE(eager.readings.size() == 8 * kLayers);
    for (int run = 0; run < 3; ++run) {
      INFO(name_of(pair) << ", run " << run);
      const Profile traced = profile_of(model, pair, &compiled);
      REQUIRE(traced.readings.size() == eager.readings.size());
      for (size_t i = 0; i < eager.readings.size(); ++i) {
        INFO(eager.readings[i].at);
        CHECK(traced.readings[i].at == eager.readings[i].at);
        // An eager backward drops saved tensors when the rule returns, a replay after their last use. At a post-hook
        // a replay may hold less, but never more.
        if (eager.readings[i].at.starts_with("after"))
          CHECK(traced.readings[i].bytes <= eager.readings[i].bytes);
        else
          CHECK(traced.readings[i].bytes == eager.readings[i].bytes);
      }
      CHECK(traced.forward == eager.forward);
      CHECK(traced.after == eager.after);
      CHECK(traced.peak <= eager.peak);
      CHECK(same_bits(traced.gradients, eager.gradients));
    }
    CHECK(compiled.stats().captures == 1);
  }
}

TEST_CASE("memory goes as the backward proceeds: layer by layer, what was saved for it") {
  const Model model;
  rg::CompiledBackward compiled = rg::compile_backward();
  for (const Pair pair : kPairs) {
    for (const bool traced : {false, true}) {
      const Profile p = profile_of(model, pair, traced ? &compiled : nullptr);
      INFO(name_of(pair) << (traced ? ", traced" : ", eager"));
      constexpr int64_t kScalars = 8;  // the loss and its gradient
      CHECK(p.forward == held(pair, kLayers) + 4);
      for (int i = kLayers - 1; i >= 1; --i) {  // the gradient of h6 is one number, expanded
        INFO("layer " << i);
        const int64_t weights = (kLayers - i) * kWeight;
        CHECK(p.at("gradient of h" + std::to_string(i)) == held(pair, i) + kActivation + weights + kScalars);
      }
      CHECK(p.after == kLayers * kWeight);
    }
  }
}

TEST_CASE("each pair lowers the peak, and changes gradients no more than it says") {
  const Model model;
  const Profile plain = profile_of(model, Pair::none, nullptr);
  int64_t above = plain.peak;
  for (const Pair pair : {Pair::half, Pair::recompute, Pair::int8, Pair::file}) {
    INFO(name_of(pair));
    const Profile p = profile_of(model, pair, nullptr);
    CHECK(p.peak < above);
    above = p.peak;
    const bool is_exact = pair == Pair::recompute || pair == Pair::file;
    CHECK(same_bits(p.gradients, plain.gradients) == is_exact);
  }
}

TEST_CASE("the table of docs/memory.md", "[.table]") {
  const Model model;
  std::vector<Profile> profiles;
  for (const Pair pair : kPairs) {
    rg::CompiledBackward compiled = rg::compile_backward();
    profile_of(model, pair, &compiled);
    profiles.push_back(profile_of(model, pair, &compiled));
  }
  const auto row = [&](const std::string& title, auto bytes) {
    std::printf("| %-24s |", title.c_str());
    for (const Profile& p : profiles) std::printf(" %9.0f |", static_cast<double>(bytes(p)) / 1024);
    std::printf("\n");
  };
  std::printf("| %-24s |", "KiB");
  for (const Pair pair : kPairs) std::printf(" %9s |", name_of(pair));
  std::printf("\n|---|---|---|---|---|---|\n");
  row("after the forward", [](const Profile& p) { return p.forward; });
  for (int i = kLayers; i >= 1; --i) {
    const std::string h = "gradient of h" + std::to_string(i), u = "gradient of u" + std::to_string(i);
    row(h, [&](const Profile& p) { return *p.at(h); });
    row(u, [&](const Profile& p) { return *p.at(u); });
  }
  row("after the backward", [](const Profile& p) { return p.after; });
  row("peak", [](const Profile& p) { return p.peak; });
}
