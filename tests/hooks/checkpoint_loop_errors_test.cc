// checkpoint_loop: what it refuses, and what it notices before the backward.
#include "hooks/checkpoint_loop.h"

#include <catch2/catch.hpp>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/hooks/loops.h"

namespace rg = retrograd;
using rg::category_of;
using rg::Tensor;
using rg::Tensors;
using rg::testing::LoopModel;

TEST_CASE("a file that cannot be made, or that belongs to another process") {
  const Tensor start = rg::ones({4}).requires_grad_();
  const auto body = [](const Tensor& u) { return rg::sin(u); };
  CHECK_THROWS_AS(rg::checkpoint_loop(50, body, start, {.slots = 1, .disk_slots = 3, .folder = "/nowhere"}),
                  rg::FileError);
  const Tensor loss =
      rg::sum(rg::checkpoint_loop(50, body, start, {.slots = 1, .disk_slots = 3, .folder = "."}));
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      loss.backward();
    } catch (const rg::FileError&) {
      code = 0;
    }
    _exit(code);
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  loss.backward();
  CHECK(start.grad().defined());
}

TEST_CASE("what a loop refuses") {
  const LoopModel model;
  const Tensors parameters{model.w};
  std::string text;
  const auto run = [&](auto body, rg::CheckpointLoopOptions options) {
    return category_of([&] { rg::sum(rg::checkpoint_loop(6, body, model.start, options)).backward(); },
                       &text);
  };
  CHECK(run(model.body(), {.slots = 2}) == rg::Category::bad_argument);
  CHECK_THAT(text, Catch::Contains("the leaf f32[4,4]") && Catch::Contains("options.parameters") &&
                       Catch::Contains("checkpoint_loop_errors_test.cc:"));
  const Tensor constant = model.start.detach();
  CHECK(category_of([&] { rg::checkpoint_loop(6, model.body(), constant); }) == rg::Category::bad_argument);
  const Tensor k = rg::exp(model.w);
  CHECK(run([&](const Tensor& u) { return rg::mm(u, k); }, {.slots = 2}) == rg::Category::bad_argument);
  CHECK_THAT(text, Catch::Contains("a result of exp made at"));
  CHECK(run(model.body(), {.slots = 0, .parameters = parameters}) == rg::Category::bad_argument);
  CHECK(run(model.body(), {.disk_slots = 2, .parameters = parameters}) == rg::Category::bad_argument);
  CHECK(run([](const Tensor& u) { return rg::sum(u); }, {}) == rg::Category::bad_argument);
  CHECK_THAT(text, Catch::Contains("the body returned f32[] for tensor 0 of the state, which is f32[3,4]"));
  const auto writes = [](const Tensor& u) {
    const rg::NoGradGuard no_grad;
    return u.mul_(2.0);
  };
  CHECK(run(writes, {}) == rg::Category::version_mismatch);
  CHECK_THAT(text, Catch::Contains("was written to in place"));
  CHECK(run([](const Tensor& u, int64_t i) { return i == 4 ? rg::mm(u, u) : rg::sin(u); }, {}) ==
        rg::Category::shape_mismatch);
  CHECK_THAT(text, Catch::Contains("in step 4 of the checkpoint_loop called at"));
  CHECK(category_of([&] { rg::checkpoint_loop(-1, model.body(), model.start); }) ==
        rg::Category::bad_argument);
  CHECK(category_of([&] { rg::checkpoint_loop_steps(3, 0); }) == rg::Category::bad_argument);
}

TEST_CASE("a parameter that is written to before the backward is noticed, under a pair that copies, too") {
  for (const bool copies : {false, true}) {
    const LoopModel model;
    std::optional<rg::SavedTensorHooksGuard> guard;
    if (copies) guard.emplace(rg::save_on_cpu());
    const Tensor loss =
        rg::sum(rg::checkpoint_loop(10, model.body(), model.start, {.slots = 2, .parameters = {model.w}}));
    guard.reset();
    {
      const rg::NoGradGuard no_grad;
      model.w.mul_(0.5);
    }
    std::string text;
    CHECK(category_of([&] { loss.backward(); }, &text) == rg::Category::version_mismatch);
    CHECK_THAT(
        text, Catch::Contains("parameter 0, f32[4,4]") && Catch::Contains("checkpoint_loop_errors_test.cc:"));
  }
}
