// Compares element by element, in float64 for floating dtypes and in int64 for all others; both represent every value
// exactly.
#include "tests/conformance/compare.h"

#include <cmath>

#include <fmt/format.h>

#include "ops/creation.h"
#include "ops/shape_ops.h"

namespace retrograd::conformance {
namespace {

template <class T>
std::vector<T> elements(const Tensor& tensor) {
  const Tensor packed = contiguous(detach(tensor)).cpu();
  std::vector<T> values(static_cast<size_t>(packed.numel()));
  dispatch(packed.dtype(), [&]<class Stored>(std::type_identity<Stored>) {
    const Stored* data = values.empty() ? nullptr : packed.data_ptr<Stored>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(data[i]);
  });
  return values;
}

std::string index_text(size_t flat, const IntArray& sizes) {
  std::string text;
  for (size_t d = sizes.size(); d-- > 0; flat /= static_cast<size_t>(sizes[d]))
    text = fmt::format("{}{}{}", flat % static_cast<size_t>(sizes[d]), text.empty() ? "" : ",", text);
  return "[" + text + "]";
}

// By how much the difference of two elements exceeds the tolerance: 0 when they agree.
double distance(double got, double want, Tolerance t) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  if (!std::isfinite(got) || !std::isfinite(want)) return INFINITY;
  const double d = std::abs(got - want);
  return d <= t.atol + t.rtol * std::abs(want) ? 0 : d;
}

double distance(int64_t got, int64_t want, Tolerance) {
  return std::abs(static_cast<double>(got) - static_cast<double>(want)) + (got != want ? 0x1p-60 : 0);
}

template <class T>
std::optional<std::string> differing_element(const Tensor& got, const Tensor& want, Tolerance tolerance) {
  const std::vector<T> a = elements<T>(got), b = elements<T>(want);
  size_t worst = 0, count = 0;
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = distance(a[i], b[i], tolerance);
    count += d > 0;
    if (d > most) most = d, worst = i;
  }
  if (most == 0) return {};
  return fmt::format("max|d|={:.1e} at {}, want {} got {} ({} of {} elements)", most,
                     index_text(worst, got.sizes()), b[worst], a[worst], count, a.size());
}

}  // namespace

std::optional<std::string> difference(const Tensor& got, const Tensor& want, Tolerance tolerance) {
  const NoGradGuard no_grad;
  if (got.dtype() != want.dtype() || got.sizes() != want.sizes())
    return fmt::format("want {} got {}", describe(want), describe(got));
  return is_floating(want.dtype()) ? differing_element<double>(got, want, tolerance)
                                   : differing_element<int64_t>(got, want, tolerance);
}

std::optional<std::string> difference_from_zero(const Tensor& got, const Tensor& of, Tolerance tolerance) {
  return difference(got, zeros(of.sizes(), of.dtype()), tolerance);
}

void Comparison::note(const std::string& what, const std::optional<std::string>& text) {
  log_.compared();
  if (text) log_.fail(what, *text);
}

void Comparison::exactly(const std::string& what, const Tensor& got, const Json& key) {
  if (key.is_null())
    return note(what, got.defined() ? std::optional("want undefined got " + describe(got)) : std::nullopt);
  const Tensor want = suite_.tensor(key);
  if (!got.defined()) return note(what, "want " + describe(want) + " got undefined");
  note(what, difference(got, want, tolerance(want)));
}

void Comparison::number(const std::string& what, const Tensor& got, const Json& want) {
  if (want.is_null() && !got.defined()) return note(what, {});
  if (want.is_null()) return note(what, "want undefined got " + describe(got));
  if (!got.defined()) return note(what, "want " + want.dump() + " got undefined");
  const double value = got.item<double>(), wanted = to_scalar(want).to_double();
  const bool agree = distance(value, wanted, tolerance(got)) == 0;
  note(what, agree ? std::nullopt : std::optional(fmt::format("want {} got {}", wanted, value)));
}

void Comparison::gradient(const std::string& what, const Tensor& got, const Tensor& of, const Json& key) {
  if (key.is_null() && !got.defined()) return note(what, {});
  if (key.is_null()) return note(what, difference_from_zero(got, of, tolerance(of)));
  const Tensor want = suite_.tensor(key);
  if (got.defined()) return note(what, difference(got, want, tolerance(want)));
  const bool agree = !difference_from_zero(want, of, tolerance(want));
  note(what, agree ? std::nullopt : std::optional("want " + describe(want) + " got undefined"));
}

}  // namespace retrograd::conformance
