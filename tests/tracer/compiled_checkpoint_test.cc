// Checkpoints and scopes with policies inside compiled functions and steps: the bits of eager, less memory, and one
// recording for many sizes.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/hooks/pairs.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;
using rg::testing::same_bits;
using rg::testing::shifted_wave;

namespace {

constexpr int kBlocks = 6;
constexpr int64_t kWidth = 64;

struct Net {
  std::vector<std::pair<Tensor, Tensor>> weights;

  Net() {
    for (int i = 0; i < kBlocks; ++i)
      weights.emplace_back(
          shifted_wave(kWidth * 4 * kWidth, 0.05 + 0.001 * i).view({kWidth, 4 * kWidth}).requires_grad_(),
          shifted_wave(kWidth * 4 * kWidth, 0.04 + 0.001 * i).view({4 * kWidth, kWidth}).requires_grad_());
  }
  Tensors parameters() const {
    Tensors all;
    for (const auto& [a, b] : weights) all.push_back(a), all.push_back(b);
    return all;
  }
  Tensor block(const Tensor& x, int i) const {
    const auto& [a, b] = weights[static_cast<size_t>(i)];
    return x + rg::mm(rg::dropout(rg::gelu(rg::mm(rg::tanh(x), a)), 0.1, true), b);
  }
  enum class How { plain, checkpoint, nested, policy };
  Tensor loss(Tensor x, How how) const {
    std::unique_ptr<rg::RecomputeScope> scope;
    if (how == How::policy) scope = std::make_unique<rg::RecomputeScope>(rg::policies::save_names({"block"}));
    for (int i = 0; i < kBlocks; ++i) {
      if (how == How::checkpoint)
        x = rg::checkpoint([&](const Tensor& in) { return block(in, i); }, x);
      else if (how == How::nested && i % 2 == 0)
        x = rg::checkpoint(
            [&](const Tensor& in) {
              const Tensor h = rg::checkpoint([&](const Tensor& y) { return block(y, i); }, in);
              return block(h, i + 1);
            },
            x);
      else if (how != How::nested)
        x = rg::checkpoint_name(block(x, i), "block");
    }
    return rg::mean(x * x);
  }
};

Tensor input(int64_t rows) { return shifted_wave(rows * kWidth, 0.7).view({rows, kWidth}); }

Tensors gradients(const Net& net) {
  Tensors all;
  for (const Tensor& p : net.parameters()) all.push_back(p.grad()), p.set_grad({});
  return all;
}

void check_same(const Tensors& a, const Tensors& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(same_bits(a[i], b[i]));
}

}  // namespace

TEST_CASE("checkpoints in compiled functions and steps have the bits of eager, and lower the peak") {
  const Net net;
  const auto run = [&](const std::function<void(const Tensor&, Net::How)>& backward_of, Net::How how,
                       int64_t rows) {
    rg::manual_seed(5);
    const int64_t before = rg::memory::stats().live_bytes;
    rg::memory::reset_peak();
    backward_of(input(rows), how);
    const int64_t peak = rg::memory::stats().peak_bytes - before;
    return std::pair(gradients(net), peak);
  };
  const auto eager = [&](const Tensor& x, Net::How how) { net.loss(x, how).backward(); };
  constexpr int64_t kRows = 512;
  const auto [want, eager_peak] = run(eager, Net::How::plain, kRows);
  for (const Net::How how : {Net::How::checkpoint, Net::How::nested, Net::How::policy}) {
    const auto [got, peak] = run(eager, how, kRows);
    CAPTURE(static_cast<int>(how));
    check_same(got, want);
    CHECK(peak < eager_peak * 3 / 4);
    const int64_t eager_checkpointed = peak;
    SECTION("compile " + std::to_string(static_cast<int>(how))) {
      const auto f = rg::compile([&](const Tensor& x) { return net.loss(x, how); });
      for (int call = 0; call < 3; ++call) {
        const auto [g, p] = run([&](const Tensor& x, Net::How) { f(x).backward(); }, how, kRows);
        check_same(g, want);
        if (call > 0) CHECK(p <= eager_checkpointed);
      }
      CHECK(f.stats().captures == 1);
    }
    SECTION("step " + std::to_string(static_cast<int>(how))) {
      const auto f = rg::compile_step([&](const Tensor& x) {
        const Tensor loss = net.loss(x, how);
        loss.backward();
        return loss.detach();
      });
      for (int call = 0; call < 3; ++call) {
        const auto [g, p] = run([&](const Tensor& x, Net::How) { f(x); }, how, kRows);
        check_same(g, want);
        if (call > 0) CHECK(p <= eager_checkpointed);
      }
      CHECK(f.stats().captures == 1);
    }
  }
}

TEST_CASE("one recording serves all sizes of a function with checkpoints") {
  const Net net;
  for (const Net::How how : {Net::How::checkpoint, Net::How::nested, Net::How::policy}) {
    const auto f = rg::compile([&](const Tensor& x) { return net.loss(x, how); });
    for (int64_t rows = 3; rows < 12; ++rows) {
      rg::manual_seed(6);
      net.loss(input(rows), Net::How::plain).backward();
      const Tensors want = gradients(net);
      rg::manual_seed(6);
      f(input(rows)).backward();
      check_same(gradients(net), want);
    }
    CHECK(f.stats().captures <= 2);
    CHECK(f.stats().eager == 0);
  }
}

TEST_CASE("a captured backward serves other sizes and parameters of checkpointed functions") {
  const Net net, other;
  for (const Net::How how : {Net::How::checkpoint, Net::How::nested, Net::How::policy}) {
    rg::CompiledBackward compiled = rg::compile_backward();
    for (int64_t rows = 3; rows < 12; ++rows) {
      const Net& n = rows % 2 ? net : other;
      rg::manual_seed(6);
      n.loss(input(rows), Net::How::plain).backward();
      const Tensors want = gradients(n);
      rg::manual_seed(6);
      compiled(n.loss(input(rows), how));
      check_same(gradients(n), want);
    }
    CHECK(compiled.stats().captures == 1);
    CHECK(compiled.stats().left == 0);
  }
}

TEST_CASE("a compiled function that is called in a region runs as it is, and is recomputed") {
  const auto f = rg::compile([](const Tensor& x) { return rg::exp(rg::sin(x)); });
  const Tensor x = shifted_wave(1000).requires_grad_();
  rg::sum(rg::exp(rg::sin(x))).backward();
  const Tensor want = x.grad();
  for (const bool by_policy : {false, true}) {
    x.set_grad({});
    const int64_t before = rg::memory::stats().live_bytes;
    Tensor y;
    {
      std::optional<rg::RecomputeScope> scope;
      if (by_policy) scope.emplace(rg::policies::recompute_all());
      y = by_policy ? f(x) : rg::checkpoint([&](const Tensor& in) { return f(in); }, x);
    }
    CHECK(rg::memory::stats().live_bytes == before + y.nbytes());
    rg::sum(y).backward();
    CHECK(same_bits(x.grad(), want));
  }
  CHECK(f.stats().eager == 2);
  CHECK(f.last_eager_reason().find("checkpoint") != std::string::npos);
}
