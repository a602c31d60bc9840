// The rules of `simplify`, text to text, and that their results have the same bits: each case runs before and after on
// zeros of both signs, infinities, NaN, the smallest and largest numbers and others. Layouts must agree, too.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/replay.h"
#include "tests/rewrites/rule_cases.h"

namespace rg = retrograd;
using rg::Tensor;
using rule_cases::Case;

namespace {

// Pairs of all these, as two inputs.
const std::vector<double> kValues = {0.0,       -0.0,  1.0,    -1.5,    3.0,     0.1,        -2.7,  255.0,
                                     1e-45,     -6e-8, 1e-310, 1.2e-38, 65504.0, -3e38,      1e300, INFINITY,
                                     -INFINITY, NAN,   1e20,   -129.4,  0.5,     -1.1754e-38};

std::vector<Tensor> inputs(rg::ScalarType dtype, size_t k) {
  std::vector<double> x, y, m;
  for (size_t i = 0; i < 6; ++i) {
    x.push_back(kValues[(k * 6 + i) % kValues.size()]);
    y.push_back(kValues[(k * 5 + i * 7 + 1) % kValues.size()]);
    m.push_back((k + i) % 3 == 0);
  }
  if (!rg::is_floating(dtype))
    for (auto* list : {&x, &y})
      for (double& v : *list) v = std::isfinite(v) ? std::fmod(std::trunc(v), 1000) : 7;
  return {rg::tensor(x, {2, 3}, {dtype}), rg::tensor(y, {2, 3}, {dtype}), rg::tensor(m, {2, 3}, {rg::kBool})};
}

std::vector<Tensor> run(const rg::ir::Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<rg::ir::Binding> bindings;
  for (const Tensor& t : inputs) bindings.push_back({.tensor = t});
  return rg::ir::replay(graph, rg::eager_runner(), bindings);
}

// Bit for bit, except for the payload of a NaN.
bool same_bits(const Tensor& a, const Tensor& b) {
  if (!(a.impl().type() == b.impl().type())) return false;
  for (int d = 0; d < a.dim(); ++d)
    if (a.impl().shape()[d].raw() > 1 && a.impl().strides()[d] != b.impl().strides()[d]) return false;
  const Tensor x = rg::clone(a), y = rg::clone(b);
  const size_t item = rg::element_size(x.dtype());
  const std::vector<double> numbers = x.to_vector(), others = y.to_vector();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto *p = static_cast<const char*>(x.impl().data()), *q = static_cast<const char*>(y.impl().data());
    if (std::memcmp(p + i * item, q + i * item, item) != 0 &&
        !(std::isnan(numbers[i]) && std::isnan(others[i])))
      return false;
  }
  return true;
}

void check_bits(const rg::ir::Graph& before, const rg::ir::Graph& after, rg::ScalarType dtype) {
  for (size_t k = 0; k < kValues.size(); ++k) {
    const std::vector<Tensor> given = inputs(dtype, k), expected = run(before, given),
                              found = run(after, given);
    for (size_t i = 0; i < expected.size(); ++i)
      if (!same_bits(expected[i], found[i]))
        FAIL_CHECK(rg::to_string(given[0]) << "\n"
                                           << rg::to_string(expected[i]) << "\nbecame\n"
                                           << rg::to_string(found[i]));
  }
}

}  // namespace

TEST_CASE("rules of simplify, and their bits") {
  for (const Case& c : rule_cases::kSimplified)
    for (const char* dtype : c.dtypes) {
      INFO(dtype << "\n" << c.before);
      const std::string before = rule_cases::text(c.before, dtype);
      const rg::ir::Graph found = rule_cases::after({"simplify", "dce"}, before);
      CHECK(found.print() == rule_cases::after({"dce"}, rule_cases::text(c.after, dtype)).print());
      check_bits(ir_test::parse(before), found, ir_test::parse(before).types()[0].dtype);
    }
}

TEST_CASE("what is only nearly so is left alone") {
  for (const Case& c : rule_cases::kLeftAlone)
    for (const char* dtype : c.dtypes) {
      INFO(dtype << "\n" << c.before);
      CHECK(passes_test::after("simplify", rule_cases::text(c.before, dtype)) == "unchanged");
    }
}
