// Attention on the CPU: for each matrix of a batch, strips of queries.
//
// AttentionForward, per strip: scores = scale * Q K', weights = exp(scores - max of the row), out = weights V / sum of the
// row. AttentionBackwards, per strip, from log sum exp (lse): P = exp(scores - lse), dP = g V', dS = P * (dP - delta) with
// delta = g . out of each row, dQ = scale * dS K; after the strips of a block of queries, per strip of keys: dV += P'
// g, dK += scale * dS' Q, in the order of the blocks. With is_causal a strip of queries has the keys up to its last
// one, a strip of keys the queries from its first one on. Right operands are packed once per matrix or block
// (cpu/kernels/packed_products.h). Matrices are distributed among threads, or if there are few, the strips of one
// matrix after the other. Formats of 16 bits are copied to float32 first, and rounded at the end. Limits: each thread
// has its matrix's keys and values packed, forward once each, backward keys twice.
#include "ops/attention.h"

#include <algorithm>
#include <optional>

#include "cpu/kernels/packed_products.h"
#include "cpu/kernels/layout.h"
#include "cpu/kernels/levels/attention_rows.h"
#include "cpu/kernels/local_tensor.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "cpu/scratch.h"

namespace retrograd::inline v0::cpu {
namespace {

using gemm_detail::transposed;

constexpr int64_t kAttentionStripRows = 48;          // of queries or keys, about
constexpr int64_t kNarrowPanels = 2;        // of rows, in a strip where a mask leaves out much of it,
constexpr int64_t kNarrowKeys = 512;        // which it does up to so many keys, or
constexpr int64_t kFewMatrices = 4;         // below which the strips of a matrix are shared out, backward,
constexpr int64_t kFewStrips = 16;          // so many of a block
constexpr int64_t kBlockBytes = 256 << 10;  // of scores of a block, backward

// A tensor as a batch of matrices, whose rows are the last dim but one, or for an interleaved tensor the dim before
// it.
template <class T>
class Batch {
 public:
  explicit Batch(const TensorImpl& x, bool interleaved = false)
      : Batch(x, x.rank() - (interleaved ? 3 : 2), x.rank() - 1) {}
  /// Number `part` of (..., L, 3, H, E).
  static Batch of_joined(const TensorImpl& x, int part) {
    const int parts = x.rank() - 3;
    Batch batch(x, x.rank() - 4, x.rank() - 1, uint64_t{1} << parts);
    batch.data_ += part * x.strides()[parts];
    return batch;
  }
  int64_t count() const { return dims_.numel(); }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  MatrixView<T> view(int64_t i) const { return {data_ + dims_.offset(i), row_, column_}; }
  int64_t row() const { return row_; }
  T* at(int64_t i, int64_t row) const { return data_ + dims_.offset(i) + row * row_; }

 private:
  // `others`: further dims that are not of the batch.
  Batch(const TensorImpl& x, int rows, int columns, uint64_t others = 0)
      : data_(static_cast<T*>(x.data())),
        dims_(x, ((uint64_t{1} << columns) - 1) & ~(uint64_t{1} << rows) & ~others),
        rows_(x.shape()[rows].raw()),
        columns_(x.shape()[columns].raw()),
        row_(x.strides()[rows]),
        column_(x.strides()[columns]) {}

  T* data_;
  Layout dims_;
  int64_t rows_, columns_, row_, column_;
};

template <class T>
MatrixView<T> from_row(MatrixView<T> x, int64_t row) {
  return {x.data + row * x.row, x.row, x.column};
}

// How queries and keys are cut, and the part of the scores in a strip.
class Cut {
 public:
  Cut(int64_t matrices, int64_t queries, int64_t keys, bool causal, int rows_of_tile, int64_t item)
      : queries(queries),
        keys(keys),
        // An odd number of lines: columns of scores then lie in different sets of the first-level cache.
        width(((keys + kAttentionPad - 1) / kAttentionPad | 1) * kAttentionPad),
        causal(causal),
        strip((causal && keys <= kNarrowKeys) || matrices < kFewMatrices
                  ? kNarrowPanels * rows_of_tile
                  : std::max<int64_t>(1, kAttentionStripRows / rows_of_tile) * rows_of_tile),
        block(strip * std::clamp<int64_t>(kBlockBytes / item / width / strip,
                                          matrices < kFewMatrices ? std::min(kFewStrips, strips(queries)) : 1,
                                          std::max<int64_t>(1, strips(queries)))) {}

