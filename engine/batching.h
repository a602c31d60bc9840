// Batching: the emitter of vmap. It runs a function that is written for one sample on all samples of a batch at once.
//
// A batched value is a cell with the type of one sample and no data. Its annotation (AutogradMeta::batched) is the
// level, and the tensor that has all samples, with the batch dim in front. Like every annotation it goes along when a
// cell is saved in a slot or aliased. The cell has the strides and the storage of that tensor, as if it were its first
// sample: so it has a layout, and one version counter counts the writes to both. TensorImpl::graph is kBatchedGraph, by
// which everything that reads data refuses it.
//
//   emit(call)   no operand of this level: handed on, and the results are ordinary
//                else: a Taper of its own records the call of one sample (the derivatives inside of vmap); under it, the
//                op's batching rule (OpInfo::batch) emits calls on whole batches into the emitter below (the derivatives
//                outside of vmap), and the results become cells of this level
//
// Dual over Batching is vmap(jvp), Batching over Dual jvp(vmap); Batching over Batching is vmap of vmap; a
// FunctionRecorder below records the calls on whole batches. A rule checks nothing: the type rule of the op has seen
// the operands of one sample before. An op without a rule runs once for each sample, which is noted (looped_ops).
// Limits: one dim of kMaxRank is the batch dim. User code of hooks and functions runs on values of one sample; a
// recorded function that does so runs eagerly.
#pragma once

#include <functional>
#include <optional>

#include "engine/region_log.h"
#include "engine/taper.h"

#pragma GCC visibility push(default)
namespace retrograd::inline v0 {

/// What random numbers drawn inside of vmap are: refused, the same for all samples, or different for each.
enum class Randomness : uint8_t { error, same, different };

/// A position in the random stream that was drawn inside of vmap.
struct DrawPlace {
  Scalar seed, offset;
};

/// That of a call that draws.
DrawPlace draw_place_of(const Call& call);

class Batching final : public PassThrough {
 public:
  /// Stands on the thread's current emitter, from now until it ends.
  Batching(Dim size, Randomness randomness);
  ~Batching();
  Batching(const Batching&) = delete;
  void emit(const Call& call, Tensor* results) override;

  uint64_t level() const { return level_; }
  Dim size() const { return size_; }
  /// A cell of this level for `all`, whose dim 0 is the batch dim.
  Tensor one_of(const Tensor& all) const;
  /// The tensor that a cell of this level stands for; undefined for any other cell.
  Tensor all_of(const TensorImpl& cell) const;
  /// A cell of this level for make(all_of(cell)), which is called outside of this vmap.
  Tensor made_outside(const TensorImpl& cell, const std::function<Tensor(const Tensor& all)>& make) const;
  /// Whether a call draws numbers that are to differ between samples.
  bool draws_differ(const Call& call) const;

  /// The innermost one of this thread; null outside of vmap.
  static Batching* innermost() { return innermost_; }
  /// That of a batched cell. Error(bad_argument) when its vmap is over.
  static Batching& of(const TensorImpl& cell, std::string_view op, SourceLocation where);
  /// Called before `op` draws: the number of positions to reserve in the random stream. Error(unsupported) where
  /// randomness is an error.
  static uint64_t positions_to_draw(std::string_view op, SourceLocation where);
  static void note_draw(const DrawPlace& place);
  /// Where sample k takes its numbers, of a draw at `all`: behind those of the samples before it, each of which has a
  /// position for every sample of the levels around that differ. The levels around find the place, too.
  DrawPlace draw_of_sample(const DrawPlace& all, int64_t k) const;

  // Writes in place (engine/inplace.cc).
  /// A cell with the present value of `self` that later writes do not change.
  Tensor present_value(const TensorImpl& self) const;
  void write(const TensorImpl& self, const Tensor& result, SourceLocation where) const;

 private:
  using PairScope = OpenScopes<RefPtr<SavedTensorHooks>>::Guard;

  // While it exists, calls are emitted into the emitter below, under the scopes that were open before the function.
  class Below {
   public:
    explicit Below(const Batching& of);

   private:
    Emitter::Scope scope_;
    RegionLog::Redirect log_;
    std::optional<PairScope> pair_;
  };

