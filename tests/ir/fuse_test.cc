// The pass fuse: which nodes become groups, in which order, and that groups run as the graph does, bit for bit. Graphs
// are texts, and captured backwards. Not tested here: the kernels of groups (tests/cpu/fused_test.cc), groups in plans.
#include "ir/passes/fuse_within.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <sstream>

#include "engine/runner.h"
#include "ir/replay.h"
#include "tests/ir/ir_test.h"

namespace rg = retrograd;
namespace ir = rg::ir;
using rg::Tensor;
using rg::Tensors;

namespace {

// The names of the nodes' ops in the new order, groups in brackets: "unpack [mul neg] mm".
std::string text_of(const ir::Graph& graph, const ir::Grouping& grouping) {
  std::string text;
  int32_t group = -1;
  for (size_t i = 0; i < grouping.order.size(); ++i) {
    const int32_t now = grouping.group[i];
    if (now != group && group >= 0) text += "]";
    text += text.empty() ? "" : " ";
    if (now != group && now >= 0) text += "[";
    text += graph.nodes()[grouping.order[i]].op->name;
    group = now;
  }
  return text + (group >= 0 ? "]" : "");
}

std::string grouped(const std::string& inputs, const std::string& nodes,
                    ir::FuseOptions options = {rg::cpu_executor()}) {
  const ir::Graph graph = ir_test::parse("graph @g(" + inputs + ") {\n" + nodes + "}\n");
  return text_of(graph, ir::find_groups(graph, options));
}

// The same, with a peak not above that of the nodes one by one.
std::string grouped_within_peak(const std::string& inputs, const std::string& nodes,
                                ir::LifetimeOptions memory = {}) {
  const ir::Graph graph = ir_test::parse("graph @g(" + inputs + ") {\n" + nodes + "}\n");
  return text_of(graph, ir::find_groups_within_peak(graph, {rg::cpu_executor()}, memory));
}

// Every node once, operands before their users, effects in their order, groups together and numbered in order.
void check_order(const ir::Graph& graph, const ir::Grouping& grouping) {
  REQUIRE(grouping.order.size() == graph.nodes().size());
  REQUIRE(grouping.group.size() == graph.nodes().size());
  std::vector<bool> given(static_cast<size_t>(graph.value_count())), seen(graph.nodes().size());
  for (const ir::Input& input : graph.inputs())
    if (input.value != ir::kNoValue) given[static_cast<size_t>(input.value)] = true;
  int64_t last_effect = -1;
  int32_t last_group = -1;
  for (size_t i = 0; i < grouping.order.size(); ++i) {
    const uint32_t number = grouping.order[i];
    const ir::Node& node = graph.nodes()[number];
    CHECK_FALSE(seen[number]);
    seen[number] = true;
    for (ir::ValueId v : graph.operands(node))
      if (v != ir::kNoValue) CHECK(given[static_cast<size_t>(v)]);
    for (int r = 0; r < node.results; ++r) given[static_cast<size_t>(node.first_result + r)] = true;
    if (!node.op->is(rg::Trait::pure)) {
      CHECK(last_effect < static_cast<int64_t>(number));
      last_effect = number;
    }
    const int32_t group = grouping.group[i];
    if (group >= 0) CHECK((group == last_group || group == last_group + 1));
    last_group = std::max(last_group, group);
  }
  CHECK(last_group == grouping.groups - 1);
}

// Runs the nodes in the new order, groups by their kernels. Slots are bound to values, leaves are not there.
class GroupedRun {
 public:
  GroupedRun(const ir::Graph& graph, std::span<const ir::Binding> bindings)
      : graph_(graph),
        bindings_(bindings),
        sizes_(ir::symbol_values(graph, bindings)),
        values_(static_cast<size_t>(graph.value_count())) {}

  Tensors run(const ir::Grouping& grouping) {
    for (size_t i = 0; i < graph_.inputs().size(); ++i)
      if (graph_.inputs()[i].value != ir::kNoValue) value(graph_.inputs()[i].value) = bindings_[i].tensor;
    for (size_t i = 0; i < grouping.order.size();) {
      size_t end = i + 1;
      while (grouping.group[i] >= 0 && end < grouping.order.size() &&
             grouping.group[end] == grouping.group[i])
        ++end;
      if (grouping.group[i] < 0)
        node(graph_.nodes()[grouping.order[i]]);
      else
        group({grouping.order.data() + i, end - i});
      i = end;
    }
    Tensors outputs;
    for (ir::ValueId v : graph_.outputs()) outputs.push_back(value(v));
    return outputs;
  }
  int kernels = 0;

