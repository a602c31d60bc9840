// Traceable pairs of saved-tensor hooks: parts of the graph in every mode, with the bits of eager; payloads, keys,
// filters, memory.
#include <catch2/catch.hpp>
#include <cmath>

#include "ir/graph.h"
#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/hooks/pairs.h"
#include "tracer/plan/peak_meter.h"

namespace rg = retrograd;
using rg::SavedTensorHooksGuard;
using rg::Tensor;
using rg::Tensors;
using rg::category_of;
using rg::testing::same_bits;
using rg::testing::shifted_wave;
using Pair = rg::RefPtr<rg::SavedTensorHooks>;

namespace {

constexpr int64_t kRows = 24, kWidth = 32;

struct Model {
  Tensor w1 = shifted_wave(kWidth * kWidth, 0.2).view({kWidth, kWidth}).requires_grad_();
  Tensor w2 = shifted_wave(kWidth * kWidth, 0.3).view({kWidth, kWidth}).requires_grad_();

  Tensor loss(const Tensor& x) const {
    const Tensor h = rg::tanh(rg::mm(rg::gelu(rg::mm(x, w1)), w2));
    return rg::sum(rg::exp(h) * h);
  }
  Tensors take_grads() const {
    const Tensors grads{w1.grad(), w2.grad()};
    w1.set_grad({});
    w2.set_grad({});
    return grads;
  }
};

Tensor input(int64_t rows = kRows, double scale = 1) {
  return shifted_wave(rows * kWidth, scale).view({rows, kWidth});
}

size_t count(const rg::ir::Graph& graph, std::string_view op) {
  size_t n = 0;
  for (const auto& node : graph.nodes()) n += node.op->name == op;
  return n;
}

void check_same(const Tensors& got, const Tensors& want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], want[i]));
}

// Gradients in all modes under a pair: equal bits. Returns them.
Tensors in_all_modes(const Pair& pair, int64_t rows = kRows) {
  const Model model;
  const Tensor x = input(rows);
  rg::CompiledBackward backward = rg::compile_backward();
  const auto compiled = rg::compile([&](const Tensor& in) { return model.loss(in); });
  const auto step = rg::compile_step([&](const Tensor& in) {
    const Tensor loss = model.loss(in);
    loss.backward();
    return loss;
  });
  const SavedTensorHooksGuard guard(pair);
  model.loss(x).backward();
  const Tensors want = model.take_grads();
  for (int i = 0; i < 2; ++i) {
    backward(model.loss(x));
    check_same(model.take_grads(), want);
    compiled(x).backward();
    check_same(model.take_grads(), want);
    step(x);
    check_same(model.take_grads(), want);
  }
  CHECK(backward.stats().captures == 1);
  CHECK(compiled.stats().captures == 1);
  CHECK(step.stats().captures == 1);
  return want;
}

double distance(const Tensors& a, const Tensors& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, (rg::amax(rg::abs(a[i] - b[i])) / rg::amax(rg::abs(b[i]))).item<double>());
  return largest;
}

Pair scaled(double factor) {
  return rg::saved_tensor_hooks([factor](const Tensor& x) { return x * factor; },
                                [factor](const Tensor& x) { return x / factor; }, true);
}

}  // namespace

