// Attention on the CPU: for each matrix of a batch, blocks of queries whose scores fit into a cache.
//
// Forward, per block: scores = scale * Q K', weights = exp(scores - max of the row), out = weights V / sum of
// the row. Blocks are independent. Backward, per block, from log sum exp (lse): P = exp(scores - lse), dP = g
// V', dS = P * (dP - delta) with delta = g . out of each row; then dV += P' g, dQ = scale * dS K, dK += scale
// * dS' Q, in the order of the blocks: one chunk of the parallel loop has all blocks of a matrix. With
// is_causal the scores of a block end at its last query. See cpu/gemm.h for the products, which run within
// the chunk's thread. Formats of 16 bits are copied to float32 first, and rounded behind.
#include "ops/attention.h"

#include <algorithm>
#include <optional>

#include "cpu/features.h"
#include "cpu/gemm.h"
#include "cpu/kernels/attention_rows.h"
#include "cpu/kernels/layout.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"

namespace retrograd::cpu {
namespace {

constexpr int64_t kBlockBytes = 256 << 10;  // of scores
constexpr int64_t kMostRows = 32, kLeastRows = 8;

template <class T>
const AttentionRowTable<T>& row_table() {
#if defined(__x86_64__)
  switch (level()) {
    case Level::avx512: return avx512::attention_row_table<T>();
    case Level::avx2: return avx2::attention_row_table<T>();
    case Level::baseline: break;
  }
#endif
  return baseline::attention_row_table<T>();
}

// A tensor as a batch of matrices.
template <class T>
class Batch {
 public:
  explicit Batch(const TensorImpl& x)
      : data_(static_cast<T*>(x.data())),
        dims_(x, (uint64_t{1} << (x.rank() - 2)) - 1),
        rows_(x.shape()[x.rank() - 2].raw()),
        columns_(x.shape()[x.rank() - 1].raw()),
        row_(x.strides()[x.rank() - 2]),
        column_(x.strides()[x.rank() - 1]) {}
  int64_t count() const { return dims_.numel(); }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  MatrixView<T> view(int64_t i) const { return {data_ + dims_.offset(i), row_, column_}; }
  /// Of contiguous tensors.
  T* at(int64_t i, int64_t row) const { return data_ + (i * rows_ + row) * columns_; }

 private:
  T* data_;
  Layout dims_;
  int64_t rows_, columns_, row_, column_;
};

template <class T>
MatrixView<T> from_row(MatrixView<T> x, int64_t row) {
  return {x.data + row * x.row, x.row, x.column};
}
template <class T>
MatrixView<T> turned(MatrixView<T> x) {
  return {x.data, x.column, x.row};
}

// How queries are cut into blocks, and what of the scores a block has.
class Blocks {
 public:
  Blocks(int64_t queries, int64_t keys, bool causal, int64_t item)
      : queries_(queries),
        keys_(keys),
        width_((keys + kAttentionPad - 1) / kAttentionPad * kAttentionPad),
        causal_(causal),
        rows_(std::clamp(kBlockBytes / item / std::max<int64_t>(width_, 1), kLeastRows, kMostRows)) {}
  int64_t queries() const { return queries_; }
  int64_t count() const { return (queries_ + rows_ - 1) / rows_; }
  int64_t rows() const { return rows_; }
  int64_t scores() const { return std::max<int64_t>(1, rows_ * width_); }
  /// The bytes that block(first) asks for in one of so many chunks, whatever block it is.
  template <class F>
  int64_t measure(int64_t chunks, const F& block) const {
    int64_t most = 0;
    // Without a mask only the last block may differ from the first.
    const int64_t step = causal_ ? rows_ : queries_ > rows_ ? queries_ - queries_ % rows_ : queries_;
    for (int64_t first = 0; chunks > 0 && first < queries_; first += step)
      most = std::max(most, measure_chunk(chunks, [&] { block(first); }));
    return most;
  }
  /// The block whose first query is number `first`.
  ScoreBlock at(int64_t first) const {
    const int64_t rows = std::min(rows_, queries_ - first);
    return {rows, width_, causal_ ? std::min(keys_, first + rows) : keys_, first + 1, causal_};
  }

