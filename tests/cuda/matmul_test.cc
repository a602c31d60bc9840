// Products of matrices on a device against the CPU: every op, dtype and layout, sizes around those of a tile, empty
// ones; by the kernels alone, and through a library of products, whose stand-in here multiplies by the simplest method.
#include "ops/matmul.h"
#include "cuda/on_host/scheduler.h"
#include "tests/cuda/against_cpu.h"

using namespace retrograd;

namespace {

constexpr auto numbers = unit_numbers;

// Sums cancel: an error is measured relative to the size of a sum with as many terms.
void compare(const OpInfo& op, const Tensors& operands, void* attrs = nullptr) {
  expect_like_cpu(op, operands, attrs, 100);
}

void try_sizes(ScalarType dtype, int64_t m, int64_t n, int64_t k) {
  INFO(name(dtype) << ", " << m << " x " << n << " x " << k);
  const Tensor a = numbers({m, k}, dtype), b = numbers({k, n}, dtype);
  const Tensor turned_a = numbers({k, m}, dtype).transpose(0, 1);
  const Tensor turned_b = numbers({n, k}, dtype).transpose(0, 1);
  for (const Tensor& x : {a, turned_a})
    for (const Tensor& y : {b, turned_b}) compare(ops::info<ops::Mm>, {x, y});
  const Tensor wide = numbers({m, 2 * k + 1}, dtype);  // no stride is 1, nor a row dense
  compare(ops::info<ops::Mm>, {slice(wide, 1, 1, 2 * k + 1, 2), b});
  compare(ops::info<ops::Mm>,
          {wide.narrow(1, 1, k), expand(b.narrow(1, 0, std::min<int64_t>(1, n)), {k, n})});
}

void try_batches(ScalarType dtype) {
  INFO(name(dtype));
  const Tensor a = numbers({3, 2, 5, 7}, dtype), b = numbers({3, 2, 7, 4}, dtype);
  compare(ops::info<ops::Bmm>, {a, b});
  compare(ops::info<ops::Bmm>, {a.transpose(0, 1), b.transpose(0, 1)});
  compare(ops::info<ops::Bmm>, {a, expand(b.narrow(0, 0, 1).narrow(1, 0, 1), {3, 2, 7, 4})});
  compare(ops::info<ops::Bmm>, {expand(a.narrow(0, 0, 1), {3, 2, 5, 7}), b});
  const Tensor heads = numbers({2, 5, 3, 8}, dtype).transpose(1, 2);  // (2, 3, 5, 8), as in attention
  compare(ops::info<ops::Bmm>, {heads, heads.transpose(2, 3)});
  compare(ops::info<ops::Bmm>, {a.narrow(0, 0, 0), b.narrow(0, 0, 0)});
}

void try_linear(ScalarType dtype) {
  INFO(name(dtype));
  const Tensor weight = numbers({6, 7}, dtype), bias = numbers({6}, dtype);
  for (const Tensor& x : {numbers({5, 7}, dtype), numbers({3, 2, 5, 7}, dtype), numbers({7}, dtype),
                          numbers({5, 3, 7}, dtype).transpose(0, 1), numbers({0, 7}, dtype)}) {
    compare(ops::info<ops::Linear>, {x, weight, bias});
    compare(ops::info<ops::Linear>, {x, weight, Tensor()});
  }
  compare(ops::info<ops::Linear>,
          {numbers({5, 7}, dtype), numbers({7, 6}, dtype).transpose(0, 1), expand(numbers({1}, dtype), {6})});
  compare(ops::info<ops::Linear>, {numbers({5, 0}, dtype), numbers({6, 0}, dtype), bias});
}

void try_add_products(ScalarType dtype) {
  INFO(name(dtype));
  const Tensor a = numbers({5, 7}, dtype), b = numbers({7, 4}, dtype);
  const Tensor start = numbers({5, 4}, dtype), row = numbers({4}, dtype), column = numbers({5, 1}, dtype);
  for (const auto& [beta, alpha] : {std::pair{1.0, 1.0}, {2.0, 3.0}, {0.0, 2.0}, {1.0, -1.0}}) {
    ops::AddProduct::Attrs attrs;
    attrs.beta = beta;
    attrs.alpha = alpha;
    for (const Tensor& s :
         {start, expand(row, {5, 4}), expand(column, {5, 4}), numbers({4, 5}, dtype).transpose(0, 1)})
      compare(ops::info<ops::Addmm>, {s, a, b}, &attrs);
    compare(ops::info<ops::Baddbmm>,
            {numbers({3, 2, 2}, dtype), numbers({3, 2, 5}, dtype), numbers({3, 5, 2}, dtype)}, &attrs);
    compare(ops::info<ops::Addmm>, {start, a.narrow(1, 0, 0), b.narrow(0, 0, 0)}, &attrs);
  }
}

void try_vectors(ScalarType dtype) {
  INFO(name(dtype));
  for (int64_t k : {0, 1, 31, 5000}) {
    const Tensor a = numbers({3, k}, dtype), v = numbers({k}, dtype);
    compare(ops::info<ops::Mv>, {a, v});
    compare(ops::info<ops::Mv>, {numbers({k, 3}, dtype).transpose(0, 1), v});
    compare(ops::info<ops::Dot>, {v, numbers({2 * k}, dtype).narrow(0, k, k)});
  }
  compare(ops::info<ops::Mv>, {numbers({0, 3}, dtype), numbers({3}, dtype)});
  compare(ops::info<ops::Mm>, {numbers({1, 40}, dtype), numbers({40, 100}, dtype)});
}

void try_all(std::initializer_list<ScalarType> dtypes) {
  device_on_host();
  for (ScalarType dtype : dtypes) {
    for (int64_t k : {1, 16, 37}) try_sizes(dtype, 5, 70, k);
    try_sizes(dtype, 64, 64, 33);
    try_sizes(dtype, 130, 3, 9);
    try_sizes(dtype, 4, 3, 0);
    try_sizes(dtype, 0, 3, 4);
    try_batches(dtype);
    try_linear(dtype);
    try_add_products(dtype);
    try_vectors(dtype);
  }
}

// A library of products: takes everything, a bias only where it is to, and remembers the last one.
class PlainBlas final : public cuda::Blas {
 public:
  PlainBlas(cuda::BlasProduct& last, int& calls, const bool& takes_bias)
      : last_(last), calls_(calls), takes_bias_(takes_bias) {}

