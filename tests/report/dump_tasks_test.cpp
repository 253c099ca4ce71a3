#include "phlox/report/dump_tasks.h"

#include <gtest/gtest.h>

namespace phlox::report {
namespace {

const DumpLine kNoLines = [](const std::string&, int32_t) { return std::string_view(); };

DumpTask task(const std::string& name, int32_t line, const std::string& kind = "future") {
  DumpTask out;
  out.name = name;
  out.frames = {{0, line}, {1, 50}};
  out.kind = kind;
  return out;
}

// Of one loop, whose thread is not known.
DumpTasks program(std::vector<DumpTask> tasks) {
  DumpTasks out;
  out.pid = 1;
  out.functions = {{"handle", "handle", "/app/web.py", 10},
                   {"acquire", "Lock.acquire", "/lib/asyncio/locks.py", 40}};
  out.loops = {{"uvloop.Loop", 0}};
  out.tasks = std::move(tasks);
  return out;
}

TEST(DumpTasks, are_grouped_by_outermost_coroutine_and_line_the_largest_group_first) {
  DumpTasks all = program({task("alone", 12), task("a", 20, "lock"), task("b", 20, "lock"), task("c", 20)});
  all.tasks[3].state = DumpTaskState::ready;
  EXPECT_EQ(tasks_text({}, all, false, kNoLines),
            "\nEvent loop (uvloop.Loop), 4 tasks: 0 running, 1 ready, 3 waiting\n"
            "    3 tasks: 2 waiting for a lock, 1 ready to run; for example a: waiting for a lock\n"
            "        Lock.acquire (/lib/asyncio/locks.py:50)\n"
            "        handle (/app/web.py:20)\n"
            "    alone: waiting for a future\n"
            "        Lock.acquire (/lib/asyncio/locks.py:50)\n"
            "        handle (/app/web.py:12)\n");
}

TEST(DumpTasks, that_do_the_same_have_one_example_that_does_not_repeat_it) {
  const std::string text = tasks_text({}, program({task("a", 20), task("b", 20)}), false, kNoLines);
  EXPECT_NE(text.find("    2 tasks: waiting for a future; for example a\n"), std::string::npos) << text;
}

TEST(DumpTasks, are_listed_one_by_one_with_the_tasks_that_await_them_if_requested) {
  DumpTasks all = program({task("a", 20), task("b", 20, "task"), task("sleeper", 20, "sleep")});
  all.tasks[1].awaits = {0};
  all.tasks[2].awaited = "0.25";
  const std::string text = tasks_text({}, all, true, kNoLines);
  EXPECT_NE(text.find("    a: waiting for a future; awaited by b\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    b: waiting for another task: a\n"), std::string::npos) << text;
  EXPECT_NE(text.find("    sleeper: waiting for sleep(0.25)\n"), std::string::npos) << text;
}

TEST(DumpTasks, that_differ_by_their_sockets_alone_are_of_one_phrase) {
  DumpTasks all = program({task("a", 20, "socket"), task("b", 20, "socket"), task("c", 30, "sleep")});
  all.tasks[0].socket = "127.0.0.1:80";
  all.tasks[0].peer = "127.0.0.1:4711";
  all.tasks[2].seconds_left = 7.25;
  const std::string text = tasks_text({}, all, false, kNoLines);
  EXPECT_NE(text.find("2 tasks: waiting for a socket; for example a: waiting for a socket, 127.0.0.1:80 "
                      "connected to 127.0.0.1:4711\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("c: waiting for the end of sleep(), 7.2 s left"), std::string::npos) << text;
}

TEST(DumpTasks, that_await_each_other_are_named_once) {
  DumpTasks all =
      program({task("a", 1, "task"), task("b", 1, "task"), task("c", 1, "task"), task("d", 1, "task")});
  all.tasks[0].awaits = {1};  // leads into the circle, is none of it
  all.tasks[1].awaits = {2};
  all.tasks[2].awaits = {3};
  all.tasks[3].awaits = {1};
  const std::string text = tasks_text({}, all, false, kNoLines);
  EXPECT_NE(text.find("\nTasks that await each other in a circle: b, c, d, which awaits b\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("circle"), text.rfind("circle"));
}

TEST(DumpTasks, that_wait_for_a_lock_name_its_holders_and_are_a_circle_with_a_single_one) {
  DumpTasks all =
      program({task("a", 1, "lock"), task("b", 2, "lock"), task("c", 3, "semaphore"), task("d", 4)});
  all.locks = {{{1}}, {{0}}, {{2, 3}}};
  all.tasks[0].lock = 1;
  all.tasks[1].lock = 2;
  all.tasks[2].lock = 3;
  const std::string text = tasks_text({}, all, true, kNoLines);
  EXPECT_NE(text.find("a: waiting for a lock, held by b\n"), std::string::npos) << text;
  EXPECT_NE(text.find("c: waiting for a semaphore, held by c, d\n"), std::string::npos) << text;
  EXPECT_NE(text.find("circle: a, b, which awaits a\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("circle"), text.rfind("circle"));
}

TEST(DumpTasks, that_sleep_for_different_times_are_one_phrase) {
  DumpTasks all = program({task("a", 1, "sleep"), task("b", 1, "sleep"), task("c", 1, "sleep")});
  all.tasks[0].awaited = "10";
  all.tasks[1].awaited = "0.5";
  all.tasks[2].awaited = "9";
  const std::string text = tasks_text({}, all, false, kNoLines);
  EXPECT_NE(text.find("3 tasks: waiting for sleep(0.5) to sleep(10); for example a: waiting for sleep(10)\n"),
            std::string::npos)
      << text;
}

TEST(DumpTasks, that_wait_for_a_job_have_the_frames_of_its_thread_above_their_own) {
  DumpTasks all = program({task("a", 12, "thread_job"), task("b", 20, "thread_job")});
  all.tasks[0].job = DumpJob{false, 7, {{0, 33}}};
  all.tasks[1].job = DumpJob{true, 0, {}};
  EXPECT_EQ(tasks_text({}, all, false, kNoLines),
            "\nEvent loop (uvloop.Loop), 2 tasks: 0 running, 0 ready, 2 waiting\n"
            "    a: waiting for a function that runs in a thread\n"
            "        handle (/app/web.py:33)\n"
            "      which runs in a thread for\n"
            "        Lock.acquire (/lib/asyncio/locks.py:50)\n"
            "        handle (/app/web.py:12)\n"
            "    b: waiting for a function that runs in a thread\n"
            "      no thread has begun it yet\n"
            "        Lock.acquire (/lib/asyncio/locks.py:50)\n"
            "        handle (/app/web.py:20)\n");
}

TEST(DumpTasks, that_are_greenlets_are_called_so) {
  DumpTasks all = program({task("hub", 1), task("a", 20), task("b", 20), task("c", 30)});
  all.loops[0] = {"gevent", 0, true};
  all.tasks[0].state = DumpTaskState::running;
  all.tasks[1].state = all.tasks[2].state = DumpTaskState::parked;
  all.tasks[3].state = DumpTaskState::unstarted;
  const std::string text = tasks_text({}, all, false, kNoLines);
  EXPECT_NE(text.find("\nGreenlets (gevent), 4: 1 running, 2 parked, 1 not started yet\n"
                      "    2 greenlets: parked; for example a\n"),
            std::string::npos)
      << text;
  all.tasks.resize(1);  // its stack is that of its thread
  EXPECT_EQ(tasks_text({}, all, false, kNoLines), "");
}

TEST(DumpTasks, that_are_missing_are_said_to_be) {
  DumpTasks all = program({});
  EXPECT_EQ(tasks_text({}, all, false, kNoLines), "");
  all.unproved = 2;
  all.ended = 1;
  all.problem = "Phlox does not know the tasks of CPython 3.7";
  EXPECT_EQ(tasks_text({}, all, false, kNoLines),
            "\n2 tasks are not shown: changed each time they were read\n"
            "\n1 task ended before it was read: tasks that began meanwhile are not shown either\n"
            "\nSome tasks may be missing: Phlox does not know the tasks of CPython 3.7\n");
}

TEST(DumpTasks, print_no_control_characters_of_the_target) {
  DumpTasks all = program({task("a\x1b[31m", 20)});
  EXPECT_EQ(tasks_text({}, all, true, kNoLines).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace phlox::report