 private:
  Tensor& value(ir::ValueId v) { return values_[static_cast<size_t>(v)]; }

  void node(const ir::Node& n) {
    if (n.op == &rg::ops::unpack) {
      value(n.first_result) = bindings_[static_cast<size_t>(n.handle)].tensor;
      return;
    }
    std::vector<rg::TensorImpl*> operands;
    for (ir::ValueId v : graph_.operands(n)) operands.push_back(v == ir::kNoValue ? nullptr : value(v).get());
    std::vector<std::byte> copy;
    void* attrs = n.attrs ? ir::concrete_attrs(*n.op, n.attrs, sizes_, copy) : nullptr;
    rg::eager_runner().emit({n.op, operands, attrs, n.where, n.results}, &value(n.first_result));
  }

  void group(std::span<const uint32_t> nodes) {
    const ir::GroupDescription description(graph_, nodes, ir::count_uses(graph_), sizes_);
    const auto kernel = rg::cpu_executor().fuse(description.group());
    REQUIRE(kernel);
    ++kernels;
    std::vector<rg::TensorImpl*> inputs, outputs;
    for (ir::ValueId v : description.inputs()) inputs.push_back(value(v).get());
    for (ir::ValueId v : description.outputs()) {
      const rg::TensorType type = ir::concrete_type(graph_.type(v), sizes_);
      value(v) = rg::empty(type.shape.ints(), {type.dtype});
      outputs.push_back(value(v).get());
    }
    std::vector<std::vector<std::byte>> copies(nodes.size());
    std::vector<const void*> attrs;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const ir::Node& n = graph_.nodes()[nodes[i]];
      attrs.push_back(n.attrs ? ir::concrete_attrs(*n.op, n.attrs, sizes_, copies[i]) : nullptr);
    }
    kernel->run(inputs.data(), outputs.data(), attrs.data());
  }

  const ir::Graph& graph_;
  std::span<const ir::Binding> bindings_;
  std::vector<rg::Number> sizes_;
  Tensors values_;
};

// A captured graph that returns what it would add to leaves.
std::string values_only(const std::string& text) {
  std::istringstream lines(text);
  std::string result, line, outputs;
  while (std::getline(lines, line)) {
    const size_t at = line.find("  accumulate_grad @");
    if (at == 0) {
      const std::string value = line.substr(line.find('%'));
      outputs += (outputs.empty() ? "" : ", ") + value.substr(0, value.find(' '));
    } else if (line == "}") {
      result += "  return " + outputs + "\n}\n";
    } else {
      result += line + "\n";
    }
  }
  return result;
}

std::vector<ir::Binding> some_values(const ir::Graph& graph) {
  std::vector<ir::Binding> bindings;
  for (const ir::Input& input : graph.inputs()) {
    rg::SymbolTable::Scope scope(const_cast<rg::SymbolTable*>(&graph.symbols));
    const rg::TensorType& type = graph.type(input);
    bindings.push_back({});
    if (input.kind == ir::Input::Kind::tensor || input.kind == ir::Input::Kind::slot)
      bindings.back().tensor = rg::randn(type.shape.hints()).to(type.dtype);
  }
  return bindings;
}

}  // namespace

TEST_CASE("a chain is a group; unpacks between come before it") {
  CHECK(grouped("%0: f32[2,3], !1: slot f32[2,3], !2: slot f32[2,3]",
                "%1 = unpack !1 : f32[2,3]\n"
                "%2 = mul %0, %1 : f32[2,3]\n"
                "%3 = unpack !2 : f32[2,3]\n"
                "%4 = tanh_backward %2, %3 : f32[2,3]\n"
                "return %4\n") == "unpack unpack [mul tanh_backward]");
}

TEST_CASE("slots that are given are live until what was unpacked is used for the last time") {
  const ir::Graph graph = ir_test::parse(
      "graph @g(%0: f32[64], !1: slot f32[64], !2: slot f32[64]) {\n"
      "%1 = unpack !1 : f32[64]\n"
      "%2 = mul %0, %1 : f32[64]\n"
      "%3 = unpack !2 : f32[64]\n"
      "%4 = add %2, %3 : f32[64]\n"
      "return %4\n}\n");
  const int32_t given[] = {1, 2};
  CHECK(ir::lifetimes(graph).live_bytes() == std::vector<int64_t>{0, 256, 256, 256, 256});
  CHECK(ir::lifetimes(graph, {.given = given}).live_bytes() == std::vector<int64_t>{512, 512, 512, 512, 256});
}

