// The state of a training: it goes on with the same bits, in every mode and from every step; a file that does not fit
// changes nothing, whatever is wrong with it; a file that Python has written; the state of generators.
//
// Not tested here: killed processes (tests/examples/resume_test.sh), the file format and failing writes
// (safetensors_file_test.cc), the states of single optimizers (tests/optim).
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>

#include "retrograd/retrograd.h"
#include "tests/errors.h"
#include "tests/test_folder.h"

namespace rg = retrograd;
namespace optim = retrograd::optim;
using rg::Category;
using rg::category_of;
using rg::StateDict;
using rg::Tensor;

namespace {

using Vector = std::vector<double>;

std::string path_of(const std::string& name) { return rg::testing::in_test_folder(name); }

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

struct Net : rg::nn::Module {
  rg::nn::Linear fc1{this, "fc1", 3, 8};
  rg::nn::Linear fc2{this, "fc2", 8, 1};
  rg::nn::Buffer seen{this, "seen", rg::zeros({1})};

  Tensor forward(const Tensor& x) {
    seen.add_(rg::ones({1}));
    return fc2(rg::dropout(rg::relu(fc1(x)), 0.25));
  }
};

// A training with every kind of state. Its batches and its dropout draw from the default generator.
class Training {
 public:
  enum class Mode : uint8_t { eager, traced, step };

  explicit Training(Mode mode) : mode_(mode) {
    rg::manual_seed(5);
    for (const Tensor& p : net.parameters()) p.detach().normal_();
    state.add("model", net)
        .add("optimizer", optimizer)
        .add("scheduler", scheduler)
        .add("plateau", plateau)
        .add("scaler", scaler)
        .add("ema", averaged)
        .add("generator", rg::default_generator())
        .add("hidden", hidden)
        .add("step", step)
        .add("best", best)
        .add("note", note)
        .require("seed", "5");
  }

  double operator()() {
    const Tensor x = rg::randn({4, 3});
    const double loss = (mode_ == Mode::step ? compiled_(x) : run(x)).item<double>();
    scheduler.step();
    plateau.step(loss);
    hidden.copy_(x.select(0, 0));
    best = std::min(best, loss);
    note = "after " + std::to_string(++step);
    return loss;
  }

  Net net;
  optim::AdamW optimizer{net.parameters(), {.lr = 0.1}};
  optim::SequentialLR scheduler{optimizer,
                                {std::make_shared<optim::LinearLR>(optimizer, 0.1, 1.0, 3),
                                 std::make_shared<optim::CosineAnnealingLR>(optimizer, 9)},
                                {3}};
  optim::ReduceLROnPlateau plateau{optimizer, {.patience = 2}};
  optim::GradScaler scaler{{.init_scale = 4, .growth_interval = 3}};
  optim::AveragedModel averaged{net, {.decay = 0.9}};
  Tensor hidden = rg::zeros({3});
  int64_t step = 0;
  double best = std::numeric_limits<double>::infinity();
  std::string note;
  rg::TrainingState state;

 private:
  Tensor run(const Tensor& x) {
    const Tensor loss = rg::mean(rg::square(net.forward(x) - 1));
    const Tensor scaled = scaler.scale(loss);
    if (mode_ == Mode::traced)
      traced_(scaled);
    else
      scaled.backward();
    scaler.step(optimizer), scaler.update();
    averaged.update_parameters();
    net.zero_grad();
    return loss;
  }

  using Step = std::function<Tensor(const Tensor&)>;
  const Mode mode_;
  rg::CompiledBackward traced_ = rg::compile_backward();
  rg::Compiled<Step> compiled_ = rg::compile_step(Step([this](const Tensor& x) { return run(x); }));
};

// The file's bytes are all state there is.
std::string state_of(const Training& training) {
  const std::string path = path_of("state");
  training.state.save(path);
  return bytes_of(path);
}

}  // namespace