TEST_CASE("scenario 78: pairs in all modes") {
  const Model model;
  model.loss(input()).backward();
  const Tensors exact = model.take_grads();
  const auto bf16 = rg::saved_tensor_hooks([](const Tensor& x) { return x.to(rg::kBFloat16); },
                                           [](const Tensor& x) { return x.to(rg::kFloat32); }, true);
  CHECK(distance(in_all_modes(bf16), exact) < 1e-2);
  check_same(in_all_modes(scaled(2)), exact);
  CHECK(distance(in_all_modes(rg::save_as_half()), exact) < 1e-2);
  CHECK(distance(in_all_modes(rg::save_as_fp8()), exact) < 0.1);
  CHECK(distance(in_all_modes(rg::save_as_int8()), exact) < 3e-2);
  CHECK(distance(in_all_modes(rg::save_as_int8(), 25), in_all_modes(scaled(2), 25)) <
        3e-2);  // a block is not full
  const auto on_cpu = rg::saved_tensor_hooks(
      [](const Tensor& x) { return std::tuple(x.dtype(), x.cpu() * 1.0); },
      [](const std::tuple<rg::ScalarType, Tensor>& p) { return std::get<1>(p).to(std::get<0>(p)); }, true);
  check_same(in_all_modes(on_cpu), exact);
  const auto by_dtype = rg::saved_tensor_hooks(
      [](const Tensor& x) { return x.dtype() == rg::kFloat32 ? x.to(rg::kFloat64) : x; },
      [](const Tensor& x) { return x.dtype() == rg::kFloat64 ? x.to(rg::kFloat32) : x; }, true);
  check_same(in_all_modes(by_dtype), exact);
}

TEST_CASE("a payload of several tensors and constants") {
  struct Split {
    std::vector<Tensor> halves;
    std::optional<Tensor> missing;
    std::pair<int64_t, std::string> constants;
    auto parts() { return std::tie(halves, missing, constants); }
  };
  const Model model;
  model.loss(input()).backward();
  const Tensors exact = model.take_grads();
  const auto split = rg::saved_tensor_hooks(
      [](const Tensor& x) {
        return Split{{x.narrow(0, 0, 1) * 1.0, x.narrow(0, 1, x.size(0) - 1) * 1.0}, {}, {0, "rows"}};
      },
      [](const Split& p) { return rg::cat(p.halves, p.constants.first); }, true);
  check_same(in_all_modes(split), exact);
}

TEST_CASE("a payload without visible parts is refused for a traceable pair") {
  struct Hidden {
    Tensor x;
  };
  const auto pair = rg::saved_tensor_hooks([](const Tensor& x) { return Hidden{x}; },
                                           [](const Hidden& p) { return p.x; }, true);
  const SavedTensorHooksGuard guard(pair);
  const Tensor x = input().requires_grad_();
  CHECK(category_of([&] { rg::exp(x); }) == rg::Category::bad_argument);
}

TEST_CASE("constants of a payload belong to the graph") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = shifted_wave(10).requires_grad_();
  double factor = 2;
  const auto pair =
      rg::saved_tensor_hooks([&](const Tensor& t) { return std::pair(t * factor, factor); },
                             [](const std::pair<Tensor, double>& p) { return p.first / p.second; }, true);
  for (const double f : {2.0, 2.0, 4.0, 4.0, 2.0}) {
    factor = f;
    x.set_grad({});
    {
      const SavedTensorHooksGuard guard(pair);
      backward(rg::sum(rg::sin(x)));
    }
    CHECK(same_bits(x.grad(), rg::cos(x.detach())));
  }
  CHECK(backward.stats().captures == 2);
}

TEST_CASE("the captured graph has the unpack's operations, at first use (scenario 84)") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Model model;
  const auto pair = rg::save_as_half();
  {
    const SavedTensorHooksGuard guard(pair);
    backward(model.loss(input()));
  }
  const rg::ir::Graph& graph = *backward.graph();
  INFO(graph.print());
  size_t converted = 0;
  for (size_t n = 0; n + 1 < graph.nodes().size(); ++n) {
    const auto& node = graph.nodes()[n];
    if (node.op->name != "unpack" || graph.type(node.first_result).dtype != rg::kFloat16) continue;
    ++converted;
    CHECK(graph.nodes()[n + 1].op->name == "to");
  }
  CHECK(converted == count(graph, "to"));
  CHECK(converted >= 6);
}

