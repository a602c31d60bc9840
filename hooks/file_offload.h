// save_to_file, of which hooks/stock.h tells users.
#pragma once

#include <string>

#include "hooks/prefetch.h"
#include "hooks/saved_tensor_hooks.h"

namespace retrograd {

RefPtr<SavedTensorHooks> make_file_offload(std::string folder, const Tensors& keep, PrefetchOptions prefetch);

}  // namespace retrograd
