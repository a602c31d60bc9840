// TORCH_MODULE(Net): the holder Net of a module class NetImpl. A holder is a shared pointer that is made from the
// arguments of the module: `Net net(3, 4);` has a NetImpl(3, 4), and `Net net{nullptr};` none. Copies of it hold the
// same module. net(x) calls it, net->fc is a member of it.
#pragma once

#include "nn/module_holder.h"

namespace torch::nn {

using retrograd::nn::Module;
using retrograd::nn::ModuleHolder;

}  // namespace torch::nn

#define TORCH_MODULE_IMPL(Name, ImplType)                    \
  class Name : public ::torch::nn::ModuleHolder<ImplType> {  \
   public:                                                   \
    using ::torch::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl = ImplType;                                   \
  }
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)
