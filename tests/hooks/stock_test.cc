// Stock saved-tensor hooks: what they change and what they do not, values after a round trip, files and their failures.
//
// Not tested here: the hook mechanism itself (conformance suite "hooks"), training under the pairs (tests/examples), a
// really full disk: the file size limit of the process simulates it, which fails at the same place.
#include <catch2/catch.hpp>

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "retrograd/retrograd.h"
#include "tests/hooks/pairs.h"
#include "tests/own_folder.h"

namespace rg = retrograd;
namespace fs = std::filesystem;
using rg::Tensor;
using rg::testing::is_left_as_it_is;
using rg::testing::there_and_back;
using rg::testing::wave;

namespace {

struct Folder : rg::testing::OwnFolder {
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(path)) all.push_back(entry.path());
    return all;
  }
};

// Largest difference between a and b, relative to the largest |a|.
double error(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector(), y = b.to_vector();
  REQUIRE(x.size() == y.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    REQUIRE_FALSE(std::isnan(y[i]));
    largest = std::max(largest, std::fabs(x[i]));
    difference = std::max(difference, std::fabs(x[i] - y[i]));
  }
  return difference / largest;
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const rg::FileError& e) {
    return e.what();
  }
  FAIL("no FileError was thrown");
  return {};
}

}  // namespace

TEST_CASE("half and fp8 give back dtype and shape, and values to their precision") {
  const auto half = rg::save_as_half(), fp8 = rg::save_as_fp8();
  for (rg::ScalarType dtype : {rg::kFloat32, rg::kFloat64}) {
    const Tensor x = wave(600, 3, dtype).view({20, 30});
    for (const auto& [hooks, precision] : {std::pair(half, 0x1p-11), std::pair(fp8, 0x1p-4)}) {
      const Tensor y = there_and_back(*hooks, x);
      CHECK(y.dtype() == dtype);
      CHECK(y.sizes() == x.sizes());
      CHECK(error(x, y) <= precision);
      CHECK(error(x, y) > 0);
    }
  }
  CHECK(error(wave(300, 1, rg::kFloat16), there_and_back(*fp8, wave(300, 1, rg::kFloat16))) <= 0x1p-4);
  // Per-tensor scale: tiny and large tensors keep the same relative precision, and the largest element is hit.
  for (double scale : {1e-30, 1e-6, 1e30})
    CHECK(error(wave(300, scale), there_and_back(*fp8, wave(300, scale))) <= 0x1p-4);
  CHECK(there_and_back(*fp8, rg::full({300}, 5.0)).to_vector()[7] == Approx(5).epsilon(1e-6));
  CHECK(there_and_back(*fp8, rg::zeros({300})).to_vector() == std::vector<double>(300, 0));
}

TEST_CASE("a strided tensor comes back with its values") {
  const Folder folder;
  const Tensor x = wave(600).view({20, 30}).t();
  for (const auto& hooks : {rg::save_as_half(), rg::save_as_fp8(), rg::save_to_file(folder.path)}) {
    const Tensor y = there_and_back(*hooks, x);
    CHECK(y.sizes() == x.sizes());
    CHECK(error(x, y) <= 0x1p-4);
  }
}

TEST_CASE("97: small tensors, other dtypes, kept and expanded tensors are left as they are") {
  const Folder folder;
  const Tensor weight = wave(1024);
  for (const auto& hooks :
       {rg::save_as_half({weight}), rg::save_as_fp8({weight}), rg::save_to_file(folder.path, {weight})}) {
    CHECK(is_left_as_it_is(*hooks, wave(rg::kSmallestPacked - 1)));
    CHECK_FALSE(is_left_as_it_is(*hooks, wave(rg::kSmallestPacked)));
    CHECK(is_left_as_it_is(*hooks, rg::zeros({1000}, {rg::kInt64})));
    CHECK(is_left_as_it_is(*hooks, weight));
    CHECK(is_left_as_it_is(*hooks, weight.view({32, 32}).t()));
    CHECK(is_left_as_it_is(*hooks, rg::expand(wave(4), {1000, 4})));
  }
  CHECK(is_left_as_it_is(*rg::save_as_half(), wave(1000, 1, rg::kFloat16)));
}

TEST_CASE("fp8 of numbers so small that the scale would not be a normal number") {
  const auto fp8 = rg::save_as_fp8();
  CHECK(there_and_back(*fp8, rg::full({300}, 1e-38)).to_vector()[0] == Approx(1e-38).epsilon(0.04));
  CHECK(there_and_back(*fp8, rg::zeros({300})).to_vector() == std::vector<double>(300, 0));
}

