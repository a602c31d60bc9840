// RegionLog: see engine/region.h. Start reading at begin(), end() and value_of().
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engine/basic_ops.h"
#include "engine/geometry.h"
#include "engine/region.h"
#include "engine/tape.h"

namespace retrograd::inline v0 {

RegionLog::RegionLog(bool early_stop, SourceLocation where)
    : region_(RefPtr<Region>::adopt(new Region(where))),
      outer_(innermost_),
      outer_calls_(outer_ ? outer_->region_->calls_.size() : 0),
      early_stop_(early_stop),
      outer_pair_(default_saved_tensor_hooks()) {
  pair_.emplace(RefPtr<SavedTensorHooks>(region_.get()), where);
  innermost_ = this;
}

RegionLog::~RegionLog() {
  if (pair_) end_region();
}

void RegionLog::pass(TensorImpl& input) {
  Region::Input& known = region_->inputs_[region_->input_at(value_of(input))];
  known.is_passed = true;
  known.first_call = SIZE_MAX;
  passed_ = region_->values_;
}

void RegionLog::close() {
  end_region();
  if (outer_pair_) pack_inputs();
}

// Inputs that no recomputation reads are dropped.
void RegionLog::end_region() noexcept {
  pair_.reset();
  innermost_ = outer_;
  Region& r = *region_;
  if (!early_stop_) r.run_ = r.started_ = r.calls_.size();
  r.is_open_ = false;
  if (r.holders_alive() == 0) return r.drop_inputs();
  for (Region::Input& input : r.inputs_)
    if (!input.is_saved && input.first_call >= r.run_) input.slot.clear();
  r.make_hashes();
}

void RegionLog::pack_inputs() {
  for (Region::Input& input : region_->inputs_)
    if (input.is_passed && input.slot.value() && !input.is_stale()) pack_input(input);
}

// An inner region's inputs are saved values of the outer one: as of where the inner one begins.
void RegionLog::pack_input(Region::Input& input) const {
  const Region* const region = outer_pair_->region();
  RegionLog* const around = region ? of(*region) : nullptr;
  const RefPtr<TensorImpl> cell(input.slot.value());
  auto packed = std::make_unique<Packed>();
  packed->hooks = outer_pair_;
  packed->type = input.type;
  {
    const NoGradGuard no_grad;
    const detail::NoDefaultHooks no_hooks;
    const CallScope::Suspend users_own_lines;
    packed->payload = around ? around->save(around->value_of(*cell), nullptr, outer_calls_, outer_calls_)
                             : outer_pair_->pack(Tensor(cell));
  }
  if (cell->storage() && cell->storage()->version() != input.slot.version)
    fail(Category::hook_forbidden, "checkpoint", "a pack hook modified an input of the region in place",
         region_->where_);
  if (const auto* payload = std::any_cast<Tensor>(&packed->payload);
      payload && payload->defined() && payload->impl().storage() == cell->storage())
    packed->aliased = cell->storage();
  input.slot.keep(std::move(packed));
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
    std::vector<Value> operands;
    operands.reserve(call.operands.size());
    for (TensorImpl* x : call.operands) operands.push_back(x ? log->read(*x) : Region::kAbsent);
    log->pending_ = std::move(operands);
  }
}

void RegionLog::end(const Call& call, const Tensor* results) {
  for (RegionLog* log = innermost_; log; log = log->outer_)
    if (!log->is_suspended_) log->note_results(call, results);
}

void RegionLog::note_results(const Call& call, const Tensor* results) {
  Value value = add_call(*call.op, pending_, call.attrs, static_cast<size_t>(call.outputs), call.where);
  for (int i = 0; i < call.outputs; ++i, ++value) {
    if (!results[i].defined()) continue;
    const TensorImpl& cell = results[i].impl();
    values_.insert_or_assign(place_of(cell), value);
    if (!call.op->is(Trait::view)) set_root(cell, value);
  }
}

Region::Value RegionLog::add_call(const OpInfo& op, std::span<const Value> operands, const void* attrs,
                                  size_t results, SourceLocation where) {
  constexpr size_t kAlignment = alignof(std::max_align_t);
  Region& r = *region_;
  const size_t begin = (r.attrs_.size() + kAlignment - 1) / kAlignment * kAlignment;
  if (begin + op.attrs_size > UINT32_MAX || r.operands_.size() + operands.size() > UINT32_MAX ||
      r.values_ > INT32_MAX - static_cast<Value>(results))
    fail(Category::unsupported, "checkpoint", "the region has too many calls. Hint: make several regions",
         r.where_);
  r.attrs_.resize(begin + op.attrs_size);
  if (op.attrs_size) std::memcpy(r.attrs_.data() + begin, attrs, op.attrs_size);
  const auto first = static_cast<uint32_t>(r.operands_.size());
  r.operands_.insert(r.operands_.end(), operands.begin(), operands.end());
  r.calls_.push_back({&op, static_cast<uint32_t>(begin), first, static_cast<uint16_t>(operands.size()),
                      static_cast<uint16_t>(results), r.values_, where});
  r.values_ += static_cast<Value>(results);
  return r.calls_.back().first_result;
}

