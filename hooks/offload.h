// save_on_cpu(pinned = true), of which hooks/stock.h tells users.
#pragma once

#include "hooks/prefetch.h"
#include "hooks/saved_tensor_hooks.h"

namespace retrograd {

RefPtr<SavedTensorHooks> make_offload(const Tensors& keep, PrefetchOptions prefetch);

}  // namespace retrograd
