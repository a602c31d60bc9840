// parse(print(g)) prints as g does: hand-written texts of every construct. Not tested here: captured graphs
// (captured_text_test.cc), refused texts (parse_errors_test.cc).
#include <catch2/catch.hpp>
#include <cmath>

#include "ir/replay.h"
#include "ir/verify.h"
#include "tests/ir/ir_test.h"

namespace rg = retrograd;
using ir_test::parse;
using rg::Tensor;
using rg::Tensors;

namespace {

void check_round_trip(const std::string& text) {
  const rg::ir::Graph graph = parse(text);
  CHECK(graph.print() == text);
  rg::ir::verify(graph);
}

// A graph of one product with a number.
std::string with_number(const std::string& number) {
  return "graph @g(%0: f64[2]) {\n  %1 = mul %0, " + number + " : f64[2]\n  return %1\n}\n";
}

// The result of a graph of one tensor input.
Tensor run(const rg::ir::Graph& graph, const Tensor& x) {
  const rg::ir::Binding binding{.tensor = x};
  return rg::ir::replay(graph, rg::eager_runner(), {&binding, 1})[0];
}

}  // namespace

TEST_CASE("every kind of input") {
  check_round_trip(
      R"(graph @backward[s0 = 2](%0: f32[s0], !1: slot f32[s0], @2: leaf f32[s0], $3: hook, &4: box f32[s0], ^5: function, $6: hook, *7: pair, ~8: code, ~9: code) {
  retain_grad &4, %0
  %1 = hook $3, %0 : f32[s0]
  %2 = unpack !1 : f32[s0]
  %3, %4, %5 = function_backward ^5, %1, %2 : f32[s0], none, i64[]
  %6, %7 = hook $6, %3, none, %1 : f32[s0], none
  accumulate_grad @2, %6
  hook $6
  pack *7, %6
  %8 = pack ~8, %0 : u8[0]
  %9 = unpack ~9, %8 : f32[s0]
  %10, %11 = function ~8, %9 : u8[0], f32[s0]
  %12 = function_backward ~9, %10, %11 : f32[s0]
  %13 = post_accumulate ~8, %12 : f32[s0]
  %14 = give_grad ~9, %13 : f32[s0]
  %15 = write_out ~8, %0, %14 : f32[s0]
  %16 = begin_backward ~9, %15 : u8[0]
  %17 = end_backward ~8, %16 : u8[0]
  %18 = note_versions ~9, %0 : u8[0]
  %19 = check_version ~8, %18 : u8[0]
}
)");
}

TEST_CASE("an input that was met in the middle of a recording is numbered with the others") {
  rg::ir::Graph graph;
  const rg::TensorType type{rg::kFloat32, {}, rg::Shape{2}};
  const rg::ir::ValueId x = graph.add_tensor_input(type);
  const rg::ir::ValueId y =
      graph.append(rg::ops::info<rg::ops::Neg>, {&x, 1}, nullptr, {&type, 1}).first_result;
  graph.add_handle(rg::ir::Input::Kind::hook, {});
  const rg::ir::ValueId late = graph.add_tensor_input(type);
  const rg::ir::ValueId both[] = {y, late};
  const rg::ir::ValueId sum =
      graph.append(rg::ops::info<rg::ops::Maximum>, both, nullptr, {&type, 1}).first_result;
  graph.set_outputs({sum, late, x});
  CHECK(graph.print() == R"(graph @backward(%0: f32[2], $1: hook, %1: f32[2]) {
  %2 = neg %0 : f32[2]
  %3 = maximum %2, %1 : f32[2]
  return %3, %1, %0
}
)");
  check_round_trip(graph.print());
  CHECK(graph.copy().print() == graph.print());
}

TEST_CASE("a graph that was read has no objects: replaying it without names what is missing") {
  const rg::ir::Graph graph = parse(R"(graph @g(%0: f32[2], ~1: code) {
  %1 = pack ~1, %0 : u8[0]
}
)");
  const rg::ir::Binding bindings[] = {{.tensor = rg::ones({2})}, {}};
  CHECK(ir_test::error_of<rg::Error>([&] {
          rg::ir::replay(graph, rg::eager_runner(), bindings);
        }).find("the input ~1 is bound to no code") != std::string::npos);
}

