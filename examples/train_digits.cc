// Trains a small network to read handwritten digits of 8 by 8 pixels, in about a second.
//
// Data: examples/data/digits.csv, one image a line: 64 pixels from 0 to 16, then the digit. The lines are shuffled by the seed and the last
// fifth is held out. Everything is the same, bit for bit, for the same seed, whatever --threads and --backward say.
// Start reading at train(). What all examples share is in examples/common.
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "examples/common/data_file.h"
#include "examples/common/program.h"
#include "examples/common/session.h"
#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;

namespace {

constexpr int64_t kPixels = 64, kDigits = 10, kBatch = 64, kWidth = 128;

struct Net : rg::nn::Module {
  rg::nn::Linear fc1{this, "fc1", kPixels, kWidth};
  rg::nn::Linear fc2{this, "fc2", kWidth, kWidth};
  rg::nn::Linear fc3{this, "fc3", kWidth, kDigits};

  Tensor forward(const Tensor& x) const { return fc3(rg::relu(fc2(rg::relu(fc1(x))))); }
};

struct Images {
  Tensor pixels;  // float32 [n, 64] from 0 to 1
  Tensor digits;  // int64 [n]
  int64_t size() const { return digits.size(0); }
  Images rows(const Tensor& index) const {
    return {rg::index_select(pixels, 0, index), rg::index_select(digits, 0, index)};
  }
};

// Appends the numbers of one line; false when it is not 64 pixels and a digit.
bool parse_line(const char* at, const char* end, std::vector<double>& pixels, std::vector<double>& digits) {
  for (int64_t i = 0; i <= kPixels; ++i) {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < 0 || value > (i < kPixels ? 16 : 9)) return false;
    if (i < kPixels && (next == end || *next != ',')) return false;
    if (i < kPixels)
      pixels.push_back(value / 16.0);
    else
      digits.push_back(value);
    at = i < kPixels ? next + 1 : next;
  }
  return at == end || (*at == '\r' && at + 1 == end);
}

Images read_images(const std::string& path) {
  const std::string text = examples::read_file(path);
  std::vector<double> pixels, digits;
  size_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    ++line;
    if (!parse_line(text.data() + begin, text.data() + end, pixels, digits))
      throw rg::FileError(fmt::format("{}:{}: 64 pixels from 0 to 16 and a digit wanted", path, line));
    begin = end + 1;
  }
  const auto count = static_cast<int64_t>(digits.size());
  if (count < 10) throw rg::FileError(fmt::format("{}: {} images, at least 10 are needed", path, count));
  return {rg::tensor(pixels, {count, kPixels}), rg::tensor(digits, {count}, {rg::kInt64})};
}

// The images, and each moved by a pixel to the left, right, up and down: where a digit lies says nothing about which one it is.
Images with_moved(const Images& images) {
  const Tensor square = images.pixels.view({-1, 8, 8});
  rg::Tensors pixels{images.pixels}, digits{images.digits};
  for (int64_t dim : {1, 2})
    for (int64_t from : {0, 1}) {  // what is kept: the first or the last seven rows or columns
      const Tensor kept = square.narrow(dim, from, 7), empty = rg::zeros_like(square.narrow(dim, 0, 1));
      pixels.push_back(
          rg::cat(from ? rg::Tensors{kept, empty} : rg::Tensors{empty, kept}, dim).view({-1, kPixels}));
      digits.push_back(images.digits);
    }
  return {rg::cat(pixels, 0), rg::cat(digits, 0)};
}

struct Result {
  double loss, accuracy;
};

Result evaluate(const Net& net, const Images& images) {
  rg::NoGradGuard no_grad;
  const Tensor scores = net.forward(images.pixels);
  const Tensor right = rg::eq(rg::argmax(scores, 1), images.digits);
  return {rg::cross_entropy(scores, images.digits).item<double>(),
          static_cast<double>(rg::count_nonzero(right).item<int64_t>()) / static_cast<double>(images.size())};
}

void train(const examples::Options& options) {
  const Images all = read_images(examples::find_data(options.data, "digits.csv"));
  const Tensor order = rg::argsort(rg::rand({all.size()}));
  const int64_t held_out = all.size() / 5, count = all.size() - held_out;
  const Images training = with_moved(all.rows(order.narrow(0, 0, count))),
               test = all.rows(order.narrow(0, count, held_out));

  Net net;
  rg::optim::AdamW optimizer(net.parameters(), {.lr = 3e-3});
  const rg::optim::CosineSchedule schedule{.peak = 3e-3, .final = 3e-5, .warmup = 20, .steps = options.steps};
  examples::Session session(options, net, kBatch, "images");
  const auto validate = [&] {
    const Result result = evaluate(net, test);
    session.validation(result.loss, fmt::format("accuracy {:.2f} % of {} held-out digits",
                                                100 * result.accuracy, test.size()));
  };

  for (int64_t step = 1; step <= options.steps; ++step) {
    optimizer.set_lr(schedule.at(step - 1));
    optimizer.zero_grad();
    const Images batch = training.rows(rg::randint(0, training.size(), {kBatch}));
    const Tensor loss =
        session.forward([&] { return rg::cross_entropy(net.forward(batch.pixels), batch.digits); });
    session.backward(loss);
    optimizer.step();
    session.step_done(step, loss.item<double>());
    if (step % 500 == 0 && step < options.steps) validate();
  }
  validate();
  if (!options.save.empty()) rg::save(net.state_dict(), options.save);
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
