// Matrix products against three nested loops in double: sizes around every split, all strides, batches, accumulation,
// numbers of threads; products of bfloat16 if the machine has instructions for them. Not tested here: speed. Bazel also
// runs this for each instruction-set level that RETROGRAD_ISA names; a level that the machine lacks is replaced by its
// best one. Each product uses exactly the temporary memory that was computed for it (cpu/scratch_check.h).
#include "cpu/gemm/gemm.h"

#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cfloat>
#include <cmath>
#include <vector>

#include "cpu/gemm/levels/gemm_kernels.h"
#include "cpu/parallel.h"
#include "cpu/scratch_check.h"

namespace retrograd::cpu {
namespace {

// Small integers: every sum is exact in float, so results must be equal however they are cut.
template <class T>
std::vector<T> numbers(int64_t n, uint64_t seed) {
  std::vector<T> out(static_cast<size_t>(n));
  for (T& x : out) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<T>(static_cast<float>(static_cast<int>(seed >> 60) - 8));
  }
  return out;
}

struct Case {
  int64_t m, n, k;
  bool a_turned = false, b_turned = false;
  int64_t gap = 1;  // between neighbours of the dense dim
};

template <class T>
struct Problem {
  using Sum = typename Gemm<T>::Sum;
  Case c;
  std::vector<T> a, b;
  std::vector<Sum> out;
  MatrixView<T> a_view, b_view;

  explicit Problem(const Case& c)
      : c(c),
        a(numbers<T>(c.m * c.k * c.gap + 1, 1)),
        b(numbers<T>(c.k * c.n * c.gap + 1, 2)),
        out(numbers<Sum>(c.m * (c.n + 3), 3)),
        a_view{a.data(), c.a_turned ? c.gap : c.k * c.gap, c.a_turned ? c.m * c.gap : c.gap},
        b_view{b.data(), c.b_turned ? c.gap : c.n * c.gap, c.b_turned ? c.k * c.gap : c.gap} {}

  Gemm<T> gemm(Sum alpha, bool accumulate) {
    return {c.m, c.n, c.k, a_view, b_view, out.data(), c.n + 3, alpha, accumulate};
  }

  Sum expected(const std::vector<Sum>& before, int64_t i, int64_t j, Sum alpha, bool accumulate) const {
    double sum = 0;
    for (int64_t l = 0; l < c.k; ++l)
      sum += static_cast<double>(a_view.data[i * a_view.row + l * a_view.column]) *
             static_cast<double>(b_view.data[l * b_view.row + j * b_view.column]);
    return static_cast<Sum>(
        static_cast<double>(alpha) * sum +
        (accumulate ? static_cast<double>(before[static_cast<size_t>(i * (c.n + 3) + j)]) : 0));
  }
};

template <class F>
void check_and_run(F product) {
  run_checked("product", measure_scratch(product), product);
}

template <class T>
int wrong_elements(const Case& c, typename Gemm<T>::Sum alpha, bool accumulate) {
  Problem<T> p(c);
  const auto before = p.out;
  check_and_run([&] { gemm(p.gemm(alpha, accumulate)); });
  int wrong = 0;
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < c.n + 3; ++j) {
      const size_t at = static_cast<size_t>(i * (c.n + 3) + j);
      wrong += p.out[at] != (j < c.n ? p.expected(before, i, j, alpha, accumulate) : before[at]);
    }
  return wrong;
}

TEST_CASE("products of all sizes and strides are exact on small integers") {
  const int64_t sizes[] = {0, 1, 2, 4, 5, 6, 7, 15, 17, 33};
  for (int64_t m : sizes)
    for (int64_t n : sizes)
      for (int64_t k : {0, 1, 3, 8, 20})
        for (int turned = 0; turned < 4; ++turned)
          for (int64_t gap : {1, 2}) {
            const Case c{m, n, k, (turned & 1) != 0, (turned & 2) != 0, gap};
            INFO(m << " x " << n << " x " << k << " turned " << turned << " gap " << gap);
            REQUIRE(wrong_elements<float>(c, 1, false) == 0);
            REQUIRE(wrong_elements<double>(c, -2, true) == 0);
          }
}

TEST_CASE("products beyond one tile, one block of k and one small operand") {
  for (const Case& c : {Case{130, 530, 70}, Case{200, 65, 600}, Case{65, 300, 513}, Case{7, 1100, 300},
                        Case{1030, 9, 257}, Case{24, 40, 3000}, Case{300, 200, 300}, Case{60, 2100, 40}})
    for (int turned = 0; turned < 4; ++turned) {
      const Case t{c.m, c.n, c.k, (turned & 1) != 0, (turned & 2) != 0, 1};
      INFO(c.m << " x " << c.n << " x " << c.k << " turned " << turned);
      CHECK(wrong_elements<float>(t, 1, false) == 0);
      CHECK(wrong_elements<float>(t, 2, true) == 0);
      CHECK(wrong_elements<double>(t, 1, true) == 0);
    }
}

