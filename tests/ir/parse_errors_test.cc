// What the parser refuses, with the line and the expected text: each construct of the grammar, names, numbers,
// operands, types, handles. Not tested here: accepted texts (round_trip_test.cc), texts with random errors
// (parse_fuzz_test.cc).
#include <catch2/catch.hpp>

#include "tests/ir/ir_test.h"

namespace rg = retrograd;
using ir_test::parse;

namespace {

// The text of the parser's error; fails unless its category is bad_argument and
// it names `line`.
std::string refusal(const std::string& text, int line) {
  INFO(text);
  try {
    parse(text);
  } catch (const rg::Error& e) {
    CHECK(e.category() == rg::Category::bad_argument);
    const std::string prefix = "graph text, line " + std::to_string(line) + ": ", what = e.what();
    CHECK(what.substr(0, prefix.size()) == prefix);
    return what.substr(std::min(prefix.size(), what.size()));
  }
  FAIL_CHECK("the text was accepted");
  return {};
}

void check_refused(const std::string& text, int line, const std::string& expected) {
  const std::string problem = refusal(text, line);
  INFO(text);
  INFO(problem);
  CHECK(problem.find(expected) != std::string::npos);
}

// A graph with a symbol s0 = 2, inputs of all kinds, and one line of its own,
// the third.
void check_line(const std::string& line, const std::string& expected) {
  check_refused(
      "graph @g[s0 = 2, s1 = 3](%a: f32[s0,s1], %b: f32[s0], %i: "
      "i64[s0], !s: slot f32[s0], @l: leaf "
      "f32[s0], $h: hook, &x: box f32[s0], ^f: function) {\n"
      "  %n, %u = function_backward ^f, %a : f32[s0], none\n  " +
          line + "\n}\n",
      3, expected);
}

void check_header(const std::string& header, const std::string& expected) {
  check_refused("\n" + header + " {\n}\n", 2, expected);
}

}  // namespace

TEST_CASE("the frame of a graph") {
  check_refused("", 1, "expected \"graph\"");
  check_refused("\n\n  graf @g() {\n}\n", 3, "expected \"graph\" at \"graf @g() {\"");
  check_refused("graphics @g() {\n}\n", 1, "expected \"graph\"");
  check_refused("graph g() {\n}\n", 1, "expected \"@\"");
  check_refused("graph @() {\n}\n", 1, "expected a name");
  check_refused("graph @g {\n}\n", 1, "expected \"(\"");
  check_refused("graph @g()\n}\n", 1, "expected \"{\" at the end of the line");
  check_refused("graph @g() { %0 = neg %1 : f32[]\n}\n", 1, "expected the end of the line");
  check_refused("graph @g() {\n", 2, "expected \"}\"");
  check_refused("graph @g() {\n}\n}\n", 3, "expected the end of the text at \"}\"");
  check_refused("graph @g(%0: f32[]) {\n  return %0\n  return %0\n}\n", 3, "expected \"}\"");
  check_refused("graph @g(%0: f32[]) {\n  return %0\n  %1 = neg %0 : f32[]\n}\n", 3, "expected \"}\"");
}

