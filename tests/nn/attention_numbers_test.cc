// MultiheadAttention, the layers of a Transformer, Transformer and the recurrent cells against PyTorch's numbers
// (attention_numbers.py): outputs, gradients of inputs and parameters, keys of the state. Each case runs eagerly, with
// a traced backward, compiled, and as a compiled step; the last three must give the bits of the first. So must a clone.
//
// Not tested here: errors, sizes that vary, 16 bits (attention_test.cc, transformer_test.cc), dropout of weights.
#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <memory>

#include "retrograd/retrograd.h"
#include "tests/nn/attention_numbers.h"

namespace rg = retrograd;
namespace nn = retrograd::nn;
using rg::Tensor;
using rg::Tensors;

namespace {

constexpr int64_t kBatch = 2, kQueries = 3, kKeys = 4, kWidth = 8, kHeads = 2;

Tensor filled(const rg::Shape& shape, const std::function<double(double)>& f) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.numel().value(); ++i) values.push_back(f(static_cast<double>(i)));
  return rg::tensor(values, shape, {rg::kFloat64});
}

// As bits() and scores() of the script.
Tensor bits(const rg::Shape& shape) {
  return rg::eq(filled(shape, [](double i) { return std::fmod(i, 3); }), 1);
}
Tensor scores(const rg::Shape& shape) {
  return filled(shape, [](double i) { return std::sin(2 * i); });
}
Tensor causal() { return nn::Transformer::generate_square_subsequent_mask(kQueries, {rg::kFloat64}); }

double mark(const Tensor& x) {
  double sum = 0, i = 0;
  for (double v : x.to_vector()) sum += v * std::cos(0.5 * i++);
  return sum;
}

