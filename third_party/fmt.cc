// {fmt}, compiled with this project's flags from the headers of Debian's package. The package's own library is a shared
// one, which programs and the packages made here would then need, and its symbols would be visible in plug-ins.
// Instances are those that fmt/format.h declares `extern template`.
#include <fmt/format-inl.h>

namespace fmt::inline v9::detail {

template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto thousands_sep_impl<wchar_t>(locale_ref) -> thousands_sep_result<wchar_t>;
template auto decimal_point_impl(locale_ref) -> char;
template auto decimal_point_impl(locale_ref) -> wchar_t;

}  // namespace fmt::inline v9::detail