  bool multiply(const cuda::BlasProduct& p, void* workspace, CUstream_st*) override {
    REQUIRE(workspace);
    if (p.bias && !takes_bias_) return false;
    last_ = p;
    ++calls_;
    switch (p.type) {
      case cuda::BlasType::f32: run<float, float>(p); break;
      case cuda::BlasType::f64: run<double, double>(p); break;
      case cuda::BlasType::f16: run<Half, float>(p); break;
      case cuda::BlasType::bf16: run<BFloat16, float>(p); break;
    }
    return true;
  }

 private:
  template <class T, class C>
  static C at(const cuda::BlasMatrix& x, int64_t batch, int64_t i, int64_t j) {
    const T* data = static_cast<const T*>(x.data) + batch * x.batch;
    return static_cast<C>(x.turned ? data[j * x.step + i] : data[i * x.step + j]);
  }
  template <class T, class C>
  static void run(const cuda::BlasProduct& p) {
    for (int64_t b = 0; b < p.batches; ++b)
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n; ++j) {
          C sum = 0;
          for (int64_t l = 0; l < p.k; ++l) sum += at<T, C>(p.a, b, i, l) * at<T, C>(p.b, b, l, j);
          sum *= static_cast<C>(p.alpha);
          if (p.beta != 0) sum += static_cast<C>(p.beta) * at<T, C>(p.start, b, i, j);
          if (p.bias) sum += static_cast<C>(static_cast<const T*>(p.bias)[j]);
          static_cast<T*>(p.out)[b * p.out_batch + i * p.out_step + j] = static_cast<T>(sum);
        }
  }
  cuda::BlasProduct& last_;
  int& calls_;
  const bool& takes_bias_;
};

// Earlier devices keep their library: only devices that are made from now on use it.
struct WithLibrary {
  cuda::BlasProduct last;
  int calls = 0;
  bool takes_bias = true;
  WithLibrary() {
    renew([this] { return std::make_unique<PlainBlas>(last, calls, takes_bias); });
  }
  ~WithLibrary() { renew({}); }