TEST_CASE("every kind of attribute and operand") {
  check_round_trip(
      R"(graph @g[s0 = 4, s1 = 3; (s0-2) >= 0; s0 >= (1+(s0-2)); 1 < (s0-2)](%0: f32[s0,s1], %1: i64[s0], %2: bool[s0,s1], %3: f32[]) {
  %4 = sum %0 {dim=[0,1], keepdim=true} : f32[1,1]
  %5 = to %0 {dtype=bf16} : bf16[s0,s1]
  %6 = full {size=[s0,2], value=0.5, dtype=f64} : f64[s0,2]
  %7 = slice %0 {dim=0, start=1, length=(s0-2), step=1} : f32[(s0-2),s1]
  %8 = where %2, %0, -1 : f32[s0,s1]
  %9 = sub 2.5, %0 : f32[s0,s1]
  %10, %11, %12 = normalize %0, none, none {dim=[1], eps=1e-05, center=true, constant_stats=false, affine_dim=[]} : f32[s0,s1], f32[s0,1], f32[s0,1]
  %13 = cat %0, %0, %0 {dim=0} : f32[((s0+s0)+s0),s1]
  %14 = uniform {size=[2], from=0.0, to=1.0, dtype=f32, seed=-7, offset=9223372036854775807} : f32[2]
  return %13, none, %11
}
)");
}

TEST_CASE("groups") {
  check_round_trip(R"(graph @g(%0: f32[2], !1: slot f32[2]) {
  group {
    %1 = neg %0 : f32[2]                                      // mul#3 rule, a.cc:7
    %2 = mul %1, %0 : f32[2]
  }
  %3 = unpack !1 : f32[2]
  group {
    %4 = exp %3 : f32[2]
  }
  group {
    %5 = add %4, %2 : f32[2]
    %6 = sum %5 {dim=[0], keepdim=false} : f32[]
  }
  return %6
}
)");
}

TEST_CASE("every dtype, and devices") {
  for (const char* dtype : {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "u8", "bool"}) {
    const std::string d = dtype;
    check_round_trip("graph @g(%0: " + d + "[2]) {\n  %1 = clone %0 : " + d + "[2]\n}\n");
  }
  CHECK(parse("graph @g(%0: float32[2]) {\n}\n").print() == "graph @g(%0: f32[2]) {\n}\n");
  check_round_trip(R"(graph @g(%0: f32[2] cuda:0, !1: slot f32[] cuda:127, %1: f32[2]) {
  %2 = neg %0 : f32[2] cuda:0
  %3, %4 = max %2 {dim=[0], keepdim=false} : f32[] cuda:0, i64[] cuda:0
  %5 = unpack !1 : f32[] cuda:127
}
)");
}

TEST_CASE("symbols and guards") {
  check_round_trip(
      "graph @g[s0 = 2, s1 = 7, s2 = 0.5, s3 = true; s0 != s1; s0 < s1; (s0*s1) >= 14; s1 > 3; s0 <= 2; s2 "
      "== 0.5; ((s1%s0)^2) == 1; 1 < (s1-s0)]"
      "(%0: f32[s0,(s1-s0)]) {\n"
      "  %1 = mul %0, (s2*2.0) : f32[s0,(s1-s0)]\n"
      "  %2 = add %1, s3 : f32[s0,(s1-s0)]\n"
      "}\n");
}

TEST_CASE("a guard that a type rule needs is added to those of the header") {
  const rg::ir::Graph graph =
      parse("graph @g[s0 = 3, s1 = 3](%0: f32[s0], %1: f32[s1]) {\n  %2 = add %0, %1 : f32[s0]\n}\n");
  CHECK(graph.print() ==
        "graph @g[s0 = 3, s1 = 3; s1 == s0](%0: f32[s0], %1: f32[s1]) {\n  %2 = add %0, %1 : f32[s0]\n}\n");
  rg::ir::verify(graph);
}

TEST_CASE("numbers keep their kind and value") {
  for (const char* number : {"0",
                             "1",
                             "-1",
                             "9223372036854775807",
                             "-9223372036854775808",
                             "true",
                             "false",
                             "0.0",
                             "-0.0",
                             "1.0",
                             "0.1",
                             "-2.5",
                             "1e+20",
                             "1e-05",
                             "-1.5e+300",
                             "5e-324",
                             "1.7976931348623157e+308",
                             "inf",
                             "-inf",
                             "nan",
                             "-nan"})
    check_round_trip(with_number(number));
  const auto number_of = [](const std::string& text) {
    const rg::ir::Graph graph = parse(with_number(text));
    return static_cast<const rg::ops::ScalarOperand*>(graph.nodes()[0].attrs)->scalar.number();
  };
  CHECK(number_of("3").kind == rg::Number::Kind::Int);
  CHECK(number_of("3.0").kind == rg::Number::Kind::Float);
  CHECK(number_of("3e0").d == 3.0);
  CHECK(number_of("true").kind == rg::Number::Kind::Bool);
  CHECK(std::signbit(number_of("-0.0").d));
  CHECK(std::isinf(number_of("-inf").d));
}

