// The default dtype: what takes it, what does not, and that recordings see it change.
#include <catch2/catch.hpp>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

class DefaultDtype {
 public:
  explicit DefaultDtype(rg::ScalarType dtype) { rg::set_default_dtype(dtype); }
  ~DefaultDtype() { rg::set_default_dtype(before_); }

 private:
  const rg::ScalarType before_ = rg::get_default_dtype();
};

}  // namespace

TEST_CASE("what is made without a dtype has the default one") {
  CHECK(rg::get_default_dtype() == rg::kFloat32);
  for (const rg::ScalarType dtype : {rg::kFloat64, rg::kBFloat16, rg::kFloat16, rg::kFloat32}) {
    INFO(rg::name(dtype));
    const DefaultDtype scope(dtype);
    CHECK(rg::zeros({2}).dtype() == dtype);
    CHECK(rg::randn({2}).dtype() == dtype);
    CHECK(rg::tensor({1.5, 2.0}).dtype() == dtype);
    CHECK(rg::arange(0.0, 2.0, 0.5).dtype() == dtype);
    CHECK(rg::arange(0, 4).dtype() == rg::kInt64);
    CHECK(rg::full({2}, 1.5, {rg::kFloat32}).dtype() == rg::kFloat32);
    const rg::nn::Linear layer(nullptr, "", 2, 3);
    CHECK(layer.weight.dtype() == dtype);
    CHECK(layer(rg::ones({1, 2})).dtype() == dtype);
  }
}

TEST_CASE("integers become the default dtype where they meet fractions; floating tensors stay") {
  const DefaultDtype scope(rg::kFloat64);
  const Tensor integers = rg::tensor(std::vector<int64_t>{1, 2, 3}, {3}, {rg::kInt64});
  CHECK((integers * 2.5).dtype() == rg::kFloat64);
  CHECK((integers * 2).dtype() == rg::kInt64);
  CHECK((integers / 2).dtype() == rg::kFloat64);
  CHECK(rg::sqrt(integers).dtype() == rg::kFloat64);
  CHECK(rg::logsumexp(integers, {0}).dtype() == rg::kFloat64);
  const Tensor single = rg::ones({2}, {rg::kFloat32});
  CHECK((single * 2.5).dtype() == rg::kFloat32);
  CHECK((single * rg::tensor({2.0})).dtype() == rg::kFloat64);
}

TEST_CASE("a recorded function, and a captured backward, are recorded again") {
  const auto body = [](const Tensor& x) { return x * rg::full({2}, 1.0 / 3.0); };
  auto compiled = rg::compile(body);
  const Tensor x = rg::ones({2}, {rg::kFloat64});
  for (const rg::ScalarType dtype : {rg::kFloat32, rg::kFloat64, rg::kFloat32}) {
    const DefaultDtype scope(dtype);
    CHECK(compiled(x).to_vector() == body(x).to_vector());
  }
  CHECK(compiled.stats().captures == 2);
}

TEST_CASE("only floating dtypes that ops compute with can be the default") {
  for (const rg::ScalarType dtype : {rg::kInt64, rg::kBool, rg::kFloat8_e5m2, rg::ScalarType::Undefined}) {
    try {
      rg::set_default_dtype(dtype);
      FAIL("no error");
    } catch (const rg::Error& e) {
      CHECK(e.category() == rg::Category::bad_argument);
      CHECK(std::string(e.what()).find("default_dtype_test.cc") != std::string::npos);
    }
  }
  CHECK(rg::get_default_dtype() == rg::kFloat32);
}