  // Under the Taper: the calls that it has seen.
  class Rules final : public PassThrough {
   public:
    explicit Rules(Batching& of, Emitter& below) : PassThrough("Rules", below), of_(of) {}
    void emit(const Call& call, Tensor* results) override;

   private:
    void run_user_code(const Call& call, Tensor* results);
    Batching& of_;
  };

  bool is_batched_call(const Call& call) const;
  // Positions of a draw: one for each sample of these levels.
  static int64_t positions_of(const Batching* innermost);
  // Calls f(level) for `innermost` and those around it whose samples draw different numbers.
  template <class Level, class F>
  static void each_that_differs(Level* innermost, const F& f) {
    for (Level* b = innermost; b; b = b->outer_)
      if (b->randomness_ == Randomness::different) f(*b);
  }

  const uint64_t level_;
  const Dim size_;
  const Randomness randomness_;
  Batching* const outer_;
  RegionLog* const log_;  // open before
  const RefPtr<SavedTensorHooks> pair_;
  Rules rules_;
  Taper taper_;
  std::vector<DrawPlace> drawn_;  // here: they differ between samples
  RegionLog::Redirect no_log_;
  std::optional<PairScope> no_pair_;
  Emitter::Scope scope_;
  static inline constinit thread_local Batching* innermost_ = nullptr;
};

/// A call whose operands are of one sample, as its op's batching rule sees it. While a rule runs, the emitter below the
/// Batching is the current one.
class BatchContext {
 public:
  BatchContext(const Batching& batching, const Call& call, std::span<const TensorType> types, Tensor* results)
      : batching_(batching), call_(call), types_(types), results_(results) {}

  const Call& call() const { return call_; }
  template <class A>
  const A& attrs() const {
    return call_.attrs_as<A>();
  }
  SourceLocation where() const { return call_.where; }
  int operands() const { return static_cast<int>(call_.operands.size()); }
  bool has_operand(int i) const { return operand(i) != nullptr; }
  bool is_batched(int i) const { return has_operand(i) && batching_.all_of(*operand(i)).defined(); }
  /// Of one sample.
  const Shape& shape(int i) const { return operand(i)->shape(); }
  int rank(int i) const { return shape(i).rank(); }
  const TensorType& out_type(int i = 0) const { return types_[static_cast<size_t>(i)]; }

  /// The number of samples; a shape of one sample with the batch dim in front.
  Dim size() const { return batching_.size(); }
  Shape with_batch(const Shape& sample) const;
  /// Operand i: all samples of a batched one, else the tensor itself; undefined if it is missing.
  Tensor value(int i) const;
  /// All samples of operand i: a view that repeats one that is not batched.
  Tensor all(int i) const;
  bool draws_differ() const { return batching_.draws_differ(call_); }
  /// See Batching.
  DrawPlace draw_of_sample(const DrawPlace& all, int64_t k) const { return batching_.draw_of_sample(all, k); }

  /// The call's op on other operands, with other attributes; null: with those of the call.
  Tensors run(std::span<const Tensor> operands, void* attrs = nullptr) const;
  /// Result i for all samples; or the same for each.
  void give(int i, const Tensor& all);
  void give_same(int i, Tensor value) { results_[i] = std::move(value); }
  void give(const Tensors& all) {
    for (size_t i = 0; i < all.size(); ++i) give(static_cast<int>(i), all[i]);
  }

 private:
  TensorImpl* operand(int i) const { return call_.operands[static_cast<size_t>(i)]; }

  const Batching& batching_;
  const Call& call_;
  std::span<const TensorType> types_;
  Tensor* results_;
};

/// Whether vmap shows the value without its batch dim.
inline bool is_batched(const TensorImpl& cell) { return cell.graph == kBatchedGraph; }
/// Whether a tensor that such a value stands for, at any level, requires a gradient, or carries a tangent: outside of
/// vmap.
bool requires_grad_outside(const TensorImpl& cell);
bool has_tangent_outside(const TensorImpl& cell);

/// What code of the user runs into that is one call for those around it: eager execution, of the samples of a vmap.
inline Emitter& plain_emitter() { return Batching::innermost() ? *Batching::innermost() : eager_emitter(); }

}  // namespace retrograd
#pragma GCC visibility pop
