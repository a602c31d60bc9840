// See examples/common/options.h.
#include "examples/common/options.h"

#include <filesystem>

#include "cuda/device.h"
#include "io/atomic_file.h"
#include "retrograd/retrograd.h"

namespace examples {

namespace rg = retrograd;

void add_flags(CLI::App& app, Options& o) {
  app.add_option(
         "--mode,--backward", o.mode,
         "how a step runs: as it stands, its backward traced, forward and backward compiled, all of it")
      ->check(CLI::IsMember({"eager", "traced", "compiled", "step"}))
      ->capture_default_str();
  app.add_option("--saved", o.saved, "what is kept of the forward for the backward")
      ->check(CLI::IsMember({"keep", "half", "fp8", "offload-file"}))
      ->capture_default_str();
  app.add_option("--offload-dir", o.offload_dir,
                 "folder of --saved offload-file; without it a private one, removed at exit");
  app.add_option("--device", o.device, "where to compute")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--data", o.data, "file to train on; without it the one that comes with the example");
  app.add_option("--save", o.save, "safetensors file for the parameters");
  app.add_option("--dot", o.dot,
                 "file for the graph, in Graphviz's language; with --mode compiled that of the backward");
  app.add_option("--profile", o.profile,
                 "folder for a profile of some steps: a table, a Chrome trace, a chart of live memory");
  app.add_flag("--print-graph", o.print_graph, "print the graphs of a step after the first one");
  app.add_option("--steps", o.steps, "training steps")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--log-every", o.log_every, "steps between two lines")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "seed of everything random")->capture_default_str();
  app.add_option("--threads", o.threads, "threads to compute with; without it one for each processor")
      ->check(CLI::Range(1, 1024));
}

namespace {

void check_device(const std::string& device) {
  if (device == "cpu") return;
  if (rg::cuda::device_count() == 0)
    throw CLI::ValidationError("--device cuda", rg::cuda::unavailable_reason());
  throw CLI::ValidationError("--device cuda", "the examples compute on the CPU only");
}

}  // namespace

void apply(const Options& o) {
  check_device(o.device);
  if (!o.has_graph() && (o.print_graph || !o.dot.empty()))
    throw CLI::ValidationError("--print-graph, --dot", "there is no graph with --mode eager");
  if (!o.offload_dir.empty()) {
    if (o.saved != "offload-file")
      throw CLI::ValidationError("--offload-dir", "it needs --saved offload-file");
    if (!std::filesystem::is_directory(o.offload_dir)) throw rg::FileError(o.offload_dir + ": not a folder");
  }
  if (!o.profile.empty() && !std::filesystem::is_directory(o.profile))
    throw rg::FileError(o.profile + ": not a folder");
  // Better now than after the training: opens a temporary file beside the path, and removes it.
  if (!o.save.empty()) rg::AtomicFile probe(o.save);
  if (!o.dot.empty()) rg::AtomicFile probe(o.dot);
  if (o.threads > 0) rg::cpu::set_num_threads(o.threads);
  rg::manual_seed(o.seed);
}

}  // namespace examples
