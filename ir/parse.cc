// Reading the text form of a graph: the grammar of docs/ir.md, line by line. Only expressions of symbols
// nest, and ValueReader keeps those on a stack.
//
// A node is appended when it is read, and checked immediately (ir/type_check.h): an ill-typed text is
// Error(bad_argument) with the line. A comparison that a type rule makes and that no guard in the header covers becomes
// a guard of the graph.
//
// Values may have any names; printing the result renumbers them in order.
#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "ir/input_text.h"
#include "ir/parse_values.h"
#include "ir/text.h"
#include "ir/type_check.h"

namespace retrograd::inline v0::ir {
namespace {

class Parser {
 public:
  Parser(std::string_view text, OpLookup lookup) : in_(text), lookup_(lookup) {}
  Parser(std::string_view text, OpLookup lookup, const SymbolTable& symbols) : Parser(text, lookup) {
    graph_.symbols = symbols;
    values_in_.expect_symbols();
  }

  Graph run() {
    SymbolTable::Scope scope(&graph_.symbols);
    header();
    body();
    return std::move(graph_);
  }

 private:
  // The text between the op and its attributes.
  struct Operands {
    std::vector<ValueId> values;
    int32_t handle = -1;
    Scalar number;
    bool has_number = false;
  };

  void header();
  void input();
  void body();
  bool group_brace();
  void outputs();
  void node();
  std::vector<std::string> results();
  Operands operands(const OpInfo& op);
  void operand(const OpInfo& op, Operands& into);
  std::vector<TensorType> result_types(size_t count);
  ValueId value();
  void note(Node& node);
  void end_line();
  void define(const std::string& name, ValueId value);

