// See benchmarks/common/line.h.
#include "benchmarks/common/line.h"

#include <cmath>
#include <cstdio>

namespace bench {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

}  // namespace

Line& Line::raw(std::string_view key, const std::string& value) {
  line_ += (line_.empty() ? "{" : ",") + quoted(key) + ":" + value;
  return *this;
}

Line& Line::text(std::string_view key, std::string_view value) { return raw(key, quoted(value)); }
Line& Line::count(std::string_view key, int64_t value) { return raw(key, std::to_string(value)); }

Line& Line::number(std::string_view key, double value, int digits) {
  if (!std::isfinite(value)) return raw(key, "null");
  char digits_of[400];
  std::snprintf(digits_of, sizeof(digits_of), "%.*f", digits, value);
  return raw(key, digits_of);
}

void Line::print() const {
  std::printf("%s}\n", line_.c_str());
  std::fflush(stdout);
}

}  // namespace bench
