// The loop in which a thread is read: until a copy is proved to be of one moment. ProcessSampler reads Python
// threads with it (read_held), NativeThreads the others. Pure: an attempt does the rest.
#pragma once

#include <cstdint>

#include "phlox/sampler/capture/native_capture.h"

namespace phlox::sampler {

// Attempts at one stack before it is rejected: with 4, 99.2 to 100 % were accepted in the hard case.
inline constexpr int kAttempts = 4;

// settled: sampled, rejected, or not in this turn. refused: it cannot be held this way.
enum class Attempted : uint8_t { go_on, again, ended, settled, other_holder, refused };

inline Attempted attempted(NativeCapture::Held held) {
  switch (held) {
    case NativeCapture::Held::yes:
      return Attempted::go_on;
    case NativeCapture::Held::running:
      return Attempted::again;
    case NativeCapture::Held::gone:
      return Attempted::ended;
    case NativeCapture::Held::refused:
      return Attempted::refused;
    case NativeCapture::Held::later:
      break;
  }
  return Attempted::settled;
}

// `once`: called with the number of the attempt. again: it moved in all of them.
template <class Once>
Attempted attempt(uint64_t& retried, Once once) {
  for (int number = 0; number < kAttempts; ++number) {
    if (number > 0) ++retried;
    if (const Attempted next = once(number); next != Attempted::again) return next;
  }
  return Attempted::again;
}

}  // namespace phlox::sampler
