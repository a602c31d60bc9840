// Plans with fused groups on the device of tests, and compiled code that is kept from one process to the
// next.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/cuda/fused_step.h"
#include "tests/cuda/fusion_fixture.h"
#include "tests/own_folder.h"

using namespace retrograd;
using namespace retrograd::cuda;

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
  CHECK(fusion.stats().launches >= first.groups);  // recorded ones are not counted
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

TEST_CASE("a step with dropout between its groups, run as a graph, has the bits of eager ones") {
  Fusion fusion;
  const FusedStep step;
  const auto body = [&](const Tensor& x) { return step.whole(step.dropped_loss(x)); };
  auto whole = compile_step(body);
  const auto results = [&](auto&& run, int i) {
    manual_seed(static_cast<uint64_t>(i));
    Tensors found{step.run(run)};
    for (const Tensor& g : step.gradients_now()) found.push_back(g.clone());
    return found;
  };
  const int64_t uploads = gpu_of(0).number_uploads();
  for (int i = 0; i < 8; ++i) require_same_bits(results(body, i), results(whole, i));
  const LaunchStats stats = whole.stats().launches;
  CHECK(stats.graph_launches == 7);
  CHECK(stats.recordings == 1);
  CHECK(stats.updates == 0);
  CHECK(gpu_of(0).number_uploads() - uploads == 7);
  CHECK(stats.given_up == 0);
  CHECK(fusion.stats().groups > 1);
  CHECK(fusion.stats().launches > 0);
  CHECK(fusion_stats().failed == 0);
}

TEST_CASE("planned peaks are met while kernels are compiled, when they are there, and without a kernel") {
  Fusion fusion;
  const FusedStep step;
  const auto loss = [&](const Tensor& x) { return step.loss(x); };
  auto function = compile(loss);
  auto whole = compile_step([&](const Tensor& x) {
    const Tensor value = step.loss(x);
    value.backward();
    return value;
  });
  CompiledBackward backward = compile_backward();
  struct Kind {
    const char* name;
    std::function<void()> run;
  };
  const std::vector<Kind> kinds = {{"function", [&] { step.gradients(function); }},
                                   {"captured",
                                    [&] {
                                      const CompiledBackwardScope scope(backward);
                                      step.gradients(loss);
                                    }},
                                   {"step", [&] { step.run(whole); }}};
  const auto peak = [](const Kind& kind) {
    const PeakMeter watch;
    kind.run();
    INFO(kind.name);
    CHECK(watch.report().runs > 0);
    CHECK(watch.report().differing == 0);
    return watch.report().measured_bytes;
  };
  for (const Kind& kind : kinds) {
    fusion.compiler.hold();
    const int64_t first = peak(kind), alone = fusion.stats().one_by_one;
    CHECK(alone > 0);
    fusion.compiler.release();
    finish_compiling();
    CHECK(peak(kind) <= first);
    CHECK(fusion.stats().one_by_one == alone);
    CHECK(fusion.stats().launches > 0);
    fusion::use_compiler(&fusion.compiler);  // forgets the kernels
    fusion.compiler.hold();
    fusion.before.one_by_one += alone;
  }
}

// ---- captured backwards ----

namespace {

struct Traced : Fusion {
  FusedStep step;
  CompiledBackward backward = compile_backward();

  template <class F>
  Tensors gradients(const FusedStep& of, F&& f) {
    const CompiledBackwardScope scope(backward);
    return of.gradients(f);
  }
  template <class F>
  Tensors gradients(F&& f) {
    return gradients(step, f);
  }
  int64_t groups() const {
    const auto graph = backward.graph();
    int32_t last = -1;
    for (const ir::Node& node : graph->nodes()) last = std::max(last, node.group);
    return last + 1;
  }
};

}  // namespace