TEST_CASE("one node is no group") {
  CHECK(grouped("%0: f32[2]", "%1 = neg %0 : f32[2]\nreturn %1\n") == "neg");
  CHECK(grouped("%0: f32[2], %1: f32[3]", "%2 = neg %0 : f32[2]\n%3 = neg %1 : f32[3]\nreturn %2, %3\n") ==
        "neg neg");
}

TEST_CASE("no group reaches over an effect, save unpack, or over another kernel") {
  CHECK(grouped("%0: f32[2], %1: f32[2], $2: hook",
                "%3 = neg %0 : f32[2]\n"
                "%4 = hook $2, %1 : f32[2]\n"
                "%5 = exp %3 : f32[2]\n"
                "%6 = mul %5, %4 : f32[2]\n"
                "return %6\n") == "neg hook [exp mul]");
  CHECK(grouped("%0: f32[2,2], %1: f32[2,2], @2: leaf f32[2,2]",
                "%3 = neg %0 : f32[2,2]\n"
                "%4 = mul %3, %1 : f32[2,2]\n"
                "accumulate_grad @2, %4\n"
                "%5 = exp %3 : f32[2,2]\n"
                "%6 = mm %1, %1 : f32[2,2]\n"
                "%7 = mul %5, %6 : f32[2,2]\n"
                "return %7\n") == "[neg mul] accumulate_grad exp mm mul");
}

TEST_CASE("a view of a value ends its group; a view of another does not") {
  CHECK(grouped("%0: f32[2,3], %1: f32[3,2]",
                "%2 = neg %0 : f32[2,3]\n"
                "%3 = permute %1 {dims=[1,0]} : f32[2,3]\n"
                "%4 = mul %2, %3 : f32[2,3]\n"
                "%5 = view %4 {size=[6]} : f32[6]\n"
                "%6 = exp %5 : f32[6]\n"
                "return %6\n") == "permute [neg mul] view exp");
}

TEST_CASE("groups of one shape that meet become one; those of other shapes run before") {
  CHECK(grouped("%0: f32[4,3], %1: f32[4,3], %2: f32[3]",
                "%3 = neg %0 : f32[4,3]\n"
                "%4 = exp %1 : f32[4,3]\n"
                "%5 = mul %2, 2 : f32[3]\n"
                "%6 = neg %5 : f32[3]\n"
                "%7 = mul %3, %4 : f32[4,3]\n"
                "%8 = add %7, %6 : f32[4,3]\n"
                "return %8\n") == "[mul neg] [neg exp mul add]");
}

TEST_CASE("nodes that read the same value are a group") {
  CHECK(grouped("%0: f32[4], %1: f32[4], %2: f32[4]",
                "%3 = mul %0, %1 : f32[4]\n"
                "%4 = mul %0, %2 : f32[4]\n"
                "return %3, %4\n") == "[mul mul]");
  CHECK(grouped("%0: f32[], %1: f32[4], %2: f32[4]",
                "%3 = mul %0, %1 : f32[4]\n"
                "%4 = mul %0, %2 : f32[4]\n"
                "return %3, %4\n") == "mul mul");
}

TEST_CASE("a reduction ends in the group, and what uses it is in another") {
  CHECK(grouped("%0: f32[4,6], %1: f32[4,6]",
                "%2 = mul %0, %1 : f32[4,6]\n"
                "%3 = sum %2 {dim=[1], keepdim=true} : f32[4,1]\n"
                "%4 = neg %2 : f32[4,6]\n"
                "%5 = add %4, %3 : f32[4,6]\n"
                "%6 = exp %5 : f32[4,6]\n"
                "return %6\n") == "[mul sum neg] [add exp]");
  // Over other dims: a group of its own.
  CHECK(grouped("%0: f32[4,6]",
                "%1 = neg %0 : f32[4,6]\n"
                "%2 = sum %1 {dim=[1], keepdim=true} : f32[4,1]\n"
                "%3 = sum %1 {dim=[0], keepdim=true} : f32[1,6]\n"
                "%4 = mean %1 {dim=[0], keepdim=true} : f32[1,6]\n"
                "return %2, %3, %4\n") == "[neg sum] [sum mean]");
}

// The kernel of a reduction adds in an order that depends on the layout of its operand: see row_reducer.h.
TEST_CASE("a reduction of a value that may have any layout is in no group") {
  const auto sum_of = [](const std::string& view) {
    return "%2 = " + view + "\n%3 = sum %2 {dim=[1], keepdim=true} : f32[6,1]\n%4 = neg %2 : f32[6,4]\n" +
           "return %3, %4\n";
  };
  CHECK(grouped("%0: f32[6,4]",
                "%1 = neg %0 : f32[6,4]\n%2 = sum %0 {dim=[1], keepdim=true} : f32[6,1]\nreturn %1, %2\n") ==
        "neg sum");
  CHECK(grouped("%0: f32[4,6]", "%1 = neg %0 : f32[4,6]\n" + sum_of("permute %1 {dims=[1,0]} : f32[6,4]")) ==
        "neg permute sum neg");
  CHECK(grouped("%0: f32[24]", "%1 = neg %0 : f32[24]\n" + sum_of("view %1 {size=[6,4]} : f32[6,4]")) ==
        "neg view [sum neg]");
}

