// Fused groups on a machine's device: kernels compiled by NVRTC give the bits of the single kernels, and the CPU's
// numbers. On the host there is no compiler for the stand-in; fusion_test.cc has kernels of its own.
#include "tests/cuda/fused_run.h"
#include "tests/cuda/fused_step.h"

using namespace retrograd;
using namespace retrograd::cuda;

namespace {

bool is_fused_here() {
  device_on_host();
  if (fusion::is_available()) return true;
  WARN("not tested: " << fusion_problem());
  return false;
}

}  // namespace

TEST_CASE("groups on the device give the bits of the single kernels") {
  if (!is_fused_here()) return;
  for (auto* list : {every_op, training_groups})
    for (const FusedCase& c : list()) {
      if (!c.group()) continue;
      INFO(c.name());
      const Tensors inputs = on_device(c.inputs());
      const int64_t before = fusion_stats().launches;
      const Tensors found = run_fused(*fused(c), c, inputs);
      REQUIRE(fusion_stats().launches > before);
      require_same_bits(c.run_singly(inputs), found);
    }
  CHECK(fusion_stats().failed == 0);
  CHECK(last_fusion_note().empty());
}

TEST_CASE("groups of training on the device give the numbers of the CPU") {
  if (!is_fused_here()) return;
  for (const FusedCase& c : training_groups()) {
    if (!c.group()) continue;
    INFO(c.name());
    const Tensors found = run_fused(*fused(c), c, on_device(c.inputs()));
    for (size_t o = 0; o < found.size(); ++o) expect_same(c.output_value(o), found[o], 64);
  }
}

TEST_CASE("a compiled function with groups gives the bits of the eager one on the device") {
  if (!is_fused_here()) return;
  FusedStep step;
  const auto loss = [&](const Tensor& x) { return step.loss(x); };
  const Tensors expected = step.gradients(loss);
  auto compiled = compile(loss);
  for (int i = 0; i < 4; ++i) {
    require_same_bits(expected, step.gradients(compiled));
    finish_compiling();
  }
}
