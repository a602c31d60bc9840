// See examples/common/session.h.
#include "examples/common/session.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

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

// Number of steps in which the peaks of plans are compared with their predictions.
constexpr int64_t kWatched = 3;

}  // namespace

Session::Session(const Options& options, rg::nn::Module& model, int64_t items_per_step, std::string unit,
                 TrainingStep::Parts parts, rg::TrainingState state)
    : options_(options),
      place_(options.place()),
      parameters_(model.parameter_count()),
      items_per_step_(items_per_step),
      unit_(std::move(unit)),
      saved_(options, model.parameters()),
      step_(
          options.mode, model, std::move(parts), saved_.hooks(),
          options.memory_budget > 0 ? rg::MemoryBudget::fraction(options.memory_budget) : rg::MemoryBudget()),
      state_(std::move(state)),
      terminal_(::isatty(STDOUT_FILENO)) {
  state_.add("generator", rg::default_generator())
      .add("step", steps_)
      .require("seed", fmt::format("{}", options.seed));
  resume();
}

void Session::resume() {
  const bool from_save = options_.auto_resume && std::filesystem::exists(options_.save);
  const std::string& path = from_save ? options_.save : options_.resume;
  if (path.empty()) return;
  state_.load(path);
  if (steps_ < 0 || steps_ > options_.steps)
    throw rg::FileError(
        fmt::format("{}: the training is at step {}, --steps are {}", path, steps_, options_.steps));
  steps_before_ = steps_;
  print_line(fmt::format("resumed after step {}", steps_), false);
}

bool Session::next() {
  const bool is_due =
      options_.checkpoint_every > 0 && steps_here() > 0 && steps_ % options_.checkpoint_every == 0;
  const bool is_last = steps_ == options_.steps;
  if (!options_.save.empty() && (is_due || is_last)) state_.save(options_.save);
  return !is_last;
}

void Session::step(const rg::Tensor& input, const rg::Tensor& target) {
  std::optional<rg::ProfileScope> profiling;
  if (is_profiled()) profiling.emplace(profile_);
  std::optional<rg::PeakMeter> watch;
  if (steps_here() < kWatched) watch.emplace();
  const Clock::time_point begin = Clock::now();
  rg::memory::reset_peak(place_);
  const double loss = step_(input.to(place_), target.to(place_)).item<double>();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  profiling.reset();
  if (watch) watched_.add(watch->report());
  ++steps_;
  if (steps_here() == 1) {
    first_step_seconds_ = seconds;
    show_graphs();
    write_plans();
  }
  step_done(loss, seconds);
}

void Session::show_graphs() const {
  const auto graphs = step_.graphs();
  if (options_.print_graph)
    for (const auto& graph : graphs) std::fputs(graph->print().c_str(), stdout);
  if (!options_.dot.empty() && !graphs.empty()) write_file(options_.dot, graphs.back()->dot());
}

void Session::write_plans() const {
  if (options_.pareto.empty()) return;
  const rg::MemoryReport memory = step_.memory();
  write_file(options_.pareto, options_.pareto.ends_with(".svg") ? memory.svg() : memory.json());
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

// The first step captures; it is profiled only when there is no other.
bool Session::is_profiled() const {
  constexpr int64_t kProfiled = 5;
  const bool is_only = options_.steps - steps_before_ == 1;
  return !options_.profile.empty() && (steps_here() > 0 || is_only) && steps_here() <= kProfiled;
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

void Session::step_done(double loss, double seconds) {
  total_seconds_ += seconds;
  seconds_since_line_ += seconds;
  ++steps_since_line_;
  last_loss_ = loss;
  peak_bytes_ = std::max(peak_bytes_, rg::memory::peak_bytes(place_));
  if (steps_ % options_.log_every == 0 || steps_ == 1 || steps_ == options_.steps) {
    const double each = seconds_since_line_ / static_cast<double>(steps_since_line_);
    print_line(fmt::format("step {} loss {}  {:.0f} {}/s  {:.2f} ms/step  live {}  peak {}", steps_,
                           exact(loss), static_cast<double>(items_per_step_) / each, unit_, each * 1e3,
                           megabytes(rg::memory::live_bytes(place_)), megabytes(peak_bytes_)),
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
  const TrainingStep::Stats stats = step_.stats();
  const auto row = [&](const char* name, const std::string& value) {
    print_line(fmt::format("  {:<16}{}", name, value), false);
  };
  const auto count = [](int64_t n) { return n < 0 ? std::string("-") : fmt::format("{}", n); };
  close_line();
  show_profile();
  print_line("summary", false);
  row("device", rg::to_string(place_));
  row("mode", options_.mode);
  row("saved", saved_.description());
  if (options_.can_recompute) row("checkpoint", options_.checkpoint);
  if (const rg::MemoryReport m = step_.memory(); m.planned_bytes > 0)
    row("memory budget", fmt::format("{} of {} bytes, {:.1f} % computed again", m.planned_bytes,
                                     m.budget_bytes, 100 * m.recomputed_share));
  // A compiled function is not counted: its recomputation is part of its plans.
  const bool counts = options_.mode == "eager" || options_.mode == "traced";
  if (const rg::RecomputeStats s = rg::recompute_stats(); counts && s.calls > 0)
    row("recomputed",
        fmt::format("{:.0f} % of the calls in regions",
                    100 * static_cast<double>(s.calls_recomputed) / static_cast<double>(s.calls)));
  row("parameters", fmt::format("{}", parameters_));
  row("steps", fmt::format("{}", steps_));
  row("train loss", steps_here() > 0 ? exact(last_loss_) : "-");
  row("val loss", exact(last_validation_));
  row("captures", count(stats.captures));
  row("cache hits", count(stats.hits));
  row("unpacks", count(stats.unpacks));
  row("peak bytes", fmt::format("{} ({})", peak_bytes_, megabytes(peak_bytes_)));
  const auto planned = [&](int64_t n) { return watched_.runs ? fmt::format("{}", n) : std::string("-"); };
  row("planned peak", planned(watched_.planned_bytes));
  row("met", watched_.differing ? fmt::format("not in {} of {} runs", watched_.differing, watched_.runs)
                                : planned(watched_.measured_bytes));
  row("in hooks", planned(watched_.hook_bytes));
  if (!(place_ == rg::kCPU)) row("kernel scratch", planned(watched_.scratch_bytes));
  if (steps_here() == 0) return;
  row("first step", fmt::format("{:.2f} ms", first_step_seconds_ * 1e3));
  row("ms/step", fmt::format("{:.2f}", total_seconds_ / static_cast<double>(steps_here()) * 1e3));
}

}  // namespace examples
