// Text classification: sentences as bags of words, an EmbeddingBag, batches that a data loader collates to one index
// with offsets.
#include <torch/torch.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "weights.h"

struct Sentence {
  std::vector<int64_t> words;
  int64_t label;
};

struct Bags {
  torch::Tensor words, offsets, labels;
};

class Reviews : public torch::data::datasets::Dataset<Reviews, Sentence> {
 public:
  Reviews() {
    const std::vector<std::pair<std::string, int64_t>> texts{{"a fine film with a warm heart", 1},
                                                             {"dull and slow from start to end", 0},
                                                             {"the best cast of the year", 1},
                                                             {"a waste of time and money", 0},
                                                             {"warm funny and full of heart", 1},
                                                             {"slow dull film", 0},
                                                             {"the cast is fine the end is the best", 1},
                                                             {"a poor start and a poor end", 0},
                                                             {"funny from start to end", 1},
                                                             {"money does not make the film", 0}};
    for (const auto& [text, label] : texts) sentences_.push_back({encode(text, true), label});
  }
  Sentence get(size_t index) override { return sentences_.at(index); }
  torch::optional<size_t> size() const override { return sentences_.size(); }

  std::vector<int64_t> encode(const std::string& text, bool grow = false) {
    std::istringstream in(text);
    std::vector<int64_t> words;
    for (std::string word; in >> word;) {
      if (grow) number_.emplace(word, static_cast<int64_t>(number_.size()));
      const auto found = number_.find(word);
      if (found != number_.end()) words.push_back(found->second);
    }
    return words;
  }
  int64_t vocabulary() const { return static_cast<int64_t>(number_.size()); }

 private:
  std::unordered_map<std::string, int64_t> number_;
  std::vector<Sentence> sentences_;
};

struct Collate : torch::data::transforms::Collation<Bags, std::vector<Sentence>> {
  Bags apply_batch(std::vector<Sentence> batch) override {
    std::vector<torch::Tensor> words;
    std::vector<int64_t> lengths{0}, labels;
    for (const auto& sentence : batch) {
      words.push_back(torch::tensor(sentence.words, torch::kInt64));
      lengths.push_back(static_cast<int64_t>(sentence.words.size()));
      labels.push_back(sentence.label);
    }
    lengths.pop_back();
    return {torch::cat(words), torch::tensor(lengths).cumsum(/*dim=*/0), torch::tensor(labels)};
  }
};

struct TextModelImpl : torch::nn::Module {
  TextModelImpl(int64_t vocabulary, int64_t width, int64_t classes)
      : bags(register_module(
            "bags",
            torch::nn::EmbeddingBag(torch::nn::EmbeddingBagOptions(vocabulary, width).mode(torch::kMean)))),
        peaks(register_module(
            "peaks",
            torch::nn::EmbeddingBag(torch::nn::EmbeddingBagOptions(vocabulary, width).mode(torch::kMax)))),
        fc(register_module("fc", torch::nn::Linear(2 * width, classes))) {
    init_weights();
  }
  void init_weights() {
    const double range = 0.5;
    torch::nn::init::uniform_(bags->weight, -range, range);
    torch::nn::init::constant_(fc->bias, 0);
  }
  torch::Tensor forward(const torch::Tensor& words, const torch::Tensor& offsets) {
    return fc(torch::hstack({bags(words, offsets), peaks(words, offsets)}));
  }
  torch::nn::EmbeddingBag bags, peaks;
  torch::nn::Linear fc;
};
TORCH_MODULE(TextModel);

int main() {
  Reviews reviews;
  const int64_t vocabulary = reviews.vocabulary();
  TextModel model(vocabulary, 6, 2);
  fill_parameters(*model, 0.5);
  std::printf("%ld words, %zu sentences\n", long(vocabulary), *reviews.size());

  auto dataset = reviews.map(Collate());
  auto loader = torch::data::make_data_loader(
      std::move(dataset), torch::data::samplers::SequentialSampler(*reviews.size()),
      torch::data::DataLoaderOptions().batch_size(4).workers(2).enforce_ordering(true));

  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(1.0));
  torch::optim::StepLR scheduler(optimizer, /*step_size=*/5, /*gamma=*/0.5);
  torch::nn::CrossEntropyLoss criterion;
  for (int epoch = 1; epoch <= 15; ++epoch) {
    model->train();
    float total = 0;
    int64_t right = 0, seen = 0;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      const auto output = model(batch.words, batch.offsets);
      const auto loss = criterion(output, batch.labels);
      loss.backward();
      torch::nn::utils::clip_grad_norm_(model->parameters(), 0.1);
      optimizer.step();
      total += loss.item<float>() * static_cast<float>(batch.labels.size(0));
      right += output.argmax(1).eq(batch.labels).sum().item().toLong();
      seen += batch.labels.size(0);
    }
    scheduler.step();
    if (epoch % 3 == 0)
      std::printf("epoch %d loss %.5f accuracy %.3f rate %.3f\n", epoch, total / float(seen),
                  double(right) / double(seen), optimizer.param_groups()[0].options().get_lr());
  }

  // A list of words, words weighted by their place, and a table that is given.
  torch::NoGradGuard no_grad;
  model->eval();
  for (const std::string text : {"a warm funny film", "slow and poor"}) {
    const auto words = torch::tensor(reviews.encode(text));
    const auto p = model(words, torch::zeros({1}, torch::kLong)).softmax(1)[0][1];
    std::printf("%s: %.4f\n", text.c_str(), p.item<float>());
  }
  namespace F = torch::nn::functional;
  const auto words = torch::tensor({{1, 4, 2}, {0, 3, 3}});
  const auto weighted = F::embedding_bag(
      words, model->bags->weight,
      F::EmbeddingBagFuncOptions()
          .mode(torch::kSum)
          .per_sample_weights(torch::tensor({{0.5, 0.25, 0.25}, {1.0, -0.5, 0.5}}, torch::kFloat)));
  auto frozen = torch::nn::EmbeddingBag::from_pretrained(
      model->bags->weight.clone(),
      torch::nn::EmbeddingBagFromPretrainedOptions().freeze(true).mode(torch::kSum));
  std::printf("weighted %.5f, frozen %.5f, %d\n", weighted.sum().item<float>(),
              frozen(words).sum().item<float>(), int(frozen->weight.requires_grad()));
}
