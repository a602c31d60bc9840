// Peak memory of one training step (forward, loss, backward): of a Llama-style model, of cnn or chain-100
// (memory_models.h), or of one of train/models.h.
// usage: memory [MODEL] [--mode M] [--pair P] [--recompute R] [--layers N] [--dim N] [--heads N] [--hidden N]
// [--length N] [--batch N] [--threads N] [--steps N] [--budgets LIST] [--block N] [--loss-rows N]
//
// With --budgets, parts of the eager peak as 1,0.5,0.2, or their number: a line for each (memory_budgets.h), in mode
// step unless it is compile. MODEL is for these alone. Exit code 1 if a budget does not hold.
// Otherwise one JSON line:
//   peak_kb   the most tensor data alive during a step, above what is alive before it (parameters and their gradients)
//   step_ms   median step
//   loss      of the last step
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "benchmarks/common/line.h"
#include "benchmarks/common/program.h"
#include "benchmarks/memory_budgets.h"
#include "benchmarks/memory_models.h"
#include "benchmarks/train/models.h"

namespace bench {
namespace {

namespace rg = retrograd;
namespace nn = retrograd::nn;
using Clock = std::chrono::steady_clock;

struct Sizes {
  int64_t layers = 8, dim = 256, heads = 4, hidden = 704, length = 512, batch = 2, vocabulary = 512;
};

struct Norm : nn::Module {
  nn::Parameter weight;

  Norm(Module* parent, std::string name, int64_t dim)
      : Module(parent, std::move(name)), weight(this, "weight", rg::ones({dim})) {}
  rg::Tensor forward(const rg::Tensor& x) const { return rg::rms_norm(x, {weight.size(0)}, weight); }
};

struct Block : nn::Module {
  int64_t heads;
  Norm norm1, norm2;
  nn::Linear qkv, out, gate, up, down;

  Block(Module* parent, std::string name, const Sizes& s)
      : Module(parent, std::move(name)),
        heads(s.heads),
        norm1(this, "norm1", s.dim),
        norm2(this, "norm2", s.dim),
        qkv(this, "qkv", s.dim, 3 * s.dim, {.bias = false}),
        out(this, "out", s.dim, s.dim, {.bias = false}),
        gate(this, "gate", s.dim, s.hidden, {.bias = false}),
        up(this, "up", s.dim, s.hidden, {.bias = false}),
        down(this, "down", s.hidden, s.dim, {.bias = false}) {}

  rg::Tensor forward(const rg::Tensor& x) const {
    const int64_t batch = x.size(0), length = x.size(1), dim = x.size(2);
    rg::Tensors parts = rg::chunk(qkv(norm1.forward(x)), 3, -1);
    for (rg::Tensor& t : parts) t = rg::transpose(rg::view(t, {batch, length, heads, dim / heads}), 1, 2);
    const rg::Tensor attended = rg::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    const rg::Tensor y = x + out(rg::reshape(rg::transpose(attended, 1, 2), {batch, length, dim}));
    const rg::Tensor h = norm2.forward(y);
    return y + down(rg::silu(gate(h)) * up(h));
  }
};

struct Llama : nn::Module {
  nn::Embedding embedding;
  nn::ModuleList<Block> blocks{this, "blocks"};
  Norm norm;
  nn::Linear head;

