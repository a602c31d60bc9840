// The cost of each op, forward and backward, separately: benchmarks/op_rows has the table.
//   ops [--threads N] [--filter TEXT] [--size N] [--dtype D] [--backward] [--factorisations] [--json] [--seconds S] [--device cpu|cuda]
// The filter is a part of the names of the wanted rows; --size selects one of the sizes of row.h, or 0 for the rows
// that have their own; --dtype replaces float32 for operands; --backward omits the forward passes; --factorisations
// measures only these, at many sizes, forward only. A figure has
//   op, inputs, n    the row, its operands (op_rows/row.h), the number of elements of a row without fixed sizes
//   pass             forward, with nothing recorded; or backward: the gradients of all operands that want one, of a
//                    graph that was just recorded, without the time of recording
//   us               median time
//   rate, unit       GF/s if arithmetic is the limit, else GB/s: the bytes that must be read and written once, which
//                    are operands and result forward, gradients of both backward
//   share            of the machine's limit, measured in this run: the multiplications and additions of all threads, or
//                    a copy of as many bytes; more than 1 when a cache holds more than in the copy. Arithmetic is
//                    compared with that of float32
//   dnn              1 where the vendor's library computed convolutions on the device (RETROGRAD_CUDA_DNN)
//   solver           1 where it factored matrices (RETROGRAD_CUDA_SOLVER)
// A table for people, or with --json a line of JSON per figure. Medians; the sides of a comparison must alternate on a
// shared machine (benchmarks/peers/compare_ops.py does).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "benchmarks/common/line.h"
#include "benchmarks/common/program.h"
#include "benchmarks/op_rows/measure.h"
#include "benchmarks/op_rows/row.h"

namespace bench {
namespace {

struct Options {
  int threads = rg::cpu::get_num_threads();
  std::string filter, dtype = "float32";
  int64_t size = -1;  // all
  bool backward_only = false, factorisations = false, json = false;
  double seconds = 0.05;
};

double bytes_of(const rg::Tensor& x) {
  return static_cast<double>(x.numel()) * static_cast<double>(rg::element_size(x.dtype()));
}

rg::ScalarType dtype_of(const std::string& name) {
  if (name == "float64") return rg::kFloat64;
  if (name == "bfloat16") return rg::kBFloat16;
  return name == "float16" ? rg::kFloat16 : rg::kFloat32;
}

/// Median seconds, and whether convolutions and factorisations were computed by the device's libraries.
struct Figure {
  double seconds;
  bool by_dnn, by_solver;
};

/// A row, measured at its sizes.
class Measured {
 public:
  Measured(const Options& options, const Meter& meter, const Row& row)
      : options_(options), meter_(meter), row_(row) {}

  void forward(int64_t n) const {
    const Operands operands = make(n, false);
    double bytes = bytes_of(row_.forward(operands));
    for (const rg::Tensor& x : operands) bytes += bytes_of(x);
    const Work work{[](int64_t) {}, [&](int64_t) { row_.forward(operands); }};
    print(n, "forward", measure(work), bytes, row_.flops);
  }

  void backward(int64_t n) const {
    const Operands operands = make(n, true);
    rg::Tensors wanted;
    for (const rg::Tensor& x : operands)
      if (x.requires_grad()) wanted.push_back(x);
    if (wanted.empty()) return;
    const rg::Tensor cotangent = rg::randn_like(row_.forward(operands).detach());
    double bytes = bytes_of(cotangent);
    for (const rg::Tensor& x : wanted) bytes += bytes_of(x);
    rg::Tensors results;
    const Work work{
        [&](int64_t count) {
          results.clear();
          for (int64_t i = 0; i < count; ++i) results.push_back(row_.forward(operands));
        },
        [&](int64_t i) { rg::autograd::grad({results[static_cast<size_t>(i)]}, wanted, {cotangent}); }};
    const double flops = row_.flops * static_cast<double>(wanted.size() > 1 ? 2 : 1);
    print(n, "backward", measure(work), bytes, flops);
  }

 private:
  Operands make(int64_t n, bool gradients) const {
    return make_operands(row_, n, gradients, meter_.place().device(), dtype_of(options_.dtype));
  }