// ---- values ---------------------------------------------------------------------------------------------------------

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

Region::Value RegionLog::read(TensorImpl& cell) {
  const Value value = value_of(cell);
  if (value < passed_) {
    size_t& first = region_->inputs_[static_cast<size_t>(value)].first_call;
    first = std::min(first, region_->calls_.size());
  }
  return value;
}

Region::Value RegionLog::value_of(TensorImpl& cell) {
  const Place place = place_of(cell);
  if (const auto known = values_.find(place); known != values_.end()) return known->second;
  const Root* const root = cell.storage() ? root_of(cell, cell.storage()->version()) : nullptr;
  const Value value =
      root ? add_part(basic::as_strided_op(), {&root->value, 1}, cell, *root) : add_input(cell);
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
  RefPtr<TensorImpl> layout = TensorImpl::make();
  layout->alias(cell);
  layout->set_storage(nullptr);
  roots_.insert_or_assign(cell.storage()->identity(),
                          Root{value, cell.storage()->version(), std::move(layout)});
}

// A call of as_strided or as_strided_scatter, for a part of what a memory holds.
Region::Value RegionLog::add_part(const OpInfo& op, std::span<const Value> operands, const TensorImpl& part,
                                  const Root& root) {
  const ops::Geometry geometry = ops::geometry_of(part, *root.cell);
  return add_call(op, operands, &geometry, 1, region_->where_);
}

Region::Value RegionLog::add_input(TensorImpl& cell) {
  Region& r = *region_;
  RefPtr<TensorImpl> kept(&cell);
  if (cell.storage()) {
    kept = TensorImpl::make();
    kept->alias(cell);
  }
  Region::Input& input = r.inputs_.emplace_back();
  input.value = r.values_++;
  input.first_call = r.calls_.size();
  input.type = cell.type();
  input.slot.version = cell.storage() ? cell.storage()->version() : 0;
  input.slot.keep(std::move(kept));
  return input.value;
}

// ---- writes in place ------------------------------------------------------------------------------------------------

void RegionLog::stands_for(const TensorImpl& stand_in, TensorImpl& self) {
  for (RegionLog* log = innermost_; log; log = log->outer_)
    if (!log->is_suspended_) log->values_.insert_or_assign(place_of(stand_in), log->value_of(self));
}

void RegionLog::wrote(const TensorImpl& self, TensorImpl& result) {
  for (RegionLog* log = innermost_; log; log = log->outer_)
    if (!log->is_suspended_) log->note_write(self, result);
}

// The memory has the layout of its root, also where the result has another.
void RegionLog::note_write(const TensorImpl& self, TensorImpl& result) {
  const Value value = value_of(result);
  const uint32_t version = self.storage()->version();
  const bool has_layout_of_result =
      std::ranges::equal(std::span(self.strides(), static_cast<size_t>(self.rank())),
                         std::span(result.strides(), static_cast<size_t>(self.rank())));
  if (has_layout_of_result) values_.insert_or_assign(place_of(self), value);
  Root* const root = root_of(self, version - 1);
  if (!root) {
    if (has_layout_of_result && self.storage_offset() == 0 && self.is_contiguous() &&
        self.contiguous_numel() * static_cast<int64_t>(element_size(self.dtype())) ==
            self.storage()->nbytes())
      set_root(self, value);
    return;
  }
  const Value parts[] = {root->value, value};
  const bool is_all = self.shape().is_same(root->cell->shape()) && self.is_contiguous() &&
                      self.storage_offset() == root->cell->storage_offset();
  root->value =
      is_all && has_layout_of_result ? value : add_part(basic::as_strided_scatter_op(), parts, self, *root);
  root->version = version;
}

// ---- saved values ---------------------------------------------------------------------------------------------------

// What the last call has given is there once that call has run; all else, once it is started.
std::any RegionLog::save(TensorImpl& cell, const Record* owner) {
  const Value value = value_of(cell);
  const size_t calls = region_->calls_.size();
  const bool is_last_result = calls > 0 && value >= region_->calls_.back().first_result &&
                              value < region_->calls_.back().first_result + region_->calls_.back().results;
  return save(value, owner, is_last_result || calls == 0 ? calls : calls - 1, calls);
}

std::any RegionLog::save(Value value, const Record* owner, size_t run, size_t started) {
  Region& r = *region_;
  auto holder = std::make_shared<Region::Holder>(r, value, owner);
  r.holders_.push_back(holder);
  r.run_ = std::max(r.run_, run);
  r.started_ = std::max(r.started_, started);
  const auto input = std::ranges::lower_bound(r.inputs_, value, {}, &Region::Input::value);
  if (input != r.inputs_.end() && input->value == value) input->is_saved = true;
  return holder;
}

}  // namespace retrograd