TEST_CASE("unpacked values live one at a time, and the peak is the planned one (scenario 84)") {
  constexpr int kLayers = 12;
  const Tensor x = shifted_wave(4096).requires_grad_();
  const auto loss = [&] {
    Tensor h = x;
    for (int i = 0; i < kLayers; ++i) h = rg::sin(h);
    return rg::sum(h);
  };
  for (const auto& pair : {rg::save_as_half(), rg::save_as_fp8(), rg::save_as_int8()}) {
    rg::CompiledBackward backward = rg::compile_backward();
    const rg::PeakMeter watch;
    for (int i = 0; i < 2; ++i) {
      x.set_grad({});
      const SavedTensorHooksGuard guard(pair);
      const Tensor y = loss();
      const int64_t before = rg::memory::stats().live_bytes;
      rg::memory::reset_peak();
      backward(y);
      CHECK(rg::memory::stats().peak_bytes - before <= 8 * x.nbytes());
    }
    CHECK(watch.report().runs == 2);
    CHECK(watch.report().differing == 0);
    CHECK(watch.report().hook_bytes == 0);
  }
}

TEST_CASE("without saved values the graph has nothing of a pair (scenario 80)") {
  rg::CompiledBackward backward = rg::compile_backward();
  const Tensor x = shifted_wave(300).requires_grad_();
  backward(rg::sum(x + 1.0));
  const std::string before = backward.graph()->print();
  const SavedTensorHooksGuard guard(rg::save_as_half());
  backward(rg::sum(x + 1.0));
  CHECK(backward.stats().captures == 1);
  CHECK(backward.graph()->print() == before);
}

TEST_CASE("which pairs share a recording (scenario 81)") {
  const Model model;
  const auto captures = [&](const std::vector<Pair>& pairs) {
    rg::CompiledBackward backward = rg::compile_backward();
    const auto compiled = rg::compile([&](const Tensor& in) { return model.loss(in); });
    for (const Pair& pair : pairs) {
      const SavedTensorHooksGuard guard(pair);
      model.loss(input()).backward();
      const Tensors want = model.take_grads();
      backward(model.loss(input()));
      check_same(model.take_grads(), want);
      compiled(input()).backward();
      check_same(model.take_grads(), want);
    }
    return std::pair(backward.stats().captures, compiled.stats().captures);
  };
  using Counts = std::pair<int64_t, int64_t>;
  CHECK(captures({scaled(2), scaled(3), scaled(5)}) == Counts(3, 3));
  const auto opaque = [](double factor) {
    return rg::saved_tensor_hooks([factor](const Tensor& x) { return x * factor; },
                                  [factor](const Tensor& x) { return x / factor; });
  };
  CHECK(captures({opaque(2), opaque(3), opaque(5)}) == Counts(1, 1));
  const auto named = [](double factor, const char* key) {
    const Pair pair = scaled(factor);
    pair->cache_key = key;
    return pair;
  };
  CHECK(captures({named(2, "a"), named(2, "a"), named(3, "b"), named(2, "a")}) == Counts(2, 2));
  const auto stateless = [] {
    return rg::saved_tensor_hooks([](const Tensor& x) { return x * 4.0; },
                                  [](const Tensor& x) { return x / 4.0; }, true);
  };
  CHECK(captures({stateless(), stateless()}) == Counts(1, 1));
  CHECK(captures({rg::save_as_half(), rg::save_as_half(), rg::save_as_int8(), rg::save_as_int8()}) ==
        Counts(2, 2));
  const Tensors keep{model.w2};
  const Counts with_keep = captures({rg::save_as_half(keep), rg::save_as_half(keep), rg::save_as_half()});
  CHECK(with_keep.first == 2);
  CHECK(with_keep.second == 2);
  // What is kept besides, such as the batch of a step, is no part of a graph.
  CHECK(captures({rg::save_as_half({input()}), rg::save_as_half({input()})}) == Counts(1, 1));
}

