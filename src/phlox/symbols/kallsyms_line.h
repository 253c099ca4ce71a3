// A line of /proc/kallsyms, "ffffffff81000000 T _text": 16 digits, a letter, a name, and "[module]" after a
// tab if a module has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace phlox::symbols::kallsyms {

constexpr size_t kLargest = size_t{128} << 20;  // of the text
// Something else follows the last symbol of the kernel and of each module; no function is this long.
constexpr uint64_t kLongestFunction = 1 << 20;

constexpr size_t kType = 17, kName = 19;

// Eight digits at once, of a text with 200,000 lines; bytes other than 0-9 and a-f give some number.
inline uint64_t eight_digits(const char* at) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  bytes = __builtin_bswap64(bytes);
  constexpr uint64_t kEach = 0x0101010101010101U;
  // A letter has bit 6 set, and its lower half counts from 1.
  uint64_t digits = (bytes & kEach * 0x0f) + (bytes >> 6 & kEach) * 9;
  digits = (digits | digits >> 4) & 0x00ff00ff00ff00ffU;
  digits = (digits | digits >> 8) & 0x0000ffff0000ffffU;
  return (digits | digits >> 16) & 0xffffffffU;
}

inline bool has_name(std::string_view line) {
  return line.size() > kName && line[kType - 1] == ' ';
}

// For a line that has_name().
inline uint64_t address_of(std::string_view line) {
  return eight_digits(line.data()) << 32 | eight_digits(line.data() + 8);
}

inline bool is_of_module(std::string_view line) {
  return line.back() == ']';
}

// Chooses between several names for one address: a global one, and for a system call its 64-bit name.
inline bool is_preferred(std::string_view line) {
  return line[kType] == 'T' && !line.substr(kName).starts_with("__ia32_");
}

// For a line that has_name(). "__pfx_": room before a function, for patching it.
inline bool is_function(std::string_view line) {
  const char type = line[kType];
  return (type == 't' || type == 'T' || type == 'w' || type == 'W') &&
         !line.substr(kName).starts_with("__pfx_");
}

}  // namespace phlox::symbols::kallsyms
