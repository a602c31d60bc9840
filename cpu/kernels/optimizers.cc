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
constexpr int64_t kTile = 512;

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

// The values that a step begins with, n from `first` on: the master's where it rounds to the parameter's, else those.
void load_masters(const TensorImpl& param, const TensorImpl& master, int64_t first, int64_t n, float* to) {
  const auto dtype = static_cast<int>(param.dtype());
  const uint16_t* const narrow = static_cast<const uint16_t*>(param.data()) + first;
  const float* const wide = static_cast<const float*>(master.data()) + first;
  uint16_t rounded[kTile];
  convert_table<float>().load[dtype](narrow, 1, n, to);
  convert_table<float>().store[dtype](wide, n, rounded, 1);
  for (int64_t i = 0; i < n; ++i) to[i] = rounded[i] == narrow[i] ? wide[i] : to[i];
}

// One step of a call: its tensors, without numbers.
struct StepTensors {
  static constexpr size_t kMost = ops::OptimizerFormulas::inputs;

  TensorImpl* in[kMost] = {};   // by the rule's operand; null if there is none
  TensorImpl* out[kMost] = {};  // of the same number; the gradient has none
  TensorImpl *master = nullptr, *new_master = nullptr;
  const TensorImpl* found_inf;
  size_t inputs;

  StepTensors(TensorImpl* const* operands, TensorImpl* const* results, size_t inputs)
      : master(operands[inputs - 1]), found_inf(operands[inputs + 1]), inputs(inputs) {
    for (size_t k = 0; k + 1 < inputs; ++k)
      if ((in[k] = operands[k])) out[k] = *results++;
    in[inputs - 1] = operands[inputs];
    if (master) new_master = *results;
  }

  bool is_skipped() const { return found_inf && *static_cast<const float*>(found_inf->data()) != 0; }
  // All values stay.
  void keep(int64_t begin, int64_t end) const {
    const auto copy = [&](const TensorImpl* from, TensorImpl* to) {
      const auto size = static_cast<int64_t>(from ? element_size(from->dtype()) : 0);
      if (from && from->data() != to->data())
        std::memcpy(static_cast<std::byte*>(to->data()) + begin * size,
                    static_cast<const std::byte*>(from->data()) + begin * size,
                    static_cast<size_t>((end - begin) * size));
    };
    for (size_t k = 0; k + 1 < inputs; ++k) copy(in[k], out[k]);
    copy(master, new_master);
  }
};

// The elements of T in place, all others in tiles of T.
template <class T>
class Tiles {
 public:
  explicit Tiles(const StepTensors& step) : step_(step) {}

  /// f(operands, results, 0, number) for tiles of [begin, end).
  template <class F>
  void run(int64_t begin, int64_t end, const F& f) {
    for (int64_t first = begin; first < end; first += kTile) {
      const int64_t n = std::min(kTile, end - first);
      T *x[StepTensors::kMost] = {}, *y[StepTensors::kMost] = {};
      for (size_t k = 0; k < step_.inputs; ++k) {
        x[k] = place(step_.in[k], k, first);
        y[k] = place(step_.out[k], k, first);
        if (x[k] == tiles_[k]) load(k, first, n);
      }
      f(x, y, int64_t{0}, n);
      for (size_t k = 0; k < step_.inputs; ++k)
        if (y[k] == tiles_[k]) store(*step_.out[k], tiles_[k], first, n);
      if (step_.master) std::copy_n(tiles_[0], n, memory<T>(step_.new_master) + first);
    }
  }

 private:
  T* place(TensorImpl* x, size_t k, int64_t first) {
    return !x ? nullptr : x->dtype() == dtype_of<T>() ? memory<T>(x) + first : tiles_[k];
  }
  static std::byte* at(TensorImpl& x, int64_t i) {
    return static_cast<std::byte*>(x.data()) + i * static_cast<int64_t>(element_size(x.dtype()));
  }
  void load(size_t k, int64_t first, int64_t n) {
    if constexpr (std::is_same_v<T, float>)
      if (k == 0 && step_.master) return load_masters(*step_.in[0], *step_.master, first, n, tiles_[0]);
    convert_table<T>().load[static_cast<int>(step_.in[k]->dtype())](at(*step_.in[k], first), 1, n, tiles_[k]);
  }
  static void store(TensorImpl& to, const T* tile, int64_t first, int64_t n) {
    convert_table<T>().store[static_cast<int>(to.dtype())](tile, n, at(to, first), 1);
  }

  const StepTensors& step_;
  T tiles_[StepTensors::kMost][kTile];
};

// f(operands, results, begin, end) for pieces of steps, computed in T.
template <class T, class F>
void for_elements(const Call& call, TensorImpl* const* outputs, const F& f) {
  const auto inputs = static_cast<size_t>(call.op->arity) - 2;
  const ScalarType dtype = call.operands[0]->dtype();
  const bool is_in_place = dtype == dtype_of<T>() && call.operands[inputs]->dtype() == dtype;
  Steps(call).for_pieces(outputs,
                         [&](TensorImpl* const* in, TensorImpl* const* out, int64_t begin, int64_t end) {
                           const StepTensors step(in, out, inputs);
                           if (step.is_skipped()) return step.keep(begin, end);
                           if (!is_in_place) return Tiles<T>(step).run(begin, end, f);
                           T *x[StepTensors::kMost] = {}, *y[StepTensors::kMost] = {};
                           for (size_t k = 0; k < inputs; ++k)
                             x[k] = memory<T>(step.in[k]), y[k] = memory<T>(step.out[k]);
                           f(x, y, begin, end);
                         });
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
