// Numbers that may be symbols: Dim (an integer size) and Scalar (a typed number), and the table that owns the symbols.
//
// In eager execution every Dim and Scalar is a constant and all arithmetic is inline. While a Recorder traces, sizes
// and scalar attributes of the recorded forward become symbols of its SymbolTable, so that a captured graph works for
// other sizes and values:
//   * arithmetic on a symbol appends an expression to the table (and returns its id);
//   * a comparison is answered with the present values (the hints) and adds a guard: a graph is valid for other values
//     while every guard gives the same answer;
//   * Dim::value() specialises: it adds the guard "equals the hint".
// The table in use is thread-local and scoped (SymbolTable::Scope): using a symbol outside the scope of its table is a
// bug.
// Expressions only refer to earlier ones, hence evaluate() is one pass without recursion.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/error.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// Toward zero. A value that does not fit, and nan, give the smallest integer, as on x86.
[[gnu::always_inline]] constexpr int64_t truncated(double v) {
  return v >= -0x1p63 && v < 0x1p63 ? static_cast<int64_t>(v) : std::numeric_limits<int64_t>::min();
}

/// A number that remembers whether it is an integer: the value of an expression.
struct Number {
  enum class Kind : uint8_t { Bool, Int, Float };
  Kind kind = Kind::Int;
  union {
    int64_t i;
    double d;
  };
  constexpr Number() : i(0) {}
  static constexpr Number of(int64_t v) {
    Number n;
    n.i = v;
    return n;
  }
  static constexpr Number of(double v) {
    Number n;
    n.kind = Kind::Float;
    n.d = v;
    return n;
  }
  static constexpr Number of(bool v) {
    Number n;
    n.kind = Kind::Bool;
    n.i = v;
    return n;
  }
  constexpr double as_double() const { return kind == Kind::Float ? d : static_cast<double>(i); }
  constexpr int64_t as_int() const { return kind == Kind::Float ? truncated(d) : i; }
  friend bool operator==(const Number& a, const Number& b) {
    return a.kind == Kind::Float || b.kind == Kind::Float ? a.as_double() == b.as_double() : a.i == b.i;
  }
};

enum class Arith : uint8_t { symbol, constant, add, sub, mul, div, mod, pow, to_float };
enum class Compare : uint8_t { eq, lt, le };

class SymbolTable {
 public:
  struct Expr {
    Arith op;
    int32_t lhs = -1,
            rhs = -1;  // ids of earlier expressions; for a free symbol, rhs is its number: s0, s1, ...
    Number hint;       // value at capture; for a constant: its value
    int32_t last_symbol = -1;  // the highest number of a free symbol in it; -1: none
  };
  struct Guard {
    Compare op;
    int32_t lhs, rhs;
    bool holds;
  };

  int32_t add_symbol(Number hint);  // a new free symbol
  /// Reserves memory, so that `more` symbols are added without an allocation.
  void reserve(size_t more) {
    if (exprs_.capacity() < exprs_.size() + more) exprs_.reserve(2 * exprs_.size() + more);
  }
  int32_t constant(Number value);
  int32_t arith(Arith op, int32_t lhs, int32_t rhs);  // an equal expression has the same id
  bool compare(Compare op, int32_t lhs, int32_t rhs);

  const Expr& expr(int32_t id) const { return exprs_[id]; }
  int32_t size() const { return static_cast<int32_t>(exprs_.size()); }
  int32_t symbol_count() const { return symbols_; }
  std::span<const Guard> guards() const { return guards_; }
  /// Values of all expressions, given those of the free symbols (by expression id; other entries are ignored and
  /// filled).
  void evaluate(std::vector<Number>& values) const;
  /// The first guard that does not hold for `values`, or -1.
  int failing_guard(std::span<const Number> values) const;
  /// The same table as if it had been made with these values.
  SymbolTable at(std::span<const Number> values) const;
  /// "s3", "2*s3", "(s1+s2)", "float(s0)".
  std::string text(int32_t id) const;
  std::string text(const Guard& guard) const;  // "s0 < 5"

  static SymbolTable* current();
  static SymbolTable& require();  // throws InternalError when there is none
  class Scope {
   public:
    explicit Scope(SymbolTable* table);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    SymbolTable* previous_;
  };

 private:
  // The known expressions and guards, so that equal ones are kept once: constants by kind and bits, others by operation
  // and operands.
  static constexpr int kArith = 16, kCompare = 32;
  struct Known {
    int tag;
    int32_t lhs, rhs;
    uint64_t bits;
    friend bool operator==(const Known&, const Known&) = default;
  };
  struct KnownHash {
    size_t operator()(const Known& k) const;
  };

