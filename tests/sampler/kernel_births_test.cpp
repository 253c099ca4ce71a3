#include "phlox/sampler/session/kernel_births.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "phlox/python/layout_table.h"
#include "support/fake_interpreter.h"

namespace phlox::sampler {
namespace {

class KernelBirthsTest : public testing::Test {
 protected:
  void born(uint32_t id, pid_t pid, uint64_t time) {
    kernel_birth birth{};
    birth.id = id;
    birth.process = static_cast<uint32_t>(pid);
    birth.parent = 70;
    birth.time = time;
    std::memcpy(birth.name, "worker", 6);
    kernel_process place{};
    place.python.frame.code = 8;
    births_.add(birth, place, parent_);
  }
  bool said(uint32_t id, uint32_t type) {
    kernel_exit record{};
    record.head = {type, id};
    return births_.keep(id, std::as_bytes(std::span(&record, 1)));
  }

  test::FakeInterpreter fake_{*python::find_layout(3, 13, {})};
  Program parent_{70, fake_.interpreter()};
  KernelBirths births_;
};

TEST_F(KernelBirthsTest, a_child_is_as_its_parent_and_has_what_was_said_of_it) {
  born(KERNEL_FIRST_BORN, 71, 1000);
  EXPECT_TRUE(births_.has(71));
  EXPECT_TRUE(said(KERNEL_FIRST_BORN, KERNEL_SAMPLE));
  auto given = births_.give(2000);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0].parent, 70);
  EXPECT_EQ(given[0].program->pid, 71);
  EXPECT_EQ(given[0].program->birth, 1000);
  EXPECT_EQ(given[0].program->kernel_id, KERNEL_FIRST_BORN);
  EXPECT_EQ(given[0].program->kernel_name, "worker");
  EXPECT_TRUE(births_.give(2000).empty()) << "given once";
  EXPECT_TRUE(said(KERNEL_FIRST_BORN, KERNEL_SAMPLE)) << "until somebody takes it";
  const auto newborn = births_.take(KERNEL_FIRST_BORN);
  EXPECT_EQ(newborn.said.size(), 2U);
  EXPECT_EQ(newborn.place.id, KERNEL_FIRST_BORN);
  EXPECT_EQ(newborn.place.python.frame.code, 8U);
  EXPECT_FALSE(said(KERNEL_FIRST_BORN, KERNEL_SAMPLE));
}

TEST_F(KernelBirthsTest, a_process_that_may_exec_waits_unless_it_has_ended) {
  born(KERNEL_FIRST_BORN, 71, 1000);
  born(KERNEL_FIRST_BORN + 1, 72, 1000);
  born(KERNEL_FIRST_BORN + 2, 73, 1000);
  EXPECT_TRUE(said(KERNEL_FIRST_BORN + 1, KERNEL_EXIT));
  births_.forget(KERNEL_FIRST_BORN + 2);
  const auto given = births_.give(1000);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0].program->pid, 72);
  EXPECT_EQ(births_.give(1001).size(), 1U);
}

TEST_F(KernelBirthsTest, records_of_unknown_processes_are_not_kept) {
  EXPECT_FALSE(said(KERNEL_FIRST_BORN, KERNEL_SAMPLE));
}

}  // namespace
}  // namespace phlox::sampler
