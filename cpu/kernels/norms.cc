// Normalisation on the CPU: the row functions of cpu/kernels/rows.h over the rows of any dims.
// Gradients of weight and bias are summed over blocks of rows in T, and over blocks in double, in an order
// fixed by sizes.
#include "ops/norms.h"

#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/reduce_rows.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/rows.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::cpu {
namespace {

// mean and rstd are dense, in the compute type.
template <class T>
T* stat(const TensorImpl& x) {
  return static_cast<T*>(x.data());
}

template <class T>
void normalize(const Call& call, TensorImpl* const* outputs) {
  const auto& a = call.attrs_as<ops::NormalizeAttrs>();
  const Rows in(*call.operands[0], a.dim), out(*outputs[0], a.dim);
  const LocalCopy weight(call.operands[1], dtype_of<T>()), bias(call.operands[2], dtype_of<T>());
  const int64_t n = in.length();
  T *mean = stat<T>(*outputs[1]), *rstd = stat<T>(*outputs[2]);
  if (n == 0) {  // rows without elements have statistics, too, which are saved
    if (measuring()) return;
    std::fill_n(mean, in.count(), T(0));
    std::fill_n(rstd, in.count(), T(0));
    return;
  }
  const int64_t chunks = count_chunks(in.count(), in.grain());
  const RowRoom<T> x_room(in, chunks), y_room(out, chunks);
  const T *scale = weight.values<T>(), *shift = bias.values<T>();
  parallel_range(in.count(), in.grain(), [&](int64_t begin, int64_t end) {
    RowReader<T> x(x_room, end);
    RowWriter<T> y(y_room, end);
    for (int64_t row = begin; row < end; ++row) {
      const RowStats stats =
          row_table<T>().normalize(x(row), scale, shift, n, a.eps.to_double(), a.center, y.target(row));
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
        mean_(call.operands[2], dtype_of<T>()),
        rstd_(call.operands[3], dtype_of<T>()),
        weight_(call.operands[4], dtype_of<T>()),
        n_(x_.length()),
        ones_(attrs_.affine && !weight_ ? n_ : 0) {
    if (ones_.data() && !measuring()) std::fill_n(ones_.data(), n_, T(1));
  }

  void run(TensorImpl* const* outputs) const {
    if (n_ == 0) return;
    const int64_t block = attrs_.affine ? std::max<int64_t>(32, x_.grain()) : x_.grain();
    const int64_t blocks = (x_.count() + block - 1) / block;
    const Scratch<T> sums(attrs_.affine ? blocks * 2 * n_ : 0);
    const Scratch<double> total(attrs_.affine ? n_ : 0);
    const Rooms rooms{{g_, blocks}, {x_, blocks}, {dx_, blocks}};
    if (measuring()) return;
    parallel_range(x_.count(), block, [&](int64_t begin, int64_t end) {
      T* sum = attrs_.affine ? &sums[begin / block * 2 * n_] : nullptr;
      if (sum) std::fill_n(sum, 2 * n_, T(0));
      rows(rooms, begin, end, sum, sum ? sum + n_ : nullptr);
    });
    if (!attrs_.affine) return;
    for (int i = 0; i < 2; ++i) store_sum(sums.data() + i * n_, blocks, total.data(), *outputs[1 + i]);
  }

 private:
  struct Rooms {
    RowRoom<T> g, x, dx;
  };

  void rows(const Rooms& rooms, int64_t begin, int64_t end, T* dweight, T* dbias) const {
    RowReader<T> g(rooms.g, end), x(rooms.x, end);
    RowWriter<T> dx(rooms.dx, end);
    const T *mean = mean_.template values<T>(), *rstd = rstd_.template values<T>();
    const T* weight = ones_.data() ? ones_.data() : weight_.template values<T>();
    for (int64_t row = begin; row < end; ++row) {
      const RowStats stats{static_cast<double>(mean[row]), static_cast<double>(rstd[row])};
      row_table<T>().normalize_backward(g(row), x(row), stats, weight, n_, attrs_.center, dx.target(row),
                                        dweight, dbias);
      dx.done(row);
    }
  }

  void store_sum(const T* sums, int64_t blocks, double* total, TensorImpl& out) const {
    std::fill_n(total, n_, 0.0);
    reduce_table<T>().sum_columns(sums, blocks, 2 * n_, n_, total);
    dispatch(out.dtype(), [&]<class To>(std::type_identity<To>) {
      for (int64_t j = 0; j < n_; ++j) static_cast<To*>(out.data())[j] = convert<To>(total[j]);
    });
  }

  const ops::NormalizeBackward::Attrs& attrs_;
  Rows g_, x_, dx_;
  LocalCopy mean_, rstd_, weight_;
  int64_t n_;
  Scratch<T> ones_;  // the weight where there is none
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
  table.set(&ops::info<ops::Normalize>, normalize_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::NormalizeBackward>, normalize_backward_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
