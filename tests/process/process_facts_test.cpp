#include "phlox/process/process_facts.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace phlox::process {
namespace {

// What the C library keeps there is read as the sampler reads it: from pthread_self() on.
int32_t cpu_at(int64_t offset) {
  int32_t cpu = -1;
  constexpr int64_t kCpuId = 4;  // of struct rseq
  const auto at = static_cast<uint64_t>(::pthread_self()) + static_cast<uint64_t>(offset + kCpuId);
  std::memcpy(&cpu, reinterpret_cast<const void*>(at), sizeof cpu);
  return cpu;
}

TEST(RseqOffset, says_where_every_thread_has_its_cpu) {
  const auto offset = find_rseq_offset(::getpid());
  if (!offset) GTEST_SKIP() << "the C library registered none here";
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(cpu_at(*offset), cpu);
    std::thread([&] { EXPECT_EQ(cpu_at(*offset), cpu) << "of another thread"; }).join();
  }
  ::sched_setaffinity(0, sizeof before, &before);
}

}  // namespace
}  // namespace phlox::process
