// Planned peaks with user code (tracer/plan/peak_meter.h): whatever a hook, a pair or an opaque function allocates,
// keeps, frees or returns, the plan's own bytes are as planned, in captured backwards, compiled functions and whole
// steps; and the rest is reported separately.
#include <filesystem>

#include "tests/tracer/peak_model.h"

using namespace retrograd::testing;
namespace rg = retrograd;
using rg::PeakReport;
using rg::PeakMeter;
using rg::RefPtr;
using rg::Tensor;
using rg::Tensors;
using Pair = RefPtr<rg::SavedTensorHooks>;

namespace {

constexpr int64_t kBytes = kPeakRows * kPeakWidth * 4;

struct NamedPair {
  std::string name;
  Pair pair;
};

Pair pair_of(std::function<Tensor(const Tensor&)> pack, std::function<Tensor(const Tensor&)> unpack) {
  return rg::saved_tensor_hooks(std::move(pack), std::move(unpack));
}

// The stock pairs, and pairs that keep their arguments, or return tensors that they still hold.
std::vector<NamedPair> pairs(const Tensors& keep, const std::shared_ptr<Tensors>& held) {
  const std::string folder = std::filesystem::temp_directory_path().string();
  const auto self = [](const Tensor& t) { return t; };
  const auto copy = [](const Tensor& t) { return t.clone(); };
  const auto hold = [held](const Tensor& t) {
    held->push_back(t);
    return t;
  };
  return {{"half", rg::save_as_half(keep)},
          {"fp8", rg::save_as_fp8(keep)},
          {"int8", rg::save_as_int8(keep)},
          {"file", rg::save_to_file(folder, keep)},
          {"host", rg::save_on_cpu(false, keep)},
          {"as it is", pair_of(self, self)},
          {"copies", pair_of(copy, copy)},
          {"held when packed", pair_of(hold, self)},
          {"held when unpacked", pair_of(copy, hold)}};
}

// f() under a watch.
template <class F>
PeakReport watched(const F& f) {
  const PeakMeter watch;
  f();
  return watch.report();
}

struct Network {
  Tensors w = peak_parameters();
  rg::optim::AdamW optimizer{w, {}};
  Tensor operator()(const Tensor& x) const { return peak_loss(x, w); }
  Tensor train(const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = peak_loss(x, w);
    loss.backward();
    optimizer.step();
    return loss;
  }
};

}  // namespace

TEST_CASE("every pair in every mode") {
  for (const bool has_keep : {true, false}) {
    Network net;
    const auto held = std::make_shared<Tensors>();
    const Tensor x = peak_input();
    for (const auto& [name, pair] : pairs(has_keep ? net.w : Tensors(), held)) {
      INFO(name << (has_keep ? ", parameters left alone" : ""));
      rg::SavedTensorHooksGuard guard(pair);
      rg::CompiledBackward backward = rg::compile_backward();
      auto compiled = rg::compile([&](const Tensor& batch) { return net(batch); });
      auto step = rg::compile_step([&](const Tensor& batch) { return net.train(batch); });
      for (int i = 0; i < 3; ++i) {
        INFO("run " << i);
        held->clear();
        check_met(watched([&] { backward(net(x)); }), 1, "traced");
        held->clear();
        check_met(watched([&] { compiled(x).backward(); }), 2, "compiled");
        held->clear();
        check_met(watched([&] { step(x); }), 1, "step");
      }
      CHECK(step.stats().eager + compiled.stats().eager == 0);
    }
  }
}

TEST_CASE("a retained graph keeps what its pair made") {
  const Network net;
  const auto held = std::make_shared<Tensors>();
  const Tensor x = peak_input();
  for (const auto& [name, pair] : pairs(net.w, held)) {
    INFO(name);
    rg::SavedTensorHooksGuard guard(pair);
    rg::CompiledBackward backward = rg::compile_backward();
    auto compiled = rg::compile([&](const Tensor& batch) { return net(batch); });
    const Tensor loss = net(x), value = compiled(x);
    for (int i = 0; i < 3; ++i) {
      INFO("run " << i);
      check_met(watched([&] { backward.backward({loss}, {}, i < 2); }), 1, "traced");
      check_met(watched([&] { value.backward({}, i < 2); }), 1, "compiled");
    }
  }
}

