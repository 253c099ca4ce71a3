#include "phlox/sampler/workers.h"

#include <sys/eventfd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "phlox/sampler/waker.h"

namespace phlox::sampler {
namespace {

void breathe() {
#if defined(__x86_64__)
  ::_mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void Worker::wake() const {
  ::eventfd_write(wake_up.get(), 1);
}

bool TurnLock::try_lock() {
  // Looks at the clock now and then only.
  constexpr int kSpins = 64;
  for (Nanoseconds until = 0;;) {
    for (int i = 0; i < kSpins; ++i) {
      if (!taken_.load(std::memory_order_relaxed) && !taken_.exchange(true, std::memory_order_acquire))
        return true;
      breathe();
    }
    const Nanoseconds now = clock_now();
    if (until == 0) until = now + kPatience;
    if (now >= until) return false;
  }
}

bool TurnLock::lock() {
  // Longer than a turn should take.
  constexpr Nanoseconds kLongTurn = 1'000'000;
  bool slept = false;
  for (; !try_lock(); slept = true) sleep_until(clock_now() + kLongTurn);
  return slept;
}

}  // namespace phlox::sampler