  const int64_t queries, keys, width;
  const bool causal;
  const int64_t strip, block;  // rows

  int64_t strips(int64_t rows) const { return ceil_div(rows, strip); }
  int64_t rows_from(int64_t first) const { return std::min(strip, queries - first); }
  /// Keys that queries before `end` see.
  int64_t keys_before(int64_t end) const { return causal ? std::min(keys, end) : keys; }
  /// The strip whose first query is number `first`.
  ScoreBlock scores(int64_t first) const {
    const int64_t rows = rows_from(first);
    return {rows, width, keys_before(first + rows), first + 1, causal};
  }
};

template <class T>
Cut cut_of(const Call& call) {
  const TensorImpl &q = *call.operands[0], &k = *call.operands[1];
  const int row = q.rank() - 2;
  return {Batch<T>(q).count(),    q.shape()[row].raw(),
          k.shape()[row].raw(),   call.attrs_as<ops::AttentionAttrs>().is_causal,
          gemm_kernels<T>().rows, sizeof(T)};
}

template <class T>
T scale_of(const Call& call) {
  return static_cast<T>(call.attrs_as<ops::AttentionAttrs>().scale.to_double());
}
bool is_interleaved(const Call& call) { return call.attrs_as<ops::AttentionAttrs>().interleaved; }

// Calls f(i) for each matrix. Matrices are distributed among threads; if there are few, they are processed in turn
// and their strips are distributed.
template <class F>
void for_matrices(int64_t count, bool are_few, const F& f) {
  if (count == 0) return;
  if (are_few) {
    for (int64_t i = 0; i < (measuring() ? 1 : count); ++i) f(i);
    return;
  }
  const ScratchRoom room(measure_chunk(count, [&] { f(0); }), count);
  parallel_for(count, [&](int64_t i) {
    const ScratchArea area = room.lend();
    f(i);
  });
}

template <class T>
class AttentionForward {
 public:
  AttentionForward(const Call& call, TensorImpl* const* outputs)
      : q_(*call.operands[0]),
        k_(*call.operands[1]),
        v_(*call.operands[2]),
        out_(*outputs[0], is_interleaved(call)),
        lse_(static_cast<T*>(outputs[1]->data())),
        cut_(cut_of<T>(call)),
        scale_(scale_of<T>(call)) {}

  void run() const {
    const int64_t matrices = q_.count();
    if (cut_.queries == 0) return;
    const auto one = [this](int64_t i) {
      if (cut_.queries <= gemm_kernels<T>().rows)
        few_queries(i);
      else
        Matrix(*this, i).run();
    };
    for_matrices(matrices, matrices < 2 * loop_threads(), one);
  }

 private:
  class Matrix {
   public:
    Matrix(const AttentionForward& f, int64_t i)
        : f_(f),
          i_(i),
          k_(f.q_.columns(), f.cut_.keys),
          v_(f.cut_.keys, f.v_.columns()),
          scores_(f.cut_.strip * (f.cut_.width + 1), f.cut_.strips(f.cut_.queries)) {}

    void run() {
      if (measuring()) return;
      k_.pack(transposed(f_.k_.view(i_)), f_.q_.columns(), f_.cut_.keys);
      v_.pack(f_.v_.view(i_), f_.cut_.keys, f_.v_.columns());
      parallel_for(f_.cut_.strips(f_.cut_.queries), [&](int64_t s) { strip(s * f_.cut_.strip); });
    }

   private:
    void strip(int64_t first) const {
      const ScoreBlock s = f_.cut_.scores(first);
      const int64_t columns = f_.v_.columns();
      T *out = f_.out_.at(i_, first), *scores = scores_.mine(), *factors = scores + f_.cut_.strip * s.width;
      multiply(s.rows, k_.whole(s.keys), f_.q_.columns(), from_row(f_.q_.view(i_), first), k_, 0, scores,
               s.width, f_.scale_, false);
      attention_row_table<T>().weights(scores, s, f_.lse_ + i_ * f_.cut_.queries + first, factors);
      multiply(s.rows, columns, s.keys, {scores, s.width, 1}, v_, 0, out, f_.out_.row(), T(1), false);
      attention_row_table<T>().scale(out, f_.out_.row(), s.rows, columns, factors);
    }

    const AttentionForward& f_;
    int64_t i_;
    PackedRight<T> k_, v_;
    ThreadScratch<T> scores_;
  };