TEST_CASE("what an opaque pair packs is not planned to be held") {
  const auto planned = [](const Pair& pair) {
    Network net;
    const Tensor x = peak_input();
    auto step = rg::compile_step([&](const Tensor& batch) {
      rg::SavedTensorHooksGuard guard(pair ? pair : rg::save_on_cpu(false, net.w));
      return net.train(batch);
    });
    step(x);
    const int64_t before = rg::memory::stats().live_bytes;
    return watched([&] { step(x); }).planned_bytes - before;
  };
  const Network net;
  const auto held = std::make_shared<Tensors>();
  for (const auto& [name, pair] : pairs({}, held)) {
    INFO(name);
    if (pair->traceable) continue;
    CHECK(planned(pair) == planned(nullptr));  // whatever the pair holds is not the plan's
    held->clear();
  }
  rg::optim::SGD optimizer(net.w, {.lr = 0.1});
  auto plain = rg::compile_step([&](const Tensor& batch) {
    const Tensor loss = net(batch);
    loss.backward();
    optimizer.step();
    return loss;
  });
  const Tensor x = peak_input();
  plain(x);
  CHECK(watched([&] { plain(x); }).hook_bytes == 0);
}

TEST_CASE("hooks on gradients") {
  Tensors held;
  const auto keep = [&](const Tensor& g) {
    held.push_back(g);
    return g;
  };
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> hooks = {
      {"looks", [](const Tensor&) { return Tensor(); }},
      {"gives it back", [](const Tensor& g) { return g; }},
      {"holds it", [&](const Tensor& g) { return keep(g), Tensor(); }},
      {"holds what it gives", [&](const Tensor& g) { return keep(g * 2.0); }},
      {"gives a view",
       [](const Tensor& g) {
         return g.view({kPeakRows, kPeakWidth});
       }},
      {"doubles", [](const Tensor& g) { return g * 2.0; }},
      {"gives another layout", [](const Tensor& g) { return g.t().contiguous().t(); }},
      {"gives what it held", [&](const Tensor& g) {
         held.push_back(g * 0.5);
         return held.back();
       }}};
  for (const auto& [name, hook] : hooks) {
    INFO(name);
    const Tensor w = peak_leaf({kPeakRows, kPeakWidth}), v = peak_leaf({kPeakRows, kPeakWidth});
    w.register_hook(hook);
    const auto loss = [&](const Tensor& x) {
      const Tensor y = rg::tanh(x * w) * v, z = rg::exp(y);
      y.register_hook(hook);
      z.register_hook(hook);
      z.retain_grad();
      return rg::sum(z * y);
    };
    const Tensor x = peak_input();
    rg::CompiledBackward backward = rg::compile_backward();
    auto step = rg::compile_step([&](const Tensor& batch) {
      for (const Tensor& p : {w, v}) p.set_grad({});
      const Tensor y = rg::tanh(batch * w) * v, z = rg::exp(y);
      y.register_hook(hook);
      const Tensor value = rg::sum(z * y);
      value.backward();
      return value;
    });
    for (int i = 0; i < 3; ++i) {
      INFO("run " << i);
      held.clear();
      check_met(watched([&] { backward(loss(x)); }), 1, "traced");
      held.clear();
      check_met(watched([&] { step(x); }), 1, "step");
    }
  }
}

TEST_CASE("a retained gradient is a copy of its own") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor w = peak_leaf({kPeakRows, kPeakWidth});
  for (int i = 0; i < 2; ++i) {
    const Tensor y = rg::exp(w), z = rg::sum(rg::sin(y) * y);
    y.retain_grad();
    check_met(watched([&] { backward.backward({z}, {}, true); }), 1, "traced");
    check_met(watched([&] { backward(z); }), 1, "traced");  // added to the first
  }
}

