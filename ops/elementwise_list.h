// All elementwise ops. Each family's list is also the order of its rows in the CPU's table of span kernels.
#pragma once

#include "ops/activations.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/comparison.h"
#include "ops/float_ops.h"
#include "ops/losses.h"
#include "ops/shrinkage.h"
#include "ops/special.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0::ops {

template <class... Lists>
struct Join;
template <class... A>
struct Join<OpList<A...>> {
  using type = OpList<A...>;
};
template <class... A, class... B, class... Rest>
struct Join<OpList<A...>, OpList<B...>, Rest...> : Join<OpList<A..., B...>, Rest...> {};

template <class... Lists>
struct Families {
  using Ops = typename Join<Lists...>::type;
  /// Calls f.template operator()<Op, List>() for each op and the list that it is in.
  template <class F>
  static void for_each(F&& f) {
    (Lists::for_each([&]<class Op>() { f.template operator()<Op, Lists>(); }), ...);
  }
};

using ElementwiseFamilies = Families<ArithmeticOps, UnaryOps, ActivationOps, BinaryOps, ComparisonOps,
                                     TernaryOps, LossOps, SpecialOps, FloatOps, ShrinkageOps>;
using ElementwiseOps = ElementwiseFamilies::Ops;

/// Index of Op in a list.
template <class Op, class List>
inline constexpr int index_of = -1;
template <class Op, class... Ops>
inline constexpr int index_of<Op, OpList<Ops...>> = [] {
  int i = 0, found = -1;
  ((std::is_same_v<Op, Ops> ? void(found = i++) : void(i++)), ...);
  return found;
}();

}  // namespace retrograd::ops
