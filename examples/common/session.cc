// See examples/common/session.h.
#include "examples/common/session.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "examples/common/program.h"
#include "io/atomic_file.h"

namespace examples {

namespace rg = retrograd;

namespace {

std::string megabytes(int64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6); }
// Shortest text that reads back as the same float.
std::string exact(double loss) { return fmt::format("{}", static_cast<float>(loss)); }

void write_file(const std::string& path, const std::string& text) {
  rg::AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace

Session::Session(const Options& options, const rg::nn::Module& model, int64_t items_per_step,
                 std::string unit)
    : options_(options),
      parameters_(model.parameter_count()),
      items_per_step_(items_per_step),
      unit_(std::move(unit)),
      saved_(options, model.parameters()),
      terminal_(::isatty(STDOUT_FILENO)) {}

rg::Tensor Session::forward(const std::function<rg::Tensor()>& f) {
  if (is_profiled(steps_ + 1)) profiling_.emplace(profile_);
  step_began_ = Clock::now();
  rg::memory::reset_peak();
  if (!saved_.hooks()) return f();
  rg::SavedTensorHooksGuard guard(saved_.hooks());
  return f();
}

void Session::backward(const rg::Tensor& loss) {
  if (!options_.is_traced()) return loss.backward();
  traced_(loss);
  if (steps_ == 0) show_graph();
}

void Session::update(const std::function<void()>& f) {
  const rg::ProfileRegion region("update");
  f();
}

void Session::show_graph() const {
  if (options_.print_graph) std::fputs(traced_.graph()->print().c_str(), stdout);
  if (!options_.dot.empty()) write_file(options_.dot, traced_.graph()->dot());
}

Session::~Session() { close_line(); }

void Session::close_line() {
  if (line_open_) std::fputc('\n', stdout);
  line_open_ = false;
}

void Session::print_line(const std::string& line, bool overwrite) {
  if (line_open_) std::fputs("\r\x1b[K", stdout);
  std::fputs(line.c_str(), stdout);
  line_open_ = terminal_ && overwrite;
  if (!line_open_) std::fputc('\n', stdout);
  if (std::fflush(stdout) != 0)
    throw rg::FileError(std::string("standard output: cannot write: ") + std::strerror(errno));
}

// The first step captures; where there is no other, it has to do.
bool Session::is_profiled(int64_t step) const {
  constexpr int64_t kProfiled = 5;
  return !options_.profile.empty() && (step > 1 || options_.steps == 1) && step <= 1 + kProfiled;
}

void Session::show_profile() {
  if (options_.profile.empty()) return;
  const std::string table = profile_.table();
  print_line("profile of some steps", false);
  print_line(table.substr(0, table.size() - 1), false);
  write_file(options_.profile + "/profile.txt", table);
  write_file(options_.profile + "/trace.json", profile_.chrome_trace());
  write_file(options_.profile + "/memory.svg", profile_.memory_svg());
}

void Session::step_done(int64_t step, double loss) {
  const double seconds = std::chrono::duration<double>(Clock::now() - step_began_).count();
  profiling_.reset();
  if (steps_++ == 0) first_step_seconds_ = seconds;
  total_seconds_ += seconds;
  seconds_since_line_ += seconds;
  ++steps_since_line_;
  last_loss_ = loss;
  const rg::memory::Stats memory = rg::memory::stats();
  peak_bytes_ = std::max(peak_bytes_, memory.peak_bytes);
  if (step % options_.log_every == 0 || step == 1 || step == options_.steps) {
    const double each = seconds_since_line_ / static_cast<double>(steps_since_line_);
    print_line(fmt::format("step {} loss {}  {:.0f} {}/s  {:.2f} ms/step  live {}  peak {}", step,
                           exact(loss), static_cast<double>(items_per_step_) / each, unit_, each * 1e3,
                           megabytes(memory.live_bytes), megabytes(peak_bytes_)),
               true);
    seconds_since_line_ = 0;
    steps_since_line_ = 0;
  }
  check_interrupted();
}

void Session::validation(double loss, const std::string& note) {
  last_validation_ = loss;
  close_line();
  print_line(fmt::format("val loss {}  {}", exact(loss), note), false);
  check_interrupted();
}

void Session::finish() {
  const rg::CompiledBackward::Stats stats = traced_.stats();
  const auto row = [&](const char* name, const std::string& value) {
    print_line(fmt::format("  {:<16}{}", name, value), false);
  };
  const auto traced = [&](int64_t count) {
    return options_.is_traced() ? fmt::format("{}", count) : std::string("-");
  };
  close_line();
  show_profile();
  print_line("summary", false);
  row("backward", options_.backward);
  row("saved", options_.saved);
  row("parameters", fmt::format("{}", parameters_));
  row("steps", fmt::format("{}", steps_));
  row("train loss", exact(last_loss_));
  row("val loss", exact(last_validation_));
  row("captures", traced(stats.captures));
  row("cache hits", traced(stats.hits));
  row("unpacks", traced(stats.unpacks));
  row("peak bytes", fmt::format("{} ({})", peak_bytes_, megabytes(peak_bytes_)));
  row("first step", fmt::format("{:.2f} ms", first_step_seconds_ * 1e3));
  row("ms/step", fmt::format("{:.2f}", total_seconds_ / static_cast<double>(steps_) * 1e3));
}

}  // namespace examples
