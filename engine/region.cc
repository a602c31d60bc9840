// Region: see engine/region.h. Start reading at Region::unpack() and Recomputation.
#include "engine/region.h"

#include <algorithm>
#include <queue>

#include <fmt/format.h>

#include "engine/bookkeeping.h"
#include "engine/driver.h"
#include "engine/hash.h"
#include "engine/region_log.h"

namespace retrograd::inline v0 {

// The calls that the holders of a region need again in one backward. Each runs once; a value is dropped after its last
// use, by a call or a holder.
class Recomputation {
  using Value = Region::Value;

 public:
  Recomputation(Region& region, const Region::Holders& holders)
      : region_(region),
        values_(region.kept_of_.size()),
        uses_(values_.size()),
        call_of_(values_.size(), kNoCall),
        state_(region.calls_.size(), State::not_needed) {
    for (size_t i = 0; i < region.calls_.size(); ++i)
      for (uint16_t k = 0; k < region.calls_[i].results; ++k)
        call_of_[at(region.calls_[i].first_result + k)] = static_cast<uint32_t>(i);
    find_needed(holders);
  }

  /// Whether a holder that has not been served stands for the value.
  bool has(Value value) const { return at(value) < uses_.size() && uses_[at(value)] > 0; }

  /// The value, for one holder.
  Tensor take(Value value) {
    const NoGradGuard no_grad;
    const RegionLog::Recomputing open_log(region_);
    Emitter& emitter = Emitter::current();
    if (region_.how() == Region::Recompute::at_once) {
      for (size_t i = 0; i < state_.size(); ++i)  // an open region may have grown since
        if (state_[i] == State::to_run) run(i, emitter, open_log);
    } else {
      run_towards(value, emitter, open_log);
    }
    Tensor result = get(value, emitter);
    drop_use(value);
    return result;
  }

 private:
  enum class State : uint8_t { not_needed, to_run, done };
  static constexpr uint32_t kNoCall = ~uint32_t{0};
  static size_t at(Value v) { return static_cast<size_t>(v); }
  bool is_kept(Value v) const { return region_.kept_of_[at(v)] >= 0; }

  // At once, all calls run, as in the forward pass, unless a kept tensor is out of date: then those that are needed.
  void find_needed(const Region::Holders& holders) {
    std::vector<bool> needed(values_.size());
    for (const auto& holder : holders) {
      needed[at(holder->value)] = true;
      ++uses_[at(holder->value)];
    }
    const bool all =
        region_.how() == Region::Recompute::at_once &&
        std::ranges::none_of(region_.kept_, [](const Region::Kept& k) { return k.slot.is_stale(); });
    for (size_t i = region_.run_; i-- > 0;) {
      const Region::Call& call = region_.calls_[i];
      bool is_needed = all;
      for (Value v = call.first_result; v < call.first_result + call.results; ++v)
        is_needed |= needed[at(v)] && !is_kept(v);
      if (!is_needed) continue;
      state_[i] = State::to_run;
      for (Value v : region_.operands(call))
        if (v != Region::kAbsent) needed[at(v)] = true, ++uses_[at(v)];
    }
  }

  // Runs the calls that lead to a value, in order.
  void run_towards(Value value, Emitter& emitter, const RegionLog::Recomputing& open_log) {
    std::priority_queue<uint32_t> open;
    std::vector<uint32_t> calls;
    const auto need = [&](Value v) {
      if (v == Region::kAbsent || is_kept(v) || state_[call_of_[at(v)]] != State::to_run) return;
      open.push(call_of_[at(v)]);
    };
    for (need(value); !open.empty();) {
      const uint32_t call = open.top();
      open.pop();
      if (!calls.empty() && calls.back() == call) continue;
      calls.push_back(call);
      for (Value v : region_.operands(region_.calls_[call])) need(v);
    }
    for (size_t i = calls.size(); i-- > 0;) run(calls[i], emitter, open_log);
  }

  Tensor get(Value v, Emitter& emitter) {
    Tensor& value = values_[at(v)];
    if (!value.defined()) {
      UnpackAttrs attrs{{}, nullptr, region_.kept_of_[at(v)], &region_};
      emitter.emit({&ops::unpack, {}, &attrs, region_.where_, 1}, &value);
    }
    return value;
  }
  void drop_use(Value v) {
    if (--uses_[at(v)] == 0) values_[at(v)].reset();
  }

