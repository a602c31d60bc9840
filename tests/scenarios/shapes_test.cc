// Other sizes of the same structure: one capture is used for all, sizes are symbols and no constants, and a necessary
// capture says why. A size that is or becomes 0 or 1 is another structure. Not tested here: sizes of saved tensors that
// hooks keep elsewhere.
#include <sstream>

#include "ir/text.h"
#include "ops/all_ops.h"
#include "scenario.h"

using namespace scenario;

namespace {

struct Net {
  Tensor w1 = parameter({8, 7}, 1), b1 = parameter({8}, 5), w2 = parameter({5, 8}, 8);

  Tensor logits(const Tensor& x) const { return rg::linear(rg::gelu(rg::linear(x, w1, b1)), w2); }
  Tensors grads() const { return {w1.grad(), b1.grad(), w2.grad()}; }
  void clear() const {
    for (const Tensor& p : {w1, b1, w2}) p.set_grad({});
  }
};

// One step for each batch size, gradients compared with eager's.
void run_batches(const std::vector<int64_t>& batches, int64_t captures) {
  run_both<Net>(
      {.steps = static_cast<int>(batches.size()), .captures = captures}, [&](Net& net, Mode& mode, int step) {
        net.clear();
        mode.backward(
            rg::mean(rg::log_softmax(net.logits(spread({batches[static_cast<size_t>(step)], 7}, step)), 1)));
        if (mode.traced()) CHECK(mode.captures() + mode.compiled()->stats().hits == mode.calls());
        return net.grads();
      });
}

}  // namespace

TEST_CASE("S30 batches of 10, 20 to 90: one capture") {
  run_batches({10, 20, 30, 40, 50, 60, 70, 80, 90}, 1);
}

TEST_CASE("S31 batches of 1, 2, 3: at most two captures, as 1 is a structure of its own") {
  run_batches({1, 2, 3}, 2);
}

TEST_CASE(
    "S31 batches that are equal to other sizes by chance: the first one that is not serves all later ones") {
  run_batches({1, 5, 7, 8, 9, 5, 7, 8, 1, 30, 7}, 5);  // 5, 7 and 8 are sizes of the weights
}

TEST_CASE("S32 batches of 10, 100, 10, 15, 20, 25: one capture") {
  run_batches({10, 100, 10, 15, 20, 25}, 1);
}

TEST_CASE("S33 batch and rows of a view change together: one capture") {
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{10, 2}, {20, 4}, {30, 8}};
  run_both({.steps = 3, .captures = 1}, [&](Mode& mode, int step) {
    const auto [batch, rows] = sizes[static_cast<size_t>(step)];
    const Tensor w = parameter({4, 4}, 1), x = parameter({batch, 4}, 2);
    mode.backward(rg::sum(rg::tanh(rg::mm(x, w)).view({rows, -1})));
    CHECK(x.grad().sizes() == rg::IntArray{batch, 4});
    return Tensors{x.grad(), w.grad()};
  });
}

TEST_CASE("S33 a sum over rows after the view") {
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{10, 2}, {20, 4}, {30, 8}};
  run_both({.steps = 3, .captures = 1}, [&](Mode& mode, int step) {
    const auto [batch, rows] = sizes[static_cast<size_t>(step)];
    const Tensor x = parameter({batch, 4}, 2);
    const Tensor y = rg::sum(rg::tanh(x).view({rows, -1}), {1});
    mode.backward(rg::sum(y * y));
    return Tensors{x.grad()};
  });
}

TEST_CASE("S34 sizes that change from the second step on: captures 1, 0, 0, 0") {
  run_both<Net>({.steps = 4, .captures = 1}, [](Net& net, Mode& mode, int step) {
    const rg::IntArray batches = {10, 20, 30, 40};
    mode.backward(rg::sum(net.logits(spread({batches[static_cast<size_t>(step)], 7}, step))));
    if (mode.traced()) CHECK(mode.captures() == 1);
    return net.grads();
  });
}

TEST_CASE("S35 sizes of 0, and sizes and places given as negative numbers") {
  run_both({.steps = 6, .captures = 2}, [](Mode& mode, int step) {
    const int64_t batch = std::array<int64_t, 6>{0, 4, 0, 6, 0, 5}[static_cast<size_t>(step)];
    const Tensor w = parameter({3, 2}, 1), x = parameter({batch, 3}, 2);
    const Tensor y = rg::narrow(rg::mm(x, w).view({-1, 2}), -1, -1, 1);  // the last column
    mode.backward(rg::sum(y * y));
    REQUIRE(x.grad().defined());
    CHECK(x.grad().sizes() == rg::IntArray{batch, 3});
    if (batch == 0)
      CHECK(values(w.grad()) == std::vector<double>(6, 0));
    else
      CHECK(rg::sum(rg::abs(w.grad())).item<double>() > 0);
    return Tensors{x.grad(), w.grad()};
  });
}

