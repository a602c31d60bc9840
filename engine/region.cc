// Region: see engine/region.h. Recomputation runs the calls again; start reading there.
#include "engine/region.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/bookkeeping.h"
#include "engine/driver.h"
#include "engine/hash.h"

namespace retrograd::inline v0 {

// One run of the calls. A value is dropped after its last use.
class Recomputation {
 public:
  Recomputation(Region& region, Emitter& emitter)
      : region_(region),
        emitter_(emitter),
        values_(static_cast<size_t>(region.values_)),
        open_log_(region),
        uses_(values_.size()) {}

  /// The values of these holders.
  Tensors run(const Region::Holders& holders) {
    const NoGradGuard no_grad;
    if (Region::Observer::current && !emitter_.is_symbolic()) Region::Observer::current->recomputes(region_);
    find_needed(holders);
    for (const auto& holder : holders) ++uses_[at(holder->value)];
    for (size_t i = 0; i < region_.run_; ++i)
      if (runs(i))
        for (Value v : operands(region_.calls_[i]))
          if (v != Region::kAbsent) ++uses_[at(v)];
    for (size_t i = 0; i < region_.run_; ++i)
      if (runs(i)) run_call(i);
    Tensors results;
    for (const auto& holder : holders) {
      results.push_back(value(holder->value));
      drop_use(holder->value);
    }
    return results;
  }

 private:
  using Value = Region::Value;
  static size_t at(Value v) { return static_cast<size_t>(v); }
  std::span<const Value> operands(const Region::Call& call) const {
    return {region_.operands_.data() + call.first_operand, call.operands};
  }

  // All calls run, as in the forward pass, unless an input is out of date: then those that the holders need.
  void find_needed(const Region::Holders& holders) {
    if (std::ranges::none_of(region_.inputs_, &Region::Input::is_stale)) return;
    needed_.resize(values_.size());
    for (const auto& holder : holders) needed_[at(holder->value)] = true;
    for (size_t i = region_.run_; i-- > 0;)
      if (runs(i))
        for (Value v : operands(region_.calls_[i]))
          if (v != Region::kAbsent) needed_[at(v)] = true;
  }
  bool runs(size_t i) const {
    if (needed_.empty()) return true;
    const Region::Call& call = region_.calls_[i];
    for (Value v = call.first_result; v < call.first_result + call.results; ++v)
      if (needed_[at(v)]) return true;
    return false;
  }

  const Tensor& value(Value v) {
    Tensor& value = values_[at(v)];
    if (!value.defined()) {
      UnpackAttrs attrs{{}, nullptr, static_cast<int>(region_.input_at(v)), &region_};
      emitter_.emit({&ops::unpack, {}, &attrs, region_.where_, 1}, &value);
    }
    return value;
  }
  void drop_use(Value v) {
    if (--uses_[at(v)] == 0) values_[at(v)].reset();
  }

  void run_call(size_t i) {
    const Region::Call& call = region_.calls_[i];
    std::vector<TensorImpl*> cells;
    cells.reserve(call.operands);
    for (Value v : operands(call)) cells.push_back(v == Region::kAbsent ? nullptr : value(v).get());
    void* const attrs = const_cast<void*>(emitter_.attrs_of(region_, i));
    Tensor* const results = values_.data() + call.first_result;
    emitter_.emit({call.op, cells, attrs, call.where, call.results}, results);
    for (Value v : operands(call))
      if (v != Region::kAbsent) drop_use(v);
    for (Value v = call.first_result; v < call.first_result + call.results; ++v) {
      Tensor& result = values_[at(v)];
      if (result.defined()) open_log_.gave(result.impl(), v);
      if (uses_[at(v)] == 0) result.reset();
    }
  }

