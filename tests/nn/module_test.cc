// Modules: registration, names, state, training mode; layers: shapes, values against the formulas, initial values, the
// caller's line.
//
// Not tested here: the ops that layers call (tests/ops), learning (tests/examples), agreement of initial values with
// PyTorch's bits (the distributions are, the random numbers are not).
#include <catch2/catch.hpp>

#include <cmath>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using rg::Category;
using rg::Tensor;

namespace {

struct Pair : nn::Module {
  nn::Linear first, second;
  Pair(Module* parent, std::string name, int64_t width)
      : Module(parent, std::move(name)),
        first(this, "first", width, width),
        second(this, "second", width, 2, {.bias = false}) {}
};

struct Net : nn::Module {
  nn::Embedding table{this, "table", 5, 3};
  nn::ModuleList<Pair> pairs{this, "pairs"};
  nn::LayerNorm norm{this, "norm", {3}, {.bias = false}};
  nn::Dropout drop{this, "drop", 0.5};
  Net() {
    pairs.emplace_back(3);
    pairs.emplace_back(3);
  }
};

std::vector<std::string> names(const nn::Module& m) {
  std::vector<std::string> out;
  for (const auto& p : m.named_parameters()) out.push_back(p.key());
  return out;
}

// The category and text of the Error that f throws.
template <class F>
std::pair<Category, std::string> error_of(F&& f) {
  try {
    f();
  } catch (const rg::Error& e) {
    return {e.category(), e.what()};
  }
  FAIL("no Error was thrown");
  return {};
}

std::string here(int line) { return "module_test.cc:" + std::to_string(line); }

double deviation(const Tensor& x) {
  double sum = 0;
  const std::vector<double> values = x.to_vector();
  for (double v : values) sum += v * v;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace

TEST_CASE("members register themselves, in order, under dotted names") {
  const Net net;
  CHECK(names(net) == std::vector<std::string>{"table.weight", "pairs.0.first.weight", "pairs.0.first.bias",
                                               "pairs.0.second.weight", "pairs.1.first.weight",
                                               "pairs.1.first.bias", "pairs.1.second.weight", "norm.weight"});
  CHECK(net.parameters().size() == 8);
  CHECK(net.parameter_count() == 15 + 2 * (9 + 3 + 6) + 3);
  for (const Tensor& p : net.parameters()) CHECK((p.requires_grad() && p.is_leaf()));
  CHECK(net.parameters()[0].is_same(net.table.weight));
}

TEST_CASE("a member's name must be new, not empty, and without a dot") {
  nn::Module root;
  nn::Linear a(&root, "a", 2, 2);
  for (const char* name : {"a", "", "x.y"}) {
    INFO(name);
    CHECK(error_of([&] { nn::ReLU(&root, name); }).first == Category::bad_argument);
  }
}

TEST_CASE("train and eval reach every module") {
  Net net;
  const Tensor x = rg::ones({1000});
  CHECK(net.is_training());
  CHECK(rg::count_nonzero(net.drop(x)).item<int64_t>() < 1000);
  net.eval();
  CHECK_FALSE(net.pairs[1].first.is_training());
  CHECK(rg::count_nonzero(net.drop(x)).item<int64_t>() == 1000);
  net.train();
  CHECK(net.pairs[1].first.is_training());
}

TEST_CASE("zero_grad drops gradients, or fills them with zeros") {
  nn::Linear layer(nullptr, "", 3, 2);
  rg::sum(layer(rg::ones({1, 3}))).backward();
  const Tensor g = layer.weight.grad();
  REQUIRE(g.defined());
  layer.zero_grad(false);
  CHECK(g.to_vector() == std::vector<double>(6, 0));
  CHECK(layer.weight.grad().is_same(g));
  layer.zero_grad();
  CHECK_FALSE(layer.weight.grad().defined());
  CHECK_FALSE(layer.bias.grad().defined());
}

TEST_CASE("a module is where it was after to() the same device, or one that is not there") {
  nn::Linear layer(nullptr, "", 3, 2);
  const void* memory = layer.weight.raw_data();
  layer.to(rg::kCPU);
  CHECK(layer.weight.raw_data() == memory);
  CHECK(error_of([&] { layer.to(rg::Device(rg::kCUDA, 99)); }).first == Category::bad_argument);
  CHECK(layer.weight.device() == rg::kCPU);
  CHECK(layer.weight.raw_data() == memory);
}

TEST_CASE("state_dict shares memory, load_state_dict copies and is all or nothing") {
  Net a, b;
  const rg::StateDict state = a.state_dict();
  CHECK(state.size() == 8);
  CHECK(state.at("norm.weight").raw_data() == a.norm.weight.raw_data());
  CHECK_FALSE(state.at("norm.weight").requires_grad());
  b.load_state_dict(state);
  for (size_t i = 0; i < 8; ++i) CHECK(a.parameters()[i].to_vector() == b.parameters()[i].to_vector());
  CHECK(b.table.weight.raw_data() != a.table.weight.raw_data());

  const std::vector<double> before = b.table.weight.to_vector();
  rg::StateDict changed{{"table.weight", rg::zeros({5, 3})}};
  CHECK(error_of([&] { b.load_state_dict(changed); }).first == Category::bad_argument);
  changed = state;
  changed["table.weight"] = rg::zeros({5, 3});
  changed["norm.weight"] = rg::zeros({4});
  const auto [category, text] = error_of([&] { b.load_state_dict(changed); });
  CHECK(category == Category::shape_mismatch);
  CHECK_THAT(text, Catch::Contains("norm.weight") && Catch::Contains("f32[4]"));
  CHECK(b.table.weight.to_vector() == before);
  changed["norm.weight"] = rg::zeros({3}, {rg::kFloat64});
  changed["other"] = rg::zeros({1});
  CHECK(error_of([&] { b.load_state_dict(changed); }).first == Category::bad_argument);
  b.load_state_dict(changed, false);
  CHECK(b.table.weight.to_vector() == std::vector<double>(15, 0));
  CHECK(b.norm.weight.dtype() == rg::kFloat32);
}

namespace {

// Counts its calls, and keeps a mean of what it saw and the sum of the last call.
struct Watched : nn::Module {
  nn::Parameter weight{this, "weight", rg::ones({2})};
  nn::Buffer mean{this, "mean", rg::zeros({2})};
  nn::Buffer calls{this, "calls", rg::zeros({}, {rg::kInt64})};
  nn::Buffer last{this, "last", rg::zeros({2}), /*persistent=*/false};
  nn::Buffer none{this, "none", Tensor()};

  Tensor forward(const Tensor& x) {
    const Tensor y = x * weight;
    mean = 0.5 * mean + 0.5 * rg::mean(y.detach(), {0});
    calls = calls + 1;
    last = rg::sum(y.detach(), {0});
    return y - mean;
  }
};

std::vector<double> state_of(const Watched& m) {
  std::vector<double> all = m.mean.to_vector();
  for (const Tensor& t : {Tensor(m.calls), Tensor(m.last)})
    for (double v : t.to_vector()) all.push_back(v);
  return all;
}

}  // namespace

TEST_CASE("buffers: part of the module and, if persistent, of its state; not of its parameters") {
  Watched m;
  CHECK(names(m) == std::vector<std::string>{"weight"});
  CHECK(m.named_buffers().size() == 3);
  CHECK(m.buffers()[1].is_same(m.calls));
  CHECK(m.state_dict().size() == 3);
  CHECK_FALSE(m.mean.requires_grad());
  m.forward(rg::ones({3, 2}));
  const rg::StateDict state = m.state_dict();
  Watched other;
  other.load_state_dict(state);
  CHECK(other.mean.to_vector() == std::vector<double>{0.5, 0.5});
  CHECK(other.last.to_vector() == std::vector<double>{0, 0});
  const Tensor handle = m.mean;
  m.to(rg::kFloat64);
  CHECK(handle.dtype() == rg::kFloat64);
  CHECK(m.calls.dtype() == rg::kInt64);
  CHECK(handle.to_vector() == std::vector<double>{0.5, 0.5});
  CHECK_THROWS_AS((nn::Buffer{&m, "weight", rg::ones({1})}), rg::Error);
}

TEST_CASE("a buffer that is assigned stays the same tensor; another shape gives it new memory") {
  Watched m;
  const Tensor handle = m.mean;
  m.mean = rg::full({2}, 3.0);
  CHECK(handle.to_vector() == std::vector<double>{3, 3});
  const Tensor longer = rg::full({3}, 4.0);
  m.mean = longer;
  longer.fill_(5.0);
  CHECK(handle.to_vector() == std::vector<double>{4, 4, 4});
  m.mean = m.last;
  CHECK(handle.to_vector() == std::vector<double>{0, 0});
  const auto category = [&](const Tensor& value) {
    try {
      m.mean = value;
    } catch (const rg::Error& e) {
      return e.category();
    }
    return Category::no_grad_fn;
  };
  CHECK(category(rg::ones({3}).requires_grad_()) == Category::shape_mismatch);
  CHECK(category(Tensor()) == Category::bad_argument);
}

TEST_CASE("recorded functions read and write buffers in each run, also where functional_call replaces them") {
  Watched eager, recorded;
  auto compiled = rg::compile([&](const Tensor& x) { return recorded.forward(x); });
  for (int i = 0; i < 4; ++i) {
    const Tensor x = rg::full({2 + i, 2}, 1.0 + i);
    CHECK(eager.forward(x).to_vector() == compiled(x).to_vector());
    CHECK(state_of(eager) == state_of(recorded));
    eager.mean = rg::full({2}, 0.25 * i), recorded.mean = rg::full({2}, 0.25 * i);
  }
  CHECK(compiled.stats().captures == 2);
  const Tensor x = rg::ones({1, 2}), mean = rg::full({2}, 8.0);
  const std::vector<double> before = recorded.mean.to_vector();
  CHECK(nn::functional_call(recorded, {{"mean", mean}}, x).to_vector() == std::vector<double>{-3.5, -3.5});
  CHECK(mean.to_vector() == std::vector<double>{4.5, 4.5});
  CHECK(recorded.mean.to_vector() == before);
  auto grows = rg::compile([&](const Tensor& t) { return recorded.last = t, t * 2.0; });
  CHECK_THROWS_AS(grows(rg::ones({5})), rg::Error);
}

TEST_CASE("layers compute their formulas") {
  nn::Linear linear(nullptr, "", 2, 3);
  linear.load_state_dict(
      {{"weight", rg::tensor({1.0, 2, 3, 4, 5, 6}, {3, 2})}, {"bias", rg::tensor({0.5, 0, -1})}});
  CHECK(linear(rg::tensor({1.0, -1}, {1, 2})).to_vector() == std::vector<double>{-0.5, -1, -2});

  nn::LayerNorm norm(nullptr, "", {2}, {.eps = 0});
  CHECK(norm(rg::tensor({1.0, 3, 10, 20}, {2, 2})).to_vector() == std::vector<double>{-1, 1, -1, 1});

  nn::Embedding table(nullptr, "", 4, 2);
  const std::vector<double> rows = table.weight.to_vector();
  CHECK(table(rg::tensor({3, 0}, {rg::kInt64})).to_vector() ==
        std::vector<double>{rows[6], rows[7], rows[0], rows[1]});

  nn::ReLU relu;
  CHECK(relu(rg::tensor({-1.0, 2})).to_vector() == std::vector<double>{0, 2});
  nn::GELU gelu(nullptr, "");
  CHECK(gelu(rg::tensor({1.0})).item<double>() == Approx(0.8413447));
}

TEST_CASE("convolution layers: shapes of parameters and results, initial values") {
  rg::manual_seed(5);
  nn::Conv2d conv(nullptr, "", 8, 64, {3, 5}, {.stride = 2, .padding = {1, 2}, .groups = 2});
  CHECK(conv.weight.sizes() == rg::IntArray{64, 4, 3, 5});
  CHECK(conv.bias.sizes() == rg::IntArray{64});
  const double bound = 1 / std::sqrt(4.0 * 3 * 5);
  CHECK(deviation(conv.weight) == Approx(bound / std::sqrt(3.0)).epsilon(0.03));
  CHECK(rg::amax(rg::abs(conv.bias.detach())).item<double>() <= bound * (1 + 1e-6));
  const Tensor x = rg::randn({2, 8, 9, 10});
  CHECK(conv(x).to_vector() == rg::conv2d(x, conv.weight, conv.bias, 2, {1, 2}, 1, 2).to_vector());
  nn::Conv1d same(nullptr, "", 3, 4, 4, {.padding = "same", .dilation = 3, .bias = false});
  CHECK(same(rg::ones({2, 3, 20})).sizes() == rg::IntArray{2, 4, 20});
  CHECK(names(same) == std::vector<std::string>{"weight"});
  nn::ConvTranspose2d up(nullptr, "", 6, 4, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
  CHECK(up.weight.sizes() == rg::IntArray{6, 2, 3, 3});
  CHECK(up(rg::ones({1, 6, 5, 7})).sizes() == rg::IntArray{1, 4, 10, 14});
  CHECK(error_of([] { nn::Conv2d(nullptr, "", 3, 4, 3, {.groups = 2}); }).first == Category::bad_argument);
  CHECK(error_of([] { nn::Conv2d(nullptr, "", 3, 4, {1, 2, 3}); }).first == Category::bad_argument);
  CHECK_THAT(error_of([&] { conv(rg::ones({2, 3})); }).second, Catch::Contains(here(__LINE__)));
}

TEST_CASE("causal attention: a place depends on itself and what is before it") {
  nn::CausalSelfAttention attention(nullptr, "", 8, 2);
  const Tensor x = rg::randn({1, 5, 8});
  const Tensor before = attention(x);
  CHECK(before.sizes() == rg::IntArray{1, 5, 8});
  x.select(1, 3).fill_(2);
  const Tensor after = attention(x);
  CHECK(before.narrow(1, 0, 3).to_vector() == after.narrow(1, 0, 3).to_vector());
  CHECK(before.narrow(1, 3, 2).to_vector() != after.narrow(1, 3, 2).to_vector());

  // The first position attends only to itself: its result is its value, projected.
  const Tensor first = x.narrow(1, 0, 1);
  const Tensor value = attention.qkv(first).narrow(2, 16, 8);
  const std::vector<double> want = attention.proj(value).to_vector(), got = after.narrow(1, 0, 1).to_vector();
  for (size_t i = 0; i < want.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(1e-6));
  CHECK(error_of([] { nn::CausalSelfAttention(nullptr, "", 8, 3); }).first == Category::bad_argument);
  CHECK(nn::CausalSelfAttention(nullptr, "", 0, 4)(rg::ones({2, 3, 0})).sizes() == rg::IntArray{2, 3, 0});
}

TEST_CASE("a module that could not be made is no child") {
  nn::ModuleList<nn::Linear> list;
  list.emplace_back(3, 2);
  CHECK(error_of([&] { list.emplace_back(-1, 2); }).first == Category::bad_argument);
  CHECK(error_of([&] { list[1]; }).first == Category::index_out_of_range);
  CHECK(list.parameters().size() == 2);
  list.emplace_back(2, 4);
  CHECK(list.named_parameters()[2].key() == "1.weight");
  {
    nn::Linear passing(&list, "passing", 1, 1);
    CHECK(list.parameters().size() == 6);
  }
  CHECK(list.parameters().size() == 4);
}

TEST_CASE("initial values have PyTorch's distributions") {
  rg::manual_seed(3);
  nn::Linear linear(nullptr, "", 400, 300);
  const double bound = 1 / std::sqrt(400.0);  // uniform: deviation bound / sqrt(3)
  CHECK(deviation(linear.weight) == Approx(bound / std::sqrt(3.0)).epsilon(0.02));
  CHECK(deviation(linear.bias) == Approx(bound / std::sqrt(3.0)).epsilon(0.15));
  CHECK(rg::amax(rg::abs(linear.weight.detach())).item<double>() <= bound * (1 + 1e-6));
  CHECK(deviation(nn::Embedding(nullptr, "", 200, 200).weight) == Approx(1).epsilon(0.02));
  const Tensor w = rg::empty({30, 20, 5});
  nn::init::xavier_uniform_(w, 2);
  CHECK(deviation(w) == Approx(2 * std::sqrt(2.0 / (20 * 5 + 30 * 5))).epsilon(0.05));
  CHECK(error_of([] { nn::init::kaiming_uniform_(rg::ones({3})); }).first == Category::bad_dim);

  rg::manual_seed(3);
  nn::Linear again(nullptr, "", 400, 300);
  CHECK(again.weight.to_vector() == linear.weight.to_vector());
}

TEST_CASE("errors name the line that called the module") {
  nn::Linear linear(nullptr, "", 3, 2);
  nn::CausalSelfAttention attention(nullptr, "", 8, 2);
  nn::LayerNorm norm(nullptr, "", {3});
  const Tensor wrong = rg::ones({2, 5});
  CHECK_THAT(error_of([&] { linear(wrong); }).second, Catch::Contains(here(__LINE__)));
  CHECK_THAT(error_of([&] { norm(wrong); }).second, Catch::Contains(here(__LINE__)));
  const Tensor wide = rg::ones({1, 2, 9});
  const auto [category, text] = error_of([&] { attention(wide); });
  CHECK_THAT(text, Catch::Contains(here(__LINE__ - 1)) && !Catch::Contains("layers.cc"));
}

TEST_CASE("records name the line that called the module") {
  nn::Linear linear(nullptr, "", 3, 2);
  const Tensor y = linear(rg::ones({1, 3}));
  CHECK(rg::to_string(y.grad_fn().where()) == here(__LINE__ - 1));
}
