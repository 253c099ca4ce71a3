#include "phlox/exporters/flame_colours.h"

#include <fmt/format.h>

#include <cstdlib>

namespace phlox::exporters {
namespace {

constexpr uint32_t kHues = 20;  // of the palette in flame.css

uint32_t pick(std::string_view text, uint32_t choices) {
  uint32_t value = colour_hash(text);
  return ((value >> 16) ^ (value & 0xffff)) % choices;
}

// Decided by the file name: the interpreter's C code counts as Python's.
bool is_interpreter(std::string_view module) {
  if (module.starts_with("lib")) module.remove_prefix(3);
  constexpr std::string_view kPython = "python";
  if (!module.starts_with(kPython)) return false;
  module.remove_prefix(kPython.size());
  return module.empty() || (module.front() >= '0' && module.front() <= '9');
}

}  // namespace

uint32_t colour_hash(std::string_view text) {
  uint32_t value = 0x811c9dc5;
  for (char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x01000193;
  return value;
}

std::string colour_class(profile::FrameKind kind, std::string_view module, std::string_view name) {
  if (kind == profile::FrameKind::marker) return "m";
  if (kind == profile::FrameKind::kernel) return "k";
  const bool native = kind == profile::FrameKind::native && !is_interpreter(module);
  return fmt::format("{}{}{}", native ? 'n' : 'p', pick(module, kHues), "abc"[pick(name, 3)]);
}

std::string difference_class(int8_t step) {
  if (step == 0) return "d0";
  return fmt::format("{}{}", step > 0 ? 'r' : 'b', std::abs(step));
}

}  // namespace phlox::exporters
