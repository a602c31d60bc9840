// Adam8bit and AdamW8bit (optim/adam8bit.h): codes against a table of the dynamic map, steps against a plain loop,
// memory of the state, recorded steps and saved state with the same bits, and that they train as AdamW does.
#include <catch2/catch.hpp>

#include <cmath>

#include "engine/allocator.h"
#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/optimizer_state.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Tensor;
using rg::Tensors;

namespace {

using Vector = std::vector<double>;

// bitsandbytes' dynamic map, in order of size.
Vector dynamic_map(bool has_sign) {
  Vector map = {0, 1};
  for (int decade = 0; decade < 7; ++decade) {
    const int parts = has_sign ? 1 << decade : 2 << decade;
    for (int part = 0; part < parts; ++part) {
      const double value = std::pow(10, decade - 6) * (0.1 + 0.9 * (part + 0.5) / parts);
      map.push_back(value);
      if (has_sign) map.push_back(-value);
    }
  }
  std::ranges::sort(map);
  return map;
}

Vector decoded(const rg::StateDict& state, const std::string& name, bool has_sign) {
  const Vector map = dynamic_map(has_sign), codes = state.at("0." + name).to_vector(),
               largest = state.at("0." + name + "_absmax").to_vector();
  Vector values;
  for (size_t i = 0; i < codes.size(); ++i)
    values.push_back(map[static_cast<size_t>(codes[i])] * largest[i / 256]);
  return values;
}

// Of many sizes, in blocks of which one is zero.
Tensor gradient(int64_t n, int t) {
  Vector values;
  for (int64_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i);
    values.push_back(i / 256 == 3 ? 0 : std::sin(1.7 * x + t) * std::pow(10, -std::fmod(0.37 * x, 8)));
  }
  return rg::tensor(values, {n}, {rg::kFloat64}).to(rg::kFloat32);
}
Tensor parameter(int64_t n, rg::ScalarType dtype = rg::kFloat32) {
  return rg::cos(rg::arange(n, {rg::kFloat32}) * 0.9).to(dtype).requires_grad_();
}
void give(optim::Optimizer& optimizer, const Tensor& p, int t) {
  p.set_grad(gradient(p.numel(), t).reshape(p.sizes()).to(p.dtype()));
  optimizer.step();
}

double distance_in(const Vector& map, double x) {
  const auto above = std::ranges::lower_bound(map, x);
  double least = above == map.end() ? INFINITY : *above - x;
  if (above != map.begin()) least = std::min(least, x - *(above - 1));
  return least;
}

}  // namespace

