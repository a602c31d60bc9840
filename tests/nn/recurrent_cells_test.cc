// Recurrent cells: a cell in a loop is its layer, initial values, errors.
//
// Not tested here: PyTorch's numbers (attention_numbers_test.cc), the ops (tests/ops).
#include <catch2/catch.hpp>

#include <cmath>
#include <sstream>

#include "retrograd/retrograd.h"
#include "tests/errors.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using rg::Category;
using rg::Tensor;

namespace {

constexpr int64_t kIn = 3, kHidden = 4, kLength = 5, kBatch = 2;

Tensor hidden(const Tensor& h) { return h; }
Tensor hidden(const nn::LSTM::State& state) { return state.h; }

// The cell with the layer's parameters, step by step.
template <class Layer, class Cell, class State>
void check(const Layer& layer, const Cell& cell, State state) {
  {
    const rg::NoGradGuard no_grad;
    for (size_t i = 0; i < 4; ++i) cell.parameters()[i].copy_(layer.parameters()[i]);
  }
  const Tensor x = rg::randn({kLength, kBatch, kIn});
  rg::Tensors steps;
  for (int64_t t = 0; t < kLength; ++t) {
    state = cell(x.select(0, t), state);
    steps.push_back(hidden(state));
  }
  const Tensor looped = rg::stack(steps), whole = layer(x).output;
  CHECK(rg::max(rg::abs(looped - whole)).template item<double>() < 1e-6);
  const auto a = rg::autograd::grad({rg::sum(rg::square(looped))}, cell.parameters()),
             b = rg::autograd::grad({rg::sum(rg::square(whole))}, layer.parameters());
  for (size_t i = 0; i < a.size(); ++i) CHECK(rg::max(rg::abs(a[i] - b[i])).template item<double>() < 1e-5);
}

TEST_CASE("a cell in a loop is its layer") {
  check(nn::RNN(nullptr, "", kIn, kHidden), nn::RNNCell(nullptr, "", kIn, kHidden), Tensor());
  check(nn::RNN(nullptr, "", kIn, kHidden, {.nonlinearity = "relu"}),
        nn::RNNCell(nullptr, "", kIn, kHidden, {.nonlinearity = "relu"}), Tensor());
  check(nn::LSTM(nullptr, "", kIn, kHidden), nn::LSTMCell(nullptr, "", kIn, kHidden), nn::LSTM::State());
  check(nn::GRU(nullptr, "", kIn, kHidden), nn::GRUCell(nullptr, "", kIn, kHidden), Tensor());
}

TEST_CASE("parameters have PyTorch's names, shapes and range") {
  const nn::LSTMCell cell(nullptr, "", 30, 100);
  CHECK(cell.weight_ih.sizes() == rg::IntArray{400, 30});
  CHECK(cell.weight_hh.sizes() == rg::IntArray{400, 100});
  CHECK(cell.bias_ih.sizes() == rg::IntArray{400});
  for (const Tensor& p : cell.parameters()) {
    const double largest = rg::max(rg::abs(p.detach())).item<double>();
    CHECK(largest <= 0.1);
    CHECK(largest > 0.095);
  }
  CHECK(nn::GRUCell(nullptr, "", kIn, kHidden, {.bias = false}).parameters().size() == 2);
}

TEST_CASE("cells print as in PyTorch") {
  const auto text_of = [](const nn::Module& module) {
    std::ostringstream out;
    out << module;
    return out.str();
  };
  CHECK(text_of(nn::RNNCell(nullptr, "", 3, 4, {.nonlinearity = "relu"})) ==
        "RNNCell(3, 4, nonlinearity=relu)");
  CHECK(text_of(nn::GRUCell(nullptr, "", 3, 4, {.bias = false})) == "GRUCell(3, 4, bias=false)");
}

TEST_CASE("a cell of 16 bits is near float32") {
  nn::GRUCell cell(nullptr, "", kIn, kHidden);
  const Tensor x = rg::randn({2, kIn});
  const Tensor wide = cell(x);
  cell.to(rg::kBFloat16);
  const Tensor narrow = cell(x.to(rg::kBFloat16));
  CHECK(narrow.dtype() == rg::kBFloat16);
  CHECK(rg::max(rg::abs(wide - narrow.to(rg::kFloat32))).item<double>() < 0.03);
}

TEST_CASE("one recording serves all batches") {
  const nn::LSTMCell cell(nullptr, "", kIn, kHidden);
  auto compiled = rg::compile([&](const Tensor& x) { return cell(x).h; });
  for (int64_t n : {4, 7, 3, 9}) {
    const Tensor x = rg::randn({n, kIn});
    CHECK(compiled(x).to_vector() == cell(x).h.to_vector());
  }
  CHECK(compiled.stats().captures == 2);  // with fixed sizes, then with symbols
}

TEST_CASE("what a cell cannot do is refused at the caller's line") {
  const nn::LSTMCell cell(nullptr, "", kIn, kHidden);
  const Tensor x = rg::zeros({2, kIn}), state = rg::zeros({2, kHidden});
  const auto check = [&](Category category, auto&& call) {
    std::string text;
    CHECK(rg::category_of(call, &text) == category);
    INFO(text);
    CHECK(text.find("recurrent_cells_test.cc") != std::string::npos);
  };
  check(Category::bad_dim, [&] { cell(rg::zeros({2, 2, kIn})); });
  check(Category::shape_mismatch, [&] { cell(rg::zeros({2, 4})); });
  check(Category::bad_argument, [&] { cell(x, {state, {}}); });
  check(Category::shape_mismatch, [&] { cell(x, {state, rg::zeros({3, kHidden})}); });
  check(Category::shape_mismatch, [&] { cell(x.select(0, 0), {state, state}); });
  check(Category::dtype_mismatch, [&] { cell(x.to(rg::kFloat64)); });
  check(Category::bad_argument, [] { nn::RNNCell(nullptr, "", 3, 4, {.nonlinearity = "sine"}); });
  check(Category::bad_argument, [] { nn::GRUCell(nullptr, "", 3, 0); });
}

}  // namespace