 private:
  int64_t queries_, keys_, width_;
  bool causal_;
  int64_t rows_;
};

template <class T>
Blocks blocks_of(const Call& call) {
  const TensorImpl &q = *call.operands[0], &k = *call.operands[1];
  const int row = q.rank() - 2;
  return {q.shape()[row].raw(), k.shape()[row].raw(), call.attrs_as<ops::AttentionAttrs>().is_causal,
          sizeof(T)};
}

template <class T>
T scale_of(const Call& call) {
  return static_cast<T>(call.attrs_as<ops::AttentionAttrs>().scale.to_double());
}

template <class T>
class Forward {
 public:
  Forward(const Call& call, TensorImpl* const* outputs)
      : q_(*call.operands[0]),
        k_(*call.operands[1]),
        v_(*call.operands[2]),
        out_(*outputs[0]),
        lse_(static_cast<T*>(outputs[1]->data())),
        blocks_(blocks_of<T>(call)),
        scale_(scale_of<T>(call)) {}

  void run() const {
    const int64_t blocks = blocks_.count(), chunks = q_.count() * blocks;
    const ScratchRoom room(blocks_.measure(chunks, [&](int64_t first) { block(0, first); }), chunks);
    parallel_for(chunks, [&](int64_t chunk) {
      const ScratchArea area = room.lend();
      block(chunk / blocks, chunk % blocks * blocks_.rows());
    });
  }

 private:
  void block(int64_t i, int64_t first) const {
    const ScoreBlock b = blocks_.at(first);
    const Scratch<T> scores(blocks_.scores()), factors(b.rows);
    T* out = out_.at(i, first);
    const int64_t columns = v_.columns();
    gemm(Gemm<T>{b.rows, b.keys, q_.columns(), from_row(q_.view(i), first), turned(k_.view(i)), scores.data(),
                 b.width, scale_});
    if (!measuring())
      row_table<T>().weights(scores.data(), b, lse_ + i * blocks_.queries() + first, factors.data());
    gemm(Gemm<T>{b.rows, columns, b.keys, {scores.data(), b.width, 1}, v_.view(i), out, columns});
    if (measuring()) return;
    for (int64_t r = 0; r < b.rows; ++r)
      for (int64_t j = 0; j < columns; ++j) out[r * columns + j] *= factors[r];
  }

  Batch<T> q_, k_, v_, out_;
  T* lse_;
  Blocks blocks_;
  T scale_;
};

template <class T>
class Backward {
 public:
  Backward(const Call& call, TensorImpl* const* outputs)
      : q_(*call.operands[0]),
        k_(*call.operands[1]),
        v_(*call.operands[2]),
        out_(*call.operands[3]),
        g_(*call.operands[5]),
        dq_(*outputs[0]),
        dk_(*outputs[1]),
        dv_(*outputs[2]),
        lse_(static_cast<const T*>(call.operands[4]->data())),
        lse_layout_(*call.operands[4]),
        blocks_(blocks_of<T>(call)),
        scale_(scale_of<T>(call)) {}

  void run() const {
    const auto in_block = [&](int64_t first) { block(0, first, Buffers(blocks_, v_.columns())); };
    const ScratchRoom room(blocks_.measure(q_.count(), in_block), q_.count());
    parallel_for(q_.count(), [&](int64_t i) {
      std::fill_n(dk_.at(i, 0), k_.rows() * k_.columns(), T(0));
      std::fill_n(dv_.at(i, 0), v_.rows() * v_.columns(), T(0));
      if (blocks_.queries() == 0) return;
      const ScratchArea area = room.lend();
      const Buffers buffers(blocks_, v_.columns());
      for (int64_t first = 0; first < blocks_.queries(); first += blocks_.rows()) block(i, first, buffers);
    });
  }

 private:
  struct Buffers {
    Buffers(const Blocks& b, int64_t columns)
        : p(b.scores()), ds(b.scores()), lse(b.rows()), delta(b.rows()), row(2 * columns) {}
    Scratch<T> p, ds, lse, delta, row;
  };

