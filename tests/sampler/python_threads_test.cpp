#include "phlox/sampler/capture/python_threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "phlox/base/system_call_numbers.h"
#include "support/fake_interpreter.h"
#include "support/layout_rows.h"
#include "support/sleeping_thread.h"

namespace phlox::sampler {
namespace {

using profile::GilState;
using From = PythonThreads::From;

// An interpreter in memory, whose threads are threads of ours that sleep.
class PythonThreadLists : public testing::TestWithParam<const python::Layout*> {
 protected:
  PythonThreadLists() { fake_.thread().calls("main"); }
  const python::Layout& layout() const { return *GetParam(); }
  // With a frame: what follows a thread's C stack in memory is its own, then, and no other thread's state.
  test::FakeThread& new_thread() { return fake_.new_thread().calls("run"); }
  void is_run_by(const test::FakeThread& thread, pid_t tid) {
    fake_.set(thread.state(), layout().thread.native_thread_id, static_cast<uint64_t>(tid));
  }
  // The first thread state of the list, as CPython unlinks and frees it.
  void ends(const test::FakeThread& newest) {
    const auto next = fake_.memory().get<uint64_t>(newest.state() + *layout().thread.next);
    fake_.set(fake_.state(), layout().interpreter.threads_head, next);
    fake_.set(newest.state(), layout().thread.thread_id, uint64_t{0});
  }
  // So many threads, the first of them that of the fake's first state.
  void are_run(int threads) {
    for (int i = 0; i < threads; ++i) {
      sleeping_.push_back(std::make_unique<test::SleepingThread>());
      is_run_by(i == 0 ? fake_.thread() : new_thread(), sleeping_.back()->tid());
    }
  }
  void refresh(From from = From::target) {
    if (from == From::copy) snapshot_.capture();
    threads_.refresh(++now_, from);
  }
  PythonThread* thread_of(pid_t tid) {
    for (const auto& thread : threads_.all()) {
      if (thread->probe->tid() == tid) return thread.get();
    }
    return nullptr;
  }

