// Normalisation on the CPU: the row functions of cpu/kernels/rows.h over the rows of any dims.
// Gradients of weight and bias are summed over blocks of rows in T, and over blocks in double, in an order
// fixed by sizes.
#include "ops/norms.h"

#include "cpu/kernels/reduce_rows.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/rows.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::cpu {
namespace {

// A weight or bias as dense T; null when there is none.
template <class T>
std::vector<T> dense(const TensorImpl* p) {
  if (!p) return {};
  std::vector<T> values(static_cast<size_t>(p->numel().raw()));
  const Rows rows(*p, ~uint64_t{0});
  const T* from = rows.read(0, values.data());
  if (from != values.data()) std::copy_n(from, values.size(), values.data());
  return values;
}

template <class T>
const T* pointer(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

// mean and rstd are dense, in the compute type.
template <class T>
T* stat(const TensorImpl& x) {
  return static_cast<T*>(x.data());
}

template <class T>
void normalize(const Call& call, TensorImpl* const* outputs) {
  const auto& a = call.attrs_as<ops::NormalizeAttrs>();
  const Rows in(*call.operands[0], a.dim), out(*outputs[0], a.dim);
  const std::vector<T> weight = dense<T>(call.operands[1]), bias = dense<T>(call.operands[2]);
  const int64_t n = in.length();
  T *mean = stat<T>(*outputs[1]), *rstd = stat<T>(*outputs[2]);
  if (n == 0) {  // rows without elements have statistics, too, which are saved
    std::fill_n(mean, in.count(), T(0));
    std::fill_n(rstd, in.count(), T(0));
    return;
  }
  parallel_range(in.count(), in.grain(), [&](int64_t begin, int64_t end) {
    RowReader<T> x(in, end);
    RowWriter<T> y(out, end);
    for (int64_t row = begin; row < end; ++row) {
      const RowStats stats = row_table<T>().normalize(x(row), pointer(weight), pointer(bias), n,
                                                      a.eps.to_double(), a.center, y.target(row));
      mean[row] = static_cast<T>(stats.mean);
      rstd[row] = static_cast<T>(stats.rstd);
      y.done(row);
    }
  });
}

template <class T>
class Backward {
 public:
  Backward(const Call& call, TensorImpl* const* outputs)
      : attrs_(call.attrs_as<ops::NormalizeBackward::Attrs>()),
        g_(*call.operands[0], attrs_.dim),
        x_(*call.operands[1], attrs_.dim),
        dx_(*outputs[0], attrs_.dim),
        mean_(dense<T>(call.operands[2])),
        rstd_(dense<T>(call.operands[3])),
        weight_(dense<T>(call.operands[4])),
        n_(x_.length()) {
    if (attrs_.affine && weight_.empty()) weight_.assign(static_cast<size_t>(n_), T(1));
  }

  void run(TensorImpl* const* outputs) {
    if (n_ == 0) return;
    const int64_t block = attrs_.affine ? std::max<int64_t>(32, x_.grain()) : x_.grain();
    const int64_t blocks = (x_.count() + block - 1) / block;
    std::vector<T> sums(attrs_.affine ? static_cast<size_t>(blocks * 2 * n_) : 0);
    parallel_range(x_.count(), block, [&](int64_t begin, int64_t end) {
      T* sum = attrs_.affine ? &sums[static_cast<size_t>(begin / block * 2 * n_)] : nullptr;
      rows(begin, end, sum, sum ? sum + n_ : nullptr);
    });
    if (!attrs_.affine) return;
    for (int i = 0; i < 2; ++i) store_sum(sums.data() + i * n_, blocks, *outputs[1 + i]);
  }

 private:
  void rows(int64_t begin, int64_t end, T* dweight, T* dbias) {
    RowReader<T> g(g_, end), x(x_, end);
    RowWriter<T> dx(dx_, end);
    for (int64_t row = begin; row < end; ++row) {
      const RowStats stats{static_cast<double>(mean_[static_cast<size_t>(row)]),
                           static_cast<double>(rstd_[static_cast<size_t>(row)])};
      row_table<T>().normalize_backward(g(row), x(row), stats, pointer(weight_), n_, attrs_.center,
                                        dx.target(row), dweight, dbias);
      dx.done(row);
    }
  }

  void store_sum(const T* sums, int64_t blocks, TensorImpl& out) const {
    std::vector<double> total(static_cast<size_t>(n_));
    reduce_table<T>().sum_columns(sums, blocks, 2 * n_, n_, total.data());
    dispatch(out.dtype(), [&]<class To>(std::type_identity<To>) {
      for (int64_t j = 0; j < n_; ++j)
        static_cast<To*>(out.data())[j] = convert<To>(total[static_cast<size_t>(j)]);
    });
  }

  const ops::NormalizeBackward::Attrs& attrs_;
  Rows g_, x_, dx_;
  std::vector<T> mean_, rstd_, weight_;
  int64_t n_;
};

void normalize_kernel(const Call& call, TensorImpl* const* outputs) {
  dispatch_floating(outputs[0]->dtype(),
                    [&]<class T>(std::type_identity<T>) { normalize<T>(call, outputs); });
}

void normalize_backward_kernel(const Call& call, TensorImpl* const* outputs) {
  dispatch_floating(outputs[0]->dtype(),
                    [&]<class T>(std::type_identity<T>) { Backward<T>(call, outputs).run(outputs); });
}

}  // namespace

void add_norm_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Normalize>, normalize_kernel);
  table.set(&ops::info<ops::NormalizeBackward>, normalize_backward_kernel);
}

}  // namespace retrograd::cpu
