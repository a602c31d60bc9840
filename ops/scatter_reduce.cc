// See ops/scatter_reduce.h.
#include "ops/scatter_reduce.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "engine/named_call.h"
#include "ops/arithmetic.h"
#include "ops/comparison.h"
#include "ops/creation.h"
#include "ops/index_parts.h"
#include "ops/scan.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace retrograd::inline v0 {
namespace ops {

SaveSet ScatterReduce::saves_for(const Call& call, uint64_t) {
  constexpr uint64_t kIndex = 2, kAll = 7, kResult = 1;
  switch (call.attrs_as<Attrs>().how()) {
    case ScatterReduction::prod: return {kAll, 0};
    case ScatterReduction::amax:
    case ScatterReduction::amin: return {kAll, kResult};
    default: return {kIndex, 0};
  }
}

void ScatterReduce::infer(const Call& call, TensorImpl* const* outputs) {
  const Attrs& a = call.attrs_as<Attrs>();
  const TensorImpl &x = *call.operands[0], &src = *call.operands[2];
  const int d = indexed_dim(call, a.dim);
  const Shape& index = index_shape(call);
  if (a.reduce < 0 || a.reduce > static_cast<int64_t>(ScatterReduction::amin))
    fail_call(call, Category::bad_argument, fmt::format("there is no reduction {}", a.reduce));
  check_same_dtype(call, src);
  if (x.dtype() == kBool && a.how() == ScatterReduction::mean)
    fail_call(call, Category::dtype_mismatch, "bool has no mean");
  check_fits(call, index, x.shape(), d, false);
  if (!(src.shape() == index))
    fail_call(call, Category::shape_mismatch, "src and index have different shapes");
  outputs[0]->set_type(x.dtype(), x.device(), x.shape());
}

// ---- derivatives ----------------------------------------------------------------------------------------------------

namespace {

// The places of a call, for tensors of the types of x and src. C: RuleContext or TangentContext.
class Places {
 public:
  template <class C>
  explicit Places(C& c)
      : attrs_(c.template attrs<ScatterReduce::Attrs>()), where_(c.where()), index_(c.in(1).tensor()) {}

  bool include_self() const { return attrs_.include_self; }
  SourceLocation where() const { return where_; }

  Tensor gathered(const Tensor& t) const { return gather(Operand(t, where_), attrs_.dim, index_); }
  Tensor added(const Tensor& t, const Tensor& src) const {
    return scatter_add(Operand(t, where_), attrs_.dim, index_, src);
  }
  /// t where an element of x takes part in the result, else 0.
  Tensor of_self(const Tensor& t) const {
    return attrs_.include_self ? t
                               : scatter(Operand(t, where_), attrs_.dim, index_, Operand(Scalar(0), where_));
  }
  Tensor reduced(const Tensor& x, const Tensor& src, ScatterReduction how, bool include_self) const {
    return emit<ScatterReduce>({x.get(), index_.get(), src.get()},
                               {attrs_.dim, static_cast<int64_t>(how), include_self}, where_);
  }
  Tensor full_like_index(Scalar value, ScalarType dtype) const {
    return full(shape_of(index_), value, {dtype, index_.device()}, where_);
  }