TEST_CASE("an argument that a pair leaves alone is not packed in a recorded function either") {
  const Tensor x = shifted_wave(400, 0.7).requires_grad_(), w = shifted_wave(400, 0.3).requires_grad_();
  const auto f = [](const Tensor& a, const Tensor& b) { return rg::sum(rg::sin(a * b)); };
  const auto compiled = rg::compile(f);
  for (const Tensors& keep : {Tensors{w}, Tensors{w}, Tensors{x, w}, Tensors{}}) {
    const SavedTensorHooksGuard guard(rg::save_as_half(keep));
    const auto grads = [&](const Tensor& loss) { return rg::autograd::grad({loss}, {x, w}); };
    check_same(grads(compiled(x, w)), grads(f(x, w)));
  }
  CHECK(compiled.stats().captures == 3);
  const auto own = rg::save_as_half({w});
  const auto inside = [&](const Tensor& a, const Tensor& b) {
    const SavedTensorHooksGuard guard(own);
    return f(a, b);
  };
  const auto with_own = rg::compile(inside);
  const Tensor other = w.detach().clone().requires_grad_();
  for (const Tensor& b : {w, other, w}) {
    const auto grads = [&](const Tensor& loss) { return rg::autograd::grad({loss}, {x, b}); };
    check_same(grads(with_own(x, b)), grads(inside(x, b)));
  }
  CHECK(with_own.stats().captures == 2);
}

TEST_CASE("payloads of opaque pairs are of any type") {
  struct Odd {
    Tensor x;
    const std::vector<Tensor>& parts() const { return all; }
    std::vector<Tensor> all;
  };
  const Tensor x = shifted_wave(20).requires_grad_();
  const auto bits = rg::saved_tensor_hooks(
      [](const Tensor& t) {
        return std::pair(t, std::vector<bool>{true, false});
      },
      [](const std::pair<Tensor, std::vector<bool>>& p) { return p.first; });
  const auto odd = rg::saved_tensor_hooks(
      [](const Tensor& t) {
        return Odd{t, {}};
      },
      [](const Odd& p) { return p.x; });
  struct Tree {
    Tensor x;
    std::vector<Tree> children;
    auto parts() { return std::tie(x, children); }
  };
  struct ByValue {
    Tensor x;
    std::pair<Tensor, int> parts() const { return {x, 1}; }
  };
  const auto tree = rg::saved_tensor_hooks(
      [](const Tensor& t) {
        return Tree{t * 1.0, {Tree{t, {}}}};
      },
      [](const Tree& p) { return p.children[0].x; }, true);
  const auto named =
      rg::saved_tensor_hooks([](const Tensor& t) { return std::pair<const std::string, Tensor>("t", t); },
                             [](const std::pair<const std::string, Tensor>& p) { return p.second; }, true);
  const auto by_value = rg::saved_tensor_hooks([](const Tensor& t) { return ByValue{t}; },
                                               [](const ByValue& p) { return p.x; });
  for (const auto& pair : {bits, odd, tree, named, by_value}) {
    const SavedTensorHooksGuard guard(pair);
    CHECK(same_bits(rg::autograd::grad({rg::sum(rg::sin(x))}, {x})[0], rg::cos(x.detach())));
  }
}

TEST_CASE("a payload without tensors is released, too") {
  rg::CompiledBackward backward = rg::compile_backward();
  const auto nothing =
      rg::saved_tensor_hooks([](const Tensor&) { return std::pair(Tensor(), 1); },
                             [](const std::pair<Tensor, int>&) { return rg::ones({20}); }, true);
  const Tensor x = shifted_wave(20).requires_grad_();
  Tensor y;
  {
    const SavedTensorHooksGuard guard(nothing);
    y = rg::sum(rg::sin(x));
  }
  backward(y);
  CHECK(category_of([&] { backward(y); }) == rg::Category::backward_twice_freed);
}