  Region& region_;
  Emitter& emitter_;
  Tensors values_;
  RegionLog::Recomputing open_log_;
  std::vector<uint32_t> uses_;  // to come
  std::vector<bool> needed_;    // empty: all
};

std::any Region::save(TensorImpl& value, const Record* owner) {
  RegionLog* const log = RegionLog::of(*this);
  if (log && !log->is_suspended_) return log->save(value, owner);
  RefPtr<TensorImpl> kept = TensorImpl::make();
  kept->alias(value);
  return Tensor(std::move(kept));
}

std::vector<const Record*> Region::owners() const {
  std::vector<const Record*> owners;
  for (const std::shared_ptr<Holder>& holder : live_holders()) owners.push_back(holder->owner);
  return owners;
}

Region::Value Region::value_of(const std::any& payload) {
  const auto* holder = std::any_cast<std::shared_ptr<Holder>>(&payload);
  return holder ? (*holder)->value : kAbsent;
}

bool Region::Input::is_stale() const {
  const Storage* memory = slot.packed()  ? slot.packed()->aliased.get()
                          : slot.value() ? slot.value()->storage().get()
                                         : nullptr;
  return memory && memory->version() != slot.version;
}

void Region::drop_inputs() noexcept {
  for (Input& input : inputs_) input.slot.clear();
}

void Region::make_hashes() noexcept {
  Hashes hashes;
  for (const Input& input : inputs_) {
    if (!input.slot.value() && !input.slot.packed()) continue;
    hashes.structure = fold_hash(hashes.structure, static_cast<uint64_t>(input.value));
    hashes.add(input.type);
  }
  for (const Call& call : std::span(calls_).first(run_)) {
    hashes.structure = fold_hash(hashes.structure, reinterpret_cast<uintptr_t>(call.op));
    hashes.structure = fold_hash(hashes.structure, uint64_t{call.operands} << 16 | call.results);
    for (uint16_t i = 0; i < call.operands; ++i)
      hashes.structure =
          fold_hash(hashes.structure, static_cast<uint64_t>(operands_[call.first_operand + i]));
    hashes.add_attrs(*call.op, const_cast<void*>(attrs(call)));
  }
  structure_hash_ = hashes.structure;
  size_hash_ = hashes.sizes;
}

Tensor Region::Holder::take(uint64_t backward) {
  const auto found = std::ranges::find(recomputed, backward, [](const auto& r) { return r.first; });
  if (found == recomputed.end()) return {};
  Tensor value = std::move(found->second);
  recomputed.erase(found);
  return value;
}

Region::Holders Region::live_holders() const {
  Holders live;
  for (const std::weak_ptr<Holder>& place : holders_)
    if (std::shared_ptr<Holder> holder = place.lock()) live.push_back(std::move(holder));
  return live;
}

Tensor Region::unpack(const std::any& payload) {
  if (const Tensor* as_it_is = std::any_cast<Tensor>(&payload)) return *as_it_is;
  const RefPtr<Region> kept(this);  // what runs may release the slot
  const std::shared_ptr<Holder> holder = std::any_cast<const std::shared_ptr<Holder>&>(payload);
  CurrentBackward* const backward = CurrentBackward::innermost();
  const uint64_t id = backward ? backward->id() : 0;
  Holders wanted;
  {
    const std::lock_guard lock(mutex_);
    if (Tensor value = holder->take(id); value.defined()) return value;
    // A value that was taken before, in this backward, is recomputed alone.
    if (backward && std::ranges::count(recomputed_in_, id) == 0) wanted = live_holders();
  }
  if (wanted.empty()) wanted.push_back(holder);
  Tensors values = Recomputation(*this, Emitter::current()).run(wanted);
  if (wanted.size() == 1 && wanted.front() == holder) return std::move(values.front());
  if (backward) backward->add_region(kept);
  const std::lock_guard lock(mutex_);
  recomputed_in_.push_back(id);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i]->recomputed.emplace_back(id, std::move(values[i]));
  return holder->take(id);
}

void Region::forget(uint64_t backward) {
  Tensors gone;  // dropped without the lock
  const std::lock_guard lock(mutex_);
  std::erase(recomputed_in_, backward);
  for (const std::shared_ptr<Holder>& holder : live_holders()) gone.push_back(holder->take(backward));
}

size_t Region::input_at(Value value) const {
  return static_cast<size_t>(std::ranges::lower_bound(inputs_, value, {}, &Input::value) - inputs_.begin());
}

Tensor Region::input(size_t i) const {
  const Input& input = inputs_[i];
  const Packed* const packed = input.slot.packed();
  if (input.is_stale()) {
    const Storage& memory = packed ? *packed->aliased : *input.slot.value()->storage();
    const std::string by = memory.written_at() ? " at " + to_string(memory.written_at()) : "";
    std::string_view reader = "the region";
    SourceLocation at = where_;
    if (input.first_call < calls_.size())
      reader = calls_[input.first_call].op->name, at = calls_[input.first_call].where;
    fail(
        Category::version_mismatch, "checkpoint",
        fmt::format("a tensor needed for the recomputation was modified in place{}: {}, read by {} at {}, is "
                    "at version {}, was at version {}. Hint: clone it before writing to it",
                    by, to_string(input.type), reader, to_string(at), memory.version(), input.slot.version),
        where_);
  }
  if (!packed) return Tensor(RefPtr<TensorImpl>(input.slot.value()));
  const NoGradGuard no_grad;
  const detail::NoDefaultHooks no_hooks;
  const CallScope::Suspend users_own_lines;
  Tensor value = packed->hooks->unpack(packed->payload);
  if (!value.defined() || (!packed->hooks->region() && !(value.impl().type() == input.type)))
    fail(Category::hook_bad_result, "checkpoint",
         fmt::format("an unpack hook gave {} for an input of the region, which was {}", describe(value),
                     to_string(input.type)),
         where_);
  return value;
}

}  // namespace retrograd
