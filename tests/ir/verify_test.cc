// verify(): graphs made by hand with one error each; a valid graph is not changed. Captured graphs are verified in
// captured_text_test.cc.
#include <catch2/catch.hpp>

#include "ir/verify.h"
#include "ops/arithmetic.h"
#include "ops/copy.h"
#include "ops/join.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/unary.h"
#include "tests/ir/ir_test.h"

namespace rg = retrograd;
namespace ir = rg::ir;
using ir::ValueId;
using rg::TensorType;

namespace {

const TensorType kMatrix{rg::kFloat32, rg::kCPU, {2, 3}}, kVector{rg::kFloat32, rg::kCPU, {3}};

// A graph that is under construction: x, a matrix, is value 0.
struct Draft {
  ir::Graph graph;
  ValueId x = graph.add_tensor_input(kMatrix);

  template <class Op>
  ir::Node& add(std::vector<ValueId> operands, std::vector<TensorType> results,
                typename Op::Attrs attrs = {}) {
    return graph.append(rg::ops::info<Op>, operands, &attrs, results);
  }
  ir::Node& add_bookkeeping(const rg::OpInfo& op, int32_t handle, std::vector<ValueId> operands,
                            std::vector<TensorType> results) {
    ir::Node& node = graph.append(op, operands, nullptr, results);
    node.handle = handle;
    return node;
  }
  std::string problem() const {
    return ir_test::error_of<rg::InternalError>([&] { ir::verify(graph); });
  }
};

}  // namespace

TEST_CASE("a graph without fault passes, and is not changed") {
  rg::CompiledBackward backward = rg::compile_backward();
  const rg::Tensor x = rg::full({3, 4}, 0.5).requires_grad_();
  x.register_hook([](const rg::Tensor& g) { return g; });
  backward(rg::mean(rg::mm(x, rg::tanh(x).t()) * 2.0));
  const ir::Graph& graph = *backward.graph();
  const std::string before = graph.print();
  const int32_t symbols = graph.symbols.size();
  CHECK_NOTHROW(ir::verify(graph));
  CHECK(graph.symbols.size() == symbols);
  CHECK(graph.print() == before);
  CHECK_NOTHROW(ir::verify(ir::Graph()));
}

TEST_CASE("operands and outputs are values that were given before") {
  Draft far;
  far.add<rg::ops::Neg>({7}, {kMatrix});
  CHECK(far.problem() == "graph backward, node 0 (neg): there is no operand %7");

  Draft negative;
  negative.add<rg::ops::Neg>({-2}, {kMatrix});
  CHECK(negative.problem() == "graph backward, node 0 (neg): there is no operand %-2");

  Draft early;
  early.add<rg::ops::Neg>({2}, {kMatrix});
  early.add<rg::ops::Neg>({0}, {kMatrix});
  CHECK(early.problem() == "graph backward, node 0 (neg): %2 is used before it is given");

  Draft own;
  own.add<rg::ops::Neg>({1}, {kMatrix});
  CHECK(own.problem() == "graph backward, node 0 (neg): %1 is used before it is given");

  Draft output;
  output.graph.set_outputs({0, ir::kNoValue, 1});
  CHECK(output.problem() == "graph backward: the output %1 is not a value");

  Draft late;  // a constant that appeared while recording has a higher number than later values
  late.add<rg::ops::Neg>({late.x}, {kMatrix});
  const ValueId constant = late.graph.add_tensor_input(kMatrix);
  late.add<rg::ops::Mul>({1, constant}, {kMatrix});
  late.graph.set_outputs({3, ir::kNoValue});
  CHECK(late.problem().empty());
}

TEST_CASE("each value is given once") {
  Draft twice;
  twice.add<rg::ops::Neg>({twice.x}, {kMatrix});
  twice.add<rg::ops::Neg>({twice.x}, {kMatrix}).first_result = 1;
  CHECK(twice.problem() == "graph backward, node 1 (neg): the node gives %1 a second time");

  Draft input;
  input.add<rg::ops::Neg>({input.x}, {kMatrix}).first_result = 0;
  CHECK(input.problem() == "graph backward, node 0 (neg): the node gives %0 a second time");

  Draft beyond;
  beyond.add<rg::ops::Neg>({beyond.x}, {kMatrix}).first_result = 9;
  CHECK(beyond.problem() == "graph backward, node 0 (neg): the node gives %9, the graph has 2 values");

  Draft untyped;
  untyped.graph.add_tensor_input({});
  CHECK(untyped.problem() == "graph backward: input 1 and its value are of different types");
}

