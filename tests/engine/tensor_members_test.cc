// Members of Tensor and Scalar that programs written for libtorch use: types, memory, gradients, other data, forms of
// to(), factories from a tensor, conversions of numbers. What must not compile is asserted as a trait.
// Not tested here: values of functions (tests/ops), spellings of functions (spelling_test.cc).
#include <unordered_set>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace {

using namespace retrograd;
using Values = std::vector<double>;

Tensor counted(const Shape& shape) { return arange(0, shape.numel().value(), 1, {kFloat32}).view(shape); }

TEST_CASE("types and layout by libtorch's names") {
  const Tensor x = zeros({2, 3});
  CHECK(x.ndimension() == 2);
  CHECK(x.scalar_type() == kFloat32);
  CHECK(x.element_size() == 4);
  CHECK(x.itemsize() == 4);
  CHECK(x.nbytes() == 24);
  CHECK(x.is_cpu());
  CHECK_FALSE(x.is_cuda());
  CHECK(x.get_device() == -1);
  CHECK(x.is_signed());
  CHECK_FALSE(zeros({1}, {kUInt8}).is_signed());
  CHECK_FALSE(x.is_complex());
  CHECK_FALSE(x.is_sparse());
  CHECK_FALSE(x.is_quantized());
  CHECK(x.has_storage());
  CHECK_FALSE(Tensor().has_storage());
  CHECK(x.is_same_size(ones({2, 3})));
  CHECK_FALSE(x.is_same_size(ones({3, 2})));
  std::ostringstream text;
  text << x.sizes() << ' ' << x.scalar_type();
  CHECK(text.str() == "[2, 3] float32");
  CHECK(x.sizes().vec() == IntArray{2, 3});
}

TEST_CASE("views and handles") {
  const Tensor x = zeros({2, 3}), row = x[0];
  CHECK(row.is_view());
  CHECK(row._base().is_same(x));
  CHECK(row.is_alias_of(x));
  CHECK_FALSE(x.is_alias_of(zeros({2})));
  CHECK(category_of([&] { x._base(); }) == Category::bad_argument);
  const Tensor y = ones({1});
  CHECK(y.use_count() == 1);
  const Tensor z = y;
  CHECK(y.use_count() == 2);
  CHECK(Tensor().use_count() == 0);
  CHECK(x._version() == 0);
  x.add_(1.0);
  CHECK(x._version() == 1);
}