TEST_CASE("thin products with long operands") {
  for (const Case& c :
       {Case{1, 3000, 400}, Case{3000, 1, 400}, Case{3, 2100, 30}, Case{2100, 2, 30}, Case{1, 1, 5000}})
    for (int turned = 0; turned < 4; ++turned) {
      const Case t{c.m, c.n, c.k, (turned & 1) != 0, (turned & 2) != 0, 1};
      INFO(c.m << " x " << c.n << " x " << c.k << " turned " << turned);
      CHECK(wrong_elements<float>(t, 1, false) == 0);
      CHECK(wrong_elements<double>(t, -1, true) == 0);
    }
}

TEST_CASE("few rows or columns whose operands are contiguous along k") {
  for (int64_t few = 1; few <= 13; ++few)
    for (int64_t many : {1, 3, 5, 7, 8, 25, 60})
      for (int64_t k : {150, 160, 171}) {
        INFO(few << " and " << many << ", k " << k);
        REQUIRE(wrong_elements<float>({few, many, k, false, true}, 1, false) == 0);
        REQUIRE(wrong_elements<float>({many, few, k, false, true}, -1, true) == 0);
        REQUIRE(wrong_elements<double>({many, few, k, false, true}, 2, false) == 0);
      }
}

// Columns of B around those of a panel, rows of A around those of a few panels.
TEST_CASE("products whose first rows pack B") {
  for (int64_t m : {12, 14, 15, 28, 29, 61, 350})
    for (int64_t n : {31, 32, 33, 64, 95, 130})
      for (int64_t k : {60, 300, 517}) {
        INFO(m << " x " << n << " x " << k);
        CHECK(wrong_elements<float>({m, n, k}, 1, true) == 0);
        CHECK(wrong_elements<float>({m, n, k, true}, 2, false) == 0);
        CHECK(wrong_elements<double>({m, n, k}, 1, false) == 0);
      }
}

// Columns of A that are far from each other, around those of a few panels, with B of either layout.
TEST_CASE("products whose first columns pack A") {
  for (int64_t m : {64, 65, 70, 99, 129, 350})
    for (int64_t n : {65, 95, 96, 130, 200})
      for (int64_t k : {60, 300, 517})
        for (bool b_turned : {false, true}) {
          INFO(m << " x " << n << " x " << k << (b_turned ? " turned" : ""));
          CHECK(wrong_elements<float>({m, n, k, true, b_turned}, 1, true) == 0);
          CHECK(wrong_elements<double>({m, n, k, true, b_turned}, 2, false) == 0);
          CHECK(wrong_elements<float>({m, n, k, true, b_turned, 2}, 1, false) == 0);
        }
}

// Elements that end where a page begins, or begin where one ends, that can be neither read nor written: also what no
// sanitizer sees, as the loads of AMX.
template <class T>
class Guarded {
 public:
  Guarded(int64_t size, bool at_end) : bytes_((size_bytes(size) + kPage - 1) / kPage * kPage) {
    void* const memory = mmap(nullptr, bytes_ + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    memory_ = static_cast<char*>(memory);
    REQUIRE(mprotect(memory_ + kPage, bytes_, PROT_READ | PROT_WRITE) == 0);
    data = reinterpret_cast<T*>(memory_ + kPage + (at_end ? bytes_ - size_bytes(size) : 0));
  }
  ~Guarded() { munmap(memory_, bytes_ + 2 * kPage); }
  Guarded(const Guarded&) = delete;

  T* data;

 private:
  static constexpr size_t kPage = 4096;
  static size_t size_bytes(int64_t size) { return static_cast<size_t>(size) * sizeof(T); }
  const size_t bytes_;
  char* memory_;
};

template <class T>
int wrong_beside_guards(const Case& c, bool at_end) {
  Problem<T> p(c);
  const Guarded<T> a(c.m * c.k, at_end), b(c.k * c.n, at_end);
  const Guarded<typename Gemm<T>::Sum> out(c.m * c.n, at_end);
  std::copy_n(p.a.data(), c.m * c.k, a.data);
  std::copy_n(p.b.data(), c.k * c.n, b.data);
  Gemm<T> g = p.gemm(1, false);
  g.a.data = a.data;
  g.b.data = b.data;
  g.c = out.data;
  g.c_row = c.n;
  gemm(g);
  int wrong = 0;
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < c.n; ++j) wrong += out.data[i * c.n + j] != p.expected(p.out, i, j, 1, false);
  return wrong;
}

