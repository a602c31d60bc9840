// Trains a recurrent network on the characters of Shakespeare's plays and generates 500 characters: an embedding, one
// recurrent layer, a linear layer; pieces of 64 characters, batches of 32, AdamW.
//
// Data: examples/data/tinyshakespeare.txt; see examples/common/text.h. For a given seed all results are the same, bit
// for bit, for every --threads and --mode. Text is generated character by character from the state of the layer,
// whereas a transformer (train_gpt) reads its whole context again.
// Start reading at train(). The common code of all examples is in examples/common; the layers are in nn/recurrent.h.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "examples/common/data_file.h"
#include "examples/common/program.h"
#include "examples/common/schedule.h"
#include "examples/common/session.h"
#include "examples/common/text.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

constexpr int64_t kBlock = 64, kBatch = 32, kEmbedding = 64, kHidden = 256, kSampled = 500;

// One of nn::LSTM, nn::GRU and nn::RNN. Tokens int64 [batch, length] -> scores of the next one [batch,
// length, vocabulary].
template <class Layer>
struct Net : rg::nn::Module {
  rg::nn::Embedding table;
  Layer layer{this, "layer", kEmbedding, kHidden, {.batch_first = true}};
  rg::nn::Linear head;

  explicit Net(int64_t vocabulary)
      : table(this, "table", vocabulary, kEmbedding), head(this, "head", kHidden, vocabulary) {}

  Tensor loss(const Tensor& tokens, const Tensor& next) const {
    const Tensor scores = head(layer(table(tokens)).output);
    return rg::cross_entropy(rg::flatten(scores, 0, 1), next.view({-1}));
  }
};

template <class Layer>
double validation_loss(const Net<Layer>& net, const examples::Text& text, int64_t batches, uint64_t seed) {
  rg::NoGradGuard no_grad;
  const rg::Device place = net.head.weight.device();
  const examples::OwnStream stream(seed + 1);
  double sum = 0;
  for (int64_t i = 0; i < batches; ++i) {
    const examples::TextBatch batch = examples::draw_batch(text.validation_part(), kBatch, kBlock);
    sum += net.loss(batch.tokens.to(place), batch.next.to(place)).template item<double>();
    examples::check_interrupted();
  }
  return sum / static_cast<double>(batches);
}

template <class Layer>
std::string write(const Net<Layer>& net, const examples::Text& text, uint64_t seed) {
  rg::NoGradGuard no_grad;
  const examples::OwnStream stream(seed + 2);
  std::string written;
  const rg::TensorOptions index(rg::kInt64, net.head.weight.device());
  // The first character of the vocabulary: in a text, the line break.
  auto now = net.layer(net.table(rg::zeros({1, 1}, index)));
  for (int64_t i = 0; i < kSampled; ++i) {
    const auto& [output, state] = now;
    const size_t next = examples::draw_index(net.head(output).to_vector());
    written += text.characters[next];
    now = net.layer(net.table(rg::full({1, 1}, static_cast<int64_t>(next), index)), state);
    examples::check_interrupted();
  }
  return written;
}

template <class Layer>
void train(const examples::Options& options) {
  const examples::Text text(examples::find_data(options.data, "tinyshakespeare.txt"), kBlock);
  Net<Layer> net(text.vocabulary());
  net.to(options.place());
  rg::optim::AdamW optimizer(net.parameters(), {.lr = 3e-3, .weight_decay = 0.01});
  rg::optim::LambdaLR scheduler(optimizer, examples::warmup_cosine(100, options.steps, 1.0 / 30));
  const auto loss = [&](const Tensor& tokens, const Tensor& next) { return net.loss(tokens, next); };
  const auto update = [&] {
    rg::optim::clip_grad_norm_(net.parameters(), 1.0);
    optimizer.step();
  };
  rg::TrainingState state;
  state.add("model", net)
      .add("optimizer", optimizer)
      .add("scheduler", scheduler)
      .require("characters", text.codes());
  examples::Session session(options, net, kBatch * kBlock, "tokens", {loss, update}, std::move(state));
  const auto validate = [&](int64_t batches) {
    session.validation(validation_loss(net, text, batches, options.seed),
                       fmt::format("over {} batches", batches));
  };

  while (session.next()) {
    const examples::TextBatch batch = examples::draw_batch(text.training_part(), kBatch, kBlock);
    session.step(batch.tokens, batch.next);
    scheduler.step();
    if (session.is_time(250)) validate(10);
  }
  validate(std::min<int64_t>(50, options.steps));
  std::fputs(write(net, text, options.seed).c_str(), stdout);
  std::fputc('\n', stdout);
  session.finish();
}

}  // namespace

int main(int argc, char** argv) {
  examples::Options options;
  options.steps = 1000;
  std::string cell = "lstm";
  const auto flags = [&](CLI::App& app) {
    app.add_option("--cell", cell, "the recurrent layer")
        ->check(CLI::IsMember({"lstm", "gru", "rnn"}))
        ->capture_default_str();
  };
  const auto body = [&] {
    if (cell == "lstm") return train<rg::nn::LSTM>(options);
    if (cell == "gru") return train<rg::nn::GRU>(options);
    train<rg::nn::RNN>(options);
  };
  return examples::run_program(argc, argv, "Trains a recurrent network on Shakespeare and lets it write.",
                               options, body, flags);
}
