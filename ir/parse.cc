// Reading the text form of a graph: a tokenizer-free recursive descent over the grammar of docs/ir.md. Only expressions of sizes nest, and
// their depth is limited. Values may be numbered in any way; printing the result numbers them anew in order.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "ir/text.h"

namespace retrograd::ir {
namespace {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(std::string_view expected) const {
    throw Error(Category::bad_argument, fmt::format("graph text, line {}: expected {} at \"{}\"", line(), expected, rest().substr(0, 24)));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  void skip_lines() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (!rest().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(fmt::format("\"{}\"", token));
  }
  std::string_view word() {
    skip_space();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.')) ++at_;
    if (begin == at_) fail("a name");
    return text_.substr(begin, at_ - begin);
  }
  std::string_view until_line_end() {
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end;
    return line;
  }
  std::string_view rest() const { return text_.substr(at_); }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

 private:
  int line() const { return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n')); }
  std::string_view text_;
  size_t at_ = 0;
};

class Parser {
 public:
  Parser(std::string_view text, OpLookup lookup) : in_(text), lookup_(lookup) {}

  Graph run() {
    SymbolTable::Scope scope(&graph_.symbols);
    header();
    body();
    return std::move(graph_);
  }

  // Numbers, sizes and types; also used by the attribute reader.
  Scalar number();
  Scalar expression(int depth = 0);
  Dim dim();
  Shape shape();
  ScalarType dtype();
  TensorType type();
  Cursor& in() { return in_; }

 private:
  void header();
  void guard();
  void input();
  void body();
  void statement();
  void note(Node& node);
  ValueId operand(Scalar& scalar, int32_t& handle);