  // For so few rows packing would take longer than the products.
  void few_queries(int64_t i) const {
    const ScoreBlock s = cut_.scores(0);
    const Scratch<T> scores(s.rows * s.width), factors(s.rows);
    T* out = out_.at(i, 0);
    const int64_t columns = v_.columns();
    gemm(Gemm<T>{s.rows, s.keys, q_.columns(), q_.view(i), transposed(k_.view(i)), scores.data(), s.width,
                 scale_});
    if (!measuring())
      attention_row_table<T>().weights(scores.data(), s, lse_ + i * cut_.queries, factors.data());
    gemm(Gemm<T>{s.rows, columns, s.keys, {scores.data(), s.width, 1}, v_.view(i), out, out_.row()});
    if (!measuring()) attention_row_table<T>().scale(out, out_.row(), s.rows, columns, factors.data());
  }

  Batch<T> q_, k_, v_, out_;
  T* lse_;
  Cut cut_;
  T scale_;
};

template <class T>
class AttentionBackwards {
 public:
  AttentionBackwards(const Call& call, TensorImpl* const* outputs)
      : AttentionBackwards(call, Batch<T>(*outputs[0], is_interleaved(call)),
                 Batch<T>(*outputs[1], is_interleaved(call)), Batch<T>(*outputs[2], is_interleaved(call))) {}
  AttentionBackwards(const Call& call, Batch<T> dq, Batch<T> dk, Batch<T> dv)
      : q_(*call.operands[0]),
        k_(*call.operands[1]),
        v_(*call.operands[2]),
        out_(*call.operands[3], is_interleaved(call)),
        g_(*call.operands[5], is_interleaved(call)),
        dq_(std::move(dq)),
        dk_(std::move(dk)),
        dv_(std::move(dv)),
        lse_(static_cast<const T*>(call.operands[4]->data())),
        lse_layout_(*call.operands[4]),
        cut_(cut_of<T>(call)),
        scale_(scale_of<T>(call)) {}

  void run() const {
    const int64_t matrices = q_.count();
    for_matrices(matrices, matrices < kFewMatrices, [this](int64_t i) { Matrix(*this, i).run(); });
  }

 private:
  class Matrix {
   public:
    Matrix(const AttentionBackwards& b, int64_t i)
        : b_(b),
          i_(i),
          depth_(b.q_.columns()),
          columns_(b.v_.columns()),
          queries_(b.q_.view(i)),
          g_(b.g_.view(i)),
          out_(b.out_.view(i)),
          k_turned_(depth_, b.cut_.keys),
          v_turned_(columns_, b.cut_.keys),
          k_(b.cut_.keys, depth_),
          queries_packed_(b.cut_.block, depth_),
          g_packed_(b.cut_.block, columns_),
          p_(b.cut_.block * b.cut_.width),
          ds_(b.cut_.block * b.cut_.width),
          lse_(b.cut_.block),
          delta_(b.cut_.block),
          rows_(is_dense() ? 0 : 2 * columns_ * b.cut_.strips(b.cut_.block)) {}

    void run() {
      if (measuring()) return;
      k_turned_.pack(transposed(b_.k_.view(i_)), depth_, b_.cut_.keys);
      v_turned_.pack(transposed(b_.v_.view(i_)), columns_, b_.cut_.keys);
      k_.pack(b_.k_.view(i_), b_.cut_.keys, depth_);
      clear(b_.cut_.queries == 0 ? 0 : b_.cut_.keys_before(b_.cut_.queries));
      for (int64_t first = 0; first < b_.cut_.queries; first += b_.cut_.block) block(first);
    }

   private:
    void block(int64_t first) const {
      const Cut& cut = b_.cut_;
      const int64_t rows = std::min(cut.block, cut.queries - first);
      queries_packed_.pack(from_row(queries_, first), rows, depth_);
      g_packed_.pack(from_row(g_, first), rows, columns_);
      parallel_for(cut.strips(rows), [&](int64_t s) { query_gradients(first, s * cut.strip); });
      const int64_t keys = cut.keys_before(first + rows);
      parallel_for(cut.strips(keys), [&](int64_t s) { add_key_gradients(first, rows, s * cut.strip, keys); });
    }
    // Clears the gradients of keys from `key` on, which no query sees.
    void clear(int64_t key) const {
      for (; key < b_.cut_.keys; ++key) {
        std::fill_n(b_.dk_.at(i_, key), depth_, T(0));
        std::fill_n(b_.dv_.at(i_, key), columns_, T(0));
      }
    }

