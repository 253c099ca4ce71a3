#include "phlox/process/thread_block.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <vector>

#include "phlox/base/machine.h"

namespace phlox::process {
namespace {

std::optional<uint32_t> of(const std::vector<uint32_t>& instructions) {
  return thread_block_of(std::as_bytes(std::span(instructions)));
}

constexpr uint32_t kBti = 0xd503245f, kRet = 0xd65f03c0;

TEST(ThreadBlock, is_what_pthread_self_subtracts) {
  EXPECT_EQ(of({0xd53bd040, 0xd11c8000, kRet}), 0x720U);       // mrs x0, tpidr_el0; sub x0, x0, #0x720
  EXPECT_EQ(of({kBti, 0xd53bd041, 0xd1032020, kRet}), 0xc8U);  // mrs x1; sub x0, x1, #0xc8
  EXPECT_EQ(of({0xd53bd040, 0xd1400400, 0xd11bc000, kRet}), 0x16f0U);  // sub x0, x0, #0x1, lsl #12
}

TEST(ThreadBlock, of_other_instructions_is_not_known) {
  EXPECT_EQ(of({}), std::nullopt);
  EXPECT_EQ(of({0xd11c8000, kRet}), std::nullopt);
  EXPECT_EQ(of({0xd53bd041, 0xd11c8000, kRet}), std::nullopt) << "of another register";
  EXPECT_EQ(of({0xd53bd041, kRet}), std::nullopt) << "in another register";
  EXPECT_EQ(of({0xd53bd040, 0xd11c8000}), std::nullopt) << "no end";
  EXPECT_EQ(of({0xd53bd040, 0xd17ffc00, kRet}), std::nullopt) << "too large";
}

TEST(ThreadBlock, of_this_process_leads_to_pthread_self) {
  const auto block = find_thread_block(::getpid());
  ASSERT_TRUE(block);
  if (!kOnAarch64) {
    EXPECT_EQ(*block, 0U);
    return;
  }
  const auto pointer = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  EXPECT_EQ(pointer - *block, static_cast<uint64_t>(::pthread_self()));
}

}  // namespace
}  // namespace phlox::process