  Cursor in_;
  OpLookup lookup_;
  Graph graph_;
  std::map<std::string, int32_t, std::less<>> symbols_;
  std::map<std::string, ValueId, std::less<>> values_;
  std::map<std::string, int32_t, std::less<>> handles_;
};

Scalar Parser::number() {
  const bool negative = in_.take("-");
  const std::string_view text = in_.word();
  if (text == "true" || text == "false") return Scalar(text == "true");
  if (text == "inf" || text == "nan") return Scalar((negative ? -1 : 1) * (text == "inf" ? INFINITY : NAN));
  std::string digits(text);
  if (digits.back() == 'e' && (in_.peek() == '-' || in_.peek() == '+')) {
    digits += in_.take("-") ? "-" : "+";
    in_.take("+");
    digits += in_.word();
  }
  if (negative) digits.insert(0, "-");
  const bool floating = digits.find_first_of(".e") != std::string::npos;
  const char* end = digits.data() + digits.size();
  if (floating) {
    double v = 0;
    if (std::from_chars(digits.data(), end, v).ptr != end) in_.fail("a number");
    return Scalar(v);
  }
  int64_t v = 0;
  const auto [stop, error] = std::from_chars(digits.data(), end, v);
  if (stop != end || error != std::errc()) in_.fail("an integer of 64 bits");
  return Scalar(v);
}

// number | symbol | "(" expression sign expression ")"
Scalar Parser::expression(int depth) {
  if (depth > 64) in_.fail("an expression that is less deep");
  if (in_.take("(")) {
    const Scalar lhs = expression(depth + 1);
    static constexpr std::pair<std::string_view, Arith> signs[] = {{"+", Arith::add}, {"-", Arith::sub}, {"*", Arith::mul},
                                                                   {"/", Arith::div}, {"%", Arith::mod}, {"^", Arith::pow}};
    for (auto [sign, op] : signs) {
      if (!in_.take(sign)) continue;
      const Scalar rhs = expression(depth + 1);
      in_.expect(")");
      auto id = [&](Scalar s) { return s.is_symbolic() ? s.id() : graph_.symbols.constant(s.number()); };
      const int32_t e = graph_.symbols.arith(op, id(lhs), id(rhs));
      return Scalar::symbol(e, graph_.symbols.expr(e).hint);
    }
    in_.fail("an operator");
  }
  if (in_.peek() == 's' ) {
    const auto it = symbols_.find(in_.word());
    if (it == symbols_.end()) in_.fail("a symbol listed in the header");
    return Scalar::symbol(it->second, graph_.symbols.expr(it->second).hint);
  }
  return number();
}

Dim Parser::dim() {
  const Scalar s = expression();
  if (s.is_floating()) in_.fail("an integer size");
  return s.is_symbolic() ? Dim::symbol(s.id()) : Dim(s.to_int());
}

Shape Parser::shape() {
  Shape shape;
  in_.expect("[");
  while (!in_.take("]")) {
    if (shape.rank()) in_.expect(",");
    shape.push_back(dim());
  }
  return shape;
}

ScalarType Parser::dtype() {
  const std::optional<ScalarType> found = parse_dtype(in_.word());
  if (!found) in_.fail("a dtype");
  return *found;
}

TensorType Parser::type() {
  if (in_.take("none")) return {};
  TensorType t;
  t.dtype = dtype();
  t.shape = shape();
  return t;
}

void Parser::header() {
  in_.skip_lines();
  in_.expect("graph");
  in_.expect("@");
  graph_.name = std::string(in_.word());
  if (in_.take("[")) {
    bool guards = false;
    for (bool first = true; !in_.take("]"); first = false) {
      if (!guards) guards = in_.take(";");
      else in_.expect(";");
      if (guards) {
        guard();
        continue;
      }
      if (!first) in_.expect(",");
      const std::string symbol(in_.word());
      in_.expect("=");
      symbols_[symbol] = graph_.symbols.add_symbol(number().number());
    }
  }
  in_.expect("(");
  for (bool first = true; !in_.take(")"); first = false) {
    if (!first) in_.expect(",");
    input();
  }
  in_.expect("{");
}

void Parser::guard() {
  const Scalar lhs = expression();
  static constexpr std::tuple<std::string_view, Compare, bool> signs[] = {{"!=", Compare::eq, false}, {"==", Compare::eq, true},
                                                                          {">=", Compare::lt, false}, {"<=", Compare::le, true},
                                                                          {"<", Compare::lt, true},   {">", Compare::le, false}};
  for (auto [sign, op, holds] : signs) {
    if (!in_.take(sign)) continue;
    const Scalar rhs = expression();
    auto id = [&](Scalar s) { return s.is_symbolic() ? s.id() : graph_.symbols.constant(s.number()); };
    if (graph_.symbols.compare(op, id(lhs), id(rhs)) != holds) in_.fail("a guard that holds for the values given");
    return;
  }
  in_.fail("a comparison");
}

void Parser::input() {
  static constexpr std::pair<std::string_view, Input::Kind> sigils[] = {
      {"!", Input::Kind::slot}, {"@", Input::Kind::leaf}, {"$", Input::Kind::hook}, {"&", Input::Kind::box}};
  if (in_.take("%")) {
    const std::string name(in_.word());
    in_.expect(":");
    const TensorType t = type();
    values_[name] = graph_.add_tensor_input(t);
    return;
  }
  for (auto [sigil, kind] : sigils) {
    if (!in_.take(sigil)) continue;
    const std::string name(in_.word());
    in_.expect(":");
    in_.word();
    handles_[std::string(sigil) + name] = graph_.add_handle(kind, kind == Input::Kind::hook ? TensorType{} : type(), name);
    return;
  }
  in_.fail("an input");
}

ValueId Parser::operand(Scalar& scalar, int32_t& handle) {
  if (in_.take("%")) {
    const auto it = values_.find(in_.word());
    if (it == values_.end()) in_.fail("a value that is defined above");
    return it->second;
  }
  const char c = in_.peek();
  if (c == '!' || c == '@' || c == '$' || c == '&') {
    in_.take(std::string_view(&c, 1));
    const auto it = handles_.find(std::string(1, c) + std::string(in_.word()));
    if (it == handles_.end()) in_.fail("a handle listed in the header");
    handle = it->second;
    return kNoValue;
  }
  if (in_.take("none")) return kNoValue;
  scalar = expression();
  return kNoValue;
}

// Assigns "name=value" pairs to the fields of an attribute struct.
class AttrReader final : public AttrVisitor {
 public:
  AttrReader(Parser& parser, std::string_view name) : p_(parser), name_(name) {}
  bool found = false;
  void field(std::string_view n, bool& v) override { if (is(n)) v = p_.number().to_int() != 0; }
  void field(std::string_view n, int64_t& v) override { if (is(n)) v = p_.number().to_int(); }
  void field(std::string_view n, Dim& v) override { if (is(n)) v = p_.dim(); }
  void field(std::string_view n, Scalar& v) override { if (is(n)) v = p_.expression(); }
  void field(std::string_view n, Shape& v) override { if (is(n)) v = p_.shape(); }
  void field(std::string_view n, IntList& v) override {
    if (!is(n)) return;
    v = IntList();
    p_.in().expect("[");
    while (!p_.in().take("]")) {
      if (!v.empty()) p_.in().expect(",");
      v.push_back(p_.number().to_int());
    }
  }
  void field(std::string_view n, ScalarType& v) override { if (is(n)) v = p_.dtype(); }