TEST_CASE("an optimizer in a hook after accumulation") {
  const Tensors w = {peak_leaf({kPeakWidth, kPeakWidth}), peak_leaf({kPeakWidth, kPeakWidth})};
  for (const Tensor& p : w)
    p.register_post_accumulate_grad_hook([](const Tensor& leaf) {
      rg::NoGradGuard off;
      leaf.add_(leaf.grad(), -0.1);
      leaf.set_grad({});
    });
  const auto loss = [&](const Tensor& x) {
    return rg::sum(rg::tanh(rg::mm(rg::tanh(rg::mm(x, w[0])), w[1])));
  };
  auto step = rg::compile_step([&](const Tensor& x) {
    const Tensor value = loss(x);
    value.backward();
    return value;
  });
  rg::CompiledBackward backward = rg::compile_backward();
  auto compiled = rg::compile(loss);
  const Tensor x = peak_input();
  for (int i = 0; i < 3; ++i) {
    check_met(watched([&] { step(x); }), 1, "step");
    check_met(watched([&] { backward(loss(x)); }), 1, "traced");
    check_met(watched([&] { compiled(x).backward(); }), 2, "compiled");
  }
}

namespace {

// Holds an argument, a result and more from forward to backward; gives an argument's memory back as a result.
struct Opaque : rg::Function<Opaque> {
  static Tensors forward(rg::AutogradContext* ctx, const Tensor& x, const Tensor& w) {
    const Tensor y = x * w, more = y.clone();
    ctx->save_for_backward({x, w, y, more});
    return {y, x.view({kPeakRows, kPeakWidth})};
  }
  static Tensors backward(rg::AutogradContext* ctx, const Tensors& grads) {
    const Tensors saved = ctx->get_saved_variables();
    return {grads[0] * saved[1] + saved[3], grads[0] * saved[0] + saved[2]};
  }
};

}  // namespace

TEST_CASE("opaque functions") {
  const Tensor w = peak_leaf({kPeakRows, kPeakWidth});
  const auto loss = [&](const Tensor& x) {
    const Tensors y = Opaque::apply(rg::exp(x), rg::sin(w));
    return rg::sum(rg::tanh(y[0]) * rg::cos(y[1]) * y[1]);
  };
  auto compiled = rg::compile(loss);
  auto step = rg::compile_step([&](const Tensor& x) {
    w.set_grad({});
    const Tensor value = loss(x);
    value.backward();
    return value;
  });
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = peak_input();
  compiled(x).backward();  // the first calls run as they are
  step(x);
  for (int i = 0; i < 3; ++i) {
    check_met(watched([&] { backward(loss(x)); }), 1, "traced");
    check_met(watched([&] { compiled(x).backward(); }), 2, "compiled");
    check_met(watched([&] { step(x); }), 1, "step");
  }
}

TEST_CASE("bytes in hooks are those that are there because of them") {
  const Tensor x = peak_input().requires_grad_();
  const auto hook_bytes = [&](const Pair& pair) {
    auto compiled = rg::compile([&](const Tensor& t) {
      rg::SavedTensorHooksGuard guard(pair);
      const Tensor y = rg::exp(t);
      return rg::sum(rg::sin(y) + rg::mul(y, 2.0));
    });
    compiled(x);
    return watched([&] { compiled(x); }).hook_bytes;
  };
  const auto unpack = [](const Tensor& t) { return t; };
  // exp saves its result and sin its operand: the same tensor.
  CHECK(hook_bytes(pair_of([](const Tensor& t) { return t; }, unpack)) == kBytes);
  CHECK(hook_bytes(pair_of([](const Tensor& t) { return t.clone(); }, unpack)) == 2 * kBytes);
}
