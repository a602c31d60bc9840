// Steps of optimizers in a plan for an executor that joins them: one launch for all parameters of a group of options,
// in which a graph follows changes of the numbers; numbers that diverge in a later run; clipping; and which part of a
// failed step has been done and is counted.
#include <catch2/catch.hpp>

#include "tests/tracer/planned_step.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Category;
using rg::Tensor;
using rg::Tensors;
using rg::testing::PlannedStep;

namespace {

// Many parameters, each of another size.
struct Net {
  Tensors weights, biases;

  explicit Net(int layers) {
    for (int i = 0; i < layers; ++i) {
      weights.push_back(rg::full({i + 2, 3}, 0.5).requires_grad_());
      biases.push_back(rg::full({i + 1}, 0.25).requires_grad_());
    }
  }
  Tensor loss(const Tensor& x) const {
    Tensor all = rg::sum(x);
    for (const Tensor& w : weights) all = all + rg::sum(w * x);
    for (const Tensor& b : biases) all = all + rg::sum(b * 2.0);
    return all;
  }
};

int64_t count(const std::string& text, const std::string& word) {
  int64_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

int groups_of_updates(const rg::ir::Graph& graph) {
  int groups = 0;
  int32_t last = -1;
  for (const rg::ir::Node& node : graph.nodes())
    if (node.op->is(rg::Trait::updates)) {
      groups += node.group < 0 || node.group != last;
      last = node.group;
    }
  return groups;
}

}  // namespace

TEST_CASE(
    "AdamW over 150 parameters is two launches for two groups of options, not recorded again for other "
    "numbers") {
  Net net(75);
  optim::AdamW optimizer({{net.weights, {.weight_decay = 0.1}}, {net.biases, {.weight_decay = 0}}});
  PlannedStep step(
      [&](const Tensors& a) -> Tensors {
        optimizer.zero_grad();
        const Tensor loss = net.loss(a[0]);
        loss.backward();
        optimizer.step();
        return {loss};
      },
      {rg::ones({3})});
  CHECK(groups_of_updates(step.graph()) == 2);
  CHECK(count(step.run(), "launch adamw_step") == 2);
  CHECK(step.segments().find("as a graph\n") != std::string::npos);
  step.run();
  const rg::LaunchStats recorded = step.stats();
  CHECK(recorded.segments == 1);
  CHECK(recorded.recordings == 1);
  for (int i = 0; i < 3; ++i) {
    step.change_numbers();
    CHECK(step.run() == "start graph 0\n");
  }
  const rg::LaunchStats now = step.stats();
  CHECK(now.updates == recorded.updates);
  CHECK(now.graph_launches - recorded.graph_launches == 3);
  CHECK(now.launches == recorded.launches);
  CHECK(now.recordings == 1);
}

TEST_CASE("numbers that part in a later run are launches of their own") {
  Net net(3);
  optim::SGD optimizer(net.weights, {.lr = 0.1, .momentum = 0.9});
  PlannedStep step(
      [&](const Tensors& a) -> Tensors {
        optimizer.zero_grad();
        net.loss(a[0]).backward();
        optimizer.step();
        return {};
      },
      {rg::ones({3})});
  CHECK(groups_of_updates(step.graph()) == 1);
  const std::string first = step.run();
  INFO(first);
  CHECK(count(first, "launch sgd_step") == 1);
  CHECK(first.find(" f32[2,3], f32[2,3], f32[3,3], f32[3,3], f32[4,3], f32[4,3] over operand 0\n") !=
        std::string::npos);
  step.run();
  step.change_numbers(7);  // 5 of each update: of the first and of the second, not of the third
  CHECK(count(step.run(), "launch sgd_step") == 3);
  CHECK(step.stats().updates == 1);
  step.change_numbers();  // of all, which stay apart
  CHECK(step.run() == "start graph 0\n");
  CHECK(step.stats().updates == 1);
}

TEST_CASE("numbers that part, meet and part again are recorded once for each place where they part") {
  Net net(3);
  optim::SGD optimizer(net.weights, {.lr = 0.1, .momentum = 0.9});
  PlannedStep step(
      [&](const Tensors& a) -> Tensors {
        optimizer.zero_grad();
        net.loss(a[0]).backward();
        optimizer.step();
        return {};
      },
      {rg::ones({3})});
  constexpr size_t kFirst = 0,
                   kLast = 10;  // a number of the first update, and the same one of the last of three
  for (int i = 0; i < 3; ++i) step.run();
  CHECK(step.stats().updates == 0);
  step.scale_number(kFirst, 0.5);
  CHECK(count(step.run(), "launch sgd_step") == 2);
  step.scale_number(kFirst, 2);
  step.scale_number(kLast, 0.5);
  CHECK(count(step.run(), "launch sgd_step") == 3);  // the first stays apart
  CHECK(step.stats().updates == 2);
  for (int i = 0; i < 4; ++i) {
    step.scale_number(kFirst, 0.5);
    step.scale_number(kLast, 2);
    CHECK(step.run() == "start graph 0\n");
    step.scale_number(kFirst, 2);
    step.scale_number(kLast, 0.5);
    CHECK(step.run() == "start graph 0\n");
  }
  CHECK(step.stats().updates == 2);
  CHECK(step.stats().recordings == 1);
}

TEST_CASE("gradients that are clipped together, then one launch") {
  Net net(4);
  optim::SGD optimizer(net.weights, {.lr = 0.1});
  PlannedStep step(
      [&](const Tensors& a) -> Tensors {
        optimizer.zero_grad();
        net.loss(a[0]).backward();
        const Tensor norm = optim::clip_grad_norm_(net.weights, 0.5).tensor();
        optimizer.step();
        return {norm};
      },
      {rg::ones({3})});
  const std::string text = step.run();
  CHECK(count(text, "launch total_norm") == 1);
  CHECK(count(text, "launch sgd_step") == 1);
  CHECK(text.find("launch total_norm") < text.find("launch sgd_step"));
}

TEST_CASE("two steps of one optimizer are two launches") {
  Net net(4);
  optim::SGD optimizer(net.weights, {.lr = 0.1});
  PlannedStep step(
      [&](const Tensors& a) -> Tensors {
        for (int i = 0; i < 2; ++i) {
          optimizer.zero_grad();
          net.loss(a[0]).backward();
          optimizer.step();
        }
        return {};
      },
      {rg::ones({3})});
  CHECK(count(step.run(), "launch sgd_step") == 2);
}

TEST_CASE("an executor that does not ask for it launches each") {
  Net net(4);
  optim::SGD optimizer(net.weights, {.lr = 0.1});
  PlannedStep step(
      [&](const Tensors& a) -> Tensors {
        optimizer.zero_grad();
        net.loss(a[0]).backward();
        optimizer.step();
        return {};
      },
      {rg::ones({3})}, false);
  CHECK(count(step.run(), "launch sgd_step") == 4);
}