 private:
  bool is(std::string_view n) {
    if (found || n != name_) return false;
    return found = true;
  }
  Parser& p_;
  std::string_view name_;
};

class ScalarSetter final : public AttrVisitor {
 public:
  explicit ScalarSetter(Scalar value) : value_(value) {}
  void field(std::string_view, bool&) override {}
  void field(std::string_view, int64_t&) override {}
  void field(std::string_view, Dim&) override {}
  void field(std::string_view n, Scalar& v) override { if (n == "scalar") v = value_; }
  void field(std::string_view, Shape&) override {}
  void field(std::string_view, IntList&) override {}
  void field(std::string_view, ScalarType&) override {}

 private:
  Scalar value_;
};

void Parser::statement() {
  std::vector<std::string> names;
  while (in_.peek() == '%') {
    in_.expect("%");
    names.emplace_back(in_.word());
    if (!in_.take(",")) break;
  }
  if (!names.empty()) in_.expect("=");
  const OpInfo* op = lookup_(in_.word());
  if (!op) in_.fail("the name of an op");
  std::vector<ValueId> operands;
  Scalar scalar;
  int32_t handle = -1;
  while (in_.peek() != '{' && in_.peek() != ':' && in_.peek() != '\n' && in_.peek() != '/' && in_.peek() != '\0') {
    const int32_t before = handle;
    const ValueId v = operand(scalar, handle);
    if (handle == before) operands.push_back(v);
    if (!in_.take(",")) break;
  }
  std::vector<std::byte> attrs(op->attrs_size);
  if (op->attrs_size && op->visit_attrs) {
    ScalarSetter setter(scalar);
    op->visit_attrs(attrs.data(), setter);
  }
  if (in_.take("{"))
    for (bool first = true; !in_.take("}"); first = false) {
      if (!first) in_.expect(",");
      AttrReader reader(*this, in_.word());
      in_.expect("=");
      if (op->visit_attrs) op->visit_attrs(attrs.data(), reader);
      if (!reader.found) in_.fail("an attribute of this op");
    }
  std::vector<TensorType> types;
  if (!names.empty()) {
    in_.expect(":");
    for (size_t i = 0; i < names.size(); ++i) {
      if (i) in_.expect(",");
      types.push_back(type());
    }
  }
  Node& node = graph_.append(*op, operands, attrs.data(), types);
  node.handle = handle;
  for (size_t i = 0; i < names.size(); ++i) values_[names[i]] = node.first_result + static_cast<ValueId>(i);
  if (in_.take("//")) note(node);
}

// "tanh#2 rule, mlp.cc:44"; anything else in a note is ignored.
void Parser::note(Node& node) {
  std::string_view text = in_.until_line_end();
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const size_t comma = text.find(", "), hash = text.find('#');
  std::string_view place = text;
  if (hash != std::string_view::npos) {
    const std::string_view left = text.substr(0, comma);
    const size_t space = left.find(' ', hash);
    uint32_t ordinal = 0;
    std::from_chars(left.data() + hash + 1, left.data() + left.size(), ordinal);
    node.origin = graph_.add_origin({graph_.keep(left.substr(0, hash)), ordinal,
                                     space == std::string_view::npos ? std::string_view() : graph_.keep(left.substr(space + 1))});
    place = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 2);
  }
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) return;
  std::from_chars(place.data() + colon + 1, place.data() + place.size(), node.where.line);
  node.where.file = graph_.keep(place.substr(0, colon)).data();
}

void Parser::body() {
  for (in_.skip_lines(); !in_.take("}"); in_.skip_lines()) {
    if (in_.take("return ")) {
      std::vector<ValueId> outputs;
      Scalar scalar;
      int32_t handle = -1;
      do outputs.push_back(operand(scalar, handle));
      while (in_.take(","));
      graph_.set_outputs(std::move(outputs));
      continue;
    }
    statement();
  }
}

}  // namespace

Graph parse(std::string_view text, OpLookup lookup) { return Parser(text, lookup).run(); }

}  // namespace retrograd::ir
