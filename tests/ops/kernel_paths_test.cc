// Kernels have different paths for different sizes and layouts: blocks that are transposed, registers that go down
// columns, digits of sorted keys, runs of operands that broadcast. Each path is compared with plain loops at sizes
// around the borders of its blocks, and with itself for another number of threads.
// Not tested here: what the ops mean (the tests of their families), results against PyTorch (tests/conformance).
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "ops/scan.h"
#include "retrograd/retrograd.h"

namespace retrograd {
namespace {

using Values = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const ScalarType kDtypes[] = {kFloat64, kFloat32, kBFloat16, kFloat16, kInt64, kInt32, kUInt8, kBool};

Tensor numbers(const Shape& shape, ScalarType dtype) {
  return randint(0, dtype == kBool ? 2 : 100, shape).to(dtype);
}

// The same values; nan equals itself here.
bool same(const Values& a, const Values& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

// f with one thread and with three.
template <class F>
void check_threads(const F& f) {
  const int threads = cpu::get_num_threads();
  cpu::set_num_threads(1);
  const Values one = f().to_vector();
  cpu::set_num_threads(3);
  const Values three = f().to_vector();
  cpu::set_num_threads(threads);
  CHECK(same(one, three));
}

TEST_CASE("copies of transposed matrices of any width") {
  manual_seed(1);
  for (const ScalarType dtype : kDtypes)
    for (const int64_t rows : {1, 3, 16, 17, 65})
      for (const int64_t columns : {1, 5, 64, 130}) {
        const Tensor x = numbers({rows, columns}, dtype);
        const Values from = x.to_vector(), to = contiguous(t(x)).to_vector();
        int64_t wrong = 0;
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j)
            wrong += from[static_cast<size_t>(i * columns + j)] != to[static_cast<size_t>(j * rows + i)];
        CHECK(wrong == 0);
      }
}

TEST_CASE("copies of permuted, flipped, stepped and repeated tensors, converted or not") {
  manual_seed(2);
  for (const ScalarType dtype : kDtypes) {
    const Tensor x = numbers({3, 18, 5, 21}, kInt64).to(dtype);
    const Tensor back = contiguous(permute(contiguous(permute(x, {3, 1, 0, 2})), {2, 1, 3, 0}));
    CHECK(same(x.to_vector(), back.to_vector()));
    CHECK(same(x.to_vector(), flip(flip(x, {0, 3}), {3, 0}).to_vector()));
    const Tensor stepped = slice(x, 3, 1, std::nullopt, 2);
    CHECK(same(contiguous(stepped).to_vector(), stepped.to(kFloat64).to_vector()));
    CHECK(same(contiguous(permute(stepped, {3, 2, 1, 0})).to_vector(),
               permute(stepped, {3, 2, 1, 0}).to(kFloat64).to_vector()));
    const Tensor wide = expand(select(x, 1, 4), {7, 3, 5, 21});
    CHECK(same(contiguous(wide).to_vector(), wide.to(kFloat64).to_vector()));
  }
}

TEST_CASE("short runs of every length, step and width") {
  manual_seed(21);
  for (const ScalarType dtype : kDtypes)
    for (const int64_t n : {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33}) {
      const Tensor x = numbers({37, 70}, dtype), windows = unfold(x, 1, n, 3);
      const Values from = x.to_vector(), to = contiguous(windows).to_vector(),
                   repeated = repeat_interleave(x, n, 1).to_vector(),
                   strided = contiguous(slice(narrow(x, 1, 0, 2 * n), 1, 0, std::nullopt, 2)).to_vector();
      const int64_t across = windows.size(1);
      int64_t wrong = 0;
      for (int64_t i = 0; i < 37; ++i) {
        for (int64_t w = 0; w < across; ++w)
          for (int64_t k = 0; k < n; ++k)
            wrong += to[static_cast<size_t>((i * across + w) * n + k)] !=
                     from[static_cast<size_t>(i * 70 + w * 3 + k)];
        for (int64_t j = 0; j < 70 * n; ++j)
          wrong += repeated[static_cast<size_t>(i * 70 * n + j)] != from[static_cast<size_t>(i * 70 + j / n)];
        for (int64_t k = 0; k < n; ++k)
          wrong += strided[static_cast<size_t>(i * n + k)] != from[static_cast<size_t>(i * 70 + 2 * k)];
      }
      INFO(n);
      CHECK(wrong == 0);
    }
}

TEST_CASE("entries at positions in runs are those at positions one by one") {
  manual_seed(22);
  for (const int64_t outer : {3, 16, 40})
    for (const int64_t inner : {1, 3}) {
      const Tensor x = numbers({outer, 50, inner}, kFloat32);
      for (const int64_t before : {0, 1, 7}) {
        Values places;
        for (int64_t i = 0; i < before; ++i) places.push_back(static_cast<double>(before - i));
        for (int64_t i = 0; i < 50; ++i) places.push_back(static_cast<double>(i));
        const auto k = static_cast<int64_t>(places.size());
        const Values from = x.to_vector(), to = index_select(x, 1, tensor(places, {k}, {kInt64})).to_vector();
        int64_t wrong = 0;
        for (int64_t o = 0; o < outer; ++o)
          for (int64_t j = 0; j < k * inner; ++j) {
            const auto place = static_cast<int64_t>(places[static_cast<size_t>(j / inner)]);
            wrong += to[static_cast<size_t>(o * k * inner + j)] !=
                     from[static_cast<size_t>((o * 50 + place) * inner + j % inner)];
          }
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("places of elements that are not zero, of any rank") {
  manual_seed(23);
  for (const IntArray& size : {IntArray{}, IntArray{0}, IntArray{70}, IntArray{9, 7}, IntArray{3, 4, 5},
                               IntArray{2, 1, 3, 2}, IntArray{3, 0, 2}}) {
    const Tensor x = numbers(Shape(size), kBool);
    const Values from = x.to_vector(), found = nonzero(x).to_vector();
    Values want;
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == 0) continue;
      Values place(size.size());
      int64_t rest = static_cast<int64_t>(i);
      for (size_t d = size.size(); d-- > 0; rest /= size[d]) place[d] = static_cast<double>(rest % size[d]);
      want.insert(want.end(), place.begin(), place.end());
    }
    CHECK(found == want);
    CHECK(nonzero(x).size(0) == static_cast<int64_t>(std::count(from.begin(), from.end(), 1.0)));
  }
}

TEST_CASE("sums of short rows are those of the rows alone") {
  manual_seed(24);
  for (const ScalarType dtype : {kFloat32, kFloat64, kInt64})
    for (const int64_t n : {1, 2, 3, 15, 16, 17, 49, 130}) {
      const Tensor x = dtype == kInt64 ? numbers({200, n}, dtype) : randn({200, n}, {dtype});
      const Values all = sum(x, {1}).to_vector();
      for (int64_t i = 0; i < 200; i += 19)
        CHECK(sum(select(x, 0, i)).item<double>() == all[static_cast<size_t>(i)]);
    }
}

TEST_CASE("operands that broadcast give what their copies give") {
  manual_seed(3);
  for (const ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kInt64, kBool})
    for (const int64_t columns : {1, 5, 63, 64, 600, 1100}) {
      const Tensor x = numbers({9, columns}, dtype), row = numbers({columns}, dtype),
                   column = numbers({9, 1}, dtype);
      const Tensor rows = contiguous(expand(row, {9, -1})), full = contiguous(expand(column, {-1, columns}));
      CHECK(same((x * row).to_vector(), (x * rows).to_vector()));
      CHECK(same((column * x).to_vector(), (full * x).to_vector()));
      CHECK(same(eq(column, row).to_vector(), eq(full, rows).to_vector()));
      CHECK(same(where(eq(x, 1), column, row).to_vector(), where(eq(x, 1), full, rows).to_vector()));
      const Tensor turned = contiguous(t(x));
      CHECK(same((rows * t(turned)).to_vector(), (rows * x).to_vector()));
    }
}

// Reductions of columns and of the rows of the transposed matrix.
void check_columns(const Tensor& x) {
  const Tensor turned = contiguous(t(x));
  const bool floating = is_floating(x.dtype());
  const double margin = floating ? (x.dtype() == kFloat64 ? 1e-12 : 1e-4) : 0;
  const auto check = [&](const auto& f) {
    const Values a = f(x, 0).to_vector(), b = f(turned, 1).to_vector();
    for (size_t i = 0; i < a.size(); ++i)
      CHECK(((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i] ||
             std::abs(a[i] - b[i]) <= margin * (1 + std::abs(b[i]))));
  };
  check([](const Tensor& y, int64_t d) { return sum(y, d); });
  check([](const Tensor& y, int64_t d) { return amax(y, d); });
  check([](const Tensor& y, int64_t d) { return amin(y, d); });
  check([](const Tensor& y, int64_t d) { return argmax(y, d).to(kFloat64); });
  check([](const Tensor& y, int64_t d) { return min(y, d).indices.to(kFloat64); });
  check([](const Tensor& y, int64_t d) { return any(y, d).to(kFloat64); });
  check([](const Tensor& y, int64_t d) { return count_nonzero(y, d).to(kFloat64); });
  check([](const Tensor& y, int64_t d) { return prod(y, d); });
  if (!floating) return;
  check([](const Tensor& y, int64_t d) { return var(y, d); });
  check([](const Tensor& y, int64_t d) { return logsumexp(y, d); });
  check([](const Tensor& y, int64_t d) { return vector_norm(y, 1, d); });
  check([](const Tensor& y, int64_t d) { return vector_norm(y, 2, d); });
  check([](const Tensor& y, int64_t d) { return vector_norm(y, 1.0 / 0.0, d); });
  check([](const Tensor& y, int64_t d) { return sum(softmax(y, d), d); });
  check([](const Tensor& y, int64_t d) { return select(log_softmax(y, d), d, 0); });
  check([](const Tensor& y, int64_t d) { return select(cumsum(y, d), d, -1); });
}

// Long rows are scanned in pieces, unless a product leaves the range of double: 0 times infinity must not occur.
TEST_CASE("running products of long rows are those of one element after the other") {
  manual_seed(10);
  const int64_t n = 20'001;
  const Tensor x = exp(randn({2, n}) * 0.01), with_zero = clone(x),
               vanishing = cat({full({1, n}, 0.01), full({1, n}, 10.0)}, 1);
  with_zero.select(1, 9'000).mul_(0.0);
  for (const Tensor& t : {x, with_zero, vanishing})
    for (const bool reverse : {false, true})
      for (const bool exclusive : {false, true}) {
        const Tensor one = reverse ? flip(t, {1}) : t;
        const ops::ScanAttrs attrs{1, reverse, exclusive};
        const auto scan = [&] { return ops::emit<ops::CumProd>({t.get()}, attrs, SourceLocation{}); };
        const Values in = one.to_vector(), out = (reverse ? flip(scan(), {1}) : scan()).to_vector();
        const auto length = static_cast<size_t>(t.sizes()[1]);
        double product = 1;
        int64_t wrong = 0;
        for (size_t i = 0; i < in.size(); ++i) {
          if (i % length == 0) product = 1;
          const double before = std::exchange(product, product * in[i]);
          const auto want = static_cast<double>(static_cast<float>(exclusive ? before : product));
          wrong += !(out[i] == want || std::abs(out[i] - want) <= 1e-6 * std::abs(want));
        }
        CHECK(wrong == 0);
        check_threads(scan);
      }
}

TEST_CASE("products of many small matrices, whichever way they lie") {
  manual_seed(11);
  for (const int64_t k : {4, 5, 16})
    for (const int64_t n : {4, 7, 16}) {
      const Tensor a = randn({50, 6, k}), b = randn({50, n, k});
      const Values across = bmm(a, transpose(b, 1, 2)).to_vector(),
                   along = bmm(a, contiguous(transpose(b, 1, 2))).to_vector();
      CHECK(across == along);
    }
}

TEST_CASE("columns are reduced as rows are") {
  manual_seed(4);
  for (const ScalarType dtype : {kFloat32, kFloat64, kInt64, kInt32, kUInt8})
    for (const int64_t rows : {2, 5, 131, 4100})
      for (const int64_t columns : {3, 4, 16, 70}) {
        const Tensor x = is_floating(dtype) ? (randn({rows, columns}) * 0.01 + 1).to(dtype)
                                            : numbers({rows, columns}, dtype);
        check_columns(x);
        check_columns(narrow(x, 1, 0, columns - 1));
      }
}

TEST_CASE("columns with nan and infinity") {
  const double inf = std::numeric_limits<double>::infinity();
  Values v(40 * 20, 1);
  v[3 * 20 + 1] = kNan;
  v[7 * 20 + 1] = inf;
  v[2 * 20 + 2] = inf;
  v[39 * 20 + 2] = -inf;
  for (const ScalarType dtype : {kFloat32, kFloat64}) {
    const Tensor x = tensor(v, {40, 20}, {dtype});
    check_columns(x);
    CHECK(argmax(x, 0).to_vector()[1] == 3);
    CHECK(argmax(x, 0).to_vector()[2] == 2);
  }
}

// What a stable sort of the line gives, nan as the largest.
std::vector<size_t> stable_order(const Values& v, bool descending) {
  std::vector<size_t> order(v.size());
  std::iota(order.begin(), order.end(), 0);
  const auto less = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return descending ? less(v[b], v[a]) : less(v[a], v[b]); });
  return order;
}

void check_sorted(const Tensor& line, bool descending) {
  const Values v = line.to_vector();
  const std::vector<size_t> order = stable_order(v, descending);
  const int64_t n = static_cast<int64_t>(v.size());
  for (const int64_t count : {n, std::min<int64_t>(n, 7), n / 9}) {
    const ValuesAndIndices found = count == n ? sort(line, 0, descending) : topk(line, count, 0, descending);
    const Values got = found.values.to_vector(), places = found.indices.to_vector();
    int64_t wrong = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double want = v[order[i]];
      wrong += places[i] != static_cast<double>(order[i]) || !(got[i] == want || std::isnan(want)) ||
               std::signbit(got[i]) != std::signbit(want);
    }
    INFO(name(line.dtype()) << ", " << count << " of " << n << (descending ? " down" : " up"));
    CHECK(wrong == 0);
  }
}

