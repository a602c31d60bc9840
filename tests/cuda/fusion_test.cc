// Fused groups on the device of tests: their kernels, compiled for the host from the texts that NVRTC would
// get, give the bits of the single kernels; layouts and memory; what happens while a kernel is compiled, and
// when it cannot be. Not tested here: NVRTC itself (nvrtc_test.cc), a device's arithmetic.
#include <thread>

#include "tests/cuda/fusion_fixture.h"

using namespace retrograd;
using namespace retrograd::cuda;

namespace {

// One by one while the compiler is held, then as one kernel.
void check_bits(const FusedCase& c) {
  INFO(c.name());
  Fusion fusion;
  fusion.compiler.hold();
  const std::unique_ptr<FusedKernel> kernel = fused(c);
  REQUIRE(kernel);
  const Tensors inputs = on_device(c.inputs()), single = run(*kernel, c, inputs);
  CHECK(fusion.stats().one_by_one == 1);
  fusion.compiler.release();
  finish_compiling();
  const Tensors together = run(*kernel, c, inputs);
  REQUIRE(fusion.stats().launches == 1);
  require_same_bits(single, together);
  require_same_bits(c.run_singly(inputs), together);
  for (size_t o = 0; o < together.size(); ++o) REQUIRE(together[o].dtype() == c.output_value(o).dtype());
}

}  // namespace

TEST_CASE("a group of every op gives the bits of the single kernels") {
  for (const FusedCase& c : every_op()) check_bits(c);
}

TEST_CASE("groups of training give the bits of the single kernels, and the numbers of the CPU") {
  for (const FusedCase& c : training_groups()) {
    if (!c.group()) continue;
    check_bits(c);
    Fusion fusion;
    const std::unique_ptr<FusedKernel> kernel = fused(c);
    const Tensors found = run_fused(*kernel, c, on_device(c.inputs()));
    INFO(c.name());
    for (size_t o = 0; o < found.size(); ++o) expect_same(c.output_value(o), found[o], 64);
  }
}

TEST_CASE("a run without memory for what lies between its nodes waits for its kernel") {
  const FusedCase c = named("dropout_residual float32 6x64");
  Fusion fusion;
  fusion.compiler.hold();
  const std::unique_ptr<FusedKernel> kernel = fused(c);
  const Tensors inputs = on_device(c.inputs());
  const Tensor out = memory_for(c.output_value(0));
  std::vector<TensorImpl*> in;
  for (const Tensor& x : inputs) in.push_back(x.get());
  TensorImpl* cell = out.get();
  Allocator& memory = gpu_of(0).memory();
  memory.set_limit(memory.stats().live_bytes);
  std::thread late([&] { fusion.compiler.release(); });
  kernel->run(in.data(), &cell, c.attrs().data());
  memory.set_limit(0);
  late.join();
  CHECK(fusion.stats().launches == 1);
  CHECK(fusion.stats().one_by_one == 0);
  require_same_bits(c.run_singly(inputs), {out});
}

TEST_CASE("where runs wait for kernels, the first one is the kernel's") {
  const FusedCase c = named("dropout_residual float32 6x64");
  Fusion fusion;
  fusion.compiler.hold();
  const std::unique_ptr<FusedKernel> kernel = fused(c);
  const Tensors inputs = on_device(c.inputs());
  fusion::set_waiting(true);
  std::thread late([&] { fusion.compiler.release(); });
  const Tensors together = run(*kernel, c, inputs);
  late.join();
  fusion::set_waiting(false);
  CHECK(fusion.stats().launches == 1);
  CHECK(fusion.stats().one_by_one == 0);
  require_same_bits(c.run_singly(inputs), together);
}

TEST_CASE("without memory, and without a kernel, it is an error") {
  const FusedCase c = named("dropout_residual float32 6x64");
  Fusion fusion;
  fusion.compiler.fails = true;
  const std::unique_ptr<FusedKernel> kernel = fused(c);
  const Tensors inputs = on_device(c.inputs());
  Allocator& memory = gpu_of(0).memory();
  const Tensor out = memory_for(c.output_value(0));
  std::vector<TensorImpl*> in;
  for (const Tensor& x : inputs) in.push_back(x.get());
  TensorImpl* cell = out.get();
  memory.set_limit(memory.stats().live_bytes);
  CHECK_THROWS_AS(kernel->run(in.data(), &cell, c.attrs().data()), OutOfMemory);
  memory.set_limit(0);
}

