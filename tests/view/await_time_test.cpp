#include "phlox/view/await_time.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "phlox/profile/sampled_events.h"
#include "phlox/view/shown_event.h"
#include "phlox/view/view.h"
#include "phlox/view/work.h"
#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

constexpr Nanoseconds kMs = 1'000'000;

// Loop 1 in MainThread, loop 2 in a thread that is not known; stacks 1: "handle:12", 2:
// "handle:12;acquire:50".
class AwaitTime : public testing::Test {
 protected:
  void SetUp() override {
    main_ = maker_.thread("MainThread");
    maker_.add(main_, "main;run", 10 * kMs);
    tasks_.put_event_loop(EventLoopId(1), {ProcessId(1), main_, "asyncio"});
    tasks_.put_event_loop(EventLoopId(2), {ProcessId(1), ThreadId(), "Loop"});
    tasks_.put_task_stack(TaskStackId(1), {{}, maker_.frame("handle:12")});
    tasks_.put_task_stack(TaskStackId(2), {TaskStackId(1), maker_.frame("acquire:50")});
  }
  void put(uint32_t loop, uint32_t stack, TaskState state, const std::string& kind,
           const std::string& awaited, Nanoseconds time) {
    const auto id = static_cast<uint32_t>(tasks_.times.size() + 1);
    tasks_.put_task_time(TaskTimeId(id),
                         {EventLoopId(loop), TaskStackId(stack), state, kind, awaited, time, 2, time});
  }
  std::vector<std::string> lines(const Choices& choices) {
    const auto tree = build_call_tree(profile_, choices);
    std::vector<std::string> lines;
    for (size_t i = 1; tree && i < tree->nodes.size(); ++i) {
      if (tree->nodes[i].self == 0) continue;
      std::string line;
      for (size_t at = i; at != 0; at = tree->nodes[at].parent)
        line = tree->labels[tree->nodes[at].label].name + (line.empty() ? "" : ";") + line;
      lines.push_back(line + " " + std::to_string(tree->nodes[i].self / kMs));
    }
    return lines;
  }

  Profile profile_;
  test::ProfileMaker maker_{profile_};
  TaskRows tasks_;
  ThreadId main_;
};

using Lines = std::vector<std::string>;

TEST_F(AwaitTime, is_an_event_with_the_coroutines_as_stacks_and_what_they_await_innermost) {
  put(1, 2, TaskState::waiting, "lock", "Lock", 30 * kMs);
  put(1, 2, TaskState::waiting, "lock", "Lock", 5 * kMs);
  put(1, 2, TaskState::waiting, "sleep", "", 7 * kMs);
  put(1, 1, TaskState::waiting, "", "", 2 * kMs);
  ASSERT_TRUE(add_await_time(profile_, tasks_));
  EXPECT_EQ(lines({}), Lines{"main;run 10"}) << "what was shown stays";
  EXPECT_FALSE(shows_await_time(profile_));
  EXPECT_EQ(weight_title(profile_, Weight::wall), "wall time") << "as if there were no event";
  ASSERT_TRUE(show_event(profile_, kAwaitTime));
  EXPECT_TRUE(shows_await_time(profile_));
  EXPECT_EQ(weight_title(profile_, Weight::wall), "await time");
  EXPECT_EQ(lines({}),
            (Lines{"handle;(awaits something unknown) 2", "handle;acquire;(awaits a lock (Lock)) 35",
                   "handle;acquire;(awaits the end of sleep()) 7"}));
  Choices by_line;
  by_line.by.line = by_line.by.thread = true;
  EXPECT_EQ(lines(by_line).front(), "Thread MainThread (4711);handle;(awaits something unknown) 2");
  EXPECT_EQ(line_label(profile_, tasks_.stacks[0].frame).line, 12);
}

TEST_F(AwaitTime, is_waiting_within_work) {
  put(1, 1, TaskState::waiting, "queue_item", "Queue", 30 * kMs);
  ASSERT_TRUE(add_await_time(profile_, tasks_));
  ASSERT_TRUE(show_event(profile_, kAwaitTime));
  // A marker in the place of a thread's innermost frames hides what it waited for.
  EXPECT_EQ(WorkRule(profile_).of(profile_.samples()[0]), Doing::waiting);
  for (const Show show : {Show::everything, Show::work, Show::waiting}) {
    Choices choices;
    choices.show = show;
    EXPECT_EQ(lines(choices), Lines{"handle;(awaits an item of a queue (Queue)) 30"}) << show_name(show);
  }
  Choices computing;
  computing.show = Show::computing;
  EXPECT_TRUE(lines(computing).empty());
}

TEST_F(AwaitTime, leaves_out_tasks_that_are_ready_or_run) {
  put(1, 1, TaskState::ready, "", "", 30 * kMs);
  put(1, 1, TaskState::running, "", "", 30 * kMs);
  EXPECT_FALSE(add_await_time(profile_, tasks_));
  EXPECT_TRUE(sampled_events(profile_).empty());
  put(1, 1, TaskState::waiting, "sleep", "", 1 * kMs);
  ASSERT_TRUE(add_await_time(profile_, tasks_));
  ASSERT_TRUE(show_event(profile_, kAwaitTime));
  EXPECT_EQ(lines({}), Lines{"handle;(awaits the end of sleep()) 1"});
}

TEST_F(AwaitTime, of_a_loop_without_a_known_thread_is_in_a_row_of_its_own) {
  put(2, 1, TaskState::waiting, "sleep", "", 3 * kMs);
  put(2, 2, TaskState::waiting, "sleep", "", 4 * kMs);
  ASSERT_TRUE(add_await_time(profile_, tasks_));
  ASSERT_EQ(profile_.threads().size(), 2u);
  EXPECT_FALSE(is_unknown_thread_of_loop(profile_.threads()[0]));
  EXPECT_TRUE(is_unknown_thread_of_loop(profile_.threads()[1]));
  ASSERT_TRUE(show_event(profile_, kAwaitTime));
  Choices choices;
  choices.by.thread = true;
  EXPECT_EQ(lines(choices),
            (Lines{"Thread of an event loop (Loop);handle;(awaits the end of sleep()) 3",
                   "Thread of an event loop (Loop);handle;acquire;(awaits the end of sleep()) 4"}));
}

TEST_F(AwaitTime, of_more_tasks_than_a_sample_holds_does_not_wrap) {
  const Nanoseconds most = std::numeric_limits<int64_t>::max() / 4;  // what a recording may hold in all
  put(1, 1, TaskState::waiting, "sleep", "", most);
  tasks_.times[0].seen = uint64_t{1} << 40;
  ASSERT_TRUE(add_await_time(profile_, tasks_));
  ASSERT_TRUE(show_event(profile_, kAwaitTime));
  const auto tree = build_call_tree(profile_, {});
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->total, most);
  EXPECT_EQ(tree->samples, std::numeric_limits<uint32_t>::max());
}

TEST_F(AwaitTime, stays_out_of_a_profile_with_events_of_its_own) {
  put_sampled_event(profile_, 1, {"cycles", Unit::count});
  put(1, 1, TaskState::waiting, "sleep", "", 1 * kMs);
  EXPECT_FALSE(add_await_time(profile_, tasks_));
  EXPECT_EQ(sampled_events(profile_).size(), 1u);
}

}  // namespace
}  // namespace phlox::view
