#include "phlox/base/number_words.h"

#include <charconv>
#include <cmath>
#include <iterator>

namespace phlox {

std::string fixed_digits(double number, int digits) {
  // Only an odd number of these halves is as near to two results.
  const double halves = std::abs(number) * (2 << digits);
  if (halves == std::trunc(halves) && std::fmod(halves, 2) == 1) number = std::nextafter(number, 2 * number);
  char text[400];
  const auto end = std::to_chars(std::begin(text), std::end(text), number, std::chars_format::fixed, digits);
  return {text, end.ptr};
}

std::string three_digits(double number) {
  const double size = std::abs(number);
  return fixed_digits(number, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

std::string time_words(int64_t nanoseconds) {
  const double size = std::abs(static_cast<double>(nanoseconds));
  const std::string sign = nanoseconds < 0 ? "-" : "";
  if (size == 0) return "0 s";
  if (size < 1000) return sign + fixed_digits(size, 0) + " ns";
  if (size < 999.5e3) return sign + three_digits(size / 1e3) + " µs";
  if (size < 999.5e6) return sign + three_digits(size / 1e6) + " ms";
  if (size < 119.5e9) return sign + three_digits(size / 1e9) + " s";
  const int64_t seconds = std::llround(size / 1e9);
  const auto two = [&](int64_t large, const char* unit, int64_t small, const char* next) {
    return sign + std::to_string(large) + unit + std::to_string(small) + next;
  };
  if (seconds < 7200) return two(seconds / 60, " min ", seconds % 60, " s");
  return two(seconds / 3600, " h ", seconds % 3600 / 60, " min");
}

std::string share_words(double share) {
  const double percent = share * 100;
  if (percent <= 0) return "0 %";
  if (percent < 0.01) return "< 0.01 %";
  return fixed_digits(percent, percent < 0.995 ? 2 : 1) + " %";
}

std::string points_words(double share) {
  const double points = share * 100;
  return (points < 0 ? "" : "+") + fixed_digits(points, std::abs(points) < 0.995 ? 2 : 1);
}

}  // namespace phlox
