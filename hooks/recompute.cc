// See hooks/recompute.h. Original is the description of a dropped tensor. Two pairs differ in when it is made:
// Recompute makes it at pack, from the given tensor; RecomputeValue makes it before, from the value that later tensors
// may be views of.
#include "hooks/recompute.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <xxhash.h>

#include "engine/emitter.h"
#include "engine/tape.h"
#include "hooks/memory_order.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

class Original {
 public:
  Original(const Tensor& tensor, RecomputeCheck check)
      : type_(tensor.impl().type()), order_(tensor), check_(check) {
    if (check_ == RecomputeCheck::bits) hash_ = hash(tensor);
  }

  /// The result of `function`, in the layout of the original.
  Tensor again(const std::function<Tensor()>& function) const {
    Tensor found = function();
    if (!found.defined() || !(found.impl().type() == type_))
      refuse(fmt::format("the function gave {} for a dropped tensor that was {}", describe(found),
                         to_string(type_)));
    if (!order_.flatten(found).is_contiguous()) found = order_.copy(found);
    if (check_ == RecomputeCheck::bits && hash(found) != hash_)
      refuse(
          fmt::format("the function gave other values than the dropped {} had. Hint: nothing that it uses "
                      "may be written to before "
                      "the backward, and it must draw no random numbers",
                      to_string(type_)));
    return found;
  }

 private:
  [[noreturn]] static void refuse(const std::string& text) {
    fail(Category::hook_bad_result, "recompute", text);
  }
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
        memory_(value.impl().storage().get()),
        version_(value.version()),
        offset_(value.storage_offset()),
        elements_(value.numel()) {
    AutogradMeta& meta = value.impl().need_meta();
    if (!meta.life) meta.life = std::make_shared<char>();
    life_ = meta.life;
  }

  std::any pack(const Tensor& tensor) override {
    if (!is_ours(tensor)) return tensor;
    Window window{tensor.impl().type(), tensor.strides(), tensor.storage_offset() - offset_};
    if (window.offset < 0 || window.end() > elements_) return tensor;
    return window;
  }

  Tensor unpack(const std::any& payload) override {
    if (const Tensor* as_it_is = std::any_cast<Tensor>(&payload)) return *as_it_is;
    return std::any_cast<const Window&>(payload).of(original_.again(function_));
  }

 private:
  // While the value's cell lives, no other storage can have this address.
  bool is_ours(const Tensor& tensor) const {
    return !life_.expired() && tensor.impl().storage().get() == memory_ && memory_->version() == version_;
  }

  Original original_;
  std::function<Tensor()> function_;
  std::weak_ptr<void> life_;  // of the value's cell
  const Storage* memory_;     // not owned
  uint32_t version_;
  int64_t offset_, elements_;
};

}  // namespace

RefPtr<SavedTensorHooks> recompute(std::function<Tensor()> function, RecomputeCheck check,
                                   SourceLocation where) {
  require_function(static_cast<bool>(function), "recompute", where);
  return RefPtr<SavedTensorHooks>::adopt(new Recompute(std::move(function), check));
}

RefPtr<SavedTensorHooks> recompute(const Tensor& value, std::function<Tensor()> function,
                                   RecomputeCheck check, SourceLocation where) {
  require_function(static_cast<bool>(function), "recompute", where);
  NoGradGuard no_grad;
  if (value.defined() && value.impl().graph)
    fail(
        Category::unsupported, "recompute",
        fmt::format("{} is a value of a recorded function, for which recompute cannot be used. Hint: call it "
                    "in a function that is not recorded",
                    describe(value)),
        where);
  if (!value.defined() || !fills_a_block(value))
    fail(Category::bad_argument, "recompute",
         fmt::format("the elements of {} do not fill a block of memory. Hint: contiguous()", describe(value)),
         where);
  return RefPtr<SavedTensorHooks>::adopt(new RecomputeValue(value, std::move(function), check));
}

}  // namespace retrograd
