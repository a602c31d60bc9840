// cuSOLVER as a Solver (cuda/solver_cusolver.cc), without a device: with stand-ins for cuSOLVER's functions
// (fake_cusolver.h) the device of tests runs everything except cuSOLVER's own kernels. The machine's cuSOLVER, if there
// is one, is opened as far as that is possible without a device.
#include <dlfcn.h>

#include "cuda/open_library.h"
#include "tests/cuda/linalg_cases.h"
#include "tracer/plan/run.h"

#if defined(RG_WITH_TOOLKIT) && __has_include(<cusolverDn.h>)
#include "tests/cuda/fake_cusolver.h"

using namespace retrograd;
using cuda::SolverUse;
using fake_cusolver::world;

namespace {

// open_cusolver() of a library, and why not.
struct Opened {
  cuda::SolverProblem problem;
  std::unique_ptr<cuda::Solver> solver;
  explicit Opened(void* library) { solver = cuda::open_cusolver(problem, library); }
};

void* this_program() { return dlopen(nullptr, RTLD_NOW); }

// A device with the stand-ins as its library. Earlier devices keep their library.
class WithFake {
 public:
  explicit WithFake(SolverUse use = SolverUse::wherever_it_can) {
    renew([](cuda::SolverProblem& problem) { return cuda::open_cusolver(problem, this_program()); });
    cuda::gpu_of(0).use_solver(use);
    world = {.live = world.live};
  }
  ~WithFake() { renew({}); }
  WithFake(const WithFake&) = delete;

  cuda::SolverStats stats() const { return cuda::gpu_of(0).solver_stats(); }

 private:
  static void renew(std::function<std::unique_ptr<cuda::Solver>(cuda::SolverProblem&)> make) {
    device_on_host().make_solver = std::move(make);
    renew_device();
  }
};

// While it lives the driver provides no more memory than it has so far; so a library gets only memory that the
// allocator returns.
class NoMoreMemory {
 public:
  NoMoreMemory() { device_on_host().capacity = device_on_host().used; }
  ~NoMoreMemory() { device_on_host().capacity = before_; }
  NoMoreMemory(const NoMoreMemory&) = delete;

 private:
  const size_t before_ = device_on_host().capacity;
};

// The allocator has unused memory.
void leave_memory_unused() { zeros({1 << 22}).to(kCUDA); }

// All ops that factor, of matrices of several sizes.
void try_factorisations() {
  for (ScalarType dtype : {kFloat32, kFloat64})
    for (const Batch& b :
         {Batch{{}, 1}, Batch{{3}, 5}, Batch{{2, 3}, 4}, Batch{{}, 33}, Batch{{2}, 0}, Batch{{0}, 4}}) {
      INFO(to_string(Shape(matrices(b))) << " " << name(dtype));
      const Tensor a = regular(b, dtype), p = positive(b, dtype);
      against_cpu<ops::LuFactor>({a}, {}, 2, scale_of(b));
      against_cpu<ops::LuFactor>({in_columns(a)}, {}, 2, scale_of(b));
      against_cpu<ops::Inverse>({in_columns(a)}, {}, 1, scale_of(b));
      for (bool upper : {false, true}) {
        against_cpu<ops::Cholesky>({upper ? triu(p) : tril(p)}, {upper}, 1, scale_of(b));
        against_cpu<ops::Cholesky>({in_columns(p)}, {upper}, 1, scale_of(b));
      }
    }
}

}  // namespace

TEST_CASE("a library without the functions is not taken for cuSOLVER") {
  const Opened opened(dlopen("libm.so.6", RTLD_NOW));
  CHECK(!opened.solver);
  CHECK(opened.problem.text == "the library has no cusolverGetVersion");
  CHECK(!opened.problem.may_pass);
}

TEST_CASE("the machine's cuSOLVER has all functions, or it is said that there is none") {
  const Opened opened(nullptr);
  const std::string& problem = opened.problem.text;
  INFO(problem);
  if (opened.solver) return;
  CHECK((problem.find("cusolverDnCreate: status ") == 0 || problem.find("libcusolver") != std::string::npos));
}