 private:
  static void renew(std::function<std::unique_ptr<cuda::Blas>()> make) {
    device_on_host().make_blas = std::move(make);
    renew_device();
  }
};

}  // namespace

TEST_CASE("products by the kernels, of floats") { try_all({kFloat32, kFloat64}); }
TEST_CASE("products by the kernels, of 16 bits") { try_all({kFloat16, kBFloat16}); }
TEST_CASE("products by the kernels, of integers") { try_all({kInt64, kInt32, kUInt8}); }

TEST_CASE("products through a library", "[host]") {
  WithLibrary library;
  try_all({kFloat32, kFloat64, kFloat16, kBFloat16});
  CHECK(library.calls > 200);
}

TEST_CASE("products through a library that adds no bias", "[host]") {
  WithLibrary library;
  library.takes_bias = false;
  try_all({kFloat32, kFloat64, kFloat16, kBFloat16});
  CHECK(library.calls > 200);
}

TEST_CASE("what a library is told", "[host]") {
  WithLibrary library;
  NoGradGuard no_grad;
  const auto there = [](const IntArray& size) { return numbers(size, kFloat32).to(kCUDA); };
  SECTION("a linear layer over many dims is one product, its bias added by the library") {
    linear(there({3, 2, 5, 8}), there({6, 8}), there({6}));
    CHECK(library.calls == 1);
    CHECK(library.last.m == 30);
    CHECK(library.last.bias != nullptr);
    CHECK(library.last.b.turned);
    CHECK_FALSE(library.last.tf32);
  }
  SECTION("a bias that the library does not take is where the result begins") {
    library.takes_bias = false;
    linear(there({3, 2, 5, 8}), there({6, 8}), there({6}));
    CHECK(library.calls == 1);
    CHECK(library.last.start.data == library.last.out);
    CHECK(library.last.beta == 1);
  }
  SECTION("so is a bias at an odd address: the library is not told of it") {
    linear(there({5, 8}), there({6, 8}), there({7}).narrow(0, 1, 6));
    CHECK(library.calls == 1);
    CHECK(library.last.bias == nullptr);
    CHECK(library.last.beta == 1);
  }
  SECTION("heads of attention: a batch, and a loop over the smaller dim") {
    const Tensor q = there({2, 5, 3, 8}).transpose(1, 2);
    matmul(q, q.transpose(2, 3));
    CHECK(library.calls == 2);
    CHECK(library.last.batches == 3);
  }
  SECTION("TensorFloat-32 only where it is allowed") {
    cuda::gpu_of(0).allow_tf32(true);
    mm(there({3, 4}), there({4, 5}));
    CHECK(library.last.tf32);
  }
  SECTION("integers and empty sums are not its business") {
    mm(numbers({3, 4}, kInt64).to(kCUDA), numbers({4, 5}, kInt64).to(kCUDA));
    mm(there({3, 0}), there({0, 5}));
    CHECK(library.calls == 0);
  }
}

TEST_CASE("gradients of products on a device") {
  device_on_host();
  const auto gradients = [](Device device) {
    std::mt19937 same(3);
    unit_bits = same;
    const Tensor x = numbers({4, 5, 7}, kFloat32).to(device).requires_grad_(true);
    const Tensor w = numbers({6, 7}, kFloat32).to(device).requires_grad_(true);
    const Tensor b = numbers({6}, kFloat32).to(device).requires_grad_(true);
    sum(square(linear(x, w, b))).backward();
    return Tensors{x.grad(), w.grad(), b.grad()};
  };
  const Tensors expected = gradients(kCPU), found = gradients(kCUDA);
  for (size_t i = 0; i < 3; ++i) expect_same(expected[i], found[i], 20);
}

TEST_CASE("bits of products do not depend on the order of blocks and threads") {
  device_on_host();
  NoGradGuard no_grad;
  const Tensor a = numbers({70, 90}, kFloat32).to(kCUDA), v = numbers({60000}, kFloat32).to(kCUDA);
  const std::vector<double> first = mm(a, a.transpose(0, 1)).to_vector(), inner = dot(v, v).to_vector();
  for (unsigned seed : {1u, 2u}) {
    on_host::set_seed(seed);
    CHECK(mm(a, a.transpose(0, 1)).to_vector() == first);
    CHECK(dot(v, v).to_vector() == inner);
  }
  on_host::set_seed(0);
}
