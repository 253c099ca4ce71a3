// The address space of a number. An address of the running target, an address in a file, and the place of a
// Python frame are different things; mixing them up is a compile error.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace phlox {

template <class Tag>
struct Address {
  uint64_t value = 0;

  constexpr Address() = default;
  constexpr explicit Address(uint64_t v) : value(v) {}
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(Address, Address) = default;
  // Wraps like the hardware does: bounds are checked where the bytes are read.
  friend constexpr Address operator+(Address a, uint64_t n) { return Address(a.value + n); }
  friend constexpr Address operator-(Address a, uint64_t n) { return Address(a.value - n); }
  friend constexpr uint64_t operator-(Address a, Address b) { return a.value - b.value; }
};

// In the memory of the target.
using RemoteAddress = Address<struct RemoteTag>;
// As the ELF file has it (st_value, p_vaddr): RemoteAddress - load bias.
using ImageAddress = Address<struct ImageTag>;

// User addresses of x86-64 and aarch64 end below 2^47 (2^48 on aarch64 with 48-bit VA; 2^56 with five-level
// paging only when asked for by a hint, which CPython's allocators never do).
constexpr bool is_plausible(RemoteAddress a) {
  return a.value >= 4096 && a.value < (uint64_t{1} << 48);
}

}  // namespace phlox

template <class Tag>
struct std::hash<phlox::Address<Tag>> {
  size_t operator()(phlox::Address<Tag> a) const noexcept { return std::hash<uint64_t>{}(a.value); }
};