TEST_CASE("the list of inputs") {
  check_header("graph @g(%0: f32[]", "expected \",\"");
  check_header("graph @g(%0: f32[] %1: f32[])", "expected \",\" at \"%1: f32[]) {\"");
  check_header("graph @g(%0: f32[],)", "expected an input");
  check_header("graph @g(#0: f32[])", "expected an input");
  check_header("graph @g(%: f32[])", "expected a name");
  check_header("graph @g(%0 f32[])", "expected \":\"");
  check_header("graph @g(%0:)", "expected a name");
  check_header("graph @g(%0: f31[])", "there is no dtype f31");
  check_header("graph @g(%0: none)", "there is no dtype none");
  check_header("graph @g(%0: slot f32[])", "there is no dtype slot");
  check_header("graph @g(%0: f32)", "expected \"[\"");
  check_header("graph @g(%0: f32[2)", "expected \",\"");
  check_header("graph @g(%0: f32[2 3])", "expected \",\"");
  check_header("graph @g(%0: f32[-2])", "the size -2 is negative");
  check_header("graph @g(%0: f32[2.0])", "2.0 is not an integer");
  check_header("graph @g(%0: f32[true])", "true is not an integer");
  check_header("graph @g(%0: f32[x])", "x is not a 64-bit integer");
  check_header("graph @g(%0: f32[-9223372036854775808])", "is not a size or an index");
  check_header("graph @g(%0: f32[1,2,3,4,5,6,7,8,9])", "at most 8 dimensions");
  check_header("graph @g(%0: f32[] cuda)", "expected \":\"");
  check_header("graph @g(%0: f32[] cuda:-1)", "there is no device cuda:-1");
  check_header("graph @g(%0: f32[] cuda:128)", "there is no device cuda:128");
  check_header("graph @g(%0: f32[] tpu:0)", "expected \",\"");
  check_header("graph @g(%0: f32[], %0: f32[])", "the value %0 is defined twice");
  check_header("graph @g(!0: slot f32[], !0: slot f32[])", "the input !0 is listed twice");
}

TEST_CASE("an input has the word of its sigil") {
  const std::pair<std::string, std::string> inputs[] = {
      {"!", "slot f32[]"}, {"@", "leaf f32[]"}, {"$", "hook"}, {"&", "box f32[]"}, {"^", "function"}};
  for (const auto& [sigil, right] : inputs)
    for (const auto& [other, wrong] : inputs)
      if (sigil != other)
        check_header("graph @g(" + sigil + "0: " + wrong + ")",
                     "expected \"" + right.substr(0, right.find(' ')) + "\"");
  check_header("graph @g(!0: f32[])", "expected \"slot\"");
  check_header("graph @g(!0: slot)", "expected a name");
  check_header("graph @g($0: hook f32[])", "expected \",\"");
  check_header("graph @g($0: hooks)", "expected \"hook\"");
  check_header("graph @g(^0: function f32[])", "expected \",\"");
}

TEST_CASE("groups") {
  check_line("group", "there is no op group");
  const std::string graph = "graph @g(%a: f32[2], !s: slot f32[2]) {\n  group {\n    ";
  check_refused(graph + "%b = unpack !s : f32[2]\n  }\n}\n", 3, "a node of a group is pure");
  check_refused(graph + "%b, %c = max %a {dim=[0], keepdim=false} : f32[], i64[]\n  }\n}\n", 3,
                "has one result");
  check_refused(graph + "%b = neg %a : f32[2]\n  } %b\n}\n", 4, "expected the end of the line");
  check_refused(graph + "return %a\n  }\n}\n", 3, "expected \"}\"");
  check_refused(graph + "group {\n  }\n}\n", 3, "there is no op group");
  check_refused(graph + "%b = neg %a : f32[2]\n}\n", 5, "expected \"}\"");
}

TEST_CASE("symbols and guards") {
  check_header("graph @g[](%0: f32[])", "expected a name");
  check_header("graph @g[x = 2](%0: f32[])", "a symbol is called s and a number, not x");
  check_header("graph @g[s = 2](%0: f32[])", "a symbol is called s and a number, not s");
  check_header("graph @g[s0x = 2](%0: f32[])", "a symbol is called s and a number, not s0x");
  check_header("graph @g[s0](%0: f32[])", "expected \"=\"");
  check_header("graph @g[s0 = s1](%0: f32[])", "s1 is not a 64-bit integer");
  check_header("graph @g[s0 = 2, s0 = 3](%0: f32[])", "the symbol s0 is listed twice");
  check_header("graph @g[s0 = 2 s1 = 3](%0: f32[])", "expected \"]\"");
  check_header("graph @g[s0 = 2](%0: f32[s1])", "the symbol s1 is not listed in the header");
  check_header("graph @g[s0 = 2.5](%0: f32[s0])", "s0 is not an integer");
  check_header("graph @g[s0 = 2; s0 == 3](%0: f32[])",
               "the guard s0 == 3 does not hold for the values listed");
  check_header("graph @g[s0 = 2; (s0+1) < 3](%0: f32[])", "the guard (s0+1) < 3 does not hold");
  check_header("graph @g[s0 = 2; s0](%0: f32[])", "expected a comparison");
  check_header("graph @g[s0 = 2; s0 = 2](%0: f32[])", "expected a comparison");
  check_header("graph @g[s0 = 2; s0 == ](%0: f32[])", "expected a number");
}

