#include "phlox/sampler/kernel/process_config.h"

#include <gtest/gtest.h>

#include <array>

#include "phlox/base/machine.h"
#include "phlox/python/layout_table.h"
#include "support/fake_interpreter.h"
#include "support/layout_rows.h"

namespace phlox::sampler {
namespace {

constexpr uint32_t kKey = 3;

// A thread's own block of the C library, and the key of autoTSSkey in a runtime.
class ThreadBlocks : public testing::TestWithParam<const python::Layout*> {
 protected:
  ThreadBlocks() {
    const RemoteAddress runtime = fake_.memory().allocate(4096);
    python_.runtime = runtime;
    fake_.memory().put_value(runtime + *layout().runtime.autoTSSkey,
                             std::array<int32_t, 2>{1, static_cast<int32_t>(kKey)});
    block_ = fake_.memory().allocate(4096);
    fake_.memory().put_value(block_, block_.value);
    fake_.set(fake_.thread().state(), layout().thread.thread_id, block_);
  }
  const python::Layout& layout() const { return *GetParam(); }
  bool find(kernel_process& where) { return find_thread_state_word(python_, fake_.memory(), where); }

  test::FakeInterpreter fake_{*GetParam()};
  python::Interpreter python_ = fake_.interpreter();
  RemoteAddress block_;
};

TEST_P(ThreadBlocks, glibc_has_the_state_in_the_block) {
  constexpr uint32_t kFirst = kOnAarch64 ? 0x110 : 0x310;
  fake_.memory().put_value(block_ + kFirst + kKey * 16 + 8, fake_.thread().state().value);
  kernel_process where{};
  ASSERT_TRUE(find(where));
  EXPECT_EQ(where.python.state.how, uint32_t{KERNEL_STATE_WORD});
  EXPECT_EQ(where.python.state.offset, kFirst + kKey * 16 + 8);
}

TEST_P(ThreadBlocks, musl_has_it_behind_a_pointer) {
  const RemoteAddress keys = fake_.memory().allocate(1024);
  fake_.memory().put_value(block_ + 0x80, keys.value);
  fake_.memory().put_value(keys + kKey * 8, fake_.thread().state().value);
  kernel_process where{};
  ASSERT_TRUE(find(where));
  EXPECT_EQ(where.python.state.how, uint32_t{KERNEL_STATE_INDIRECT});
  EXPECT_EQ(where.python.state.offset, 0x80U);
  EXPECT_EQ(where.python.state.index, kKey * 8);
}

TEST_P(ThreadBlocks, a_state_that_is_nowhere_is_not_found) {
  kernel_process where{};
  EXPECT_FALSE(find(where));
}

TEST_P(ThreadBlocks, states_that_say_whose_they_are_are_searched_in_their_lists) {
  auto where = kernel_process_of(python_);
  ASSERT_TRUE(where);
  ASSERT_TRUE(find_listed_threads(python_, fake_.memory(), *where));
  EXPECT_EQ(where->python.state.how, uint32_t{KERNEL_STATE_LISTED});
  // As the kernel walks there.
  const auto word = [&](uint64_t at) {
    uint64_t value = 0;
    fake_.memory().read_value(RemoteAddress(at), value);
    return value;
  };
  uint64_t state = word(word(where->python.interpreters) + where->python.interp.threads);
  while (state != 0 && word(state + where->python.thread.id) != block_.value)
    state = word(state + where->python.thread.next);
  EXPECT_EQ(state, fake_.thread().state().value);
  fake_.set(fake_.thread().state(), layout().thread.thread_id, RemoteAddress(0));
  EXPECT_FALSE(find_listed_threads(python_, fake_.memory(), *where)) << "it is coming up still";
}

TEST_P(ThreadBlocks, what_the_kernel_reads_fits_into_what_it_has) {
  const auto where = kernel_process_of(python_);
  ASSERT_TRUE(where) << where.error().message;
  EXPECT_LE(where->python.frame.bytes, unsigned{KERNEL_HEADER_BYTES});
  EXPECT_LE(where->python.code.bytes, unsigned{KERNEL_STRUCT_BYTES});
  EXPECT_LE(where->python.code.proof_bytes, unsigned{KERNEL_PROOF_WORDS} * 8);
  EXPECT_LE(where->python.text.head, unsigned{KERNEL_HEADER_BYTES});
}

INSTANTIATE_TEST_SUITE_P(Versions, ThreadBlocks,
                         testing::ValuesIn(test::layout_rows([](const python::Layout& row) {
                           return row.major == 3 && row.minor >= 8 && row.runtime.autoTSSkey.present();
                         })),
                         test::row_name);

TEST(KernelProcess, a_python_that_cannot_be_walked_there_is_refused_by_name) {
  for (const auto& [major, minor] : {std::pair{2, 7}, {3, 6}, {3, 7}}) {
    test::FakeInterpreter fake(
        *python::find_layout(static_cast<uint8_t>(major), static_cast<uint8_t>(minor), {}));
    const auto where = kernel_process_of(fake.interpreter());
    ASSERT_FALSE(where) << major << "." << minor;
    EXPECT_EQ(where.error().kind, ErrorKind::unsupported_python);
  }
}

}  // namespace
}  // namespace phlox::sampler
