// What compiled functions and steps hold at their most is no more than what the same code holds when it runs as it is: measured, all bytes
// that the allocator hands out, on networks with wide branches, residual ones, attention, reductions along rows and columns. With
// "[.figures]" a table.
#include <catch2/catch.hpp>
#include <cstdio>

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

// Branches that all begin at x and meet at the end.
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
    CHECK(peaks.step <=
          peaks.eager_step + peaks.eager_step / 64 + 4096);  // what an arena may waste (tracer/placement.cc)
  }
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