TEST_CASE("training goes on with the same bits, in every mode and from every step") {
  using Mode = Training::Mode;
  const std::string path = path_of("whole");
  constexpr int kSteps = 8;
  Vector losses;
  std::string end;
  {
    Training whole(Mode::eager);
    for (int t = 0; t < kSteps; ++t) losses.push_back(whole());
    end = state_of(whole);
  }
  for (const Mode mode : {Mode::eager, Mode::traced, Mode::step})
    for (const int stop : {0, 1, 2, 3, 5, kSteps}) {
      INFO("mode " << static_cast<int>(mode) << ", stopped after " << stop);
      {
        Training first(mode);
        for (int t = 0; t < stop; ++t) CHECK(first() == losses[static_cast<size_t>(t)]);
        first.state.save(path);
      }
      Training second(mode);
      second();  // the state in which it is loaded does not matter, nor that the step is recorded
      rg::manual_seed(77);
      second.state.load(path);
      CHECK(second.step == stop);
      CHECK(second.note == (stop ? "after " + std::to_string(stop) : ""));
      for (int t = stop; t < kSteps; ++t) CHECK(second() == losses[static_cast<size_t>(t)]);
      CHECK(state_of(second) == end);
    }
}

TEST_CASE("what does not fit changes nothing, whatever is wrong with it") {
  const std::string path = path_of("other");
  Training saved(Training::Mode::eager);
  for (int t = 0; t < 4; ++t) saved();
  saved.state.save(path);
  rg::SafetensorsMetadata metadata;
  const StateDict tensors = rg::load(path, &metadata);
  const Tensor one = rg::ones({1});

  for (const int steps : {0, 1, 4}) {  // of the training that refuses the file
    Training training(Training::Mode::eager);
    for (int t = 0; t < steps; ++t) training();
    const std::string before = state_of(training);
    const auto refuses = [&](const std::string& text, auto change) {
      StateDict s = tensors;
      rg::SafetensorsMetadata m = metadata;
      change(s, m);
      rg::save(s, path, m);
      std::string message;
      try {
        training.state.load(path);
        message = "nothing was thrown";
      } catch (const rg::Exception& e) {
        message = e.what();
      }
      INFO(message);
      CHECK(message.find(text) != std::string::npos);
      CHECK(message.find(path) != std::string::npos);
      CHECK(state_of(training) == before);
    };
    using M = rg::SafetensorsMetadata;
    refuses("not the state of a training", [](StateDict&, M& m) { m.clear(); });
    refuses("version '2', this library reads version 1",
            [](StateDict&, M& m) { m["retrograd.training"] = "2"; });
    refuses("no value \"step\"", [](StateDict&, M& m) { m.erase("step"); });
    for (const char* wrong : {"", "4.5", "4 ", "99999999999999999999", "0x4"})
      refuses("which is not an int64", [&](StateDict&, M& m) { m["step"] = wrong; });
    refuses("which is not a number", [](StateDict&, M& m) { m["best"] = "low"; });
    refuses("\"seed\" is '6', here it is '5'", [](StateDict&, M& m) { m["seed"] = "6"; });
    refuses("part 'discriminator', which was not added",
            [&](StateDict& s, M&) { s["discriminator.weight"] = one; });
    refuses("no part \"generator\"", [](StateDict& s, M&) { s.erase("generator"); });
    refuses("no part \"scaler\"", [](StateDict& s, M&) {
      std::erase_if(s, [](const auto& entry) { return entry.first.starts_with("scaler."); });
    });
    // Found by the parts, in their order: what was loaded before is taken back.
    refuses("fc2.bias", [](StateDict& s, M&) { s.erase("model.fc2.bias"); });
    refuses("in part \"model\"", [&](StateDict& s, M&) { s["model.fc1.weight"] = one; });
    refuses("in part \"optimizer\"", [&](StateDict& s, M&) { s["optimizer.0.exp_avg"] = one; });
    refuses("in part \"optimizer\"", [&](StateDict& s, M&) { s["optimizer.0.other"] = one; });
    refuses("in part \"scheduler\"",
            [&](StateDict& s, M&) { s.erase("scheduler._schedulers.1.last_epoch"); });
    refuses("in part \"plateau\"", [&](StateDict& s, M&) { s.erase("plateau.best"); });
    refuses("in part \"ema\"", [&](StateDict& s, M&) { s["ema.module.fc1.weight"] = one; });
    refuses("in part \"generator\"", [&](StateDict& s, M&) { s["generator"] = one; });
    refuses("several in the file", [&](StateDict& s, M&) { s["generator.seed"] = one; });
    refuses("in part \"hidden\"", [&](StateDict& s, M&) { s["hidden"] = rg::ones({4}); });
  }
}

