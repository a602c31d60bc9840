// A language model of characters: embedding, two layers of LSTM, cross entropy, and text that it writes greedily.
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "weights.h"

using namespace torch::indexing;

static const std::string kText =
    "the quick brown fox jumps over the lazy dog. the slow green turtle crawls under the busy bee. "
    "the quick brown fox jumps over the lazy dog. the slow green turtle crawls under the busy bee. ";

// Characters as numbers.
class Vocabulary {
 public:
  explicit Vocabulary(const std::string& text) {
    for (char c : text)
      if (number_.emplace(c, 0).second) letters_.push_back(c);
    std::sort(letters_.begin(), letters_.end());
    for (size_t i = 0; i < letters_.size(); ++i) number_[letters_[i]] = static_cast<int64_t>(i);
  }
  torch::Tensor encode(const std::string& text) const {
    std::vector<int64_t> numbers;
    numbers.reserve(text.size());
    for (char c : text) numbers.push_back(number_.at(c));
    return torch::tensor(numbers, torch::TensorOptions().dtype(torch::kLong));
  }
  char letter(int64_t i) const { return letters_.at(static_cast<size_t>(i)); }
  int64_t size() const { return static_cast<int64_t>(letters_.size()); }

 private:
  std::map<char, int64_t> number_;
  std::vector<char> letters_;
};

using State = std::tuple<torch::Tensor, torch::Tensor>;

class LanguageModelImpl : public torch::nn::Module {
 public:
  LanguageModelImpl(int64_t vocabulary, int64_t width, int64_t hidden, int64_t layers)
      : embedding_(register_module("embedding", torch::nn::Embedding(vocabulary, width))),
        lstm_(register_module(
            "lstm",
            torch::nn::LSTM(torch::nn::LSTMOptions(width, hidden).num_layers(layers).batch_first(true)))),
        decoder_(register_module("decoder", torch::nn::Linear(hidden, vocabulary))),
        hidden_(hidden),
        layers_(layers) {}

  std::pair<torch::Tensor, State> forward(const torch::Tensor& tokens, const State& state) {
    auto [output, next] = lstm_->forward(embedding_->forward(tokens), state);
    return {decoder_->forward(output), next};
  }
  State initial_state(int64_t batch) const {
    return {torch::zeros({layers_, batch, hidden_}), torch::zeros({layers_, batch, hidden_})};
  }

 private:
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::LSTM lstm_{nullptr};
  torch::nn::Linear decoder_{nullptr};
  int64_t hidden_, layers_;
};
TORCH_MODULE(LanguageModel);

static std::string write(LanguageModel& model, const Vocabulary& vocabulary, const std::string& start,
                         int64_t length) {
  torch::NoGradGuard no_grad;
  model->eval();
  auto state = model->initial_state(1);
  auto tokens = vocabulary.encode(start).unsqueeze(0);
  std::string text = start;
  for (int64_t i = 0; i < length; ++i) {
    auto [logits, next] = model->forward(tokens, state);
    state = next;
    const auto best = logits.index({0, -1, Slice()}).argmax(-1);
    text += vocabulary.letter(best.item<int64_t>());
    tokens = best.view({1, 1});
  }
  model->train();
  return text;
}

int main() {
  torch::set_num_threads(1);
  const Vocabulary vocabulary(kText);
  const auto text = vocabulary.encode(kText);
  const int64_t batch_size = 4, sequence_length = 11;
  const int64_t columns = (text.size(0) - 1) / batch_size;
  const auto inputs = text.index({Slice(None, batch_size * columns)}).view({batch_size, columns});
  const auto targets = text.index({Slice(1, batch_size * columns + 1)}).view({batch_size, columns});
  std::printf("%ld letters of %ld kinds\n", long(text.numel()), long(vocabulary.size()));

  LanguageModel model(vocabulary.size(), 12, 24, 2);
  fill_parameters(*model, 0.3);
  int64_t count = 0;
  for (const auto& parameter : model->named_parameters()) {
    std::cout << parameter.key() << " " << parameter.value().sizes() << "\n";
    count += parameter->numel();
  }
  std::cout << count << " numbers\n";

  torch::optim::Adam optimizer(model->parameters(),
                               torch::optim::AdamOptions(1e-2).eps(1e-6).weight_decay(1e-5));
  torch::nn::CrossEntropyLoss criterion;
  for (int epoch = 1; epoch <= 12; ++epoch) {
    auto state = model->initial_state(batch_size);
    double sum = 0, norm = 0;
    int64_t steps = 0;
    for (int64_t begin = 0; begin + sequence_length <= columns; begin += sequence_length, ++steps) {
      // The state goes on, its history does not.
      state = {std::get<0>(state).detach(), std::get<1>(state).detach()};
      auto x = inputs.narrow(1, begin, sequence_length);
      auto y = targets.narrow(1, begin, sequence_length);
      auto [logits, next] = model->forward(x, state);
      state = next;
      auto loss = criterion(logits.reshape({-1, vocabulary.size()}), y.reshape(-1));
      optimizer.zero_grad();
      loss.backward();
      norm = torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
      optimizer.step();
      sum += loss.item<double>();
    }
    if (epoch % 3 == 0)
      std::printf("epoch %d loss %.4f perplexity %.3f norm %.3f\n", epoch, sum / double(steps),
                  std::exp(sum / double(steps)), norm);
  }
  std::cout << write(model, vocabulary, "the ", 12) << std::endl;
}