TEST_CASE("operands, results and attributes fit the op") {
  Draft unary;
  unary.add<rg::ops::Neg>({unary.x, unary.x}, {kMatrix});
  CHECK(unary.problem() == "graph backward, node 0 (neg): neg takes 1 operand, not 2");

  Draft results;
  results.add<rg::ops::Neg>({results.x}, {kMatrix, kMatrix});
  CHECK(results.problem() == "graph backward, node 0 (neg): neg gives 1 result, not 2");

  Draft nothing;
  nothing.add<rg::ops::Cat>({}, {kMatrix});
  CHECK(nothing.problem() == "graph backward, node 0 (cat): cat takes at least one operand, not 0");

  Draft bare;
  bare.graph.append(rg::ops::info<rg::ops::Sum>, std::vector<ValueId>{bare.x}, nullptr,
                    std::vector<TensorType>{{}});
  CHECK(bare.problem() == "graph backward, node 0 (sum): sum has no attributes");
}

TEST_CASE("nodes of a group stand together, in order, and are pure") {
  const auto problem = [](std::initializer_list<int32_t> groups) {
    Draft d;
    for (int32_t group : groups) d.add<rg::ops::Neg>({d.x}, {kMatrix}).group = group;
    return d.problem();
  };
  CHECK(problem({-1, 0, 0, 1, -1, 2, 2}) == "");
  CHECK(problem({0, -1, 0}).find("group 0 comes after group 0") != std::string::npos);
  CHECK(problem({1, 1, 0}).find("group 0 comes after group 1") != std::string::npos);
  Draft d;
  const int32_t slot = d.graph.add_handle(ir::Input::Kind::slot, kMatrix);
  d.add_bookkeeping(rg::ops::unpack, slot, {}, {kMatrix}).group = 0;
  CHECK(d.problem().find("a node of a group is pure") != std::string::npos);
}

TEST_CASE("types are those that the rules give") {
  Draft wrong;
  wrong.add<rg::ops::Sum>({wrong.x}, {kVector}, {.dim = {1}, .keepdim = false});
  CHECK(wrong.problem() ==
        "graph backward, node 0 (sum): expected type f32[2] for result 0 of sum, not f32[3]");

  Draft refused;
  refused.add<rg::ops::Mm>({refused.x, refused.x}, {kMatrix});
  CHECK(refused.problem().find("graph backward, node 0 (mm): mm: inner sizes 3 and 2 differ") == 0);

  Draft second;
  second.add<rg::ops::Neg>({second.x}, {kMatrix});
  second.add<rg::ops::To>({1}, {kMatrix}, {rg::kFloat64});
  CHECK(second.problem() ==
        "graph backward, node 1 (to): expected type f64[2,3] for result 0 of to, not f32[2,3]");
}

TEST_CASE("symbols are those of the graph, and compared only where a guard says so") {
  const auto rows = [](ir::Graph& graph, int64_t hint) {
    return rg::Dim::symbol(graph.symbols.add_symbol(rg::Number::of(hint)));
  };
  const auto vector = [](rg::Dim size) { return TensorType{rg::kFloat32, rg::kCPU, {size}}; };

  Draft unknown;
  unknown.graph.add_tensor_input(vector(rg::Dim::symbol(3)));
  CHECK(unknown.problem() == "graph backward: there is no symbol 3, the graph has 0");

  Draft floating;
  floating.graph.add_tensor_input(
      vector(rg::Dim::symbol(floating.graph.symbols.add_symbol(rg::Number::of(2.0)))));
  CHECK(floating.problem() == "graph backward: the size s0 is not an integer");

  Draft attribute;
  attribute.add<rg::ops::Mul>({attribute.x, ir::kNoValue}, {kMatrix},
                              {rg::Scalar::symbol(5, rg::Number::of(2.0))});
  CHECK(attribute.problem() == "graph backward, node 0 (mul): there is no symbol 5, the graph has 0");

  Draft sum;  // s0 == s1 at capture, which no guard says
  const rg::Dim a = rows(sum.graph, 4), b = rows(sum.graph, 4);
  const ValueId u = sum.graph.add_tensor_input(vector(a)), v = sum.graph.add_tensor_input(vector(b));
  sum.add<rg::ops::Add>({u, v}, {vector(a)});
  CHECK(sum.problem() ==
        "graph backward, node 0 (add): its type rule compares s1 and s0, and no guard of the graph does");
  CHECK(sum.graph.symbols.guards().empty());
  sum.graph.symbols.compare(rg::Compare::eq, b.id(), a.id());
  CHECK(sum.problem().empty());

  Draft same;  // the same size by another name
  const rg::Dim c = rows(same.graph, 4), d = rows(same.graph, 4);
  const ValueId w = same.graph.add_tensor_input(vector(c));
  same.add<rg::ops::Neg>({w}, {vector(d)});
  CHECK(same.problem() ==
        "graph backward, node 0 (neg): expected type f32[s0] for result 0 of neg, not f32[s1]");
}