TEST_CASE("products read and write nothing outside of their operands") {
  uint64_t seed = 1;
  const auto size = [&](uint64_t most) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>(4 + (seed >> 33) % ((seed >> 20) % 3 ? 70 : most));
  };
  for (int i = 0; i < 200; ++i) {
    const Case c{size(200), size(200), size(700), i % 2 == 1, i / 2 % 2 == 1};
    const bool at_end = i / 4 % 2 == 0;
    INFO(c.m << " x " << c.n << " x " << c.k << " turned " << i % 4 << " at end " << at_end);
    REQUIRE(wrong_beside_guards<float>(c, at_end) == 0);
    REQUIRE(wrong_beside_guards<double>(c, at_end) == 0);
    if (multiplies_bfloat16(c.m, c.n)) REQUIRE(wrong_beside_guards<BFloat16>(c, at_end) == 0);
  }
}

// The product of c with c.start added: a matrix, or a row for all.
template <class T>
void check_start(const Case& c, bool row) {
  using Sum = typename Gemm<T>::Sum;
  Problem<T> alone(c), added(c);
  const int64_t step = row ? 0 : c.n + 1;
  const std::vector<Sum> start = numbers<Sum>(c.m * (c.n + 1), 7);
  gemm(alone.gemm(2, false));
  Gemm<T> g = added.gemm(2, true);  // what is in C does not count
  g.start = start.data();
  g.start_row = step;
  check_and_run([&] { gemm(g); });
  int wrong = 0;
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < c.n; ++j) {
      const size_t at = static_cast<size_t>(i * (c.n + 3) + j);
      wrong += added.out[at] != alone.out[at] + start[static_cast<size_t>(i * step + j)];
    }
  INFO(c.m << " x " << c.n << " x " << c.k << " row " << row);
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("panels are packed as the kernels say, and nothing outside of them", "", float, double) {
  struct Layout {
    int64_t across, along;
  };
  const GemmKernels<TestType>& kernel = gemm_kernels<TestType>();
  for (const int width : {kernel.rows, kernel.columns})
    for (const int64_t count : {1, width - 1, width, width + 1, 3 * width, 3 * width + 5})
      for (const int64_t k : {1, 7, 16, 17, 33, 48})
        for (const Layout x : {Layout{1, 200}, {1, count}, {1, 2}, {1, 0}, {200, 1}, {2, 150}}) {
          // Exactly as many as needed: the address sanitizer finds reads beyond them.
          const std::vector<TestType> from =
              numbers<TestType>((count - 1) * x.across + (k - 1) * x.along + 1, 5);
          const int64_t panels = (count + width - 1) / width, panel = width * k + 8;
          std::vector<TestType> out(static_cast<size_t>(panels * panel), 99), expected = out;
          for (int64_t p = 0; p < panels; ++p)
            for (int64_t l = 0; l < k; ++l)
              for (int64_t i = 0; i < width; ++i) {
                const int64_t row = p * width + i;
                expected[static_cast<size_t>(p * panel + l * width + i)] =
                    row < count ? from[static_cast<size_t>(row * x.across + l * x.along)] : 0;
              }
          kernel.pack(from.data(), x.across, x.along, count, width, k, out.data(), panel);
          if (out != expected)
            FAIL_CHECK(width << " " << count << " " << k << " " << x.across << " " << x.along);
        }
}

TEST_CASE("a matrix or a row is added to a product") {
  for (const Case& c :
       {Case{5, 40, 0}, Case{2, 40, 30}, Case{40, 3, 30}, Case{40, 9, 200, false, true}, Case{30, 70, 20},
        Case{130, 530, 300}, Case{65, 300, 513, true, true}, Case{40, 100, 70000}})
    for (bool row : {false, true}) {
      check_start<float>(c, row);
      if (c.k < 1000) check_start<double>(c, row);
      if (c.k < 1000 && multiplies_bfloat16(c.m, c.n)) check_start<BFloat16>(c, row);
    }
}

TEST_CASE("a batch is as many products") {
  const int64_t m = 9, n = 20, k = 5, count = 70;
  const std::vector<float> a = numbers<float>(m * k * count, 4), b = numbers<float>(k * n, 5);
  std::vector<float> together(static_cast<size_t>(m * n * count)), alone(together.size());
  std::vector<BatchOffsets> offsets;
  for (int64_t i = 0; i < count; ++i) {
    offsets.push_back({i * m * k, 0, i * m * n});
    gemm(Gemm<float>{m, n, k, {a.data() + i * m * k, k, 1}, {b.data(), n, 1}, alone.data() + i * m * n, n});
  }
  const Gemm<float> first{m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, together.data(), n};
  check_and_run([&] { gemm_batched(first, offsets); });
  CHECK(together == alone);
  check_and_run([&] { gemm_batched(first, {}); });
}