Tensor loss_of(const Tensors& outputs) {
  Tensor loss;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const double phase = static_cast<double>(k);
    const Tensor part = rg::sum(
        outputs[k] * filled(outputs[k].sym_sizes(), [phase](double i) { return std::sin(i + phase); }));
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

// A module with its inputs.
struct Case {
  std::shared_ptr<nn::Module> module;
  std::vector<rg::Shape> shapes;
  std::function<Tensors(const nn::Module&, const Tensors&)> run;
};

template <class M, class Run>
Case case_of(std::shared_ptr<M> module, std::vector<rg::Shape> shapes, Run run) {
  return {module, std::move(shapes), [run](const nn::Module& m, const Tensors& in) -> Tensors {
            auto out = run(static_cast<const M&>(m), in);
            if constexpr (std::is_same_v<decltype(out), rg::AttentionOutput>)
              return out.weights.defined() ? Tensors{out.output, out.weights} : Tensors{out.output};
            else if constexpr (std::is_same_v<decltype(out), nn::LSTM::State>)
              return {out.h, out.c};
            else
              return {out};
          }};
}

template <class Run>
Case attention(std::vector<rg::Shape> shapes, Run run, nn::MultiheadAttentionOptions options = {}) {
  return case_of(std::make_shared<nn::MultiheadAttention>(nullptr, "", kWidth, kHeads, options),
                 std::move(shapes), run);
}

const rg::Shape q{kQueries, kBatch, kWidth}, qb{kBatch, kQueries, kWidth}, qu{kQueries, kWidth},
    k{kKeys, kBatch, kWidth}, kb{kBatch, kKeys, kWidth}, ku{kKeys, kWidth};

Case attention_case(const std::string& name) {
  using M = const nn::MultiheadAttention&;
  using In = const Tensors&;
  const Tensor padding = bits({kBatch, kKeys}), mask = bits({kQueries, kKeys});
  if (name == "self-attention") return attention({q}, [](M m, In x) { return m(x[0], x[0], x[0]); });
  if (name == "self-attention without weights")
    return attention({qb}, [](M m, In x) { return m(x[0], x[0], x[0], {}, false); }, {.batch_first = true});
  if (name == "keys are values")
    return attention({q, k}, [](M m, In x) { return m(x[0], x[1], x[1], {}, true, {}, false); });
  if (name == "three inputs")
    return attention({qb, kb, kb}, [](M m, In x) { return m(x[0], x[1], x[2]); }, {.batch_first = true});
  if (name == "other widths")
    return attention({q, {kKeys, kBatch, 5}, {kKeys, kBatch, 6}},
                     [](M m, In x) { return m(x[0], x[1], x[2]); }, {.kdim = 5, .vdim = 6});
  if (name == "no bias")
    return attention({q, k}, [](M m, In x) { return m(x[0], x[1], x[1]); }, {.bias = false});
  if (name == "further keys")
    return attention({q, k, k}, [=](M m, In x) { return m(x[0], x[1], x[2], padding, true, mask); },
                     {.add_bias_kv = true, .add_zero_attn = true});
  if (name == "added masks")
    return attention({qb, kb},
                     [](M m, In x) {
                       return m(x[0], x[1], x[1], scores({kBatch, kKeys}), false,
                                scores({kBatch * kHeads, kQueries, kKeys}));
                     },
                     {.batch_first = true});
  if (name == "bool and added mask")
    return attention({q, k}, [=](M m, In x) {
      return m(x[0], x[1], x[1], padding, true, scores({kQueries, kKeys}));
    });
  if (name == "bool mask of each head")
    return attention({q, k}, [](M m, In x) {
      return m(x[0], x[1], x[1], {}, false, bits({kBatch * kHeads, kQueries, kKeys}));
    });
  if (name == "causal")
    return attention({qb}, [](M m, In x) { return m(x[0], x[0], x[0], {}, false, causal(), true, true); },
                     {.batch_first = true});
  if (name == "causal with weights")
    return attention({q}, [](M m, In x) { return m(x[0], x[0], x[0], {}, true, {}, true, true); });
  if (name == "no batch")
    return attention({qu, ku}, [](M m, In x) {
      return m(x[0], x[1], x[1], bits({kKeys}), true, bits({kHeads, kQueries, kKeys}), false);
    });
  if (name == "no batch, other widths, further keys")
    return attention({qu, {kKeys, 5}, {kKeys, 6}}, [](M m, In x) { return m(x[0], x[1], x[2], {}, false); },
                     {.add_bias_kv = true, .add_zero_attn = true, .kdim = 5, .vdim = 6});
  if (name == "static keys and values") {
    const rg::Shape heads{kBatch * kHeads, kKeys, kWidth / kHeads};
    return attention({q, heads, heads}, [](M m, In x) {
      const Tensor unused = x[0].detach();
      return nn::functional::multi_head_attention_forward(x[0], unused, unused,
                                                          {.embed_dim_to_check = kWidth,
                                                           .num_heads = kHeads,
                                                           .in_proj_weight = m.in_proj_weight,
                                                           .in_proj_bias = m.in_proj_bias,
                                                           .out_proj_weight = m.out_proj.weight,
                                                           .out_proj_bias = m.out_proj.bias,
                                                           .static_k = x[1],
                                                           .static_v = x[2]});
    });
  }
  return {};
}

Case layer_case(const std::string& name) {
  using Encoder = nn::TransformerEncoderLayer;
  using Decoder = nn::TransformerDecoderLayer;
  using In = const Tensors&;
  const auto encoder = [](nn::TransformerLayerOptions o) {
    return std::make_shared<Encoder>(nullptr, "", kWidth, kHeads, o);
  };
  const auto decoder = [](nn::TransformerLayerOptions o) {
    return std::make_shared<Decoder>(nullptr, "", kWidth, kHeads, o);
  };
  const Tensor memory_mask = bits({kQueries, kKeys}), memory_padding = scores({kBatch, kKeys});
  if (name == "encoder layer")
    return case_of(encoder({.dim_feedforward = 6, .dropout = 0}), {q}, [](const Encoder& m, In x) {
      return m(x[0], {}, bits({kBatch, kQueries}));
    });
  if (name == "encoder layer, norm first")
    return case_of(encoder({.dim_feedforward = 6,
                            .dropout = 0,
                            .activation = "gelu",
                            .layer_norm_eps = 1e-3,
                            .batch_first = true,
                            .norm_first = true}),
                   {qb}, [](const Encoder& m, In x) { return m(x[0], {}, {}, true); });
  if (name == "encoder layer, no bias")
    return case_of(encoder({.dim_feedforward = 6,
                            .dropout = 0,
                            .activation = [](const Tensor& x) { return rg::silu(x); },
                            .bias = false}),
                   {qu}, [](const Encoder& m, In x) {
                     return m(x[0], bits({kQueries, kQueries}));
                   });
  if (name == "decoder layer")
    return case_of(decoder({.dim_feedforward = 6, .dropout = 0}), {q, k}, [=](const Decoder& m, In x) {
      return m(x[0], x[1], causal(), memory_mask, scores({kBatch, kQueries}), memory_padding);
    });
  if (name == "decoder layer, norm first")
    return case_of(decoder({.dim_feedforward = 6,
                            .dropout = 0,
                            .activation = "gelu",
                            .batch_first = true,
                            .norm_first = true,
                            .bias = false}),
                   {qb, kb},
                   [](const Decoder& m, In x) { return m(x[0], x[1], causal(), {}, {}, {}, true); });
  if (name == "encoder")
    return case_of(std::make_shared<nn::TransformerEncoder>(
                       nullptr, "", *encoder({.dim_feedforward = 6, .dropout = 0}), 2,
                       nn::TransformerEncoderOptions{
                           .norm = std::make_shared<nn::LayerNorm>(nullptr, "", rg::IntArray{kWidth})}),
                   {q}, [](const nn::TransformerEncoder& m, In x) {
                     return m(x[0], bits({kQueries, kQueries}));
                   });
  if (name == "decoder")
    return case_of(std::make_shared<nn::TransformerDecoder>(
                       nullptr, "", *decoder({.dim_feedforward = 6, .dropout = 0}), 2),
                   {q, k}, [=](const nn::TransformerDecoder& m, In x) {
                     return m(x[0], x[1], causal(), memory_mask, {}, memory_padding);
                   });
  return {};
}

Case model_case(const std::string& name) {
  using In = const Tensors&;
  nn::TransformerOptions options{.d_model = kWidth,
                                 .nhead = kHeads,
                                 .num_encoder_layers = 2,
                                 .num_decoder_layers = 1,
                                 .dim_feedforward = 6,
                                 .dropout = 0};
  if (name == "transformer") {
    options.batch_first = true;
    return case_of(std::make_shared<nn::Transformer>(nullptr, "", options), {kb, qb},
                   [](const nn::Transformer& m, In x) {
                     const Tensor padding = bits({kBatch, kKeys});
                     return m(x[0], x[1], {}, causal(), {}, padding, {}, padding);
                   });
  }
  if (name == "transformer, no batch") {
    options.norm_first = true;
    options.activation = "gelu";
    return case_of(std::make_shared<nn::Transformer>(nullptr, "", options), {ku, qu},
                   [](const nn::Transformer& m, In x) {
                     return m(x[0], x[1], scores({kKeys, kKeys}), {}, bits({kQueries, kKeys}));
                   });
  }
  return {};
}

Case cell_case(const std::string& name) {
  using In = const Tensors&;
  const rg::Shape x{kBatch, 5}, h{kBatch, kWidth};
  if (name == "RNN cell")
    return case_of(std::make_shared<nn::RNNCell>(nullptr, "", 5, kWidth), {x, h},
                   [](const nn::RNNCell& m, In in) { return m(in[0], in[1]); });
  if (name == "RNN cell, relu")
    return case_of(std::make_shared<nn::RNNCell>(nullptr, "", 5, kWidth,
                                                 nn::RNNCellOptions{.bias = false, .nonlinearity = "relu"}),
                   {x}, [](const nn::RNNCell& m, In in) { return m(in[0]); });
  if (name == "LSTM cell")
    return case_of(std::make_shared<nn::LSTMCell>(nullptr, "", 5, kWidth), {x, h, h},
                   [](const nn::LSTMCell& m, In in) {
                     return m(in[0], {in[1], in[2]});
                   });
  if (name == "LSTM cell, no batch")
    return case_of(std::make_shared<nn::LSTMCell>(nullptr, "", 5, kWidth, nn::LSTMCellOptions{.bias = false}),
                   {{5}}, [](const nn::LSTMCell& m, In in) { return m(in[0]); });
  if (name == "GRU cell")
    return case_of(std::make_shared<nn::GRUCell>(nullptr, "", 5, kWidth), {x, h},
                   [](const nn::GRUCell& m, In in) { return m(in[0], in[1]); });
  if (name == "GRU cell, no batch")
    return case_of(std::make_shared<nn::GRUCell>(nullptr, "", 5, kWidth, nn::GRUCellOptions{.bias = false}),
                   {{5}, {kWidth}}, [](const nn::GRUCell& m, In in) { return m(in[0], in[1]); });
  return {};
}

Case case_named(const std::string& name) {
  for (const auto make : {attention_case, layer_case, model_case, cell_case})
    if (Case c = make(name); c.module) return c;
  FAIL("there is no case " << name);
  return {};
}

void fill(const nn::Module& m) {
  const rg::NoGradGuard no_grad;
  double j = 0;
  for (const Tensor& p : m.parameters()) {
    p.copy_(filled(p.sym_sizes(), [j](double i) { return 0.5 * std::sin(0.7 * i + j); }));
    ++j;
  }
}

// Outputs, then gradients of inputs and parameters, which are taken away.
using Values = std::vector<std::vector<double>>;
Values taken(const Tensors& outputs, const Tensors& leaves) {
  Values values;
  for (const Tensor& t : outputs) values.push_back(t.detach().to_vector());
  for (const Tensor& t : leaves) {
    values.push_back(t.grad().to_vector());
    t.set_grad({});
  }
  return values;
}

void check_same(const Values& got, const Values& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("tensor " << i);
    CHECK(got[i] == wanted[i]);
  }
}