TEST_CASE("a group takes along reductions of its values that stand further on") {
  const std::string inputs = "%0: f32[4,6], %1: f32[6,4], %2: f32[6], $3: hook",
                    neg = "%4 = neg %0 : f32[4,6]\n", mm = "%5 = mm %4, %1 : f32[4,4]\n",
                    sum = "%6 = sum %4 {dim=[0], keepdim=true} : f32[1,6]\n", end = "return %5, %6\n";
  CHECK(grouped(inputs, neg + mm + sum + end) == "[neg sum] mm");
  CHECK(grouped(inputs,
                neg + mm + sum + "%7 = sum %4 {dim=[0], keepdim=false} : f32[6]\nreturn %5, %6, %7\n") ==
        "[neg sum sum] mm");
  // What uses them stays where it is, and so does what needs something else.
  CHECK(grouped(inputs, neg + mm + sum + "%7 = add %6, %2 : f32[1,6]\n%8 = neg %7 : f32[1,6]\n" +
                            "return %5, %8\n") == "[neg sum] mm [add neg]");
  // A reduction over other dims or of another dtype does not fit, nor one after an effect, nor one of a value outside
  // of the group.
  CHECK(grouped(inputs,
                neg + mm +
                    "%6 = to %4 {dtype=bf16} : bf16[4,6]\n%7 = sum %6 {dim=[0], keepdim=true} : bf16[1,6]\n" +
                    "%8 = sum %4 {dim=[0], keepdim=true} : f32[1,6]\nreturn %5, %7, %8\n") ==
        "[neg sum] mm [to sum]");
  CHECK(grouped("%0: f32[4,3], %1: f32[3,4]",
                "%2 = neg %0 : f32[4,3]\n%3 = mm %2, %1 : f32[4,4]\n%4 = sum %2 {dim=[0], keepdim=true} : "
                "f32[1,3]\n"
                "return %3, %4\n") == "neg mm sum");
  CHECK(grouped(inputs, neg + mm + "%6 = sum %4 {dim=[1], keepdim=true} : f32[4,1]\n" +
                            "%7 = sum %4 {dim=[0], keepdim=true} : f32[1,6]\nreturn %5, %6, %7\n") ==
        "[neg sum] mm sum");
  const std::string hook = "%7 = hook $3, %5 : f32[4,4]\n";
  CHECK(grouped(inputs, neg + mm + hook + sum + "return %7, %6\n") == "neg mm hook sum");
  CHECK(grouped(inputs, neg + mm + sum + hook + "return %7, %6\n") == "[neg sum] mm hook");
  CHECK(grouped(inputs, neg + mm + sum + end, {.executor = rg::cpu_executor(), .stops = [](size_t node) {
                                                 return node == 2;
                                               }}) == "neg mm sum");
  CHECK(grouped(inputs, neg + mm + sum + end, {.executor = rg::cpu_executor(), .looks_ahead = false}) ==
        "neg mm sum");
}

TEST_CASE("a group has limits") {
  std::string chain, sum = "%1 = add %0, %0 : f32[4]\n", inputs = "%0: f32[4]";
  for (int i = 1; i <= 7; ++i)
    chain += "%" + std::to_string(i) + " = neg %" + std::to_string(i - 1) + " : f32[4]\n";
  ir::FuseOptions options{.executor = rg::cpu_executor()};
  options.most_nodes = 3;
  CHECK(grouped("%0: f32[4]", chain + "return %7\n", options) == "[neg neg neg] [neg neg neg] neg");
  CHECK(grouped("%0: f32[4], %1: f32[4], %2: f32[4], %3: f32[4]",
                "%4 = add %0, %1 : f32[4]\n"
                "%5 = add %4, %2 : f32[4]\n"
                "%6 = add %5, %3 : f32[4]\n"
                "return %6\n",
                {.executor = rg::cpu_executor(), .most_inputs = 4}) == "[add add] add");
}

