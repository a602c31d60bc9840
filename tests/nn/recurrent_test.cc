// Recurrent layers: PyTorch's numbers for all three with layers, directions, projections; formulas of one step against
// plain loops; parameters; continued states; sequences without a batch or of different lengths; gradients of both
// orders, traced; recordings of functions of any length; errors.
//
// Not tested here: the ops that the layers are made of (tests/ops), learning (tests/examples).
#include <catch2/catch.hpp>

#include <cmath>
#include <functional>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using rg::Category;
using rg::Tensor;

namespace {

constexpr int64_t kIn = 3, kHidden = 4, kLength = 5, kBatch = 2;

Tensor filled(const rg::IntArray& shape, const std::function<double(double)>& f) {
  std::vector<double> values;
  int64_t n = 1;
  for (int64_t size : shape) n *= size;
  for (int64_t i = 0; i < n; ++i) values.push_back(f(static_cast<double>(i)));
  return rg::tensor(values, rg::Shape(shape));
}

// Parameter number j is 0.5 sin(0.7 i + j).
void fill(const nn::Module& m) {
  rg::NoGradGuard no_grad;
  int j = 0;
  for (const Tensor& p : m.parameters()) {
    p.copy_(filled(p.sizes(), [j](double i) { return 0.5 * std::sin(0.7 * i + j); }));
    ++j;
  }
}

Tensor input() {
  return filled({kBatch, kLength, kIn}, [](double i) { return std::cos(0.3 * i); });
}

double sum_by(const Tensor& x, const std::function<double(double)>& weight) {
  double sum = 0, i = 0;
  for (double v : x.to_vector()) sum += v * weight(i++);
  return sum;
}
double mark(const Tensor& x) {
  return sum_by(x, [](double i) { return std::cos(0.5 * i); });
}

// The output, and the tensors of the last state.
rg::Tensors all_of(const nn::LSTM::Output& o) { return {o.output, o.state.h, o.state.c}; }
template <class Output>
rg::Tensors all_of(const Output& o) {
  return {o.output, o.h_n};
}

Tensor loss_of(const rg::Tensors& all) {
  Tensor loss;
  for (const Tensor& t : all) {
    const auto f =
        loss.defined() ? [](double i) { return std::cos(i); } : [](double i) { return std::sin(i); };
    const Tensor part = rg::sum(t * filled(t.sizes(), f));
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

// `values`: the loss, marks of output, state and gradient of the input. `gradients`: marks of the parameters'.
template <class Layer>
void check_numbers(const Layer& layer, const Tensor& data, const std::vector<double>& values,
                   const std::vector<double>& gradients) {
  fill(layer);
  const Tensor x = data.clone().requires_grad_();
  const rg::Tensors all = all_of(layer(x));
  const Tensor loss = loss_of(all);
  loss.backward();
  std::vector<double> got{loss.item<double>()};
  for (const Tensor& t : all) got.push_back(mark(t.detach()));
  got.push_back(mark(x.grad()));
  REQUIRE(got.size() == values.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(values[i]).margin(2e-5));
  const rg::Tensors parameters = layer.parameters();
  REQUIRE(parameters.size() == gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    INFO("parameter " << i);
    CHECK(mark(parameters[i].grad()) == Approx(gradients[i]).margin(2e-5));
  }
}

bool close(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && rg::max(rg::abs(a - b)).item<double>() < 1e-6;
}

template <class F>
Category category_of(F&& f) {
  try {
    f();
  } catch (const rg::Error& e) {
    CHECK(std::string(e.what()).find("recurrent_test.cc") != std::string::npos);
    return e.category();
  }
  FAIL("no Error was thrown");
  return {};
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Rows of W x + b + U h + c for one gate, of plain vectors.
struct Reference {
  const nn::Recurrent::Weights& w;
  std::vector<double> x, h;

  double from(const Tensor& weight, const Tensor& bias, const std::vector<double>& v, int64_t row) const {
    double sum = bias.defined() ? bias.to_vector()[static_cast<size_t>(row)] : 0;
    const std::vector<double> all = weight.to_vector();
    for (size_t k = 0; k < v.size(); ++k) sum += all[static_cast<size_t>(row) * v.size() + k] * v[k];
    return sum;
  }
  double input(int64_t gate, int64_t i) const { return from(w.weight_ih, w.bias_ih, x, gate * kHidden + i); }
  double state(int64_t gate, int64_t i) const { return from(w.weight_hh, w.bias_hh, h, gate * kHidden + i); }
  double both(int64_t gate, int64_t i) const { return input(gate, i) + state(gate, i); }
};

}  // namespace

TEST_CASE("numbers of PyTorch: RNN") {
  const nn::RNN deep(nullptr, "", kIn, kHidden,
                     {.num_layers = 2, .batch_first = true, .bidirectional = true});
  check_numbers(deep, input(), {3.265051, -0.404221, 3.352572, 1.101873},
                {2.869937, -2.223848, -1.625149, -1.625149, -1.783764, 0.692112, 2.451699, 2.451700,
                 -1.122474, -1.514780, -0.743658, -0.743658, 2.416939, 0.049072, -0.983930, -0.983930});
  const nn::RNN relu(nullptr, "", kIn, kHidden, {.nonlinearity = "relu"});  // two steps of a batch of five
  check_numbers(relu, input(), {0.733711, 0.877868, 0.542715, 4.923086},
                {3.830997, 0.587913, -0.953641, -0.953641});
}

TEST_CASE("numbers of PyTorch: LSTM") {
  const nn::LSTM deep(nullptr, "", kIn, kHidden,
                      {.num_layers = 2, .batch_first = true, .bidirectional = true});
  check_numbers(deep, input(), {-1.530723, -0.546513, 1.442172, 4.295543, 0.898126},
                {-1.575694, 0.211876, 0.158191, 0.158191, 0.763357, 0.146410, -1.550937, -1.550937, 0.192056,
                 0.345917, 0.709677, 0.709677, 0.164622, 0.034541, 1.365199, 1.365199});
  const nn::LSTM projected(nullptr, "", kIn, kHidden, {.num_layers = 2, .proj_size = 2});
  check_numbers(projected, input(), {0.880251, -0.058757, -0.116021, 1.923604, -0.321062},
                {0.459353, 0.033589, -0.146376, -0.146376, 0.088387, -0.013613, 0.007289, -0.243181,
                 -0.243181, -0.764572});
}

TEST_CASE("numbers of PyTorch: GRU") {
  const nn::GRU deep(nullptr, "", kIn, kHidden,
                     {.num_layers = 2, .batch_first = true, .bidirectional = true});
  check_numbers(deep, input(), {-1.498718, 0.125564, 2.275868, 0.023212},
                {-0.250631, 0.258601, 0.213297, -0.116736, -1.533779, 0.042266, -1.731931, -1.063530,
                 -0.095590, -0.043700, -0.064425, 0.004407, 0.455956, 0.127170, 1.334138, 0.490235});
  const nn::GRU plain(nullptr, "", kIn, kHidden, {.bias = false});
  check_numbers(plain, input(), {0.348394, 0.418616, -0.069710, 1.992297}, {1.704276, 0.054180});
}

TEST_CASE("a step is what the formulas say") {
  const nn::RNN rnn(nullptr, "", kIn, kHidden);
  const nn::LSTM lstm(nullptr, "", kIn, kHidden);
  const nn::GRU gru(nullptr, "", kIn, kHidden);
  const Tensor x = rg::randn({1, kIn}), h = rg::randn({1, kHidden}), c = rg::randn({1, kHidden});
  const auto at = [](const Tensor& t, int64_t i) { return Approx(t.to_vector()[static_cast<size_t>(i)]); };
  for (int64_t i = 0; i < kHidden; ++i) {
    const double before = h.to_vector()[static_cast<size_t>(i)];
    const Reference a{rnn.weights(0), x.to_vector(), h.to_vector()};
    CHECK(std::tanh(a.both(0, i)) == at(rnn(x, h).output, i));
    const Reference b{lstm.weights(0), x.to_vector(), h.to_vector()};
    const double kept = sigmoid(b.both(1, i)) * c.to_vector()[static_cast<size_t>(i)] +
                        sigmoid(b.both(0, i)) * std::tanh(b.both(2, i));
    const nn::LSTM::Output out = lstm(x, {h, c});
    CHECK(kept == at(out.state.c, i));
    CHECK(sigmoid(b.both(3, i)) * std::tanh(kept) == at(out.output, i));
    const Reference g{gru.weights(0), x.to_vector(), h.to_vector()};
    const double z = sigmoid(g.both(1, i));
    const double n = std::tanh(g.input(2, i) + sigmoid(g.both(0, i)) * g.state(2, i));
    CHECK((1 - z) * n + z * before == at(gru(x, h).output, i));
  }
}

TEST_CASE("parameters have PyTorch's names, shapes, order and range") {
  const nn::LSTM lstm(nullptr, "", kIn, kHidden, {.num_layers = 2, .bidirectional = true, .proj_size = 2});
  std::vector<std::string> got;
  for (const auto& p : lstm.named_parameters()) {
    std::string text = p.key();
    for (int64_t size : p.value().sizes()) text += " " + std::to_string(size);
    got.push_back(text);
    for (double v : p.value().to_vector()) CHECK(std::fabs(v) <= 0.5);
    CHECK(p.value().requires_grad());
  }
  std::vector<std::string> wanted;
  for (const char* layer : {"_l0", "_l0_reverse", "_l1", "_l1_reverse"}) {
    const std::string in = std::string(layer).substr(0, 3) == "_l0" ? "3" : "4";
    for (const std::string& p :
         {"weight_ih" + std::string(layer) + " 16 " + in, "weight_hh" + std::string(layer) + " 16 2",
          "bias_ih" + std::string(layer) + " 16", "bias_hh" + std::string(layer) + " 16",
          "weight_hr" + std::string(layer) + " 2 4"})
      wanted.push_back(p);
  }
  CHECK(got == wanted);
  CHECK(lstm.weights(1, true).weight_hr.is_same(lstm.parameters().back()));
  CHECK(nn::GRU(nullptr, "", kIn, kHidden, {.bias = false}).parameters().size() == 2);
}

TEST_CASE("a sequence may be cut: the state goes on") {
  const auto check = [](const auto& layer) {
    const Tensor x = input();
    const auto whole = layer(x);
    const auto [first, state] = layer(x.narrow(1, 0, 2));
    const auto rest = layer(x.narrow(1, 2, kLength - 2), state);
    const rg::Tensors a = all_of(whole), b = all_of(rest);
    CHECK(close(rg::cat({first, b[0]}, 1), a[0]));
    for (size_t k = 1; k < a.size(); ++k) CHECK(close(a[k], b[k]));
  };
  check(nn::RNN(nullptr, "", kIn, kHidden, {.num_layers = 2, .batch_first = true}));
  check(nn::LSTM(nullptr, "", kIn, kHidden, {.num_layers = 2, .batch_first = true}));
  check(nn::GRU(nullptr, "", kIn, kHidden, {.num_layers = 2, .batch_first = true}));
}

TEST_CASE("a sequence without a batch is one of a batch") {
  const nn::LSTM lstm(nullptr, "", kIn, kHidden,
                      {.num_layers = 2, .batch_first = true, .bidirectional = true});
  const rg::Tensors batch = all_of(lstm(input())), one = all_of(lstm(input().select(0, 1)));
  CHECK(one[0].sizes() == rg::IntArray{kLength, 2 * kHidden});
  CHECK(one[1].sizes() == rg::IntArray{4, kHidden});
  CHECK(close(one[0], batch[0].select(0, 1)));
  for (size_t k = 1; k < 3; ++k) CHECK(close(one[k], batch[k].select(1, 1)));
}

TEST_CASE("dropout acts between layers, in training alone") {
  nn::GRU gru(nullptr, "", kIn, kHidden, {.num_layers = 2, .dropout = 0.5});
  const auto sum = [&] { return rg::sum(gru(input()).output).item<double>(); };
  CHECK(sum() != sum());
  gru.eval();
  CHECK(sum() == sum());
  nn::GRU single(nullptr, "", kIn, kHidden, {.dropout = 0.5});
  CHECK(rg::sum(single(input()).output).item<double>() == rg::sum(single(input()).output).item<double>());
}

TEST_CASE("traced gradients are those of the eager backward, for batches of any size") {
  const nn::LSTM lstm(nullptr, "", kIn, kHidden, {.bidirectional = true});
  rg::CompiledBackward traced = rg::compile_backward();
  for (int64_t batch : {7, 9, 11}) {
    const Tensor x = rg::randn({kLength, batch, kIn});
    std::vector<std::vector<double>> eager;
    loss_of(all_of(lstm(x))).backward();
    for (const Tensor& p : lstm.parameters()) {
      eager.push_back(p.grad().to_vector());
      p.set_grad({});
    }
    traced(loss_of(all_of(lstm(x))));
    for (size_t i = 0; i < eager.size(); ++i) {
      CHECK(lstm.parameters()[i].grad().to_vector() == eager[i]);
      lstm.parameters()[i].set_grad({});
    }
  }
  CHECK(traced.stats().captures == 1);
}

TEST_CASE("second derivatives") {
  const nn::GRU gru(nullptr, "", 2, 2, {.num_layers = 2});
  const Tensor x = rg::randn({3, 1, 2}).requires_grad_();
  const auto slope = [&](const Tensor& at) {
    return rg::sum(rg::square(rg::autograd::grad({rg::sum(gru(at).output)}, {at}, {}, true, true)[0]));
  };
  const Tensor second = rg::autograd::grad({slope(x)}, {x})[0];
  const double h = 1e-2;
  for (int64_t i = 0; i < 6; ++i) {
    const Tensor step = filled({3, 1, 2}, [i, h](double k) { return static_cast<int64_t>(k) == i ? h : 0; });
    const double up = slope((x.detach() + step).requires_grad_()).item<double>(),
                 down = slope((x.detach() - step).requires_grad_()).item<double>();
    CHECK(second.to_vector()[static_cast<size_t>(i)] == Approx((up - down) / (2 * h)).margin(2e-3));
  }
}

namespace {

// Sequences of different lengths, each alone, against the batch of them. `all`: output and states.
template <class Layer>
void check_packed(const Layer& layer, bool with_state) {
  const std::vector<int64_t> lengths{3, 5, 1};
  rg::Tensors sequences, alone;
  for (int64_t n : lengths) sequences.push_back(rg::randn({n, kIn}).requires_grad_());
  const auto packed = nn::utils::rnn::pack_sequence(sequences);
  rg::Tensors state;
  for (const Tensor& s : all_of(layer(input().narrow(1, 0, 1).select(1, 0))))
    if (with_state) state.push_back(rg::randn({s.size(0), 3, s.size(-1)}).requires_grad_());
  const auto run = [&](auto&& forward) {
    if constexpr (std::is_same_v<Layer, nn::LSTM>)
      return forward(state.empty() ? nn::LSTM::State{} : nn::LSTM::State{state[1], state[2]});
    else
      return forward(state.empty() ? Tensor() : state[1]);
  };
  const auto of_sequence = [](const auto& s, int64_t i) {
    if constexpr (std::is_same_v<Layer, nn::LSTM>)
      return s.h.defined() ? nn::LSTM::State{s.h.select(1, i), s.c.select(1, i)} : s;
    else
      return s.defined() ? s.select(1, i) : s;
  };
  const auto states_of = [](const auto& out) {
    if constexpr (std::is_same_v<Layer, nn::LSTM>)
      return rg::Tensors{out.state.h, out.state.c};
    else
      return rg::Tensors{out.h_n};
  };
  const auto batch = run([&](const auto& s) { return layer.forward_with_packed_input(packed, s); });
  const auto [padded, same_lengths] = nn::utils::rnn::pad_packed_sequence(batch.output, true);
  CHECK(same_lengths.to_vector() == std::vector<double>{3, 5, 1});
  CHECK(padded.sizes()[1] == 5);
  Tensor whole, parts;
  const auto add = [](Tensor& sum, const Tensor& t) {
    const Tensor part = rg::sum(rg::square(t));
    sum = sum.defined() ? sum + part : part;
  };
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto n = static_cast<int64_t>(i);
    const auto one = run([&](const auto& s) { return layer(sequences[i], of_sequence(s, n)); });
    const Tensor mine = padded.select(0, n);
    CHECK(close(mine.narrow(0, 0, lengths[i]), one.output));
    CHECK(mine.narrow(0, lengths[i], 5 - lengths[i]).to_vector() ==
          std::vector<double>(static_cast<size_t>((5 - lengths[i]) * one.output.size(-1))));
    const rg::Tensors a = states_of(batch), b = states_of(one);
    for (size_t k = 0; k < a.size(); ++k) CHECK(close(a[k].select(1, n), b[k]));
    add(parts, one.output);
    for (const Tensor& s : b) add(parts, s);
  }
  add(whole, padded);
  for (const Tensor& s : states_of(batch)) add(whole, s);
  rg::Tensors inputs = sequences;
  for (const Tensor& p : layer.parameters()) inputs.push_back(p);
  if (with_state) inputs.insert(inputs.end(), state.begin() + 1, state.end());
  const rg::Tensors a = rg::autograd::grad({whole}, inputs), b = rg::autograd::grad({parts}, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) CHECK(rg::max(rg::abs(a[i] - b[i])).item<double>() < 1e-5);
}

}  // namespace

TEST_CASE("sequences of different lengths are those of each alone") {
  for (bool with_state : {false, true}) {
    check_packed(nn::RNN(nullptr, "", kIn, kHidden, {.nonlinearity = "relu", .bidirectional = true}),
                 with_state);
    check_packed(nn::LSTM(nullptr, "", kIn, kHidden, {.num_layers = 2, .bidirectional = true}), with_state);
    check_packed(nn::LSTM(nullptr, "", kIn, kHidden, {.bidirectional = true, .proj_size = 2}), with_state);
    check_packed(nn::GRU(nullptr, "", kIn, kHidden, {.num_layers = 2, .bidirectional = true}), with_state);
  }
}

TEST_CASE("padding is neither read nor differentiated, and an empty sequence keeps its state") {
  const nn::LSTM lstm(nullptr, "", kIn, kHidden, {.bidirectional = true, .proj_size = 2});
  const Tensor x = rg::randn({4, 2, kIn});
  {
    rg::NoGradGuard no_grad;
    x.narrow(0, 2, 2).select(1, 0).fill_(std::nan(""));
    x.select(1, 1).fill_(std::nan(""));
  }
  x.requires_grad_();
  const nn::LSTM::State state{rg::randn({2, 2, 2}), rg::randn({2, 2, kHidden})};
  const Tensor lengths = rg::tensor(std::vector<int64_t>{2, 0}, {2}, {rg::kInt64});
  const auto out = lstm.forward_with_packed_input(nn::utils::rnn::pack_padded_sequence(x, lengths), state);
  CHECK(out.state.h.select(1, 1).to_vector() == state.h.select(1, 1).to_vector());
  CHECK(out.state.c.select(1, 1).to_vector() == state.c.select(1, 1).to_vector());
  rg::sum(out.output.padded()).backward();
  for (const Tensor& p : lstm.parameters())
    for (double g : p.grad().to_vector()) CHECK(std::isfinite(g));
  CHECK(x.grad().select(1, 1).to_vector() == std::vector<double>(4 * kIn));
}

TEST_CASE("packed sequences are padded, cut and checked") {
  using namespace nn::utils::rnn;
  const rg::Tensors sequences{rg::tensor({1.0, 2.0}), rg::tensor({3.0}), rg::tensor({4.0, 5.0, 6.0})};
  CHECK(pad_sequence(sequences, true, -1).to_vector() == std::vector<double>{1, 2, -1, 3, -1, -1, 4, 5, 6});
  const PackedSequence packed = pack_sequence(sequences);
  CHECK(packed.padded().to_vector() == std::vector<double>{1, 3, 4, 2, 0, 5, 0, 0, 6});
  CHECK(pad_packed_sequence(packed, true, 9, 4).first.to_vector() ==
        std::vector<double>{1, 2, 9, 9, 3, 9, 9, 9, 4, 5, 6, 9});
  const rg::Tensors back = unpack_sequence(packed);
  for (size_t i = 0; i < sequences.size(); ++i) CHECK(back[i].to_vector() == sequences[i].to_vector());
  const Tensor x = rg::zeros({2, 3, kIn});
  const auto lengths = [](std::vector<int64_t> all) {
    return rg::tensor(all, {std::ssize(all)}, {rg::kInt64});
  };
  CHECK(category_of([&] { pack_padded_sequence(x, lengths({1, 2})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { pack_padded_sequence(x, rg::zeros({3})); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { pack_padded_sequence(x.select(0, 0).select(0, 0), lengths({1})); }) ==
        Category::bad_dim);
  CHECK(category_of([&] { pad_packed_sequence(packed, true, 0, 2); }) == Category::bad_argument);
  CHECK(category_of([] { pack_sequence({}); }) == Category::bad_argument);
  const nn::GRU gru(nullptr, "", kIn, kHidden);
  for (int64_t length : {-1, 3})
    CHECK(category_of([&] {
            gru.forward_with_packed_input(pack_padded_sequence(x, lengths({1, length, 2})));
          }) == Category::index_out_of_range);
}

TEST_CASE("one recording serves sequences of any length and batch") {
  const nn::LSTM lstm(nullptr, "", kIn, kHidden, {.num_layers = 2, .bidirectional = true});
  const auto loss = [&](const Tensor& x, const Tensor& lengths) {
    const auto packed = nn::utils::rnn::pack_padded_sequence(x, lengths);
    const auto out = lstm.forward_with_packed_input(packed);
    return rg::sum(rg::square(out.output.padded())) + rg::sum(out.state.c);
  };
  auto compiled = rg::compile(loss);
  for (int64_t n : {4, 7, 3, 9, 5}) {
    const Tensor x = rg::randn({n, n + 1, kIn});
    std::vector<int64_t> each;
    for (int64_t i = 0; i <= n; ++i) each.push_back(i % (n + 1));
    const Tensor lengths = rg::tensor(each, {n + 1}, {rg::kInt64});
    const rg::Tensors parameters = lstm.parameters();
    const Tensor a = loss(x, lengths), b = compiled(x, lengths);
    CHECK(a.item<double>() == b.item<double>());
    const rg::Tensors wanted = rg::autograd::grad({a}, parameters), got = rg::autograd::grad({b}, parameters);
    for (size_t i = 0; i < wanted.size(); ++i) CHECK(wanted[i].to_vector() == got[i].to_vector());
  }
  CHECK(compiled.stats().captures == 2);  // with fixed sizes, then with symbols
}

TEST_CASE("16-bit layers are computed in float32") {
  nn::GRU gru(nullptr, "", kIn, kHidden);
  const Tensor x = rg::randn({3, 2, kIn});
  const Tensor wide = gru(x).output;
  gru.to(rg::kBFloat16);
  const Tensor narrow = gru(x.to(rg::kBFloat16)).output;
  CHECK(narrow.dtype() == rg::kBFloat16);
  CHECK(rg::max(rg::abs(wide - narrow.to(rg::kFloat32))).item<double>() < 0.03);
  CHECK(category_of([&] { gru(x); }) == Category::dtype_mismatch);
}

TEST_CASE("what a layer cannot do is refused at the caller's line") {
  const nn::LSTM lstm(nullptr, "", kIn, kHidden);
  CHECK(category_of([&] { lstm(rg::zeros({3})); }) == Category::bad_dim);
  CHECK(category_of([&] { lstm(rg::zeros({2, 3, 4})); }) == Category::shape_mismatch);
  CHECK(category_of([&] { lstm(rg::zeros({0, 2, kIn})); }) == Category::bad_argument);
  const Tensor x = rg::zeros({2, 2, kIn}), state = rg::zeros({1, 2, kHidden});
  CHECK(category_of([&] { lstm(x, {state, {}}); }) == Category::bad_argument);
  CHECK(category_of([&] { lstm(x, {state, rg::zeros({1, 2, 5})}); }) == Category::shape_mismatch);
  CHECK(category_of([&] { lstm(x, {state.select(0, 0), state}); }) == Category::shape_mismatch);
  CHECK(category_of([] { nn::RNN(nullptr, "", 3, 4, {.nonlinearity = "sine"}); }) == Category::bad_argument);
  CHECK(category_of([] { nn::GRU(nullptr, "", 3, 0); }) == Category::bad_argument);
  CHECK(category_of([] { nn::GRU(nullptr, "", 3, 4, {.num_layers = 0}); }) == Category::bad_argument);
  CHECK(category_of([] { nn::GRU(nullptr, "", 3, 4, {.dropout = 1.5}); }) == Category::bad_argument);
  CHECK(category_of([] { nn::LSTM(nullptr, "", 3, 4, {.proj_size = 4}); }) == Category::bad_argument);
}