TEST_CASE("a traceable pair around a checkpoint notices writes in any part of a payload") {
  const auto pair = rg::saved_tensor_hooks([](const Tensor& t) { return std::pair(1.0, t); },
                                           [](const std::pair<double, Tensor>& p) { return p.second; }, true);
  for (const bool traced : {false, true}) {
    rg::CompiledBackward backward = rg::compile_backward();
    const Tensor x = shifted_wave(20).requires_grad_();
    const Tensor h = rg::sin(x);
    Tensor y;
    {
      const SavedTensorHooksGuard guard(pair);
      y = rg::checkpoint([](const Tensor& t) { return rg::sum(rg::exp(rg::cos(t))); }, h);
    }
    if (traced)
      backward.backward({y}, {}, true);
    else
      y.backward({}, true);
    h.mul_(2.0);
    CHECK(category_of([&] { traced ? backward(y) : y.backward(); }) == rg::Category::version_mismatch);
  }
}

TEST_CASE("filters: which values a recorded function packs (scenario 79)") {
  const Tensor w = shifted_wave(300, 0.3).requires_grad_(), x = shifted_wave(300, 0.7).requires_grad_();
  const auto f = [&](const Tensor& in) {
    const Tensor h = in * w;     // saves the argument and the parameter
    return rg::sum(rg::sin(h));  // saves h
  };
  const auto packed = [&](rg::PackFilter filter, auto&& run) {
    std::vector<std::string> seen;
    const auto pair = rg::saved_tensor_hooks(
        [&](const Tensor& t) {
          seen.push_back(t.is_leaf() ? "leaf" : "value");
          return t * 2.0;
        },
        [](const Tensor& t) { return t / 2.0; }, true);
    pair->filter = filter;
    x.set_grad({});
    w.set_grad({});
    f(x).backward();
    const Tensors want{x.grad(), w.grad()};
    x.set_grad({});
    w.set_grad({});
    const SavedTensorHooksGuard guard(pair);
    run(x);
    check_same({x.grad(), w.grad()}, want);
    return seen.size();
  };
  const auto in_function = [&](const Tensor& in) { rg::compile(f)(in).backward(); };
  const auto in_step = [&](const Tensor& in) {
    rg::compile_step([&](const Tensor& a) {
      const Tensor y = f(a);
      y.backward();
      return y;
    })(in);
  };
  const auto eager = [&](const Tensor& in) { f(in).backward(); };
  CHECK(packed(rg::PackFilter::all, in_function) == 3);
  CHECK(packed(rg::PackFilter::no_static, in_function) == 2);
  CHECK(packed(rg::PackFilter::donated, in_function) == 1);
  CHECK(packed(rg::PackFilter::all, in_step) == 3);
  CHECK(packed(rg::PackFilter::no_static, in_step) == 2);
  CHECK(packed(rg::PackFilter::donated, in_step) == 1);
  CHECK(packed(rg::PackFilter::donated, eager) == 3);
}

TEST_CASE("a result that is saved, too, is not packed as donated (scenario 82)") {
  const Tensor x = shifted_wave(400).requires_grad_();
  const auto pair = rg::save_as_half();
  pair->filter = rg::PackFilter::donated;
  const auto f = rg::compile([](const Tensor& in) {
    const Tensor y = rg::exp(rg::sin(in));  // exp saves its result
    return std::tuple(y, rg::sum(rg::cos(y)));
  });
  const Tensor plain = x.detach().requires_grad_();
  rg::sum(rg::exp(rg::sin(plain))).backward();
  const SavedTensorHooksGuard guard(pair);
  const auto [y, unused] = f(x);
  rg::sum(y).backward();
  INFO(f.graph()->print() << f.backward_graph()->print());
  // The gradient has an error from sin(x), which is packed as float16, but none from y.
  CHECK(count(*f.backward_graph(), "to") <= 1);
  CHECK(rg::amax(rg::abs(x.grad() - plain.grad())).item<double>() < 1e-2);
}

