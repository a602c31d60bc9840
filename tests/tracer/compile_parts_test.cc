// Arguments and results of compiled functions: structs, tuples, optionals, vectors and maps of tensors; fixed parts;
// copies; the line of the call in errors.
#include <catch2/catch.hpp>

#include "tests/scenarios/scenario.h"

namespace {

using namespace scenario;
using Catch::Contains;

enum class Norm { l1, l2 };

struct Batch {
  Tensor x;
  std::optional<Tensor> mask;
  std::vector<Tensor> more;
  std::map<std::string, Tensor> named;
};

struct Options {
  double beta = 1;
  Norm norm = Norm::l1;
  bool is_scaled = false;
  std::string name = "a";
};

struct Output {
  Tensor loss;
  std::optional<Tensor> masked;
  std::pair<Tensor, std::array<Tensor, 2>> parts;
};

class Hidden {
 public:
  explicit Hidden(Tensor t) : t_(std::move(t)) {}
  auto members() { return std::tie(t_); }
  const Tensor& value() const { return t_; }

 private:
  Tensor t_;
};

Output apply(const Batch& batch, const Options& options) {
  Tensor y = batch.x * options.beta;
  if (options.is_scaled) y = y / 3.0;
  for (const Tensor& t : batch.more) y = y + t;
  for (const auto& [name, t] : batch.named)
    if (name == options.name) y = y * t;
  Output out;
  if (batch.mask) out.masked = y * *batch.mask;
  const Tensor& last = out.masked ? *out.masked : y;
  out.loss = options.norm == Norm::l1 ? rg::sum(rg::abs(last)) : rg::sum(last * last);
  out.parts = {y, {last, rg::exp(y)}};
  return out;
}

Batch batch_of(int kind) {
  Batch batch{parameter({2, 3}, kind), {}, {}, {}};
  if (kind & 1) batch.mask = spread(rg::Shape{2, 3}, kind + 1);
  if (kind & 2) batch.more = {spread(rg::Shape{3}, kind + 2), spread(rg::Shape{2, 1}, kind + 3)};
  if (kind & 4) batch.named = {{"a", spread(rg::Shape{2, 3}, kind + 4)}, {"b", spread(rg::Shape{3}, kind + 5)}};
  return batch;
}

Tensors flat(const Output& out) {
  Tensors all{out.loss, out.parts.first, out.parts.second[0], out.parts.second[1]};
  if (out.masked) all.push_back(*out.masked);
  return all;
}

}  // namespace

TEST_CASE("structs as arguments and results: values and gradients of the eager call") {
  auto compiled = rg::compile(apply);
  for (int round = 0; round < 2; ++round)
    for (int kind = 0; kind < 8; ++kind)
      for (const Options& options : {Options{}, Options{0.5, Norm::l2, true, "b"}}) {
        const Batch batch = batch_of(kind);
        const Output eager = apply(batch, options), plan = compiled(batch, options);
        REQUIRE(eager.masked.has_value() == plan.masked.has_value());
        check_same(flat(eager), flat(plan));
        CHECK(same_bits(rg::autograd::grad({eager.loss}, {batch.x})[0], rg::autograd::grad({plan.loss}, {batch.x})[0]));
        CHECK(plan.parts.second[0].is_same(plan.masked ? *plan.masked : plan.parts.first));
      }
  CHECK(compiled.stats().captures == 16);
  CHECK(compiled.stats().hits == 16);
}

TEST_CASE("a part of an argument that is no tensor is fixed: another one is another recording, with the reason") {
  auto compiled = rg::compile(apply);
  const auto reason_for = [&](int kind, const Options& options) {
    compiled(batch_of(kind), options);
    return compiled.last_capture_reason();
  };
  CHECK(reason_for(0, {}) == "first call");
  CHECK(reason_for(0, {0.5}) == "the number in argument 1 was 1.0, is 0.5");
  CHECK(reason_for(0, {0.5, Norm::l2}) == "the enumerator in argument 1 was 0, is 1");
  CHECK(reason_for(0, {0.5, Norm::l2, true}) == "the flag in argument 1 was false, is true");
  CHECK(reason_for(0, {0.5, Norm::l2, true, "b"}) == "the text in argument 1 was \"a\", is \"b\"");
  CHECK(reason_for(1, {0.5, Norm::l2, true, "b"}) == "the presence in argument 0 was false, is true");
  CHECK(reason_for(3, {0.5, Norm::l2, true, "b"}) == "the length in argument 0 was 0, is 2");
  const int64_t captures = compiled.stats().captures;
  CHECK(reason_for(0, {}) == "the length in argument 0 was 0, is 2");
  CHECK(compiled.stats().captures == captures);
  const double nan = std::nan("");
  for (const double beta : {nan, nan, 0.0, -0.0}) compiled(batch_of(0), Options{beta});
  CHECK(compiled.stats().captures == captures + 3);
}

