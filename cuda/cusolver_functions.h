// The functions of cuSOLVER that cuda/solver_cusolver.cc calls, looked up in an opened library. Only if cusolverDn.h is
// available.
#pragma once

#include <cusolverDn.h>
#include <dlfcn.h>

#include <string>

#include "cuda/open_library.h"

namespace retrograd::inline v0::cuda {

/// The machine's library of the header's major version; null: `problem` says why.
inline void* find_cusolver(std::string& problem) {
  return open_library("libcusolver.so." + std::to_string(CUSOLVER_VER_MAJOR), problem);
}

/// The functions of a library that dlopen() has opened; it stays open.
class CusolverFunctions {
 public:
  explicit CusolverFunctions(void* library) : library_(library) {}
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
#define RG_FUNCTION(name) \
  decltype(&::cusolver##name) const name = find<decltype(&::cusolver##name)>("cusolver" #name)
  RG_FUNCTION(GetVersion);
  RG_FUNCTION(DnCreate);
  RG_FUNCTION(DnDestroy);
  RG_FUNCTION(DnSetStream);
  RG_FUNCTION(DnCreateParams);
  RG_FUNCTION(DnDestroyParams);
  RG_FUNCTION(DnXgetrf_bufferSize);
  RG_FUNCTION(DnXgetrf);
  RG_FUNCTION(DnXpotrf_bufferSize);
  RG_FUNCTION(DnXpotrf);
#undef RG_FUNCTION
};

}  // namespace retrograd::cuda