TEST_CASE("memory: pointers and accessors") {
  const Tensor x = counted({2, 3});
  CHECK(x.const_data_ptr<float>()[5] == 5);
  x.mutable_data_ptr<float>()[5] = 7;
  CHECK(static_cast<const float*>(x.data_ptr())[5] == 7);
  CHECK(x.const_data_ptr() == x.mutable_data_ptr());
  const auto a = x.accessor<float, 2>();
  CHECK(a.size(0) == 2);
  CHECK(a.stride(0) == 3);
  a[1][0] = 30;
  CHECK(a[1][0] == 30);
  CHECK(x.to_vector() == Values{0, 1, 2, 30, 4, 7});
  const Tensor turned = x.t();
  const auto t = turned.accessor<float, 2>();
  CHECK(t[0][1] == 30);
  const auto column = t[2];
  CHECK(column.size(0) == 2);
  CHECK(column[1] == 7);
  std::string text;
  CHECK(category_of([&] { x.accessor<double, 2>(); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { x.accessor<float, 1>(); }, &text) == Category::bad_dim);
  CHECK(text.find("1 dims are asked for") != std::string::npos);
}

template <class T>
concept AccessibleTemporary = requires {
  std::declval<T>().template accessor<float, 1>();
};

TEST_CASE("what would dangle or do nothing does not compile") {
  static_assert(!AccessibleTemporary<Tensor>);
  static_assert(AccessibleTemporary<const Tensor&>);
  static_assert(!std::is_assignable_v<MutableGrad&, Tensor>);  // auto g = x.mutable_grad(); g = y
  static_assert(std::is_assignable_v<MutableGrad, Tensor>);
  static_assert(!std::is_convertible_v<MutableGrad, Tensor&>);
}

TEST_CASE("mutable_grad assigns, writes and clears the gradient") {
  const Tensor x = ones({2}).requires_grad_();
  CHECK_FALSE(x.mutable_grad().defined());
  x.mutable_grad() = tensor({1.0, 2.0});
  CHECK(x.grad().to_vector() == Values{1, 2});
  x.mutable_grad().mul_(3.0);
  CHECK(x.grad().to_vector() == Values{3, 6});
  const Tensor y = zeros({2}).requires_grad_();
  y.mutable_grad() = x.mutable_grad();
  CHECK(y.grad().is_same(x.grad()));
  x.mutable_grad().zero_();
  CHECK(y.grad().to_vector() == Values{0, 0});
  x.mutable_grad().reset();
  CHECK_FALSE(x.grad().defined());
  y.mutable_grad() = Tensor();
  CHECK_FALSE(y.grad().defined());
  CHECK(category_of([&] { x.mutable_grad() = ones({3}); }) == Category::cotangent_mismatch);
  CHECK(category_of([&] { x.mutable_grad() = x; }) == Category::bad_argument);
}

TEST_CASE("data shares memory without history, and a write to it counts") {
  const Tensor x = ones({2}).requires_grad_();
  x.data().mul_(3.0);
  CHECK(x.to_vector() == Values{3, 3});
  CHECK_FALSE(x.data().requires_grad());
  CHECK(x.variable_data().is_alias_of(x));
  CHECK(x.tensor_data().is_leaf());
  const Tensor y = exp(x);
  y.data().add_(1.0);
  CHECK(category_of([&] { sum(y).backward(); }) == Category::version_mismatch);
}

TEST_CASE("set_data gives a leaf other memory and keeps its gradient and hooks") {
  const Tensor x = ones({2}).requires_grad_(), other = tensor({5.0, 6.0});
  int called = 0;
  x.register_hook([&](const Tensor&) { ++called; });
  sum(x * x).backward();
  x.set_data(other);
  CHECK(x.to_vector() == Values{5, 6});
  CHECK(x.is_alias_of(other));
  CHECK(x.requires_grad());
  CHECK(x.grad().to_vector() == Values{2, 2});
  sum(x * x).backward();
  CHECK(x.grad().to_vector() == Values{12, 14});
  CHECK(called == 2);
}

TEST_CASE("a recorded function uses the memory that a tensor has when it runs") {
  const Tensor w = ones({2}).requires_grad_(), x = tensor({3.0, 4.0});
  auto f = compile([&](const Tensor& t) { return sum(t * w); });
  for (int run = 1; run < 4; ++run) {
    w.set_data(full({2}, static_cast<double>(run)));
    const Tensor y = f(x);
    CHECK(y.item<double>() == 7 * run);
    w.set_grad({});
    y.backward();
    CHECK(w.grad().to_vector() == Values{3, 4});
  }
  CHECK(f.stats().captures == 1);
}

TEST_CASE("set_data under a recorded value is seen by the backward") {
  const Tensor x = ones({2}).requires_grad_(), y = sum(x * x);
  x.set_data(tensor({5.0, 6.0}));
  CHECK(category_of([&] { y.backward(); }) == Category::version_mismatch);
  const Tensor z = sum(x * x);
  x.set_data(x.detach());  // counts as a write, whatever is there
  CHECK(category_of([&] { z.backward(); }) == Category::version_mismatch);
}

TEST_CASE("views of a tensor keep the memory that set_data replaces") {
  const Tensor x = zeros({2}), row = x.view({1, 2}), w = ones({1, 2}).requires_grad_();
  x.set_data(ones({2}));
  row.add_(w * 3.0);  // no longer a write to x
  CHECK(row.requires_grad());
  CHECK(row.to_vector() == Values{3, 3});
  CHECK_FALSE(x.requires_grad());
  CHECK(x.to_vector() == Values{1, 1});
  sum(row * 2.0).backward();
  CHECK(w.grad().to_vector() == Values{6, 6});
}

TEST_CASE("a view that is no view any more is an operand of a recorded call") {
  const Tensor x = zeros({2}), row = x.view({1, 2}), w = ones({1, 2}).requires_grad_();
  x.set_data(ones({2}));
  const Tensor y = row * w;
  CHECK(y.to_vector() == Values{0, 0});
  sum(y).backward();
  CHECK(w.grad().to_vector() == Values{0, 0});
}

TEST_CASE("set_data refuses memory of inference mode under a gradient, and values without data") {
  const Tensor x = ones({2}).requires_grad_();
  Tensor made;
  {
    const InferenceMode mode;
    made = zeros({2});
  }
  CHECK(category_of([&] { x.set_data(made); }) == Category::requires_grad_forbidden);
  CHECK(x.to_vector() == Values{1, 1});
  const auto replace = [](const Tensor& sample) {
    sample.set_data(zeros({2}));
    return sample;
  };
  CHECK(category_of([&] { vmap(replace)(ones({3, 2})); }) == Category::bad_argument);
}

TEST_CASE("set_data refuses what its gradient, history or base forbid") {
  const Tensor x = ones({2}).requires_grad_();
  CHECK(category_of([&] { x.set_data(ones({2}, {kInt64})); }) == Category::requires_grad_forbidden);
  x.set_data(ones({3}, {kFloat64}));
  CHECK(x.dtype() == kFloat64);
  CHECK(x.numel() == 3);
  sum(x).backward();
  std::string text;
  CHECK(category_of([&] { x.set_data(ones({2})); }, &text) == Category::bad_argument);
  CHECK(text.find("set_grad") != std::string::npos);
  CHECK(category_of([&] { (x * 2.0).set_data(ones({2})); }) == Category::bad_argument);
  CHECK(category_of([&] { ones({2, 2})[0].set_data(ones({2})); }) == Category::bad_argument);
}

TEST_CASE("resize_ stays in its memory where that is large enough") {
  const Tensor x = counted({2, 3}).clone();
  const void* const memory = x.data_ptr();
  CHECK(x.resize_({4}).is_same(x));
  CHECK(x.to_vector() == Values{0, 1, 2, 3});
  CHECK(x.data_ptr() == memory);
  x.resize_({3, 2});
  CHECK(x.to_vector() == Values{0, 1, 2, 3, 4, 5});
  x.resize_({0});
  CHECK(x.numel() == 0);
  x.resize_as_(zeros({2, 4}));
  CHECK(x.to_vector() == Values{0, 1, 2, 3, 4, 5, 0, 0});
  CHECK(x.is_contiguous());
  const Tensor turned = counted({2, 2}).t();
  turned.resize_({4});
  CHECK(turned.to_vector() == Values{0, 1, 2, 3});
}

TEST_CASE("resize_ refuses gradients, shared memory that is too small, and negative sizes") {
  CHECK(category_of([] { ones({2}).requires_grad_().resize_({3}); }) == Category::requires_grad_forbidden);
  const Tensor x = counted({4}), part = x.narrow(0, 2, 2);
  std::string text;
  CHECK(category_of([&] { part.resize_({3}); }, &text) == Category::bad_argument);
  CHECK(text.find("clone") != std::string::npos);
  CHECK(part.to_vector() == Values{2, 3});
  CHECK(category_of([&] { x.resize_({-1}); }) == Category::bad_argument);
  const Tensor w = ones({4}).requires_grad_(), y = sum(w * x);
  x.resize_({2});
  CHECK(category_of([&] { y.backward(); }) == Category::version_mismatch);
}

TEST_CASE("detach_ makes a leaf of a tensor") {
  const Tensor x = ones({2}).requires_grad_(), h = x * 2.0, y = sum(h * h);
  CHECK(h.detach_().is_same(h));
  CHECK(h.is_leaf());
  CHECK_FALSE(h.requires_grad());
  CHECK(h.grad_fn() == nullptr);
  y.backward();  // what was recorded before keeps its way
  CHECK(x.grad().to_vector() == Values{8, 8});
  CHECK(sum(h * h).is_leaf());
  CHECK_FALSE(ones({1}).requires_grad_().detach_().requires_grad());
  CHECK(category_of([&] { (x * 2.0)[0].detach_(); }) == Category::bad_argument);
}

TEST_CASE("forms of to") {
  const Tensor x = ones({2});
  CHECK(x.to(kFloat64, /*non_blocking=*/false).dtype() == kFloat64);
  CHECK(x.to(kFloat32).is_same(x));
  CHECK_FALSE(x.to(kFloat32, false, /*copy=*/true).is_same(x));
  CHECK_FALSE(x.to(kCPU, true, true).is_alias_of(x));
  CHECK(x.to(kCPU, kInt64).dtype() == kInt64);
  CHECK(x.to(zeros({1}, {kFloat16})).dtype() == kFloat16);
  CHECK(x.to(zeros({1}, {kFloat64}).options()).dtype() == kFloat64);
  CHECK(x.toType(kInt32).dtype() == kInt32);
  CHECK(x.type_as(zeros({1}, {kBool})).dtype() == kBool);
  const Tensor w = ones({2}).requires_grad_();
  sum(w.to(kFloat64, false, true) * 3.0).backward();
  CHECK(w.grad().to_vector() == Values{3, 3});
}

TEST_CASE("factories with the type of a tensor") {
  const Tensor x = ones({2}, {kFloat64}).requires_grad_();
  CHECK(x.new_zeros({2, 3}).dtype() == kFloat64);
  CHECK_FALSE(x.new_zeros({2, 3}).requires_grad());
  CHECK(x.new_ones(3).to_vector() == Values{1, 1, 1});
  CHECK(x.new_full({2}, 7).to_vector() == Values{7, 7});
  CHECK(x.new_full({2}, 7).dtype() == kFloat64);
  CHECK(x.new_empty(x.sizes()).numel() == 2);
  CHECK(x.new_zeros({1}, {kInt64}).dtype() == kInt64);
  CHECK(x.new_ones({1}, {kFloat32}).dtype() == kFloat32);
  CHECK(x.new_full({1}, 2, {kInt32}).dtype() == kInt32);
  CHECK(x.new_empty({1}, {kBool}).dtype() == kBool);
  CHECK_FALSE(zeros({1}, x.options()).requires_grad());
  CHECK(zeros({1}, x.options()).dtype() == kFloat64);
}

TEST_CASE("numbers convert to what holds them") {
  const Scalar item = tensor({2.75}, {kFloat64}).item();
  CHECK(item.to<double>() == 2.75);
  CHECK(item.toFloat() == 2.75f);
  CHECK(item.toInt() == 2);
  CHECK(item.toLong() == 2);
  CHECK(item.toBool());
  CHECK(item.isFloatingPoint());
  CHECK_FALSE(item.isIntegral(true));
  CHECK(tensor({7}).item().to<int>() == 7);
  CHECK(Scalar(true).isBoolean());
  CHECK(Scalar(true).isIntegral(true));
  CHECK_FALSE(Scalar(true).isIntegral(false));
  CHECK(tensor({1.5}).is_nonzero());
  CHECK_FALSE(tensor({0}).is_nonzero());
}

TEST_CASE("a number that a type cannot hold is an error") {
  CHECK(category_of([] { Scalar(1e30).to<int64_t>(); }) == Category::bad_argument);
  CHECK(category_of([] { Scalar(int64_t{1} << 40).toInt(); }) == Category::bad_argument);
  CHECK(category_of([] { Scalar(-1).to<uint8_t>(); }) == Category::bad_argument);
  CHECK(category_of([] { Scalar(1e300).toFloat(); }) == Category::bad_argument);
  CHECK(category_of([] { Scalar(std::nan("")).toInt(); }) == Category::bad_argument);
  CHECK(std::isinf(Scalar(std::numeric_limits<double>::infinity()).toFloat()));
  CHECK(Scalar((int64_t{1} << 60) + 1).toLong() == (int64_t{1} << 60) + 1);
  CHECK(category_of([] { Scalar(std::numeric_limits<uint64_t>::max()); }) == Category::bad_argument);
}

TEST_CASE("saved data is what was saved") {
  const SavedValue text = "reflect", number = 2.5, list = IntArray{1, 2};
  char buffer[] = "zeros";
  char* const pointer = buffer;
  CHECK(text.toStringRef() == "reflect");
  CHECK(SavedValue(pointer).toStringRef() == "zeros");
  CHECK(number.toDouble() == 2.5);
  CHECK((ones({}) * number).item<double>() == 2.5);
  for (const SavedValue* other : {&text, &list}) {
    CHECK(category_of([&] { other->toInt(); }) == Category::bad_argument);
    CHECK(category_of([&] { ones({}) * *other; }) == Category::bad_argument);
    CHECK(category_of([&] { static_cast<void>(static_cast<const Scalar&>(*other)); }) ==
          Category::bad_argument);
  }
  CHECK(category_of([&] { number.toIntVector(); }) == Category::bad_argument);
}

TEST_CASE("a device has a small index") {
  CHECK(Device(kCUDA, 3).index() == 3);
  CHECK(category_of([] { Device(kCUDA, 256); }) == Category::bad_argument);
  CHECK(category_of([] { TensorOptions().device(kCUDA, 300); }) == Category::bad_argument);
}

TEST_CASE("recorded code reads types, and runs eagerly where a tensor gets other memory") {
  auto f = compile([](const Tensor& x) {
    const Tensor y = x.new_full({2}, 3).type_as(x) * x.to(x.device(), x.dtype(), false, true);
    return y.is_floating_point() && y.is_cpu() ? y : x;
  });
  auto g = compile([](const Tensor& x) {
    const Tensor y = zeros({1});
    y.set_data(x * 2.0);
    y.resize_({1});
    return y;
  });
  auto h = compile([](const Tensor& x) {
    const Tensor y = x * 2.0;
    y.detach_();
    return y * x;
  });
  for (int run = 0; run < 3; ++run) {
    CHECK(f(tensor({1.0, 2.0})).to_vector() == Values{3, 6});
    CHECK(g(tensor({1.0, 2.0})).to_vector() == Values{2});
    const Tensor w = tensor({1.0, 2.0}).requires_grad_();
    sum(h(w)).backward();
    CHECK(w.grad().to_vector() == Values{2, 4});
  }
  CHECK(f.stats().captures == 1);
  CHECK(h.stats().captures == 1);
  CHECK(g.stats().captures == 0);
  CHECK(g.last_eager_reason().find("memory") != std::string::npos);
}

}  // namespace
