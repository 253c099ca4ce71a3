#include "phlox/sampler/capture/task_ids.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <future>
#include <thread>

#include "phlox/memory/process_memory.h"

namespace phlox::sampler {
namespace {

using Why = TaskIds::Why;

uint64_t self() {
  return ::pthread_self();
}

// A thread of ours, as long as this lives.
class Thread {
 public:
  Thread()
      : thread_([this] {
          ids_.set_value({self(), ::gettid()});
          end_.get_future().wait();
        }) {
    std::tie(python_id, tid) = ids_.get_future().get();
  }
  ~Thread() {
    end_.set_value();
    thread_.join();
  }
  uint64_t python_id = 0;
  pid_t tid = 0;

 private:
  std::promise<std::pair<uint64_t, pid_t>> ids_;
  std::promise<void> end_;
  std::thread thread_;
};

class OfThisProcess : public testing::Test {
 protected:
  memory::ProcessMemory memory_{::getpid()};
  TaskIds ids_{::getpid(), memory_};
};

TEST_F(OfThisProcess, both_words_agree) {
  const Thread other;
  EXPECT_EQ(ids_.find(self(), static_cast<uint64_t>(::getpid())).tid, ::getpid());
  EXPECT_EQ(ids_.find(other.python_id, static_cast<uint64_t>(other.tid)).tid, other.tid);
}

TEST_F(OfThisProcess, without_the_kernels_id_the_c_library_is_asked) {
  const Thread other;
  EXPECT_EQ(ids_.find(other.python_id, 0).tid, other.tid);
  EXPECT_EQ(ids_.find(self(), 0).tid, ::getpid());
}

TEST_F(OfThisProcess, a_stale_id_of_the_thread_that_forked_is_put_right) {
  const auto parent = static_cast<uint64_t>(::getppid());
  EXPECT_EQ(ids_.find(self(), parent).tid, ::getpid());
}

TEST_F(OfThisProcess, a_stale_id_that_is_now_another_threads_is_noticed) {
  const Thread other;
  EXPECT_EQ(ids_.find(self(), static_cast<uint64_t>(other.tid)).tid, ::getpid());
}

TEST_F(OfThisProcess, a_state_left_behind_is_not_taken_for_the_thread_that_has_its_stack_by_now) {
  const Thread other;
  const auto task = ids_.find(other.python_id, static_cast<uint64_t>(::getppid()));
  EXPECT_EQ(task.tid, 0);
  EXPECT_EQ(task.why, Why::no_thread);
}

TEST_F(OfThisProcess, a_thread_that_has_ended_is_none) {
  uint64_t python_id = 0;
  pid_t tid = 0;
  {
    const Thread gone;
    python_id = gone.python_id;
    tid = gone.tid;
    EXPECT_EQ(ids_.find(python_id, 0).tid, tid);
  }
  ids_.forget();
  EXPECT_EQ(ids_.find(python_id, 0).tid, 0);
}

// musl's, as far as it is read: pointers, and behind them the id. With ids up to 32,768 there is one in a
// hundred that is the upper half of a pointer.
TEST_F(OfThisProcess, the_upper_half_of_a_pointer_is_no_id) {
  const Thread other;
  std::array<uint64_t, 0x100> fake{};
  fake[0] = fake[2] = static_cast<uint64_t>(::getpid()) << 32 | 0x1000;
  fake[6] = static_cast<uint64_t>(other.tid);
  EXPECT_EQ(ids_.find(reinterpret_cast<uint64_t>(fake.data()), 0).tid, other.tid);
}

// Another C library than those that we know: nothing at that address is an id.
TEST_F(OfThisProcess, without_a_struct_pthread_the_kernels_id_is_taken_where_there_is_such_a_thread) {
  static const char nothing[0x1000] = {};
  const auto address = reinterpret_cast<uint64_t>(nothing);
  const auto task = ids_.find(address, static_cast<uint64_t>(::getpid()));
  EXPECT_EQ(task.tid, ::getpid());
  const auto stale = ids_.find(address, static_cast<uint64_t>(::getppid()));
  EXPECT_EQ(stale.tid, 0);
  EXPECT_EQ(stale.why, Why::unknown);
}

}  // namespace
}  // namespace phlox::sampler