TEST_CASE("handles are inputs of the kind that the op acts on") {
  using Kind = ir::Input::Kind;
  struct Form {
    const rg::OpInfo* op;
    Kind kind;
    size_t operands, results;
  };
  const Form forms[] = {{&rg::ops::unpack, Kind::slot, 0, 1},
                        {&rg::ops::unpack, Kind::code, 1, 1},
                        {&rg::ops::hook, Kind::hook, 1, 1},
                        {&rg::ops::accumulate_grad, Kind::leaf, 1, 0},
                        {&rg::ops::retain_grad, Kind::box, 1, 0},
                        {&rg::ops::function_backward, Kind::function, 1, 1},
                        {&rg::ops::function_backward, Kind::code, 1, 1},
                        {&rg::ops::pack, Kind::pair, 1, 0},
                        {&rg::ops::pack, Kind::code, 1, 1},
                        {&rg::ops::function, Kind::code, 1, 2},
                        {&rg::ops::post_accumulate, Kind::code, 1, 1},
                        {&rg::ops::give_grad, Kind::code, 1, 1},
                        {&rg::ops::write_out, Kind::code, 2, 1},
                        {&rg::ops::begin_backward, Kind::code, 1, 1},
                        {&rg::ops::end_backward, Kind::code, 1, 1},
                        {&rg::ops::note_versions, Kind::code, 1, 1},
                        {&rg::ops::check_version, Kind::code, 1, 1}};
  const auto problem = [](const rg::OpInfo& op, Kind kind, size_t operands, size_t results) {
    Draft draft;
    const int32_t handle = kind == Kind::tensor ? 0 : draft.graph.add_handle(kind, kMatrix);
    draft.add_bookkeeping(op, handle, std::vector<ValueId>(operands, draft.x),
                          std::vector<TensorType>(results, kMatrix));
    return draft.problem();
  };
  for (const Form& form : forms) {
    INFO(form.op->name << " on kind " << static_cast<int>(form.kind));
    CHECK(problem(*form.op, form.kind, form.operands, form.results).empty());
    for (int other = 0; other <= static_cast<int>(Kind::code); ++other) {
      const auto kind = static_cast<Kind>(other);
      if (std::ranges::any_of(forms, [&](const Form& f) { return f.op == form.op && f.kind == kind; }))
        continue;
      INFO("not on kind " << other);
      CHECK(problem(*form.op, kind, form.operands, form.results).find(" acts on ") != std::string::npos);
    }
  }
  CHECK(problem(rg::ops::unpack, Kind::slot, 1, 1) ==
        "graph backward, node 0 (unpack): unpack takes 0 operands, not 1");
  CHECK(problem(rg::ops::unpack, Kind::code, 0, 1) ==
        "graph backward, node 0 (unpack): unpack takes 1 operand, not 0");
  CHECK(problem(rg::ops::pack, Kind::pair, 1, 1) ==
        "graph backward, node 0 (pack): pack gives 0 results, not 1");
  CHECK(problem(rg::ops::pack, Kind::code, 1, 0) ==
        "graph backward, node 0 (pack): pack gives 1 result, not 0");

  Draft none;
  none.add_bookkeeping(rg::ops::unpack, -1, {}, {kMatrix});
  CHECK(none.problem() ==
        "graph backward, node 0 (unpack): unpack acts on a slot or code, and none is named");

  Draft beyond;
  beyond.add_bookkeeping(rg::ops::accumulate_grad, 4, {beyond.x}, {});
  CHECK(beyond.problem() ==
        "graph backward, node 0 (accumulate_grad): accumulate_grad acts on a leaf, and none is named");

  Draft plain;
  plain.add<rg::ops::Neg>({plain.x}, {kMatrix}).handle =
      plain.graph.add_handle(ir::Input::Kind::slot, kMatrix);
  CHECK(plain.problem() == "graph backward, node 0 (neg): neg acts on no input");
}