  void run(size_t i, Emitter& emitter, const RegionLog::Recomputing& open_log) {
    const Region::Call& call = region_.calls_[i];
    std::vector<TensorImpl*> cells;
    cells.reserve(call.operands);
    for (Value v : region_.operands(call))
      cells.push_back(v == Region::kAbsent ? nullptr : (get(v, emitter), values_[at(v)].get()));
    void* const attrs = const_cast<void*>(emitter.attrs_of(region_, i));
    Tensors results(call.results);
    emitter.emit({call.op, cells, attrs, call.where, call.results}, results.data());
    state_[i] = State::done;
    if (!emitter.is_symbolic()) recompute_counters.recomputed.fetch_add(1, std::memory_order_relaxed);
    if (Region::Observer::current && !emitter.is_symbolic()) Region::Observer::current->runs(call);
    for (Value v : region_.operands(call))
      if (v != Region::kAbsent) drop_use(v);
    for (uint16_t k = 0; k < call.results; ++k) {
      const Value v = call.first_result + k;
      if (results[k].defined()) open_log.gave(results[k].impl(), v);
      if (uses_[at(v)] > 0 && !is_kept(v)) values_[at(v)] = std::move(results[k]);
    }
  }

  Region& region_;
  Tensors values_;
  std::vector<uint32_t> uses_;  // to come
  std::vector<uint32_t> call_of_;
  std::vector<State> state_;  // of each call
};

// ---- holders --------------------------------------------------------------------------------------------------------

Region::Region(Recompute how, SourceLocation where) : where_(where), how_(how) {
  holders_alive_.emplace_back(0);
}
Region::~Region() = default;

Region::Holder::Holder(Region& r, Value v, uint32_t s, const Record* o, const Region* i)
    : region(r), value(v), segment(s), owner(o), inner(i) {
  ++region.holders_alive_[segment];
}
Region::Holder::~Holder() {
  if (--region.holders_alive_[segment] == 0 && !region.is_open_) region.drop_kept();
}

std::any Region::save(TensorImpl& value, const Record* owner) {
  RegionLog* const log = RegionLog::of(*this);
  if (log && !log->is_suspended_) return log->save(value, owner);
  RefPtr<TensorImpl> kept = TensorImpl::make();
  kept->alias(value);
  return Tensor(std::move(kept));
}

Region::Value Region::value_of(const std::any& payload) {
  const auto* holder = std::any_cast<std::shared_ptr<Holder>>(&payload);
  return holder ? (*holder)->value : kAbsent;
}

Region::Holders Region::live_holders() const {
  Holders live;
  for (const std::weak_ptr<Holder>& place : holders_)
    if (std::shared_ptr<Holder> holder = place.lock()) live.push_back(std::move(holder));
  return live;
}

std::vector<const Record*> Region::owners() const {
  std::vector<const Record*> owners;
  std::vector<const Region*> regions{this};
  for (size_t k = 0; k < regions.size(); ++k)
    for (const std::shared_ptr<Holder>& holder : regions[k]->live_holders()) {
      if (holder->owner) owners.push_back(holder->owner);
      if (holder->inner && std::ranges::count(regions, holder->inner) == 0) regions.push_back(holder->inner);
    }
  return owners;
}

// Their numbers are none of a backward.
RecomputeGroup::RecomputeGroup(SourceLocation where)
    : id_([] {
        static constinit std::atomic<uint64_t> count{uint64_t{1} << 63};
        return ++count;
      }()) {
  if (current) fail(Category::bad_argument, "GraphExecGroup", "a group is open on this thread", where);
  current = this;
}

RecomputeGroup::~RecomputeGroup() {
  current = nullptr;
  for (const RefPtr<Region>& region : regions_) region->forget(id_);
}

// A holder whose value was taken before, in this backward or group, is served alone.
Tensor Region::unpack(const std::any& payload) {
  if (const Tensor* as_it_is = std::any_cast<Tensor>(&payload)) return *as_it_is;
  const RefPtr<Region> alive(this);  // what runs may release the slot
  const std::shared_ptr<Holder> holder = std::any_cast<const std::shared_ptr<Holder>&>(payload);
  CurrentBackward* const backward = CurrentBackward::innermost();
  if (!backward) return Recomputation(*this, {holder}).take(holder->value);
  RecomputeGroup* const group = Emitter::current().is_symbolic() ? nullptr : RecomputeGroup::current;
  const uint64_t id = group ? group->id_ : backward->id();
  std::shared_ptr<Recomputation> running;
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(running_, id, [](const auto& r) { return r.first; });
    is_new = known == running_.end();
    if (is_new)
      running = running_.emplace_back(id, std::make_shared<Recomputation>(*this, live_holders())).second;
    else
      running = known->second;
  }
  if (is_new && group) group->regions_.push_back(alive);
  if (is_new && !group) backward->add_region(alive);
  if (is_new && Observer::current && !Emitter::current().is_symbolic()) Observer::current->recomputes(*this);
  if (running->has(holder->value)) return running->take(holder->value);
  return Recomputation(*this, {holder}).take(holder->value);
}