TEST_CASE("a file that ends early, at any byte, changes nothing") {
  const std::string path = path_of("short");
  const Tensor weight = rg::ones({2});
  int64_t step = 7;
  rg::TrainingState state;
  state.add("weight", weight).add("step", step);
  state.save(path);
  const std::string whole = bytes_of(path);
  weight.fill_(3), step = 8;
  for (size_t size = 0; size < whole.size(); ++size) {
    INFO("of " << whole.size() << " bytes " << size);
    write_bytes(path, whole.substr(0, size));
    CHECK_THROWS_AS(state.load(path), rg::FileError);
    CHECK(weight.to_vector() == Vector{3, 3});
    CHECK(step == 8);
  }
  write_bytes(path, whole);
  state.load(path);
  CHECK(weight.to_vector() == Vector{1, 1});
  CHECK(step == 7);
}

TEST_CASE("a file that cannot be written leaves the old file") {
  const std::string path = path_of("kept");
  std::string note = "old";
  rg::TrainingState state;
  state.add("note", note);
  state.save(path);
  const std::string before = bytes_of(path);
  note = "\xff";  // metadata are UTF-8
  CHECK_THROWS_AS(state.save(path), rg::FileError);
  CHECK(bytes_of(path) == before);
  CHECK_THROWS_AS(state.save(path + "/none"), rg::FileError);
  CHECK_THROWS_AS(state.load(path + "none"), rg::FileError);
}

TEST_CASE("numbers and texts are read back exactly") {
  const std::string path = path_of("values");
  const std::vector<double> numbers = {0.1, -0.0, 5e-324, 1.7976931348623157e308, INFINITY, -INFINITY};
  const std::string text = "line\nbreak \"and\" \xc3\xa9 ";
  for (const double number : numbers) {
    double d = number;
    int64_t i = std::numeric_limits<int64_t>::min();
    std::string s = text;
    rg::TrainingState state;
    state.add("d", d).add("i", i).add("s", s);
    state.save(path);
    d = 1, i = 2, s = "";
    state.load(path);
    CHECK((d == number && std::signbit(d) == std::signbit(number)));
    CHECK(i == std::numeric_limits<int64_t>::min());
    CHECK(s == text);
  }
}

TEST_CASE("a name is refused if it is empty, taken, or has a dot") {
  int64_t n = 0;
  const Tensor t = rg::ones({1});
  rg::TrainingState state;
  state.add("n", n).add("t", t);
  for (const char* name : {"", "n", "t", "a.b"}) {
    CHECK(category_of([&] { state.add(name, n); }) == Category::bad_argument);
    CHECK(category_of([&] { state.add(name, t); }) == Category::bad_argument);
    CHECK(category_of([&] { state.require(name, ""); }) == Category::bad_argument);
  }
}

TEST_CASE("one part of a file is what the model alone loads") {
  const std::string path = path_of("part");
  Training training(Training::Mode::eager);
  training();
  training.state.save(path);
  Net net;
  net.load_state_dict(rg::TrainingState::load_part(path, "model"));
  CHECK(net.fc1.weight.to_vector() == training.net.fc1.weight.to_vector());
  CHECK_THROWS_AS(rg::TrainingState::load_part(path, "step"), rg::FileError);
}

