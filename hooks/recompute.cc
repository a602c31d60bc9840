// See hooks/recompute.h. Original is the description of a dropped tensor. Two pairs differ in when it is made:
// Recompute makes it at pack, from the given tensor; RecomputeValue makes it before, from the value that later tensors
// may be views of. RecordedRecompute is both of them in a recorded function: a traceable pair without a payload.
#include "hooks/recompute.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <xxhash.h>

#include "engine/autocast.h"
#include "engine/emitter.h"
#include "engine/geometry.h"
#include "engine/tape.h"
#include "hooks/memory_order.h"
#include "ops/shape_ops.h"
#include "ops/views.h"

namespace retrograd::inline v0 {
namespace {

void check_type(const Tensor& found, const TensorType& dropped) {
  if (!found.defined() || !(found.impl().type() == dropped))
    fail(Category::hook_bad_result, "recompute",
         fmt::format("the function gave {} for a dropped tensor that was {}", describe(found),
                     to_string(dropped)));
}

// The memory of a value, while the value's cell lives and as long as nobody writes to it.
class ValueMemory {
 public:
  explicit ValueMemory(const Tensor& value)
      : value_(value.impl()), memory_(value.impl().storage().get()), version_(value.version()) {}
  // While the cell lives, no other storage can have this address.
  bool holds(const Tensor& tensor) const {
    return !value_.expired() && tensor.impl().storage().get() == memory_ && memory_->version() == version_;
  }

 private:
  WeakRef<TensorImpl> value_;
  const Storage* memory_;  // not owned
  uint32_t version_;
};

class Original {
 public:
  Original(const Tensor& tensor, RecomputeCheck check)
      : type_(tensor.impl().type()), order_(tensor), check_(check) {
    if (check_ == RecomputeCheck::bits) hash_ = hash(tensor);
  }

  /// The result of `function`, in the layout of the original.
  Tensor again(const std::function<Tensor()>& function) const {
    Tensor found = function();
    check_type(found, type_);
    if (!order_.flatten(found).is_contiguous()) found = order_.copy(found);
    if (check_ == RecomputeCheck::bits && hash(found) != hash_)
      fail(Category::hook_bad_result, "recompute",
           fmt::format("the function gave other values than the dropped {} had. Hint: nothing that it uses "
                       "may be written to before the backward, and it must draw no random numbers",
                       to_string(type_)));
    return found;
  }

 private:
  uint64_t hash(const Tensor& tensor) const {
    const Tensor block = contiguous(order_.flatten(tensor)).cpu();
    return XXH3_64bits(block.raw_data(), static_cast<size_t>(block.nbytes()));
  }

  TensorType type_;
  MemoryOrder order_;
  RecomputeCheck check_;
  uint64_t hash_ = 0;
};

class Recompute final : public SavedTensorHooks {
 public:
  Recompute(std::function<Tensor()> function, RecomputeCheck check)
      : function_(std::move(function)), check_(check) {}
  std::any pack(const Tensor& tensor) override { return std::make_shared<const Original>(tensor, check_); }
  Tensor unpack(const std::any& payload) override {
    return std::any_cast<const std::shared_ptr<const Original>&>(payload)->again(function_);
  }

 private:
  std::function<Tensor()> function_;
  RecomputeCheck check_;
};

// The position of a view in the block of the value.
struct Window {
  TensorType type;
  IntArray strides;
  int64_t offset;

  int64_t end() const {
    int64_t last = offset;
    for (int i = 0; i < type.shape.rank(); ++i) {
      if (type.shape[i].raw() == 0) return offset;
      last += (type.shape[i].raw() - 1) * strides[static_cast<size_t>(i)];
    }
    return last + 1;
  }
  Tensor of(const Tensor& value) const {
    RefPtr<TensorImpl> cell = TensorImpl::make();
    cell->alias(value.impl());
    cell->set_type(type.dtype, type.device, type.shape);
    std::ranges::copy(strides, cell->mutable_strides());
    cell->set_storage_offset(value.storage_offset() + offset);
    return Tensor(std::move(cell));
  }
};

class RecomputeValue final : public SavedTensorHooks {
 public:
  RecomputeValue(const Tensor& value, std::function<Tensor()> function, RecomputeCheck check)
      : original_(value, check),
        function_(std::move(function)),
        memory_(value),
        offset_(value.storage_offset()),
        elements_(value.numel()) {}

