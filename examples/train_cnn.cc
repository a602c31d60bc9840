// Trains a small convolutional network to read handwritten digits of 8 by 8 pixels, in a few seconds: two convolutions,
// each followed by a relu and a pooling layer, and two linear layers.
//
// Data: examples/data/digits.csv; see examples/common/digits.h. For a given seed all results are the same, bit for bit,
// for every --threads and --mode.
// Start reading at train(). The common code of all examples is in examples/common; train_digits has the same task for
// linear layers.
#include <fmt/format.h>

#include "examples/common/data_file.h"
#include "examples/common/digits.h"
#include "examples/common/program.h"
#include "examples/common/schedule.h"
#include "examples/common/session.h"
#include "examples/recomputation.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

using examples::kDigits, examples::kSide;
constexpr int64_t kBatch = 64, kChannels = 16, kWidth = 64;

// Images [n, 64] -> scores [n, 10]. The sides shrink from 8 to 4 to 2 pixels, the channels grow.
struct Net : rg::nn::Module {
  rg::nn::Conv2d conv1{this, "conv1", 1, kChannels, 3, {.padding = 1}};
  rg::nn::Conv2d conv2{this, "conv2", kChannels, 2 * kChannels, 3, {.padding = 1}};
  rg::nn::MaxPool2d pool{this, "pool", 2};
  rg::nn::Linear fc1{this, "fc1", 2 * kChannels*(kSide / 4) * (kSide / 4), kWidth};
  rg::nn::Linear fc2{this, "fc2", kWidth, kDigits};
  examples::Recomputation recomputation;

  Tensor forward(const Tensor& pixels) const {
    const auto block1 = [this](const Tensor& x) { return pool(rg::relu(conv1(x))); };
    const auto block2 = [this](const Tensor& x) { return pool(rg::relu(conv2(x))); };
    const Tensor half = recomputation.block(block1, pixels.view({-1, 1, kSide, kSide}));
    const Tensor quarter = recomputation.block(block2, half);
    return fc2(rg::relu(fc1(rg::flatten(quarter, 1))));
  }
};

void train(const examples::Options& options) {
  const examples::Digits data(examples::find_data(options.data, "digits.csv"), options.place());
  Net net;
  net.to(options.place());
  net.recomputation = examples::Recomputation(options.checkpoint);
  rg::optim::AdamW optimizer(net.parameters(), {.lr = 3e-3});
  rg::optim::LambdaLR scheduler(optimizer, examples::warmup_cosine(20, options.steps, 0.01));
  const auto loss = [&](const Tensor& pixels, const Tensor& digits) {
    const auto scope = net.recomputation.scope();
    return rg::cross_entropy(net.forward(pixels), digits);
  };
  rg::TrainingState state;
  state.add("model", net).add("optimizer", optimizer).add("scheduler", scheduler);
  examples::Session session(options, net, kBatch, "images", {loss, [&] { optimizer.step(); }},
                            std::move(state));
  const auto validate = [&] {
    rg::NoGradGuard no_grad;
    const examples::Marks marks = examples::marks(net.forward(data.test.pixels), data.test.digits);
    session.validation(marks.loss, fmt::format("accuracy {:.2f} % of {} held-out digits",
                                               100 * marks.accuracy, data.test.size()));
  };

  while (session.next()) {
    const examples::Images batch = data.training.rows(rg::randint(0, data.training.size(), {kBatch}));
    session.step(batch.pixels, batch.digits);
    scheduler.step();
    if (session.is_time(500)) validate();
  }
  validate();
  session.finish();
}

}  // namespace

int main(int argc, char** argv) {
  examples::Options options;
  options.can_recompute = true;
  options.steps = 1500;
  options.log_every = 100;
  return examples::run_program(argc, argv, "Trains a convolutional network to read handwritten digits.",
                               options, [&] { train(options); });
}
