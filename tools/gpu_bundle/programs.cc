// All programs of the bundle for a machine with a GPU in one file, since each alone would contain the library and the
// kernels.
//
//   programs NAME [ARGUMENT...]    runs the program of that name; exit code 2 if there is none
//   programs                       lists the names
//
// The main() of each is compiled with another name (BUILD.bazel). `device` and `parity` are here: `device` describes
// cuda:0 and runs a small computation on it; `parity` runs the cases of tests/cuda, with Catch2's flags.
#include <cstdio>
#include <cstring>
#include <exception>

#include "benchmarks/common/line.h"
#include "cuda/executor.h"
#include "cuda/fusion/fusion.h"
#include "retrograd/retrograd.h"
#include "tests/cuda/errors_met.h"
#include "tests/run_catch.h"

int train_cnn_main(int argc, char** argv);
int train_digits_main(int argc, char** argv);
int train_gpt_main(int argc, char** argv);
int train_rnn_main(int argc, char** argv);
int engine_overhead_main(int argc, char** argv);
int fusion_main(int argc, char** argv);
int gemm_main(int argc, char** argv);
int ops_main(int argc, char** argv);
int train_step_main(int argc, char** argv);
int conformance_main(int argc, char** argv);

namespace {

namespace rg = retrograd;

int device_main(int, char**) {
  try {
    rg::cuda::Gpu& gpu = rg::cuda::gpu_of(0);
    const rg::cuda::DeviceDescription d = gpu.description();
    const rg::Tensor x = rg::arange(1000, {rg::kFloat32});
    const std::string problem = rg::cuda::fusion_problem();
    const bool computes = (x.cuda() * 2 + 1).to_vector() == (x * 2 + 1).to_vector();
    bench::Line()
        .text("device", d.name)
        .count("major", d.major)
        .count("minor", d.minor)
        .count("multiprocessors", d.multiprocessors)
        .count("memory_bytes", static_cast<int64_t>(d.memory_bytes))
        .count("l2_bytes", static_cast<int64_t>(d.l2_bytes))
        .text("fusion", problem.empty() ? "by NVRTC" : problem)
        .text("products_by", gpu.products().blas ? "cuBLASLt" : "own kernels: cuBLASLt was not found")
        .text("convolutions_by", gpu.dnn() ? gpu.dnn()->name() : "own kernels: " + gpu.dnn_problem())
        .text("factorisations_by",
              gpu.solver() ? gpu.solver()->name() : "own kernels: " + gpu.solver_problem())
        .print();
    if (!computes) std::fputs("device: its results differ from the CPU's\n", stderr);
    return computes ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "device: %s\n", e.what());
    return 2;
  }
}

// Then, for each dtype, the largest difference from the CPU's results, relative to the tolerance.
int parity_main(int argc, char** argv) {
  const int status = rg::run_catch(argc, argv);
  for (const rg::ScalarType dtype : {rg::kFloat64, rg::kFloat32, rg::kFloat16, rg::kBFloat16}) {
    const rg::ErrorsMet& met = rg::errors_met(static_cast<int>(dtype));
    if (!met.unequal) continue;
    bench::Line()
        .text("parity_of", rg::name(dtype))
        .number("tolerance", met.tolerance, 16)
        .count("unequal", met.unequal)
        .number("worst", met.worst, 3)
        .print();
  }
  return status;
}

struct Program {
  const char* name;
  int (*main)(int argc, char** argv);
};

constexpr Program kPrograms[] = {
    {"device", device_main},
    {"parity", parity_main},
    {"conformance", conformance_main},
    {"train_cnn", train_cnn_main},
    {"train_digits", train_digits_main},
    {"train_gpt", train_gpt_main},
    {"train_rnn", train_rnn_main},
    {"engine_overhead", engine_overhead_main},
    {"fusion", fusion_main},
    {"gemm", gemm_main},
    {"ops", ops_main},
    {"train_step", train_step_main},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Program& program : kPrograms) {
    if (argc < 2)
      std::puts(program.name);
    else if (std::strcmp(argv[1], program.name) == 0)
      return program.main(argc - 1, argv + 1);
  }
  if (argc < 2) return 0;
  std::fprintf(stderr, "programs: there is no program %s\n", argv[1]);
  return 2;
}
