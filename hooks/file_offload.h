// save_to_file, which hooks/stock.h documents for users.
#pragma once

#include <string>

#include "engine/saved_tensor_hooks.h"
#include "hooks/prefetcher.h"

namespace retrograd::inline v0 {

RefPtr<SavedTensorHooks> make_file_offload(std::string folder, const Tensors& keep, PrefetchOptions prefetch);

}  // namespace retrograd
