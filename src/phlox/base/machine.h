// The machine that this program is built for, where that is a value and not a type (unwind/arch has the
// rest).
#pragma once

namespace phlox {

#ifdef __aarch64__
inline constexpr bool kOnAarch64 = true;
#else
inline constexpr bool kOnAarch64 = false;
#endif

}  // namespace phlox
