// The peak memory of compiled functions and steps is not above that of the same code run eagerly: measured as all bytes
// of the allocator, on networks with wide branches, residual ones, attention, reductions along rows and columns. With
// "[.figures]" a table.
#include <catch2/catch.hpp>
#include <cstdio>
#include <random>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

using Loss = std::function<Tensor(const Tensor& x, const Tensors& w)>;

struct Net {
  std::string name;
  rg::IntArray input;
  Tensors weights;
  Loss loss;
};

Tensor leaf(rg::IntArray sizes) { return (rg::randn(sizes) * 0.3).requires_grad_(); }
Tensors leaves(int count, const rg::IntArray& sizes) {
  Tensors all;
  for (int i = 0; i < count; ++i) all.push_back(leaf(sizes));
  return all;
}

// Branches that all begin at x and join at the end.
Net wide(int branches, int64_t rows, int64_t width) {
  return {"wide, " + std::to_string(branches) + " branches",
          {rows, width},
          leaves(branches, {width}),
          [](const Tensor& x, const Tensors& w) {
            Tensors ends;
            for (const Tensor& v : w) ends.push_back(rg::tanh(x * v) * rg::sigmoid(x + v));
            Tensor sum = ends[0];
            for (size_t i = 1; i < ends.size(); ++i) sum = sum + rg::gelu(ends[i] * ends[i - 1]);
            return rg::mean(sum);
          }};
}

// Branches of different shapes: rows, columns and the whole.
Net mixed(int branches, int64_t rows, int64_t width) {
  Tensors w = leaves(branches, {rows, 1});
  for (const Tensor& t : leaves(branches, {1, width})) w.push_back(t);
  return {"mixed, " + std::to_string(branches) + " branches",
          {rows, width},
          w,
          [branches](const Tensor& x, const Tensors& v) {
            Tensor total = rg::zeros({1});
            for (int i = 0; i < branches; ++i) {
              const Tensor &column = v[static_cast<size_t>(i)], &row = v[static_cast<size_t>(branches + i)];
              const Tensor outer = rg::exp(-rg::square(rg::tanh(column) + rg::tanh(row))) * x;
              total = total + rg::mean(rg::sum(outer, {0}) * rg::sigmoid(row)) +
                      rg::mean(rg::softmax(outer, -1) * x);
            }
            return rg::sum(total);
          }};
}

Net residual(int layers, int64_t rows, int64_t width) {
  return {"residual, " + std::to_string(layers) + " layers",
          {rows, width},
          leaves(layers, {width, width}),
          [width](const Tensor& x, const Tensors& w) {
            Tensor h = x;
            for (const Tensor& weight : w) h = h + rg::gelu(rg::mm(rg::layer_norm(h, {width}), weight));
            return rg::mean(rg::square(h));
          }};
}

Net attention(int layers, int64_t rows, int64_t width) {
  Tensors w = leaves(layers, {width, 3 * width});
  return {"attention, " + std::to_string(layers) + " layers",
          {rows, width},
          w,
          [rows, width](const Tensor& x, const Tensors& weights) {
            Tensor h = x;
            for (const Tensor& weight : weights) {
              const Tensor qkv = rg::permute(rg::mm(h, weight).view({rows, 3, 4, width / 4}), {1, 2, 0, 3});
              const Tensor q = qkv.select(0, 0), k = qkv.select(0, 1), v = qkv.select(0, 2);
              const Tensor scores = rg::softmax(rg::matmul(q, k.transpose(-1, -2)) * 0.25, -1);
              h = h + rg::matmul(scores, v).transpose(0, 1).reshape({rows, width}) * rg::sigmoid(h);
            }
            return rg::mean(rg::square(h) * rg::sigmoid(h)) + rg::sum(rg::exp(-h));
          }};
}

// Shares saved values between records, views them, and has branches that live side by side.
Net branched(int64_t rows, int64_t width) {
  return {"branched",
          {rows, width},
          {leaf({width, width}), leaf({width}), leaf({width}), leaf({width})},
          [rows, width](const Tensor& x, const Tensors& w) {
            const Tensor h = rg::gelu(rg::mm(x, w[0]) + w[1]);
            const Tensor n = rg::layer_norm(h, {width}, w[2], w[3]);
            const Tensor heads = n.view({rows, 4, width / 4}).transpose(0, 1);
            const Tensor scores = rg::softmax(rg::matmul(heads, heads.transpose(1, 2)), -1);
            const Tensor mixed = rg::matmul(scores, heads).transpose(0, 1).reshape({rows, width});
            return rg::mean(rg::square(mixed + h) * rg::sigmoid(h)) + rg::sum(rg::exp(-h));
          }};
}

// Random operations on values of four shapes; unused values are released, as by a function with scopes.
class RandomProgram {
 public:
  explicit RandomProgram(int seed) : random_(static_cast<uint32_t>(seed)) {
    for (int i = 0; i < 4; ++i) shapes_.push_back(i);
    last_use_.assign(4, 0);
    const int count = 6 + below(25);
    for (int i = 0; i < count; ++i) add();
  }