  test::FakeInterpreter fake_{*GetParam()};
  const python::Interpreter interpreter_ = fake_.interpreter();
  Ring ring_{1 << 16};
  SampleLog log_{ring_};
  Snapshot snapshot_{fake_.memory()};
  PythonThreads threads_{{::getpid(), {}, false, false, {}}, interpreter_, fake_.memory(), snapshot_, log_};
  Nanoseconds now_ = 0;
  std::vector<std::unique_ptr<test::SleepingThread>> sleeping_;
};

TEST_P(PythonThreadLists, each_thread_state_is_found_with_its_thread) {
  test::SleepingThread one, other;
  is_run_by(fake_.thread(), one.tid());
  test::FakeThread& second = new_thread();
  is_run_by(second, other.tid());
  for (const From from : {From::target, From::copy}) {
    refresh(from);
    ASSERT_EQ(threads_.all().size(), 2U);
    ASSERT_NE(thread_of(other.tid()), nullptr);
    EXPECT_EQ(thread_of(other.tid())->tstate, second.state());
    EXPECT_EQ(threads_.find(fake_.thread().state()), thread_of(one.tid()));
    EXPECT_TRUE(threads_.has(one.tid()));
  }
}

TEST_P(PythonThreadLists, a_new_state_at_the_head_is_noticed_in_the_copy) {
  test::SleepingThread one, other;
  is_run_by(fake_.thread(), one.tid());
  refresh();
  snapshot_.capture();
  EXPECT_FALSE(threads_.changed());
  is_run_by(new_thread(), other.tid());
  snapshot_.capture();
  EXPECT_TRUE(threads_.changed());
  refresh(From::copy);
  EXPECT_EQ(threads_.all().size(), 2U);
  snapshot_.capture();
  EXPECT_FALSE(threads_.changed());
}

// A thread of Rust or C++ makes a state for each of its calls into Python.
TEST_P(PythonThreadLists, a_thread_whose_states_come_and_go_stays_the_same_one) {
  test::SleepingThread one, other;
  is_run_by(fake_.thread(), one.tid());
  test::FakeThread& first_call = new_thread();
  is_run_by(first_call, other.tid());
  refresh();
  ASSERT_NE(thread_of(other.tid()), nullptr);
  const uint32_t index = thread_of(other.tid())->index;
  ends(first_call);
  refresh();
  ASSERT_NE(thread_of(other.tid()), nullptr) << "the thread lives on";
  EXPECT_FALSE(thread_of(other.tid())->in_python());
  test::FakeThread& next_call = new_thread();
  is_run_by(next_call, other.tid());
  refresh();
  ASSERT_NE(thread_of(other.tid()), nullptr);
  EXPECT_EQ(thread_of(other.tid())->index, index);
  EXPECT_EQ(thread_of(other.tid())->tstate, next_call.state());
  EXPECT_EQ(threads_.all().size(), 2U);
}

TEST_P(PythonThreadLists, one_that_has_ended_with_its_state_is_dropped) {
  test::SleepingThread one;
  is_run_by(fake_.thread(), one.tid());
  auto other = std::make_unique<test::SleepingThread>();
  test::FakeThread& second = new_thread();
  is_run_by(second, other->tid());
  refresh();
  ASSERT_EQ(threads_.all().size(), 2U);
  ends(second);
  other.reset();
  refresh();
  EXPECT_EQ(threads_.all().size(), 1U);
}

TEST_P(PythonThreadLists, not_all_are_added_at_once_and_in_the_end_all_are_there) {
  std::vector<std::unique_ptr<test::SleepingThread>> sleeping;
  for (int i = 0; i < 40; ++i) {
    sleeping.push_back(std::make_unique<test::SleepingThread>());
    is_run_by(i == 0 ? fake_.thread() : new_thread(), sleeping.back()->tid());
  }
  refresh();
  EXPECT_LT(threads_.all().size(), 40U) << "a turn has other things to do";
  EXPECT_EQ(threads_.all().size() + threads_.stateless().waiting, 40U);
  int refreshes = 1;
  for (; threads_.due(now_) && refreshes < 10; ++refreshes) refresh();
  EXPECT_EQ(threads_.all().size(), 40U);
  EXPECT_LE(refreshes, 4);
  refresh();
  EXPECT_TRUE(threads_.is_whole()) << "a walk that meets nobody new";
  EXPECT_EQ(threads_.stateless().waiting, 0U);
}

TEST_P(PythonThreadLists, of_many_threads_the_one_that_holds_the_gil_is_added_first) {
  are_run(60);
  fake_.hold_gil(&fake_.thread());  // the last of the list
  refresh();
  EXPECT_NE(threads_.find(fake_.thread().state()), nullptr);
  EXPECT_LT(threads_.all().size(), 60U);
  for (int i = 0; threads_.due(now_) && i < 200; ++i) refresh();
  EXPECT_EQ(threads_.all().size(), 60U);
}

// As a fork leaves them that did not use os.fork(): newer than the thread that lives on.
TEST_P(PythonThreadLists, states_without_a_thread_delay_nothing) {
  test::SleepingThread one;
  is_run_by(fake_.thread(), one.tid());
  for (int i = 0; i < 40; ++i) is_run_by(new_thread(), 1);  // a task of another process
  for (int i = 0; i < 5; ++i) refresh();
  EXPECT_NE(threads_.find(fake_.thread().state()), nullptr);
}

TEST_P(PythonThreadLists, a_list_that_leads_nowhere_is_read_again) {
  test::SleepingThread one;
  is_run_by(fake_.thread(), one.tid());
  refresh();
  EXPECT_FALSE(threads_.due(now_));
  fake_.set(fake_.thread().state(), layout().thread.next, uint64_t{0x10});
  refresh();
  EXPECT_FALSE(threads_.is_whole());
  EXPECT_EQ(threads_.all().size(), 1U) << "who is known stays";
}

TEST_P(PythonThreadLists, the_copy_and_the_target_name_the_gils_holder) {
  test::SleepingThread one, other;
  is_run_by(fake_.thread(), one.tid());
  test::FakeThread& second = new_thread();
  is_run_by(second, other.tid());
  refresh();
  ASSERT_EQ(threads_.domains().size(), 1U);
  const Gil& gil = threads_.domains().front().gil;
  fake_.hold_gil(&second);
  snapshot_.capture();
  EXPECT_EQ(gil.holder(snapshot_), second.state());
  fake_.hold_gil(&fake_.thread());
  EXPECT_EQ(gil.holder(snapshot_), second.state()) << "as of the copy";
  EXPECT_EQ(gil.holder_now(fake_.memory()), fake_.thread().state());
  fake_.hold_gil(nullptr);
  EXPECT_EQ(gil.holder_now(fake_.memory()), RemoteAddress{});
}

TEST_P(PythonThreadLists, a_thread_waiting_inside_the_gil_waits_for_it) {
  test::SleepingThread one;
  is_run_by(fake_.thread(), one.tid());
  refresh();
  const Gil& gil = threads_.domains().front().gil;
  fake_.hold_gil(&fake_.thread());
  Gil::Words words;
  std::array<memory::Range, Gil::Words::kRanges> ranges;
  ASSERT_EQ(gil.ranges(words, ranges), 2U);
  process::BlockedIn in;
  in.running = false;
  in.number = system_call("futex").number(kOnAarch64);
  in.arguments[0] = ranges[0].address.value;  // its `locked`: in its struct
  EXPECT_EQ(gil.state_of(&in), GilState::waits);
  in.arguments[0] = fake_.thread().state().value;
  EXPECT_EQ(gil.state_of(&in), GilState::none) << "another futex";
  EXPECT_EQ(gil.state_of(nullptr), GilState::none);
  fake_.set_collecting(true);
  snapshot_.capture();
  EXPECT_EQ(gil.collecting(snapshot_), layout().interpreter.gc_collecting.present());
}

bool has_a_gil(const python::Layout& row) {
  return row.thread.native_thread_id.present() && row.gil_state.last_holder.present() &&
         !row.traits.free_threaded;
}

class FreeThreadLists : public PythonThreadLists {};
TEST_P(FreeThreadLists, of_many_threads_one_that_is_attached_is_added_first) {
  are_run(60);
  constexpr uint32_t kInitialized = 1, kBound = 2, kActive = 1U << 4;
  fake_.set(fake_.thread().state(), layout().thread.status, kInitialized | kBound | kActive);
  refresh();
  EXPECT_NE(threads_.find(fake_.thread().state()), nullptr);
  EXPECT_LT(threads_.all().size(), 60U);
}

bool has_no_gil(const python::Layout& row) {
  return row.traits.free_threaded;
}
INSTANTIATE_TEST_SUITE_P(Sampler, FreeThreadLists, testing::ValuesIn(test::layout_rows(has_no_gil)),
                         test::row_name);
INSTANTIATE_TEST_SUITE_P(Sampler, PythonThreadLists, testing::ValuesIn(test::layout_rows(has_a_gil)),
                         test::row_name);

}  // namespace
}  // namespace phlox::sampler