TEST_CASE("a group goes before a node where the caller says so") {
  CHECK(grouped("%0: f32[4]",
                "%1 = neg %0 : f32[4]\n%2 = exp %1 : f32[4]\n%3 = neg %2 : f32[4]\n%4 = exp %3 : "
                "f32[4]\nreturn %4\n",
                {.executor = rg::cpu_executor(), .stops = [](size_t node) { return node == 2; }}) ==
        "[neg exp] [neg exp]");
}

TEST_CASE("a group that holds its operands over the peak is cut there") {
  const std::string inputs = "%0: f32[100], %1: f32[100,1], %2: f32[1,100]";
  const std::string nodes =
      "%3 = flip %0 {dims=[0]} : f32[100]\n"
      "%4 = flip %0 {dims=[]} : f32[100]\n"
      "%5 = mul %3, %4 : f32[100]\n"  // of two blocks one is left
      "%6 = add %1, %2 : f32[100,100]\n"
      "%7 = exp %6 : f32[100,100]\n"
      "%8 = sum %7 {dim=[0,1], keepdim=false} : f32[]\n"
      "%9 = add %5, %8 : f32[100]\n"
      "return %9, %7\n";
  CHECK(grouped(inputs, nodes) == "flip flip [add exp sum] [mul add]");
  CHECK(grouped_within_peak(inputs, nodes) == "flip flip mul [add exp sum] add");
  // If the peak is elsewhere, groups are not cut.
  std::string other = nodes;
  other.replace(other.find("return"), std::string::npos,
                "%10 = cat %7, %7 {dim=0} : f32[200,100]\n%11 = neg %10 : f32[200,100]\nreturn %9, %11\n");
  CHECK(grouped_within_peak(inputs, other) == "flip flip [add exp sum] [mul add] cat neg");
}

TEST_CASE("inputs that go with their last use count where a group holds them") {
  const std::string inputs = "%0: f32[100], %1: f32[100], %2: f32[100,1], %3: f32[1,100]";
  const std::string nodes =
      "%4 = mul %0, %1 : f32[100]\n"
      "%5 = add %2, %3 : f32[100,100]\n"
      "%6 = exp %5 : f32[100,100]\n"
      "%7 = sum %6 {dim=[0,1], keepdim=false} : f32[]\n"
      "%8 = add %4, %7 : f32[100]\n"
      "return %8, %6\n";
  CHECK(grouped_within_peak(inputs, nodes) == "[add exp sum] [mul add]");
  CHECK(grouped_within_peak(inputs, nodes, {.given = std::array<int32_t, 2>{0, 1}}) ==
        "mul [add exp sum] add");
}

TEST_CASE("captured backwards run in groups as they do node by node, bit for bit") {
  rg::manual_seed(5);
  const Tensor x = rg::randn({40, 30}).requires_grad_(), w = rg::randn({30, 20}).requires_grad_(),
               bias = rg::randn({20}).requires_grad_(), scale = rg::randn({40, 1}).requires_grad_();
  const auto hidden = [&] { return rg::gelu(rg::mm(rg::tanh(x) * scale, w) + bias); };
  const std::function<Tensor()> losses[] = {
      [&] { return rg::mean(rg::square(rg::tanh(x * x + 0.5) * rg::sigmoid(x) - rg::exp(-x * x) * 0.1)); },
      [&] { return rg::sum(hidden() * rg::sigmoid(hidden())); },
      [&] { return rg::sum(rg::mean(rg::relu(hidden()) / (1 + rg::abs(bias)), {0}).to(rg::kFloat64)); },
      [&] {
        const Tensor half = x.to(rg::kBFloat16) * 2;
        return rg::sum(rg::where(rg::gt(x, 0.3), half, 1.5).to(rg::kFloat32) * scale);
      },
  };
  int kernels = 0;
  for (const auto& loss : losses) {
    rg::CompiledBackward backward = rg::compile_backward();
    backward(loss());
    const ir::Graph graph = ir_test::parse(values_only(backward.graph()->print()));
    const ir::Grouping grouping = ir::find_groups(graph, {rg::cpu_executor()});
    INFO(graph.print() << text_of(graph, grouping));
    check_order(graph, grouping);
    const std::vector<ir::Binding> bindings = some_values(graph);
    const Tensors expected = ir::replay(graph, rg::eager_runner(), bindings);
    GroupedRun run(graph, bindings);
    const Tensors results = run.run(grouping);
    CHECK(run.kernels == grouping.groups);
    kernels += run.kernels;
    REQUIRE(results.size() == expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      CHECK(results[i].sizes() == expected[i].sizes());
      CHECK(std::memcmp(results[i].raw_data(), rg::contiguous(expected[i]).raw_data(),
                        static_cast<size_t>(results[i].nbytes())) == 0);
    }
  }
  CHECK(kernels >= 6);
}