  TextCursor in_;
  OpLookup lookup_;
  Graph graph_;
  ValueReader values_in_{in_, graph_.symbols};
  TypeChecker checker_{graph_};
  std::map<std::string, ValueId, std::less<>> values_;
  std::map<std::string, int32_t, std::less<>> handles_;  // with their prefix characters
  int32_t groups_ = 0;
  bool in_group_ = false;
};

void Parser::header() {
  in_.next_line();
  if (!in_.take_word("graph")) in_.expected("\"graph\"");
  in_.expect("@");
  graph_.name = std::string(in_.word());
  if (in_.take("[")) {
    if (in_.peek() != ';') {
      do values_in_.symbol();
      while (in_.take(","));
    }
    while (in_.take(";")) values_in_.guard();
    in_.expect("]");
  }
  in_.expect("(");
  for (bool first = true; !in_.take(")"); first = false) {
    if (!first) in_.expect(",");
    input();
  }
  in_.expect("{");
  end_line();
}

void Parser::input() {
  const auto* text = std::ranges::find_if(
      kInputText, [&](const InputText& t) { return in_.take(std::string_view(&t.sigil, 1)); });
  if (text == std::end(kInputText)) in_.expected("an input");
  const auto kind = static_cast<Input::Kind>(text - kInputText);
  const std::string name(in_.word());
  in_.expect(":");
  if (kind == Input::Kind::tensor) return define(name, graph_.add_tensor_input(values_in_.type()));
  if (!in_.take_word(text->word)) in_.expected(fmt::format("\"{}\"", text->word));
  const TensorType type = text->has_type ? values_in_.type() : TensorType{};
  if (!handles_.emplace(text->sigil + name, graph_.add_handle(kind, type, name)).second)
    in_.fail(fmt::format("the input {}{} is listed twice", text->sigil, name));
}

void Parser::define(const std::string& name, ValueId value) {
  if (!values_.emplace(name, value).second) in_.fail(fmt::format("the value %{} is defined twice", name));
}

ValueId Parser::value() {
  const std::string_view name = in_.word();
  const auto it = values_.find(name);
  if (it == values_.end()) in_.fail(fmt::format("the value %{} is not defined above", name));
  return it->second;
}

void Parser::end_line() {
  if (!in_.at_line_end()) in_.expected("the end of the line");
}

void Parser::body() {
  bool returned = false;
  for (;;) {
    if (!in_.next_line()) in_.expected("\"}\"");
    if (group_brace()) continue;
    if (in_.take("}")) break;
    if (returned) in_.expected("\"}\"");
    returned = in_.take_word("return");
    returned ? outputs() : node();
    end_line();
  }
  if (in_.next_line()) in_.expected("the end of the text");
}

// "group {" or, within one, the "}" at its end. An op with the name "group" is distinguished by what follows it:
// attributes end on their line.
bool Parser::group_brace() {
  if (in_group_) {
    if (!in_.take("}")) return false;
    in_group_ = false;
  } else {
    TextCursor ahead = in_;
    if (!ahead.take_word("group") || !ahead.take("{") || !ahead.at_line_end()) return false;
    in_ = ahead;
    in_group_ = true;
    ++groups_;
  }
  end_line();
  return true;
}

void Parser::outputs() {
  if (in_group_) in_.expected("\"}\"");
  std::vector<ValueId> outputs;
  do {
    if (in_.take_word("none")) {
      outputs.push_back(kNoValue);
      continue;
    }
    in_.expect("%");
    outputs.push_back(value());
    if (graph_.type(outputs.back()).dtype == ScalarType::Undefined)
      in_.fail("a result that does not exist is returned");
  } while (in_.take(","));
  graph_.set_outputs(std::move(outputs));
}

// ---- nodes ---------------------------------------------------------------------------------------

void Parser::node() {
  const std::vector<std::string> names = results();
  const std::string_view op_name = in_.word();
  const OpInfo* op = lookup_(op_name);
  if (!op) in_.fail(fmt::format("there is no op {}", op_name));
  const Operands given = operands(*op);
  const std::vector<std::byte> attrs = values_in_.attributes(*op, given.number);
  const std::vector<TensorType> types = result_types(names.size());
  Node& node = graph_.append(*op, given.values, attrs.data(), types);
  node.handle = given.handle;
  if (in_group_) {
    node.group = groups_ - 1;
    if (!may_be_in_group(node))
      in_.fail("a node of a group is pure and has one result, or updates its operands");
  }
  const std::string problem = checker_.problem(node);
  if (!problem.empty()) in_.fail(problem);
  for (size_t i = 0; i < names.size(); ++i) define(names[i], node.first_result + static_cast<ValueId>(i));
  if (in_.take("//")) note(node);
}

std::vector<std::string> Parser::results() {
  std::vector<std::string> names;
  if (in_.peek() != '%') return names;
  do {
    in_.expect("%");
    names.emplace_back(in_.word());
  } while (in_.take(","));
  in_.expect("=");
  return names;
}

Parser::Operands Parser::operands(const OpInfo& op) {
  Operands given;
  const auto at_end = [&] {
    return in_.at_line_end() || in_.peek() == '{' || in_.peek() == ':' || in_.peek() == '/';
  };
  if (at_end()) return given;
  for (const InputText& t : kInputText) {
    if (t.sigil == '%' || !in_.take(std::string_view(&t.sigil, 1))) continue;
    const auto it = handles_.find(t.sigil + std::string(in_.word()));
    if (it == handles_.end()) in_.fail(fmt::format("this {} is not listed in the header", t.word));
    given.handle = it->second;
    if (!in_.take(",")) return given;
    break;
  }
  do operand(op, given);
  while (in_.take(","));
  if (given.values.size() > kMaxOperands) in_.fail("there are too many operands");
  return given;
}

void Parser::operand(const OpInfo& op, Operands& into) {
  into.values.push_back(kNoValue);
  if (in_.take("%")) {
    into.values.back() = value();
  } else if (op.has_scalar_operand) {
    if (in_.take_word("none")) in_.fail(fmt::format("{} takes a value or a number here, not none", op.name));
    if (into.has_number) in_.fail(fmt::format("{} takes one number at most", op.name));
    into.number = values_in_.expression();
    into.has_number = true;
  } else if (!in_.take_word("none")) {
    in_.expected("a value or none");
  }
}

std::vector<TensorType> Parser::result_types(size_t count) {
  std::vector<TensorType> types;
  if (count > kMaxOperands) in_.fail("there are too many results");
  for (size_t i = 0; i < count; ++i) {
    in_.expect(i ? "," : ":");
    types.push_back(in_.take_word("none") ? TensorType{} : values_in_.type());
  }
  return types;
}

// "tanh#2 rule, mlp.cc:44", or only one of the two parts. Anything else in an annotation is ignored, also a file name
// with blanks.
void Parser::note(Node& node) {
  std::string_view text = in_.until_line_end();
  const auto trim = [](std::string_view& s) {
    s.remove_prefix(std::min(s.find_first_not_of(" \t\r"), s.size()));
    s = s.substr(0, s.find_last_not_of(" \t\r") + 1);
  };
  const auto read_number = [](std::string_view s, auto& number) {
    const auto [stop, error] = std::from_chars(s.data(), s.data() + s.size(), number);
    return error == std::errc() ? static_cast<size_t>(stop - s.data()) : 0;
  };
  trim(text);
  const size_t hash = text.find('#'), comma = std::min(text.find(", "), text.size());
  uint32_t ordinal = 0;
  if (hash < comma && hash > 0 && text.find(' ') > hash) {
    if (const size_t digits = read_number(text.substr(hash + 1, comma - hash - 1), ordinal)) {
      std::string_view part = text.substr(hash + 1 + digits, comma - hash - 1 - digits);
      trim(part);
      node.origin = graph_.add_origin({graph_.keep(text.substr(0, hash)), ordinal, graph_.keep(part)});
      text.remove_prefix(std::min(comma + 2, text.size()));
    }
  }
  const size_t colon = std::min(text.rfind(':'), text.size());
  std::string_view file = text.substr(0, colon);
  int line = 0;
  if (colon == text.size() || colon + 1 + read_number(text.substr(colon + 1), line) != text.size() ||
      line < 0)
    return;
  file.remove_prefix(file.rfind('/') + 1);
  if (!file.empty() && file.find_first_of(" ,#") == std::string_view::npos)
    node.where = {graph_.keep(file).data(), line};
}

}  // namespace

Graph parse(std::string_view text, OpLookup lookup) { return Parser(text, lookup).run(); }

Graph parse(std::string_view text, OpLookup lookup, const SymbolTable& symbols) {
  return Parser(text, lookup, symbols).run();
}

}  // namespace retrograd::ir
