// Bytes of a build-id as it is written.
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
