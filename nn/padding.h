// Padding layers: they surround the last one, two or three dims of x, with a channel dim before them and perhaps a
// batch. Amounts are one number for all sides, or (before, after) of the last dim, of the last but one, ...; negative
// amounts cut. Function and errors: retrograd::pad (ops/rearrange.h).
//
//   nn::ReflectionPad2d border{this, "border", {1, 1, 2, 2}};
#pragma once

#include "nn/layer.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0::nn {

/// Base of all of them.
class PaddingLayer : public Module {
 public:
  const IntList padding;  // an amount for each side

 protected:
  /// Error(bad_argument) unless there are 1 or 2 dims amounts.
  PaddingLayer(Module* parent, std::string name, int dims, const IntList& padding, std::string_view type,
               SourceLocation where);
  Tensor padded(Operand x, std::string_view mode, std::optional<Scalar> value = {}) const;
  std::string padding_text() const;
};

/// A layer of `Dims` dims without a number to fill in.
template <class Self, int Dims>
class PaddingOf : public Layer<Self, PaddingLayer> {
 public:
  PaddingOf(Module* parent, std::string name, const IntList& padding,
            SourceLocation where = SourceLocation::current())
      : Layer<Self, PaddingLayer>(parent, std::move(name), Dims, padding, Self::type_name, where) {}
  Tensor forward(Operand x) const { return this->padded(x, Self::mode); }
  std::string extra_repr() const { return this->padding_text(); }
  std::tuple<IntList> arguments() const { return {this->padding}; }
};

/// Mirrored at the border elements, which are not repeated. Amounts are less than the size.
template <int Dims>
struct ReflectionPad : PaddingOf<ReflectionPad<Dims>, Dims> {
  static constexpr std::string_view mode = "reflect",
                                    type_name = detail::name_for(Dims, "ReflectionPad1d", "ReflectionPad2d",
                                                                 "ReflectionPad3d");
  using PaddingOf<ReflectionPad, Dims>::PaddingOf;
};

/// The border elements repeated.
template <int Dims>
struct ReplicationPad : PaddingOf<ReplicationPad<Dims>, Dims> {
  static constexpr std::string_view mode = "replicate",
                                    type_name = detail::name_for(Dims, "ReplicationPad1d", "ReplicationPad2d",
                                                                 "ReplicationPad3d");
  using PaddingOf<ReplicationPad, Dims>::PaddingOf;
};

/// The elements of the other end. Amounts are at most the size.
template <int Dims>
struct CircularPad : PaddingOf<CircularPad<Dims>, Dims> {
  static constexpr std::string_view mode = "circular",
                                    type_name = detail::name_for(Dims, "CircularPad1d", "CircularPad2d",
                                                                 "CircularPad3d");
  using PaddingOf<CircularPad, Dims>::PaddingOf;
};

/// Zeros.
template <int Dims>
struct ZeroPad : PaddingOf<ZeroPad<Dims>, Dims> {
  static constexpr std::string_view mode = "constant",
                                    type_name = detail::name_for(Dims, "ZeroPad1d", "ZeroPad2d", "ZeroPad3d");
  using PaddingOf<ZeroPad, Dims>::PaddingOf;
};

/// The number `value`.
template <int Dims>
class ConstantPad : public Layer<ConstantPad<Dims>, PaddingLayer> {
 public:
  static constexpr std::string_view type_name =
      detail::name_for(Dims, "ConstantPad1d", "ConstantPad2d", "ConstantPad3d");
  ConstantPad(Module* parent, std::string name, const IntList& padding, double value,
              SourceLocation where = SourceLocation::current())
      : Layer<ConstantPad, PaddingLayer>(parent, std::move(name), Dims, padding, type_name, where),
        value(value) {}
  Tensor forward(Operand x) const { return this->padded(x, "constant", value); }
  std::string extra_repr() const;
  std::tuple<IntList, double> arguments() const { return {this->padding, value}; }

  const double value;
};

using ReflectionPad1d = ReflectionPad<1>;
using ReflectionPad2d = ReflectionPad<2>;
using ReflectionPad3d = ReflectionPad<3>;
using ReplicationPad1d = ReplicationPad<1>;
using ReplicationPad2d = ReplicationPad<2>;
using ReplicationPad3d = ReplicationPad<3>;
using CircularPad1d = CircularPad<1>;
using CircularPad2d = CircularPad<2>;
using CircularPad3d = CircularPad<3>;
using ZeroPad1d = ZeroPad<1>;
using ZeroPad2d = ZeroPad<2>;
using ZeroPad3d = ZeroPad<3>;
using ConstantPad1d = ConstantPad<1>;
using ConstantPad2d = ConstantPad<2>;
using ConstantPad3d = ConstantPad<3>;

extern template class ConstantPad<1>;
extern template class ConstantPad<2>;
extern template class ConstantPad<3>;

}  // namespace retrograd::nn
#pragma GCC visibility pop
