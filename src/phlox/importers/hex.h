// The bytes of a build-id from its text.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string>

namespace phlox::importers {

inline std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte b : bytes) out += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return out;
}

}  // namespace phlox::importers