 private:
  ScatterReduce::Attrs attrs_;
  SourceLocation where_;
  Tensor index_;
};

// What the elements of x and of src contribute to a place: factors of their gradients and tangents. `total`, if
// defined, divides them all.
struct Weights {
  Tensor self, src, total;
};

// 1 for each element over their number.
Weights mean_weights(const Places& p, const TensorType& x, ScalarType dtype) {
  Weights w{p.of_self(ones_of({dtype, x.device, x.shape}, p.where())), p.full_like_index(1, dtype), {}};
  w.total = p.added(w.self, w.src);
  return w;
}

// 1 for each tie over their number.
Weights extreme_weights(const Places& p, const Tensor& x, const Tensor& src, const Tensor& y,
                        ScalarType dtype) {
  const Tensor ties = p.include_self() ? to(eq(x, y), dtype)
                                       : p.of_self(ones_of({dtype, x.device(), shape_of(x)}, p.where()));
  Weights w{ties, to(eq(src, p.gathered(y)), dtype), {}};
  w.total = p.added(w.self, w.src);
  return w;
}

// Elements that a product cannot be divided by.
Tensor is_special(const Tensor& x) { return logical_not(logical_and(isfinite(x), ne(x, 0))); }

// The product of the other elements of the place, for each element, in double: beyond the range of float32. Elements of
// x come before those of src.
Weights product_weights(const Places& p, const Tensor& x, const Tensor& src) {
  constexpr auto kProd = ScatterReduction::prod, kFirst = ScatterReduction::amin;
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const bool self = p.include_self();
  const Tensor special = is_special(src), special_self = is_special(x);
  const Tensor numbers = cumsum(flat(p.full_like_index(1, kInt64), p.where()), 0);
  const Tensor number = reshape_to(numbers, shape_of(src));
  const Tensor nobody = full(shape_of(x), kNone, {kInt64, x.device()}, p.where());
  const Tensor begin = self ? retrograd::where(special_self, 0, nobody) : nobody;
  const auto is_earliest = [&](const Tensor& of, const Tensor& from) {
    const Tensor earliest = p.reduced(from, retrograd::where(of, number, kNone), kFirst, true);
    return logical_and(of, eq(number, p.gathered(earliest)));
  };
  const Tensor first = is_earliest(special, begin);
  const Tensor second = is_earliest(logical_and(special, logical_not(first)), nobody);
  const Tensor all = p.reduced(x, src, kProd, self);
  const Tensor but_first =
      p.reduced(retrograd::where(special_self, 1.0, x), retrograd::where(first, 1.0, src), kProd, self);
  const Tensor but_second = p.reduced(x, retrograd::where(second, 1.0, src), kProd, self);
  const auto others = [](const Tensor& is, const Tensor& without, const Tensor& total,
                         const Tensor& element) {
    return retrograd::where(is, without, div(total, retrograd::where(is, 1.0, element)));
  };
  Weights w;
  w.self = self ? others(special_self, but_first, all, x) : p.of_self(ones_of(x.impl().type(), p.where()));
  w.src = retrograd::where(second, p.gathered(but_second),
                           others(special, p.gathered(but_first), p.gathered(all), src));
  return w;
}

// The dtype in which derivatives are computed.
ScalarType rule_dtype(ScatterReduction how, ScalarType dtype) {
  return how == ScatterReduction::prod ? kFloat64 : wide_dtype(dtype);
}

template <class C>
Weights weights_of(C& c, const Places& p, const Tensor& y, ScatterReduction how, ScalarType dtype) {
  if (how == ScatterReduction::mean) return mean_weights(p, c.type(0), dtype);
  const Tensor &x = c.in(0).tensor(), &src = c.in(2).tensor();
  return is_extreme(how) ? extreme_weights(p, x, src, y, dtype)
                         : product_weights(p, to(x, dtype), to(src, dtype));
}

}  // namespace

void ScatterReduce::vjp(RuleContext& c) {
  const ScatterReduction how = c.attrs<Attrs>().how();
  const Places p(c);
  if (how == ScatterReduction::sum) {
    if (c.needs(0)) c.give(0, p.of_self(c.grad()));
    if (c.needs(2)) c.give(2, p.gathered(c.grad()));
    return;
  }
  const ScalarType dtype = c.type(0).dtype, wide = rule_dtype(how, dtype);
  const Weights w = weights_of(c, p, is_extreme(how) ? c.out() : Tensor(), how, wide);
  Tensor g = to(c.grad(), wide);
  if (w.total.defined()) g = div(g, w.total);
  if (c.needs(0)) c.give(0, to(mul(g, w.self), dtype));
  if (c.needs(2)) c.give(2, to(mul(p.gathered(g), w.src), dtype));
}

void ScatterReduce::jvp(TangentContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const Places p(c);
  const Tensor x = c.tangent_or_zeros(0), src = c.tangent_or_zeros(2);
  if (a.how() == ScatterReduction::sum || a.how() == ScatterReduction::mean)  // linear
    return c.give(0, p.reduced(x, src, a.how(), a.include_self));
  const ScalarType wide = rule_dtype(a.how(), x.dtype());
  const Weights w = weights_of(c, p, c.out(), a.how(), wide);
  Tensor t = p.added(mul(to(x, wide), w.self), mul(to(src, wide), w.src));
  if (w.total.defined()) t = div(t, w.total);
  c.give(0, to(t, x.dtype()));
}

}  // namespace ops

