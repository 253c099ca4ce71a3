// A value from bytes that need not be aligned for it. Nothing is checked: for bytes of unknown length use
// ByteReader (byte_reader.h).
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace phlox {

// Needs sizeof(T) bytes at `from`.
template <class T>
T load(const std::byte* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// `bytes` holds offset + sizeof(T) bytes.
template <class T>
T load(std::span<const std::byte> bytes, size_t offset) {
  return load<T>(bytes.data() + offset);
}

}  // namespace phlox