TEST_CASE("donated values and a backward that retains the graph (scenario 83)") {
  const Model model;
  const auto pair = rg::save_as_half();
  pair->filter = rg::PackFilter::donated;
  const auto f = rg::compile([&](const Tensor& in) { return model.loss(in); });
  const SavedTensorHooksGuard guard(pair);
  const Tensor y = f(input());
  y.backward({}, true);
  const Tensors first = model.take_grads();
  y.backward();
  check_same(model.take_grads(), first);
}

TEST_CASE("one graph for all sizes, two for blocks that are full or not") {
  rg::CompiledBackward backward = rg::compile_backward();
  const auto pair = rg::save_as_int8();
  for (const int64_t n : {512, 1024, 384, 1000, 777, 3840, 513}) {
    const Tensor x = shifted_wave(n).requires_grad_(), plain = x.detach().requires_grad_();
    const SavedTensorHooksGuard guard(pair);
    rg::sum(rg::sin(plain)).backward();
    backward(rg::sum(rg::sin(x)));
    CHECK(same_bits(x.grad(), plain.grad()));
  }
  CHECK(backward.stats().captures == 2);
}

TEST_CASE("a size of a payload that is no size of the record") {
  rg::CompiledBackward backward = rg::compile_backward();
  int64_t pad = 3;
  const auto pair = rg::saved_tensor_hooks(
      [&](const Tensor& x) {
        return rg::pad(x, {0, pad});
      },
      [](const Tensor& x) { return rg::narrow(x, 0, 0, 50); }, true);
  for (const int64_t p : {3, 7, 3, 50}) {  // 50: the size is now equal to that of the record
    pad = p;
    const Tensor x = shifted_wave(50).requires_grad_();
    const SavedTensorHooksGuard guard(pair);
    backward(rg::sum(rg::sin(x)));
    CHECK(same_bits(x.grad(), rg::cos(x.detach())));
  }
}

TEST_CASE("infinite and nan elements come back as nan, and do not disturb the others") {
  for (const auto& pair : {rg::save_as_fp8(), rg::save_as_int8()}) {
    const Tensor x = shifted_wave(1000), clean = x.clone();
    x.select(0, 7).fill_(double(INFINITY));
    x.select(0, 300).fill_(double(NAN));
    clean.select(0, 7).fill_(0);
    clean.select(0, 300).fill_(0);
    std::vector<double> got = rg::testing::there_and_back(*pair, x).to_vector();
    std::vector<double> want = rg::testing::there_and_back(*pair, clean).to_vector();
    CHECK((std::isnan(got[7]) && std::isnan(got[300])));
    got[7] = got[300] = want[7] = want[300] = 0;
    CHECK(got == want);
  }
}

TEST_CASE("saved values in a captured backward: written, released, retained, differentiated") {
  rg::CompiledBackward backward = rg::compile_backward();
  const auto same =
      rg::saved_tensor_hooks([](const Tensor& x) { return x; }, [](const Tensor& x) { return x; }, true);
  const Tensor x = shifted_wave(50).requires_grad_();
  const auto loss = [&](const Pair& pair) {
    const SavedTensorHooksGuard guard(pair);
    const Tensor h = rg::sin(x);
    return std::pair(h, rg::sum(rg::cos(h)));
  };
  backward(loss(same).second);
  {
    const auto [h, y] = loss(same);
    h.mul_(2.0);
    CHECK(category_of([&] { backward(y); }) == rg::Category::version_mismatch);
  }
  for (const Pair& pair : {same, scaled(2)}) {
    x.set_grad({});
    const Tensor y = loss(pair).second;
    backward.backward({y}, {}, true);
    const Tensor once = x.grad().clone();
    backward(y);
    CHECK(same_bits(x.grad(), once + once));
    CHECK(category_of([&] { backward(y); }) == rg::Category::backward_twice_freed);
    const Tensor z = loss(pair).second;
    const Tensor g = backward.grad({z}, {x}, {}, true, true)[0];
    const Tensor second = rg::autograd::grad({rg::sum(g)}, {x})[0];
    const Tensor g_eager = rg::autograd::grad({loss(pair).second}, {x}, {}, true, true)[0];
    CHECK(same_bits(second, rg::autograd::grad({rg::sum(g_eager)}, {x})[0]));
  }
}

