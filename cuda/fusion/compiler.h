// Compiler: compiles the text of a kernel to machine code at run time. NVRTC is one, opened on first use; tests have
// their own.
#pragma once

#include "cuda/fusion/source.h"

namespace retrograd::inline v0::cuda::fusion {

class Compiler {
 public:
  struct Result {
    std::string code;  // empty: it could not be compiled, and the log says why
    std::string log;
  };
  virtual ~Compiler() = default;
  /// Everything else that its results depend on.
  virtual std::string version() const = 0;
  /// Any number of threads may compile at the same time.
  virtual Result compile(const Source& source, const std::vector<std::string>& options) = 0;
};

/// Machine code for one architecture (90), computed like the kernels that nvcc compiled: no implicit fused
/// multiply-add.
std::vector<std::string> compile_options(int architecture);

/// NVRTC of the toolkit that the library was built with; null: nvrtc_problem() says why there is none.
Compiler* nvrtc();
std::string nvrtc_problem();

/// The headers that texts include, by name: those of the kernels and of the ops' formulas, and replacements for those
/// of the standard library.
struct Header {
  const char *name, *text;
};
std::span<const Header> headers();

}  // namespace retrograd::cuda::fusion