  std::vector<Expr> exprs_;
  std::vector<Guard> guards_;
  std::unordered_map<Known, int32_t, KnownHash> known_;  // id of an expression
  int32_t symbols_ = 0;
};

/// One size of a tensor: an integer, or a symbol while tracing.
class Dim {
 public:
  Dim() = default;  // uninitialised: a Shape sets only as many as it has
  /// Error(bad_argument) for the most negative integers, which stand for symbols.
  constexpr Dim(int64_t value) : raw_(value) {
    if (value < kSymbolEnd) [[unlikely]]
      too_negative(value);
  }
  template <std::floating_point T>
  Dim(T) = delete;  // a fraction would be cut off
  static constexpr Dim symbol(int32_t id) {
    Dim d = 0;
    d.raw_ = kSymbolBase + id;
    return d;
  }

  /// What raw() gave.
  static constexpr Dim from_raw(int64_t raw) {
    Dim d = 0;
    d.raw_ = raw;
    return d;
  }

  constexpr bool is_symbolic() const { return raw_ < kSymbolEnd; }
  constexpr int32_t id() const { return static_cast<int32_t>(raw_ - kSymbolBase); }
  /// The integer. A symbol is specialised to its hint, which adds a guard.
  int64_t value() const { return is_symbolic() ? specialise() : raw_; }
  /// The integer, or the value of the symbol at capture, without a guard.
  int64_t hint() const { return is_symbolic() ? slow_hint() : raw_; }
  constexpr int64_t raw() const { return raw_; }

  friend Dim operator+(Dim a, Dim b) {
    return both(a, b) ? Dim(checked_add(a.raw_, b.raw_)) : slow(Arith::add, a, b);
  }
  friend Dim operator-(Dim a, Dim b) {
    return both(a, b) ? Dim(checked_add(a.raw_, -b.raw_)) : slow(Arith::sub, a, b);
  }
  friend Dim operator*(Dim a, Dim b) {
    return both(a, b) ? Dim(checked_mul(a.raw_, b.raw_)) : slow(Arith::mul, a, b);
  }
  friend Dim operator/(Dim a, Dim b) { return both(a, b) ? Dim(a.raw_ / b.raw_) : slow(Arith::div, a, b); }
  friend Dim operator%(Dim a, Dim b) { return both(a, b) ? Dim(a.raw_ % b.raw_) : slow(Arith::mod, a, b); }
  friend bool operator==(Dim a, Dim b) {
    return a.raw_ == b.raw_ || (!both(a, b) && slow(Compare::eq, a, b));
  }
  friend bool operator<(Dim a, Dim b) { return both(a, b) ? a.raw_ < b.raw_ : slow(Compare::lt, a, b); }
  friend bool operator<=(Dim a, Dim b) { return both(a, b) ? a.raw_ <= b.raw_ : slow(Compare::le, a, b); }
  friend bool operator>(Dim a, Dim b) { return b < a; }
  friend bool operator>=(Dim a, Dim b) { return b <= a; }
  Dim& operator*=(Dim b) { return *this = *this * b; }
  Dim& operator+=(Dim b) { return *this = *this + b; }

  /// Product of two sizes; throws Error(bad_argument) when it does not fit into 63 bits.
  static int64_t checked_mul(int64_t a, int64_t b) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) [[unlikely]]
      overflow("*", a, b);
    return product;
  }
  static int64_t checked_add(int64_t a, int64_t b) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) [[unlikely]]
      overflow("+", a, b);
    return sum;
  }

 private:
  static constexpr int64_t kSymbolBase = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kSymbolEnd = kSymbolBase + (int64_t{1} << 31);
  static constexpr bool both(Dim a, Dim b) { return !a.is_symbolic() && !b.is_symbolic(); }
  [[noreturn]] static void too_negative(int64_t value);
  [[noreturn]] static void overflow(const char* op, int64_t a, int64_t b);
  int64_t specialise() const;
  int64_t slow_hint() const;
  static Dim slow(Arith op, Dim a, Dim b);
  static bool slow(Compare op, Dim a, Dim b);

  int64_t raw_;
};

std::string to_string(Dim dim);

/// An integer type beside int, int64_t and bool, which the constructors of numbers take as an int64_t.
template <class T>
concept OtherInteger =
    std::integral<T> && !std::same_as<T, int> && !std::same_as<T, int64_t> && !std::same_as<T, bool>;

/// Error(bad_argument) for an unsigned integer beyond int64.
template <OtherInteger T>
constexpr int64_t checked_integer(T v) {
  if (!std::in_range<int64_t>(v)) [[unlikely]]
    fail(Category::bad_argument, "number", "an unsigned integer does not fit into int64");
  return static_cast<int64_t>(v);
}

