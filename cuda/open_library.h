// open_library: a library of the vendor's, opened while the program runs. None of them is linked: a machine may lack each of them, and what
// they compute has a substitute.
//
// The loader looks for a library by its own rules (LD_LIBRARY_PATH and the system's folders); then it is looked for in the toolkit's folder,
// $CUDA_PATH or /usr/local/cuda. What is opened stays open.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace retrograd::cuda {

/// `name` is that of a file, libNAME.so.VERSION. Null: `problem` has what the loader says of both tries, such as another library that it needs.
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