TEST_CASE("of a library that cannot be opened the loader's words for both tries are given") {
  std::string problem;
  CHECK(cuda::open_library("libno_such_library.so.1", problem) == nullptr);
  CHECK(problem.find("libno_such_library.so.1: ") == 0);
  CHECK(problem.find("; ") != std::string::npos);
  CHECK(problem.find("/lib64/libno_such_library.so.1: ") != std::string::npos);
  CHECK(cuda::open_library("libm.so.6", problem) != nullptr);
  CHECK(problem.empty());
}

TEST_CASE("factorisations through cuSOLVER's functions") {
  WithFake library;
  REQUIRE(cuda::gpu_of(0).solver());
  CHECK(cuda::gpu_of(0).solver()->name() == "cuSOLVER 12.0.34");
  try_factorisations();
  CHECK(library.stats().computed == world.factored);
  CHECK(library.stats().computed > 100);
  CHECK(library.stats().declined == 0);
  CHECK(world.stream == cuda::gpu_of(0).compute().handle());
}

TEST_CASE("numbers have their own type, and a triangle in rows is the other one in columns") {
  WithFake library;
  const Tensor a = positive({{}, 3}, kFloat32);
  cholesky(a.to(kCUDA));
  CHECK(world.triangle == CUBLAS_FILL_MODE_UPPER);
  CHECK(world.type == CUDA_R_32F);
  cholesky(a.to(kFloat64).to(kCUDA), true);
  CHECK(world.triangle == CUBLAS_FILL_MODE_LOWER);
  CHECK(world.type == CUDA_R_64F);
}

TEST_CASE("large matrices are the library's, and not too many of them") {
  WithFake library(SolverUse::where_it_wins);
  const auto factored = [](const IntArray& size) {
    const int before = world.factored;
    const Tensor a = unit_numbers(size, kFloat32) + eye(size.back()) * 20.0;
    against_cpu<ops::LuFactor>({a}, {}, 2, 100);
    return world.factored - before;
  };
  CHECK(factored({127, 127}) == 0);
  CHECK(factored({128, 128}) == 1);
  CHECK(factored({2, 4, 128, 128}) == 8);
  CHECK(factored({9, 128, 128}) == 0);
  cuda::gpu_of(0).use_solver(SolverUse::never);
  CHECK(factored({128, 128}) == 0);
}

TEST_CASE("what the library declines, or fails at, is computed by the library's own kernels") {
  WithFake library;
  world.declines = true;
  try_factorisations();
  CHECK(library.stats().computed == 0);
  CHECK(library.stats().declined > 100);
  CHECK(world.factored == 0);
  world.declines = false;
  for (int matrices : {0, 1, 2}) {  // of three: those in place are spoilt
    const int64_t failed = library.stats().failed;
    world.fails_after = matrices;
    world.factored = 0;
    against_cpu<ops::LuFactor>({regular({{3}, 6}, kFloat64)}, {}, 2, 40);
    world.factored = 0;
    against_cpu<ops::Cholesky>({positive({{3}, 6}, kFloat64)}, {true}, 1, 40);
    CHECK(library.stats().failed == failed + 6);
  }
}

TEST_CASE("sizes for which the library wants memory of the host are declined") {
  WithFake library;
  world.host_bytes = 24;
  try_factorisations();
  CHECK(library.stats().computed == 0);
  CHECK(library.stats().declined > 100);
  CHECK(library.stats().failed == 0);
}

TEST_CASE("a handle for which there was no memory is made once the allocator has given back what is unused") {
  WithFake library;
  const Tensor a = regular({{}, 6}, kFloat32), there = a.to(kCUDA);  // there is room for everything else
  leave_memory_unused();
  const NoMoreMemory none;
  world.handle_bytes = 1 << 20;
  against_cpu<ops::LuFactor>({a}, {}, 2, 40);
  CHECK(library.stats().computed == 1);
  CHECK(library.stats().failed == 0);
  CHECK(cuda::gpu_of(0).solver_problem().empty());
}

