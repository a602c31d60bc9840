// Re-entrancy: backwards inside hooks, inside unpack and inside a function's backward; hooks that add and
// remove hooks while they run.
//
// World builds the same small graph each step, on leaves that stay. Every hook logs its call and then performs an
// action chosen by a seeded generator: adds a hook anywhere, removes one (possibly itself), replaces itself, runs a
// backward of another graph or through a part of this one, drops a tensor, scales the gradient. The generator is used
// in the order of events, so eager and traced runs agree in events and bits only as long as they agree in everything.
#include <catch2/catch.hpp>
#include <optional>
#include <random>

#include "retrograd/retrograd.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;
using rg::testing::same_bits;

namespace {

constexpr int kNodes = 6, kLeaves = 3, kMaxHooks = 200;

class World {
 public:
  World(uint32_t seed, rg::CompiledBackward* compiled) : random_(seed), compiled_(compiled) {
    for (int i = 0; i < kLeaves; ++i)
      leaves_.push_back(rg::tensor({0.3 + i, -0.7, 0.2 * i - 1}).requires_grad_());
  }

  void step() {
    nodes_.clear();
    retain_ = random() % 2;
    build();
    for (uint32_t n = random() % 6; n > 0; --n) add_somewhere();
    log("step");
    Tensor loss = rg::sum(nodes_.back() * 0.5);
    if (random() % 2) nodes_.clear();
    backward(loss, retain_);
    if (std::exchange(retain_, false)) backward(loss, false);
    for (const Tensor& leaf : leaves_) {
      std::string text = "gradient";
      for (double v : leaf.grad().to_vector()) text += " " + std::to_string(v);
      log(text);
      gradients.push_back(leaf.grad().clone());
      leaf.set_grad({});
    }
  }

  std::vector<std::string> events;
  Tensors gradients;

 private:
  uint32_t random() { return static_cast<uint32_t>(random_()); }
  void log(std::string event) { events.push_back(std::move(event)); }

  void build() {
    std::optional<rg::SavedTensorHooksGuard> guard;
    if (random() % 2)
      guard.emplace([](const Tensor& t) { return t; },
                    [this](const Tensor& t) { return log("unpack"), act({}), t; });
    const Tensor &a = leaves_[0], &b = leaves_[1], &c = leaves_[2];
    nodes_.push_back(a * b);
    nodes_.push_back(rg::sin(nodes_[0]));
    nodes_.push_back(nodes_[1] * c);
    nodes_.push_back(rg::exp(nodes_[2] * 0.1));
    nodes_.push_back(nodes_[3] + nodes_[0] * a);
    nodes_.push_back(nodes_[4] * nodes_[4] - rg::cos(nodes_[1]));
  }

  void backward(const Tensor& loss, bool retain = false) {
    if (compiled_)
      compiled_->backward({loss}, {}, retain);
    else
      rg::autograd::backward({loss}, {}, retain);
  }

  // A hook at a random place; of a tensor that is still there.
  void add_somewhere() {
    const uint32_t place = random(), kind = random() % 5;
    if (hooks_.size() >= kMaxHooks) return;
    if (kind == 4 || nodes_.empty()) return add_to_leaf(place % kLeaves, random() % 2);
    const Tensor& t = nodes_[place % nodes_.size()];
    if (t.defined()) add_to_node(t, std::to_string(place % nodes_.size()), kind);
  }

  void add_to_leaf(uint32_t i, bool tensor_hook) {
    const size_t id = next_id(), which = i;
    const std::string name = std::to_string(id) + " leaf " + std::to_string(which);
    if (tensor_hook) {
      keep(id, leaves_[i].register_hook([=, this](const Tensor& g) {
        return called(name), scaled(g, act({id, this, which}));
      }));
    } else {
      keep(id, leaves_[i].register_post_accumulate_grad_hook([=, this](const Tensor&) {
        called(name + " accumulated"), act({id, this, which});
      }));
    }
  }