  explicit Llama(const Sizes& s)
      : embedding(this, "embedding", s.vocabulary, s.dim),
        norm(this, "norm", s.dim),
        head(this, "head", s.dim, s.vocabulary, {.bias = false}) {
    for (int64_t i = 0; i < s.layers; ++i) blocks.emplace_back(s);
  }
  // `recompute`: "none"; "block": each block is a checkpoint; else the name of a policy.
  rg::Tensor loss(const rg::Tensor& tokens, const rg::Tensor& next, const std::string& recompute) const {
    std::optional<rg::RecomputeScope> scope;
    if (recompute == "products") scope.emplace(rg::policies::save_matrix_products());
    if (recompute == "all") scope.emplace(rg::policies::recompute_all());
    rg::Tensor x = embedding(tokens);
    for (const auto& block : blocks.items())
      x = recompute == "block" ? rg::checkpoint([&](const rg::Tensor& in) { return block->forward(in); }, x)
                               : block->forward(x);
    return rg::cross_entropy(rg::flatten(head(norm.forward(x)), 0, 1), rg::flatten(next));
  }
};

using Loss = std::function<rg::Tensor(const rg::Tensor&, const rg::Tensor&)>;

// A function that runs forward and backward, in a mode.
Loss step_of(Llama& model, const std::string& mode, bool half, const std::string& recompute) {
  const Loss loss = [&model, half, recompute](const rg::Tensor& tokens, const rg::Tensor& next) {
    std::optional<rg::SavedTensorHooksGuard> guard;
    if (half) guard.emplace(rg::save_as_half(model.parameters()));
    return model.loss(tokens, next, recompute);
  };
  const auto then_backward = [](auto f) {
    return [f](const rg::Tensor& tokens, const rg::Tensor& next) mutable {
      const rg::Tensor l = f(tokens, next);
      l.backward();
      return l.detach();
    };
  };
  if (mode == "compile") return then_backward(rg::compile(loss));
  if (mode == "step") return rg::compile_step(Loss(then_backward(loss)));
  if (mode == "traced") {
    auto backward = std::make_shared<rg::CompiledBackward>(rg::compile_backward());
    return [loss, backward](const rg::Tensor& tokens, const rg::Tensor& next) {
      const rg::Tensor l = loss(tokens, next);
      (*backward)(l);
      return l.detach();
    };
  }
  return then_backward(loss);
}

std::pair<rg::Tensor, rg::Tensor> batch_of(const Sizes& s) {
  return {rg::randint(0, s.vocabulary, {s.batch, s.length}, rg::kInt64),
          rg::randint(0, s.vocabulary, {s.batch, s.length}, rg::kInt64)};
}

// `values` of --budgets: parts, or the number of budgets.
Budgets budgets_of(const std::vector<double>& values) {
  const auto is_part = [](double value) { return value >= 0 && value <= 1; };
  if (std::ranges::all_of(values, is_part)) return {values, 0};
  if (values.size() != 1 || values[0] < 2 || values[0] > 1000 || values[0] != std::floor(values[0]))
    throw CLI::ValidationError("--budgets", "parts from 0 to 1, or a number of budgets from 2 to 1000");
  return {{}, static_cast<int>(values[0])};
}

// Whether all of them hold.
bool run_budgets(const std::string& name, const std::string& mode, const Sizes& s, BatchSize size,
                 const Budgets& budgets, int steps) {
  rg::manual_seed(0);
  const auto measured = [&](const nn::Module& model, const std::function<rg::Tensor()>& loss) {
    return measure_budgets(name, mode, model.parameters(), loss, budgets, steps);
  };
  if (name == "llama") {
    const Llama model(s);
    const auto [tokens, next] = batch_of(s);
    return measured(model, [&] { return model.loss(tokens, next, "none"); });
  }
  if (name == "cnn") {
    const Cnn model(size.batch ? size.batch : 64);
    return measured(model, [&] { return model.loss(); });
  }
  if (name == "chain-100") {
    const Chain model(100, size.batch ? size.batch : 2048);
    return measured(model, [&] { return model.loss(); });
  }
  const std::unique_ptr<Model> model = make_model(name, size);
  return measured(*model, [&] { return model->loss(); });
}

void measure(const Sizes& s, const std::string& mode, const std::string& pair, const std::string& recompute,
             int steps) {
  rg::manual_seed(0);
  Llama model(s);
  for (const rg::Tensor& p : model.parameters()) p.set_grad(rg::zeros_like(p));
  const auto [tokens, next] = batch_of(s);
  const Loss step = step_of(model, mode, pair == "half", recompute);
  for (int i = 0; i < 2; ++i) step(tokens, next);
  std::vector<double> times;
  int64_t peak = 0;
  double loss = 0;
  for (int i = 0; i < steps; ++i) {
    const int64_t before = rg::memory::stats().live_bytes;
    rg::memory::reset_peak();
    const auto begin = Clock::now();
    const rg::Tensor l = step(tokens, next);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    peak = std::max(peak, rg::memory::stats().peak_bytes - before);
    loss = l.item<double>();
  }
  std::nth_element(times.begin(), times.begin() + steps / 2, times.end());
  Line()
      .text("bench", "memory")
      .text("model", "llama")
      .text("mode", mode)
      .text("pair", pair)
      .text("recompute", recompute)
      .number("peak_kb", static_cast<double>(peak) / 1024, 0)
      .number("step_ms", times[static_cast<size_t>(steps / 2)], 1)
      .number("loss", loss, 6)
      .print();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  CLI::App app("Peak memory of a training step of a Llama-style model.", "memory");
  bench::Sizes sizes;
  int threads = 2, steps = 5;
  int64_t block = 0, loss_rows = 0;
  std::string model = "llama", mode = "eager", pair = "none", recompute = "none";
  std::vector<double> budgets;
  app.add_option("--layers", sizes.layers)->check(CLI::PositiveNumber);
  app.add_option("--dim", sizes.dim)->check(CLI::PositiveNumber);
  app.add_option("--heads", sizes.heads)->check(CLI::PositiveNumber);
  app.add_option("--hidden", sizes.hidden)->check(CLI::PositiveNumber);
  app.add_option("--length", sizes.length)->check(CLI::PositiveNumber);
  app.add_option("--batch", sizes.batch)->check(CLI::PositiveNumber);
  app.add_option("model", model, "of --budgets");
  app.add_option("--budgets", budgets, "parts of the eager peak, or their number")->delimiter(',');
  app.add_option("--block", block, "of another model than llama");
  app.add_option("--loss-rows", loss_rows, "of gpt-char and gpt-124m: rows of logits at a time; 0: all")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--threads", threads)->check(CLI::PositiveNumber);
  app.add_option("--steps", steps)->check(CLI::PositiveNumber);
  app.add_option("--mode", mode)->check(CLI::IsMember({"eager", "traced", "compile", "step"}));
  app.add_option("--pair", pair, "of saved-tensor hooks")->check(CLI::IsMember({"none", "half"}));
  app.add_option("--recompute", recompute)->check(CLI::IsMember({"none", "block", "products", "all"}));
  bool holds = true;
  const int code = bench::run_program(app, argc, argv, [&](const bench::Place&) {
    retrograd::cpu::set_num_threads(threads);
    if (budgets.empty())
      bench::measure(sizes, mode, pair, recompute, steps);
    else
      holds = bench::run_budgets(model, mode == "compile" ? mode : "step", sizes,
                                 {app.count("--batch") ? sizes.batch : 0, block, loss_rows},
                                 bench::budgets_of(budgets), steps);
  });
  return code == 0 && !holds ? 1 : code;
}