TEST_CASE("moments are coded by the nearest value of the dynamic map") {
  CHECK(dynamic_map(true).size() == 256);
  CHECK(dynamic_map(false).size() == 256);
  const int64_t n = 40'000;
  const Tensor p = parameter(n);
  optim::Adam8bit optimizer({p}, {.betas = {0, 0}});  // moments are g and g^2
  give(optimizer, p, 1);
  const Vector g = p.grad().to_vector();
  for (const bool has_sign : {true, false}) {
    const Vector map = dynamic_map(has_sign),
                 found = decoded(rg::state_of(optimizer), has_sign ? "exp_avg" : "exp_avg_sq", has_sign);
    int wrong = 0;
    for (size_t begin = 0; begin < g.size(); begin += 256) {
      const size_t end = std::min(g.size(), begin + 256);
      double largest = 0;
      const auto moment = [&](size_t i) { return has_sign ? g[i] : g[i] * g[i]; };
      for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(moment(i)));
      if (largest == 0) {
        for (size_t i = begin; i < end; ++i) CHECK(found[i] == 0);
        continue;
      }
      for (size_t i = begin; i < end; ++i) {
        const double x = moment(i) / largest, error = std::abs(found[i] / largest - x);
        wrong += error > distance_in(map, x) + 1e-5 * std::abs(x);
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a step computes from the decoded moments") {
  const int64_t n = 5000;  // not a multiple of a block
  for (const bool is_decoupled : {false, true}) {
    const Tensor p = parameter(n);
    const double lr = 0.01, decay = 0.1;
    std::unique_ptr<optim::Optimizer> optimizer;
    if (is_decoupled)
      optimizer = std::make_unique<optim::AdamW8bit>(
          Tensors{p}, optim::AdamW8bitOptions{.lr = lr, .weight_decay = decay});
    else
      optimizer = std::make_unique<optim::Adam8bit>(Tensors{p},
                                                    optim::Adam8bitOptions{.lr = lr, .weight_decay = decay});
    Vector m(n, 0), v(n, 0);
    for (int t = 1; t <= 4; ++t) {
      const Vector before = p.to_vector();
      give(*optimizer, p, t);
      const Vector g = p.grad().to_vector(), after = p.to_vector();
      double worst = 0;
      for (size_t i = 0; i < before.size(); ++i) {
        const double full = is_decoupled ? g[i] : g[i] + decay * before[i];
        const double mean = 0.9 * m[i] + 0.1 * full, square = 0.999 * v[i] + 0.001 * full * full;
        const double change =
            lr / (1 - std::pow(0.9, t)) * mean / (std::sqrt(square / (1 - std::pow(0.999, t))) + 1e-8);
        const double next = before[i] * (is_decoupled ? 1 - lr * decay : 1) - change;
        worst = std::max(worst, std::abs(next - after[i]) / (1e-3 + std::abs(change)));
      }
      CHECK(worst < 2e-3);
      m = decoded(rg::state_of(*optimizer), "exp_avg", true);
      v = decoded(rg::state_of(*optimizer), "exp_avg_sq", false);
    }
  }
}

TEST_CASE("the state has two bytes an element, and small parameters have plain moments") {
  const int64_t n = 1'000'000;
  const Tensor p = parameter(n);
  const int64_t before = rg::memory::stats().live_bytes;
  const optim::AdamW8bit optimizer({p});
  const int64_t bytes = rg::memory::stats().live_bytes - before;
  CHECK(bytes >= 2 * n);
  CHECK(bytes < 2 * n + n / 20);

  const Tensor small = parameter(4095), same = parameter(4095);
  optim::AdamW8bit plain({small}, {.lr = 0.01});
  optim::AdamW adamw({same}, {.lr = 0.01});
  for (int t = 1; t <= 5; ++t) give(plain, small, t), give(adamw, same, t);
  CHECK_FALSE(rg::state_of(plain).contains("0.exp_avg_absmax"));
  CHECK(rg::amax(rg::abs(small - same)).item<double>() < 1e-6);
}

TEST_CASE("recorded and resumed steps have the bits of eager ones") {
  for (const rg::ScalarType dtype : {rg::kFloat32, rg::kBFloat16, rg::kFloat64})
    for (const bool masters : {false, true}) {
      INFO(rg::name(dtype) << (masters ? " with master weights" : ""));
      const auto params = [&] { return Tensors{parameter(5000, dtype), parameter(300, dtype)}; };
      const Tensors one = params(), two = params(), three = params();
      const auto make = [&](const Tensors& all) {
        return optim::Adam8bit(
            {{.params = all, .options = {.lr = 0.01, .weight_decay = 0.1}, .master_weights = masters}});
      };
      optim::Adam8bit eager = make(one), recorded = make(two), resumed = make(three);
      auto step = rg::compile_step([&](const Tensors& gradients) {
        for (size_t i = 0; i < gradients.size(); ++i) two[i].set_grad(gradients[i]);
        recorded.step();
      });
      for (int t = 1; t <= 6; ++t) {
        Tensors gradients;
        for (const Tensor& p : one) gradients.push_back(gradient(p.numel(), t).to(dtype));
        for (size_t i = 0; i < one.size(); ++i)
          one[i].set_grad(gradients[i]), three[i].set_grad(gradients[i]);
        eager.step();
        step(gradients);
        resumed.step();
        optim::Adam8bit next = make(three);
        next.load_state_dict(resumed.state_dict());
        resumed = next;
      }
      CHECK(step.stats().captures == 1);
      const rg::StateDict state = rg::state_of(eager), of_recorded = rg::state_of(recorded),
                          of_resumed = rg::state_of(resumed);
      for (const auto& [key, value] : state) {
        INFO(key);
        CHECK(value.to_vector() == of_recorded.at(key).to_vector());
        CHECK(value.to_vector() == of_resumed.at(key).to_vector());
      }
      for (size_t i = 0; i < one.size(); ++i) {
        CHECK(one[i].to_vector() == two[i].to_vector());
        CHECK(one[i].to_vector() == three[i].to_vector());
      }
      CHECK(state.at("0.exp_avg").dtype() == rg::kUInt8);
      CHECK(state.at("0.exp_avg_absmax").dtype() == (dtype == rg::kFloat64 ? rg::kFloat64 : rg::kFloat32));
    }
}

TEST_CASE("a skipped step leaves the codes, and a gradient that is not finite is not hidden") {
  const Tensor p = parameter(4096), infinite = rg::full({4096}, INFINITY, {rg::kFloat32});
  optim::AdamW8bit optimizer({p});
  optim::GradScaler scaler({.init_scale = 2});
  auto step = rg::compile_step([&](const Tensor& g) {
    scaler.scale(rg::sum(p * g)).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
  });
  step(gradient(4096, 1));
  const Vector before = p.to_vector(), codes = rg::state_of(optimizer).at("0.exp_avg_sq").to_vector();
  step(infinite);
  CHECK(p.to_vector() == before);
  CHECK(rg::state_of(optimizer).at("0.exp_avg_sq").to_vector() == codes);
  CHECK(rg::state_of(optimizer).at("0.step").item<int64_t>() == 1);
  step(gradient(4096, 2));
  CHECK(p.to_vector() != before);
  p.set_grad(infinite);
  optimizer.step();
  give(optimizer, p, 3);
  for (const double x : p.to_vector()) REQUIRE(std::isnan(x));
}

TEST_CASE("AdamW8bit trains as AdamW does") {
  rg::manual_seed(3);
  const Tensor x = rg::randn({200, 64}), target = rg::matmul(x, rg::randn({64, 80})) + rg::randn({200, 80});
  const auto train = [&](auto optimizer, const Tensor& w) {
    Tensor loss;
    for (int t = 0; t < 200; ++t) {
      loss = rg::mean(rg::square(rg::matmul(x, w) - target));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
    return loss.item<double>();
  };
  const auto start = [] { return rg::zeros({64, 80}, {rg::kFloat32, rg::kCPU, true}); };
  const Tensor a = start(), b = start();
  const double coded = train(optim::AdamW8bit({a}, {.lr = 0.02}), a),
               plain = train(optim::AdamW({b}, {.lr = 0.02}), b);
  const double first = rg::mean(rg::square(target)).item<double>();
  INFO("from " << first << ": AdamW8bit " << coded << ", AdamW " << plain);
  CHECK(plain < 0.1 * first);
  CHECK(std::abs(coded - plain) < 0.01 * (first - plain));
}
