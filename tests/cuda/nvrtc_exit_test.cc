// A process that ends while the real NVRTC compiles its kernels ends cleanly: its own exit code, no signal. Each case
// is a child process. Needs the toolkit's library, but no device. Not tested here: the compiled kernels
// (nvrtc_test.cc).
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "cuda/fusion/compiler.h"
#include "cuda/fusion/fused_kernel.h"
#include "cuda/fusion/fusion.h"
#include "tests/cuda/device_on_host.h"
#include "tests/cuda/fused_case.h"
#include "tests/cuda/new_device.h"

using namespace retrograd;
using namespace retrograd::cuda;

namespace {

// Requests some kernels, and ends a while later.
[[noreturn]] void ask_and_exit(std::chrono::milliseconds later) {
  alarm(60);  // a process that never ends is none that ends well
  // Opened before anything waits for it at exit, as where a device is.
  fusion::Compiler* const nvrtc = fusion::nvrtc();
  if (!nvrtc) std::_Exit(2);
  new_device();
  fusion::use_compiler(nvrtc);
  fusion::KernelStore* const kernels = fusion::store();
  int asked = 0;
  for (const FusedCase& c : training_groups())
    if (c.group() && ++asked <= 8) kernels->get(gpu_of(0), c.source(false));
  std::this_thread::sleep_for(later);
  std::exit(0);
}

}  // namespace

TEST_CASE("a process may end while its kernels are compiled") {
  for (const int later : {0, 40, 60, 80, 100, 150, 200, 300}) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) ask_and_exit(std::chrono::milliseconds(later));
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    INFO("after " << later << " ms, status " << status);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) {
      WARN("not tested: NVRTC is absent");
      return;
    }
    CHECK(WEXITSTATUS(status) == 0);
  }
}
