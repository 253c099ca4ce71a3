// The formatting library, compiled once: Debian and Ubuntu have no archive of it, and compiled in every file
// that formats it doubles what the whole build takes.
#include <fmt/format-inl.h>
#include <locale>

FMT_BEGIN_NAMESPACE
namespace detail {

// format.h declares these as compiled elsewhere: here.
template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto thousands_sep_impl<wchar_t>(locale_ref) -> thousands_sep_result<wchar_t>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API auto decimal_point_impl(locale_ref) -> wchar_t;
#if FMT_VERSION < 90000
template int format_float<double>(double, int, float_specs, buffer<char>&);
template int format_float<long double>(long double, int, float_specs, buffer<char>&);
template int snprintf_float<double>(double, int, float_specs, buffer<char>&);
template int snprintf_float<long double>(long double, int, float_specs, buffer<char>&);
#endif

}  // namespace detail
FMT_END_NAMESPACE
