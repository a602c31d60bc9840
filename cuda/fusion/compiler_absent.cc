// A build without the toolkit has no compiler: see cuda/fusion/compiler_nvrtc.cc.
#include "cuda/fusion/compiler.h"

namespace retrograd::inline v0::cuda::fusion {

Compiler* nvrtc() { return nullptr; }
std::string nvrtc_problem() { return "built without CUDA"; }

}  // namespace retrograd::cuda::fusion