void Region::forget(uint64_t backward) {
  std::shared_ptr<Recomputation> gone;  // dropped without the lock
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(running_, backward, [](const auto& r) { return r.first; });
  if (known == running_.end()) return;
  gone = std::move(known->second);
  running_.erase(known);
}

// ---- kept tensors ---------------------------------------------------------------------------------------------------

bool Region::is_dead(const Kept& kept) const {
  if (how_ == Recompute::at_once && !kept.is_saved && kept.first_call >= run_) return true;
  for (uint32_t s = kept.first_segment; s <= kept.last_segment; ++s)
    if (holders_alive_[s].load(std::memory_order_relaxed) > 0) return false;
  return true;
}

void Region::drop_kept() noexcept {
  for (Kept& kept : kept_)
    if ((kept.slot.value() || kept.slot.packed()) && is_dead(kept)) kept.slot.clear();
}

Tensor Region::kept(size_t i) const {
  const Kept& kept = kept_[i];
  const Packed* const packed = kept.slot.packed();
  if (kept.slot.is_stale()) {
    const Storage& memory = *kept.slot.memory();
    const std::string by = memory.written_at() ? " at " + to_string(memory.written_at()) : "";
    const bool has_reader = kept.first_call < calls_.size();
    fail(
        Category::version_mismatch, "checkpoint",
        fmt::format("a tensor needed for the recomputation was modified in place{}: {}, read by {} at {}, is "
                    "at version {}, was at version {}. Hint: clone it before writing to it",
                    by, to_string(kept.type), has_reader ? calls_[kept.first_call].op->name : "the region",
                    to_string(has_reader ? calls_[kept.first_call].where : where_), memory.version(),
                    kept.slot.version),
        where_);
  }
  RG_ASSERT(packed || kept.slot.value());
  if (!packed) return Tensor(RefPtr<TensorImpl>(kept.slot.value()));
  const NoGradGuard no_grad;
  const detail::NoDefaultHooks no_hooks;
  const CallScope::Suspend users_own_lines;
  Tensor value = packed->hooks->unpack(packed->payload);
  if (!value.defined() || (!packed->hooks->region() && !(value.impl().type() == kept.type)))
    fail(Category::hook_bad_result, "checkpoint",
         fmt::format("an unpack hook gave {} for a tensor that the region keeps, which was {}",
                     describe(value), to_string(kept.type)),
         where_);
  return value;
}

size_t Region::kept_at(Value value) const {
  const int32_t at = kept_of_[static_cast<size_t>(value)];
  return at < 0 ? kept_.size() : static_cast<size_t>(at);
}

// ---- for recorded backwards -----------------------------------------------------------------------------------------

void Region::make_hashes() noexcept {
  Hashes hashes;
  const auto fold = [&](uint64_t word) { hashes.structure = fold_hash(hashes.structure, word); };
  fold(static_cast<uint64_t>(how_));
  for (const Kept& kept : kept_) {
    if (!kept.slot.value() && !kept.slot.packed()) continue;
    fold(static_cast<uint64_t>(kept.value) << 1 | (kept.slot.packed() != nullptr));
    hashes.add(kept.type);
  }
  for (const Call& call : std::span(calls_).first(run_)) {
    fold(reinterpret_cast<uintptr_t>(call.op));
    fold(uint64_t{call.operands} << 16 | call.results);
    for (Value v : operands(call)) fold(static_cast<uint64_t>(v));
    if (call.attrs != kNoAttrs) hashes.add_attrs(*call.op, const_cast<void*>(attrs(call)));
  }
  structure_hash_ = hashes.structure;
  size_hash_ = hashes.sizes;
}

}  // namespace retrograd
