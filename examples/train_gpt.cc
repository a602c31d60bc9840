// Trains a GPT on the characters of Shakespeare's plays and generates 500 characters. nanoGPT's CPU setting: 4 layers,
// 4 heads, 128 wide, 64 characters, batches of 12, AdamW, 2,000 steps; a validation loss of about 1.9 after one or two
// minutes.
//
// The first nine tenths of the text are for training, the rest for validation. For a given seed all results are the
// same, bit for bit, for every --threads and --mode. Start reading at train(); the model is in examples/gpt.h, the
// common code of the examples in examples/common.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "examples/common/data_file.h"
#include "examples/common/program.h"
#include "examples/common/schedule.h"
#include "examples/common/session.h"
#include "examples/common/text.h"
#include "examples/gpt.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

constexpr int64_t kBlock = 64, kBatch = 12, kSampled = 500;

double validation_loss(const examples::Gpt& model, const examples::Text& text, int64_t batches,
                       uint64_t seed) {
  rg::NoGradGuard no_grad;
  const rg::Device place = model.wte.weight.device();
  const examples::OwnStream stream(seed + 1);
  double sum = 0;
  for (int64_t i = 0; i < batches; ++i) {
    const examples::TextBatch batch = examples::draw_batch(text.validation_part(), kBatch, kBlock);
    sum += model.loss(batch.tokens.to(place), batch.next.to(place)).item<double>();
    examples::check_interrupted();
  }
  return sum / static_cast<double>(batches);
}

std::string write(const examples::Gpt& model, const examples::Text& text, uint64_t seed) {
  rg::NoGradGuard no_grad;
  const examples::OwnStream stream(seed + 2);
  std::string written;
  std::vector<double> context{0};  // the first character of the vocabulary: in a text, the line break
  for (int64_t i = 0; i < kSampled; ++i) {
    const auto length = static_cast<int64_t>(context.size());
    const Tensor scores =
        model.forward(rg::tensor(context, {1, length}, {rg::kInt64, model.wte.weight.device()}));
    const size_t next = examples::draw_index(scores.select(0, 0).select(0, length - 1).to_vector());
    written += text.characters[next];
    context.push_back(static_cast<double>(next));
    if (length == kBlock) context.erase(context.begin());
    examples::check_interrupted();
  }
  return written;
}

// Weight decay on matrices only.
rg::optim::AdamW make_optimizer(const rg::nn::Module& model) {
  rg::Tensors matrices, vectors;
  for (const Tensor& p : model.parameters()) (p.dim() > 1 ? matrices : vectors).push_back(p);
  return rg::optim::AdamW({{matrices, {.betas = {0.9, 0.99}, .weight_decay = 0.1}},
                           {vectors, {.betas = {0.9, 0.99}, .weight_decay = 0}}});
}

void train(const examples::Options& options) {
  const examples::Text text(examples::find_data(options.data, "tinyshakespeare.txt"), kBlock);
  examples::Gpt model({.vocabulary = text.vocabulary(), .block = kBlock});
  model.to(options.place());
  model.recomputation = examples::Recomputation(options.checkpoint);
  rg::optim::AdamW optimizer = make_optimizer(model);
  rg::optim::LambdaLR scheduler(optimizer, examples::warmup_cosine(100, options.steps, 0.1));
  const auto loss = [&](const Tensor& tokens, const Tensor& next) { return model.loss(tokens, next); };
  const auto update = [&] {
    rg::optim::clip_grad_norm_(model.parameters(), 1.0);
    optimizer.step();
  };
  rg::TrainingState state;
  state.add("model", model)
      .add("optimizer", optimizer)
      .add("scheduler", scheduler)
      .require("characters", text.codes());
  examples::Session session(options, model, kBatch * kBlock, "tokens", {loss, update}, std::move(state));
  const auto validate = [&](int64_t batches) {
    session.validation(validation_loss(model, text, batches, options.seed),
                       fmt::format("over {} batches", batches));
  };

  while (session.next()) {
    const examples::TextBatch batch = examples::draw_batch(text.training_part(), kBatch, kBlock);
    session.step(batch.tokens, batch.next);
    scheduler.step();
    if (session.is_time(250)) validate(20);
  }
  validate(std::min<int64_t>(200, options.steps));
  std::fputs(write(model, text, options.seed).c_str(), stdout);
  std::fputc('\n', stdout);
  session.finish();
}

}  // namespace

int main(int argc, char** argv) {
  examples::Options options;
  options.can_recompute = true;
  options.steps = 2000;
  return examples::run_program(argc, argv, "Trains a character GPT on Shakespeare and lets it write.",
                               options, [&] { train(options); });
}
