// See ir/parse_values.h.
#include "ir/parse_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include <fmt/format.h>

#include "engine/each_field.h"

namespace retrograd::inline v0::ir {

void ValueReader::expect_symbols() {
  expects_ = true;
  for (int32_t id = 0; id < symbols_.size(); ++id)
    if (symbols_.expr(id).op == Arith::symbol) expected_.emplace(symbols_.text(id), id);
}

void ValueReader::symbol() {
  const std::string name(in_.word());
  if (name.size() < 2 || name[0] != 's' || name.find_first_not_of("0123456789", 1) != std::string::npos)
    in_.fail(fmt::format("a symbol is called s and a number, not {}", name));
  in_.expect("=");
  const Scalar value = number();
  if (names_.contains(name)) in_.fail(fmt::format("the symbol {} is listed twice", name));
  if (!expects_) {
    names_.emplace(name, symbols_.add_symbol(value.number()));
    return;
  }
  const auto expected = expected_.find(name);
  if (expected == expected_.end() || symbols_.expr(expected->second).hint.kind != value.number().kind)
    in_.fail(fmt::format("no symbol {} of this kind is expected", name));
  names_.insert(*expected);
}

void ValueReader::guard() {
  struct Sign {
    std::string_view text;
    Compare op;
    bool holds;
  };
  static constexpr Sign signs[] = {{"!=", Compare::eq, false}, {"==", Compare::eq, true},
                                   {">=", Compare::lt, false}, {"<=", Compare::le, true},
                                   {"<", Compare::lt, true},   {">", Compare::le, false}};
  const Scalar lhs = expression();
  const Sign* sign = std::ranges::find_if(signs, [&](const Sign& s) { return in_.take(s.text); });
  if (sign == std::end(signs)) in_.expected("a comparison");
  const Scalar rhs = expression();
  if (symbols_.compare(sign->op, id_of(lhs), id_of(rhs)) != sign->holds)
    in_.fail(fmt::format("the guard {} {} {} does not hold for the values listed", to_string(lhs), sign->text,
                         to_string(rhs)));
}

// ---- numbers and expressions ---------------------------------------------------------------------

Scalar ValueReader::number() {
  const std::string_view text = in_.number();
  const bool negative = text.starts_with('-');
  const std::string_view word = text.substr(negative);
  if (text == "true" || text == "false") return Scalar(text == "true");
  if (word == "inf" || word == "nan") {
    const double v =
        word == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    return Scalar(std::copysign(v, negative ? -1.0 : 1.0));
  }
  const char* end = text.data() + text.size();
  if (text.find_first_of(".e") != std::string_view::npos) {
    double v = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, v);
    if (stop != end || error != std::errc())
      in_.fail(fmt::format("{} is not a number that fits into 64 bits", text));
    return Scalar(v);
  }
  int64_t v = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, v);
  if (stop != end || error != std::errc()) in_.fail(fmt::format("{} is not a 64-bit integer", text));
  return Scalar(v);
}

// A symbol or a number.
Scalar ValueReader::named() {
  if (in_.peek() != 's') return number();
  const std::string_view name = in_.word();
  const auto it = names_.find(name);
  if (it == names_.end()) in_.fail(fmt::format("the symbol {} is not listed in the header", name));
  return Scalar::symbol(it->second, symbols_.expr(it->second).hint);
}

int32_t ValueReader::id_of(Scalar s) { return s.is_symbolic() ? s.id() : symbols_.constant(s.number()); }

Scalar ValueReader::arithmetic(Arith op, Scalar lhs, Scalar rhs) {
  try {
    const int32_t id = symbols_.arith(op, id_of(lhs), op == Arith::to_float ? -1 : id_of(rhs));
    return Scalar::symbol(id, symbols_.expr(id).hint);
  } catch (const Error& e) {  // it does not fit into 63 bits
    in_.fail(e.what());
  }
}

Arith ValueReader::sign() {
  static constexpr std::pair<std::string_view, Arith> signs[] = {{"+", Arith::add}, {"-", Arith::sub},
                                                                 {"*", Arith::mul}, {"/", Arith::div},
                                                                 {"%", Arith::mod}, {"^", Arith::pow}};
  for (auto [text, op] : signs)
    if (in_.take(text)) return op;
  in_.expected("an operator");
}

// number | symbol | "(" expression sign expression ")" | "float(" expression ")". The open brackets are on an explicit
// stack: the size of a concatenation of many tensors nests as deep as there are tensors.
Scalar ValueReader::expression() {
  struct Open {
    bool is_conversion;
    std::optional<Scalar> lhs;
    Arith op = Arith::to_float;
  };
  std::vector<Open> open;
  for (;;) {
    if (in_.take("(")) {
      open.push_back({false, {}});
      continue;
    }
    if (in_.take_word("float")) {
      in_.expect("(");
      open.push_back({true, {}});
      continue;
    }
    Scalar value = named();
    while (!open.empty() && (open.back().is_conversion || open.back().lhs)) {
      in_.expect(")");
      value = arithmetic(open.back().op, open.back().lhs.value_or(value), value);
      open.pop_back();
    }
    if (open.empty()) return value;
    open.back().lhs = value;
    open.back().op = sign();
  }
}

