// Fused groups on the device of tests: their kernels, compiled for the host from the texts that NVRTC would get, give the bits of the single
// kernels; layouts and memory; what happens while a kernel is compiled, when it cannot be, and when its code was kept. Plans with groups.
// Not tested here: NVRTC itself (nvrtc_test.cc), a device's arithmetic.
#include <sys/stat.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cuda/fusion/compiler.h"
#include "tests/cuda/device_on_host.h"
#include "tests/cuda/fused_case.h"
#include "tests/cuda/fused_step.h"
#include "tests/cuda/host_kernels.h"

using namespace retrograd;
using namespace retrograd::cuda;

namespace {

// Its code is a word; the driver of tests finds the kernels by name. Can be held back, and made to fail.
class TestCompiler final : public fusion::Compiler {
 public:
  std::string version() const override { return version_; }
  Result compile(const fusion::Source& source, const std::vector<std::string>&) override {
    std::unique_lock lock(mutex_);
    opens_.wait(lock, [this] { return !is_held_; });
    ++compiled;
    if (throws) throw std::runtime_error("the compiler is broken");
    if (fails) return {"", "line 1: this is no kernel"};
    return {"code of " + source.name, ""};
  }
  void hold() {
    std::lock_guard lock(mutex_);
    is_held_ = true;
  }
  void release() {
    std::lock_guard lock(mutex_);
    is_held_ = false;
    opens_.notify_all();
  }
  std::atomic<int> compiled{0};
  std::atomic<bool> fails{false}, throws{false};
  std::string version_ = "test 1";

 private:
  std::mutex mutex_;
  std::condition_variable opens_;
  bool is_held_ = false;
};

// Fusion with that compiler while the object lives. Counts are since it began.
struct Fusion {
  HostDriver& driver = device_on_host();
  TestCompiler compiler;
  FusionStats before;
  Fusion() {
    if (driver.kernels.empty()) driver.kernels = fused_kernels();
    fusion::use_compiler(&compiler);
    set_kernel_cache("");
    before = fusion_stats();
  }
  ~Fusion() {
    compiler.release();
    fusion::use_compiler(nullptr);
  }
  FusionStats stats() const {
    FusionStats s = fusion_stats();
    s.groups -= before.groups;
    s.launches -= before.launches;
    s.one_by_one -= before.one_by_one;
    return s;
  }
};

Tensors on_device(const Tensors& list) {
  Tensors there;
  for (const Tensor& x : list) there.push_back(with_layout_on_device(x));
  return there;
}

std::unique_ptr<FusedKernel> fused(const FusedCase& c) {
  return c.with_group([](const FusedGroup& g) { return cuda_executor(0).fuse(g); });
}

Tensor memory_for(const Tensor& like) {
  RefPtr<TensorImpl> cell = TensorImpl::make();
  cell->set_type(like.dtype(), Device(kCUDA, 0), like.impl().shape());
  cuda_executor(0).allocate(*cell);
  return Tensor(std::move(cell));
}

// With output `onto` in the memory of input `donor`, unless that is -1.
Tensors run(const FusedKernel& kernel, const FusedCase& c, const Tensors& inputs, int donor = -1,
            size_t onto = 0) {
  Tensors outputs;
  std::vector<TensorImpl*> in, out;
  for (const Tensor& x : inputs) in.push_back(x.get());
  for (size_t o = 0; o < c.outputs(); ++o) {
    outputs.push_back(donor >= 0 && o == onto ? inputs[static_cast<size_t>(donor)]
                                              : memory_for(c.output_value(o)));
    out.push_back(outputs.back().get());
  }
  kernel.run(in.data(), out.data(), c.attrs().data());
  return outputs;
}

// When its kernel is there.
Tensors run_fused(const FusedKernel& kernel, const FusedCase& c, const Tensors& inputs) {
  run(kernel, c, inputs);
  finish_compiling();
  return run(kernel, c, inputs);
}

// NaN equals NaN.
void require_same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.cpu(), y = b.cpu();
  const std::vector<double> v = x.to_vector(), w = y.to_vector();
  const size_t item = element_size(x.dtype());
  const char *p = static_cast<const char*>(x.raw_data()), *q = static_cast<const char*>(y.raw_data());
  for (size_t i = 0; i < v.size(); ++i) {
    if (std::memcmp(p + i * item, q + i * item, item) == 0 || (v[i] != v[i] && w[i] != w[i])) continue;
    INFO("element " << i << ": " << v[i] << " and " << w[i]);
    REQUIRE(false);
  }
}
void require_same_bits(const Tensors& a, const Tensors& b) {
  for (size_t o = 0; o < a.size(); ++o) {
    INFO("output " << o);
    require_same_bits(a[o], b[o]);
  }
}

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
  for (size_t o = 0; o < together.size(); ++o) REQUIRE(together[o].dtype() == c.output_value(o).dtype());
}