TEST_CASE("types of bookkeeping nodes") {
  Draft slot;
  slot.add_bookkeeping(rg::ops::unpack, slot.graph.add_handle(ir::Input::Kind::slot, kVector), {}, {kMatrix});
  CHECK(slot.problem() ==
        "graph backward, node 0 (unpack): expected type f32[3] for result 0 of unpack, not f32[2,3]");

  Draft leaf;
  leaf.add_bookkeeping(rg::ops::accumulate_grad, leaf.graph.add_handle(ir::Input::Kind::leaf, kVector),
                       {leaf.x}, {});
  CHECK(leaf.problem() ==
        "graph backward, node 0 (accumulate_grad): expected type f32[3] for operand 0 of accumulate_grad, "
        "not f32[2,3]");

  Draft box;
  box.add_bookkeeping(rg::ops::retain_grad, box.graph.add_handle(ir::Input::Kind::box, kMatrix),
                      {ir::kNoValue}, {});
  CHECK(
      box.problem() ==
      "graph backward, node 0 (retain_grad): expected type f32[2,3] for operand 0 of retain_grad, not none");

  Draft hook;
  const int32_t h = hook.graph.add_handle(ir::Input::Kind::hook, {});
  hook.add_bookkeeping(rg::ops::hook, h, {hook.x, ir::kNoValue}, {kMatrix, {}});
  CHECK(hook.problem().empty());
  hook.add_bookkeeping(rg::ops::hook, h, {hook.x}, {kVector});
  CHECK(hook.problem() ==
        "graph backward, node 1 (hook): expected type f32[2,3] for result 0 of hook, not f32[3]");

  Draft many;
  many.add_bookkeeping(rg::ops::hook, many.graph.add_handle(ir::Input::Kind::hook, {}), {many.x},
                       {kMatrix, kMatrix});
  CHECK(many.problem() ==
        "graph backward, node 0 (hook): hook gives at most as many results as it has operands");

  Draft absent;  // the second result of the function does not exist
  absent.add_bookkeeping(rg::ops::function_backward, absent.graph.add_handle(ir::Input::Kind::function, {}),
                         {absent.x}, {kMatrix, {}});
  absent.add<rg::ops::Neg>({2}, {kMatrix});
  CHECK(absent.problem() == "graph backward, node 1 (neg): operand 0 of neg is a result that does not exist");
}

TEST_CASE("an op of a user's, with a rule and without") {
  static constexpr auto op = [] {
    rg::OpInfo info;
    info.name = "mystery";
    info.traits = static_cast<uint32_t>(rg::Trait::pure);
    info.arity = 2;
    info.optional = 3;
    return info;
  }();
  Draft like;  // then a result is of the first operand's type
  like.graph.append(op, std::vector<ValueId>{like.x, ir::kNoValue}, nullptr,
                    std::vector<TensorType>{kMatrix});
  CHECK(like.problem().empty());
  Draft missing;
  missing.graph.append(op, std::vector<ValueId>{ir::kNoValue, missing.x}, nullptr,
                       std::vector<TensorType>{kMatrix});
  CHECK(missing.problem() ==
        "graph backward, node 0 (mystery): mystery has no type rule, and no operand whose type its result "
        "could have");
}

TEST_CASE("a long graph is verified in one pass") {
  Draft draft;
  ValueId v = draft.x;
  for (int i = 0; i < 300000; ++i) v = draft.add<rg::ops::Neg>({v}, {kMatrix}).first_result;
  draft.graph.set_outputs({v});
  CHECK(draft.problem().empty());
}