/// A number in place of a tensor, or an attribute: bool, integer or floating; a symbol while tracing.
class Scalar {
 public:
  constexpr Scalar() = default;
  constexpr Scalar(double v) : value_(Number::of(v)) {}
  constexpr Scalar(float v) : value_(Number::of(static_cast<double>(v))) {}
  constexpr Scalar(int64_t v) : value_(Number::of(v)) {}
  constexpr Scalar(int v) : value_(Number::of(int64_t{v})) {}
  constexpr Scalar(bool v) : value_(Number::of(v)) {}
  template <OtherInteger T>
  constexpr Scalar(T v) : value_(Number::of(checked_integer(v))) {}
  constexpr Scalar(Number n) : value_(n) {}
  /// A size as a number: symbolic when the size is. Not of what converts to a size and to a number (Live).
  template <std::same_as<Dim> D>
  Scalar(D d) : Scalar(of_size(d)) {}
  static Scalar symbol(int32_t id, Number hint) {
    Scalar s(hint);
    s.symbol_ = id;
    return s;
  }

  bool is_symbolic() const { return symbol_ >= 0; }
  int32_t id() const { return symbol_; }
  Number number() const { return value_; }  // for a symbol: its hint
  Number::Kind kind() const { return value_.kind; }
  bool is_floating() const { return value_.kind == Number::Kind::Float; }
  // The number as a plain one. A symbol is specialised to its hint, which adds a guard.
  // always_inline: also called from kernels compiled for wider instruction sets, which must not emit a shared copy.
  [[gnu::always_inline]] double to_double() const {
    if (symbol_ >= 0) [[unlikely]]
      return specialised_double();
    return value_.kind == Number::Kind::Float ? value_.d : static_cast<double>(value_.i);
  }
  [[gnu::always_inline]] int64_t to_int() const {
    if (symbol_ >= 0) [[unlikely]]
      return specialised_int();
    return value_.kind == Number::Kind::Float ? truncated(value_.d) : value_.i;
  }

  // libtorch's names. A conversion to an integer cuts the fraction off. Error(bad_argument) for a number that T cannot
  // hold.
  bool isFloatingPoint() const { return is_floating(); }
  bool isIntegral(bool include_bool) const {
    return kind() == Number::Kind::Int || (include_bool && isBoolean());
  }
  bool isBoolean() const { return kind() == Number::Kind::Bool; }
  template <class T>
  T to() const {
    static_assert(std::is_arithmetic_v<T>, "a number converts to bool, an integer type, float or double");
    if constexpr (std::is_same_v<T, bool>) {
      return to_double() != 0;
    } else if constexpr (std::is_floating_point_v<T>) {
      const double v = to_double();
      if (v - v == 0 && (v > std::numeric_limits<T>::max() || v < std::numeric_limits<T>::lowest()))
        does_not_fit();
      return static_cast<T>(v);
    } else {
      const double v = to_double();
      if (is_floating() && !(v >= -0x1p63 && v < 0x1p63)) does_not_fit();
      const int64_t i = to_int();
      if (!std::in_range<T>(i)) does_not_fit();
      return static_cast<T>(i);
    }
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool toBool() const { return to<bool>(); }

  friend Scalar operator+(Scalar a, Scalar b) { return arith(Arith::add, a, b); }
  friend Scalar operator-(Scalar a, Scalar b) { return arith(Arith::sub, a, b); }
  friend Scalar operator*(Scalar a, Scalar b) { return arith(Arith::mul, a, b); }
  friend Scalar operator/(Scalar a, Scalar b) { return arith(Arith::div, a, b); }  // true division: floating
  Scalar operator-() const { return Scalar(0) - *this; }
  friend bool operator==(Scalar a, Scalar b) { return compare(Compare::eq, a, b); }
  friend bool operator<(Scalar a, Scalar b) { return compare(Compare::lt, a, b); }
  friend bool operator<=(Scalar a, Scalar b) { return compare(Compare::le, a, b); }

 private:
  static Scalar of_size(Dim d);
  static Scalar arith(Arith op, Scalar a, Scalar b);
  static bool compare(Compare op, Scalar a, Scalar b);
  [[noreturn]] void does_not_fit() const;
  Number specialised() const;
  double specialised_double() const;
  int64_t specialised_int() const;

  Number value_;
  int32_t symbol_ = -1;
};

std::string to_string(Scalar scalar);

}  // namespace retrograd
#pragma GCC visibility pop
