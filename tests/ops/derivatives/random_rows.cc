// Ops that draw random numbers, the same ones at each call here: dropouts, also in place, and draws that do not depend
// smoothly on their parameters, whose derivatives are zeros.
#include "ops/random_ops.h"

#include "engine/random.h"
#include "ops/arithmetic.h"
#include "ops/dropout.h"
#include "ops/shape_ops.h"
#include "tests/ops/derivatives/table.h"

namespace derivatives {
namespace rg = retrograd;

namespace {

/// A row of a function that starts at one place of the random stream.
template <class F>
Row seeded(std::string name, F f, std::vector<Tensors> cases) {
  return row(
      std::move(name),
      [f](const Tensors& x) {
        rg::manual_seed(7);
        return f(x);
      },
      std::move(cases));
}

/// The values of a draw have no derivative; its record defines what counts as one. So the values are dropped.
template <class F>
Row drawn(std::string name, F f, std::vector<Tensors> cases) {
  const auto without_values = [f](const Tensors& x) {
    const Tensor y = f(x);
    return y - y.detach();
  };
  return seeded(std::move(name), without_values, std::move(cases));
}

void add_dropouts(Rows& rows) {
  const std::vector<Tensors> channels = {
      {real({3, 4})}, {transposed({2, 3, 4})}, {expanded({2, 2, 3})}, {strided({2, 3, 2})}, {real({0, 2})}};
  rows.push_back(seeded(
      "dropout", [](const Tensors& x) { return rg::dropout(x[0], 0.4); }, unary_cases()));
  rows.push_back(seeded("dropout of everything", [](const Tensors& x) { return rg::dropout(x[0], 1); },
                        {{real({2, 3})}}));
  rows.push_back(seeded(
      "feature_dropout", [](const Tensors& x) { return rg::feature_dropout(x[0], 0.4); }, channels));
  rows.push_back(seeded("dropout1d", [](const Tensors& x) { return rg::dropout1d(x[0], 0.4); },
                        {{real({4, 3})}, {transposed({2, 3, 2})}}));
  rows.push_back(seeded("dropout2d", [](const Tensors& x) { return rg::dropout2d(x[0], 0.4); },
                        {{real({2, 3, 2, 2})}, {transposed({3, 2, 2})}}));
  rows.push_back(seeded("dropout3d", [](const Tensors& x) { return rg::dropout3d(x[0], 0.4); },
                        {{real({2, 2, 2, 1, 2})}, {transposed({4, 2, 1, 2})}}));
  rows.push_back(seeded(
      "alpha_dropout", [](const Tensors& x) { return rg::alpha_dropout(x[0], 0.4); }, unary_cases()));
  rows.push_back(seeded(
      "feature_alpha_dropout", [](const Tensors& x) { return rg::feature_alpha_dropout(x[0], 0.4); },
      channels));
}

void add_in_place(Rows& rows) {
  const auto add = [&](const std::string& name, auto change) {
    rows.push_back(seeded(name,
                          [change](const Tensors& x) {
                            const Tensor y = x[0] * x[0];
                            change(y);
                            return y * x[0];
                          },
                          {{real({3, 4})}, {transposed({2, 3, 2})}, {real({0, 2})}}));
  };
  add("dropout_", [](const Tensor& y) { rg::dropout_(y, 0.4); });
  add("feature_dropout_", [](const Tensor& y) { rg::feature_dropout_(y, 0.4); });
  add("alpha_dropout_", [](const Tensor& y) { rg::alpha_dropout_(y, 0.4); });
  add("feature_alpha_dropout_", [](const Tensor& y) { rg::feature_alpha_dropout_(y, 0.4); });
  add("bernoulli_", [](const Tensor& y) { y.bernoulli_(0.4); });
  add("normal_", [](const Tensor& y) { y.normal_(0.5, 2); });
  rows.back().dtypes = {rg::kFloat16, rg::kBFloat16};  // float64 has numbers of its own
}

void add_draws(Rows& rows) {
  rows.push_back(drawn(
      "bernoulli", [](const Tensors& x) { return rg::bernoulli(x[0]); }, unary_cases({0.1, 0.9})));
  rows.push_back(drawn(
      "normal", [](const Tensors& x) { return rg::normal(x[0], x[1]); }, binary_cases({}, {0.1, 2})));
  rows.push_back(drawn(
      "normal with one deviation", [](const Tensors& x) { return rg::normal(x[0], 0.5); }, unary_cases()));
  rows.push_back(drawn(
      "normal with one mean", [](const Tensors& x) { return rg::normal(0.5, x[0]); }, unary_cases({0.1, 2})));
}

}  // namespace

Rows random_rows() {
  Rows rows;
  add_dropouts(rows);
  add_in_place(rows);
  add_draws(rows);
  return rows;
}

}  // namespace derivatives