TEST_CASE("AdamW goes on from a file of Python's safetensors, after two steps of torch.optim.AdamW") {
  // Written by safetensors 0.8 from the state_dict()s of torch 2.15, by the function in docs/training.md.
  std::string header =
      R"({"__metadata__":{"retrograd.training":"1","step":"2"},)"
      R"("optimizer.param_groups.0.amsgrad":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("optimizer.param_groups.0.maximize":{"dtype":"I64","shape":[],"data_offsets":[8,16]},)"
      R"("optimizer.param_groups.0.betas":{"dtype":"F64","shape":[2],"data_offsets":[16,32]},)"
      R"("optimizer.param_groups.0.eps":{"dtype":"F64","shape":[],"data_offsets":[32,40]},)"
      R"("optimizer.param_groups.0.lr":{"dtype":"F64","shape":[],"data_offsets":[40,48]},)"
      R"("optimizer.param_groups.0.weight_decay":{"dtype":"F64","shape":[],"data_offsets":[48,56]},)"
      R"("model.bias":{"dtype":"F32","shape":[1],"data_offsets":[56,60]},)"
      R"("model.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[60,68]},)"
      R"("optimizer.0.exp_avg":{"dtype":"F32","shape":[1,2],"data_offsets":[68,76]},)"
      R"("optimizer.0.exp_avg_sq":{"dtype":"F32","shape":[1,2],"data_offsets":[76,84]},)"
      R"("optimizer.0.step":{"dtype":"F32","shape":[],"data_offsets":[84,88]},)"
      R"("optimizer.1.exp_avg":{"dtype":"F32","shape":[1],"data_offsets":[88,92]},)"
      R"("optimizer.1.exp_avg_sq":{"dtype":"F32","shape":[1],"data_offsets":[92,96]},)"
      R"("optimizer.1.step":{"dtype":"F32","shape":[],"data_offsets":[96,100]}}    )";
  constexpr unsigned char data[] = {
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xcd,
      0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xec, 0x3f, 0x2b, 0x87, 0x16, 0xd9, 0xce, 0xf7, 0xef, 0x3f, 0x3a, 0x8c,
      0x30, 0xe2, 0x8e, 0x79, 0x45, 0x3e, 0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f, 0x7b, 0x14, 0xae,
      0x47, 0xe1, 0x7a, 0x84, 0x3f, 0x44, 0x72, 0x99, 0x3e, 0xa1, 0x6a, 0x4c, 0x3f, 0x34, 0xee, 0xe5, 0xbf,
      0x1c, 0x0d, 0xc4, 0x3f, 0xa8, 0x35, 0x81, 0xbf, 0x8a, 0x18, 0x06, 0x3e, 0x32, 0x2f, 0x68, 0x3d, 0x00,
      0x00, 0x00, 0x40, 0x62, 0xa1, 0x1e, 0x3f, 0x6f, 0x48, 0xb0, 0x3c, 0x00, 0x00, 0x00, 0x40};
  const std::string path = path_of("python");
  const uint64_t size = header.size();
  write_bytes(path, std::string(reinterpret_cast<const char*>(&size), sizeof size) + header +
                        std::string(reinterpret_cast<const char*>(data), sizeof data));

  rg::nn::Linear net(nullptr, "net", 2, 1);
  optim::AdamW optimizer(net.parameters());
  int64_t step = 0;
  rg::TrainingState state;
  state.add("model", net).add("optimizer", optimizer).add("step", step);
  state.load(path);
  CHECK(step == 2);
  CHECK(optimizer.param_groups()[0].options.lr == 0.1);
  const Tensor x = rg::tensor({0.5, 1, 2, -1}, {2, 2});
  for (const double expected : {7.421378135681152, 6.080297470092773, 4.913300514221191}) {
    optimizer.zero_grad();
    const Tensor loss = rg::mean(rg::square(net(x)));
    CHECK(loss.item<double>() == Approx(expected).epsilon(1e-6));
    loss.backward();
    optimizer.step();
  }
  CHECK(net.weight.to_vector()[0] == Approx(0.5037052631378174).epsilon(1e-6));
  CHECK(net.weight.to_vector()[1] == Approx(-1.4951773881912231).epsilon(1e-6));
}

TEST_CASE("a generator's state is 16 bytes: seed and offset") {
  rg::Generator generator(0x0123456789abcdef);
  generator.reserve(258);
  const Tensor state = rg::get_rng_state(generator);
  CHECK(state.dtype() == rg::kUInt8);
  CHECK(state.to_vector() == Vector{0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 2, 1, 0, 0, 0, 0, 0, 0});
  rg::Generator other;
  rg::set_rng_state(state, other);
  CHECK(other.state() == generator.state());
  CHECK(category_of([&] { rg::set_rng_state(Tensor(), other); }) == Category::bad_argument);
  CHECK(category_of([&] { rg::set_rng_state(rg::zeros({16}), other); }) == Category::dtype_mismatch);
  CHECK(category_of([&] { rg::set_rng_state(rg::zeros({15}, {rg::kUInt8}), other); }) ==
        Category::shape_mismatch);
  CHECK(other.state() == generator.state());
}

TEST_CASE(
    "numbers drawn after set_rng_state are those drawn after get_rng_state, also in recorded functions") {
  rg::manual_seed(3);
  const auto f = rg::compile(std::function<Tensor(const Tensor&)>(
      [](const Tensor& x) { return rg::dropout(x, 0.5) + rg::rand({64}) + rg::randn({64}); }));
  const Tensor x = rg::ones({64});
  (void)f(x);
  const Tensor state = rg::get_rng_state();
  const Vector first = f(x).to_vector(), second = f(x).to_vector();
  CHECK(first != second);
  rg::manual_seed(4);
  rg::set_rng_state(state);
  CHECK(f(x).to_vector() == first);
  CHECK(f(x).to_vector() == second);
  CHECK(f.stats().captures == 1);
}
