// Symbol tables and the slow paths of Dim and Scalar; see engine/symbols.h.
#include "engine/symbols.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "engine/named_call.h"

namespace retrograd::inline v0 {
namespace {

constinit thread_local SymbolTable* current_table = nullptr;

bool evaluate_compare(Compare op, Number a, Number b) {
  const bool floating = a.kind == Number::Kind::Float || b.kind == Number::Kind::Float;
  switch (op) {
    case Compare::eq: return a == b || (floating && std::isnan(a.as_double()) && std::isnan(b.as_double()));
    case Compare::lt: return floating ? a.as_double() < b.as_double() : a.i < b.i;
    case Compare::le: return floating ? a.as_double() <= b.as_double() : a.i <= b.i;
  }
  return false;
}

Number evaluate_float(Arith op, double a, double b) {
  switch (op) {
    case Arith::add: return Number::of(a + b);
    case Arith::sub: return Number::of(a - b);
    case Arith::mul: return Number::of(a * b);
    case Arith::div: return Number::of(a / b);
    case Arith::mod: return Number::of(std::fmod(a, b));
    case Arith::pow: return Number::of(std::pow(a, b));
    default: return Number::of(a);
  }
}

Number evaluate_arith(Arith op, Number a, Number b) {
  if (op == Arith::to_float || a.kind == Number::Kind::Float || b.kind == Number::Kind::Float)
    return evaluate_float(op, a.as_double(), b.as_double());
  int64_t r = 0;
  bool overflow = false;
  switch (op) {
    case Arith::add: overflow = __builtin_add_overflow(a.i, b.i, &r); break;
    case Arith::sub: overflow = __builtin_sub_overflow(a.i, b.i, &r); break;
    case Arith::mul: overflow = __builtin_mul_overflow(a.i, b.i, &r); break;
    case Arith::div: r = b.i == 0 ? 0 : a.i / b.i; break;
    case Arith::mod: r = b.i == 0 ? 0 : a.i % b.i; break;
    default: return evaluate_float(op, a.as_double(), b.as_double());
  }
  if (overflow) fail_somewhere(Category::bad_argument, "a size or integer does not fit into 63 bits");
  return Number::of(r);
}

std::string number_text(Number n) {
  if (n.kind == Number::Kind::Bool) return n.i ? "true" : "false";
  if (n.kind == Number::Kind::Int) return fmt::format("{}", n.i);
  std::string text = fmt::format("{}", n.d);
  return text.find_first_of(".einf") == std::string::npos ? text + ".0" : text;
}

}  // namespace

SymbolTable* SymbolTable::current() { return current_table; }

SymbolTable& SymbolTable::require() {
  RG_ASSERT(current_table != nullptr);
  return *current_table;
}

SymbolTable::Scope::Scope(SymbolTable* table) : previous_(current_table) { current_table = table; }
SymbolTable::Scope::~Scope() { current_table = previous_; }

int32_t SymbolTable::add_symbol(Number hint) {
  exprs_.push_back({Arith::symbol, -1, symbols_, hint, symbols_});
  ++symbols_;
  return size() - 1;
}

size_t SymbolTable::KnownHash::operator()(const Known& k) const {
  size_t h = static_cast<size_t>(k.tag);
  for (uint64_t word : {static_cast<uint64_t>(k.lhs), static_cast<uint64_t>(k.rhs), k.bits})
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 32;
}

int32_t SymbolTable::constant(Number value) {
  const auto [it, fresh] =
      known_.try_emplace({static_cast<int>(value.kind), -1, -1, std::bit_cast<uint64_t>(value.i)}, size());
  if (fresh) exprs_.push_back({Arith::constant, -1, -1, value});
  return it->second;
}

int32_t SymbolTable::arith(Arith op, int32_t lhs, int32_t rhs) {
  const Number b = rhs >= 0 ? exprs_[rhs].hint : Number{};
  const Number hint = evaluate_arith(op, exprs_[lhs].hint, b);
  const auto [it, fresh] = known_.try_emplace({kArith + static_cast<int>(op), lhs, rhs, 0}, size());
  if (fresh)
    exprs_.push_back(
        {op, lhs, rhs, hint, std::max(exprs_[lhs].last_symbol, rhs >= 0 ? exprs_[rhs].last_symbol : -1)});
  return it->second;
}

bool SymbolTable::compare(Compare op, int32_t lhs, int32_t rhs) {
  if (lhs == rhs) return op != Compare::lt;
  const bool holds = evaluate_compare(op, exprs_[lhs].hint, exprs_[rhs].hint);
  if (known_.try_emplace({kCompare + static_cast<int>(op), lhs, rhs, 0}, 0).second)
    guards_.push_back({op, lhs, rhs, holds});
  return holds;
}

void SymbolTable::evaluate(std::vector<Number>& values) const {
  values.resize(exprs_.size());
  for (size_t i = 0; i < exprs_.size(); ++i) {
    const Expr& e = exprs_[i];
    if (e.op == Arith::constant)
      values[i] = e.hint;
    else if (e.op != Arith::symbol)
      values[i] = evaluate_arith(e.op, values[e.lhs], e.rhs >= 0 ? values[e.rhs] : Number{});
  }
}

SymbolTable SymbolTable::at(std::span<const Number> values) const {
  SymbolTable made = *this;
  for (size_t i = 0; i < made.exprs_.size(); ++i) made.exprs_[i].hint = values[i];
  return made;
}

int SymbolTable::failing_guard(std::span<const Number> values) const {
  for (size_t i = 0; i < guards_.size(); ++i) {
    const Guard& g = guards_[i];
    if (evaluate_compare(g.op, values[g.lhs], values[g.rhs]) != g.holds) return static_cast<int>(i);
  }
  return -1;
}

std::string SymbolTable::text(const Guard& guard) const {
  static constexpr std::string_view signs[][2] = {{"!=", "=="}, {">=", "<"}, {">", "<="}};
  return fmt::format("{} {} {}", text(guard.lhs), signs[static_cast<int>(guard.op)][guard.holds],
                     text(guard.rhs));
}

// Depth is bounded by the formula in an op's rule, never by the graph, but the walk is iterative all the same: a fold
// of sizes (cat of many tensors) makes one long sum.
std::string SymbolTable::text(int32_t id) const {
  static constexpr std::string_view signs[] = {"", "", "+", "-", "*", "/", "%", "^", ""};
  static_assert(std::size(signs) == static_cast<size_t>(Arith::to_float) + 1);
  struct Item {
    int32_t id;
    std::string_view literal;
  };
  std::string out;
  std::vector<Item> todo{{id, {}}};
  while (!todo.empty()) {
    const Item item = todo.back();
    todo.pop_back();
    if (item.id < 0) {
      out += item.literal;
      continue;
    }
    const Expr& e = exprs_[item.id];
    if (e.op == Arith::symbol)
      out += fmt::format("s{}", e.rhs);
    else if (e.op == Arith::constant)
      out += number_text(e.hint);
    else if (e.op == Arith::to_float) {
      out += "float(";
      todo.push_back({-1, ")"});
      todo.push_back({e.lhs, {}});
    } else {
      out += "(";
      todo.push_back({-1, ")"});
      todo.push_back({e.rhs, {}});
      todo.push_back({-1, signs[static_cast<int>(e.op)]});
      todo.push_back({e.lhs, {}});
    }
  }
  return out;
}

void Dim::overflow(const char* op, int64_t a, int64_t b) {
  fail_somewhere(Category::bad_argument, fmt::format("{} {} {} does not fit into 63 bits", a, op, b));
}

void Dim::too_negative(int64_t value) {
  fail_somewhere(Category::bad_argument, fmt::format("{} is not a size or an index", value));
}

namespace {
int32_t dim_id(Dim d) {
  return d.is_symbolic() ? d.id() : SymbolTable::require().constant(Number::of(d.raw()));
}
}  // namespace

// The present hint: the table may have got other values since this number was made (SymbolTable::at).
Number Scalar::specialised() const {
  SymbolTable& table = SymbolTable::require();
  const Number now = table.expr(symbol_).hint;
  table.compare(Compare::eq, symbol_, table.constant(now));
  return now;
}
void Scalar::does_not_fit() const {
  fail(Category::bad_argument, "to", to_string(*this) + " does not fit into the type asked for");
}

double Scalar::specialised_double() const { return specialised().as_double(); }
int64_t Scalar::specialised_int() const { return specialised().as_int(); }

int64_t Dim::specialise() const {
  SymbolTable& table = SymbolTable::require();
  const int64_t v = table.expr(id()).hint.i;
  table.compare(Compare::eq, id(), table.constant(Number::of(v)));
  return v;
}

int64_t Dim::slow_hint() const { return SymbolTable::require().expr(id()).hint.i; }

Dim Dim::slow(Arith op, Dim a, Dim b) {
  if (op == Arith::mul && (a.raw_ == 0 || b.raw_ == 0))
    return Dim(0);  // known without the symbol: nothing there
  if (op == Arith::mul && a.raw_ == 1) return b;
  if ((op == Arith::mul || op == Arith::div) && b.raw_ == 1) return a;
  if ((op == Arith::add || op == Arith::sub) && b.raw_ == 0) return a;
  if (op == Arith::add && a.raw_ == 0) return b;
  if (op == Arith::sub && a.raw_ == b.raw_) return Dim(0);
  const int32_t lhs = dim_id(a), rhs = dim_id(b);
  return symbol(SymbolTable::require().arith(op, lhs, rhs));
}

bool Dim::slow(Compare op, Dim a, Dim b) {
  const int32_t lhs = dim_id(a), rhs = dim_id(b);
  return SymbolTable::require().compare(op, lhs, rhs);
}

std::string to_string(Dim dim) {
  return dim.is_symbolic() ? SymbolTable::require().text(dim.id()) : std::to_string(dim.raw());
}

Scalar Scalar::of_size(Dim d) {
  Scalar s(Number::of(d.hint()));
  s.symbol_ = d.is_symbolic() ? d.id() : -1;
  return s;
}

Scalar Scalar::arith(Arith op, Scalar a, Scalar b) {
  const bool promote = op == Arith::div && !a.is_floating() && !b.is_floating();
  if (!a.is_symbolic() && !b.is_symbolic()) {
    const Number lhs = promote ? Number::of(a.to_double()) : a.number();
    return Scalar(evaluate_arith(op, lhs, b.number()));
  }
  SymbolTable& table = SymbolTable::require();
  int32_t lhs = a.is_symbolic() ? a.id() : table.constant(a.number());
  const int32_t rhs = b.is_symbolic() ? b.id() : table.constant(b.number());
  if (promote) lhs = table.arith(Arith::to_float, lhs, -1);
  const int32_t id = table.arith(op, lhs, rhs);
  return symbol(id, table.expr(id).hint);
}

bool Scalar::compare(Compare op, Scalar a, Scalar b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return evaluate_compare(op, a.number(), b.number());
  SymbolTable& table = SymbolTable::require();
  const int32_t lhs = a.is_symbolic() ? a.id() : table.constant(a.number());
  const int32_t rhs = b.is_symbolic() ? b.id() : table.constant(b.number());
  return table.compare(op, lhs, rhs);
}

std::string to_string(Scalar scalar) {
  return scalar.is_symbolic() ? SymbolTable::require().text(scalar.id()) : number_text(scalar.number());
}

}  // namespace retrograd
