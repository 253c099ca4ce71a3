// A hash for keys that count up or are packed: tables use its low bits, and grow without end if these form a
// long chain of neighbours.
#pragma once

#include <cstddef>
#include <cstdint>

namespace phlox {

struct Spread {
  // The finalizer of splitmix64 (S. Vigna).
  constexpr size_t operator()(uint64_t x) const noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }
};

}  // namespace phlox