TEST_CASE("products of a batch ask for memory, small and large ones") {
  for (int64_t size : {70, 250}) {
    const std::vector<float> a = numbers<float>(size * size, 4);
    std::vector<float> alone(a.size()), c(3 * a.size());
    std::vector<BatchOffsets> offsets;
    for (int64_t i = 0; i < 3; ++i) offsets.push_back({0, 0, i * size * size});
    const auto product = [&](float* to) {
      return Gemm<float>{size, size, size, {a.data(), 1, size}, {a.data(), 1, size}, to, size};
    };
    gemm(product(alone.data()));
    CHECK(measure_scratch([&] { gemm_batched(product(c.data()), offsets); }) > 0);
    check_and_run([&] { gemm_batched(product(c.data()), offsets); });
    for (size_t i = 0; i < c.size(); i += alone.size())
      CHECK(std::equal(alone.begin(), alone.end(), c.begin() + static_cast<int64_t>(i)));
    check_and_run([&] { gemm_batched(product(c.data()), {}); });
  }
}

TEST_CASE("products of bfloat16: all sizes and strides are exact on small integers") {
  if (!multiplies_bfloat16(4, 4)) return;  // converted to float, tests/ops/matmul_test.cc
  const int64_t sizes[] = {1, 4, 13, 14, 15, 31, 32, 33};
  for (int64_t m : sizes)
    for (int64_t n : sizes)
      for (int64_t k : {0, 1, 2, 3, 7, 8, 21})
        for (int turned = 0; turned < 4; ++turned)
          for (int64_t gap : {1, 2}) {
            const Case c{m, n, k, (turned & 1) != 0, (turned & 2) != 0, gap};
            INFO(m << " x " << n << " x " << k << " turned " << turned << " gap " << gap);
            REQUIRE(wrong_elements<BFloat16>(c, 1, false) == 0);
            REQUIRE(wrong_elements<BFloat16>(c, -2, true) == 0);
          }
  for (const Case& c : {Case{130, 530, 70}, Case{200, 65, 1301}, Case{65, 300, 513}, Case{7, 1100, 515},
                        Case{1030, 9, 1024}, Case{24, 40, 3001}})
    for (int turned = 0; turned < 4; ++turned) {
      const Case t{c.m, c.n, c.k, (turned & 1) != 0, (turned & 2) != 0, 1};
      INFO(c.m << " x " << c.n << " x " << c.k << " turned " << turned);
      CHECK(wrong_elements<BFloat16>(t, 1, false) == 0);
      CHECK(wrong_elements<BFloat16>(t, 2, true) == 0);
    }
}

// Rows, columns and pairs around multiples of sixteen and thirty-two, which AMX processes together.
TEST_CASE("products of bfloat16: whole and partial registers of AMX") {
  if (!multiplies_bfloat16(4, 4)) return;
  const int64_t sizes[] = {16, 17, 32, 47, 65};
  for (int64_t m : sizes)
    for (int64_t n : sizes)
      for (int64_t k : {30, 31, 32, 33, 62, 64, 97})
        for (int turned = 0; turned < 4; ++turned) {
          const Case c{m, n, k, (turned & 1) != 0, (turned & 2) != 0};
          INFO(m << " x " << n << " x " << k << " turned " << turned);
          REQUIRE(wrong_elements<BFloat16>(c, 1, false) == 0);
          REQUIRE(wrong_elements<BFloat16>(c, 3, true) == 0);
        }
  for (const Case& c : {Case{400, 100, 1056}, Case{100, 600, 1030}, Case{33, 70, 2000}, Case{70, 70, 1040}})
    for (bool turned : {false, true}) {
      INFO(c.m << " x " << c.n << " x " << c.k << " turned " << turned);
      CHECK(wrong_elements<BFloat16>({c.m, c.n, c.k, turned, !turned}, 1, true) == 0);
      CHECK(wrong_elements<BFloat16>({c.m, c.n, c.k, turned, turned}, 1, false) == 0);
    }
}

