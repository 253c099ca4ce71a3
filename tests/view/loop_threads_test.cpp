#include "phlox/view/loop_threads.h"

#include <gtest/gtest.h>

#include <string>

#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

const std::string kUvloop = "main;/usr/lib/python3.11/asyncio/runners.py/run;handle:7";
const std::string kTrio =
    "main;/usr/lib/python3.11/site-packages/trio/_core/_run.py/run;"
    "/usr/lib/python3.11/site-packages/trio/_core/_run.py/unrolled_run;handle:7";

class LoopThreads : public testing::Test {
 protected:
  ThreadId named(const std::string& type) {
    tasks_.put_event_loop(EventLoopId(1), {ProcessId(1), {}, type});
    name_loop_threads(tasks_, profile_);
    return tasks_.loops[0].thread;
  }
  void ran(ThreadId thread, const std::string& frames) { maker_.add(thread, frames, kSecond); }

  Profile profile_;
  test::ProfileMaker maker_{profile_};
  ThreadId main_ = maker_.thread("MainThread"), worker_ = maker_.thread("worker");
  TaskRows tasks_;
};

TEST_F(LoopThreads, is_the_only_one_that_ran_a_loop) {
  ran(main_, "main;other:3");
  ran(worker_, kUvloop);
  EXPECT_EQ(named("uvloop.Loop"), worker_);
}

TEST_F(LoopThreads, of_trio_is_told_from_one_of_asyncio) {
  ran(main_, kUvloop);
  ran(worker_, kTrio);
  EXPECT_EQ(named("trio"), worker_);
}

TEST_F(LoopThreads, is_not_known_where_two_ran_one) {
  ran(main_, kUvloop);
  ran(worker_, kUvloop);
  EXPECT_FALSE(named("uvloop.Loop"));
}

TEST_F(LoopThreads, is_not_known_where_there_are_two_loops) {
  ran(worker_, kUvloop);
  tasks_.put_event_loop(EventLoopId(2), {ProcessId(1), main_, "_UnixSelectorEventLoop"});
  EXPECT_FALSE(named("uvloop.Loop"));
}

TEST_F(LoopThreads, is_none_of_another_process) {
  const ProcessId other = maker_.process(99);
  ran(maker_.thread("MainThread", 99, other), kUvloop);
  EXPECT_FALSE(named("uvloop.Loop"));
}

TEST_F(LoopThreads, that_says_its_thread_keeps_it) {
  ran(worker_, kUvloop);
  tasks_.put_event_loop(EventLoopId(1), {ProcessId(1), main_, "Loop"});
  name_loop_threads(tasks_, profile_);
  EXPECT_EQ(tasks_.loops[0].thread, main_);
}

}  // namespace
}  // namespace phlox::view