TEST_CASE("integers divide as integers, unless they were made floating") {
  const auto text = [](const char* factor) {
    return std::string("graph @g[s0 = 3](%0: f64[s0]) {\n  %1 = mul %0, ") + factor +
           " : f64[s0]\n  return %1\n}\n";
  };
  const Tensor x = rg::ones({5}, {rg::kFloat64});
  check_round_trip(text("(s0/2)"));
  check_round_trip(text("(float(s0)/2)"));
  check_round_trip(text("(float(7)/(s0+float((s0*s0))))"));
  CHECK(run(parse(text("(s0/2)")), x).to_vector()[0] == 2.0);
  CHECK(run(parse(text("(float(s0)/2)")), x).to_vector()[0] == 2.5);
  CHECK(run(parse(text("(float(7)/(s0+float((s0*s0))))")), x).to_vector()[0] == 7.0 / 30.0);
}

TEST_CASE("expressions nest as deep as they like") {
  std::string sum = "s0";
  for (int i = 0; i < 5000; ++i) sum = "(" + sum + "+s0)";
  check_round_trip("graph @g[s0 = 2](%0: f32[" + sum + "]) {\n}\n");
}

TEST_CASE("notes") {
  const auto with_note = [](const std::string& note) {
    std::string line = "  %1 = neg %0 : f32[2]";
    if (!note.empty()) line += std::string(60 - line.size(), ' ') + "  // " + note;
    return "graph @g(%0: f32[2]) {\n" + line + "\n}\n";
  };
  for (const char* note :
       {"mul#3 rule, mlp.cc:44", "mul#3 rule", "mm#12 tensor hook, a.cc:1", "mlp.cc:44", "mul#0 post hook"})
    check_round_trip(with_note(note));
  const rg::ir::Graph graph = parse(with_note("mul#3 rule, mlp.cc:44"));
  const rg::ir::Node& node = graph.nodes()[0];
  CHECK(graph.origin(node.origin).op == "mul");
  CHECK(graph.origin(node.origin).ordinal == 3);
  CHECK(graph.origin(node.origin).part == "rule");
  CHECK(std::string(node.where.file) == "mlp.cc");
  CHECK(node.where.line == 44);
  for (const char* note : {"a remark", "see #5", "of step #2, later", "at noon: lunch", ":", "#", "x#y",
                           "mul#3x:", "/ mul#3 rule, a.cc:1", "a/:1"}) {
    INFO(note);
    const rg::ir::Graph plain = parse(with_note(note));
    CHECK(!plain.nodes()[0].where);
  }
}

TEST_CASE("values, handles and symbols may have other names and blanks, and are renumbered") {
  const rg::ir::Graph graph = parse(
      "\n graph @g [ s7 = 2 , s1=3 ] ( %x : f32[ s7 , s1 ], !saved: slot f32[s7,s1] ) {\r\n\n"
      "\t%y.1=unpack !saved:f32[s7,s1]// remark\r\n  %z=mul %x , %y.1 : f32[s7,s1]\n\n return %z , none \n } "
      "\n\n");
  CHECK(graph.print() == R"(graph @g[s0 = 2, s1 = 3](%0: f32[s0,s1], !saved: slot f32[s0,s1]) {
  %1 = unpack !saved : f32[s0,s1]
  %2 = mul %0, %1 : f32[s0,s1]
  return %2, none
}
)");
}

TEST_CASE("a tensor input with a name is printed as the value that it is") {
  rg::ir::Graph graph;
  const rg::ir::ValueId x = graph.add_tensor_input({rg::kFloat32, rg::kCPU, {2}}, "weight");
  graph.set_outputs({x});
  CHECK(graph.print() == "graph @backward(%0: f32[2]) {\n  return %0\n}\n");
  CHECK(parse(graph.print()).print() == graph.print());
}
