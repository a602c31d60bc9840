// Transformer: copies of layers, initial values, masks, dropout, sizes that vary in recordings, a compiled step of
// training, errors.
//
// Not tested here: PyTorch's numbers (attention_numbers_test.cc).
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/same_bits.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using rg::Category;
using rg::Tensor;
using rg::testing::same_bits;

namespace {

constexpr int64_t kWidth = 8, kHeads = 2;

nn::TransformerOptions small(double dropout = 0) {
  return {.d_model = kWidth,
          .nhead = kHeads,
          .num_encoder_layers = 2,
          .num_decoder_layers = 2,
          .dim_feedforward = 16,
          .dropout = dropout,
          .batch_first = true};
}

const nn::TransformerEncoder& encoder_of(const nn::Transformer& model) {
  return model.encoder.get<nn::TransformerEncoder>();
}
const nn::TransformerDecoder& decoder_of(const nn::Transformer& model) {
  return model.decoder.get<nn::TransformerDecoder>();
}

double largest(const Tensor& x) { return rg::max(rg::abs(x.detach())).item<double>(); }
double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return largest(a - b);
}

TEST_CASE("the layers of a stack are copies of the given one") {
  nn::TransformerEncoderLayer given(nullptr, "", kWidth, kHeads, {.dim_feedforward = 16});
  given.to(rg::kFloat64);
  given.linear1.bias.detach().fill_(3);
  const nn::TransformerEncoder encoder(nullptr, "", given, 2);
  CHECK(encoder.layers.size() == 2);
  CHECK(encoder.parameters().size() == 2 * given.parameters().size());
  for (const auto& layer : encoder.layers) {
    const rg::Tensors own = layer->parameters(), wanted = given.parameters();
    for (size_t i = 0; i < own.size(); ++i) CHECK(same_bits(own[i], wanted[i]));
  }
  given.linear1.bias.detach().fill_(4);
  encoder.layers[0].linear1.bias.detach().fill_(5);
  CHECK(largest(encoder.layers[1].linear1.bias) == 3);
  CHECK(largest(given.linear1.bias) == 4);
}

TEST_CASE("the layers of a Transformer have weights of their own") {
  const nn::Transformer model(nullptr, "", small());
  CHECK_FALSE(
      same_bits(encoder_of(model).layers[0].linear1.weight, encoder_of(model).layers[1].linear1.weight));
  const double bound = std::sqrt(6.0 / (kWidth + 16));
  CHECK(largest(decoder_of(model).layers[1].linear1.weight) <= bound);
  CHECK(largest(decoder_of(model).layers[1].linear1.weight) > 0.9 * bound);
  CHECK(same_bits(encoder_of(model).norm.get<nn::LayerNorm>().weight, rg::ones({kWidth})));
  CHECK(model.state_dict().contains("decoder.layers.1.multihead_attn.out_proj.bias"));
}

// Adds a parameter to the source; of the other inputs it uses none.
struct Shift : nn::Module {
  nn::Parameter by{this, "by", rg::ones({kWidth})};
  Tensor forward(rg::Operand src, const Tensor&, const Tensor&, bool) const { return src + by; }
  std::unique_ptr<nn::Module> clone() const override { return clone_as<Shift>(); }
};

TEST_CASE("a custom encoder takes the place of the library's") {
  nn::TransformerOptions options = small();
  options.custom_encoder = std::make_shared<Shift>();
  const nn::Transformer model(nullptr, "", options);
  CHECK(model.state_dict().contains("encoder.by"));
  const Tensor src = rg::randn({2, 4, kWidth}), tgt = rg::randn({2, 3, kWidth});
  CHECK(same_bits(model(src, tgt), decoder_of(model)(tgt, src + 1.0)));
  const std::unique_ptr<nn::Module> copy = model.clone();
  CHECK(same_bits((*copy->as<nn::Transformer>())(src, tgt), model(src, tgt)));
  for (const Tensor& p : copy->parameters()) p.detach().zero_();
  CHECK(largest(model.encoder.get<Shift>().by) == 1);
}

TEST_CASE("the mask of what follows a position") {
  const double out = -std::numeric_limits<double>::infinity();
  const Tensor mask = nn::Transformer::generate_square_subsequent_mask(3);
  CHECK(mask.to_vector() == std::vector<double>{0, out, out, 0, 0, out, 0, 0, 0});
  CHECK(mask.dtype() == rg::kFloat32);
}

TEST_CASE("with a causal mask, or is_causal, a position does not depend on what follows") {
  const nn::Transformer model(nullptr, "", small());
  const Tensor src = rg::randn({2, 4, kWidth}), tgt = rg::randn({2, 5, kWidth});
  const Tensor changed = tgt.clone();
  changed.narrow(1, 3, 2).fill_(7);
  const Tensor mask = nn::Transformer::generate_square_subsequent_mask(5);
  const auto run = [&](const Tensor& x, bool is_causal) {
    return is_causal ? model(src, x, {}, {}, {}, {}, {}, {}, false, true) : model(src, x, {}, mask);
  };
  for (bool is_causal : {false, true}) {
    const Tensor a = run(tgt, is_causal), b = run(changed, is_causal);
    CHECK(distance(a.narrow(1, 0, 3), b.narrow(1, 0, 3)) < 1e-6);
    CHECK(distance(a.narrow(1, 3, 2), b.narrow(1, 3, 2)) > 1e-3);
  }
  CHECK(distance(run(tgt, false), run(tgt, true)) < 1e-5);
}

