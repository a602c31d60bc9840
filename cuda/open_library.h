// open_library: opens a library of the vendor at run time. None of them is linked: each may be missing on a machine,
// and there is a substitute for each.
//
// The library is searched for by the loader's rules (LD_LIBRARY_PATH and the system's folders), then in the toolkit's
// folder, $CUDA_PATH or /usr/local/cuda. An opened library stays open.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace retrograd::inline v0::cuda {

/// `name` is a file name, libNAME.so.VERSION. Null: `problem` has the loader's messages of both tries, for example
/// about another library that it needs.
inline void* open_library(const std::string& name, std::string& problem) {
  const char* path = secure_getenv("CUDA_PATH");
  problem.clear();
  for (const std::string& file : {name, (path ? path : "/usr/local/cuda") + ("/lib64/" + name)}) {
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      problem.clear();
      return library;
    }
    const char* said = dlerror();
    problem += (problem.empty() ? "" : "; ") + (said ? std::string(said) : file + " cannot be opened");
  }
  return nullptr;
}

}  // namespace retrograd::cuda
