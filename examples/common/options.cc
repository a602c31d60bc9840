// See examples/common/options.h.
#include "examples/common/options.h"

#include <charconv>
#include <filesystem>
#include <string_view>

#include <CLI/CLI.hpp>

#include "io/atomic_file.h"

namespace examples {

namespace rg = retrograd;

namespace {

// CLI11 accepts an empty text as a path, and -1 or 2^64 as a number without a sign.
std::string path_problem(const std::string& text) { return text.empty() ? "a path is missing" : ""; }
std::string seed_problem(const std::string& text) {
  uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, seed);
  return error == std::errc() && next == end ? "" : '"' + text + "\" is not an integer from 0 to 2^64 - 1";
}

}  // namespace

void add_flags(CLI::App& app, Options& o) {
  app.add_option("--mode,--backward", o.mode,
                 "how a step runs: eagerly, its backward traced, forward and backward compiled, all of it")
      ->check(CLI::IsMember({"eager", "traced", "compiled", "step"}))
      ->capture_default_str();
  app.add_option("--saved", o.saved, "what is kept of the forward for the backward")
      ->check(CLI::IsMember({"keep", "half", "fp8", "offload", "offload-file"}))
      ->capture_default_str();
  if (o.can_recompute)
    app.add_option("--checkpoint", o.checkpoint,
                   "what the backward recomputes: nothing, each block, or what a policy does not save")
        ->check(CLI::IsMember({"none", "block", "policy=all", "policy=products", "policy=names"}))
        ->capture_default_str();
  app.add_option("--memory-budget", o.memory_budget,
                 "with --mode step: the part of the eager peak of memory that a step may add")
      ->check(CLI::Range(1e-3, 1.0));
  app.add_option("--pareto", o.pareto,
                 "with --memory-budget: file for the plans that it chooses from, a chart if it ends in .svg, "
                 "else JSON")
      ->check(path_problem);
  app.add_option("--offload-dir", o.offload_dir,
                 "folder of --saved offload-file; without it a private one, removed at exit")
      ->check(path_problem);
  app.add_option("--device", o.device, "where to compute: cpu, cuda or, of several devices, cuda:N")
      ->capture_default_str();
  app.add_option("--data", o.data, "file to train on; without it the one that comes with the example")
      ->check(path_problem);
  app.add_option("--save", o.save,
                 "safetensors file for all state of the training, written after the last step")
      ->check(path_problem);
  app.add_option("--checkpoint-every", o.checkpoint_every, "steps after which --save is written each time")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}));
  app.add_option("--resume", o.resume, "file of --save from which the training goes on, with the same losses")
      ->check(path_problem);
  app.add_flag("--auto-resume", o.auto_resume, "go on from the file of --save if there is one");
  app.add_option("--dot", o.dot,
                 "file for the graph, in Graphviz's language; with --mode compiled that of the backward")
      ->check(path_problem);
  app.add_option("--profile", o.profile,
                 "folder for a profile of some steps: a table, a Chrome trace, a chart of live memory")
      ->check(path_problem);
  app.add_flag("--print-graph", o.print_graph, "print the graphs of a step after the first one");
  app.add_option("--steps", o.steps, "training steps")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--log-every", o.log_every, "steps between two lines")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "seed of everything random")->check(seed_problem)->capture_default_str();
  app.add_option("--threads", o.threads, "threads to compute with; without it one for each processor")
      ->check(CLI::Range(1, 1024));
}

rg::Device Options::place() const {
  if (device == "cpu") return rg::kCPU;
  constexpr std::string_view kName = "cuda";
  std::string_view number = device;
  if (!number.starts_with(kName)) throw CLI::ValidationError("--device", device + " is neither cpu nor cuda");
  number.remove_prefix(kName.size());
  int8_t index = 0;
  if (!number.empty()) {
    const char* const end = number.data() + number.size();
    const auto [next, error] = std::from_chars(number.data() + 1, end, index);
    if (number[0] != ':' || error != std::errc() || next != end || index < 0)
      throw CLI::ValidationError("--device", device + ": use cuda:0, cuda:1 and so on");
  }
  try {
    rg::synchronize({rg::kCUDA, index});
  } catch (const rg::Exception& e) {
    throw CLI::ValidationError("--device", e.what());
  }
  return {rg::kCUDA, index};
}

void apply(const Options& o) {
  o.place();
  if (!o.has_graph() && (o.print_graph || !o.dot.empty()))
    throw CLI::ValidationError("--print-graph, --dot", "there is no graph with --mode eager");
  if (o.memory_budget > 0 && o.mode != "step")
    throw CLI::ValidationError("--memory-budget", "it needs --mode step");
  if (!o.pareto.empty() && o.memory_budget == 0)
    throw CLI::ValidationError("--pareto", "it needs --memory-budget");
  if (!o.offload_dir.empty()) {
    if (o.saved != "offload-file")
      throw CLI::ValidationError("--offload-dir", "it needs --saved offload-file");
    if (!std::filesystem::is_directory(o.offload_dir)) throw rg::FileError(o.offload_dir + ": not a folder");
  }
  if (o.save.empty() && (o.checkpoint_every > 0 || o.auto_resume))
    throw CLI::ValidationError("--checkpoint-every, --auto-resume", "they need --save");
  if (!o.resume.empty() && o.auto_resume)
    throw CLI::ValidationError("--resume, --auto-resume", "only one of them can say where to go on from");
  if (!o.profile.empty() && !std::filesystem::is_directory(o.profile))
    throw rg::FileError(o.profile + ": not a folder");
  // Checked now and not after the training: opens a temporary file in the same folder, and removes it.
  if (!o.save.empty()) rg::AtomicFile probe(o.save);
  if (!o.dot.empty()) rg::AtomicFile probe(o.dot);
  if (!o.pareto.empty()) rg::AtomicFile probe(o.pareto);
  if (o.threads > 0) rg::cpu::set_num_threads(o.threads);
  rg::manual_seed(o.seed);
}

}  // namespace examples
