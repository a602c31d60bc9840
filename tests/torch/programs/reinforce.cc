// Reinforcement learning: actor and critic balance a pole on a cart, with one update an episode.
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <vector>

#include "weights.h"

// Random numbers that every standard library has in common.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  double uniform() {  // in [0, 1)
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

// The cart pole of Barto, Sutton and Anderson (1983), by Euler steps of 20 ms.
class CartPole {
 public:
  explicit CartPole(Random& random) : random_(random) { reset(); }

  torch::Tensor reset() {
    for (double& value : state_) value = random_.uniform() * 0.1 - 0.05;
    return observation();
  }
  // Pushes to the left (0) or to the right (1); false when the pole has fallen.
  bool step(int64_t action) {
    const double force = action == 1 ? 10 : -10, cosine = std::cos(angle()), sine = std::sin(angle());
    const double half = 0.5, pole = 0.1, total = 1.1;
    const double push = (force + pole * half * spin() * spin() * sine) / total;
    const double turn = (9.8 * sine - cosine * push) / (half * (4.0 / 3 - pole * cosine * cosine / total));
    const double acceleration = push - pole * half * turn * cosine / total;
    const double rates[4] = {state_[1], acceleration, state_[3], turn};
    for (int i = 0; i < 4; ++i) state_[i] += 0.02 * rates[i];
    return std::abs(state_[0]) < 2.4 && std::abs(angle()) < 0.2095;
  }
  torch::Tensor observation() const {
    return torch::tensor({state_[0], state_[1], state_[2], state_[3]}).to(torch::kFloat);
  }

 private:
  double angle() const { return state_[2]; }
  double spin() const { return state_[3]; }

  Random& random_;
  double state_[4] = {};
};

struct ActorCriticImpl : torch::nn::Module {
  ActorCriticImpl() {
    body = register_module("body", torch::nn::Linear(4, 32));
    actor = register_module("actor", torch::nn::Linear(32, 2));
    critic = register_module("critic", torch::nn::Linear(32, 1));
  }
  std::pair<torch::Tensor, torch::Tensor> forward(torch::Tensor x) {
    x = body->forward(x).tanh();
    return std::make_pair(torch::softmax(actor->forward(x), -1), critic->forward(x).squeeze(-1));
  }
  torch::nn::Linear body{nullptr}, actor{nullptr}, critic{nullptr};
};
TORCH_MODULE(ActorCritic);

struct Episode {
  std::vector<torch::Tensor> log_probs, values;
  std::vector<float> rewards;

  void clear() {
    log_probs.clear();
    values.clear();
    rewards.clear();
  }
};

static void play(ActorCritic& model, CartPole& pole, Random& random, Episode& episode) {
  auto observation = pole.reset();
  for (int t = 0; t < 60; ++t) {
    auto [probabilities, value] = model->forward(observation);
    const int64_t action = random.uniform() < probabilities[1].item<double>() ? 1 : 0;
    episode.log_probs.push_back(probabilities[action].log());
    episode.values.push_back(value);
    const bool up = pole.step(action);
    episode.rewards.push_back(1);
    if (!up) break;
    observation = pole.observation();
  }
}

// Sums of later rewards, each step worth a little less, brought to mean 0 and deviation 1.
static torch::Tensor returns_of(const Episode& episode, double gamma = 0.99) {
  std::vector<float> returns(episode.rewards.size());
  double sum = 0;
  for (size_t i = returns.size(); i-- > 0;)
    returns[i] = static_cast<float>(sum = episode.rewards[i] + gamma * sum);
  const auto all = torch::tensor(returns);
  return (all - all.mean()) / (all.std() + 1e-6);
}

int main() {
  torch::manual_seed(543);
  Random random(7);
  CartPole pole(random);
  ActorCritic model;
  fill_parameters(*model, 0.2);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2).amsgrad(true));

  Episode episode;
  double running = 10;
  for (int number = 1; number <= 40; ++number) {
    episode.clear();
    play(model, pole, random, episode);

    const auto returns = returns_of(episode);
    const auto log_probs = torch::stack(episode.log_probs), values = torch::stack(episode.values);
    const auto advantage = returns - values.detach();
    auto policy_loss = -(log_probs * advantage).sum();
    auto value_loss = torch::smooth_l1_loss(values, returns, torch::Reduction::Sum);
    auto loss = policy_loss + value_loss;
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();

    running = 0.05 * double(episode.rewards.size()) + 0.95 * running;
    if (number % 8 == 0)
      std::printf("episode %d length %zu running %.3f loss %.4f\n", number, episode.rewards.size(), running,
                  loss.item<float>());
  }
}
