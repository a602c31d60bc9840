// Shared by the tests of memory budgets: networks, and trainings of them as a compiled step, or by a compiled function
// and its backward.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "retrograd/retrograd.h"
#include "tests/hooks/regions.h"
#include "tests/same_bits.h"

namespace budgeted {

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;
using rg::testing::added_by;

using Loss = std::function<Tensor(const Tensor& x, const Tensors& w)>;

struct Net {
  std::string name;
  rg::IntArray input;
  std::vector<rg::IntArray> weights;
  Loss loss;

  Tensors leaves() const {
    rg::manual_seed(3);
    Tensors all;
    for (const rg::IntArray& sizes : weights) all.push_back((rg::randn(sizes) * 0.1).requires_grad_());
    return all;
  }
};

inline Net chain(int layers, int64_t rows, int64_t width) {
  return {"chain",
          {rows, width},
          std::vector<rg::IntArray>(static_cast<size_t>(layers), {width, width}),
          [](const Tensor& x, const Tensors& w) {
            Tensor h = x;
            for (const Tensor& weight : w) h = rg::tanh(rg::mm(h, weight));
            return rg::mean(rg::square(h));
          }};
}

// Blocks of a transformer: attention with dropout, and a gated MLP.
inline Net transformer(int layers, int64_t batch, int64_t length, int64_t dim, int64_t hidden,
                       double dropout = 0.1) {
  std::vector<rg::IntArray> weights;
  for (int i = 0; i < layers; ++i)
    for (const rg::IntArray& sizes : std::initializer_list<rg::IntArray>{
             {dim}, {3 * dim, dim}, {dim, dim}, {dim}, {hidden, dim}, {hidden, dim}, {dim, hidden}})
      weights.push_back(sizes);
  weights.push_back({dim});
  weights.push_back({dim, dim});
  return {"transformer", {batch, length, dim}, weights, [=](const Tensor& x, const Tensors& w) {
            Tensor h = x;
            for (size_t i = 0; i + 7 < w.size(); i += 7) {
              Tensors parts = rg::chunk(rg::linear(rg::rms_norm(h, {dim}, w[i]), w[i + 1]), 3, -1);
              for (Tensor& t : parts) t = rg::transpose(rg::view(t, {batch, length, 4, dim / 4}), 1, 2);
              const Tensor attended =
                  rg::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
              const Tensor joined = rg::reshape(rg::transpose(attended, 1, 2), {batch, length, dim});
              const Tensor out = rg::linear(joined, w[i + 2]);
              h = h + (dropout > 0 ? rg::dropout(out, dropout) : out);
              const Tensor n = rg::rms_norm(h, {dim}, w[i + 3]);
              h = h + rg::linear(rg::silu(rg::linear(n, w[i + 4])) * rg::linear(n, w[i + 5]), w[i + 6]);
            }
            const Tensor logits = rg::linear(rg::rms_norm(h, {dim}, w[w.size() - 2]), w.back());
            return rg::mean(rg::square(logits) * rg::sigmoid(logits));
          }};
}

inline std::vector<Net> nets() {
  return {chain(12, 64, 32), transformer(4, 2, 16, 32, 88), transformer(3, 1, 24, 16, 40, 0)};
}

inline Tensor input_of(const Net& net) {
  rg::manual_seed(4);
  return rg::randn(net.input);
}

inline bool same(const Tensors& a, const Tensors& b) {
  return std::ranges::equal(a, b, rg::testing::same_bits);
}

/// step: forward, backward and optimizer. function: forward; its backward and the optimizer run eagerly.
enum class Form : uint8_t { step, function };
inline constexpr Form kForms[] = {Form::step, Form::function};

/// A step of a training: gives the loss.
struct Step {
  std::function<Tensor(const Tensor&)> run;
  std::function<rg::MemoryReport()> memory;
  std::function<std::string()> explain;
  std::function<std::vector<std::shared_ptr<const rg::ir::Graph>>()> graphs;  // that ran
  Tensor operator()(const Tensor& x) const { return run(x); }
};

/// Steps of SGD, and what they leave.
struct Training {
  explicit Training(const Net& net) : net(net), weights(net.leaves()), optimizer(weights, {.lr = 0.1}) {}

  Tensor after(const Tensor& loss) {
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss.detach();
  }
  Tensor step(const Tensor& x) { return after(net.loss(x, weights)); }
  Step compiled(Form form, rg::MemoryBudget budget) {
    const auto as_step = [&](auto f, auto run) {
      return Step{run, [f] { return f.memory(); }, [f] { return f.explain(); },
                  [f] {
                    std::vector all{f.graph(), f.backward_graph()};
                    std::erase(all, nullptr);
                    return all;
                  }};
    };
    if (form == Form::step) {
      const auto f = rg::compile_step([this](const Tensor& x) { return step(x); }, {.budget = budget});
      return as_step(f, [f](const Tensor& x) { return f(x); });
    }
    const auto f = rg::compile([this](const Tensor& x) { return net.loss(x, weights); }, {.budget = budget});
    return as_step(f, [f, this](const Tensor& x) { return after(f(x)); });
  }

  const Net& net;
  Tensors weights;
  rg::optim::SGD optimizer;
};

}  // namespace budgeted