TEST_CASE("gradients under the pairs: exact through files, close through half and fp8") {
  const Folder folder;
  const Tensor x0 = wave(512).view({16, 32}), w = wave(1024, 0.2).view({32, 32}).requires_grad_();
  const auto gradient = [&](const rg::RefPtr<rg::SavedTensorHooks>& hooks, bool traced) {
    const Tensor x = x0.clone().requires_grad_();
    Tensor loss;
    {
      rg::SavedTensorHooksGuard guard(hooks);
      loss = rg::sum(rg::tanh(rg::mm(x, w)) * x);
    }
    if (traced)
      rg::compile_backward()(loss);
    else
      loss.backward();
    return x.grad();
  };
  const auto plain =
      rg::saved_tensor_hooks([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; });
  const Tensor want = gradient(plain, false);
  for (bool traced : {false, true}) {
    CHECK(gradient(rg::save_to_file(folder.path, {w}), traced).to_vector() == want.to_vector());
    CHECK(error(want, gradient(rg::save_as_half({w}), traced)) < 1e-3);
    CHECK(error(want, gradient(rg::save_as_fp8({w}), traced)) < 0.1);
  }
  CHECK(folder.files().empty());
}

TEST_CASE("a file goes with the value that it holds") {
  const Folder folder;
  const auto hooks = rg::save_to_file(folder.path);
  {
    const Tensor x = wave(300).requires_grad_();
    rg::SavedTensorHooksGuard guard(hooks);
    const Tensor y = rg::sin(x);
    CHECK(folder.files().size() == 1);
    CHECK(fs::file_size(folder.files()[0]) == 1200);
  }
  CHECK(folder.files().empty());  // the graph was dropped without a backward
}

TEST_CASE("files are the parent's: a child that was forked reads them, and leaves them there") {
  const Folder folder;
  const Tensor x = wave(300).requires_grad_();
  Tensor y;
  {
    rg::SavedTensorHooksGuard guard(rg::save_to_file(folder.path));
    y = rg::sum(rg::sin(x));
  }
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    bool is_right = false;
    try {
      y.backward();
      is_right = x.grad().to_vector() == rg::cos(x.detach()).to_vector();
      y = Tensor();
    } catch (...) {
    }
    ::_exit(is_right ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(folder.files().size() == 1);
  y.backward();
  CHECK(x.grad().to_vector() == rg::cos(x.detach()).to_vector());
  CHECK(folder.files().empty());
}

TEST_CASE("a relative folder is that of the call, and an empty path is none") {
  const Folder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path);
  const auto hooks = rg::save_to_file(".");
  fs::current_path(before);
  const std::any payload = hooks->pack(wave(300));
  CHECK(folder.files().size() == 1);
  CHECK(hooks->unpack(payload).to_vector() == wave(300).to_vector());
  CHECK_THAT(message([] { rg::save_to_file(""); }), Catch::Contains("empty"));
}

TEST_CASE("problems with a file name its path") {
  const Folder folder;
  const auto hooks = rg::save_to_file(folder.path);
  const Tensor x = wave(300);
  CHECK_THAT(message([] { rg::save_to_file("/nowhere/at/all")->pack(wave(300)); }),
             Catch::Contains("/nowhere/at/all"));

  std::any payload = hooks->pack(x);
  const std::string path = folder.files()[0].string();
  fs::resize_file(path, 100);
  CHECK_THAT(message([&] { hooks->unpack(payload); }), Catch::Contains(path));
  fs::resize_file(path, 1200);  // the right size, other bytes
  CHECK_THAT(message([&] { hooks->unpack(payload); }), Catch::Contains(path) && Catch::Contains("hash"));
  fs::remove(path);
  CHECK_THAT(message([&] { hooks->unpack(payload); }),
             Catch::Contains(path) && Catch::Contains("No such file"));
}

TEST_CASE("a full disk is a FileError, leaves no file, and the next tensor is saved again") {
  const Folder folder;
  const auto hooks = rg::save_to_file(folder.path);
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto previous = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, old.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string text = message([&] { hooks->pack(wave(300)); });
  setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, previous);
  CHECK_THAT(text, Catch::Contains(folder.path));
  CHECK(folder.files().empty());
  CHECK(error(wave(300), there_and_back(*hooks, wave(300))) == 0);
}
