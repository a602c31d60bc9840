// Trains a small network to read handwritten digits of 8 by 8 pixels, in about a second.
//
// Data: examples/data/digits.csv; see examples/common/digits.h. For a given seed all results are the same, bit for bit,
// for every --threads and --mode.
// Start reading at train(). The common code of all examples is in examples/common.
#include <fmt/format.h>

#include "examples/common/data_file.h"
#include "examples/common/digits.h"
#include "examples/common/program.h"
#include "examples/common/schedule.h"
#include "examples/common/session.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

using examples::kDigits, examples::kPixels;
constexpr int64_t kBatch = 64, kWidth = 128;

struct Net : rg::nn::Module {
  rg::nn::Linear fc1{this, "fc1", kPixels, kWidth};
  rg::nn::Linear fc2{this, "fc2", kWidth, kWidth};
  rg::nn::Linear fc3{this, "fc3", kWidth, kDigits};

  Tensor forward(const Tensor& x) const { return fc3(rg::relu(fc2(rg::relu(fc1(x))))); }
};

void train(const examples::Options& options) {
  const examples::Digits data(examples::find_data(options.data, "digits.csv"), options.place());
  Net net;
  net.to(options.place());
  rg::optim::AdamW optimizer(net.parameters(), {.lr = 3e-3});
  rg::optim::LambdaLR scheduler(optimizer, examples::warmup_cosine(20, options.steps, 0.01));
  const auto loss = [&](const Tensor& pixels, const Tensor& digits) {
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
  options.steps = 3000;
  options.log_every = 100;
  return examples::run_program(argc, argv, "Trains a small network to read handwritten digits.", options,
                               [&] { train(options); });
}
