// Fused groups on CUDA devices (FusedKernel, engine/executor.h): chains of elementwise ops, with reductions at their
// end. Each group is one kernel that is compiled at run time.
//
//   op_table.h      the role of a node in a group
//   group.h         a group, checked
//   source.h        its text, made of the ops' own formulas
//   compiler.h      NVRTC, opened at run time
//   kernel_store.h  compilation in the background, each text once per process
//   code_cache.h    and once per machine
//   arguments.h     the kernel arguments of a run
//
// The compilation of a group's kernel begins when the group first runs. Until it is ready, and if it cannot be
// compiled, a run launches the kernels of the nodes one by one: the bits are the same. Nobody waits, except for
// finish_compiling(), launches that are recorded for a graph (cuda/graph.h), which would otherwise run one by one
// forever, and runs that find no memory for the values between the nodes.
//
// Compiled kernels may be kept in a folder from one process to the next. This is off until a folder is named, by
// set_kernel_cache() or in the environment: RETROGRAD_KERNEL_CACHE, or else RETROGRAD_PLAN_CACHE, the folder of the
// plan cache. RETROGRAD_CUDA_FUSION=0 switches all fusion off; with RETROGRAD_CUDA_FUSION=wait each run waits for its
// kernel, so that tests use it from the first run on.
#pragma once

#include <string>

#include "cuda/gpu.h"
#include "engine/executor.h"

namespace retrograd::inline v0::cuda {

/// Since the start of the process.
struct FusionStats {
  int64_t groups = 0;      // groups of plans that were run
  int64_t compiled = 0;    // texts that were compiled
  int64_t cache_hits = 0;  // texts whose kernel came from the folder
  int64_t failed = 0;      // texts that could not be compiled or loaded
  int64_t launches = 0;    // runs of a group as one kernel; starts by a graph do not count
  int64_t one_by_one = 0;  // runs whose kernel was not ready, or missing for these layouts
};
FusionStats fusion_stats();

/// Why groups are not fused on this machine; empty when they are.
std::string fusion_problem();
/// The last failure to compile, load or keep a kernel, as text; empty when there was none. Each is also a line on
/// stderr.
std::string last_fusion_note();
/// Waits until nothing is being compiled.
void finish_compiling();
/// Where compiled kernels are kept from now on, in a private folder of this user that is made when needed. "": nowhere.
void set_kernel_cache(std::string_view folder);

namespace fusion {

class Compiler;

/// For tests: uses this compiler instead of NVRTC, null for none. Waits for running compilations.
void use_compiler(Compiler* compiler);
/// The same as RETROGRAD_CUDA_FUSION=wait.
void set_waiting(bool waits);

bool is_available();
/// Executor::fuse for a device.
std::unique_ptr<FusedKernel> fuse(Gpu& gpu, const FusedGroup& group);

}  // namespace fusion
}  // namespace retrograd::cuda
