#include "phlox/sampler/capture/state_words.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/fake_interpreter.h"
#include "support/layout_rows.h"

namespace phlox::sampler {
namespace {

// Counts the calls.
class Counted : public memory::RemoteMemory {
 public:
  explicit Counted(memory::RemoteMemory& memory) : memory_(memory) {}
  using RemoteMemory::read;
  size_t read(std::span<const memory::Range> ranges) override {
    ++calls;
    return memory_.read(ranges);
  }
  size_t calls = 0;

 private:
  memory::RemoteMemory& memory_;
};

class StateWordsOf : public testing::TestWithParam<const python::Layout*> {
 protected:
  test::FakeInterpreter fake_{*GetParam()};
  Counted memory_{fake_.memory()};
  Snapshot snapshot_{memory_};
  StateReader reader_{*GetParam(), memory_, snapshot_};
};

TEST_P(StateWordsOf, those_read_ahead_cost_one_call_and_are_the_same) {
  std::vector<RemoteAddress> states;
  std::vector<StateWords> alone(20);
  for (size_t i = 0; i < alone.size(); ++i) {
    states.push_back(fake_.new_thread().state());
    fake_.set(states.back(), GetParam()->thread.native_thread_id, states.size());
  }
  for (size_t i = 0; i < states.size(); ++i) ASSERT_TRUE(reader_.read(states[i], false, alone[i]));
  EXPECT_EQ(alone[3].interp, fake_.state().value);
  EXPECT_EQ(alone[3].next, states[2]);
  EXPECT_NE(alone[3].python_id, alone[2].python_id);
  // A state that was freed, and its memory with it.
  states.insert(states.begin() + 7, RemoteAddress(0x10));
  alone.insert(alone.begin() + 7, StateWords());
  memory_.calls = 0;
  reader_.read_ahead(states);
  EXPECT_LE(memory_.calls, 2U);
  for (size_t i = 0; i < states.size(); ++i) {
    StateWords words;
    if (i == 7) continue;
    ASSERT_TRUE(reader_.read(states[i], false, words));
    EXPECT_EQ(words.next, alone[i].next);
    EXPECT_EQ(words.python_id, alone[i].python_id);
    EXPECT_EQ(words.native_id, alone[i].native_id);
  }
  EXPECT_LE(memory_.calls, 2U);
  StateWords words;
  EXPECT_FALSE(reader_.read(states[7], false, words));
  // Not older than the walk for which they were read.
  fake_.set(states[0], GetParam()->thread.thread_id, uint64_t{77});
  reader_.forget();
  ASSERT_TRUE(reader_.read(states[0], false, words));
  EXPECT_EQ(words.python_id, 77U);
}

INSTANTIATE_TEST_SUITE_P(Sampler, StateWordsOf, testing::ValuesIn(test::layout_rows()), test::row_name);

}  // namespace
}  // namespace phlox::sampler
