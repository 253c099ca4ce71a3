// Ids are types: a FrameId cannot be used as a StackId. An id is a row number that its giver counts up from
// 1; 0 is "none".
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace phlox {

template <class Tag>
struct Id {
  uint32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace phlox

template <class Tag>
struct std::hash<phlox::Id<Tag>> {
  size_t operator()(phlox::Id<Tag> id) const noexcept { return std::hash<uint32_t>{}(id.value); }
};
