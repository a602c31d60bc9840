// A process that ends while its kernels are compiled ends cleanly: its own exit code, no signal. Each case is a child
// process. Needs no device, and for the cases with the real NVRTC the toolkit's library. Not tested here: the compiled
// kernels (nvrtc_test.cc).
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
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

// A compiler that registers an exit handler in the middle of a compilation, and must not be in use when it runs.
class LateHandler final : public fusion::Compiler {
 public:
  std::string version() const override { return "late handler"; }
  Result compile(const fusion::Source&, const std::vector<std::string>&) override {
    ++running_;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::atexit([] {
      if (running_) std::_Exit(3);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    --running_;
    return {{}, "nothing is made"};
  }

 private:
  static inline std::atomic<int> running_ = 0;
};

// Requests some kernels.
void ask(fusion::Compiler& compiler) {
  alarm(60);  // a process that never ends is none that ends well
  new_device();
  fusion::use_compiler(&compiler);
  fusion::KernelStore* const kernels = fusion::store();
  int asked = 0;
  for (const FusedCase& c : training_groups())
    if (c.group() && ++asked <= 8) kernels->get(gpu_of(0), c.source(false));
}

// The status of a child process that runs `body` and exits.
template <class Body>
int status_of_child(const Body& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    body();
    std::exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("a process may end while its kernels are compiled") {
  for (const int later : {0, 40, 60, 80, 100, 150, 200, 300}) {
    const int status = status_of_child([&] {
      fusion::Compiler* const nvrtc = fusion::nvrtc();
      if (!nvrtc) std::_Exit(2);
      ask(*nvrtc);
      std::this_thread::sleep_for(std::chrono::milliseconds(later));
    });
    INFO("after " << later << " ms, status " << status);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) {
      WARN("not tested: NVRTC is absent");
      return;
    }
    CHECK(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("exit handlers that a compilation registers run after it") {
  for (const int later : {0, 75}) {
    const int status = status_of_child([&] {
      ask(*new LateHandler);
      std::this_thread::sleep_for(std::chrono::milliseconds(later));
    });
    INFO("after " << later << " ms, status " << status);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}
