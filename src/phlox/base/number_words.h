// Numbers as people read them. The page has the same rules (web/src/words.ts); both are tested with
// tests/cases/numbers.json.
#pragma once

#include <cstdint>
#include <string>

namespace phlox {

// With so many digits after the point. Of two equally near results the larger one, as JavaScript's toFixed()
// has it.
std::string fixed_digits(double number, int digits);
// "1.23", "45.6", "789": three digits of a number below 1,000.
std::string three_digits(double number);
std::string time_words(int64_t nanoseconds);  // "1.23 s", "45.6 ms", "2 min 5 s", "2 h 5 min"
std::string share_words(double share);        // "12.3 %", "0.12 %", "< 0.01 %"
std::string points_words(double share);       // "+1.2", "-0.05": percentage points

}  // namespace phlox
