#include "phlox/base/side_thread.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace phlox {
namespace {

struct SideThreads {
  std::mutex mutex;
  std::vector<clockid_t> clocks;
  Nanoseconds ended = 0;
};

SideThreads& side_threads() {
  static auto* const all = new SideThreads;  // threads may outlive static objects
  return *all;
}

clockid_t own_clock() {
  clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
  ::pthread_getcpuclockid(::pthread_self(), &clock);
  return clock;
}

}  // namespace

SideThread::SideThread() {
  SideThreads& all = side_threads();
  const std::lock_guard lock(all.mutex);
  all.clocks.push_back(own_clock());
}

SideThread::~SideThread() {
  SideThreads& all = side_threads();
  const std::lock_guard lock(all.mutex);
  all.ended += clock_now(CLOCK_THREAD_CPUTIME_ID);
  const auto own = std::find(all.clocks.begin(), all.clocks.end(), own_clock());
  if (own != all.clocks.end()) all.clocks.erase(own);
}

Nanoseconds SideThread::cpu_time() {
  SideThreads& all = side_threads();
  const std::lock_guard lock(all.mutex);
  Nanoseconds sum = all.ended;
  for (const clockid_t clock : all.clocks) sum += clock_now(clock);
  return sum;
}

}  // namespace phlox
