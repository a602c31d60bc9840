// Accumulation into .grad: one capture whether .grad is defined or not, in place or taken over or copied, layouts,
// dtypes and broadcasting, and that gradients given by the caller are never written to. Not tested here: sparse
// gradients, which do not exist, and other devices (tests/cuda).
#include "scenario.h"

using namespace scenario;
using Values = std::vector<double>;

TEST_CASE("S40 ten steps without zeroing: one capture, with and without a .grad") {
  struct State {
    Tensor w = leaf({1, 2});
  };
  run_both<State>({.steps = 10, .captures = 1}, [](State& s, Mode& mode, int step) {
    mode.backward(rg::sum(s.w * rg::tensor({3.0, 5})));
    CHECK(values(s.w.grad()) == Values{3.0 * (step + 1), 5.0 * (step + 1)});
    return Tensors{s.w.grad().clone()};
  });
}

TEST_CASE("S40 .grad comes and goes: one capture") {
  struct State {
    Tensor w = leaf({1, 2});
  };
  run_both<State>({.steps = 6, .captures = 1}, [](State& s, Mode& mode, int step) {
    if (step % 3 == 0) s.w.set_grad({});
    mode.backward(rg::sum(s.w * s.w));
    CHECK(values(s.w.grad()) == Values{2.0 * (step % 3 + 1), 4.0 * (step % 3 + 1)});
    return Tensors{s.w.grad().clone()};
  });
}

TEST_CASE("S41 a .grad that the user assigns is updated in place") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int step) {
    const Tensor w = leaf({1, 2}), mine = rg::full({2}, 1.0 * step);
    const void* memory = mine.raw_data();
    w.set_grad(mine);
    mode.backward(rg::sum(w * w));
    CHECK(w.grad().is_same(mine));
    CHECK(w.grad().raw_data() == memory);
    CHECK(values(mine) == Values{2.0 + step, 4.0 + step});
    return Tensors{mine};
  });
}

TEST_CASE("S42 a fresh gradient that nobody else holds becomes .grad without a copy") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor w = leaf({1, 2});
    const void* memory = nullptr;
    w.register_hook([&](const Tensor& g) { return memory = g.raw_data(), Tensor(); });
    mode.backward(rg::sum(w * rg::tensor({3.0, 5})));
    CHECK(w.grad().raw_data() == memory);
    CHECK(values(w.grad()) == Values{3, 5});
    return Tensors{w.grad()};
  });
}

TEST_CASE("S44 with create_graph the gradient is copied and keeps its history") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor w = leaf({1, 2});
    Tensor kept;
    w.register_hook([&](const Tensor& g) { return kept = g, Tensor(); });
    mode.backward({rg::sum(w * w)}, {}, {}, true);
    CHECK(w.grad().requires_grad());
    CHECK_FALSE(w.grad().is_same(kept));
    CHECK(w.grad().raw_data() != kept.raw_data());
    const Tensor result = w.grad().detach();
    w.set_grad({});  // it refers to w, and w to it
    return Tensors{result};
  });
}

TEST_CASE("S45 a gradient that a hook kept is copied") {
  run_both({.steps = 3, .captures = 1}, [](Mode& mode, int) {
    const Tensor w = leaf({1, 2});
    Tensor kept;
    w.register_hook([&](const Tensor& g) { return kept = g, Tensor(); });
    mode.backward(rg::sum(w * rg::tensor({3.0, 5})));
    CHECK(w.grad().raw_data() != kept.raw_data());
    w.grad().zero_();
    CHECK(values(kept) == Values{3, 5});
    return Tensors{kept};
  });
}

TEST_CASE("S46 a parameter with gaps has a row-major .grad") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor base = spread({4, 6}, 3), w = rg::as_strided(base, {2, 3}, {12, 2}).requires_grad_();
    REQUIRE(w.is_leaf());
    mode.backward(rg::sum(w * w));
    CHECK(w.grad().strides() == rg::IntArray{3, 1});
    CHECK(values(w.grad())[1] == 2 * values(base)[2]);
    return Tensors{w.grad()};
  });
}

TEST_CASE("S46 the .grad of a dense parameter has the parameter's strides") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor w = spread({3, 2}, 3).t().requires_grad_();
    REQUIRE(w.is_leaf());
    REQUIRE(w.strides() == rg::IntArray{1, 2});
    mode.backward(rg::sum(w * w));
    CHECK(w.grad().strides() == w.strides());
    CHECK(values(w.grad())[1] == 2 * values(w)[1]);
    return Tensors{w.grad()};
  });
}

TEST_CASE("S48 a later gradient is added in place: .grad stays the same object") {
  struct State {
    Tensor w = leaf({1, 2}), first;
    const void* memory = nullptr;
    uint32_t version = 0;
  };
  run_both<State>({.steps = 3, .captures = 1}, [](State& s, Mode& mode, int step) {
    mode.backward(rg::sum(s.w * rg::tensor({3.0, 5})));
    if (step > 0) {
      CHECK(s.w.grad().is_same(s.first));
      CHECK(s.w.grad().raw_data() == s.memory);
      CHECK(s.w.grad().version() > s.version);
    }
    s.first = s.w.grad();
    s.memory = s.first.raw_data();
    s.version = s.first.version();
    CHECK(values(s.first) == Values{3.0 * (step + 1), 5.0 * (step + 1)});
    return Tensors{s.first.clone()};
  });
}

