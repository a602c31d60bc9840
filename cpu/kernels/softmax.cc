// Softmax and log-softmax on the CPU: the row functions of cpu/kernels/rows.h over rows along a dim.
#include "ops/softmax.h"

#include "cpu/features.h"
#include "cpu/kernels/row_access.h"
#include "cpu/kernels/rows.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"

namespace retrograd::cpu {

template <class T>
const RowTable<T>& row_table() {
#if defined(__x86_64__)
  switch (level()) {
    case Level::avx512: return avx512::row_table<T>();
    case Level::avx2: return avx2::row_table<T>();
    case Level::baseline: break;
  }
#endif
  return baseline::row_table<T>();
}
template const RowTable<float>& row_table<float>();
template const RowTable<double>& row_table<double>();

namespace {

// f(inputs, n, output) for each row along the dim of the attributes.
template <class F>
void for_rows(const Call& call, TensorImpl& output, const F& f) {
  const uint64_t along = output.rank() ? uint64_t{1} << call.attrs_as<ops::SoftmaxAttrs>().dim : 0;
  const Rows out(output, along), first(*call.operands[0], along), second(*call.operands.back(), along);
  const int64_t n = out.length();
  if (n == 0) return;
  dispatch_floating(output.dtype(), [&]<class T>(std::type_identity<T>) {
    const int64_t chunks = count_chunks(out.count(), out.grain());
    const RowRoom<T> x_room(first, chunks), more_room(second, chunks), y_room(out, chunks);
    parallel_range(out.count(), out.grain(), [&](int64_t begin, int64_t end) {
      RowReader<T> x(x_room, end), more(more_room, end);
      RowWriter<T> y(y_room, end);
      for (int64_t row = begin; row < end; ++row) {
        f(row_table<T>(), x(row), call.operands.size() == 2 ? more(row) : nullptr, n, y.target(row));
        y.done(row);
      }
    });
  });
}

void softmax_kernel(const Call& call, TensorImpl* const* outputs) {
  for_rows(call, *outputs[0],
           [](const auto& table, const auto* x, const auto*, int64_t n, auto* y) { table.softmax(x, n, y); });
}

void log_softmax_kernel(const Call& call, TensorImpl* const* outputs) {
  for_rows(call, *outputs[0], [](const auto& table, const auto* x, const auto*, int64_t n, auto* y) {
    table.log_softmax(x, n, y);
  });
}

void softmax_backward_kernel(const Call& call, TensorImpl* const* outputs) {
  for_rows(call, *outputs[0], [](const auto& table, const auto* g, const auto* y, int64_t n, auto* dx) {
    table.softmax_backward(g, y, n, dx);
  });
}

void log_softmax_backward_kernel(const Call& call, TensorImpl* const* outputs) {
  for_rows(call, *outputs[0], [](const auto& table, const auto* g, const auto* y, int64_t n, auto* dx) {
    table.log_softmax_backward(g, y, n, dx);
  });
}

}  // namespace

void add_softmax_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Softmax>, softmax_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::LogSoftmax>, log_softmax_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::SoftmaxBackward>, softmax_backward_kernel, KernelTable::kScratch);
  table.set(&ops::info<ops::LogSoftmaxBackward>, log_softmax_backward_kernel, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