TEST_CASE("sort and topk are stable, for lines of any length") {
  manual_seed(5);
  for (const int64_t n : {1, 2, 95, 96, 1000, 40'000})
    for (const ScalarType dtype : kDtypes)
      for (const bool descending : {false, true}) {
        Tensor x = is_floating(dtype) ? round(randn({n}) * 50).to(dtype) : numbers({n}, dtype);
        if (is_floating(dtype)) x = where(eq(x, 3), tensor({kNan}), x.to(kFloat32)).to(dtype);
        check_sorted(x, descending);
      }
  check_sorted(randn({50'000}), false);
  check_sorted(randn({50'000}, {kFloat64}), true);
  check_sorted(randint(-(int64_t{1} << 62), int64_t{1} << 62, {3'000}), true);
}

TEST_CASE("sort along other dims") {
  manual_seed(6);
  const Tensor x = randn({5, 130, 3});
  const Tensor rows = contiguous(permute(x, {0, 2, 1}));
  const ValuesAndIndices a = sort(x, 1), b = sort(rows, 2);
  CHECK(same(contiguous(permute(a.values, {0, 2, 1})).to_vector(), b.values.to_vector()));
  CHECK(same(contiguous(permute(a.indices, {0, 2, 1})).to_vector(), b.indices.to_vector()));
  CHECK(topk(x, 0, 1).values.numel() == 0);
}

TEST_CASE("fmod of floats over quotients of any size") {
  manual_seed(7);
  const Tensor x = randn({4000}, {kFloat64}), y = randn({4000}, {kFloat64});
  for (const double scale : {1.0, 1e3, 1e8, 1e12}) {
    const Tensor a = (x * scale).to(kFloat32), b = y.to(kFloat32);
    const Values u = a.to_vector(), v = b.to_vector(), got = fmod(a, b).to_vector();
    int64_t wrong = 0;
    for (size_t i = 0; i < u.size(); ++i)
      wrong += got[i] != std::fmod(u[i], v[i]) || std::signbit(got[i]) != std::signbit(u[i]);
    CHECK(wrong == 0);
  }
}

TEST_CASE("the number of threads does not show") {
  manual_seed(8);
  const Tensor x = randn({3000, 130}), deep = randn({40, 300, 33});
  const Tensor index = randint(0, 3000, {3000}), columns = randint(0, 130, {130});
  check_threads([&] { return var(x, 0); });
  check_threads([&] { return logsumexp(x, 0); });
  check_threads([&] { return sum(deep, IntList{0, 2}); });
  check_threads([&] { return softmax(x, 0); });
  check_threads([&] { return cumsum(deep, 1); });
  check_threads([&] { return contiguous(permute(deep, {2, 0, 1})); });
  check_threads([&] { return index_add(x, 0, index, x); });
  check_threads([&] { return index_add(x, 1, columns, x); });
  check_threads([&] { return index_select(x, 0, index); });
  check_threads([&] { return sort(x, 0).values; });
  check_threads([&] {
    manual_seed(9);
    return randn({100'003}) + dropout(ones({100'003}), 0.3);
  });
}

}  // namespace
}  // namespace retrograd
