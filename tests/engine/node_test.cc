// Nodes of a backward as a program sees them: names, edges, leaves, saved values, hooks of leaves, walks of long graphs.
// Not tested here: the order in which nodes run (tests/scenarios).
#include "engine/node.h"

#include <unordered_set>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
using rg::Node;
using rg::NodeEdge;
using rg::Tensor;
using Values = std::vector<double>;

namespace {

Tensor leaf(std::vector<double> values) {
  const rg::Shape size{static_cast<int64_t>(values.size())};
  return rg::tensor(values, size, {rg::kFloat64, rg::kCPU, true});
}

struct Product {
  Tensor a = leaf({1, 2}), b = leaf({3, 4}), c = rg::tensor({5.0, 6.0}, {rg::kFloat64}), y = (a * b) * c;
};

}  // namespace

TEST_CASE("a node has the name of its op, with either spelling") {
  const Product p;
  CHECK(p.y.grad_fn()->name() == "mul");
  CHECK(p.y.grad_fn().name() == "mul");
  CHECK((*rg::exp(p.a).grad_fn()).name() == "exp");
  CHECK(std::string(p.y.grad_fn()->where().file).find("node_test") != std::string::npos);
}

TEST_CASE("the grad_fn of a leaf is null") {
  const Product p;
  CHECK(p.a.grad_fn() == nullptr);
  CHECK(nullptr == p.c.grad_fn());
  CHECK_FALSE(p.a.grad_fn());
  CHECK(!p.a.grad_fn());
  CHECK(p.y.grad_fn() != nullptr);
  if (Node node = p.y.grad_fn()) CHECK(node.defined());
  const Node none = p.a.grad_fn();
  CHECK(none->name().empty());
  CHECK(none->next_edges().empty());
  CHECK(none->num_inputs() == 0);
  std::string text;
  CHECK(rg::category_of([&] { none->next_edge(0); }, &text) == rg::Category::hook_forbidden);
  CHECK(text.find("get_gradient_edge") != std::string::npos);
}

TEST_CASE("edges lead to producers, to leaves, and nowhere") {
  const Product p;
  const std::vector<NodeEdge> edges = p.y.grad_fn()->next_edges();
  REQUIRE(edges.size() == 2);
  CHECK(edges == p.y.grad_fn()->next_functions());
  CHECK(edges[0].is_valid());
  CHECK_FALSE(edges[1].is_valid());  // c wants no gradient
  CHECK(edges[1].function == nullptr);
  const Node inner = edges[0].function;
  CHECK(inner->name() == "mul");
  CHECK(inner->num_outputs() == 2);
  const NodeEdge to_a = inner->next_edge(0), to_b = inner->next_edge(1);
  CHECK(to_a.function->name() == "accumulate_grad");
  CHECK(to_a.function->variable().is_same(p.a));
  CHECK(to_b.function->variable().is_same(p.b));
  CHECK_FALSE(inner->variable().defined());
  CHECK(to_a.function->next_edges().empty());
  CHECK(to_a.function->num_inputs() == 1);
  CHECK(rg::category_of([&] { inner->next_edge(2); }) == rg::Category::bad_argument);
}

TEST_CASE("nodes are equal where they show the same record or leaf") {
  const Product p;
  const Tensor z = p.a * 2.0;
  CHECK(p.y.grad_fn() == p.y.grad_fn());
  CHECK(p.y.grad_fn() != z.grad_fn());
  const Node first = rg::autograd::get_gradient_edge(p.a).function;
  CHECK(first == z.grad_fn()->next_edge(0).function);
  CHECK(std::unordered_set<Node>{first, p.y.grad_fn(), p.y.grad_fn()}.size() == 2);
}

TEST_CASE("an edge has the number of the result that it leads to") {
  const Tensor x = leaf({3, 1, 2});
  const Tensor pieces[] = {rg::sort(x).values * 2.0,
                           rg::linalg::qr(rg::eye(2, 2, {rg::kFloat64}) * x[0]).R.sum()};
  CHECK(pieces[0].grad_fn()->next_edge(0).input_nr == 0);
  const Node sum = pieces[1].grad_fn();
  CHECK(sum->next_edge(0).input_nr == 1);
  CHECK(sum->next_edge(0).function->num_inputs() == 2);
  CHECK(rg::linalg::qr(rg::eye(2) * leaf({2})).R.output_nr() == 1);
  CHECK(x.output_nr() == 0);
}

TEST_CASE("metadata is the type of a gradient that arrives") {
  const Tensor y = rg::sum(leaf({1, 2, 3}) * 2.0);
  CHECK(y.grad_fn()->input_metadata(0) == rg::TensorType{rg::kFloat64, rg::kCPU, {}});
  const Node mul = y.grad_fn()->next_edge(0).function;
  CHECK(mul->input_metadata(0).shape == rg::Shape{3});
  CHECK(rg::autograd::get_gradient_edge(leaf({1, 2})).function->input_metadata(0).shape == rg::Shape{2});
  CHECK(rg::category_of([&] { mul->input_metadata(1); }) == rg::Category::bad_argument);
}

TEST_CASE("numbers grow from producer to consumer") {
  const Product p;
  const Node outer = p.y.grad_fn(), inner = outer->next_edge(0).function, a = inner->next_edge(0).function;
  CHECK(outer->sequence_nr() > inner->sequence_nr());
  CHECK(a->sequence_nr() == std::numeric_limits<uint64_t>::max());
  CHECK(outer->topological_nr() == 2);
  CHECK(inner->topological_nr() == 1);
  CHECK(a->topological_nr() == 0);
  const Tensor twice = p.y.sum() + rg::sum(p.a);  // the longest of two paths
  CHECK(twice.grad_fn()->topological_nr() == 4);
}