double mark(const std::vector<double>& values) {
  return mark(rg::tensor(values, {std::ssize(values)}, {rg::kFloat64}));
}

TEST_CASE("PyTorch's numbers in all modes") {
  const AttentionNumbers& row = GENERATE(from_range(attention_numbers()));
  INFO(row.name);
  const Case c = case_named(row.name);
  c.module->to(rg::kFloat64);
  fill(*c.module);
  std::string keys;
  for (const auto& [key, value] : c.module->state_dict()) keys += (keys.empty() ? "" : " ") + key;
  CHECK(keys == row.keys);

  Tensors inputs;
  for (const rg::Shape& shape : c.shapes) {
    const double number = static_cast<double>(inputs.size());
    inputs.push_back(
        filled(shape, [number](double i) { return std::cos(0.3 * i + number); }).requires_grad_());
  }
  Tensors leaves = inputs;
  for (const Tensor& p : c.module->parameters()) leaves.push_back(p);

  const Tensors outputs = c.run(*c.module, inputs);
  loss_of(outputs).backward();
  const Values eager = taken(outputs, leaves);
  REQUIRE(eager.size() == row.marks.size());
  for (size_t i = 0; i < eager.size(); ++i) {
    INFO("tensor " << i);
    CHECK(mark(eager[i]) == Approx(row.marks[i]).epsilon(1e-7).margin(1e-8));
  }

  const std::unique_ptr<nn::Module> copy = c.module->clone();
  const Tensors of_copy = c.run(*copy, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) CHECK(of_copy[i].to_vector() == eager[i]);
  for (const Tensor& p : copy->parameters()) p.detach().zero_();

  rg::CompiledBackward traced = rg::compile_backward();
  auto compiled = rg::compile([&](const Tensors& in) { return c.run(*c.module, in); });
  auto step = rg::compile_step([&] {
    const Tensors out = c.run(*c.module, inputs);
    loss_of(out).backward();
    return out;
  });
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Tensors of_traced = c.run(*c.module, inputs);
    traced(loss_of(of_traced));
    check_same(taken(of_traced, leaves), eager);
    const Tensors of_compiled = compiled(inputs);
    loss_of(of_compiled).backward();
    check_same(taken(of_compiled, leaves), eager);
    const Tensors of_step = step();
    check_same(taken(of_step, leaves), eager);
  }
  CHECK(traced.stats().captures == 1);
  CHECK(compiled.stats().captures == 1);
  CHECK(step.stats().captures == 1);
}

}  // namespace
