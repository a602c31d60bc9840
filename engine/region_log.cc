// RegionLog: see engine/region_log.h. Start reading at begin(), end() and value_of().
#include "engine/region_log.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engine/autocast.h"
#include "engine/basic_ops.h"
#include "engine/batching.h"
#include "engine/bookkeeping.h"
#include "engine/geometry.h"
#include "engine/recording.h"

namespace retrograd::inline v0 {
namespace {

RefPtr<TensorImpl> alias_of(const TensorImpl& cell) {
  RefPtr<TensorImpl> alias = TensorImpl::make();
  alias->alias(cell);
  return alias;
}

// At the sizes of the recording where they are symbols.
int64_t bytes_of(const TensorImpl& cell) {
  return cell.numel().hint() * static_cast<int64_t>(element_size(cell.dtype()));
}

}  // namespace

RegionLog::RegionLog(Region::Recompute how, bool early_stop, DecideSave decide, SourceLocation where)
    : region_(RefPtr<Region>::adopt(new Region(how, where))),
      outer_(innermost_),
      outer_calls_(outer_ ? outer_->region_->calls_.size() : 0),
      early_stop_(early_stop),
      outer_pair_(default_saved_tensor_hooks()),
      decide_(std::move(decide)) {
  if (Batching::innermost())
    fail(Category::unsupported, "checkpoint",
         "a part that is recomputed cannot be inside of vmap. Hint: put the vmap into that part", where);
  recompute_counters.regions.fetch_add(1, std::memory_order_relaxed);
  pair_.emplace(RefPtr<SavedTensorHooks>(region_.get()), where);
  innermost_ = this;
}

RegionLog::~RegionLog() {
  if (pair_) end_region();
}

void RegionLog::pass(TensorImpl& input) {
  region_->kept_[region_->kept_at(value_of(input))].is_passed = true;
}

void RegionLog::close() {
  end_region();
  for (Region::Kept& kept : region_->kept_)
    if (outer_pair_ && kept.is_passed && kept.slot.value() && !kept.slot.is_stale()) pack(kept, outer_pair_);
}

void RegionLog::end_region() noexcept {
  pair_.reset();
  for (RegionLog** log = &innermost_; *log; log = &(*log)->outer_)
    if (*log == this) {
      *log = outer_;
      break;
    }
  Region& r = *region_;
  if (r.how_ == Region::Recompute::on_demand || !early_stop_) r.run_ = r.started_ = r.calls_.size();
  r.is_open_ = false;
  r.drop_kept();
  r.make_hashes();
}

// What is passed to an inner region is a saved value of the outer one, as of where the inner one begins.
void RegionLog::pack(Region::Kept& kept, const RefPtr<SavedTensorHooks>& pair) const {
  const Region* const region = pair->region();
  RegionLog* const around = region ? of(*region) : nullptr;
  const RefPtr<TensorImpl> cell(kept.slot.value());
  auto packed = std::make_unique<Packed>();
  packed->hooks = pair;
  packed->type = kept.type;
  {
    const NoGradGuard no_grad;
    const detail::NoDefaultHooks no_hooks;
    const CallScope::Suspend users_own_lines;
    const detail::AutocastOff no_casts;
    packed->payload =
        around ? around->save(around->value_of(*cell), nullptr, region_.get(), outer_calls_, outer_calls_)
               : pair->pack(Tensor(cell));
  }
  if (cell->storage() && cell->storage()->version() != kept.slot.version)
    fail(Category::hook_forbidden, "checkpoint", "a pack hook modified a tensor that the region keeps",
         region_->where_);
  note_payload(*packed, cell->storage());
  packed->structure = 0;  // a captured backward calls the unpack: the value is an input of the recomputation
  kept.slot.keep(std::move(packed));
}

RegionLog* RegionLog::of(const Region& region) {
  RegionLog* log = innermost_;
  while (log && log->region_.get() != &region) log = log->outer_;
  return log;
}

// ---- calls ----------------------------------------------------------------------------------------------------------

void RegionLog::begin(const Call& call) {
  for (RegionLog* log = innermost_; log; log = log->outer_) {
    if (log->is_suspended_) continue;
    log->begin_segment_if_due();
    std::vector<std::pair<Value, TensorImpl*>> operands;
    operands.reserve(call.operands.size());
    for (TensorImpl* x : call.operands) operands.emplace_back(x ? log->read(*x) : Region::kAbsent, x);
    log->pending_ = std::move(operands);
  }
}

void RegionLog::end(const Call& call, const Tensor* results) {
  recompute_counters.calls.fetch_add(1, std::memory_order_relaxed);
  for (RegionLog* log = innermost_; log; log = log->outer_)
    if (!log->is_suspended_) log->note_results(call, results);
}

void RegionLog::note_results(const Call& call, const Tensor* results) {
  std::vector<Value> operands;
  operands.reserve(pending_.size());
  for (const auto& [value, cell] : pending_) operands.push_back(value);
  const Value first = add_call(*call.op, operands, call.attrs, static_cast<size_t>(call.outputs), call.where);
  for (int i = 0; i < call.outputs; ++i) {
    if (!results[i].defined()) continue;
    const TensorImpl& cell = results[i].impl();
    values_.insert_or_assign(place_of(cell), first + i);
    if (!call.op->is(Trait::view)) set_root(cell, first + i);
  }
  if (decide_) decide(call, first, results);
}

Region::Value RegionLog::add_call(const OpInfo& op, std::span<const Value> operands, const void* attrs,
                                  size_t results, SourceLocation where) {
  constexpr size_t kAlignment = alignof(std::max_align_t);
  Region& r = *region_;
  const size_t begin = (r.attrs_.size() + kAlignment - 1) / kAlignment * kAlignment;
  if (begin + op.attrs_size > UINT32_MAX || r.operands_.size() + operands.size() > UINT32_MAX)
    fail(Category::unsupported, "checkpoint", "the region has too many calls. Hint: make several regions",
         r.where_);
  const bool has_attrs = attrs && op.attrs_size > 0;
  if (has_attrs) {
    r.attrs_.resize(begin + op.attrs_size);
    std::memcpy(r.attrs_.data() + begin, attrs, op.attrs_size);
  }
  const auto first = static_cast<uint32_t>(r.operands_.size());
  r.operands_.insert(r.operands_.end(), operands.begin(), operands.end());
  const Value first_result = new_values(results);
  r.calls_.push_back({&op, has_attrs ? static_cast<uint32_t>(begin) : Region::kNoAttrs, first,
                      static_cast<uint16_t>(operands.size()), static_cast<uint16_t>(results), first_result,
                      where});
  return first_result;
}

// ---- values ---------------------------------------------------------------------------------------------------------

Region::Value RegionLog::new_values(size_t count) {
  std::vector<int32_t>& kept_of = region_->kept_of_;
  if (kept_of.size() + count > INT32_MAX)
    fail(Category::unsupported, "checkpoint", "the region has too many values. Hint: make several regions",
         region_->where_);
  const auto first = static_cast<Value>(kept_of.size());
  kept_of.resize(kept_of.size() + count, -1);
  if (decide_) {
    is_saved_.resize(kept_of.size());
    segment_of_.resize(kept_of.size(), segment());
  }
  return first;
}

RegionLog::Place RegionLog::place_of(const TensorImpl& cell) {
  Place place{0, 1};
  const auto fold = [&](uint64_t word) {
    place.first = fold_hash(place.first, word);
    place.second = fold_hash(place.second, ~word);
  };
  if (!cell.storage()) {  // of a graph, without a layout
    fold(cell.graph);
    fold(~static_cast<uint64_t>(cell.value_id));
    return place;
  }
  fold(uint64_t{cell.storage()->identity()} << 32 | cell.storage()->version());
  fold(static_cast<uint64_t>(cell.dtype()) << 8 | static_cast<uint64_t>(cell.rank()));
  fold(static_cast<uint64_t>(cell.storage_offset()));
  for (int i = 0; i < cell.rank(); ++i) {
    fold(static_cast<uint64_t>(cell.shape()[i].raw()));
    fold(static_cast<uint64_t>(cell.strides()[i]));
  }
  return place;
}

// The value of an operand of the next call. What an earlier segment made is kept.
Region::Value RegionLog::read(TensorImpl& cell) {
  const Value value = value_of(cell);
  if (decide_ && region_->kept_of_[static_cast<size_t>(value)] < 0 &&
      segment_of_[static_cast<size_t>(value)] != segment()) {
    keep(value, cell);
    bytes_crossing_ += bytes_of(cell);
  }
  note_reader(value, region_->calls_.size());
  return value;
}

Region::Value RegionLog::value_of(TensorImpl& cell) {
  const Place place = place_of(cell);
  if (const auto known = values_.find(place); known != values_.end()) return known->second;
  const Root* const root = cell.storage() ? root_of(cell, cell.storage()->version()) : nullptr;
  Value value = root ? add_part(basic::as_strided_op(), {&root->value, 1}, cell, *root) : new_values(1);
  if (!root) keep(value, cell);
  values_.emplace(place, value);
  return value;
}

// What the memory of `cell` held at a version; null when no call has made that.
RegionLog::Root* RegionLog::root_of(const TensorImpl& cell, uint32_t version) {
  const auto found = roots_.find(cell.storage()->identity());
  if (found == roots_.end() || found->second.version != version) return nullptr;
  return found->second.cell->dtype() == cell.dtype() ? &found->second : nullptr;
}

void RegionLog::set_root(const TensorImpl& cell, Value value) {
  if (!cell.storage()) return;
  if (!cell.is_contiguous()) {
    roots_.erase(cell.storage()->identity());
    return;
  }
  RefPtr<TensorImpl> layout = alias_of(cell);
  layout->set_storage(nullptr);
  roots_.insert_or_assign(cell.storage()->identity(),
                          Root{value, cell.storage()->version(), std::move(layout)});
}

// A call of as_strided or as_strided_scatter, for a part of what a memory holds. It is recomputed, and what it reads
// can be kept if that is still in the memory of `part`.
Region::Value RegionLog::add_part(const OpInfo& op, std::span<const Value> operands, const TensorImpl& part,
                                  const Root& root) {
  const ops::Geometry geometry = ops::geometry_of(part, *root.cell);
  if (decide_ && part.storage()->version() == root.version) {
    const RefPtr<TensorImpl> whole = alias_of(*root.cell);
    whole->set_storage(part.storage());
    const bool crosses = segment_of_[static_cast<size_t>(root.value)] != segment();
    if (crosses && region_->kept_of_[static_cast<size_t>(root.value)] < 0) keep(root.value, *whole);
    keep_if_saved(root.value, *whole);
  }
  for (Value v : operands) note_reader(v, region_->calls_.size());
  return add_call(op, operands, &geometry, 1, region_->where_);
}

// ---- kept tensors ---------------------------------------------------------------------------------------------------

void RegionLog::keep(Value value, TensorImpl& cell, const RefPtr<SavedTensorHooks>& pair) {
  Region& r = *region_;
  r.kept_of_[static_cast<size_t>(value)] = static_cast<int32_t>(r.kept_.size());
  Region::Kept& kept = r.kept_.emplace_back();
  kept.value = value;
  // From where the value was made: holders in that segment find it kept, too.
  kept.first_segment = decide_ ? segment_of_[static_cast<size_t>(value)] : 0;
  kept.last_segment = segment();
  kept.type = cell.type();
  kept.slot.version = cell.storage() ? cell.storage()->version() : 0;
  kept.slot.keep(cell.storage() ? alias_of(cell) : RefPtr<TensorImpl>(&cell));
  if (decide_ && cell.storage()) kept_in_[cell.storage()->identity()].push_back(r.kept_.size() - 1);
  if (pair) pack(kept, pair);
  r.kept_bytes_ += bytes_of(cell);
}

void RegionLog::keep_if_saved(Value value, TensorImpl& cell) {
  const auto v = static_cast<size_t>(value);
  if (decide_ && is_saved_[v] && region_->kept_of_[v] < 0) keep(value, cell);
}

void RegionLog::note_reader(Value value, size_t call) {
  const int32_t at = region_->kept_of_[static_cast<size_t>(value)];
  if (at < 0) return;
  Region::Kept& kept = region_->kept_[static_cast<size_t>(at)];
  kept.first_call = std::min(kept.first_call, call);
  kept.last_segment = segment();
}

// What the policy calls is no part of the region.
SaveDecision RegionLog::ask(const Call* call, std::string_view name, std::span<const Tensor> results) {
  const Recomputing suspended(*region_);
  return decide_(*region_, call, name, results);
}

// `accumulate` may have overwritten its operands.
void RegionLog::decide(const Call& call, Value first, const Tensor* results) {
  const SaveDecision decision = ask(&call, {}, std::span(results, static_cast<size_t>(call.outputs)));
  for (int i = 0; i < call.outputs; ++i) {
    is_saved_[static_cast<size_t>(first + i)] = decision.is_saved;
    if (decision.pair && results[i].defined()) keep(first + i, results[i].impl(), decision.pair);
  }
  if (decision.is_saved || decision.pair || call.op == &ops::accumulate) return;
  for (const auto& [value, cell] : pending_)
    if (cell) keep_if_saved(value, *cell);
}

void RegionLog::name(const Tensor& value, std::string_view name) {
  for (RegionLog* log = innermost_; log; log = log->outer_) {
    if (!log->decide_ || log->is_suspended_) continue;
    const Value v = log->value_of(value.impl());
    const SaveDecision decision = log->ask(nullptr, name, {&value, 1});
    if (log->region_->kept_of_[static_cast<size_t>(v)] >= 0) continue;
    log->is_saved_[static_cast<size_t>(v)] = decision.is_saved;
    if (decision.pair) log->keep(v, value.impl(), decision.pair);
  }
}

// A segment ends when its saved values are as large as all that later segments read of earlier ones: then neither is
// much of the memory that the last segment needs in a backward. Few values are not worth a segment.
void RegionLog::begin_segment_if_due() {
  constexpr size_t kFew = 16;
  if (!decide_ || saves_in_segment_ < kFew || bytes_in_segment_ < bytes_crossing_) return;
  region_->holders_alive_.emplace_back(0);
  saves_in_segment_ = 0;
  bytes_in_segment_ = 0;
}

// ---- writes in place ------------------------------------------------------------------------------------------------

void RegionLog::stands_for(const TensorImpl& stand_in, TensorImpl& self) {
  for (RegionLog* log = innermost_; log; log = log->outer_)
    if (!log->is_suspended_) log->values_.insert_or_assign(place_of(stand_in), log->value_of(self));
}

void RegionLog::before_write(const TensorImpl& self) {
  for (RegionLog* log = innermost_; log; log = log->outer_)
    if (log->decide_ && !log->is_suspended_) log->save_from_write(self);
}

// What a policy keeps stays as it is: the kept tensor becomes a copy.
void RegionLog::save_from_write(const TensorImpl& self) {
  const auto found = kept_in_.find(self.storage()->identity());
  if (found == kept_in_.end()) return;
  const NoGradGuard no_grad;
  for (const size_t i : found->second) {
    Region::Kept& kept = region_->kept_[i];
    if (!kept.slot.value() || kept.slot.is_stale()) continue;
    Tensor copy;
    if (FunctionRecording* const function = recorded_function()) {
      copy = function->present_value(*kept.slot.value());
    } else {
      const Emitter::Scope plain(eager_runner());
      copy = basic::clone(Operand(Tensor(RefPtr<TensorImpl>(kept.slot.value())), region_->where_));
    }
    kept.slot.version = copy.version();
    kept.slot.keep(copy.ref());
  }
  kept_in_.erase(found);
}

void RegionLog::wrote(const TensorImpl& self, TensorImpl& result) {
  for (RegionLog* log = innermost_; log; log = log->outer_)
    if (!log->is_suspended_) log->note_write(self, result);
}

// The memory has the layout of its root, also where the result has another.
void RegionLog::note_write(const TensorImpl& self, TensorImpl& result) {
  const Value value = read(result);
  const uint32_t version = self.storage()->version();
  const auto strides = [](const TensorImpl& x) {
    return std::span(x.strides(), static_cast<size_t>(x.rank()));
  };
  const bool has_layout_of_result = result.storage() && std::ranges::equal(strides(self), strides(result));
  if (has_layout_of_result) values_.insert_or_assign(place_of(self), value);
  Root* const root = root_of(self, version - 1);
  if (!root) {
    if (has_layout_of_result && self.storage_offset() == 0 && self.is_contiguous() &&
        bytes_of(self) == self.storage()->nbytes())
      set_root(self, value);
    return;
  }
  const bool is_all = self.shape().is_same(root->cell->shape()) && self.is_contiguous() &&
                      self.storage_offset() == root->cell->storage_offset();
  const Value parts[] = {root->value, value};
  if (is_all && has_layout_of_result)
    root->value = value;
  else if (!decide_ || region_->kept_of_[static_cast<size_t>(root->value)] >= 0 ||
           segment_of_[static_cast<size_t>(root->value)] == segment())
    root->value = add_part(basic::as_strided_scatter_op(), parts, self, *root);
  else  // overwritten before it could be kept: the memory holds an input from now on
    return void(roots_.erase(self.storage()->identity()));
  root->version = version;
}

// ---- saved values ---------------------------------------------------------------------------------------------------

// What the last call has given is there once that call has run; all else, once it is started.
std::any RegionLog::save(TensorImpl& cell, const Record* owner) {
  const Value value = read(cell);
  keep_if_saved(value, cell);
  const std::vector<Region::Call>& calls = region_->calls_;
  const bool is_last_result = !calls.empty() && value >= calls.back().first_result &&
                              value < calls.back().first_result + calls.back().results;
  if (region_->kept_of_[static_cast<size_t>(value)] < 0) bytes_in_segment_ += bytes_of(cell);
  return save(value, owner, nullptr, is_last_result || calls.empty() ? calls.size() : calls.size() - 1,
              calls.size());
}

std::any RegionLog::save(Value value, const Record* owner, const Region* inner, size_t run, size_t started) {
  Region& r = *region_;
  auto holder = std::make_shared<Region::Holder>(r, value, segment(), owner, inner);
  r.holders_.push_back(holder);
  r.run_ = std::max(r.run_, run);
  r.started_ = std::max(r.started_, started);
  ++saves_in_segment_;
  note_reader(value, SIZE_MAX);
  if (const int32_t at = r.kept_of_[static_cast<size_t>(value)]; at >= 0)
    r.kept_[static_cast<size_t>(at)].is_saved = true;
  return holder;
}

}  // namespace retrograd
