// The checks of each case: see table.h.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "autograd/gradcheck.h"
#include "engine/driver.h"
#include "ops/shape_ops.h"
#include "ops/views.h"
#include "tests/ops/derivatives/table.h"
#include "tracer/backward/compile_backward.h"

namespace derivatives {
namespace rg = retrograd;
namespace ag = retrograd::autograd;

namespace {

/// Notes the ops whose rules gave a gradient.
class Differentiated final : public rg::DriverObserver {
 public:
  Differentiated(const rg::Walk& walk, std::set<std::string_view>& names) : walk_(walk), names_(names) {}
  void record_begins(uint32_t) override {}
  void rule_gave(uint32_t place, std::span<const Tensor>, std::span<const Tensor> given) override {
    for (const Tensor& g : given)
      if (g.defined()) names_.insert(walk_.order()[place].record->op->name);
  }
  void leaf_begins(uint32_t) override {}
  void arrived(uint32_t, const Tensor&) override {}
  void captured(uint32_t, const Tensor&) override {}

 private:
  const rg::Walk& walk_;
  std::set<std::string_view>& names_;
};

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (!(a.impl().type() == b.impl().type())) return false;
  const Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return std::memcmp(x.raw_data(), y.raw_data(), static_cast<size_t>(x.nbytes())) == 0;
}

/// Those that have a history.
Tensors differentiable(const Tensors& all) {
  Tensors some;
  for (const Tensor& t : all)
    if (t.defined() && t.requires_grad()) some.push_back(t);
  return some;
}

/// A leaf of cotangents without pattern.
Tensor cotangent(const Tensor& y) {
  std::vector<double> values(static_cast<size_t>(y.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>((i * 7919 + 13) % 1009) / 504.5 - 1;
  return rg::tensor(values, y.impl().shape(), {y.dtype()}).requires_grad_();
}

/// A backward and the backward of what it gave, through `grad`, which has autograd::grad's parameters.
struct Orders {
  Tensors first, second;
};
template <class Grad>
Orders both_orders(const Row& row, const Tensors& x, const Grad& grad) {
  const Tensors y = differentiable(row.f(x)), inputs = differentiable(x);
  Tensors w, asked = inputs;
  for (const Tensor& t : y) w.push_back(cotangent(t));
  asked.insert(asked.end(), w.begin(), w.end());
  Orders result;
  const Tensors recorded = grad(y, inputs, w, true);
  result.first = grad(y, inputs, w, false);
  Tensors roots, v;
  for (const Tensor& g : differentiable(recorded)) {
    roots.push_back(g);
    v.push_back(cotangent(g).detach());
  }
  if (!roots.empty()) result.second = grad(roots, asked, v, false);
  return result;
}

Orders check_traced(const Row& row, const Tensors& x, std::set<std::string_view>& covered) {
  const Orders eager =
      both_orders(row, x, [&](const Tensors& roots, const Tensors& inputs, const Tensors& w, bool create) {
        const rg::BackwardRequest request = rg::make_request(roots, w, inputs, false, true, create, {});
        rg::Walk walk = request.walk();
        Differentiated observer(walk, covered);
        rg::AutoGradMode mode(create);
        return rg::run_backward(request, walk, rg::Emitter::current(), &observer);
      });
  rg::CompiledBackward compiled = rg::compile_backward();
  for (const char* run : {"captured", "replayed"}) {
    INFO("the backward that is " << run);
    const Orders traced =
        both_orders(row, x, [&](const Tensors& roots, const Tensors& inputs, const Tensors& w, bool create) {
          return compiled.grad(roots, inputs, w, true, create, true);
        });
    REQUIRE(traced.first.size() == eager.first.size());
    REQUIRE(traced.second.size() == eager.second.size());
    for (size_t i = 0; i < eager.first.size(); ++i) {
      INFO("gradient " << i << ": " << rg::to_string(eager.first[i]) << rg::to_string(traced.first[i]));
      CHECK(same_bits(eager.first[i], traced.first[i]));
    }
    for (size_t i = 0; i < eager.second.size(); ++i) {
      INFO("second " << i << ": " << rg::to_string(eager.second[i]) << rg::to_string(traced.second[i]));
      CHECK(same_bits(eager.second[i], traced.second[i]));
    }
  }
  return eager;
}

/// The input in another dtype, with its strides.
Tensor cast(const Tensor& x, rg::ScalarType dtype) {
  if (!x.is_floating_point()) return x;
  int64_t extent = x.numel() > 0;
  for (int64_t d = 0; d < x.dim() && extent; ++d) extent += (x.size(d) - 1) * x.stride(d);
  const Tensor memory = rg::to(rg::as_strided(x.detach(), {extent}, {1}), dtype);
  return rg::as_strided(memory, x.sizes(), x.strides(), 0).detach().requires_grad_(x.requires_grad());
}

/// Float32 gives the same as float64, within its precision.
void check_near(const Tensors& wide, const Tensors& narrow) {
  REQUIRE(wide.size() == narrow.size());
  for (size_t i = 0; i < wide.size(); ++i) {
    REQUIRE(wide[i].defined() == narrow[i].defined());
    if (!wide[i].defined()) continue;
    CHECK(narrow[i].dtype() == rg::kFloat32);
    const std::vector<double> want = wide[i].detach().to_vector(), got = narrow[i].detach().to_vector();
    double size = 1;
    for (const double v : want) size = std::max(size, std::abs(v));
    for (size_t e = 0; e < want.size(); ++e) {
      INFO("gradient " << i << ", element " << e << ": " << want[e] << " in float64, " << got[e]);
      CHECK(std::abs(want[e] - got[e]) <= 2e-4 * size);
    }
  }
}

void check_dtypes(const Row& row, const Tensors& x, std::set<std::string_view>& covered) {
  const Orders wide = check_traced(row, x, covered);
  for (const rg::ScalarType dtype : row.dtypes) {
    INFO("in " << rg::name(dtype));
    Tensors inputs;
    for (const Tensor& t : x) inputs.push_back(cast(t, dtype));
    const Orders narrow = check_traced(row, inputs, covered);
    if (dtype != rg::kFloat32) continue;
    check_near(wide.first, narrow.first);
    check_near(wide.second, narrow.second);
  }
}

void check_case(const Row& row, const Tensors& x, bool transposed_cotangents,
                std::set<std::string_view>& covered) {
  // Tighter than the defaults: the functions of the table have no large third derivatives where they are
  // taken.
  ag::GradcheckOptions options{
      .eps = row.eps, .atol = 1e-8, .rtol = 1e-7, .dot_rtol = row.dot_rtol, .raise = false};
  const ag::GradcheckResult first = ag::gradcheck(row.f, x, options);
  INFO(first.failure);
  CHECK(first.passed);
  options.non_contiguous_cotangents = transposed_cotangents;
  const ag::GradcheckResult second = ag::gradgradcheck(row.f, x, {}, options);
  INFO(second.failure);
  CHECK(second.passed);
  check_dtypes(row, x, covered);
}

}  // namespace

void check_row(const Row& row, std::set<std::string_view>& covered) {
  for (size_t i = 0; i < row.cases.size(); ++i) {
    std::string inputs;
    for (const Tensor& t : row.cases[i]) inputs += " " + rg::describe(t);
    INFO(row.name << ", case " << i << ":" << inputs);
    try {
      check_case(row, row.cases[i], i % 2 == 1, covered);
    } catch (const rg::Exception& e) {
      FAIL_CHECK(e.what());
    }
  }
}

}  // namespace derivatives
