// Negative indices: which functions count them from the end, and which refuse them. A table of all functions that take
// an index, as in PyTorch.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

Tensor index(const std::vector<int64_t>& i) {
  return rg::tensor(i, {static_cast<int64_t>(i.size())}, {rg::kInt64});
}

const Tensor& written(const Tensor& x, const std::function<void(const Tensor&)>& write) {
  write(x);
  return x;
}

struct Row {
  const char* name;
  Tensor (*f)(const Tensor& x, const Tensor& i);
  bool wraps;
};

// Functions of x (3) and an index (2).
const Row kRows[] = {
    {"getitem", [](const Tensor& x, const Tensor& i) { return rg::getitem(x, {i}); }, true},
    {"setitem_",
     [](const Tensor& x, const Tensor& i) {
       return written(x.clone(), [&](const Tensor& y) { rg::setitem_(y, {i}, 7); });
     },
     true},
    {"index_put", [](const Tensor& x, const Tensor& i) { return rg::index_put(x, {i}, rg::full({2}, 7.0)); },
     true},
    {"index_put, accumulated",
     [](const Tensor& x, const Tensor& i) { return rg::index_put(x, {i}, rg::full({2}, 7.0), true); }, true},
    {"take", [](const Tensor& x, const Tensor& i) { return rg::take(x, i); }, true},
    {"take_along_dim", [](const Tensor& x, const Tensor& i) { return rg::take_along_dim(x, i, 0); }, true},
    {"take_along_dim of all", [](const Tensor& x, const Tensor& i) { return rg::take_along_dim(x, i); },
     true},
    {"gather", [](const Tensor& x, const Tensor& i) { return rg::gather(x, 0, i); }, false},
    {"scatter", [](const Tensor& x, const Tensor& i) { return rg::scatter(x, 0, i, rg::full({2}, 7.0)); },
     false},
    {"scatter a number", [](const Tensor& x, const Tensor& i) { return rg::scatter(x, 0, i, 7); }, false},
    {"scatter_add",
     [](const Tensor& x, const Tensor& i) { return rg::scatter_add(x, 0, i, rg::full({2}, 7.0)); }, false},
    {"index_select", [](const Tensor& x, const Tensor& i) { return rg::index_select(x, 0, i); }, false},
    {"index_add", [](const Tensor& x, const Tensor& i) { return rg::index_add(x, 0, i, rg::full({2}, 7.0)); },
     false},
    {"index_copy", [](const Tensor& x, const Tensor& i) { return rg::index_copy(x, 0, i, rg::full({2}, 7.0)); },
     false},
    {"scatter_reduce",
     [](const Tensor& x, const Tensor& i) {
       return rg::scatter_reduce(x, 0, i, rg::full({2}, 7.0), "prod", false);
     },
     false},
    {"index_reduce",
     [](const Tensor& x, const Tensor& i) {
       return rg::index_reduce(x, 0, i, rg::full({2}, 7.0), "mean", false);
     },
     false},
    {"index_fill", [](const Tensor& x, const Tensor& i) { return rg::index_fill(x, 0, i, 7); }, true},
    {"put", [](const Tensor& x, const Tensor& i) { return rg::put(x, i, rg::full({2}, 7.0)); }, true},
    {"embedding",
     [](const Tensor& x, const Tensor& i) {
       return rg::embedding(rg::reshape(x, {3, 1}), i);
     },
     false},
    {"one_hot", [](const Tensor&, const Tensor& i) { return rg::one_hot(i, 3); }, false},
};

std::vector<double> values(const Tensor& x) { return x.to_vector(); }

TEST_CASE(
    "Negative indices wrap around, or are refused, as in PyTorch; what is too negative is refused by all") {
  const Tensor x = rg::tensor({10.0, 20, 30});
  for (const Row& row : kRows)
    for (const bool compiled : {false, true}) {
      INFO(row.name << (compiled ? ", compiled" : ", eager"));
      const auto f = [&](const Tensor& i) {
        if (!compiled) return row.f(x, i);
        rg::FunctionCache cache(rg::FunctionKind::function);
        const auto function = [&](const rg::Tensors& a) { return rg::Tensors{row.f(a[0], a[1])}; };
        cache.run(function, {x, index({0, 1})});
        return cache.run(function, {x, i}).at(0);
      };
      const std::vector<double> want = values(f(index({2, 0})));
      if (row.wraps) {
        CHECK(values(f(index({-1, 0}))) == want);
        CHECK(values(f(index({-1, -3}))) == want);
      } else {
        CHECK(rg::category_of([&] { f(index({-1, 0})); }) == rg::Category::index_out_of_range);
      }
      for (const int64_t beyond : {-4L, 3L}) {
        const rg::Error e = rg::error_of([&] { f(index({beyond, 0})); });
        CHECK(e.category() == rg::Category::index_out_of_range);
        CAPTURE(e.what());
        CHECK(std::string(e.what()).find(std::to_string(beyond)) != std::string::npos);
      }
    }
}

TEST_CASE("take_along_dim wraps in each row, in dims counted from the end, and in its derivatives") {
  const Tensor x = rg::tensor({1, 2, 3, 4, 5, 6}, {2, 3}, {rg::kFloat64}).requires_grad_();
  const Tensor i = rg::tensor({-1, 0, -2, 1}, {2, 2}, {rg::kInt64});
  const Tensor y = rg::take_along_dim(x, i, -1);
  CHECK(values(y) == std::vector<double>{3, 1, 5, 5});
  CHECK(values(rg::autograd::grad({rg::sum(y)}, {x})[0]) == std::vector<double>{1, 0, 1, 0, 2, 0});
  CHECK(values(rg::take_along_dim(x, rg::tensor({-1}, {1, 1}, {rg::kInt64}), 0)) ==
        std::vector<double>{4, 5, 6});
}

}  // namespace