TEST_CASE(
    "where there is no memory for a handle the library's own kernels compute, and the next call asks again") {
  WithFake library;
  const Tensor a = regular({{2}, 6}, kFloat32), there = a.to(kCUDA);  // nothing is unused
  world.handle_bytes = 1 << 20;
  {
    const NoMoreMemory none;
    against_cpu<ops::LuFactor>({a}, {}, 2, 40);
    CHECK(cuda::gpu_of(0).solver_problem() == "cusolverDnCreate: status 2");
  }
  CHECK(library.stats().computed == 0);
  CHECK(library.stats().failed == 2);
  against_cpu<ops::LuFactor>({a}, {}, 2, 40);
  CHECK(library.stats().computed == 2);
  CHECK(cuda::gpu_of(0).solver_problem().empty());
}

TEST_CASE("what the library fails at is tried again where the allocator has unused memory to give back") {
  WithFake library;
  for (bool has_unused : {true, false}) {
    cuda::gpu_of(0).memory().trim();
    if (has_unused) leave_memory_unused();
    world.factored = 0;
    world.fails_after = 1;
    world.fails_once = true;
    const cuda::SolverStats before = library.stats();
    against_cpu<ops::LuFactor>({regular({{3}, 6}, kFloat64)}, {}, 2, 40);
    CHECK(library.stats().computed == before.computed + (has_unused ? 3 : 0));
    CHECK(library.stats().failed == before.failed + (has_unused ? 0 : 3));
  }
}

TEST_CASE("matrices that the library cannot factor are reported as on the CPU") {
  WithFake library;
  const Tensor unit = eye(3), batch = stack({unit, zeros({3, 3}), unit});
  expect_failure({batch}, "inverse: matrix 1 of the batch is singular",
                 [](const Tensors& t) { inverse(t[0]); });
  CHECK(det(batch.to(kCUDA)).to_vector() == std::vector<double>{1, 0, 1});
  against_cpu<ops::LuFactor>({batch}, {}, 2);
  against_cpu<ops::LuFactor>({tensor({1, 2, 3, 2, 4, 6, 1, 1, 1}, {3, 3}, {kFloat64})}, {}, 2);
  // The stand-in leaves a diagonal above zero: only its report on the matrix counts.
  for (bool upper : {false, true})
    expect_failure({stack({unit, unit, -unit})}, "cholesky: matrix 2 of the batch is not positive definite",
                   [upper](const Tensors& t) { cholesky(t[0], upper); });
}

TEST_CASE("a library's factorisation cuts a step") {
  WithFake library;
  const Tensor a = regular({{}, 6}, kFloat32).to(kCUDA);
  FunctionCache cache(FunctionKind::step);
  const auto body = [](const Tensors& t) -> Tensors { return {retrograd::exp(inverse(t[0] * 2.0)) * 0.5}; };
  const std::vector<double> expected = body({a})[0].to_vector();
  for (int i = 0; i < 4; ++i) CHECK(cache.run(body, {a})[0].to_vector() == expected);
  INFO(cache.segments());
  CHECK(cache.segments().find("cut at inverse: its library may wait for the device") != std::string::npos);
  CHECK(cache.stats().launches.graph_launches > 0);
  CHECK(library.stats().computed == 5);
  CHECK(library.stats().declined == 0);
}

TEST_CASE("without the library it is said why") {
  device_on_host();
  renew_device();
  CHECK(cuda::gpu_of(0).solver() == nullptr);
  CHECK(cuda::gpu_of(0).solver_problem() == "the host has none");
}

TEST_CASE("all handles are given back") {
  const int live = world.live;
  {
    const Opened opened(this_program());
    CHECK(opened.solver);
    CHECK(world.live == live + 2);
  }
  CHECK(world.live == live);
}

#else

TEST_CASE("a build without the toolkit says so") {
  retrograd::cuda::SolverProblem problem;
  CHECK(!retrograd::cuda::open_cusolver(problem));
  CHECK(problem.text.find("built without") != std::string::npos);
}

#endif