TEST_CASE("what is padded has no influence") {
  const nn::Transformer model(nullptr, "", small());
  const Tensor src = rg::randn({1, 4, kWidth}), tgt = rg::randn({1, 3, kWidth});
  const Tensor changed = src.clone(), pad = rg::tensor({false, false, true, true}).view({1, 4});
  changed.narrow(1, 2, 2).fill_(7);
  CHECK(distance(model(src, tgt, {}, {}, {}, pad, {}, pad), model(changed, tgt, {}, {}, {}, pad, {}, pad)) <
        1e-6);
}

TEST_CASE("dropout acts in training alone") {
  nn::Transformer model(nullptr, "", small(0.3));
  const Tensor src = rg::randn({2, 4, kWidth}), tgt = rg::randn({2, 3, kWidth});
  CHECK(distance(model(src, tgt), model(src, tgt)) > 1e-3);
  model.eval();
  nn::Transformer same(nullptr, "", small());
  same.load_state_dict(model.state_dict());
  CHECK(distance(model(src, tgt), same(src, tgt)) < 1e-6);
}

TEST_CASE("one recording serves all batches and lengths") {
  const nn::Transformer model(nullptr, "", small());
  const auto loss = [&](const Tensor& src, const Tensor& tgt) {
    const Tensor mask = nn::Transformer::generate_square_subsequent_mask(tgt.sym_size(1));
    return rg::sum(rg::square(model(src, tgt, {}, mask)));
  };
  auto compiled = rg::compile(loss);
  for (int64_t n : {4, 7, 3}) {
    const Tensor src = rg::randn({n, n + 2, kWidth}), tgt = rg::randn({n, n + 1, kWidth});
    const Tensor a = loss(src, tgt), b = compiled(src, tgt);
    CHECK(same_bits(a, b));
    const auto wanted = rg::autograd::grad({a}, model.parameters()),
               got = rg::autograd::grad({b}, model.parameters());
    for (size_t i = 0; i < wanted.size(); ++i) CHECK(same_bits(wanted[i], got[i]));
  }
  CHECK(compiled.stats().captures == 2);  // with fixed sizes, then with symbols
}

TEST_CASE("a compiled step trains as eager steps do") {
  rg::manual_seed(5);
  nn::Transformer eager(nullptr, "", small(0.1)), compiled(nullptr, "", small(0.1));
  compiled.load_state_dict(eager.state_dict());
  const Tensor src = rg::randn({2, 4, kWidth}), tgt = rg::randn({2, 3, kWidth});
  const auto step_of = [&](nn::Transformer& model, rg::optim::Adam& optimizer) {
    const Tensor loss = rg::mse_loss(model(src, tgt), tgt);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss;
  };
  rg::optim::Adam a(eager.parameters(), {.lr = 1e-2}), b(compiled.parameters(), {.lr = 1e-2});
  auto step = rg::compile_step([&] { return step_of(compiled, b); });
  std::vector<double> wanted, got;
  rg::manual_seed(6);
  for (int i = 0; i < 8; ++i) wanted.push_back(step_of(eager, a).item<double>());
  rg::manual_seed(6);
  for (int i = 0; i < 8; ++i) got.push_back(step().item<double>());
  CHECK(got == wanted);
  CHECK(wanted.back() < 0.9 * wanted.front());
  CHECK(step.stats().captures <= 2);
}

TEST_CASE("what a Transformer cannot do is refused at the caller's line") {
  const nn::Transformer model(nullptr, "", small());
  const Tensor src = rg::zeros({2, 4, kWidth}), tgt = rg::zeros({2, 3, kWidth});
  const auto check = [&](Category category, auto&& call) {
    std::string text;
    CHECK(rg::category_of(call, &text) == category);
    INFO(text);
    CHECK(text.find("transformer_test.cc") != std::string::npos);
  };
  check(Category::shape_mismatch, [&] { model(src, rg::zeros({1, 3, kWidth})); });
  check(Category::shape_mismatch, [&] { model(src, rg::zeros({2, 3, 5})); });
  check(Category::bad_dim, [&] { model(src, tgt.select(0, 0)); });
  check(Category::shape_mismatch, [&] { model(src, tgt, {}, rg::zeros({4, 4})); });
  check(Category::bad_argument, [] { nn::Transformer(nullptr, "", {.d_model = 8, .nhead = 3}); });
  check(Category::bad_argument,
        [] { nn::Transformer(nullptr, "", {.d_model = 8, .num_encoder_layers = -1}); });
  check(Category::bad_argument,
        [] { nn::TransformerEncoderLayer(nullptr, "", 8, 2, {.activation = "tanh"}); });
  check(Category::bad_argument, [] { nn::TransformerDecoderLayer(nullptr, "", 8, 2, {.dropout = -1}); });
}

}  // namespace
