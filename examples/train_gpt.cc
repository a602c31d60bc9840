// Trains a GPT on the characters of Shakespeare's plays and lets it write 500 characters. nanoGPT's CPU setting: 4 layers, 4 heads, 128 wide,
// 64 characters, batches of 12, AdamW, 2,000 steps; a validation loss of about 1.9 after one or two minutes.
//
// The first nine tenths of the text are for training, the rest for validation. Everything is the same, bit for bit, for the same seed,
// whatever --threads and --backward say. Start reading at train(); the model is in examples/gpt.h, what examples share in examples/common.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "examples/common/data_file.h"
#include "examples/common/program.h"
#include "examples/common/session.h"
#include "examples/gpt.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

constexpr int64_t kBlock = 64, kBatch = 12, kSampled = 500;

struct Text {
  std::string characters;       // the vocabulary, sorted
  std::vector<uint8_t> tokens;  // indices into it
  size_t training;              // so many tokens are for training

  explicit Text(const std::string& path) {
    const std::string bytes = examples::read_file(path);
    const std::set<char> distinct(bytes.begin(), bytes.end());
    characters.assign(distinct.begin(), distinct.end());
    for (char c : bytes)
      tokens.push_back(static_cast<uint8_t>(std::lower_bound(characters.begin(), characters.end(), c) -
                                            characters.begin()));
    training = tokens.size() * 9 / 10;
    if (tokens.size() - training <= static_cast<size_t>(kBlock))
      throw rg::FileError(
          fmt::format("{}: {} characters, at least {} are needed", path, tokens.size(), 10 * (kBlock + 1)));
  }
  /// The vocabulary as numbers: "10 32 33 ...".
  std::string codes() const {
    std::vector<int> numbers;
    for (char c : characters) numbers.push_back(static_cast<unsigned char>(c));
    return fmt::format("{}", fmt::join(numbers, " "));
  }
  std::span<const uint8_t> training_part() const { return {tokens.data(), training}; }
  std::span<const uint8_t> validation_part() const {
    return {tokens.data() + training, tokens.size() - training};
  }
};

struct Batch {
  Tensor tokens, next;  // int64 [kBatch, kBlock]
};

// Pieces of the text at random places, and the same one character later.
Batch draw_batch(std::span<const uint8_t> text) {
  const Tensor starts = rg::randint(0, static_cast<int64_t>(text.size()) - kBlock, {kBatch});
  Batch batch{rg::empty({kBatch, kBlock}, {rg::kInt64}), rg::empty({kBatch, kBlock}, {rg::kInt64})};
  int64_t *tokens = batch.tokens.data_ptr<int64_t>(), *next = batch.next.data_ptr<int64_t>();
  for (int64_t row = 0; row < kBatch; ++row) {
    const uint8_t* from = text.data() + starts.data_ptr<int64_t>()[row];
    std::copy_n(from, kBlock, tokens + row * kBlock);
    std::copy_n(from + 1, kBlock, next + row * kBlock);
  }
  return batch;
}

// While open, random numbers come from a stream of their own: training does not notice what is drawn in between.
class OwnStream {
 public:
  explicit OwnStream(uint64_t seed) : outer_(rg::default_generator().state()) { rg::manual_seed(seed); }
  ~OwnStream() { rg::default_generator().set_state(outer_); }
  OwnStream(const OwnStream&) = delete;

 private:
  rg::GeneratorState outer_;
};

double validation_loss(const examples::Gpt& model, const Text& text, int64_t batches, uint64_t seed) {
  rg::NoGradGuard no_grad;
  const OwnStream stream(seed + 1);
  double sum = 0;
  for (int64_t i = 0; i < batches; ++i) {
    const Batch batch = draw_batch(text.validation_part());
    sum += model.loss(batch.tokens, batch.next).item<double>();
    examples::check_interrupted();
  }
  return sum / static_cast<double>(batches);
}

// Draws an index with probabilities softmax(scores).
size_t draw_index(const std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double s : scores) sum += std::exp(s - largest);
  double left = rg::rand({1}, {rg::kFloat64}).item<double>() * sum;
  for (size_t i = 0; i + 1 < scores.size(); ++i)
    if ((left -= std::exp(scores[i] - largest)) < 0) return i;
  return scores.size() - 1;
}

std::string write(const examples::Gpt& model, const Text& text, uint64_t seed) {
  rg::NoGradGuard no_grad;
  const OwnStream stream(seed + 2);
  std::string written;
  std::vector<double> context{0};  // the first character of the vocabulary: in a text, the line break
  for (int64_t i = 0; i < kSampled; ++i) {
    const auto length = static_cast<int64_t>(context.size());
    const Tensor scores = model.forward(rg::tensor(context, {1, length}, {rg::kInt64}));
    const size_t next = draw_index(scores.select(0, 0).select(0, length - 1).to_vector());
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
  const Text text(examples::find_data(options.data, "tinyshakespeare.txt"));
  examples::Gpt model({.vocabulary = static_cast<int64_t>(text.characters.size()), .block = kBlock});
  rg::optim::AdamW optimizer = make_optimizer(model);
  const rg::optim::CosineSchedule schedule{
      .peak = 1e-3, .final = 1e-4, .warmup = 100, .steps = options.steps};
  examples::Session session(options, model, kBatch * kBlock, "tokens");
  const auto validate = [&](int64_t batches) {
    session.validation(validation_loss(model, text, batches, options.seed),
                       fmt::format("over {} batches", batches));
  };

  for (int64_t step = 1; step <= options.steps; ++step) {
    optimizer.set_lr(schedule.at(step - 1));
    optimizer.zero_grad();
    const Batch batch = draw_batch(text.training_part());
    const Tensor loss = session.forward([&] { return model.loss(batch.tokens, batch.next); });
    session.backward(loss);
    rg::optim::clip_grad_norm_(model.parameters(), 1.0);
    optimizer.step();
    session.step_done(step, loss.item<double>());
    if (step % 250 == 0 && step < options.steps) validate(20);
  }
  validate(200);
  if (!options.save.empty()) rg::save(model.state_dict(), options.save, {{"characters", text.codes()}});
  std::fputs(write(model, text, options.seed).c_str(), stdout);
  std::fputc('\n', stdout);
  session.finish();
}

}  // namespace

int main(int argc, char** argv) {
  examples::Options options;
  options.steps = 2000;
  return examples::run_program(argc, argv, "Trains a character GPT on Shakespeare and lets it write.",
                               options, [&] { train(options); });
}
