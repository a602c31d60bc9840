// Steps of optimizers on the CPU: factors from attributes, the elements of all parameters of a call cut into
// chunks, then the loops of cpu/kernels/levels/optimizer_rows.h.
//
// A step whose operand found_inf is not 0 keeps all values.
//
// Steps numbers the elements of all parameters of a call, one parameter after the other, each beginning at a multiple
// of kAlign elements. So one large and many small parameters keep all threads busy, and registers do not cross cache
// lines. Tensors of 16 bits go through tiles of float. Each element is independent of the others: results do not
// depend on the cut.
#include <algorithm>
#include <cstring>

#include "cpu/kernels/layout.h"
#include "cpu/kernels/levels/optimizer_rows.h"
#include "cpu/kernels/table.h"
#include "cpu/parallel.h"
#include "ops/optimizer_steps.h"

namespace retrograd::inline v0::cpu {
namespace {

constexpr int64_t kLeastChunk = 1 << 13, kMostChunk = 1 << 18;  // elements
constexpr int64_t kAlign = 64;

// Enough chunks to distribute, but as long as possible, since a chunk reads as many streams from memory as there are
// tensors in a step.
int64_t chunk_of(int64_t elements) {
  constexpr int64_t kChunksOfThread = 4;
  return even_grain(
      elements,
      std::clamp(elements / (kChunksOfThread * get_num_threads()) / kAlign * kAlign, kLeastChunk, kMostChunk),
      kAlign);
}

template <class T>
T* memory(TensorImpl* x) {
  return x ? static_cast<T*>(x->data()) : nullptr;
}

// The steps of a call, and which elements they are in the row of all.
class Steps {
 public:
  explicit Steps(const Call& call)
      : call_(call),
        arity_(static_cast<size_t>(call.op->arity)),
        results_(static_cast<size_t>(call.outputs) / (call.operands.size() / arity_)) {
    begins_.push_back(0);
    for (size_t i = 0; i < call.operands.size(); i += arity_)
      begins_.push_back(begins_.back() + (call.operands[i]->numel().raw() + kAlign - 1) / kAlign * kAlign);
  }

  /// f(operands, first result, begin, end) for pieces of steps, on all threads.
  template <class F>
  void for_pieces(TensorImpl* const* outputs, const F& f) const {
    parallel_range(begins_.back(), chunk_of(begins_.back()), [&](int64_t begin, int64_t end) {
      auto step = static_cast<size_t>(std::ranges::upper_bound(begins_, begin) - begins_.begin()) - 1;
      for (; step + 1 < begins_.size() && begins_[step] < end; ++step) {
        TensorImpl* const* in = call_.operands.data() + step * arity_;
        const int64_t from = std::max<int64_t>(begin - begins_[step], 0),
                      to = std::min(end - begins_[step], in[0]->numel().raw());
        if (from < to) f(in, outputs + step * results_, from, to);
      }
    });
  }

 private:
  const Call& call_;
  size_t arity_, results_;
  std::vector<int64_t> begins_;
};

// Steps of T, or of 16 bits, which are computed in float: f(operands, results, begin, end) for pieces of tensors in
// place, or for tiles of them. Null if there is none; a result has the number of its operand.
template <class T, class F>
void for_elements(const Call& call, TensorImpl* const* outputs, const F& f) {
  constexpr size_t kMost = ops::OptimizerFormulas::inputs;
  constexpr int64_t kTile = 512;
  const auto arity = static_cast<size_t>(call.op->arity) - 1;  // without found_inf
  const ScalarType dtype = call.operands[0]->dtype();
  const auto load = convert_table<T>().load[static_cast<int>(dtype)];
  const auto store = convert_table<T>().store[static_cast<int>(dtype)];
  const int64_t size = static_cast<int64_t>(element_size(dtype));
  const auto at = [size](TensorImpl* x, int64_t i) { return static_cast<std::byte*>(x->data()) + i * size; };
  const auto piece = [&](TensorImpl* const* in, TensorImpl* const* out, int64_t begin, int64_t end) {
    T *x[kMost] = {}, *y[kMost] = {};
    TensorImpl* results[kMost] = {};  // by operand: the call has none for absent ones
    for (size_t k = 0; k + 1 < arity; ++k)
      if (in[k]) results[k] = *out++;
    if (in[arity] && *static_cast<const float*>(in[arity]->data()) != 0) {
      for (size_t k = 0; k + 1 < arity; ++k)
        if (in[k] && in[k]->data() != results[k]->data())
          std::memcpy(at(results[k], begin), at(in[k], begin), static_cast<size_t>((end - begin) * size));
      return;
    }
    if (size == sizeof(T)) {
      for (size_t k = 0; k < arity; ++k) x[k] = memory<T>(in[k]);
      for (size_t k = 0; k + 1 < arity; ++k) y[k] = memory<T>(results[k]);
      return f(x, y, begin, end);
    }
    T tiles[kMost][kTile];
    for (size_t k = 0; k < arity; ++k) x[k] = y[k] = in[k] ? tiles[k] : nullptr;
    for (int64_t first = begin; first < end; first += kTile) {
      const int64_t n = std::min(kTile, end - first);
      for (size_t k = 0; k < arity; ++k)
        if (in[k]) load(at(in[k], first), 1, n, tiles[k]);
      f(x, y, int64_t{0}, n);
      for (size_t k = 0; k + 1 < arity; ++k)
        if (in[k]) store(tiles[k], n, at(results[k], first), 1);
    }
  };
  Steps(call).for_pieces(outputs, piece);
}

template <class Rule, class T>
void step(const Call& call, TensorImpl* const* outputs) {
  const auto factors = ops::factors_of<Rule>(call.attrs_as<typename ops::StepOf<Rule>::Attrs>());
  const OptimizerStep<T, typename Rule::Formula::Factors>& formula = optimizer_table<T>();
  for_elements<T>(call, outputs, [&](T* const* x, T* const* y, int64_t begin, int64_t end) {
    formula.run(factors, x, y, begin, end);
  });
}

template <class Rule>
void by_dtype(const Call& call, TensorImpl* const* outputs) {
  for (const TensorImpl* x : call.operands)
    if (x && !x->is_contiguous()) fail_call(call, Category::bad_argument, "an operand is not contiguous");
  (call.operands[0]->dtype() == kFloat64 ? step<Rule, double> : step<Rule, float>)(call, outputs);
}

template <class... Rule>
void add_steps(KernelTable& table, ops::RuleList<Rule...>) {
  (table.set(&ops::info<ops::StepOf<Rule>>, by_dtype<Rule>), ...);
}

}  // namespace

void add_optimizers_kernels(KernelTable& table) { add_steps(table, ops::OptimizerRules()); }

}  // namespace retrograd::cpu
