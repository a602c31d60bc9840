// See engine/autocast.h.
#include "engine/autocast.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "engine/basic_ops.h"
#include "engine/taper.h"

namespace retrograd::inline v0 {
namespace detail {

// Converted leaves, by the memory of the leaf.
class AutocastCache {
 public:
  /// Whether the conversion of `x` is kept: leaves are read more than once between two writes, other values seldom.
  static bool takes(const TensorImpl& x) {
    return x.dtype() == kFloat32 && x.requires_grad && x.is_leaf() && !x.base && !x.graph && x.storage() &&
           x.is_contiguous();
  }
  /// Null if it is not there.
  const TensorImpl* find(const TensorImpl& x, ScalarType dtype) const {
    const auto found = entries_.find(x.storage()->identity());
    if (found == entries_.end()) return nullptr;
    const Entry& entry = found->second;
    const TensorImpl& value = *entry.value;
    const bool fits = entry.version == x.storage()->version() && entry.offset == x.storage_offset() &&
                      value.dtype() == dtype && value.shape() == x.shape();
    // A saved-tensor hook can write to the value that it is shown.
    return fits && value.storage()->version() == entry.value_version ? &value : nullptr;
  }
  void keep(const TensorImpl& x, const TensorImpl& value) {
    RefPtr<TensorImpl> plain = TensorImpl::make();
    plain->alias(value);
    entries_.insert_or_assign(x.storage()->identity(), Entry{x.storage()->version(), x.storage_offset(),
                                                             value.storage()->version(), std::move(plain)});
  }

 private:
  struct Entry {
    uint32_t version;  // of the leaf's memory
    int64_t offset;
    uint32_t value_version;
    RefPtr<TensorImpl> value;
  };
  std::unordered_map<uint32_t, Entry> entries_;
};

namespace {

// What stands below a Taper while it records a call whose result exists.
class Given final : public PassThrough {
 public:
  Given(Emitter& below, const TensorImpl& value) : PassThrough("Given", below), value_(value) {}
  void emit(const Call&, Tensor* results) override {
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->alias(value_);
    results[0] = Tensor(std::move(cell));
  }

 private:
  const TensorImpl& value_;
};

// A Taper above computed values can record a conversion that is not computed. Others do without the cache.
AutocastCache* cache_for(const TensorImpl& x, const Emitter& emitter) {
  const AutocastMode* const mode = OpenScopes<AutocastMode>::innermost();
  if (!mode || !mode->cache || emitter.is_symbolic() || !dynamic_cast<const Taper*>(&emitter)) return nullptr;
  return AutocastCache::takes(x) ? mode->cache.get() : nullptr;
}

Tensor cast(Emitter& emitter, TensorImpl& x, ScalarType dtype, SourceLocation where) {
  autocast_counters.casts.fetch_add(1, std::memory_order_relaxed);
  AutocastCache* const cache = cache_for(x, emitter);
  if (!cache) return basic::to(emitter, x, dtype, where);
  if (const TensorImpl* const value = cache->find(x, dtype)) {
    autocast_counters.cached.fetch_add(1, std::memory_order_relaxed);
    Given given(static_cast<Taper&>(emitter).below(), *value);
    Taper recording(given);
    return basic::to(recording, x, dtype, where);
  }
  const Tensor made = basic::to(emitter, x, dtype, where);
  cache->keep(x, made.impl());
  return made;
}

bool is_cast(const TensorImpl* x, ScalarType to) {
  const ScalarType from = x ? x->dtype() : to;
  return from != to && (from == kFloat32 || from == kFloat16 || from == kBFloat16);
}

// What the operands are cast to; Undefined: nothing.
ScalarType cast_dtype(CastPolicy policy, std::span<TensorImpl* const> operands) {
  const bool has_float32 =
      std::ranges::any_of(operands, [](const TensorImpl* x) { return x && x->dtype() == kFloat32; });
  switch (policy) {
    case CastPolicy::none: return ScalarType::Undefined;
    case CastPolicy::lower_precision: return autocast_dtype();
    case CastPolicy::promote: return has_float32 ? kFloat32 : ScalarType::Undefined;
    case CastPolicy::float32:
    case CastPolicy::banned: return kFloat32;
  }
  return ScalarType::Undefined;
}

ScalarType checked(ScalarType dtype, SourceLocation where) {
  if (dtype != kFloat16 && dtype != kBFloat16)
    fail(Category::bad_argument, "autocast",
         fmt::format("the dtype {} is neither float16 nor bfloat16", name(dtype)), where);
  return dtype;
}

std::shared_ptr<AutocastCache> outer_cache() {
  const AutocastMode* const outer = OpenScopes<AutocastMode>::innermost();
  return outer ? outer->cache : nullptr;
}

AutocastMode mode_of(ScalarType dtype, AutocastOptions options, SourceLocation where) {
  AutocastMode mode{options.enabled ? dtype : ScalarType::Undefined, checked(dtype, where), {}};
  if (!options.cache_enabled) return mode;
  mode.cache = outer_cache();
  if (!mode.cache) mode.cache = std::make_shared<AutocastCache>();
  return mode;
}

}  // namespace

AutocastAs::AutocastAs(ScalarType dtype) {
  if (dtype != autocast_dtype()) guard_.emplace(AutocastMode{dtype, get_autocast_dtype(), outer_cache()});
}

CastCall::CastCall(const Call& call, Emitter& emitter) : call_(call) {
  const CastPolicy policy = call.op->cast_policy;
  if (policy == CastPolicy::banned && autocast_dtype() == kFloat16)
    fail_call(call, Category::unsupported,
              "its derivative leaves the range of float16, so autocast refuses it. Hint: "
              "binary_cross_entropy_with_logits, or autocast(kFloat16, {.enabled = false}) around the call");
  const ScalarType dtype = cast_dtype(policy, call.operands);
  if (dtype == ScalarType::Undefined ||
      std::ranges::none_of(call.operands, [&](const TensorImpl* x) { return is_cast(x, dtype); }))
    return;
  operands_.reserve(call.operands.size());
  for (TensorImpl* x : call.operands) {
    if (is_cast(x, dtype)) x = made_.emplace_back(cast(emitter, *x, dtype, call.where)).get();
    operands_.push_back(x);
  }
  call_.operands = operands_;
}

}  // namespace detail

autocast::autocast(ScalarType dtype, AutocastOptions options, SourceLocation where)
    : guard_(detail::mode_of(dtype, options, where)) {}

ScalarType get_autocast_dtype() {
  const detail::AutocastMode* const mode = OpenScopes<detail::AutocastMode>::innermost();
  return mode ? mode->given : kBFloat16;
}

namespace ops {
namespace {

ScalarType function_dtype(CastPolicy policy, std::initializer_list<const Tensor*> operands) {
  if (!detail::autocast_mode()) return ScalarType::Undefined;
  std::vector<TensorImpl*> cells;
  for (const Tensor* x : operands) cells.push_back(x->get());
  return detail::cast_dtype(policy, cells);
}

}  // namespace

AutocastFunction::AutocastFunction(CastPolicy policy, std::initializer_list<const Tensor*> operands)
    : dtype_(function_dtype(policy, operands)), inside_() {}

Tensor AutocastFunction::operator()(const Operand& x) const {
  if (dtype_ == ScalarType::Undefined || !detail::is_cast(x.tensor().get(), dtype_)) return x.tensor();
  return detail::cast(Emitter::current(), x.tensor().impl(), dtype_, effective_location(x.where()));
}

}  // namespace ops
}  // namespace retrograd
