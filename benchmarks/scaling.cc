// How time grows with the number of things that a program may have many of: from 10^3 to 10^6, or to --most. If it is
// proportional, the figures of one row are similar.
//   scaling [--most N] [ROW...]
// Prints a JSON line for each row and number: row, n, and ns_per_item, of
//   compile          a chain of n multiplications through compile(): recording, passes, plan, first run and its
//                    backward
//   compile_again    a later run of it, with its backward
//   step_parameters  a compile_step with n parameters, SGD: the first call
//   step_again       a later one
//   arguments        compile() of a function of n arguments: the first call and its backward
//   arguments_again  a later one
//   results          compile() of a function that gives n views: the first call
//   hooks            n hooks on one tensor: registered, and called in an eager backward
//   hooks_traced     the same in the first backward through compile_backward()
//   hooks_again      in a later one
//   cat              n tensors joined, and the backward
// Sizes beyond the largest number of operands of a node (32,767) are omitted.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "retrograd/retrograd.h"

namespace rg = retrograd;
using rg::Tensor;
using rg::Tensors;

namespace {

constexpr int64_t kMostOperands = 32'767;

class Row {
 public:
  Row(int64_t n, const std::vector<std::string>& wanted) : n_(n), wanted_(wanted) {}

  bool is_wanted(std::string_view name) const {
    return wanted_.empty() || std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end();
  }
  /// The time since begin().
  void print(const char* name) const {
    const auto time = std::chrono::steady_clock::now() - begin_;
    std::printf("{\"bench\":\"scaling\",\"row\":\"%s\",\"n\":%lld,\"ns_per_item\":%.1f}\n", name,
                static_cast<long long>(n_),
                std::chrono::duration<double, std::nano>(time).count() / static_cast<double>(n_));
    std::fflush(stdout);
  }
  void begin() { begin_ = std::chrono::steady_clock::now(); }

 private:
  const int64_t n_;
  const std::vector<std::string>& wanted_;
  std::chrono::steady_clock::time_point begin_;
};

Tensors leaves(int64_t n) {
  Tensors all;
  for (int64_t i = 0; i < n; ++i) all.push_back(rg::ones({1}).requires_grad_());
  return all;
}

void chain(Row& row, int64_t n) {
  const Tensor w = rg::full({1}, 0.9999);
  auto f = rg::compile([&](const Tensor& x) {
    Tensor y = x;
    for (int64_t i = 0; i < n; ++i) y = y * w;
    return y;
  });
  for (const char* name : {"compile", "compile_again"}) {
    const Tensor x = rg::ones({1}).requires_grad_();
    row.begin();
    f(x).backward();
    row.print(name);
  }
}

void parameters(Row& row, int64_t n) {
  const Tensors all = leaves(n);
  rg::optim::SGD optimizer(all, {.lr = 0.1});
  auto step = rg::compile_step([&] {
    for (size_t i = 0; i < all.size(); ++i) rg::sum(all[i] * all[i]).backward();
    optimizer.step();
    optimizer.zero_grad();
  });
  for (const char* name : {"step_parameters", "step_again"}) {
    row.begin();
    step();
    row.print(name);
  }
}

void arguments(Row& row, int64_t n) {
  rg::FunctionCache f(rg::FunctionKind::function);
  const auto sum = [](const Tensors& all) { return Tensors{rg::sum(rg::cat(all))}; };
  for (const char* name : {"arguments", "arguments_again"}) {
    const Tensors all = leaves(n);
    row.begin();
    f.run(sum, all)[0].backward();
    row.print(name);
  }
}

void results(Row& row, int64_t n) {
  auto f = rg::compile([](const Tensor& x) { return rg::unbind(x * 2.0); });
  const Tensor x = rg::ones({n}).requires_grad_();
  row.begin();
  f(x);
  row.print("results");
}

void hooks(Row& row, int64_t n) {
  const Tensor x = rg::ones({1}).requires_grad_(), y = x * 2.0;
  row.begin();
  for (int64_t i = 0; i < n; ++i) y.register_hook([](const Tensor& g) { return g; });
  y.backward({}, true);
  row.print("hooks");
  rg::CompiledBackward compiled;
  for (const char* name : {"hooks_traced", "hooks_again"}) {
    row.begin();
    compiled.backward({y}, {}, true);
    row.print(name);
  }
}

void cat(Row& row, int64_t n) {
  const Tensors all = leaves(n);
  row.begin();
  rg::sum(rg::cat(all)).backward();
  row.print("cat");
}

void measure(int64_t n, const std::vector<std::string>& wanted) {
  Row row(n, wanted);
  if (row.is_wanted("compile")) chain(row, n);
  if (row.is_wanted("step_parameters")) parameters(row, n);
  if (n <= kMostOperands && row.is_wanted("arguments")) arguments(row, n);
  if (n <= kMostOperands && row.is_wanted("results")) results(row, n);
  if (row.is_wanted("hooks")) hooks(row, n);
  if (row.is_wanted("cat")) cat(row, n);
}

}  // namespace

int main(int argc, char** argv) {
  int64_t most = 1'000'000;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--most" && i + 1 < argc)
      most = std::atoll(argv[++i]);
    else
      wanted.push_back(argument);
  }
  rg::cpu::set_num_threads(1);
  for (int64_t n = 1000; n <= most; n *= 10) measure(n, wanted);
}