TEST_CASE("S51 with create_graph accumulation makes a new .grad that has a history") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor w = leaf({1, 2}), before = rg::tensor({10.0, 20});
    w.set_grad(before);
    mode.backward({rg::sum(w * w)}, {}, {}, true);
    CHECK_FALSE(w.grad().is_same(before));
    CHECK(values(before) == Values{10, 20});
    CHECK(values(w.grad()) == Values{12, 24});
    CHECK(w.grad().requires_grad());
    const Tensor result = w.grad().detach();
    w.set_grad({});
    return Tensors{result};
  });
}

TEST_CASE("S52 the graph names the leaf: which .grad is added to is settled when it runs") {
  rg::CompiledBackward compiled = rg::compile_backward();
  for (double start : {0.0, 100.0, -7.0}) {
    const Tensor w = leaf({1, 2});
    if (start != 0) w.set_grad(rg::full({2}, 1.0 * start));
    compiled(rg::sum(w * w));
    CHECK(values(w.grad()) == Values{start + 2, start + 4});
  }
  CHECK(compiled.stats().captures == 1);
  const rg::ir::Graph& graph = *compiled.graph();
  REQUIRE(count_nodes(graph, "accumulate_grad") == 1);
  for (const rg::ir::Node& node : graph.nodes())
    if (node.op->name == "accumulate_grad") {
      CHECK(node.operands == 1);
      REQUIRE(node.handle >= 0);
      CHECK(graph.inputs()[static_cast<size_t>(node.handle)].kind == rg::ir::Input::Kind::leaf);
    }
}

TEST_CASE("S53 gradients given for the roots are never written to") {
  struct State {
    Tensor x = leaf({1, 2}), given = rg::tensor({3.0, 5}), other = rg::tensor({7.0, 11});
  };
  run_both<State>({.steps = 3, .captures = 1}, [](State& s, Mode& mode, int step) {
    const Tensor y = s.x.view({2}),
                 z = rg::neg(y + 1.0);  // rules that hand a gradient on, and one that may write over it
    mode.backward({y, z, y}, {s.given, s.other, s.given});
    CHECK(values(s.given) == Values{3, 5});
    CHECK(values(s.other) == Values{7, 11});
    CHECK(values(s.x.grad()) == Values{-1.0 * (step + 1), -1.0 * (step + 1)});
    CHECK(s.x.grad().raw_data() != s.given.raw_data());
    return Tensors{s.x.grad().clone()};
  });
}

TEST_CASE("S53 a gradient that passes through to a leaf is not the caller's") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2}), given = rg::tensor({3.0, 5});
    mode.backward({x.view({2})}, {given});
    x.grad().mul_(100.0);
    mode.backward({x.view({2})}, {given});
    CHECK(values(given) == Values{3, 5});
    CHECK(values(x.grad()) == Values{303, 505});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S54 a gradient has the dtype of its leaf, also where the op computed in another") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = leaf({1, 2}), w = rg::tensor({0.1, 0.7}, {rg::kFloat64});
    mode.backward(rg::sum(x * w));
    CHECK(x.grad().dtype() == rg::kFloat32);
    CHECK(values(x.grad()) == Values{double(0.1f), double(0.7f)});
    return Tensors{x.grad()};
  });
}

TEST_CASE("S54 a gradient has the shape of its leaf, also where that was broadcast") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor x = rg::arange(1, 7, 1, {rg::kFloat32}).view({2, 3});
    const Tensor row = leaf({1, 1, 1}), column = leaf({1, 1}, {2, 1}), number = leaf({1}, {});
    mode.backward(rg::sum(x * row * column * number));
    CHECK(values(row.grad()) == Values{5, 7, 9});
    CHECK(values(column.grad()) == Values{6, 15});
    CHECK(values(number.grad()) == Values{21});
    CHECK(column.grad().sizes() == rg::IntArray{2, 1});
    CHECK(number.grad().dim() == 0);
    return Tensors{row.grad(), column.grad(), number.grad()};
  });
}

TEST_CASE("S55 a leaf without elements, broadcast against one column") {
  run_both({.steps = 2, .captures = 1}, [](Mode& mode, int) {
    const Tensor empty = rg::zeros({4, 0}).requires_grad_(), column = leaf({1, 2, 3, 4}, {4, 1});
    mode.backward(rg::sum(empty * column));
    REQUIRE(empty.grad().defined());
    CHECK(empty.grad().sizes() == rg::IntArray{4, 0});
    CHECK(column.grad().sizes() == rg::IntArray{4, 1});
    CHECK(values(column.grad()) == Values{0, 0, 0, 0});
    return Tensors{empty.grad(), column.grad()};
  });
}

TEST_CASE("S56 a leaf cannot be moved into the interior of a graph") {
  const Tensor x = leaf({1, 2}), other = leaf({3, 5});
  CHECK(category_of([&] { x.mul_(2.0); }) == rg::Category::leaf_inplace);
  CHECK(category_of([&] { x.add_(other); }) == rg::Category::leaf_inplace);
  CHECK(category_of([&] { x.narrow(0, 0, 1).mul_(2.0); }) == rg::Category::leaf_inplace);
  CHECK(values(x) == Values{1, 2});
  CHECK(x.is_leaf());
  run_both({.steps = 2, .captures = 1}, [&](Mode& mode, int) {
    x.set_grad({});
    mode.backward(rg::sum(x * x));
    CHECK(values(x.grad()) == Values{2, 4});
    return Tensors{x.grad()};
  });
}