TEST_CASE("a traceable unpack that gives another type is an error") {
  rg::CompiledBackward backward = rg::compile_backward();
  const auto wrong = rg::saved_tensor_hooks([](const Tensor& x) { return x; },
                                            [](const Tensor& x) { return x.to(rg::kFloat64); }, true);
  const Tensor x = shifted_wave(50).requires_grad_();
  const SavedTensorHooksGuard guard(wrong);
  const Tensor y = rg::sum(rg::sin(x));
  CHECK(category_of([&] { backward(y); }) == rg::Category::hook_bad_result);
}

TEST_CASE("the log shows the graph before and after inlining") {
  std::vector<std::string> graphs;
  rg::logging::set_sink([&](rg::logging::Topic, std::string_view text) { graphs.emplace_back(text); });
  rg::logging::set_topics("trace");
  {
    rg::CompiledBackward backward = rg::compile_backward();
    const Tensor x = shifted_wave(300).requires_grad_();
    const SavedTensorHooksGuard guard(rg::save_as_half());
    backward(rg::sum(rg::sin(x)));
  }
  rg::logging::set_topics("");
  rg::logging::set_sink({});
  REQUIRE(graphs.size() == 2);
  CHECK_THAT(graphs[0], Catch::StartsWith("before the unpacks of traceable pairs are inlined") &&
                            Catch::Contains("unpack") && !Catch::Contains("= to "));
  CHECK_THAT(graphs[1], Catch::Contains("unpack") && Catch::Contains("= to "));
}

TEST_CASE("check_pairs finds an unpack that depends on more than its payload") {
  rg::CompiledBackward backward = rg::compile_backward({.check_pairs = true});
  const Tensor x = shifted_wave(300).requires_grad_();
  const auto run = [&](const Pair& p) {
    const SavedTensorHooksGuard guard(p);
    return rg::sum(rg::sin(x));
  };
  for (int i = 0; i < 2; ++i) {
    x.set_grad({});
    backward(run(rg::save_as_int8()));
    CHECK(rg::amax(rg::abs(x.grad() - rg::cos(x.detach()))).item<double>() < 1e-2);
  }
  int calls = 0;
  const auto counts = rg::saved_tensor_hooks([](const Tensor& t) { return t; },
                                             [&](const Tensor& t) { return t + 1e-3 * ++calls; }, true);
  std::string text;
  CHECK(category_of([&] { backward(run(counts)); }, &text) == rg::Category::bad_argument);
  CHECK_THAT(text, Catch::Contains("from the payload alone"));
}

TEST_CASE("the peak of a trained network under stock pairs is the planned one") {
  struct Net : rg::nn::Module {
    rg::nn::Linear a{this, "a", 64, 128}, b{this, "b", 128, 10};
  } net;
  const Tensor x = shifted_wave(64 * 64).view({64, 64});
  const Tensor classes = rg::remainder(rg::arange(0, 64), 10);
  const Tensors keep = net.parameters();
  rg::optim::AdamW optimizer(net.parameters(), {.lr = 1e-3});
  for (const auto& pair :
       {rg::save_as_half(keep), rg::save_as_fp8(keep), rg::save_as_int8(keep), rg::save_as_half()}) {
    rg::CompiledBackward backward = rg::compile_backward();
    for (int i = 0; i < 3; ++i) {
      const rg::PeakMeter watch;
      optimizer.zero_grad();
      Tensor loss;
      {
        const SavedTensorHooksGuard guard(pair);
        loss = rg::cross_entropy(net.b(rg::relu(net.a(x))), classes);
      }
      backward(loss);
      CHECK(watch.report().planned_bytes == watch.report().measured_bytes);
      optimizer.step();
    }
  }
}