TEST_CASE("saved values by number and by name, at their place in the graph") {
  const Product p;
  const Node inner = p.y.grad_fn()->next_edge(0).function;
  REQUIRE(inner->saved_count() == 2);
  CHECK(inner->saved_name(0) == "a");
  CHECK(inner->saved("b").to_vector() == Values{3, 4});
  CHECK(inner->saved(0).is_same(p.a));
  const Tensor e = rg::exp(p.a);
  CHECK(e.grad_fn()->saved_name(0) == "result");
  const Tensor result = e.grad_fn()->saved("result");
  CHECK(result.grad_fn() == e.grad_fn());
  CHECK(result.to_vector() == e.to_vector());
  CHECK(rg::category_of([&] { inner->saved("c"); }) == rg::Category::bad_argument);
  CHECK(rg::category_of([&] { inner->saved(2); }) == rg::Category::bad_argument);
  CHECK(rg::linalg::qr(rg::eye(2) * leaf({2})).R.grad_fn()->saved_name(1) == "result1");
  const Tensor x = leaf({2});
  CHECK(
      rg::nn::functional::linear(rg::ones({1, 1}, {rg::kFloat64}), x.view({1, 1})).grad_fn()->saved_count() ==
      1);
}

TEST_CASE("a read of a hooked value is a call of unpack of its own") {
  int unpacked = 0;
  const Tensor a = leaf({1, 2});
  Tensor y;
  {
    const rg::SavedTensorHooksGuard guard([](const Tensor& t) { return t; },
                                          [&](const Tensor& t) {
                                            ++unpacked;
                                            return t;
                                          });
    y = rg::sum(a * a);
  }
  const Node mul = y.grad_fn()->next_edge(0).function;
  CHECK(mul->saved(0).to_vector() == Values{1, 2});
  CHECK(unpacked == 1);
  y.backward();
  CHECK(unpacked == 3);
  CHECK(a.grad().to_vector() == Values{2, 4});
}

TEST_CASE("saved values that are freed or written to are errors") {
  const Product p;
  const Node inner = p.y.grad_fn()->next_edge(0).function;
  rg::sum(p.y).backward();
  CHECK(inner->name() == "mul");
  std::string text;
  CHECK(rg::category_of([&] { inner->saved(0); }, &text) == rg::Category::backward_twice_freed);
  CHECK(text.find("retain_graph") != std::string::npos);
  const Tensor x = leaf({1}) * 1.0, z = x * leaf({2});
  x.add_(1.0);
  CHECK(rg::category_of([&] { z.grad_fn()->saved(0); }) == rg::Category::version_mismatch);
}

TEST_CASE("hooks of a leaf's node are those of its accumulation") {
  const Product p;
  std::vector<std::string> seen;
  const Node a = rg::autograd::get_gradient_edge(p.a).function;
  const rg::HookHandle pre = a->register_prehook([&](const rg::Tensors& g) {
    seen.push_back("pre");
    return rg::Tensors{g[0] * 10.0};
  });
  a->register_hook([&](const rg::Tensors& in, const rg::Tensors& out) {
    seen.push_back(in.empty() && out[0].to_vector() == Values{150, 240} ? "post" : "wrong");
  });
  rg::sum(p.y).backward();
  CHECK(seen == std::vector<std::string>{"pre", "post"});
  CHECK(p.a.grad().to_vector() == Values{150, 240});
}

TEST_CASE("a graph of a million nodes is walked with a list of what is to come") {
  constexpr int kNodes = 1'000'000;
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < kNodes; ++i) y = -y;
  std::vector<Node> pending{y.grad_fn()};
  int records = 0, leaves = 0;
  while (!pending.empty()) {
    const Node node = std::move(pending.back());
    pending.pop_back();
    (node->variable().defined() ? leaves : records) += 1;
    for (const NodeEdge& edge : node->next_edges())
      if (edge.is_valid()) pending.push_back(edge.function);
  }
  CHECK(records == kNodes);
  CHECK(leaves == 1);
  CHECK(y.grad_fn()->topological_nr() == kNodes);
}

TEST_CASE("an in-place write gives the tensor another node") {
  const Tensor x = leaf({1, 2}), y = x * 1.0;
  const Node before = y.grad_fn();
  y.exp_();
  CHECK(y.grad_fn()->name() == "exp");
  CHECK(y.grad_fn()->next_edge(0).function == before);
}

TEST_CASE("nodes of recorded code are those of its records") {
  std::string name;
  auto f = rg::compile([&](const Tensor& x) {
    const Tensor y = rg::sin(x);
    if (y.grad_fn()) name = y.grad_fn()->name();
    return y.grad_fn()->saved("x") * y;
  });
  const Tensor x = leaf({1, 2}), y = f(x);
  CHECK(name == "sin");
  for (int run = 0; run < 2; ++run) CHECK(f(x).to_vector() == (x * rg::sin(x)).to_vector());
  rg::sum(y).backward();
  const Tensor expected = leaf({1, 2});
  rg::sum(expected * rg::sin(expected)).backward();
  CHECK(x.grad().to_vector() == expected.grad().to_vector());
}
