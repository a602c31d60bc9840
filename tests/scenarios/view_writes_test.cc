// Gradients of indexing, views and in-place writes, eager and traced: index kinds, strides, hooks across a
// write, repeated indices. Not tested here: random programs of views and writes (tests/conformance, suite
// views_inplace), errors (tests/engine/inplace_test.cc).
#include "hook_scenario.h"

namespace retrograd::scenario {
namespace {

using indexing::Ellipsis;
using indexing::None;
using indexing::Slice;

Tensor index_of(const Values& v, const Shape& shape = {}) {
  return tensor(v, shape.rank() ? shape : Shape{static_cast<int64_t>(v.size())}, {kInt64});
}
Tensor mask_of(const Values& v, const Shape& shape) { return gt(tensor(v, shape), 0.5); }

struct Case {
  const char* name;
  Indices index;
};

std::vector<Case> index_kinds() {  // of a tensor [3,4]
  return {{"integer", {int64_t{1}}},
          {"negative integer", {int64_t{-1}}},
          {"two integers", {int64_t{1}, int64_t{2}}},
          {"slice", {Slice{0, 2}}},
          {"slice with step", {Slice{{}, {}, 2}, Slice{1, 4, 2}}},
          {"integer and slice", {int64_t{2}, Slice{1, 3}}},
          {"ellipsis", {Ellipsis, int64_t{0}}},
          {"new axis", {None, int64_t{0}}},
          {"index tensor", {index_of({0, 2})}},
          {"two index tensors", {index_of({0, 2, 1}), index_of({3, 0, 2})}},
          {"slice and index tensor", {Slice{1, 3}, index_of({0, 3})}},
          {"index tensor and integer", {index_of({2, 0}), int64_t{1}}},
          {"index matrices", {index_of({0, 1, 2, 0}, {2, 2}), index_of({1, 1, 2, 3}, {2, 2})}},
          {"mask of rows", {mask_of({1, 0, 1}, {3})}},
          {"mask of elements", {mask_of({1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1}, {3, 4})}},
          {"everything", {Slice{}}}};
}

}  // namespace

TEST_CASE("S115 y[index] = number: the gradient of x is zero where it was written, one elsewhere") {
  for (const Case& c : index_kinds()) {
    INFO(c.name);
    run_both([&](Mode& mode) {
      const Tensor x = some_leaf({3, 4}), y = x + 2.0, where_written = zeros({3, 4});
      setitem_(y, c.index, 2.0);
      setitem_(where_written, c.index, 1.0);
      CHECK(value(sum(where_written)) > 0);
      mode.backward(sum(y));
      CHECK(values(x.grad()) == values(1.0 - where_written));
      return Tensors{x.grad()};
    });
  }
}

TEST_CASE("S115 y[index] = value: the gradient of the value is ones") {
  for (const Case& c : index_kinds()) {
    INFO(c.name);
    run_both([&](Mode& mode) {
      const Tensor x = some_leaf({3, 4}), y = x + 2.0, where_written = zeros({3, 4});
      const Tensor value = getitem(some_values({3, 4}), c.index).clone().requires_grad_();
      setitem_(y, c.index, value);
      setitem_(where_written, c.index, 1.0);
      mode.backward(sum(y));
      CHECK(values(x.grad()) == values(1.0 - where_written));
      CHECK(values(value.grad()) == values(ones(value.sizes())));
      return Tensors{x.grad(), value.grad()};
    });
  }
}

TEST_CASE("S115 a value that is broadcast gets the number of elements that it was written to") {
  run_both([](Mode& mode) {
    const Tensor x = some_leaf({3, 4}), y = x + 2.0, one = scalar_leaf(5), row = some_leaf({4});
    setitem_(y, {int64_t{0}}, one);
    setitem_(y, {Slice{1, 3}}, row);
    mode.backward(sum(y));
    CHECK(value(one.grad()) == 4);
    CHECK(values(row.grad()) == Values{2, 2, 2, 2});
    CHECK(value(sum(x.grad())) == 0);
    return Tensors{x.grad(), one.grad(), row.grad()};
  });
}

TEST_CASE("S116 a write through a view with strides and an offset changes the gradient of the base there") {
  run_both([](Mode& mode) {
    const Tensor x = some_leaf({4, 6}), base = x * 1.0;
    const Tensor view = as_strided(base, {2, 3}, {12, 2}, 1);  // rows 0 and 2, columns 1, 3, 5
    view.mul_(3.0);
    t(base).narrow(0, 0, 1).mul_(some_values({1, 4}) * 10.0);  // column 0
    mode.backward(sum(base));
    Values expected(24, 1);
    for (size_t row : {0, 2})
      for (size_t column : {1, 3, 5}) expected[row * 6 + column] = 3;
    const Values factors = values(some_values({4}) * 10.0);
    for (size_t row = 0; row < 4; ++row) expected[row * 6] = factors[row];
    CHECK(values(x.grad()) == expected);
    return Tensors{x.grad()};
  });
}

TEST_CASE("S117 retain_grad moves along with a view that is written to, hooks stay with the old value") {
  run_both([](Mode& mode) {
    const Tensor x = leaf({1, 2, 3, 4}), base = x * 1.0, view = base.narrow(0, 1, 2);
    const auto log = [&mode](const char* name) {
      return [&mode, name](const Tensor& g) {
        return mode.log(std::string(name) + " " + to_string(g)), Tensor();
      };
    };
    base.register_hook(log("base, old"));
    base.retain_grad();
    view.retain_grad();
    view.mul_(2.0);
    base.register_hook(log("base, new"));
    view.register_hook(log("view, new"));
    mode.backward(sum(base * base) + sum(view) * 10.0);
    CHECK(mode.events.size() == 3);
    CHECK(values(view.grad()) == Values{10, 10});
    CHECK(values(base.grad()) == Values{2, 18, 22, 8});  // 2 * base, and 10 through the view
    CHECK(values(x.grad()) == Values{2, 36, 44, 8});
    return Tensors{x.grad(), base.grad(), view.grad()};
  });
}

TEST_CASE("S118 an index that names an element several times adds up") {
  run_both(
      [](Mode& mode) {
        const Tensor x = some_leaf({4, 2}), v = some_leaf({4});
        mode.backward(sum(index_select(x, 0, index_of({1, 1, 3, 1}))));
        mode.backward(sum(getitem(v, {index_of({0, 0, 2, 0, 2})})));
        CHECK(values(x.grad()) == Values{0, 0, 3, 3, 0, 0, 1, 1});
        CHECK(values(v.grad()) == Values{3, 0, 2, 0});
        const Tensor table = some_leaf({3, 2});
        mode.backward(sum(embedding(table, index_of({2, 0, 2, 2}))));
        CHECK(values(table.grad()) == Values{1, 1, 0, 0, 3, 3});
        const Tensor y = some_leaf({3}), source = some_leaf({4});
        mode.backward(sum(index_put(y, {index_of({1, 1, 0, 1})}, source, true) * tensor({1.0, 2, 3})));
        CHECK(values(y.grad()) == Values{1, 2, 3});
        CHECK(values(source.grad()) == Values{2, 2, 1, 2});
        return Tensors{x.grad(), v.grad(), table.grad(), source.grad()};
      },
      4);
}

TEST_CASE("S119 select, slice and diagonal of an expanded vector sum the gradient over what was repeated") {
  run_both(
      [](Mode& mode) {
        const Tensor v = leaf({1, 2, 3});
        const auto gradient = [&](const std::function<Tensor(const Tensor&)>& of) {
          const Tensor g = mode.grad(sum(of(expand(v, {4, 3})) * 2.0), v);
          return g;
        };
        const Tensor row = gradient([](const Tensor& m) { return m.select(0, 2); });
        const Tensor column = gradient([](const Tensor& m) { return m.select(1, 1); });
        const Tensor part = gradient([](const Tensor& m) { return slice(m, 0, 1, 3); });
        const Tensor diag = gradient([](const Tensor& m) { return diagonal(m); });
        const Tensor all = gradient([](const Tensor& m) { return m; });
        CHECK(values(row) == Values{2, 2, 2});
        CHECK(values(column) == Values{0, 8, 0});
        CHECK(values(part) == Values{4, 4, 4});
        CHECK(values(diag) == Values{2, 2, 2});
        CHECK(values(all) == Values{8, 8, 8});
        return Tensors{row, column, part, diag, all};
      },
      5);
}

TEST_CASE("S119 broadcasting a product sums each gradient to the shape of its operand") {
  run_both([](Mode& mode) {
    const Tensor a = some_leaf({3, 1}), b = some_leaf({4}), c = scalar_leaf(2);
    mode.backward(sum(a * b * c));
    const double sum_a = value(sum(a)), sum_b = value(sum(b));
    for (double g : values(a.grad())) CHECK(g == Approx(2 * sum_b).margin(1e-6));
    for (double g : values(b.grad())) CHECK(g == Approx(2 * sum_a).margin(1e-6));
    CHECK(value(c.grad()) == Approx(sum_a * sum_b).margin(1e-6));
    CHECK(c.grad().dim() == 0);
    return Tensors{a.grad(), b.grad(), c.grad()};
  });
}

TEST_CASE("S120 results of chunk, split and unbind that nobody used have zero gradients") {
  run_both(
      [](Mode& mode) {
        const Tensor a = leaf({1, 2, 3, 4, 5, 6}), b = some_leaf({3, 2}), c = leaf({1, 2, 3});
        mode.backward(sum(chunk(a, 3)[1] * 2.0));
        mode.backward(sum(split(b, 1)[2]));
        mode.backward(unbind(c)[0] * 5.0);
        CHECK(values(a.grad()) == Values{0, 0, 2, 2, 0, 0});
        CHECK(values(b.grad()) == Values{0, 0, 0, 0, 1, 1});
        CHECK(values(c.grad()) == Values{5, 0, 0});
        return Tensors{a.grad(), b.grad(), c.grad()};
      },
      3);
}

}  // namespace retrograd::scenario
