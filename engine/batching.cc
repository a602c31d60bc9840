// See engine/batching.h; start reading at Batching::emit and Batching::Rules::emit.
#include "engine/batching.h"

#include <algorithm>

#include "engine/autocast.h"
#include "engine/basic_ops.h"
#include "engine/bookkeeping.h"
#include "engine/each_field.h"
#include "engine/recording.h"
#include "engine/region_log.h"
#include "engine/runner.h"

namespace retrograd::inline v0 {
namespace {

constinit std::atomic<uint64_t> next_batch_level{1};

bool is_same(const Scalar& a, const Scalar& b) {
  if (a.is_symbolic() || b.is_symbolic()) return a.is_symbolic() == b.is_symbolic() && a.id() == b.id();
  return a.number().i == b.number().i;
}

// A result that shares the memory of its operand is a view of it, as in make_view().
void note_view(const Call& call, TensorImpl& result) {
  if (!call.op->is(Trait::view) || !call.op->vjp) return;
  TensorImpl& x = *call.operands[0];
  if (result.storage() && result.storage() == x.storage()) note_base(x, result);
}

template <class Test>
bool any_outside(const TensorImpl& cell, const Test& test) {
  for (const TensorImpl* x = &cell; is_batched(*x);) {
    x = x->meta->batched.value.get();
    if (test(*x)) return true;
  }
  return false;
}

}  // namespace

DrawPlace draw_place_of(const Call& call) {
  DrawPlace place;
  ir::for_each_field(*call.op, call.attrs, [&](std::string_view name, Scalar& value) {
    if (name == "seed") place.seed = value;
    if (name == "offset") place.offset = value;
  });
  return place;
}

bool requires_grad_outside(const TensorImpl& cell) {
  return any_outside(cell, [](const TensorImpl& x) { return x.requires_grad; });
}
bool has_tangent_outside(const TensorImpl& cell) {
  return any_outside(cell, [](const TensorImpl& x) { return x.meta && !x.meta->tangents.empty(); });
}

// ---- values -------------------------------------------------------------------------------------------------------

Batching::Batching(Dim size, Randomness randomness)
    : PassThrough("Batching", Emitter::current()),
      level_(next_batch_level.fetch_add(1, std::memory_order_relaxed)),
      size_(size),
      randomness_(randomness),
      outer_(std::exchange(innermost_, this)),
      log_(RegionLog::innermost()),
      pair_(default_saved_tensor_hooks()),
      rules_(*this, below()),
      taper_(rules_),
      no_log_(nullptr),
      scope_(*this) {
  if (pair_) no_pair_.emplace(nullptr);
}

Batching::~Batching() { innermost_ = outer_; }

Tensor Batching::one_of(const Tensor& all) const {
  const TensorImpl& from = all.impl();
  Shape sample = from.shape();
  sample.erase(0);
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(from.dtype(), from.device(), sample);
  cell->graph = kBatchedGraph;
  if (from.has_layout()) {
    for (int i = 0; i < sample.rank(); ++i) cell->set_stride(i, from.stride(i + 1));
    cell->set_offset(from.offset());
    cell->set_storage(from.storage());
  }
  cell->need_meta().batched = {level_, all};
  return Tensor(std::move(cell));
}

Tensor Batching::all_of(const TensorImpl& cell) const {
  return is_batched(cell) && cell.meta->batched.level == level_ ? cell.meta->batched.value : Tensor();
}

Tensor Batching::made_outside(const TensorImpl& cell,
                              const std::function<Tensor(const Tensor& all)>& make) const {
  const Below here(*this);
  return one_of(make(all_of(cell)));
}

Batching& Batching::of(const TensorImpl& cell, std::string_view op, SourceLocation where) {
  for (Batching* b = innermost_; b; b = b->outer_)
    if (b->level_ == cell.meta->batched.level) return *b;
  fail(Category::bad_argument, op, no_data_text(cell), where);
}

// ---- calls --------------------------------------------------------------------------------------------------------

bool Batching::is_batched_call(const Call& call) const {
  const auto is_ours = [this](const TensorImpl* x) {
    return x && is_batched(*x) && x->meta->batched.level == level_;
  };
  return std::ranges::any_of(call.operands, is_ours) || draws_differ(call);
}

void Batching::emit(const Call& call, Tensor* results) {
  const bool unpacks = call.op == &ops::unpack && !is_symbolic();  // what a pair of inside has packed
  if (unpacks || is_batched_call(call)) return taper_.emit(call, results);
  const Below here(*this);
  below().emit(call, results);
}

// What is opened inside of the function is about calls of one sample; what was open before, about those on batches.
Batching::Below::Below(const Batching& of) : scope_(of.below()), log_(of.log_) {
  if (default_saved_tensor_hooks() != of.pair_) pair_.emplace(of.pair_);
}

void Batching::Rules::emit(const Call& call, Tensor* results) {
  const OpInfo& op = *call.op;
  if (op.run_on_host && op.is(Trait::effect)) return run_user_code(call, results);
  if (!of_.is_batched_call(call)) {  // a cast that the Taper makes for autocast
    const Below here(of_);
    return below().emit(call, results);
  }
  check_operands(call, false);
  TensorType types[kMaxOutputs];
  {
    RefPtr<TensorImpl> cells[kMaxOutputs];
    TensorImpl* outputs[kMaxOutputs];
    for (int i = 0; i < call.outputs; ++i) {
      cells[i] = TensorImpl::make();
      outputs[i] = cells[i].get();
    }
    op.infer(call, outputs);
    for (int i = 0; i < call.outputs; ++i) types[i] = cells[i]->type();
  }
  BatchContext context(of_, call, {types, static_cast<size_t>(call.outputs)}, results);
  {
    const Below here(of_);
    const detail::AutocastOff no_casts;
    op.batch ? op.batch(context) : ops::batch_by_loop(context);
  }
  for (int i = 0; i < call.outputs; ++i) note_view(call, results[i].impl());
}

// Hooks and functions of the user see one sample, and so do the bookkeeping ops, which only move values.
void Batching::Rules::run_user_code(const Call& call, Tensor* results) {
  const auto is_from_outside = [this](const TensorImpl& leaf) {
    return !is_batched(leaf) || leaf.meta->batched.level < of_.level();
  };
  if (call.op == &ops::accumulate_grad && is_from_outside(*call.attrs_as<AccumulateGradAttrs>().leaf))
    fail_call(call, Category::unsupported,
              "vmap: the gradient of each sample is accumulated into one leaf from outside. Hint: "
              "autograd::grad, or func::grad of a function of that tensor");
  const bool is_function = !call.op->is(Trait::bookkeeping);
  if (is_symbolic() && (is_function || call.op == &ops::hook || call.op == &ops::pack))
    refuse_recording(call.op->name, "code of the user runs inside of vmap", call.where);
  const auto is_differentiated = [](const TensorImpl* x) {
    return x && ((GradMode::is_enabled() && requires_grad_outside(*x)) || has_tangent_outside(*x));
  };
  if (is_function && std::ranges::any_of(call.operands, is_differentiated))
    fail_call(call, Category::unsupported,
              "vmap: a user-defined function is differentiated outside of vmap. Hint: differentiate inside, "
              "vmap(grad(f)), or write it as a function of tensors");
  call.op->run_on_host(call, results);
}

// ---- random numbers -------------------------------------------------------------------------------------------------

bool Batching::draws_differ(const Call& call) const {
  if (drawn_.empty() || !call.op->is(Trait::random)) return false;
  const DrawPlace place = draw_place_of(call);
  const auto is_here = [&](const DrawPlace& d) {
    return is_same(d.seed, place.seed) && is_same(d.offset, place.offset);
  };
  return std::any_of(drawn_.rbegin(), drawn_.rend(), is_here);  // usually one of the last
}

int64_t Batching::positions_of(const Batching* innermost) {
  Dim positions = 1;
  each_that_differs(innermost,
                    [&](const Batching& b) { positions *= Dim(std::max<int64_t>(b.size_.hint(), 1)); });
  return positions.raw();
}

uint64_t Batching::positions_to_draw(std::string_view op, SourceLocation where) {
  for (const Batching* b = innermost_; b; b = b->outer_)
    if (b->randomness_ == Randomness::error)
      fail(Category::unsupported, op,
           "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
           "'different' randomness flags on vmap or perform the randomness operation out of vmap",
           where);
  return static_cast<uint64_t>(positions_of(innermost_));
}

void Batching::note_draw(const DrawPlace& place) {
  each_that_differs(innermost_, [&](Batching& b) { b.drawn_.push_back(place); });
}

DrawPlace Batching::draw_of_sample(const DrawPlace& all, int64_t k) const {
  const DrawPlace place{all.seed, all.offset + Scalar(k * positions_of(outer_))};
  each_that_differs(outer_, [&](Batching& b) { b.drawn_.push_back(place); });
  return place;
}

// ---- writes in place ------------------------------------------------------------------------------------------------

Tensor Batching::present_value(const TensorImpl& self) const {
  return made_outside(self, [](const Tensor& all) { return basic::clone(all); });
}

void Batching::write(const TensorImpl& self, const Tensor& result, SourceLocation where) const {
  const Tensor value = all_of(result.impl());
  const Below here(*this);
  all_of(self).copy_(value.defined() ? value : result, where);
}

// ---- the view of a rule ---------------------------------------------------------------------------------------------

Shape BatchContext::with_batch(const Shape& sample) const {
  Shape shape = sample;
  shape.insert(0, size());
  return shape;
}

Tensor BatchContext::value(int i) const {
  if (!has_operand(i)) return {};
  const Tensor batched = batching_.all_of(*operand(i));
  return batched.defined() ? batched : Tensor(RefPtr<TensorImpl>(operand(i)));
}

Tensor BatchContext::all(int i) const {
  const Tensor x = value(i);
  return !x.defined() || is_batched(i) ? x : basic::expand(Operand(x, where()), with_batch(shape(i)));
}

Tensors BatchContext::run(std::span<const Tensor> operands, void* attrs) const {
  std::vector<TensorImpl*> cells;
  for (const Tensor& x : operands) cells.push_back(x.get());
  Call call = call_;
  call.operands = cells;
  if (attrs) call.attrs = attrs;
  Tensors results(static_cast<size_t>(call.outputs));
  Emitter::current().emit(call, results.data());
  return results;
}

static bool is_batch_of(const Shape& all, Dim samples, const Shape& sample) {
  if (all.rank() != sample.rank() + 1 || all[0].hint() != samples.hint()) return false;
  for (int i = 0; i < sample.rank(); ++i)
    if (all[i + 1].hint() != sample[i].hint()) return false;
  return true;
}

void BatchContext::give(int i, const Tensor& all) {
  const TensorType& type = out_type(i);
  RG_ASSERT(all.dtype() == type.dtype && is_batch_of(all.impl().shape(), size(), type.shape));
  results_[i] = batching_.one_of(all);
}

}  // namespace retrograd