  void add_to_node(const Tensor& t, const std::string& node, uint32_t kind) {
    const size_t id = next_id();
    const std::string name = std::to_string(id) + " node " + node;
    if (kind == 0) {
      keep(id, t.register_hook([=, this](const Tensor& g) {
        return called(name), scaled(g, act({id, this, {}}));
      }));
    } else if (kind == 3) {
      keep(id, t.register_hook([factor = 1 + 0.25 * static_cast<double>(id % 3)](const Tensor& g) {
                  return g * factor;
                }).set_traceable());
    } else if (kind == 1) {
      keep(id, t.grad_fn().register_prehook([=, this](const Tensors& g) {
        called(name + " pre");
        return Tensors{scaled(g[0], act({id, this, {}}))};
      }));
    } else {
      keep(id, t.grad_fn().register_hook([=, this](const Tensors& g, const Tensors&) {
        called(name + " post");
        const double factor = act({id, this, {}});
        Tensors changed;
        for (const Tensor& each : g) changed.push_back(scaled(each, factor));
        return changed;
      }));
    }
  }

  size_t next_id() {
    hooks_.emplace_back();
    log("added " + std::to_string(hooks_.size() - 1));
    return hooks_.size() - 1;
  }
  void remove(size_t id) {
    log("removed " + std::to_string(id));
    hooks_[id].remove();
    hooks_[id] = {};  // now only the list holds the hook
  }
  void keep(size_t id, rg::HookHandle handle) { hooks_[id] = std::move(handle); }
  void called(const std::string& name) { log(std::string(static_cast<size_t>(depth_), ' ') + name); }
  static Tensor scaled(const Tensor& g, double factor) {
    return factor == 1 || !g.defined() ? Tensor() : g * factor;
  }

  struct Self {
    std::optional<size_t> id;
    World* world = nullptr;
    std::optional<size_t> leaf;
  };
  // Does something, and returns what to scale the gradient with.
  double act(const Self& self) {
    const uint32_t what = random() % 12, which = random();
    if (depth_ > 2) return 1;
    switch (what) {
      case 0: add_somewhere(); break;
      case 1:
        if (!hooks_.empty()) remove(which % hooks_.size());
        break;
      case 2:
        if (self.id) remove(*self.id);
        break;
      case 3:
        if (self.id && self.leaf) add_to_leaf(static_cast<uint32_t>(*self.leaf), which % 2);
        if (self.id) remove(*self.id);
        break;
      case 4: nested_elsewhere(which); break;
      case 5: nested_here(which); break;
      case 6:
        if (!nodes_.empty()) nodes_[which % nodes_.size()].reset();
        break;
      case 7: return 0.5;
      case 8: return -1.25;
      default: break;
    }
    return 1;
  }

  // Another graph, on leaves of its own, with a hook that acts, too.
  void nested_elsewhere(uint32_t which) {
    ++depth_;
    rg::EnableGradGuard gradients_on;
    const Tensor z = rg::tensor({0.1 * (which % 7), 1.5}).requires_grad_();
    const Tensor y = z * z;
    y.register_hook([this](const Tensor& g) { return called("elsewhere"), scaled(g, act({})); });
    backward(rg::sum(y * 2.0));
    log(std::to_string(z.grad().to_vector()[0]));
    --depth_;
  }

  // From a node of this graph down, when it is retained.
  void nested_here(uint32_t which) {
    if (!retain_ || nodes_.empty() || depth_ > 0) return;
    const Tensor node = nodes_[which % nodes_.size()];
    if (!node.defined()) return;
    ++depth_;
    rg::EnableGradGuard gradients_on;
    log("here");
    backward(rg::sum(node), true);
    --depth_;
  }

  std::mt19937 random_;
  rg::CompiledBackward* compiled_;
  Tensors leaves_, nodes_;
  std::vector<rg::HookHandle> hooks_;
  bool retain_ = false;
  int depth_ = 0;
};

}  // namespace

TEST_CASE(
    "random schedules of hooks that add and remove hooks: eager and traced agree in every event and "
    "bit") {
  const rg::memory::Stats before = rg::memory::stats();
  int64_t events = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    INFO("seed " << seed);
    rg::CompiledBackward compiled;
    World eager(seed, nullptr), traced(seed, &compiled);
    for (int step = 0; step < 4; ++step) {
      INFO("step " << step);
      eager.step();
      traced.step();
      REQUIRE(traced.events == eager.events);
      REQUIRE(traced.gradients.size() == eager.gradients.size());
      for (size_t i = 0; i < eager.gradients.size(); ++i)
        REQUIRE(same_bits(traced.gradients[i], eager.gradients[i]));
    }
    events += static_cast<int64_t>(eager.events.size());
  }
  CHECK(events > 50000);
  CHECK(rg::memory::stats().live_bytes == before.live_bytes);
  CHECK(rg::memory::stats().live_tensors == before.live_tensors);
}