// What reduces an input that is not contiguous is left to the single kernel, whose order depends on strides.
bool is_one_kernel(const FusedCase& c) { return c.group().has_value(); }

FusedCase named(const std::string& name) {
  for (FusedCase& c : training_groups())
    if (c.name() == name) return std::move(c);
  throw std::logic_error(name);
}

}  // namespace

TEST_CASE("a group of every op gives the bits of the single kernels") {
  for (const FusedCase& c : every_op()) check_bits(c);
}

TEST_CASE("groups of training give the bits of the single kernels, and the numbers of the CPU") {
  for (const FusedCase& c : training_groups()) {
    if (!is_one_kernel(c)) continue;
    check_bits(c);
    Fusion fusion;
    const std::unique_ptr<FusedKernel> kernel = fused(c);
    const Tensors found = run_fused(*kernel, c, on_device(c.inputs()));
    INFO(c.name());
    for (size_t o = 0; o < found.size(); ++o) expect_same(c.output_value(o), found[o], 64);
  }
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
  REQUIRE(fusion.stats().launches == 1);
  const auto turned = [](const Tensor& x) { return x.t().contiguous().t(); };
  const auto inner = [](const Tensor& x) { return cat({x, x}, 1).narrow(1, 0, x.size(1)); };
  const auto try_inputs = [&](const Tensors& in) {
    require_same_bits(expected, run(*kernel, c, in));
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
  CHECK(fusion.stats().launches ==
        before.launches + 3);  // but for the first run, which was compiled meanwhile
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

// ---- plans ----

TEST_CASE("a compiled function runs its groups as kernels, with the bits of the eager one") {
  Fusion fusion;
  FusedStep step;
  const auto loss = [&](const Tensor& x) { return step.loss(x); };
  const Tensors expected = step.gradients(loss);
  auto compiled = compile(loss);
  fusion.compiler.hold();
  require_same_bits(expected, step.gradients(compiled));
  const FusionStats first = fusion.stats();
  CHECK(first.groups > 1);
  CHECK(first.one_by_one == first.groups);
  fusion.compiler.release();
  finish_compiling();
  for (int i = 0; i < 3; ++i) require_same_bits(expected, step.gradients(compiled));
  CHECK(fusion.stats().launches >= first.groups);  // those that are recorded run without being asked for
  CHECK(fusion.stats().one_by_one == first.groups);
  CHECK(fusion_stats().failed == 0);
  CHECK(compiled.stats().captures == 1);
}

TEST_CASE("a launch that is recorded waits for its kernel") {
  Fusion fusion;
  FusedStep step;
  const auto loss = [&](const Tensor& x) { return step.loss(x); };
  const Tensors expected = step.gradients(loss);
  auto compiled = compile(loss);
  fusion.compiler.hold();
  step.gradients(compiled);  // launches step by step
  std::thread late([&] { fusion.compiler.release(); });
  for (int i = 0; i < 2; ++i) require_same_bits(expected, step.gradients(compiled));
  late.join();
  CHECK(fusion.stats().launches + fusion.stats().one_by_one >= 2 * fusion.stats().groups);
  CHECK(fusion_stats().failed == 0);
}

// ---- kept code ----

namespace {

namespace fs = std::filesystem;

struct TestFolder {
  std::string top, path;
  TestFolder() : top((fs::temp_directory_path() / "kernel-cache-XXXXXX").string()) {
    REQUIRE(::mkdtemp(top.data()));
    path = top + "/kernels";
  }
  ~TestFolder() {
    std::error_code ignored;
    fs::remove_all(top, ignored);
  }
  std::string only_file() const {
    std::vector<std::string> all;
    for (const auto& item : fs::directory_iterator(path)) all.push_back(item.path().string());
    REQUIRE(all.size() == 1);
    return all[0];
  }
};

// As a new process would: compiled or found, then run.
FusionStats use_folder(const TestFolder& folder, const std::string& version = "test 1") {
  const FusedCase c = named("dropout_residual float32 6x64");
  Fusion fusion;
  fusion.compiler.version_ = version;
  set_kernel_cache(folder.path);
  expect_same(c.output_value(0), run_fused(*fused(c), c, on_device(c.inputs()))[0], 16);
  CHECK(fusion.stats().launches == 1);
  CHECK(fusion_stats().compiled == fusion.compiler.compiled);
  return fusion_stats();
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("code is kept in a private folder and found there") {
  const TestFolder folder;
  CHECK(use_folder(folder).compiled == 1);
  struct stat s;
  REQUIRE(::stat(folder.only_file().c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0600);
  REQUIRE(::stat(folder.path.c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0700);
  const FusionStats second = use_folder(folder);
  CHECK(second.compiled == 0);
  CHECK(second.cache_hits == 1);
}

TEST_CASE("another compiler's code does not count") {
  const TestFolder folder;
  use_folder(folder);
  CHECK(use_folder(folder, "test 2").compiled == 1);
}

TEST_CASE("a damaged or foreign entry is passed over and replaced") {
  const TestFolder folder;
  use_folder(folder);
  const std::string file = folder.only_file(), bytes = bytes_of(file);
  std::string flipped = bytes;
  flipped.back() ^= 1;
  for (const std::string& bad :
       {std::string(), bytes.substr(0, bytes.size() / 2), flipped, std::string("x") + bytes}) {
    write_bytes(file, bad);
    CHECK(use_folder(folder).compiled == 1);
    CHECK(bytes_of(file) == bytes);
    CHECK(use_folder(folder).cache_hits == 1);
  }
  REQUIRE(::chmod(file.c_str(), 0644) == 0);  // others could have written it
  CHECK(use_folder(folder).compiled == 1);
}

TEST_CASE("a folder that others may use is not used") {
  const TestFolder folder;
  use_folder(folder);
  REQUIRE(::chmod(folder.path.c_str(), 0755) == 0);
  CHECK(use_folder(folder).compiled == 1);
}

// ---- the text ----

TEST_CASE("the text of a small group") {
  FusedCase c("small");
  const int32_t x = c.input(ones({4, 8})), bias = c.input(ones({8}));
  const int32_t sum = c.with_number<ops::Mul>(c.node<ops::Add>({x, bias}), 0.5);
  c.output(c.node<ops::Tanh>({sum}));
  const fusion::Source source = c.source();
  std::string text = source.text;
  for (size_t at; (at = text.find(source.name)) != std::string::npos;)
    text.replace(at, source.name.size(), "NAME");
  CHECK(source.name.starts_with("fused_add_mul_tanh_"));
  CHECK(text == R"(#include "cuda/fusion/fused.cuh"
#include "ops/activations.h"
#include "ops/arithmetic.h"

namespace retrograd::cuda::RG_TARGET {

struct NAME_call {
  int64_t numel;
  const float* in0;
  const float* in1;
  float* out0;
  StridedGrid<1> grid;
  alignas(8) ops::Add::Attrs node0;
  alignas(8) ops::Mul::Attrs node1;
};

extern "C" __global__ void __launch_bounds__(kThreads) NAME(const NAME_call call) {
  for (int64_t i = first_pack<4>(); i < call.numel; i += pack_step<4>()) {
    const int count = in_pack<4>(i, call.numel);
    const Offsets<1> at(call.grid, i);
    const auto in0 = read<4>(call.in0, i, count);
    const auto in1 = read<4>(call.in1, at[0], 4);
    Pack<float, 4> out0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float v0 = node<ops::Add, float, float>(call.node0, in0.v[k], in1.v[k]);
      const float v1 = node<ops::Mul, float, float>(call.node1, v0, call.node1.scalar);
      const float v2 = node<ops::Tanh, float, float>({}, v1);
      out0.v[k] = v2;
    }
    write<4>(call.out0, i, count, out0);
  }
}

}  // namespace retrograd::cuda::RG_TARGET
)");
}

TEST_CASE("the text of a group with reductions") {
  const fusion::Source source = named("squared_error bfloat16 6x64").source();
  std::string text = source.text;
  for (size_t at; (at = text.find(source.name)) != std::string::npos;)
    text.replace(at, source.name.size(), "NAME");
  CHECK(text.find(R"(  for (int64_t k = part.begin; k < part.end; k += cut.lanes) {
    const int64_t i = part.row * cut.rows.stride[0] + k * cut.along.stride[0];
    const auto in0 = call.in0[i];
    const auto in1 = call.in1[i];
    const BFloat16 v0 = node<ops::Sub, float, BFloat16>(call.node0, in0, in1);
    const BFloat16 v1 = node<ops::Square, float, BFloat16>({}, v0);
    const BFloat16 v3 = node<ops::Mul, float, BFloat16>(call.node3, v0, call.node3.scalar);
    call.out1[i] = v3;
    merge<Reduction::sum>(r2, of_one<Reduction::sum>(converted<float>(v1), k, 0.0));
  }
  end_row<Reduction::sum>(call.reduce2, Finish::mean, part, found, r2);
)") != std::string::npos);
  CHECK(source.merges == std::vector<std::string>{source.name + "_merge_sum_mean"});
}