// ---- public functions -----------------------------------------------------------------------------------------------

namespace {

using ops::ScatterReduction;

ScatterReduction reduction_of(std::string_view reduce, std::string_view op, SourceLocation where) {
  constexpr std::string_view kNames[] = {"sum", "prod", "mean", "amax",
                                         "amin"};  // in the order of the enumerators
  const bool sums = op == "scatter_reduce";
  const auto* at = std::ranges::find(kNames, reduce);
  if (at == std::end(kNames) || (reduce == "sum" && !sums))
    fail(Category::bad_argument, op,
         fmt::format("'{}' is none of {}prod, mean, amax, amin", reduce, sums ? "sum, " : ""), where);
  return static_cast<ScatterReduction>(at - std::begin(kNames));
}

// The part of src that the index covers.
Tensor covered(Tensor src, const Shape& index, SourceLocation where) {
  if (shape_of(src).rank() != index.rank())
    fail(Category::bad_dim, "scatter_reduce", "index and src have different numbers of dimensions", where);
  for (int d = 0; d < index.rank(); ++d) {
    if (index[d] > shape_of(src)[d])
      fail(Category::shape_mismatch, "scatter_reduce",
           fmt::format("the index is larger than src in dim {}", d), where);
    if (!(index[d] == shape_of(src)[d])) src = narrow(Operand(src, where), d, 0, index[d]);
  }
  return src;
}

}  // namespace

Tensor scatter_reduce(Operand x, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                      bool include_self) {
  const NamedCall call("scatter_reduce", x.where());
  const SourceLocation where = x.where();
  const ScatterReduction how = reduction_of(reduce, "scatter_reduce", where);
  if (how == ScatterReduction::sum && include_self) return scatter_add(x, dim, index, src);
  const Tensor i = ops::lift(ops::as_index(index, "scatter_reduce", where), where);
  const ops::Lifted into(x, dim, "scatter_reduce");
  if (i.impl().numel().hint() == 0) return clone(x);  // an index of any rank
  const Tensor from = covered(ops::lift(src, where), shape_of(i), where);
  return ops::lower(ops::emit<ops::ScatterReduce>({into.get(), i.get(), from.get()},
                                                  {into.dim, static_cast<int64_t>(how), include_self}, where),
                    shape_of(x), where);
}

Tensor index_reduce(Operand x, int64_t dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self) {
  const NamedCall call("index_reduce", x.where());
  const SourceLocation where = x.where();
  const ScatterReduction how = reduction_of(reduce, "index_reduce", where);
  const Tensor i = ops::lift(ops::as_index(index, "index_reduce", where), where),
               from = ops::lift(source, where);
  if (i.dim() != 1)
    fail(Category::bad_dim, "index_reduce", fmt::format("the index is {}, not a vector", describe(index)),
         where);
  const ops::Lifted into(x, dim, "index_reduce");
  Shape line, expected = shape_of(into.tensor);
  for (int d = 0; d < expected.rank(); ++d) line.push_back(1);
  line[into.dim] = expected[into.dim] = shape_of(i)[0];
  if (!(shape_of(from) == expected))
    fail(Category::shape_mismatch, "index_reduce",
         fmt::format("the source is {} and should have shape {}", describe(source), to_string(expected)),
         where);
  const Tensor positions = expand_to(Operand(reshape_to(Operand(i, where), line), where), expected);
  return ops::lower(ops::emit<ops::ScatterReduce>({into.get(), positions.get(), from.get()},
                                                  {into.dim, static_cast<int64_t>(how), include_self}, where),
                    shape_of(x), where);
}

}  // namespace retrograd
