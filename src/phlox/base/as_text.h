// Bytes that are text, or are searched for some.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace phlox {

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace phlox