  Tensor run(const Tensor& x, const Tensors& w) const {
    Tensors values = {w[0], w[1], w[2], x * w[3]};
    Tensor total = rg::zeros({1});
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      const Tensor &a = values[s.a], &b = values[s.b];
      Tensor result = compute(s.op, a, b);
      values.push_back(result);
      for (size_t v = 0; v < values.size(); ++v) {
        if (last_use_[v] != i + 1 && !(v == values.size() - 1 && last_use_[v] == 0)) continue;
        if (v >= 4 && last_use_[v] == 0) total = total + rg::mean(values[v]);
        values[v] = Tensor();
      }
    }
    return rg::sum(total);
  }

 private:
  struct Step {
    int op;
    size_t a, b;
  };
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  // Shapes by bits: 1 has columns, 2 has rows.
  void add() {
    Step s{below(14), static_cast<size_t>(below(static_cast<int>(shapes_.size()))),
           static_cast<size_t>(below(static_cast<int>(shapes_.size())))};
    const int a = shapes_[s.a], b = shapes_[s.b];
    if (s.op >= 12 && a != 3) s.op = 4;
    steps_.push_back(s);
    last_use_[s.a] = steps_.size();
    const bool binary = s.op < 4;
    if (binary) last_use_[s.b] = steps_.size();
    shapes_.push_back(binary ? (a | b) : s.op == 10 ? (a & ~2) : s.op == 11 ? (a & ~1) : a);
    last_use_.push_back(0);
  }
  static Tensor compute(int op, const Tensor& a, const Tensor& b) {
    switch (op) {
      case 0: return a + b;
      case 1: return a * b;
      case 2: return a - b;
      case 3: return rg::maximum(a, b);
      case 4: return rg::tanh(a);
      case 5: return rg::sigmoid(a);
      case 6: return rg::gelu(a);
      case 7: return rg::exp(-rg::abs(a));
      case 8: return rg::square(a);
      case 9: return a * 0.5 + 1;
      case 10: return rg::sum(a, {0}, true) * 0.1;
      case 11: return rg::mean(a, {1}, true);
      case 12: return rg::softmax(a, -1);
      default: return rg::layer_norm(a, {a.size(1)});
    }
  }

  std::mt19937 random_;
  std::vector<int> shapes_;
  std::vector<size_t> last_use_;  // by number of the step, from 1 on
  std::vector<Step> steps_;
};

Net random_net(int seed) {
  const int64_t rows = seed % 3 ? 24 : 200, width = seed % 2 ? 32 : 80;
  rg::manual_seed(static_cast<uint64_t>(seed));
  const RandomProgram program(seed);
  return {"random",
          {rows, width},
          {leaf({1, 1}), leaf({1, width}), leaf({rows, 1}), leaf({rows, width})},
          [program](const Tensor& x, const Tensors& w) { return program.run(x, w); }};
}

std::vector<Net> nets() {
  rg::manual_seed(3);
  std::vector<Net> all;
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{64, 96}, {8, 16}, {256, 256}}) {
    for (int branches : {2, 5, 12}) all.push_back(wide(branches, rows, width));
    for (int branches : {1, 4}) all.push_back(mixed(branches, rows, width));
    all.push_back(residual(4, rows, width));
    all.push_back(attention(2, rows, width));
    all.push_back(branched(rows, width));
  }
  return all;
}

// Bytes beyond those that are live before; the second time, when nothing is recorded any more.
int64_t peak_of(const Net& net, const std::function<void()>& f) {
  for (int i = 0; i < 2; ++i) {
    for (const Tensor& w : net.weights) w.set_grad(Tensor());
    rg::memory::reset_peak();
    const int64_t before = rg::memory::stats().live_bytes;
    f();
    if (i == 1) return rg::memory::stats().peak_bytes - before;
  }
  return 0;
}

struct Peaks {
  int64_t eager, compiled, eager_step, step;
};

Peaks peaks_of(const Net& net) {
  const Tensor x = rg::randn(net.input);
  const auto loss = [&](const Tensor& in) { return net.loss(in, net.weights); };
  auto compiled = rg::compile(loss);
  rg::optim::SGD optimizer(net.weights, {.lr = 0.01});
  const auto train = [&](const Tensor& in) {
    const Tensor value = loss(in);
    value.backward();
    optimizer.step();
    optimizer.zero_grad();
    return value;
  };
  auto step = rg::compile_step(train);
  return {peak_of(net, [&] { loss(x).backward(); }), peak_of(net, [&] { compiled(x).backward(); }),
          peak_of(net, [&] { train(x); }), peak_of(net, [&] { step(x); })};
}

}  // namespace

TEST_CASE("compiled functions and steps hold no more than eager ones") {
  for (const Net& net : nets()) {
    INFO(net.name << " of " << net.input[0] << " x " << net.input[1]);
    const Peaks peaks = peaks_of(net);
    CHECK(peaks.compiled <= peaks.eager);
    CHECK(peaks.step <= peaks.eager_step);
  }
}

TEST_CASE("random functions hold no more when they are compiled") {
  int less = 0;
  for (int seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    const Net net = random_net(seed);
    const Peaks peaks = peaks_of(net);
    CHECK(peaks.compiled <= peaks.eager);
    less += peaks.compiled < peaks.eager;
  }
  CHECK(less > 50);
}

TEST_CASE("figures of compiled peaks", "[.figures]") {
  for (const Net& net : nets()) {
    const Peaks p = peaks_of(net);
    std::printf("%-24s %4d x %-4d  eager %9.1f  compiled %9.1f KB   eager step %9.1f  step %9.1f KB\n",
                net.name.c_str(), static_cast<int>(net.input[0]), static_cast<int>(net.input[1]),
                static_cast<double>(p.eager) / 1e3, static_cast<double>(p.compiled) / 1e3,
                static_cast<double>(p.eager_step) / 1e3, static_cast<double>(p.step) / 1e3);
  }
}