TEST_CASE("S36 the first size, when it comes back, needs neither a capture nor a plan") {
  rg::CompiledBackward compiled = rg::compile_backward();
  for (int64_t batch : {4, 6, 4, 6, 9, 4}) {
    const Tensor x = parameter({batch, 3}, 2), same = parameter({batch, 3}, 2);
    compiled(rg::sum(rg::tanh(x)));
    rg::sum(rg::tanh(same)).backward();
    check_same({same.grad()}, {x.grad()});
  }
  CHECK(compiled.stats().captures == 1);
  CHECK(compiled.stats().hits == 5);
  CHECK(compiled.stats().plans == 3);
}

TEST_CASE("S37 two sizes that were equal by coincidence: one more capture, and the reason names them") {
  run_both({.steps = 4, .captures = 2}, [](Mode& mode, int step) {
    const int64_t batch = std::array<int64_t, 4>{5, 9, 7, 5}[static_cast<size_t>(step)];
    const Tensor w = parameter({5, 2}, 1), x = parameter({batch, 5}, 2);
    mode.backward(rg::sum(rg::tanh(rg::mm(x, w))));
    if (mode.traced() && step == 1) {
      const std::string reason = mode.compiled()->last_capture_reason();
      INFO(reason);
      CHECK_THAT(reason, Catch::Contains("mm#") || Catch::Contains("tanh#"));
      CHECK_THAT(reason, Catch::Contains("5"));
      CHECK_THAT(reason, Catch::Contains("9"));
    }
    if (mode.traced()) CHECK(mode.captures() == std::min(step + 1, 2));
    return Tensors{x.grad(), w.grad()};
  });
}

TEST_CASE("S37 changed sizes that the graph already serves give no reason to capture") {
  rg::CompiledBackward compiled = rg::compile_backward();
  for (int64_t batch : {4, 6, 8}) {
    compiled(rg::sum(rg::tanh(rg::mm(parameter({batch, 3}), parameter({3, 2})))));
    CHECK(compiled.last_capture_reason() == "first call");
  }
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("S38 sizes that the graph does not use are no symbols of it") {
  rg::CompiledBackward compiled = rg::compile_backward();
  const Tensor x = parameter({11, 13});                                 // not reached by this grad()
  const Tensor y = rg::sum(rg::tanh(x), {1});                           // [11]
  const Tensor z = rg::cat({rg::narrow(y, 0, 0, 3), rg::zeros({17})});  // [20]
  CHECK(values(compiled.grad({rg::sum(z.narrow(0, 0, 3))}, {z})[0])[2] == 1);
  const std::string text = compiled.graph()->print();
  INFO(text);
  const std::string head = text.substr(text.find('[') + 1, text.find(']') - text.find('[') - 1);
  CHECK_THAT(head, Catch::Contains("= 20"));
  for (const char* size : {"= 11", "= 13", "= 17"}) CHECK_THAT(head, !Catch::Contains(size));
  std::istringstream symbols(head.substr(0, head.find(';')));
  const std::string body = text.substr(text.find(']'));
  for (std::string symbol; std::getline(symbols, symbol, ',');) {  // "s0 = 20"
    const std::string name =
        symbol.substr(symbol.find('s'), symbol.find(' ', symbol.find('s')) - symbol.find('s'));
    CHECK_THAT(body, Catch::Contains(name));
  }
}

TEST_CASE("S39 a size that only the backward uses is no constant of the graph") {
  run_both({.steps = 4, .captures = 1}, [](Mode& mode, int step) {
    const int64_t batch = std::array<int64_t, 4>{10, 16, 64, 10}[static_cast<size_t>(step)];
    const Tensor x = parameter({batch, 4}, 2), y = parameter({batch, 4}, 3);
    mode.backward(rg::mean(x) + rg::sum(rg::var(y, {0})));
    CHECK(values(x.grad()) ==
          std::vector<double>(static_cast<size_t>(4 * batch), static_cast<float>(0.25 / double(batch))));
    return Tensors{x.grad(), y.grad()};
  });
}
