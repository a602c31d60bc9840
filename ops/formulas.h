// Headers of elementwise ops without the engine: minimal replacements for what they need of it, so that a device's
// compiler can read them.
//
// A formula is written once, in the struct of its op (ops/unary.h and so on). If RG_FORMULAS is defined,
// ops/elementwise.h includes this header in place of the bases and everything that they include. Three compilers read
// the family headers this way: nvcc (cuda/kernels/*.cu), the host's compiler in place of nvcc (cuda/on_host), and
// NVRTC, for kernels that are compiled at run time. Because of NVRTC, only those parts of the standard library are used
// here that a few lines can replace.
//
// Real are formulas, attribute structs (plain data, which are passed to a kernel as bytes), Promotion, and lists of
// ops. Tensors, calls and rules are only declared; a function that uses them is parsed, never called. These names are
// in an inline namespace, so that no symbol of such a translation unit can be confused with one of the engine's.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>

#include "ops/host_device.h"

namespace retrograd::inline v0 {
inline namespace formulas {

// As in engine/symbols.h: the same bytes, but without symbols, which no attribute of a kernel has.
struct Scalar {
  enum class Kind : uint8_t { Bool, Int, Float };
  RG_HD constexpr Scalar() : kind(Kind::Int), i(0) {}
  RG_HD constexpr Scalar(double v) : kind(Kind::Float), d(v) {}
  RG_HD constexpr Scalar(int v) : kind(Kind::Int), i(v) {}
  RG_HD double to_double() const { return kind == Kind::Float ? d : static_cast<double>(i); }
  /// Toward zero; a value that does not fit, and nan, give the smallest integer.
  RG_HD int64_t to_int() const {
    if (kind != Kind::Float) return i;
    return d >= -0x1p63 && d < 0x1p63 ? static_cast<int64_t>(d) : INT64_MIN;
  }

  Kind kind;
  union {
    int64_t i;
    double d;
  };
  int32_t symbol = -1;
};

// ---- declarations only ----

struct SourceLocation {};
struct Shape {};
struct Dim {
  Dim() = default;
  Dim(int) {}
};
struct TensorImpl;
struct Tensor {
  TensorImpl* get() const;
};
struct Condition;
struct LossReduction {
  LossReduction(const char*) {}
};
using Tensors = std::initializer_list<Tensor>;
struct Operand {
  Operand(const Tensor&) {}
  Operand(Scalar) {}
  Operand(double) {}
  Operand(int) {}
  const Tensor& tensor() const;
};
struct Call {
  TensorImpl* const* operands;
};
struct SaveSet {
  uint64_t operands, results;
};
struct AttrVisitor {
  template <class T>
  void field(std::string_view, T&) {}
};
class RuleContext;
class TangentContext;
class BatchContext;

// The batching rules of ops/batch_rules.h: a device cannot take the address of a function of the host.
using BatchRule = void (*)(BatchContext&);
inline constexpr BatchRule batch_elementwise = nullptr, batch_leading = nullptr, batch_dims = nullptr,
                           batch_folded = nullptr, batch_draw = nullptr;

enum class CastPolicy : uint8_t { none, lower_precision, float32, promote, banned };
enum class Trait : uint32_t { pure = 1, elementwise = 16, commutative = 32, checks = 512 };
constexpr uint32_t operator|(Trait a, Trait b) { return static_cast<uint32_t>(a) | static_cast<uint32_t>(b); }
constexpr uint32_t operator|(uint32_t a, Trait b) { return a | static_cast<uint32_t>(b); }

}  // namespace formulas

namespace ops {
inline namespace formulas {

enum class Saves : uint8_t { nothing, operands, result, both, other };

// Functions elsewhere, whose address device code cannot take.
struct Rule {};
inline constexpr Rule infer_elementwise{}, infer_boolean{};

struct NoAttrs {
  void visit(AttrVisitor&) {}
};

struct Widened {
  explicit Widened(const Tensor&);
  Tensor operator()(const Tensor&) const;
  Tensor back(const Tensor&) const;
};

template <class... Ops>
struct OpList {
  static constexpr int size = sizeof...(Ops);
};

struct Point {
  Operand in(int) const;
  const Tensor& out() const;
  SourceLocation where() const;
  template <class A>
  const A& attrs() const;
};
template <class Op>
Tensor emit(std::initializer_list<TensorImpl*>, typename Op::Attrs, SourceLocation);
Tensor multiply(const Tensor&, Operand);

template <class F>
struct ChainRule {};

template <class Op>
struct Function {
  template <class... Args>
  Tensor operator()(const Args&...) const;
};

}  // namespace formulas
}  // namespace ops
}  // namespace retrograd