TEST_CASE("expressions") {
  const auto check_size = [](const std::string& size, const std::string& expected) {
    check_header("graph @g[s0 = 2, s1 = 3](%0: f32[" + size + "])", expected);
  };
  check_size("(s0+s1", "expected \")\"");
  check_size("(s0)", "expected an operator");
  check_size("(s0&s1)", "expected an operator");
  check_size("s0+s1", "expected \",\"");
  check_size("(+s0)", "expected a number");
  check_size("()", "expected a number");
  check_size("(s0-s1)", "the size (s0-s1) is negative");
  check_size("(float(s0)*s1)", "(float(s0)*s1) is not an integer");
  check_size("float s0", "expected \"(\"");
  check_size("float(s0", "expected \")\"");
  check_size("floats(s0)", "is not a 64-bit integer");
  check_size("(9223372036854775807*s0)", "does not fit into 63 bits");
}

TEST_CASE("numbers") {
  for (const char* number :
       {"9223372036854775808", "-9223372036854775809", "1_000", "0x10", "1a", "--1", "tru", "infinity", "s"})
    check_line("%1 = mul %b, " + std::string(number) + " : f32[s0]", "");
  check_line("%1 = mul %b, 1e999 : f32[s0]", "1e999 is not a number that fits into 64 bits");
  check_line("%1 = mul %b, 1.5.2 : f32[s0]", "1.5.2 is not a number");
  check_line("%1 = mul %b, 1e : f32[s0]", "1e is not a number");
  check_line("%1 = mul %b, 1e- : f32[s0]", "1e- is not a number");
  check_line("%1 = mul %b, 9223372036854775808 : f32[s0]", "9223372036854775808 is not a 64-bit integer");
}

TEST_CASE("values are defined once, before they are used") {
  check_line("%1 = neg %2 : f32[s0]", "the value %2 is not defined above");
  check_line("%1 = neg %1 : f32[s0]", "the value %1 is not defined above");
  check_line("return %2", "the value %2 is not defined above");
  check_line("%a = neg %a : f32[s0,s1]", "the value %a is defined twice");
  check_line("%n = neg %b : f32[s0]", "the value %n is defined twice");
  check_line("%1, %1 = max %b {dim=[0], keepdim=false} : f32[], i64[]", "the value %1 is defined twice");
  check_line("%1 = neg %u : f32[s0]", "operand 0 of neg is a result that does not exist");
  check_line("return %u", "a result that does not exist is returned");
}

TEST_CASE("the form of a node") {
  check_line("%1 = negate %b : f32[s0]", "there is no op negate");
  check_line("%1 = : f32[s0]", "expected a name");
  check_line("%1 neg %b : f32[s0]", "expected \"=\"");
  check_line("%1, = neg %b : f32[s0]", "expected \"%\"");
  check_line("%1 = neg %b", "expected \":\" at the end of the line");
  check_line("%1 = neg %b : ", "expected a name");
  check_line("%1 = neg %b, : f32[s0]", "expected a value or none");
  check_line("%1 = neg %b : f32[s0], f32[s0]", "expected the end of the line");
  check_line("%1 = neg %b : f32[s0] %2 = neg %1 : f32[s0]", "expected the end of the line");
  check_line("%1 = neg %b : f32[s0] / note", "expected the end of the line");
  check_line("neg %b : f32[s0]", "neg gives 1 result, not 0");
  check_line("return", "expected \"%\"");
  check_line("return !s", "expected \"%\"");
  check_line("return 2", "expected \"%\"");
  check_line("return %a,", "expected \"%\"");
}