TEST_CASE("rows of one element and of none are left to the single kernels") {
  Fusion fusion;
  FusedCase one("one");
  one.output(one.node<ops::Sum>({one.node<ops::Exp>({one.input(ones({5, 1}))})}, {{1}}));
  CHECK_FALSE(fused(one));
  FusedCase none("none");
  none.output(none.node<ops::Sum>({none.node<ops::Exp>({none.input(ones({5, 0}))})}, {{1}}));
  CHECK_FALSE(fused(none));
  FusedCase empty("empty");
  empty.output(empty.node<ops::Exp>({empty.node<ops::Neg>({empty.input(ones({0, 5}))})}));
  const auto kernel = fused(empty);
  REQUIRE(kernel);
  CHECK(run(*kernel, empty, on_device(empty.inputs()))[0].numel() == 0);
}

TEST_CASE("an output may lie on the memory of an input") {
  const FusedCase c = named("mixed float32 6x64");
  Fusion fusion;
  fusion.compiler.hold();
  const std::unique_ptr<FusedKernel> kernel = fused(c);
  CHECK(kernel->may_overwrite(0, 0));
  const Tensors expected = run(*kernel, c, on_device(c.inputs()));
  require_same_bits(expected, run(*kernel, c, on_device(c.inputs()), 0, 0));
  fusion.compiler.release();
  finish_compiling();
  require_same_bits(expected, run(*kernel, c, on_device(c.inputs()), 0, 0));
  CHECK(fusion.stats().launches == 1);
  const FusedCase reduced = named("bias_gelu_backward float32 6x64");
  const std::unique_ptr<FusedKernel> sum = fused(reduced);
  CHECK(sum->may_overwrite(0, 0));
  CHECK_FALSE(sum->may_overwrite(0, 1));
  CHECK_FALSE(sum->may_overwrite(2, 0));  // the bias
}

TEST_CASE("inputs in other layouts have kernels of their own, and after some one for all") {
  const FusedCase c = named("dropout_residual float32 7x33");
  Fusion fusion;
  const std::unique_ptr<FusedKernel> kernel = fused(c);
  const Tensors inputs = on_device(c.inputs()), expected = run_fused(*kernel, c, inputs);
  REQUIRE(fusion.stats().launches >= 1);  // 2 where the kernel was there before the first run
  const auto turned = [](const Tensor& x) { return x.t().contiguous().t(); };
  const auto inner = [](const Tensor& x) { return cat({x, x}, 1).narrow(1, 0, x.size(1)); };
  const auto try_inputs = [&](const Tensors& in) {
    fusion.compiler.hold();
    require_same_bits(expected, run(*kernel, c, in));
    fusion.compiler.release();
    finish_compiling();
    require_same_bits(expected, run(*kernel, c, in));
  };
  NoGradGuard no_grad;
  try_inputs({turned(inputs[0]), inputs[1], inputs[2], inputs[3]});
  try_inputs({inputs[0], turned(inputs[1]), inputs[2], inputs[3]});
  try_inputs({inputs[0], inputs[1], inner(inputs[2]), inputs[3]});
  CHECK(fusion_stats().failed == 3);  // tests have no kernels for these
  const FusionStats before = fusion.stats();
  try_inputs({inner(inputs[0]), turned(inputs[1]), inner(inputs[2]), inputs[3]});
  try_inputs({turned(inputs[0]), inner(inputs[1]), inner(inputs[2]), inputs[3]});
  CHECK(fusion.stats().launches == before.launches + 3);  // all but the first run
  CHECK(fusion.stats().one_by_one == before.one_by_one + 1);
}