TEST_CASE_METHOD(Traced, "a captured backward runs its groups as kernels, with the bits of the eager one") {
  const auto loss = [&](const Tensor& x) { return step.loss(x); };
  const Tensors expected = step.gradients(loss);
  compiler.hold();
  require_same_bits(expected, gradients(loss));
  CHECK(groups() > 2);
  CHECK(stats().groups == groups());
  CHECK(stats().one_by_one == groups());
  compiler.release();
  finish_compiling();
  require_same_bits(expected, gradients(loss));
  CHECK(stats().launches == groups());
  CHECK(stats().one_by_one == groups());
  CHECK(fusion_stats().failed == 0);
}

TEST_CASE_METHOD(Traced, "the groups of a captured backward are those of all sizes") {
  const auto check = [&](const FusedStep& of) {
    const auto loss = [&](const Tensor& x) { return of.loss(x); };
    require_same_bits(of.gradients(loss), gradients(of, loss));
    finish_compiling();
    const FusionStats now = stats();
    require_same_bits(of.gradients(loss), gradients(of, loss));
    CHECK(stats().launches == now.launches + groups());
  };
  check(step);
  check(FusedStep(6));
  CHECK(backward.stats().captures == 1);
  CHECK(backward.stats().plans == 2);
}

TEST_CASE_METHOD(Traced, "a captured backward with groups may be left after a hook, between records") {
  const auto loss = [&](const Tensor& x) { return step.hooked_loss(x); };
  const Tensors expected = step.gradients(loss);
  for (int i = 0; i < 3; ++i) {
    require_same_bits(expected, gradients(loss));
    finish_compiling();
  }
  CHECK(groups() > 0);
  CHECK(backward.stats().left == 3);
  CHECK(backward.stats().captures == 1);
  CHECK(stats().launches >= 1);
}

TEST_CASE_METHOD(Traced, "saved values that come back from elsewhere are read by groups") {
  const auto loss = [&](const Tensor& x) { return step.loss(x); };
  const Tensors expected = step.gradients(loss);
  const SavedTensorHooksGuard guard(save_on_cpu());
  for (int i = 0; i < 2; ++i) {
    require_same_bits(expected, gradients(loss));
    finish_compiling();
  }
  CHECK(groups() > 0);
  CHECK(backward.stats().left == 0);
  CHECK(stats().launches >= groups());
}

TEST_CASE_METHOD(Traced, "no captured backward is fused where the pass is switched off") {
  ::setenv("RETROGRAD_PASSES_OFF", "fuse", 1);
  const auto loss = [&](const Tensor& x) { return step.loss(x); };
  require_same_bits(step.gradients(loss), gradients(loss));
  ::unsetenv("RETROGRAD_PASSES_OFF");
  CHECK(groups() == 0);
  CHECK(stats().groups == 0);
}

TEST_CASE_METHOD(Traced,
                 "the planned peak of a captured backward with groups is met, and not above that without") {
  const auto loss = [&](const Tensor& x) { return step.loss(x); };
  gradients(loss);
  finish_compiling();
  const auto peak = [&] {
    const PeakMeter watch;
    gradients(loss);
    CHECK(watch.report().runs == 1);
    CHECK(watch.report().differing == 0);
    return watch.report().measured_bytes;
  };
  const int64_t fused = peak();
  fusion::use_compiler(nullptr);
  backward.reset();
  CHECK(fused <= peak());
}

// ---- kept code ----

namespace {

namespace fs = std::filesystem;

struct TestFolder {
  retrograd::testing::OwnFolder top;
  std::string path = top.path + "/kernels";
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
  CHECK(fusion.stats().launches >= 1);  // 2 where the kernel was there before the first run
  CHECK(fusion.stats().launches + fusion.stats().one_by_one == 2);
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
  REQUIRE(::chmod(file.c_str(), 0644) == 0);  // other users could have written it
  CHECK(use_folder(folder).compiled == 1);
}

TEST_CASE("a folder that others may use is not used") {
  const TestFolder folder;
  use_folder(folder);
  REQUIRE(::chmod(folder.path.c_str(), 0755) == 0);
  CHECK(use_folder(folder).compiled == 1);
}