TEST_CASE("operands and results are as many as the op has") {
  check_line("%1 = neg : f32[s0]", "neg takes 1 operand, not 0");
  check_line("%1 = neg %b, %b : f32[s0]", "neg takes 1 operand, not 2");
  check_line("%1 = add %b : f32[s0]", "add takes 2 operands, not 1");
  check_line("%1 = full %b {size=[], value=0, dtype=f32} : f32[]", "full takes 0 operands, not 1");
  check_line("%1 = cat {dim=0} : f32[s0]", "cat takes at least one operand, not 0");
  check_line("%1, %2 = neg %b : f32[s0], f32[s0]", "neg gives 1 result, not 2");
  check_line("%1 = max %b {dim=[0], keepdim=false} : f32[]", "max gives 2 results, not 1");
  check_line("%1 = accumulate_grad @l, %b : f32[s0]", "accumulate_grad gives 0 results, not 1");
  check_line(
      "normalize_backward %a, %a, %a, %a, none {dim=[1], eps=0.1, "
      "center=true, constant_stats=false, affine_dim=[], "
      "affine=false}",
      "normalize_backward gives at least one result, not 0");
  check_line("%1 = neg 2.0 : f32[s0]", "expected a value or none at \"2.0 : f32[s0]\"");
  check_line("%1 = add 1, 2 : f32[s0]", "add takes one number at most");
  check_line("%1 = add %b, none : f32[s0]", "add takes a value or a number here, not none");
  std::string many = "%b";
  for (int i = 0; i < 65536; ++i) many += ", %b";
  check_line("%1 = cat " + many + " {dim=0} : f32[s0]", "there are too many operands");
}

TEST_CASE("handles stand first, in bookkeeping nodes, and are of the right kind") {
  check_line("%1 = unpack : f32[s0]", "unpack acts on a slot or code, and none is named");
  check_line("%1 = unpack !t : f32[s0]", "this slot is not listed in the header");
  check_line("%1 = unpack @s : f32[s0]", "this leaf is not listed in the header");
  check_line("%1 = unpack @l : f32[s0]", "unpack acts on a slot or code, not on a leaf");
  check_line("accumulate_grad !s, %b", "accumulate_grad acts on a leaf, not on a slot");
  check_line("retain_grad @l, %b", "retain_grad acts on a box, not on a leaf");
  check_line("%1 = hook &x, %b : f32[s0]", "hook acts on a hook, not on a box");
  check_line("%1 = function_backward $h, %b : f32[s0]",
             "function_backward acts on a function or code, not on a hook");
  check_line("%1 = neg !s : f32[s0]", "neg takes 1 operand, not 0");
  check_line("%1 = neg !s, %b : f32[s0]", "neg acts on no input");
  check_line("%1 = hook %b, $h : f32[s0]", "expected a value or none");
  check_line("%1 = hook $h, $h : f32[s0]", "expected a value or none");
  check_line("%1 = hook $h, : f32[s0]", "expected a value or none");
  check_line("%1 = hook $h %b : f32[s0]", "expected \":\"");
}

TEST_CASE("attributes are all given, once, and of their kind") {
  check_line("%1 = sum %b : f32[]", "the attribute dim of sum is missing");
  check_line("%1 = sum %b {dim=[0]} : f32[]", "the attribute keepdim of sum is missing");
  check_line("%1 = sum %b {dim=[0], keepdim=true, dim=[0]} : f32[1]",
             "the attribute dim of sum is given already");
  check_line("%1 = sum %b {axis=[0], keepdim=true} : f32[1]", "sum has no attribute axis");
  check_line("%1 = neg %b {dim=0} : f32[s0]", "neg has no attribute dim");
  check_line("%1 = add %b, %b {scalar=2} : f32[s0]", "the attribute scalar of add is given already");
  check_line("%1 = sum %b {dim=0, keepdim=true} : f32[1]", "expected \"[\"");
  check_line("%1 = sum %b {dim=[0], keepdim=1} : f32[1]", "1 is neither true nor false");
  check_line("%1 = sum %b {dim=[0.0], keepdim=true} : f32[1]", "0.0 is not an integer");
  check_line("%1 = sum %b {dim=[s0], keepdim=true} : f32[1]", "is not a 64-bit integer");
  check_line(
      "%1 = sum %b {dim=[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0], "
      "keepdim=true} : f32[1]",
      "a list has at most 16 integers");
  check_line("%1 = cat %b {dim=true} : f32[s0]", "true is not an integer");
  check_line("%1 = cat %b {dim=(s0-2)} : f32[s0]", "expected a number");
  check_line("%1 = to %b {dtype=int} : i64[s0]", "there is no dtype int");
  check_line("%1 = select %b {dim=0, index=0.5} : f32[]", "0.5 is not an integer");
  check_line("%1 = select %b {dim=0 index=0} : f32[]", "expected \",\"");
  check_line("%1 = select %b {dim 0} : f32[]", "expected \"=\"");
  check_line("%1 = select %b {dim=} : f32[]", "expected a number");
  check_line("%1 = select %b {dim=0, index=0 : f32[]", "expected \",\"");
}