    // Scores and their gradients for the strip of queries that is `at` in a block; the gradients of the queries.
    void query_gradients(int64_t first, int64_t at) const {
      const int64_t query = first + at;
      const ScoreBlock s = b_.cut_.scores(query);
      T *p = &p_[at * s.width], *ds = &ds_[at * s.width], *lse = &lse_[at], *delta = &delta_[at];
      multiply(s.rows, k_turned_.whole(s.keys), depth_, from_row(queries_, query), k_turned_, 0, p, s.width,
               b_.scale_, false);
      multiply(s.rows, v_turned_.whole(s.keys), columns_, from_row(g_, query), v_turned_, 0, ds, s.width,
               T(1), false);
      for (int64_t r = 0; r < s.rows; ++r)
        lse[r] = b_.lse_[b_.lse_layout_.offset(i_ * b_.cut_.queries + query + r)];
      find_delta(query, s.rows, at, delta);
      attention_row_table<T>().gradients(p, ds, s, lse, delta);
      multiply(s.rows, depth_, s.keys, {ds, s.width, 1}, k_, 0, b_.dq_.at(i_, query), b_.dq_.row(), b_.scale_,
               false);
    }

    // What the queries of a block add to the gradients of the keys [at, end) of a strip, all of which the last of the
    // queries sees. The strip's queries and keys are the same numbers, so all that is read of the scores is set.
    void add_key_gradients(int64_t first, int64_t rows, int64_t at, int64_t end) const {
      const int64_t width = b_.cut_.width, count = std::min(b_.cut_.strip, end - at),
                    from = b_.cut_.causal ? std::max<int64_t>(at - first, 0) : 0;
      const auto part = [&](const Scratch<T>& of) {
        return MatrixView<T>{of.data() + from * width + at, 1, width};
      };
      const bool is_added = first > 0 && at < b_.cut_.keys_before(first);  // earlier queries see them, too
      multiply(count, columns_, rows - from, part(p_), g_packed_, from, b_.dv_.at(i_, at), b_.dv_.row(), T(1),
               is_added);
      multiply(count, depth_, rows - from, part(ds_), queries_packed_, from, b_.dk_.at(i_, at), b_.dk_.row(),
               b_.scale_, is_added);
    }

    // Of the queries [query, query + rows), which begin `at` in a block.
    void find_delta(int64_t query, int64_t rows, int64_t at, T* delta) const {
      const MatrixView<T> g = from_row(g_, query), out = from_row(out_, query);
      const auto inner = attention_row_table<T>().inner;
      if (is_dense()) return inner(g.data, g.row, out.data, out.row, rows, columns_, delta);
      T* const dense = rows_.data() + at / b_.cut_.strip * 2 * columns_;
      for (int64_t r = 0; r < rows; ++r) {
        copy_row(g, r, dense);
        copy_row(out, r, dense + columns_);
        inner(dense, 0, dense + columns_, 0, 1, columns_, delta + r);
      }
    }
    bool is_dense() const { return g_.column == 1 && out_.column == 1; }
    void copy_row(MatrixView<T> x, int64_t row, T* to) const {
      for (int64_t j = 0; j < columns_; ++j) to[j] = x.data[row * x.row + j * x.column];
    }

    const AttentionBackwards& b_;
    const int64_t i_, depth_, columns_;
    MatrixView<T> queries_, g_, out_;
    PackedRight<T> k_turned_, v_turned_, k_, queries_packed_, g_packed_;
    Scratch<T> p_, ds_, lse_, delta_;  // of a block
    Scratch<T> rows_;                  // of each strip of a block, two rows that do not lie dense
  };

  Batch<T> q_, k_, v_, out_, g_, dq_, dk_, dv_;
  const T* lse_;
  Layout lse_layout_;
  Cut cut_;
  T scale_;
};

template <class T>
class JoinedAttentionBackwards : public AttentionBackwards<T> {
 public:
  JoinedAttentionBackwards(const Call& call, TensorImpl* const* outputs)
      : AttentionBackwards<T>(call, Batch<T>::of_joined(*outputs[0], 0), Batch<T>::of_joined(*outputs[0], 1),
                    Batch<T>::of_joined(*outputs[0], 2)) {}
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
  table.set(&ops::info<ops::Attention>, attention_kernel<AttentionForward>, KernelTable::kScratch);
  table.set(&ops::info<ops::AttentionBackward>, attention_kernel<AttentionBackwards>, KernelTable::kScratch);
  table.set(&ops::info<ops::AttentionBackwardJoined>, attention_kernel<JoinedAttentionBackwards>,
            KernelTable::kScratch);
}

}  // namespace retrograd::cpu