  std::any pack(const Tensor& tensor) override {
    if (!memory_.holds(tensor)) return tensor;
    Window window{tensor.impl().type(), tensor.strides(), tensor.storage_offset() - offset_};
    if (window.offset < 0 || window.end() > elements_) return tensor;
    return window;
  }

  Tensor unpack(const std::any& payload) override {
    if (const Tensor* as_it_is = std::any_cast<Tensor>(&payload)) return *as_it_is;
    return std::any_cast<const Window&>(payload).of(original_.again(function_));
  }

 private:
  Original original_;
  std::function<Tensor()> function_;
  ValueMemory memory_;
  int64_t offset_, elements_;
};

// The function is called while the backward is recorded: its operations are part of the graph.
class RecordedRecompute final : public SavedTensorHooks {
 public:
  /// `value`: what is dropped, with its views; undefined: everything.
  RecordedRecompute(const Tensor& value, std::function<Tensor()> function) : function_(std::move(function)) {
    traceable = true;
    if (!value.defined()) return;
    memory_.emplace(value);
    value_ = TensorImpl::make();
    value_->alias(value.impl());
  }

  std::any pack(const Tensor& tensor) override {
    if (!value_) return Dropped{};
    if (!memory_->holds(tensor)) return tensor;
    return Dropped{ops::geometry_of(tensor.impl(), *value_)};
  }

  Tensor unpack(const std::any& payload) override {
    if (const Tensor* as_it_is = std::any_cast<Tensor>(&payload)) return *as_it_is;
    const Dropped& dropped = std::any_cast<const Dropped&>(payload);
    const Tensor found = function_();
    if (!value_) return found;
    check_type(found, value_->type());
    ops::Geometry window = *dropped.window;
    const Tensor block = contiguous(found);
    TensorImpl* const operand = block.get();
    Tensor result;
    Emitter::current().emit({&ops::info<ops::AsStrided>, {&operand, 1}, &window, {}, 1}, &result);
    return result;
  }

  void visit(std::any& payload, PayloadVisitor& visitor) override {
    if (std::any_cast<Tensor>(&payload)) SavedTensorHooks::visit(payload, visitor);
  }

 private:
  struct Dropped {
    std::optional<ops::Geometry> window;  // in the value
  };

  const std::function<Tensor()> function_;
  RefPtr<TensorImpl> value_;  // its type and layout; null: everything is dropped
  std::optional<ValueMemory> memory_;
};

bool is_recorded() { return Emitter::current().values() == Emitter::Values::of_function; }

}  // namespace

RefPtr<SavedTensorHooks> recompute(std::function<Tensor()> function, RecomputeCheck check,
                                   SourceLocation where) {
  require_function(static_cast<bool>(function), "recompute", where);
  function = detail::with_present_autocast(std::move(function));
  if (is_recorded())
    return RefPtr<SavedTensorHooks>::adopt(new RecordedRecompute(Tensor(), std::move(function)));
  return RefPtr<SavedTensorHooks>::adopt(new Recompute(std::move(function), check));
}

RefPtr<SavedTensorHooks> recompute(const Tensor& value, std::function<Tensor()> function,
                                   RecomputeCheck check, SourceLocation where) {
  require_function(static_cast<bool>(function), "recompute", where);
  function = detail::with_present_autocast(std::move(function));
  NoGradGuard no_grad;
  const bool is_recorded_value = value.defined() && value.impl().graph && is_recorded();
  if (!value.defined() || !(is_recorded_value ? value.is_contiguous() : fills_a_block(value)))
    fail(Category::bad_argument, "recompute",
         fmt::format("the elements of {} do not fill a block of memory. Hint: contiguous()", describe(value)),
         where);
  if (is_recorded_value)
    return RefPtr<SavedTensorHooks>::adopt(new RecordedRecompute(value, std::move(function)));
  return RefPtr<SavedTensorHooks>::adopt(new RecomputeValue(value, std::move(function), check));
}

}  // namespace retrograd