TEST_CASE("types are those that the op's rule gives") {
  check_line("%1 = neg %b : f64[s0]", "expected type f32[s0] for result 0 of neg, not f64[s0]");
  check_line("%1 = neg %b : f32[2]", "expected type f32[s0] for result 0 of neg, not f32[2]");
  check_line("%1 = neg %b : f32[s0,1]", "expected type f32[s0] for result 0 of neg, not f32[s0,1]");
  check_line("%1 = neg %b : f32[s0] cuda:0", "expected type f32[s0] for result 0 of neg, not f32[s0] cuda:0");
  check_line("%1 = neg %b : none", "expected type f32[s0] for result 0 of neg, not none");
  check_line("%1 = mul %a, %b : f32[s0,s1]", "shapes [s0,s1] and [s0] cannot be broadcast together");
  check_line("%1 = mm %a, %a : f32[s0,s1]", "inner sizes s1 and s0 differ");
  check_line("%1 = mm %a, %b : f32[s0]", "operand 1 must be a matrix but has 1 dims");
  check_line("%1 = add %b, %i : f32[s0]", "operands have different dtypes");
  check_line("%1 = cat %a, %a {dim=0} : f32[s0,s1]",
             "expected type f32[(s0+s0),s1] for result 0 of cat, not f32[s0,s1]");
  check_line("%1 = view %a {size=[s0]} : f32[s0]", "it does not have as many elements as [s0]");
  check_line("%1, %2 = max %b {dim=[0], keepdim=false} : f32[], f32[]",
             "expected type i64[] for result 1 of max, not f32[]");
}

TEST_CASE("dtypes that a kernel does not have") {
  const std::string draw = ", seed=1, offset=0} : ", refused = "it does not draw numbers of this dtype";
  check_line("%1 = uniform {size=[2], from=0.0, to=1.0, dtype=u8" + draw + "u8[2]", refused);
  check_line("%1 = normal {size=[2], mean=0.0, std=1.0, dtype=f8e4m3" + draw + "f8e4m3[2]", refused);
  check_line("%1 = exponential {size=[2], lambd=1.0, dtype=bool" + draw + "bool[2]", refused);
  check_line("%1 = randint {size=[2], low=0, high=2, dtype=f8e5m2" + draw + "f8e5m2[2]", refused);
  check_line("%1 = bernoulli_number {size=[2], p=0.5, dtype=f8e5m2" + draw + "f8e5m2[2]", refused);
  check_line("%1 = randperm {n=2, dtype=bool" + draw + "bool[2]", refused);
  const std::string loss = " {dim=1, ignore_index=-100} : f32[s0,s1]";
  check_line("%1 = cross_entropy_backward %b, %a, %i, %i" + loss,
             "gradient, input and stats do not go together");
  check_line("%1 = cross_entropy_backward %i, %a, %i, %b" + loss,
             "it is defined for float64, float32, float16 and bfloat16");
  const std::string norm =
      " {dim=[1], eps=1e-05, center=true, constant_stats=true, affine_dim=[], affine=false} : f32[s0,s1]";
  check_line("%1 = normalize_backward %a, %a, %b, %b, none" + norm,
             "mean and rstd have other types than normalize gives");
}

