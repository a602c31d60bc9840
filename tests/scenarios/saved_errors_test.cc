// Saved tensors: what is refused and with which text, exceptions of pack and unpack, what slots hold and keep alive.
// Not tested here: hooks that work (saved_hooks_test.cc), the content of slots (saved_slots_test.cc).
#include <stdexcept>

#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

struct Broken : std::exception {
  const char* what() const noexcept override { return "broken"; }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("S95, hook 17 disabled hooks refuse a guard with the given text; texts nest and return") {
  std::string text;
  const auto open = [] { SavedTensorHooksGuard guard(identity_hooks()); };
  {
    DisableSavedTensorHooks outer("the outer reason");
    CHECK(category_of(open, &text) == Category::hook_forbidden);
    CHECK(contains(text, "the outer reason"));
    {
      DisableSavedTensorHooks inner("the inner reason");
      category_of(open, &text);
      CHECK(contains(text, "the inner reason"));
    }
    category_of(open, &text);
    CHECK(contains(text, "the outer reason"));
  }
  CHECK_NOTHROW(open());
  SavedTensorHooksGuard guard(scaling(2, 1));
  CHECK(category_of([] { DisableSavedTensorHooks inside("inside"); }) == Category::hook_forbidden);
  CHECK_NOTHROW(open());
  in_both([](Mode& mode) {  // the refused one has no effect: 2 * (2a)
    const Tensor a = leaf({1, 2});
    mode.backward(sum(a * a));
    CHECK(values(a.grad()) == Values{4, 8});
  });
}

TEST_CASE("S97, hook 9 a pack hook that writes to its input is an error of the op, or of the registration") {
  const auto writes = [] {
    return saved_tensor_hooks([](const Tensor& t) { return t.add_(full({2}, 1.0)); },
                              [](const Tensor& t) { return t; });
  };
  std::string text;
  const Tensor a = leaf({1, 2}), x = a * 1.0;
  const auto forward = [&] {
    SavedTensorHooksGuard guard(writes());
    exp(x);
  };
  CHECK(category_of(forward, &text) == Category::hook_forbidden);
  CHECK(contains(text, "in place"));
  const Tensor y = sin(a * 1.0);
  CHECK(category_of([&] { y.grad_fn().register_saved_tensor_hooks(0, writes()); }) ==
        Category::hook_forbidden);
}

TEST_CASE("S98, hook 10 an unpack hook that gives nothing, or another type, is an error that names both") {
  in_both([](Mode& mode) {
    std::string text;
    const Tensor a = leaf({1, 2});
    const auto loss_with = [&](std::function<Tensor(const Tensor&)> unpack_hook) {
      SavedTensorHooksGuard guard([](const Tensor& t) { return t; }, unpack_hook);
      return sum(exp(a));
    };
    const Tensor nothing = loss_with([](const Tensor&) { return Tensor(); });
    CHECK(category_of([&] { mode.backward(nothing); }, &text) == Category::hook_bad_result);
    CHECK(contains(text, "undefined"));
    CHECK(contains(text, "f32[2]"));
    const Tensor other = loss_with([](const Tensor& t) { return t.to(kFloat64); });
    CHECK(category_of([&] { mode.backward(other); }, &text) == Category::hook_bad_result);
    CHECK(contains(text, "f64[2]"));
    const Tensor longer = loss_with([](const Tensor&) { return ones({3}); });
    CHECK(category_of([&] { mode.backward(longer); }, &text) == Category::hook_bad_result);
    CHECK(contains(text, "f32[3]"));
    CHECK_FALSE(a.grad().defined());
  });
}

TEST_CASE("S99, hook 12 hooks on a slot that has some, is freed, or holds nothing: three different errors") {
  const Tensor a = leaf({1, 2});
  std::string hooked, freed, undefined;
  const Tensor y = a * a;
  y.grad_fn().register_saved_tensor_hooks(0, identity_hooks());
  CHECK(category_of([&] { y.grad_fn().register_saved_tensor_hooks(0, identity_hooks()); }, &hooked) ==
        Category::hook_forbidden);
  sum(y).backward();
  CHECK(category_of([&] { y.grad_fn().register_saved_tensor_hooks(1, identity_hooks()); }, &freed) ==
        Category::hook_forbidden);
  const Tensor plain = a + a;
  CHECK(plain.grad_fn().saved_count() == 0);
  CHECK(category_of([&] { plain.grad_fn().register_saved_tensor_hooks(0, identity_hooks()); }, &undefined) ==
        Category::hook_forbidden);
  CHECK(hooked != freed);
  CHECK(freed != undefined);
  CHECK(hooked != undefined);
  CHECK(contains(freed, "freed"));
  CHECK(contains(hooked, "before"));
  CHECK(contains(undefined, "no saved value"));
}

TEST_CASE("S100, hook 11 an exception of pack leaves the op with its type, and the graph as it was") {
  in_both([](Mode& mode) {
    const Tensor a = leaf({1, 2}), b = a * 2.0;
    CHECK_THROWS_AS(
        [&] {
          SavedTensorHooksGuard guard([](const Tensor&) -> Tensor { throw Broken(); },
                                      [](const Tensor& t) { return t; });
          b* b;
        }(),
        Broken);
    CHECK_THROWS_AS(
        [&] {
          SavedTensorHooksGuard guard([](const Tensor&) -> Tensor { throw 7; },
                                      [](const Tensor& t) { return t; });
          exp(b);
        }(),
        int);
    mode.backward(sum(b * b));
    CHECK(values(a.grad()) == Values{8, 16});
  });
}

TEST_CASE("S100, hook 11 an exception of unpack leaves the backward with its type; the next one works") {
  in_both([](Mode& mode) {
    const Tensor a = leaf({1, 2});
    bool broken = true;
    const auto loss = [&] {
      SavedTensorHooksGuard guard([](const Tensor& t) { return t; },
                                  [&](const Tensor& t) {
                                    if (broken) throw Broken();
                                    return t;
                                  });
      return sum(a * a);
    };
    for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(mode.backward(loss()), Broken);
    CHECK_FALSE(a.grad().defined());
    broken = false;
    mode.backward(loss());
    CHECK(values(a.grad()) == Values{2, 4});
  });
}

TEST_CASE("S101, hook 15 a saved input that was written to: op, operand, type and versions are named") {
  in_both([](Mode& mode) {
    const Tensor a = some_leaf({5, 5}), y = a * a, w = some_values({5, 5}).requires_grad_();
    const Tensor q = y * w, fine = y + 1.0;
    y.add_(ones({5, 5}));
    const std::string written = "in place at saved_errors_test.cc:" + std::to_string(__LINE__ - 1);
    std::string text;
    CHECK(category_of([&] { mode.backward(sum(q)); }, &text) == Category::version_mismatch);
    const std::string saved = "saved at saved_errors_test.cc:" + std::to_string(__LINE__ - 5);
    for (const std::string& part : {std::string("mul"), std::string("operand 0"), std::string("f32[5,5]"),
                                    std::string("version 1"), std::string("version 0"), written, saved}) {
      INFO(part << " in " << text);
      CHECK(contains(text, part));
    }
    mode.backward(sum(y + fine));  // nothing of y is saved here
    CHECK(same_bits(a.grad(), a.detach() * 4.0));
  });
}

}  // namespace retrograd::scenario
