// Steps of optimizers for lists of parameters on a device against the CPU: the same bits, in place, in one
// launch; and the norm of many tensors.
#include <random>

#include "ops/optimizer_steps.h"
#include "ops/total_norm.h"
#include "tests/cuda/device_on_host.h"
#include "tests/errors.h"

using namespace retrograd;

namespace {

std::mt19937 random_bits(13);

Tensor numbers(const IntArray& size, ScalarType dtype) {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  std::vector<double> values(static_cast<size_t>(n));
  for (double& v : values) v = std::uniform_real_distribution<double>(0.01, 2)(random_bits);
  return tensor(values, size, dtype);
}

bool have_same_bits(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.to_vector(), b.to_vector(),
                            [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

// Dtypes of parameters, states and gradients; whether there are master values.
struct Dtypes {
  ScalarType param, state, grad;
  bool has_master = false;
};
constexpr Dtypes kDtypes[] = {{kFloat32, kFloat32, kFloat32},         {kFloat64, kFloat64, kFloat64},
                              {kBFloat16, kBFloat16, kBFloat16},      {kFloat16, kFloat16, kFloat16},
                              {kFloat32, kFloat32, kBFloat16},        {kFloat32, kFloat32, kFloat16},
                              {kBFloat16, kFloat32, kBFloat16, true}, {kFloat16, kFloat32, kFloat16, true}};

// A step: the operands of the rule, and master values, most of which round to the parameter's.
struct Operands {
  Tensors of_rule;
  Tensor master;
};

// Of several parameters: sizes around a block's, and none.
template <class Rule>
std::vector<Operands> lists(const Dtypes& dtypes, uint32_t absent) {
  std::vector<Operands> all;
  for (const IntArray& size : {IntArray{3}, {0}, {4096}, {2, 4097}, {1}, {33, 7}}) {
    Operands operands;
    for (int k = 0; k < Rule::inputs; ++k)
      operands.of_rule.push_back(absent >> k & 1 ? Tensor()
                                                 : numbers(size, k == 0                  ? dtypes.param
                                                                 : k + 1 == Rule::inputs ? dtypes.grad
                                                                                         : dtypes.state));
    if (dtypes.has_master) {
      operands.master = operands.of_rule[0].to(kFloat32) * (1 + 0x1p-12);
      if (size[0] > 1) operands.master.narrow(0, 0, 1).zero_();
    }
    all.push_back(operands);
  }
  return all;
}

// All numbers are `number`, but for the step; all flags are `flag`.
template <class Rule>
void compare(double number, bool flag, int step) {
  using Op = ops::StepOf<Rule>;
  typename Op::Attrs attrs;
  attrs.numbers.fill(number);
  attrs.numbers[Op::Names::step] = step;
  attrs.flags.fill(flag);
  INFO(Rule::name << " step " << step);
  for (const Dtypes& dtypes : kDtypes)
    for (uint32_t absent = 0; absent < 32; ++absent) {
      if (absent & ~uint32_t{Rule::optional}) continue;
      const std::vector<Operands> here = lists<Rule>(dtypes, absent);
      std::vector<Operands> there = here;
      const auto to_device = [](Tensor& x) {
        if (x.defined()) x = x.to(kCUDA);
      };
      for (Operands& operands : there) {
        std::ranges::for_each(operands.of_rule, to_device);
        to_device(operands.master);
      }
      const Tensor found_inf = absent == 0 && step > 1 ? full({}, step == 100, {kFloat32}) : Tensor();
      for (const std::vector<Operands>& all : {here, there}) {  // copies of names, not of values
        const Device device = all[0].of_rule[0].device();
        ops::UpdateList list(ops::info<Op>, SourceLocation::current(),
                             found_inf.defined() ? found_inf.to(device) : found_inf);
        for (const Operands& operands : all)
          list.add(operands.of_rule, attrs.numbers, attrs.flags, operands.master);
        list.run();
      }
      for (size_t i = 0; i < here.size(); ++i) {
        for (size_t k = 0; k < here[i].of_rule.size(); ++k)
          if (here[i].of_rule[k].defined()) CHECK(have_same_bits(here[i].of_rule[k], there[i].of_rule[k]));
        if (dtypes.has_master) {
          CHECK(have_same_bits(here[i].master, there[i].master));
          if (step < 100) CHECK(have_same_bits(here[i].master.to(dtypes.param), here[i].of_rule[0]));
        }
      }
    }
}

template <class... Rule>
void compare_all(ops::RuleList<Rule...>) {
  ((compare<Rule>(0.9, false, 1), compare<Rule>(0.4, true, 7), compare<Rule>(0.5, false, 100)), ...);
}

}  // namespace

TEST_CASE("steps of all optimizers have the bits of the CPU's") {
  device_on_host();
  NoGradGuard no_grad;
  compare_all(ops::OptimizerRules());
}

TEST_CASE("the norm of many tensors") {
  device_on_host();
  const Tensors here = {numbers({3}, kFloat32),     numbers({2, 17000}, kFloat64), numbers({0}, kFloat32),
                        numbers({40000}, kFloat32), numbers({700}, kBFloat16),     numbers({1031}, kFloat16)};
  Tensors there;
  for (const Tensor& x : here) there.push_back(x.to(kCUDA));
  for (double p : {1.0, 2.0, 3.5, static_cast<double>(INFINITY)})
    expect_same(total_norm(here, p), total_norm(there, p));
  expect_same(total_norm({here[2]}), total_norm({there[2]}));

  const Tensor bad = tensor({1.0, NAN, 2.0}, {3}, kFloat32).to(kCUDA);
  for (double p : {2.0, static_cast<double>(INFINITY)}) {
    CHECK(std::isnan(total_norm({there[0], bad}, p).item<double>()));
    CHECK(category_of([&] { total_norm({bad}, p, true); }) == Category::bad_argument);
  }
}
