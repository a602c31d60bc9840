// The functions of cuDNN that cuda/dnn_cudnn.cc calls, looked up in an opened library. Only if cudnn.h is available.
#pragma once

#include <cudnn.h>
#include <dlfcn.h>

#include <string>

#include "cuda/open_library.h"

namespace retrograd::inline v0::cuda {

/// The machine's library of the header's major version; null: `problem` says why.
inline void* find_cudnn(std::string& problem) {
  return open_library("libcudnn.so." + std::to_string(CUDNN_MAJOR), problem);
}

/// The functions of a library that dlopen() has opened; it stays open.
class CudnnFunctions {
 public:
  explicit CudnnFunctions(void* library) : library_(library) {}
  /// The first function that the library lacks.
  const char* missing() const { return missing_; }

 private:
  template <class F>
  F find(const char* name) {
    void* found = dlsym(library_, name);
    if (!found && !missing_) missing_ = name;
    return reinterpret_cast<F>(found);
  }
  void* const library_;
  const char* missing_ = nullptr;

 public:
#define RG_FUNCTION(name) decltype(&::cudnn##name) const name = find<decltype(&::cudnn##name)>("cudnn" #name)
  RG_FUNCTION(GetVersion);
  RG_FUNCTION(GetErrorString);
  RG_FUNCTION(Create);
  RG_FUNCTION(Destroy);
  RG_FUNCTION(SetStream);
  RG_FUNCTION(CreateTensorDescriptor);
  RG_FUNCTION(DestroyTensorDescriptor);
  RG_FUNCTION(SetTensorNdDescriptor);
  RG_FUNCTION(CreateFilterDescriptor);
  RG_FUNCTION(DestroyFilterDescriptor);
  RG_FUNCTION(SetFilterNdDescriptor);
  RG_FUNCTION(CreateConvolutionDescriptor);
  RG_FUNCTION(DestroyConvolutionDescriptor);
  RG_FUNCTION(SetConvolutionNdDescriptor);
  RG_FUNCTION(SetConvolutionGroupCount);
  RG_FUNCTION(SetConvolutionMathType);
  RG_FUNCTION(GetConvolutionForwardAlgorithm_v7);
  RG_FUNCTION(GetConvolutionBackwardDataAlgorithm_v7);
  RG_FUNCTION(GetConvolutionBackwardFilterAlgorithm_v7);
  RG_FUNCTION(ConvolutionForward);
  RG_FUNCTION(ConvolutionBackwardData);
  RG_FUNCTION(ConvolutionBackwardFilter);
#undef RG_FUNCTION
};

}  // namespace retrograd::cuda
