// save_on_cpu(pinned = true), which hooks/stock.h documents for users.
#pragma once

#include "engine/saved_tensor_hooks.h"
#include "hooks/prefetcher.h"

namespace retrograd::inline v0 {

RefPtr<SavedTensorHooks> make_offload(const Tensors& keep, PrefetchOptions prefetch);

}  // namespace retrograd
