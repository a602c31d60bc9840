// Every op inside of vmap: each row of the table of derivatives (table.h) is mapped over a batch of each operand alone
// and of all together, and gives what a loop over the samples gives. So do its gradients and tangents, taken inside of
// vmap and outside, and vmap of vmap.
#include <catch2/catch.hpp>

#include "autograd/func.h"
#include "engine/random.h"
#include "ops/all_ops.h"
#include "ops/batching.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/reduce.h"
#include "ops/shape_ops.h"
#include "ops/views.h"
#include "tests/ops/derivatives/families.h"
#include "tracer/function/compile.h"

namespace derivatives {
namespace {

namespace rg = retrograd;
namespace ag = retrograd::autograd;

using Function = std::function<Tensors(const Tensors&)>;
using Dims = std::vector<std::optional<int64_t>>;

constexpr int64_t kSamples = 3;

Function seeded(Function f) {
  return [f = std::move(f)](const Tensors& x) {
    rg::manual_seed(7);
    return f(x);
  };
}

/// f over the batch dims of its operands, by vmap and by a loop.
Function mapped(Function f, Dims dims) {
  return [f = std::move(f), dims = std::move(dims)](const Tensors& x) {
    const rg::FunctionBody body = [&](const Tensors& sample) { return rg::CallOutcome{f(sample), {}}; };
    const rg::detail::Mapping mapping{dims, 0, rg::Randomness::same, {}, {}};
    return rg::detail::run_mapped(body, x, std::vector<size_t>(x.size(), 1), mapping, {}).tensors;
  };
}
Function looped(Function f, Dims dims) {
  return [f = std::move(f), dims = std::move(dims)](const Tensors& x) {
    std::vector<Tensors> results;
    for (int64_t k = 0; k < kSamples; ++k) {
      Tensors sample = x;
      for (size_t i = 0; i < x.size(); ++i)
        if (dims[i]) sample[i] = rg::select(x[i], *dims[i], k);
      const Tensors y = f(sample);
      results.resize(y.size());
      for (size_t i = 0; i < y.size(); ++i) results[i].push_back(y[i]);
    }
    Tensors stacked;
    for (const Tensors& r : results) stacked.push_back(rg::stack(r));
    return stacked;
  };
}

Tensor weight(const Tensor& y) {
  std::vector<double> values(static_cast<size_t>(y.numel()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>((i * 7919 + 13) % 1009) / 504.5 - 1;
  return rg::tensor(values, y.impl().shape(), {y.dtype()});
}

/// The gradients of f's results, weighted, by its floating operands; its tangent in a direction.
Function gradient_of(Function f) {
  return [f = std::move(f)](const Tensors& x) {
    Tensors inputs, floating;
    const rg::EnableGradGuard records;
    for (const Tensor& t : x) {
      inputs.push_back(t.is_floating_point() ? rg::alias(t).requires_grad_() : t);
      if (t.is_floating_point()) floating.push_back(inputs.back());
    }
    Tensors roots, weights;
    for (const Tensor& y : f(inputs))
      if (y.requires_grad()) roots.push_back(y), weights.push_back(weight(y));
    if (roots.empty()) return Tensors{};
    return ag::grad(roots, floating, weights, {}, true, true, true);
  };
}
Function tangent_of(Function f) {
  return [f = std::move(f)](const Tensors& x) {
    Tensors directions;
    for (const Tensor& t : x) directions.push_back(t.is_floating_point() ? weight(t) : Tensor());
    const ag::JvpResult result = ag::jvp(f, x, directions);
    Tensors tangents;
    for (size_t i = 0; i < result.outputs.size(); ++i)
      if (result.outputs[i].is_floating_point())
        tangents.push_back(result.tangents[i].defined() ? result.tangents[i]
                                                        : rg::zeros_like(result.outputs[i]));
    return tangents;
  };
}

/// A batch of the operand: samples that differ little, so that they stay where f is defined.
Tensor batch_of(const Tensor& x, int64_t dim) {
  Tensors samples;
  for (int64_t k = 0; k < kSamples; ++k)
    samples.push_back(x.is_floating_point() ? x.detach() * (1 - static_cast<double>(k) / 64) : x.detach());
  return rg::stack(samples, dim);
}

void check_same(const Tensors& got, const Tensors& want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    INFO("result " << i << ": " << rg::to_string(got[i].detach()) << " for "
                   << rg::to_string(want[i].detach()));
    REQUIRE(got[i].impl().type() == want[i].impl().type());
    const std::vector<double> a = got[i].detach().to_vector(), b = want[i].detach().to_vector();
    double size = 1;
    for (const double v : b)
      if (std::isfinite(v)) size = std::max(size, std::abs(v));
    bool same = true;
    for (size_t e = 0; e < b.size(); ++e)
      same &= std::abs(a[e] - b[e]) <= 1e-9 * size || a[e] == b[e] || (std::isnan(a[e]) && std::isnan(b[e]));
    CHECK(same);
  }
}

void check_mapped(const char* what, const Function& f, const Tensors& x, const Dims& dims) {
  INFO(what);
  check_same(mapped(f, dims)(x), looped(f, dims)(x));
}

void check_dims(const Function& f, const Tensors& operands, const Dims& dims) {
  std::string text;
  for (const auto& d : dims) text += d ? " " + std::to_string(*d) : " none";
  INFO("in_dims" << text);
  Tensors x;
  for (size_t i = 0; i < operands.size(); ++i)
    x.push_back(dims[i] ? batch_of(operands[i], *dims[i]) : operands[i].detach());
  check_mapped("the value", f, x, dims);
  check_mapped("the gradient inside", gradient_of(f), x, dims);
  check_mapped("the tangent inside", tangent_of(f), x, dims);
  check_mapped("the gradient of the gradient inside", gradient_of(gradient_of(f)), x, dims);
  {
    INFO("the gradient outside");
    check_same(gradient_of(mapped(f, dims))(x), gradient_of(looped(f, dims))(x));
  }
  {
    INFO("the tangent outside");
    check_same(tangent_of(mapped(f, dims))(x), tangent_of(looped(f, dims))(x));
  }
  {
    INFO("vmap of vmap");
    Tensors twice;
    Dims outer;
    for (size_t i = 0; i < x.size(); ++i) {
      if (dims[i])
        outer.push_back(0);
      else
        outer.push_back(std::nullopt);
      twice.push_back(dims[i] ? batch_of(x[i], 0) : x[i]);
    }
    check_same(mapped(mapped(f, dims), outer)(twice), looped(looped(f, dims), outer)(twice));
  }
}

// as_strided reads memory beside a sample, which a loop over entries of a batch shows in another way.
bool is_of_memory(const Row& row) { return row.name.starts_with("as_strided"); }

void check_case(const Row& row, const Tensors& operands) {
  const Function f = seeded(row.f);
  check_dims(f, operands, Dims(operands.size(), 0));
  if (is_of_memory(row)) return;
  check_dims(f, operands, Dims(operands.size(), -1));
  for (size_t i = 0; operands.size() > 1 && i < operands.size(); ++i) {
    Dims one(operands.size());
    one[i] = 0;
    check_dims(f, operands, one);
  }
}

/// Rows that vmap refuses for some operands, as PyTorch does: they read values, write a batched value into another, or
/// are functions of the user that are differentiated outside.
const std::set<std::string_view> kRefused{"in place",
                                          "in place through views",
                                          "masked_scatter",
                                          "masked_select",
                                          "repeat_interleave by numbers",
                                          "an opaque function",
                                          "a traceable function"};
/// A place in memory that is counted from the first sample: in a loop, another one.
const std::set<std::string_view> kNotComparable{"as_strided from an offset", "as_strided_scatter"};

TEST_CASE("vmap of every op is a loop over the samples") {
  for (const Family& family : kFamilies) SECTION(std::string(family.name)) {
      for (const Row& row : family.rows()) {
        if (kNotComparable.contains(row.name)) continue;
        bool is_refused = false;
        for (size_t i = 0; i < row.cases.size(); ++i) {
          std::string inputs;
          for (const Tensor& t : row.cases[i]) inputs += " " + rg::describe(t);
          INFO(row.name << ", case " << i << ":" << inputs);
          try {
            check_case(row, row.cases[i]);
          } catch (const rg::Exception& e) {
            if (std::string_view(e.what()).find("vmap: ") == std::string_view::npos) FAIL_CHECK(e.what());
            is_refused = true;
          }
        }
        INFO(row.name);
        CHECK(is_refused == kRefused.contains(row.name));
      }
    }
}

/// The call that is recorded, and one that replays the recording.
void check_compiled(const Row& row, const Tensors& operands) {
  const Dims dims(operands.size(), 0);
  Tensors x;
  for (const Tensor& t : operands) x.push_back(batch_of(t, 0));
  const auto check = [&](const char* what, const Function& f) {
    INFO(what << ", compiled");
    const Function all = mapped(f, dims);
    const Tensors want = seeded(all)(x);
    const auto compiled = rg::compile([&](const Tensors& x) { return all(x); });
    for (int call = 0; call < 2; ++call) {
      rg::manual_seed(7);
      check_same(compiled(x), want);
    }
    CHECK(compiled.stats().eager == 0);
  };
  check("the value", row.f);
  check("the gradient inside", gradient_of(row.f));
}

TEST_CASE("compiled, vmap of every op gives what it gives eagerly") {
  for (const Family& family : kFamilies) SECTION(std::string(family.name)) {
      for (const Row& row : family.rows()) {
        if (kRefused.contains(row.name)) continue;
        INFO(row.name);
        check_compiled(row, row.cases.front());
      }
    }
}

TEST_CASE("the ops that vmap calls once for each sample") {
  std::set<std::string_view> names;
  for (const rg::OpInfo* op : rg::ops::all_ops())
    if (!op->batch && op->arity != 0 && !op->is(rg::Trait::bookkeeping) && !op->is(rg::Trait::updates))
      names.insert(op->name);
  CHECK(names == std::set<std::string_view>{"median_of_all", "nanmedian_of_all"});
}

}  // namespace
}  // namespace derivatives
