// See tracer/observe/checks.h.
#include "tracer/observe/checks.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "engine/error.h"
#include "ops/shape_ops.h"

namespace retrograd::inline v0 {
namespace {

void add(Checks& checks, std::string_view text) {
  constexpr std::string_view kPrefix = "twin:";
  if (text == "pairs") {
    checks.pairs = true;
  } else if (text == "twin") {
    checks.twin_calls = 1;
  } else {
    const bool has_number = text.starts_with(kPrefix);
    const std::string_view number = has_number ? text.substr(kPrefix.size()) : std::string_view();
    const auto [end, error] = std::from_chars(number.begin(), number.end(), checks.twin_calls);
    if (error != std::errc() || end != number.end() || checks.twin_calls < 1)
      fail(Category::bad_argument, "",
           fmt::format("RETROGRAD_CHECK: '{}' is none of twin, twin:N and pairs", text));
  }
}

}  // namespace

Checks checks_of_environment() {
  const char* const variable = secure_getenv("RETROGRAD_CHECK");
  std::string_view text = variable ? variable : "";
  Checks checks;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    add(checks, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return checks;
}

bool has_same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  const NoGradGuard no_grad;
  const auto here = [](const Tensor& t) { return contiguous(t.detach().cpu()); };
  const Tensor x = here(a), y = here(b);
  if (x.nbytes() != y.nbytes()) return false;
  return x.nbytes() == 0 || std::memcmp(x.raw_data(), y.raw_data(), static_cast<size_t>(x.nbytes())) == 0;
}

}  // namespace retrograd
