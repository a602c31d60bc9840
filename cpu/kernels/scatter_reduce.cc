// The kernel of scatter_reduce (ops/scatter_reduce.h): elements reduced at positions held by another tensor.
//
// Extremes are elements, so they are found in the output itself; sums and products of floating elements in double,
// which are rounded at the end. The index may repeat its entries along a dim (stride 0), as that of index_reduce does:
// only one of them is checked and, where needed, copied.
#include <optional>

#include "cpu/kernels/index_lines.h"
#include "cpu/kernels/layout.h"
#include "ops/scatter_reduce.h"

namespace retrograd::inline v0::cpu {
namespace {

using ops::ScatterReduction;

// An index in dense memory; dims that repeat their entries still do.
class RepeatedIndex {
 public:
  explicit RepeatedIndex(const TensorImpl& index) : once_(TensorImpl::make()), whole_(TensorImpl::make()) {
    once_->alias(index);
    for (int d = 0; d < index.rank(); ++d)
      if (repeats(index, d)) once_->mutable_shape()[d] = 1;
    copy_.emplace(once_.get());
    whole_->alias(**copy_);
    whole_->mutable_shape() = index.shape();
    for (int d = 0; d < index.rank(); ++d)
      if (repeats(index, d)) whole_->mutable_strides()[d] = 0;
  }
  /// Each entry once, dense.
  const TensorImpl& once() const { return **copy_; }
  const TensorImpl& operator*() const { return *whole_; }

 private:
  static bool repeats(const TensorImpl& index, int d) {
    return index.strides()[d] == 0 && index.shape()[d].raw() > 1;
  }

  RefPtr<TensorImpl> once_, whole_;
  std::optional<LocalCopy> copy_;
};

// Reduces the elements of src into `total`, which holds those of x. T: of src; A: of total.
template <ScatterReduction how, class A, class T>
void reduce_at(const TensorImpl& index, int dim, const TensorImpl& src, TensorImpl& total,
               bool include_self) {
  using V = ComputeOf<A>;
  using Begin =
      std::conditional_t<std::is_integral_v<A>, A, V>;  // extremes begin at the limits of their type
  A* const to = static_cast<A*>(total.data());
  const T* const from = static_cast<const T*>(src.data());
  if (!include_self)
    for_each_target(index, dim, src, total,
                    [=](int64_t place, int64_t) { to[place] = convert<A>(ops::beginning<Begin>(how)); });
  for_each_target(index, dim, src, total, [=](int64_t place, int64_t element) {
    to[place] = convert<A>(ops::with_element<V>(convert<V>(to[place]), convert<V>(from[element]), how));
  });
}

// Sums to means.
template <class A>
void divide_by_counts(const TensorImpl& index, int dim, const TensorImpl& src, TensorImpl& total,
                      const TensorImpl& counts, bool include_self) {
  int64_t* const count = static_cast<int64_t*>(counts.data());
  A* const to = static_cast<A*>(total.data());
  std::fill_n(count, counts.numel().raw(), include_self ? 1 : 0);
  for_each_target(index, dim, src, counts, [=](int64_t place, int64_t) { ++count[place]; });
  parallel_range(counts.numel().raw(), kIndexGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = ops::mean_of(to[i], count[i]);
  });
}

void scatter_reduce(const Call& call, TensorImpl* const* outputs) {
  const ops::ScatterReduce::Attrs& a = call.attrs_as<ops::ScatterReduce::Attrs>();
  const ScatterReduction how = a.how();
  const TensorImpl &x = *call.operands[0], &src = *call.operands[2];
  TensorImpl& out = *outputs[0];
  const RepeatedIndex index(*call.operands[1]);
  const int dim = static_cast<int>(a.dim);
  check_range(call, index.once(), out.shape()[dim].raw());
  const ScalarType wide = is_floating(out.dtype()) ? kFloat64 : kInt64;
  const LocalResult total(out, is_extreme(how) ? out.dtype() : wide);
  std::optional<LocalTensor> counts;
  if (how == ScatterReduction::mean) counts.emplace(kInt64, out.shape());
  if (measuring()) return;
  convert_copy(x, *total);
  dispatch(out.dtype(), [&]<class T>(std::type_identity<T>) {
    using A = std::conditional_t<is_floating(dtype_of<T>()), double, int64_t>;
    const auto reduce = [&]<ScatterReduction kind, class Total>() {
      reduce_at<kind, Total, T>(*index, dim, src, *total, a.include_self);
    };
    switch (how) {
      case ScatterReduction::amax: return reduce.template operator()<ScatterReduction::amax, T>();
      case ScatterReduction::amin: return reduce.template operator()<ScatterReduction::amin, T>();
      case ScatterReduction::prod: return reduce.template operator()<ScatterReduction::prod, A>();
      case ScatterReduction::sum: return reduce.template operator()<ScatterReduction::sum, A>();
      case ScatterReduction::mean:
        reduce.template operator()<ScatterReduction::sum, A>();
        divide_by_counts<A>(*index, dim, src, *total, **counts, a.include_self);
    }
  });
  total.finish();
}

}  // namespace

void add_scatter_reduce_kernel(KernelTable& table) {
  table.set(&ops::info<ops::ScatterReduce>, scatter_reduce, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