// A vector instruction rounds after each product, as a loop in float does: k roundings of sums that are at most that
// of the magnitudes; AMX rounds as often. Subnormal numbers are zeros to both: what a product loses is at most the
// smallest normal number times the other factor.
TEST_CASE("products of bfloat16 are as near as sums of float, but for subnormal numbers") {
  if (!multiplies_bfloat16(4, 4)) return;
  const int64_t m = 30, n = 70, k = 1100;
  std::vector<BFloat16> a, b;
  for (int64_t i = 0; i < m * k; ++i)
    a.push_back(BFloat16(static_cast<float>(std::sin(i)) * (i % 7 == 0   ? 1e-38f
                                                            : i % 5 == 0 ? 1e15f
                                                                         : 1.0f)));
  for (int64_t i = 0; i < k * n; ++i)
    b.push_back(BFloat16(static_cast<float>(std::cos(i)) * (i % 3 == 0 ? 1e20f : 1e-5f)));
  std::vector<float> c(static_cast<size_t>(m * n));
  gemm(Gemm<BFloat16>{m, n, k, {a.data(), k, 1}, {b.data(), n, 1}, c.data(), n});
  int far = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, magnitude = 0, lost = 0;
      for (int64_t l = 0; l < k; ++l) {
        const double x = a[static_cast<size_t>(i * k + l)], y = b[static_cast<size_t>(l * n + j)];
        sum += x * y;
        magnitude += std::abs(x * y);
        lost += FLT_MIN * (1 + std::abs(x) + std::abs(y));
      }
      const double error = std::abs(c[static_cast<size_t>(i * n + j)] - sum);
      far += !(error <= static_cast<double>(k) * FLT_EPSILON * magnitude + lost);
    }
  CHECK(far == 0);
}

// Fractions, so that another order of summation would show.
std::vector<float> product_with(int threads) {
  const int before = get_num_threads();
  set_num_threads(threads);
  const int64_t m = 190, n = 210, k = 700;
  std::vector<float> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)),
      c(static_cast<size_t>(m * n));
  for (size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<float>(i));
  for (size_t i = 0; i < b.size(); ++i) b[i] = std::cos(static_cast<float>(i));
  gemm(Gemm<float>{m, n, k, {a.data(), k, 1}, {b.data(), 1, k}, c.data(), n});
  if (multiplies_bfloat16(m, n)) {
    std::vector<BFloat16> x(a.size()), y(b.size());
    std::transform(a.begin(), a.end(), x.begin(), [](float v) { return BFloat16(v); });
    std::transform(b.begin(), b.end(), y.begin(), [](float v) { return BFloat16(v); });
    c.resize(static_cast<size_t>(2 * m * n));
    gemm(Gemm<BFloat16>{m, n, k, {x.data(), k, 1}, {y.data(), 1, k}, c.data() + m * n, n});
  }
  c.push_back(dot(a.data(), 1, b.data(), 1, std::min<int64_t>(m * k, n * k)));
  set_num_threads(before);
  return c;
}

TEST_CASE("results do not depend on the number of threads") {
  const std::vector<float> one = product_with(1);
  CHECK(product_with(2) == one);
  CHECK(product_with(5) == one);
}

// Pieces of rows begin within what one thread takes for a panel; A is packed by tiles or before them, B by
// each tile; the last panels of rows have few.
TEST_CASE("products on any number of threads are exact on small integers") {
  const int before = get_num_threads();
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    for (const Case& c : {Case{43, 1000, 60}, Case{130, 65, 300}, Case{701, 300, 33}, Case{64, 64, 64}})
      for (int turned = 0; turned < 4; ++turned)
        for (int64_t gap : {1, 9}) {
          const Case t{c.m, c.n, c.k, (turned & 1) != 0, (turned & 2) != 0, gap};
          INFO(c.m << " x " << c.n << " x " << c.k << " turned " << turned << " gap " << gap << ", "
                   << threads << " threads");
          CHECK(wrong_elements<float>(t, 1, false) == 0);
          CHECK(wrong_elements<double>(t, 2, true) == 0);
#if defined(__x86_64__)
          if (multiplies_bfloat16(c.m, c.n)) CHECK(wrong_elements<BFloat16>(t, 1, false) == 0);
#endif
        }
  }
  set_num_threads(before);
}

TEST_CASE("a long dot product of floats keeps its accuracy") {
  const int64_t n = 3000001;
  const std::vector<float> x(static_cast<size_t>(n), 0.1f);
  const double want = static_cast<double>(n) * 0.1f * 0.1f;
  CHECK(std::abs(dot(x.data(), 1, x.data(), 1, n) - want) < 1e-6 * want);
  CHECK(std::abs(dot(x.data(), 2, x.data(), 0, n / 2) - want / 2) < 1e-6 * want);
  CHECK(dot(x.data(), 1, x.data(), 1, 0) == 0);
}

}  // namespace
}  // namespace retrograd::cpu