TEST_CASE("classes with members(), tuples, nested optionals, and results without a tensor") {
  auto compiled = rg::compile([](Hidden h, const std::tuple<Tensor, std::optional<std::pair<Tensor, int>>>& more) {
    Tensor y = h.value() * std::get<0>(more);
    if (const auto& last = std::get<1>(more)) y = y + last->first * last->second;
    return Hidden(y);
  });
  const Tensor a = parameter({3}, 1), b = parameter({3}, 2), c = parameter({3}, 3);
  CHECK(same_bits(compiled(Hidden(a), std::tuple(b, std::nullopt)).value(), a * b));
  for (const int factor : {2, 3, 2})
    CHECK(same_bits(compiled(Hidden(a), std::tuple(b, std::pair(c, factor))).value(), a * b + c * factor));
  CHECK(compiled.stats().captures == 3);
  auto none = rg::compile_step([](std::optional<Tensor> x) { return std::pair<std::optional<Tensor>, Tensors>{x, {}}; });
  CHECK_FALSE(none(std::nullopt).first);
  CHECK(none(a.detach()).first->is_same(a) == false);
  CHECK(none(a.detach()).second.empty());
}

TEST_CASE("a step with a struct, and a gradient in each call") {
  const Tensor w = parameter({3}, 5);
  struct Loss {
    Tensor value, gradient;
  };
  auto step = rg::compile_step([&](const Batch& batch) {
    const Tensor loss = rg::sum(batch.x * w);
    w.set_grad({});
    loss.backward();
    return Loss{loss, w.grad()};
  });
  for (int i = 0; i < 3; ++i) {
    const Tensor x = spread(rg::Shape{2, 3}, i);
    const Loss got = step(Batch{x, {}, {}, {}});
    CHECK(same_bits(got.value, rg::sum(x * w).detach()));
    CHECK(same_bits(got.gradient, rg::sum(x, 0)));
  }
  CHECK(step.stats().captures == 1);
}

TEST_CASE("copies share the function and its recordings; one may be move-only or in a std::function") {
  auto counter = std::make_unique<int>(0);
  int* const calls = counter.get();
  auto compiled = rg::compile([counter = std::move(counter)](const Tensor& x) {
    ++*counter;
    return x * 2.0;
  });
  const std::function<Tensor(const Tensor&)> stored = compiled;
  auto copy = compiled;
  const Tensor x = leaf({1, 2});
  for (int i = 0; i < 2; ++i) {
    CHECK(values(compiled(x)) == std::vector<double>{2, 4});
    CHECK(values(copy(x)) == std::vector<double>{2, 4});
    CHECK(values(stored(x)) == std::vector<double>{2, 4});
  }
  CHECK(*calls == 1);
  CHECK(compiled.stats().captures == 1);
  CHECK(copy.stats().hits == 5);
  copy.reset();
  CHECK(compiled.stats().hits == 0);
  std::vector<std::function<Tensor(const Tensor&)>> many(3, compiled);
  CHECK(values(many[2](x)) == std::vector<double>{2, 4});
}

TEST_CASE("errors name the line of the call, whatever the arguments are") {
  const Tensor x = leaf({1, 2}), history = x * 2.0;
  const auto line_of = [](int expected, const std::string& error) {
    CHECK_THAT(error, Contains("compile_parts_test.cc:" + std::to_string(expected)));
  };
  auto none = rg::compile([&] { return history * 2.0; });
  line_of(__LINE__, error_of([&] { none(); }));
  auto one = rg::compile([](const Tensor& t) { return t; });
  line_of(__LINE__, error_of([&] { one(Tensor()); }));
  auto second = rg::compile([](Tensor, std::optional<Tensor> t) { return t; });
  line_of(__LINE__, error_of([&] { second(x, Tensor()); }));
  auto batch = rg::compile(apply);
  line_of(__LINE__, error_of([&] { batch(Batch{}, Options{}); }));
  auto generic = rg::compile([](const auto& t, const auto& u) { return t * u; });
  line_of(__LINE__, error_of([&] { generic(x, Tensor()); }));
  CHECK(same_bits(generic(x, x), x * x));
  auto number = rg::compile([&](double v, const Tensor& t) { return t * v * history; });
  line_of(__LINE__, error_of([&] { number(2.0, x); }));
  const int compiled_at = __LINE__ + 1;
  const std::function<Tensor(const Tensor&)> stored = rg::compile([](const Tensor& t) { return t; });
  line_of(compiled_at, error_of([&] { stored(Tensor()); }));
}

TEST_CASE("an overloaded function takes a tensor first, and default arguments stay usable") {
  auto compiled = rg::compile([](const Tensor& x, double factor = 3) { return x * factor; });
  const Tensor x = leaf({1});
  CHECK(values(compiled(x, 2)) == std::vector<double>{2});
  CHECK(values(compiled(x)) == std::vector<double>{3});
}