int64_t ValueReader::integer() {
  const Scalar s = number();
  if (s.kind() != Number::Kind::Int) in_.fail(fmt::format("{} is not an integer", to_string(s)));
  return s.number().i;
}

bool ValueReader::boolean() {
  const Scalar s = number();
  if (s.kind() != Number::Kind::Bool) in_.fail(fmt::format("{} is neither true nor false", to_string(s)));
  return s.number().i != 0;
}

// ---- types ---------------------------------------------------------------------------------------

Dim ValueReader::dim() {
  const Scalar s = expression();
  if (s.kind() != Number::Kind::Int) in_.fail(fmt::format("{} is not an integer", to_string(s)));
  if (s.is_symbolic()) return Dim::symbol(s.id());
  try {
    return Dim(s.number().i);
  } catch (const Error& e) {  // so negative that it would stand for a symbol
    in_.fail(e.what());
  }
}

Shape ValueReader::shape() {
  Shape shape;
  in_.expect("[");
  while (!in_.take("]")) {
    if (shape.rank()) in_.expect(",");
    if (shape.rank() == kMaxRank) in_.fail(fmt::format("a tensor has at most {} dimensions", kMaxRank));
    shape.push_back(dim());
  }
  return shape;
}

IntList ValueReader::list() {
  IntList list;
  in_.expect("[");
  while (!in_.take("]")) {
    if (!list.empty()) in_.expect(",");
    if (list.size() == IntList::kCapacity)
      in_.fail(fmt::format("a list has at most {} integers", IntList::kCapacity));
    list.push_back(integer());
  }
  return list;
}

ScalarType ValueReader::dtype() {
  const std::string_view name = in_.word();
  const std::optional<ScalarType> found = parse_dtype(name);
  if (!found) in_.fail(fmt::format("there is no dtype {}", name));
  return *found;
}

// "cuda:0", or nothing for the CPU.
Device ValueReader::device() {
  if (!in_.take_word("cuda")) return {};
  in_.expect(":");
  const int64_t index = integer();
  if (index < 0 || index > std::numeric_limits<int8_t>::max())
    in_.fail(fmt::format("there is no device cuda:{}", index));
  return {kCUDA, static_cast<int8_t>(index)};
}

// The sizes of any tensor: none is negative, and the number of elements fits into 63 bits.
void ValueReader::check_sizes(const TensorType& t) {
  for (Dim d : t.shape)
    if (d.hint() < 0) in_.fail(fmt::format("the size {} is negative", to_string(d)));
  try {
    check_extent(Shape(t.shape.hints()));
  } catch (const Error& e) {
    in_.fail(e.what());
  }
}

TensorType ValueReader::type() {
  TensorType t;
  t.dtype = dtype();
  t.shape = shape();
  check_sizes(t);
  t.device = device();
  return t;
}

// ---- attributes ----------------------------------------------------------------------------------

void ValueReader::read(bool& v) { v = boolean(); }
void ValueReader::read(int64_t& v) { v = integer(); }
void ValueReader::read(Dim& v) { v = dim(); }
void ValueReader::read(Scalar& v) { v = expression(); }
void ValueReader::read(Shape& v) { v = shape(); }
void ValueReader::read(IntList& v) { v = list(); }
void ValueReader::read(ScalarType& v) { v = dtype(); }
void ValueReader::read(Device& v) { v = device(); }

std::vector<std::byte> ValueReader::attributes(const OpInfo& op, Scalar scalar) {
  std::vector<std::byte> attrs(op.attrs_size);
  std::vector<std::string_view> given;
  const auto is_given = [&](std::string_view name) { return std::ranges::find(given, name) != given.end(); };
  if (op.has_scalar_operand) {
    for_each_field(op, attrs.data(), [&](std::string_view name, auto& field) {
      if constexpr (std::is_same_v<decltype(field), Scalar&>)
        if (name == "scalar") field = scalar;
    });
    given.push_back("scalar");
  }
  if (in_.take("{"))
    for (bool first = true; !in_.take("}"); first = false) {
      if (!first) in_.expect(",");
      const std::string_view name = in_.word();
      if (is_given(name)) in_.fail(fmt::format("the attribute {} of {} is given already", name, op.name));
      in_.expect("=");
      for_each_field(op, attrs.data(), [&](std::string_view field_name, auto& field) {
        if (field_name != name || is_given(name)) return;
        read(field);
        given.push_back(name);
      });
      if (!is_given(name)) in_.fail(fmt::format("{} has no attribute {}", op.name, name));
    }
  for_each_field(op, attrs.data(), [&](std::string_view name, auto& field) {
    if (!is_given(name) && !std::is_same_v<decltype(field), Device&>)
      in_.fail(fmt::format("the attribute {} of {} is missing", name, op.name));
  });
  return attrs;
}

}  // namespace retrograd::ir
