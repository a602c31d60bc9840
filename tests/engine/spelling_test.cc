// Spellings that users bring from libtorch and Python: the dtype of literals, assignment to temporaries, sizes as ranges,
// indexing, operators, and names that <cmath> has too. What must not compile is asserted as a trait.
// Not tested here: values of the functions behind them (tests/ops).
#include <cmath>

#include "ops/creation.h"
#include "ops/embedding.h"
#include "ops/indexing.h"
#include "ops/losses.h"
#include "ops/norms.h"
#include "ops/operators.h"
#include "ops/reduce.h"
#include "ops/views.h"
#include "tests/errors.h"

namespace spelling {

using namespace retrograd;  // beside <cmath>: both have abs, exp, pow and others
using indexing::Ellipsis;
using indexing::None;
using indexing::Slice;
using Values = std::vector<double>;

Tensor counted(const Shape& shape) { return arange(0, shape.numel().value(), 1, {kFloat32}).view(shape); }

TEST_CASE("literals keep their dtype") {
  CHECK(tensor({1, 2, 3}).dtype() == kInt64);
  CHECK(tensor({true, false}).dtype() == kBool);
  CHECK(tensor({1.5, 2.0}).dtype() == kFloat32);
  CHECK(tensor({1, 2.5}).to_vector() == Values{1, 2.5});
  CHECK(tensor(3).dtype() == kInt64);
  CHECK(tensor(true).dtype() == kBool);
  CHECK(tensor(2.5).dim() == 0);
  CHECK(tensor({1, 2}, {kFloat64}).dtype() == kFloat64);
  CHECK(tensor({int64_t{1} << 60}).item<int64_t>() == int64_t{1} << 60);
  CHECK(full({2}, 3).dtype() == kInt64);
  CHECK(full({2}, true).dtype() == kBool);
  CHECK(full({2}, 3.0).dtype() == kFloat32);
  CHECK(full({2}, 3, {kFloat16}).dtype() == kFloat16);
}

TEST_CASE("a flag is no dim") {
  const Tensor x = tensor({1.0, 2.0, 6.0});
  CHECK(var(x, false).item<double>() == Approx(14.0 / 3));
  CHECK(var(x, true).item<double>() == Approx(7));
  CHECK(x.var(false).item<double>() == Approx(14.0 / 3));
  CHECK(x.std(false).item<double>() == Approx(std::sqrt(14.0 / 3)));
  CHECK(var(x, 0).item<double>() == Approx(7));
  CHECK(x.var(0).item<double>() == Approx(7));
  static_assert(!std::is_convertible_v<bool, IntList>);
}

template <class T>
concept SumOfFlag = requires(const T& x) {
  sum(x, true);
};

TEST_CASE("what would do nothing does not compile") {
  static_assert(!std::is_assignable_v<const Tensor, Tensor>);
  static_assert(!std::is_assignable_v<decltype(std::declval<Tensor>().grad()), Tensor>);  // w.grad() = g
  static_assert(std::is_assignable_v<Tensor&, const Tensor&>);
  static_assert(std::is_nothrow_move_assignable_v<Tensor> && std::is_nothrow_move_constructible_v<Tensor>);
  static_assert(!std::is_constructible_v<bool, Tensor>);  // if (x == y)
  static_assert(!SumOfFlag<Tensor>);
  Tensor x = ones({2}), y = zeros({2});
  x = y;
  CHECK(x.is_same(y));
}

TEST_CASE("an assignment to a temporary writes through") {
  const Tensor x = zeros({2, 3});
  x[0] = ones({3});
  x[1][2] = 5;
  x.select(1, 0) = 2.5;
  x[1][1] = x[0][1];
  CHECK(x.to_vector() == std::vector<double>{2.5, 1, 1, 2.5, 1, 5});
  x[1] = x[0] = 4;  // right to left
  CHECK(x.to_vector() == std::vector<double>(6, 4));
  const Tensor w = ones({2}).requires_grad_(), y = w * 1;
  y[0] = w[1] * 3;  // part of the history
  sum(y).backward();
  CHECK(w.grad().to_vector() == std::vector<double>{0, 4});
  x[tensor({0})] = 7;  // what an index tensor selects is a copy
  CHECK(x[0][0].item<double>() == 4);
  CHECK(category_of([&] { x[0] = ones({2}); }) == Category::shape_mismatch);
  CHECK(category_of([&] { w[0] = 1; }) == Category::leaf_inplace);
}

TEST_CASE("sizes are a range, and those of two calls belong together") {
  const Tensor x = zeros({2, 3, 4});
  CHECK(std::vector<int64_t>(x.sizes().begin(), x.sizes().end()) == IntArray{2, 3, 4});
  int64_t product = 1;
  for (const int64_t size : x.sizes()) product *= size;
  CHECK(product == 24);
  CHECK(x.sizes().begin() == x.sizes().begin());
  CHECK(x.sizes().end() - x.sizes().begin() == 3);
  CHECK(zeros({}).sizes().begin() == zeros({}).sizes().end());
  CHECK(x.sizes() == IntArray{2, 3, 4});
  CHECK_FALSE(x.sizes() == IntArray{2, 3});
  CHECK(x.sizes() == ones({2, 3, 4}).sizes());
  CHECK(x.strides() == IntArray{12, 4, 1});
  CHECK(x.sizes().front() == 2);
  CHECK(x.sizes().back() == 4);
  CHECK(x.sizes()[1] == 3);
  const IntArray list = x.sizes();
  CHECK(list.size() == 3);
  CHECK(zeros(x.sizes()).numel() == 24);
}

TEST_CASE("brackets and index() read as in Python") {
  const Tensor x = counted({3, 4});
  CHECK(x[1].to_vector() == Values{4, 5, 6, 7});
  CHECK(x[-1][0].item<double>() == 8);
  CHECK(x[tensor({2, 0})].sizes() == IntArray{2, 4});
  CHECK(x[x > 9].to_vector() == Values{10, 11});
  CHECK(x.index({1}).to_vector() == Values{4, 5, 6, 7});
  CHECK(x.index({Slice(1), 0}).to_vector() == Values{4, 8});
  CHECK(x.index({Slice(None, 2), Slice(None, None, 2)}).to_vector() == Values{0, 2, 4, 6});
  CHECK(x.index({"...", 1}).to_vector() == Values{1, 5, 9});
  CHECK(x.index({Ellipsis, 1}).to_vector() == Values{1, 5, 9});
  CHECK(x.index({None, "...", None}).sizes() == IntArray{1, 3, 4, 1});
  CHECK(x.index({tensor({0, 2}), tensor({1, 3})}).to_vector() == Values{1, 11});
  CHECK(x.index({true}).sizes() == IntArray{1, 3, 4});
  CHECK(x.index({false}).sizes() == IntArray{0, 3, 4});
  CHECK(category_of([&] { x.index({".."}); }) == Category::bad_argument);
  CHECK(category_of([&] { x[1.5]; }) == Category::bad_argument);
  CHECK(category_of([&] { x[true]; }) == Category::bad_argument);
  CHECK(category_of([&] { x[3]; }) == Category::index_out_of_range);
}

TEST_CASE("index_put_ writes or adds what index() reads") {
  Tensor x = zeros({3, 4});
  x.index_put_({1, Slice(None, None, 2)}, 5);
  x.index_put_({"...", 3}, tensor({1.0, 2.0, 3.0}));
  CHECK(x.to_vector() == Values{0, 0, 0, 1, 5, 0, 5, 2, 0, 0, 0, 3});
  x.index_put_({tensor({0, 0, 2})}, 1, true);
  CHECK(x[0].to_vector() == Values{2, 2, 2, 3});
  x.index_put_({1}, 1, true);
  CHECK(x[1].to_vector() == Values{6, 1, 6, 3});
  x.index_put_({x > 2}, 0);
  CHECK(x.max().item<double>() == 2);
}

TEST_CASE("operators compare, and compound ones write in place") {
  const Tensor x = tensor({1.0, 2.0, 3.0}), y = tensor({3.0, 2.0, 1.0});
  CHECK((x == y).to_vector() == Values{0, 1, 0});
  CHECK((x != 2).to_vector() == Values{1, 0, 1});
  CHECK((x < y).dtype() == kBool);
  CHECK((2 <= x).to_vector() == Values{0, 1, 1});
  CHECK((x > 1.5).to_vector() == Values{0, 1, 1});
  CHECK((x >= y).to_vector() == Values{0, 1, 1});
  CHECK((!(x == y)).to_vector() == Values{1, 0, 1});
  CHECK((-x % 3).to_vector() == Values{2, 1, 0});
  const Tensor bits = tensor({6, 5});
  CHECK((bits & 4).to_vector() == Values{4, 4});
  CHECK((bits | tensor({1, 2})).to_vector() == Values{7, 7});
  CHECK((bits ^ 1).to_vector() == Values{7, 4});
  CHECK((~bits).to_vector() == Values{-7, -6});
  CHECK((bits << 1 >> 2).to_vector() == Values{3, 2});
  CHECK(((x > 1) & (y > 1)).to_vector() == Values{0, 1, 0});
  Tensor z = x.clone();
  const void* memory = z.raw_data();
  z += y;
  z -= 1;
  z *= x;
  z /= 2.0;
  CHECK(z.to_vector() == Values{1.5, 3, 4.5});
  z %= 2;
  z[0] += 10;
  CHECK(z.to_vector() == Values{11.5, 1, 0.5});
  CHECK(z.raw_data() == memory);
  Tensor flags = bits.clone();
  flags &= 4;
  flags |= 3;
  flags ^= 1;
  flags <<= 2;
  flags >>= 1;
  CHECK(flags.to_vector() == Values{12, 12});
}

TEST_CASE("the names of <cmath> serve numbers and tensors") {
  const Tensor x = tensor({-1.0, 4.0});
  CHECK(abs(x).to_vector() == Values{1, 4});
  CHECK(abs(-3) == 3);
  CHECK(exp(0.0) == 1);
  CHECK(exp(x * 0).to_vector() == Values{1, 1});
  CHECK(pow(2.0, 3.0) == 8);
  CHECK(pow(x, 2).to_vector() == Values{1, 16});
  CHECK(floor(x / 3).to_vector() == Values{-1, 1});
  CHECK(round(2.5) == 3);
  CHECK(round(x).to_vector() == Values{-1, 4});
  CHECK(atan2(0.0, 1.0) == 0);
  CHECK(fmod(x, 3).to_vector() == Values{-1, 1});
  CHECK(tanh(sqrt(4.0) - 2) == 0);
  CHECK(std::abs(-2.0) == 2);
}

TEST_CASE("parameters have libtorch's order") {
  const Tensor table = counted({3, 2}), rows = tensor({2, 0});
  CHECK(embedding(table, rows).to_vector() == Values{4, 5, 0, 1});
  const Tensor x = counted({4, 2}), weight = tensor({2.0, 3.0}), bias = tensor({1.0, 1.0}),
               mean = tensor({0.0, 0.0}), var = tensor({1.0, 1.0});
  CHECK(batch_norm(x, weight, bias, mean, var, false, 0.1, 0.0).to_vector() ==
        Values{1, 4, 5, 10, 9, 16, 13, 22});
  const Tensor logp = tensor({-1.0, -2.0, -3.0, -4.0}, {kFloat32}).view({2, 2}), target = tensor({0, 1});
  CHECK(nll_loss(logp, target, {}, "sum").item<double>() == 5);
  CHECK(nll_loss(logp, target, {}, "sum", 1).item<double>() == 1);
}

}  // namespace spelling
