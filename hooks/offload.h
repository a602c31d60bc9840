// save_on_cpu(pinned = true), of which hooks/stock.h tells users.
#pragma once

#include "hooks/prefetch.h"
#include "hooks/saved_tensor_hooks.h"

namespace retrograd {

RefPtr<SavedTensorHooks> make_offload(const Tensors& keep, PrefetchOptions prefetch);

/// Whether a copy in the host's memory is worth the way there: not of a few bytes of a device.
bool is_worth_moving(const Tensor& tensor);

}  // namespace retrograd