  static const T* dense_row(const Batch<T>& x, int64_t i, int64_t row, T* buffer) {
    const MatrixView<T> m = from_row(x.view(i), row);
    if (m.column == 1) return m.data;
    for (int64_t j = 0; j < x.columns(); ++j) buffer[j] = m.data[j * m.column];
    return buffer;
  }

  void block(int64_t i, int64_t first, const Buffers& buffers) const {
    const ScoreBlock b = blocks_.at(first);
    const int64_t depth = q_.columns(), columns = v_.columns();
    const auto q = from_row(q_.view(i), first), k = k_.view(i), g = from_row(g_.view(i), first);
    T *p = buffers.p.data(), *ds = buffers.ds.data();
    gemm(Gemm<T>{b.rows, b.keys, depth, q, turned(k), p, b.width, scale_});
    gemm(Gemm<T>{b.rows, b.keys, columns, g, turned(v_.view(i)), ds, b.width});
    for (int64_t r = 0; r < b.rows && !measuring(); ++r) {
      buffers.lse[r] = lse_[lse_layout_.offset(i * blocks_.queries() + first + r)];
      const T* g_row = dense_row(g_, i, first + r, buffers.row.data());
      buffers.delta[r] =
          row_table<T>().inner(g_row, dense_row(out_, i, first + r, buffers.row.data() + columns), columns);
    }
    if (!measuring()) row_table<T>().gradients(p, ds, b, buffers.lse.data(), buffers.delta.data());
    const MatrixView<T> weights{p, b.width, 1}, scores{ds, b.width, 1};
    gemm(Gemm<T>{b.keys, columns, b.rows, turned(weights), g, dv_.at(i, 0), columns, 1, true});
    gemm(Gemm<T>{b.rows, depth, b.keys, scores, k, dq_.at(i, first), depth, scale_});
    gemm(Gemm<T>{b.keys, depth, b.rows, turned(scores), q, dk_.at(i, 0), depth, scale_, true});
  }

  Batch<T> q_, k_, v_, out_, g_, dq_, dk_, dv_;
  const T* lse_;
  Layout lse_layout_;
  Blocks blocks_;
  T scale_;
};

// Of 16 bits: on copies in float32.
template <template <class> class Pass>
void narrow_kernel(const Call& call, TensorImpl* const* outputs) {
  constexpr size_t kMostOperands = 6, kMostOutputs = 3;
  std::optional<LocalCopy> in[kMostOperands];
  std::optional<LocalResult> out[kMostOutputs];
  TensorImpl *operands[kMostOperands], *results[kMostOutputs];
  Call wide = call;
  wide.operands = {operands, call.operands.size()};
  for (size_t i = 0; i < call.operands.size(); ++i) {
    TensorImpl* const x = call.operands[i];
    operands[i] = &*in[i].emplace(x, kFloat32, x->dtype() != kFloat32);
  }
  for (int i = 0; i < call.outputs; ++i) results[i] = &*out[i].emplace(*outputs[i], kFloat32);
  Pass<float>(wide, results).run();
  for (int i = 0; i < call.outputs; ++i) out[i]->finish();
}

template <template <class> class Pass>
void attention_kernel(const Call& call, TensorImpl* const* outputs) {
  for (int i = 0; i < call.outputs; ++i) RG_ASSERT(outputs[i]->is_contiguous());
  switch (outputs[0]->dtype()) {
    case kFloat32: return Pass<float>(call, outputs).run();
    case kFloat64: return Pass<double>(call, outputs).run();
    default: return narrow_kernel<Pass>(call, outputs);
  }
}

}  // namespace

void add_attention_kernels(KernelTable& table) {
  table.set(&ops::info<ops::Attention>, attention_kernel<Forward>, KernelTable::kScratch);
  table.set(&ops::info<ops::AttentionBackward>, attention_kernel<Backward>, KernelTable::kScratch);
}

}  // namespace retrograd::cpu