TEST_CASE("numbers among the attributes may be others at each run") {
  FusedCase c = named("dropout_residual float32 6x64");
  Fusion fusion;
  const std::unique_ptr<FusedKernel> kernel = fused(c);
  const Tensors inputs = on_device(c.inputs());
  run_fused(*kernel, c, inputs);
  std::vector<const void*> attrs = c.attrs();
  ops::ScalarOperand half;
  half.scalar = 0.5;
  attrs[1] = &half;
  std::vector<TensorImpl*> in;
  for (const Tensor& x : inputs) in.push_back(x.get());
  const Tensor out = memory_for(c.output_value(0));
  TensorImpl* cell = out.get();
  kernel->run(in.data(), &cell, attrs.data());
  require_same_bits(where(inputs[2], inputs[0], inputs[3]) * 0.5 + inputs[1], out);
}

TEST_CASE("an error of a fused kernel has its name") {
  const FusedCase c = named("dropout_residual float32 6x64");
  Fusion fusion;
  const std::unique_ptr<FusedKernel> kernel = fused(c);
  const Tensors inputs = on_device(c.inputs());
  run_fused(*kernel, c, inputs);
  const Tensor out = memory_for(c.output_value(0));
  std::vector<TensorImpl*> in;
  for (const Tensor& x : inputs) in.push_back(x.get());
  TensorImpl* cell = out.get();
  fusion.driver.next_launch = 9;  // cudaErrorInvalidConfiguration
  CHECK_THROWS_WITH(kernel->run(in.data(), &cell, c.attrs().data()),
                    Catch::StartsWith("cuda:0: " + c.source().name + ": "));
}

TEST_CASE("the same text is compiled once, for groups of other sizes too") {
  Fusion fusion;
  const auto chain = [](const IntArray& size) {
    FusedCase c("chain");
    const int32_t x = c.input(ones(Shape(size)));
    c.output(c.node<ops::Add>({c.node<ops::Exp>({x}), x}));
    return c;
  };
  CHECK(chain({4, 8}).source().text == chain({3, 5, 16}).source().text);
  for (const IntArray& size : {IntArray{4, 8}, IntArray{3, 5, 16}, IntArray{4, 8}}) {
    const FusedCase c = chain(size);
    run_fused(*fused(c), c, on_device(c.inputs()));
  }
  CHECK(fusion.compiler.compiled == 1);
  CHECK(fusion.stats().groups == 3);
}

TEST_CASE("a kernel that cannot be compiled or loaded is a note, and its nodes run one by one") {
  const FusedCase c = named("dropout_residual float32 6x64");
  const auto expect_note = [&](Fusion& fusion, const char* text) {
    const Tensors found = run_fused(*fused(c), c, on_device(c.inputs()));
    expect_same(c.output_value(0), found[0], 16);
    CHECK(fusion.stats().one_by_one == 2);
    CHECK(fusion_stats().failed == 1);
    CHECK(last_fusion_note().find(text) != std::string::npos);
  };
  SECTION("an error in the text") {
    Fusion fusion;
    fusion.compiler.fails = true;
    expect_note(fusion, "line 1: this is no kernel");
  }
  SECTION("an exception") {
    Fusion fusion;
    fusion.compiler.throws = true;
    expect_note(fusion, "the compiler is broken");
  }
  SECTION("code that does not load") {
    Fusion fusion;
    fusion.driver.next_load = 200;
    expect_note(fusion, "something failed");
    fusion.driver.next_load = kSuccess;
  }
}

TEST_CASE("without a compiler nothing is fused, and the reason is there") {
  Fusion fusion;
  CHECK(fusion_problem().empty());
  fusion::use_compiler(nullptr);
  CHECK_FALSE(fused(named("mixed float32 6x64")));
  CHECK_FALSE(fusion_problem().empty());
  CHECK(fusion_stats().compiled == 0);
}

TEST_CASE("a group may go while its kernel is compiled, and several threads may wait") {
  const FusedCase c = named("mixed float32 6x64"), other = named("dropout_residual float32 6x64");
  const Tensors inputs = on_device(c.inputs());
  Fusion fusion;
  fusion.compiler.hold();
  run(*fused(other), other, on_device(other.inputs()));
  const std::unique_ptr<FusedKernel> kernel = fused(c);
  const Tensors expected = run(*kernel, c, inputs);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) threads.emplace_back([&] { finish_compiling(); });
  fusion.compiler.release();
  for (std::thread& t : threads) t.join();
  require_same_bits(expected, run(*kernel, c, inputs));
  CHECK(fusion.compiler.compiled == 2);
}