TEST_CASE("types in bookkeeping nodes") {
  check_line("%1 = unpack !s : f32[s1]", "expected type f32[s0] for result 0 of unpack, not f32[s1]");
  check_line("%1 = unpack !s : none", "expected type f32[s0] for result 0 of unpack, not none");
  check_line("accumulate_grad @l, %a",
             "expected type f32[s0] for operand 0 of accumulate_grad, not f32[s0,s1]");
  check_line("accumulate_grad @l, none", "expected type f32[s0] for operand 0 of accumulate_grad, not none");
  check_line("retain_grad &x, %i", "expected type f32[s0] for operand 0 of retain_grad, not i64[s0]");
  check_line("%1 = hook $h, %b : f32[s1]", "expected type f32[s0] for result 0 of hook, not f32[s1]");
  check_line("%1 = hook $h, %b : none", "expected type f32[s0] for result 0 of hook, not none");
  check_line("%1 = hook $h, none : f32[s0]", "expected type none for result 0 of hook, not f32[s0]");
  check_line("%1, %2 = hook $h, %b : f32[s0], none", "hook gives at most as many results as it has operands");
  check_line("%1 = accumulate %a, %b : f32[s0]", "two gradients of one value have different types");
}

TEST_CASE("operands that an op needs") {
  check_line("%1 = neg none : f32[s0]", "operand 0 of neg is missing");
  check_line("%1 = mm %a, none : f32[s0]", "operand 1 of mm is missing");
  check_line("%1 = where 1, %a, %a : f32[s0,s1]", "operand 0 of where is missing");
  check_line("%1 = cat %b, none {dim=0} : f32[s0]", "operand 1 of cat is missing");
  check_line("%1 = linear none, %a, none : f32[s0]", "operand 0 of linear is missing");
}

TEST_CASE("dims are dims of the operand") {
  for (const char* dims : {"2", "-1", "1,0", "0,0", "4000000000"})
    check_line("%1 = sum %a {dim=[" + std::string(dims) + "], keepdim=false} : f32[s0,s1]",
               "its dims are not dims of the operand");
  check_line("%1 = mean %a {dim=[9], keepdim=false} : f32[s0,s1]", "its dims are not dims of the operand");
  check_line("%1 = amax %a {dim=[9], keepdim=false, nan_ties=false} : f32[s0,s1]",
             "its dims are not dims of the operand");
  for (const char* dims : {"5000000,0", "1,1", "0,1,2,3,4,5,6,7,8,9,10"})
    check_line("%1 = permute %a {dims=[" + std::string(dims) + "]} : f32[s0,s1]",
               "its dims are not dims of the operand");
  check_line("%1 = permute %a {dims=[0]} : f32[s0,s1]", "not every dim has a place");
  check_line("%1 = softmax %a {dim=2} : f32[s0,s1]", "dim 2 is out of range");
  check_line("%1 = cumsum %a {dim=-1, reverse=false, exclusive=false} : f32[s0,s1]",
             "dim -1 is out of range");
  check_line("%1 = flip %a {dims=[7]} : f32[s0,s1]", "dim 7 is out of range");
  check_line("%1 = tril %b {diagonal=0} : f32[s0]", "the operand is not a matrix");
  check_line("%1 = nll %a, %i {dim=2, ignore_index=-100} : f32[s0]", "dim 2 is out of range");
  check_line(
      "%1 = nll_backward %b, %i {dim=9, ignore_index=-100, classes=3} : "
      "f32[s0,3]",
      "dim 9 is out of range");
  check_line(
      "%1, %2, %3 = normalize %a, none, none {dim=[4], eps=0.1, center=true, "
      "constant_stats=false, affine_dim=[]} : f32[s0,s1], f32[s0,1], f32[s0,1]",
      "its dims are not dims of the operand");
  check_line(
      "%1, %2 = normalize_backward %a, %a, %a, %a, none {dim=[1], eps=0.1, "
      "center=true, constant_stats=false, affine_dim=[], affine=false} : f32[s0,s1], f32[s1]",
      "three gradients if affine, else one");
}