  Figure measure(const Work& work) const {
    const Place& place = meter_.place();
    const int64_t convolutions = place.library_convolutions(),
                  factorisations = place.library_factorisations();
    const double seconds = meter_.median_seconds(work, options_.seconds);
    return {seconds, place.library_convolutions() > convolutions,
            place.library_factorisations() > factorisations};
  }

  void print(int64_t n, const char* pass, Figure figure, double bytes, double flops) const {
    const double seconds = figure.seconds;
    const double rate = (flops > 0 ? flops : bytes) / seconds / 1e9;
    const double limit = (flops > 0 ? meter_.peak_flops() : meter_.copy_rate(bytes)) / 1e9;
    const char* unit = flops > 0 ? "GF/s" : "GB/s";
    if (options_.json) {
      Line()
          .text("op", row_.name)
          .text("inputs", row_.inputs)
          .count("n", n)
          .text("pass", pass)
          .text("dtype", options_.dtype)
          .text("device", meter_.place().name())
          .count("threads", options_.threads)
          .number("us", seconds * 1e6, 3)
          .number("rate", rate, 3)
          .text("unit", unit)
          .number("share", rate / limit, 3)
          .count("dnn", figure.by_dnn)
          .count("solver", figure.by_solver)
          .print();
      return;
    }
    const std::string inputs(row_.inputs), name(row_.name);
    std::printf("%-22s %-8s %9lld %13.2f us %9.2f %s %6.1f %%   %s\n", name.c_str(), pass,
                static_cast<long long>(n), seconds * 1e6, rate, unit, 100 * rate / limit, inputs.c_str());
    std::fflush(stdout);
  }

  const Options& options_;
  const Meter& meter_;
  const Row& row_;
};

// Returns whether the machine could run it.
bool measure(const Options& options, const Meter& meter, const Row& row) {
  const Measured measured(options, meter, row);
  for (const int64_t n : kSizes) {
    const int64_t size = is_scaled(row) ? n : 0;
    if (options.size >= 0 && options.size != size) continue;
    try {
      if (!options.backward_only) measured.forward(size);
      if (!options.factorisations) measured.backward(size);
    } catch (const rg::Error& e) {  // a device may have no kernel for an op
      std::fprintf(stderr, "%s: %s\n", std::string(row.name).c_str(), e.what());
      return true;
    } catch (const rg::RuntimeError& e) {  // or not enough memory
      std::fprintf(stderr, "%s: %s\n", std::string(row.name).c_str(), e.what());
      return false;
    }
    if (size == 0) return true;
  }
  return true;
}

void measure_all(const Options& options, const Meter& meter) {
  using Families = std::vector<Table (*)()>;
  const Families all = {elementwise_rows, special_rows, reduction_rows, row_rows, index_rows, layout_rows,
                        window_rows, matrix_rows, decomposition_rows, scatter_rows, statistics_rows, nn_rows};
  int missing = 0;
  for (const auto family : options.factorisations ? Families{factorisation_rows} : all)
    for (const Row& row : family())
      if (row.name.find(options.filter) != std::string_view::npos) missing += !measure(options, meter, row);
  if (missing) throw std::runtime_error(std::to_string(missing) + " rows were not measured");
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  CLI::App app("Time of each op, forward and backward, compared with the machine's limits");
  app.add_option("--threads", options.threads, "threads to use")->check(CLI::Range(1, 1024));
  app.add_option("--filter", options.filter, "a part of the names of the ops to measure");
  app.add_option("--size", options.size, "one size only; 0: the rows with their own");
  app.add_option("--dtype", options.dtype, "what operands have in place of float32")
      ->check(CLI::IsMember({"float32", "float64", "float16", "bfloat16"}));
  app.add_flag("--backward", options.backward_only, "no forward passes");
  app.add_flag("--factorisations", options.factorisations, "factorisations of many sizes alone, forward")
      ->excludes("--backward");
  app.add_flag("--json", options.json, "a line of JSON for each figure, no table");
  app.add_option("--seconds", options.seconds, "time spent on a figure")->check(CLI::PositiveNumber);
  return bench::run_program(app, argc, argv, [&](const bench::Place& place) {
    retrograd::cpu::set_num_threads(options.threads);
    bench::measure_all(options, bench::Meter(place));
  });
}
