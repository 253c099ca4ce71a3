#include "phlox/view/awaiters.h"

#include <gtest/gtest.h>

#include "phlox/profile/recorded_words.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/loop_stalls.h"
#include "phlox/view/prepared.h"
#include "support/tasks_of.h"

namespace phlox::view {
namespace {

using namespace profile;
using test::kFastApi;
using test::kLoop;
using test::kUvloop;
using test::ProfileMaker;

class AwaitersTest : public testing::Test, public test::TasksOf {
 protected:
  void put(const std::string& frames) { maker.add(thread, frames, 10); }
  // The last sample's, below the functions in `outside`: "handler:7;(awaits);price:40".
  static std::string last_of(const Profile& profile, const std::string& outside = kLoop) {
    std::string text;
    for (StackId at = profile.samples().back().stack; at; at = profile.stack(at).parent) {
      const Frame& frame = profile.frame(profile.stack(at).frame);
      const bool is_of_program = frame.kind != FrameKind::python || frame.file.starts_with("/app/");
      std::string one = (is_of_program ? "" : frame.file + "/") + frame.qualified_name;
      if (frame.line != 2 && frame.kind == FrameKind::python) one += ":" + std::to_string(frame.line);
      text = text.empty() ? one : one + ";" + text;
    }
    return text.starts_with(outside) ? text.substr(outside.size()) : "? " + text;
  }
  std::string with_awaiters(const std::string& frames, const std::string& outside = kLoop) {
    put(outside + frames);
    Profile shown = profile;  // the maker goes on with this one
    show_awaiters(shown, rows);
    return last_of(shown, outside);
  }
};

TEST_F(AwaitersTest, what_awaits_a_task_is_between_the_loop_and_the_task) {
  waits("price", stack({"main", "handler:7"}), 9);
  waits("price", {}, 1);
  EXPECT_EQ(with_awaiters("price:40;parse:7"), "main;handler:7;(awaits);price:40;parse:7");
  EXPECT_EQ(with_awaiters("price:41", kUvloop), "main;handler:7;(awaits);price:41");
  EXPECT_EQ(with_awaiters("other:3"), "other:3");
  EXPECT_EQ(with_awaiters("refresh:3;price:40"), "refresh:3;price:40") << "another coroutine awaits it";
  EXPECT_EQ(with_awaiters("price:40", "job;"), "price:40") << "no loop runs it";
}

TEST_F(AwaitersTest, only_what_all_awaiters_share_is_shown) {
  waits("price", stack({"serve:5", "route:9", "dashboard:12"}), 50);
  waits("price", stack({"serve:5", "route:9", "report:30"}), 1);
  waits("query", stack({"serve:5", "dashboard:12", "load:1"}), 9);
  waits("query", stack({"serve:5", "dashboard:14", "load:1"}), 9);
  waits("apart", stack({"dashboard:12"}), 9);
  waits("apart", stack({"report:30"}), 9);
  EXPECT_EQ(with_awaiters("price:40"), "serve:5;route:9;(awaits);price:40");
  EXPECT_EQ(with_awaiters("query:40"), "serve:5;dashboard:0;load:1;(awaits);query:40");
  EXPECT_EQ(with_awaiters("apart:40"), "apart:40");
}

TEST_F(AwaitersTest, nothing_is_shown_that_was_seen_too_seldom) {
  waits("seldom", stack({"main"}), 4);
  waits("mostly_alone", stack({"main"}), 8);
  waits("mostly_alone", {}, 2);
  EXPECT_EQ(with_awaiters("seldom:4"), "seldom:4");
  EXPECT_EQ(with_awaiters("mostly_alone:4"), "mostly_alone:4");
}

TEST_F(AwaitersTest, an_awaiter_may_be_a_task_that_is_awaited) {
  waits("leaf", stack({"middle:8", "helper:3"}), 6);
  waits("middle", stack({"outer:5"}), 7);
  waits("itself", stack({"itself:9"}), 9);
  waits("left", stack({"right:1"}), 9);
  waits("right", stack({"left:1"}), 9);
  EXPECT_EQ(with_awaiters("leaf:1"), "outer:5;(awaits);middle:8;helper:3;(awaits);leaf:1");
  EXPECT_EQ(with_awaiters("itself:9"), "itself:9;(awaits);itself:9");
  EXPECT_EQ(with_awaiters("left:3"), "left:1;(awaits);right:1;(awaits);left:3");
}

TEST_F(AwaitersTest, an_endpoint_is_found_with_them_and_without) {
  waits("price", handler("dashboard:12"), 9);
  waits("of_two", handler("dashboard:12"), 9);
  waits("of_two", handler("report:30"), 9);
  waits("of_others", stack({"run_asgi", kFastApi}), 9);
  for (const std::string frames : {"price:40", "of_two:40", "of_others:40"}) put(kLoop + frames);
  for (const bool awaiters : {false, true}) {
    Choices choices;
    choices.awaiters = awaiters;
    Profile shown = profile;
    prepare_tasks(shown, rows, choices);
    EXPECT_EQ(last_of(shown), awaiters ? "run_asgi;" + kFastApi + ";(awaits);of_others:40" : "of_others:40");
    const Endpoints endpoints(shown);
    const auto of = [&](size_t sample) {
      const uint32_t number = endpoints.of(shown.samples()[sample].stack);
      return number == Endpoints::kNone ? "none" : shown.frame(endpoints[number].frame).function;
    };
    EXPECT_EQ(of(0), "dashboard") << awaiters;
    EXPECT_EQ(of(1), "none") << awaiters;
    EXPECT_EQ(of(2), "none") << awaiters;
  }
}

// Two tasks in one turn stay two callbacks, although one handler awaits both.
TEST_F(AwaitersTest, they_do_not_change_what_an_event_loop_does) {
  profile.emit_meta("machine", "x86_64");
  Process process = profile.process(ProcessId(1));
  process.mode = kInTheKernel;
  profile.emit(ProcessId(1), process);
  waits("price", stack({"handler:7"}), 9);
  waits("stock", stack({"handler:7"}), 9);
  constexpr Nanoseconds kMs = 1'000'000;
  constexpr int16_t kEpoll = 232;
  const std::string poll = kLoop.substr(0, kLoop.find("/usr/lib/python3.12/asyncio/events.py")) +
                           "/usr/lib/python3.12/selectors.py/select";
  for (const std::string frames : {"price:40", "stock:8"}) {
    for (int i = 0; i < 20; ++i) {
      maker.put(maker.blocked(thread, poll, 10 * kMs, kEpoll));
      maker.add(thread, poll.substr(0, poll.rfind(';')), 1 * kMs);
    }
    for (const std::string& callback : {std::string("price:40"), frames}) {
      Sample sample = maker.sample(thread, kLoop + callback, 100 * kMs);
      sample.samples = 100;
      maker.put(sample);
    }
  }
  maker.put(maker.blocked(thread, poll, 10 * kMs, kEpoll));
  const auto callbacks = [&] {
    std::vector<size_t> counts;
    for (const LoopStalls& loop : loop_stalls(profile, *SampleFilter::make_judging(profile, {}), kStall)) {
      for (const auto& row : loop.rows) counts.push_back(row.callbacks);
    }
    return counts;
  };
  EXPECT_EQ(callbacks(), (std::vector<size_t>{1, 2}));
  show_awaiters(profile, rows);
  EXPECT_EQ(callbacks(), (std::vector<size_t>{1, 2}));
  EXPECT_EQ(profile.stack(profile.stack(profile.stack(profile.samples()[40].stack).parent).parent).frame,
            maker.frame("handler:7"));
}

TEST_F(AwaitersTest, a_chain_that_is_too_long_is_not_shown) {
  const std::vector<std::string> frames(1000, "handler:7");
  waits("price", stack(frames), 9);
  std::vector<std::string> too_many = frames;
  too_many.push_back("handler:7");
  waits("stock", stack(too_many), 9);
  EXPECT_EQ(with_awaiters("stock:40"), "stock:40");
  EXPECT_NE(with_awaiters("price:40"), "price:40");
}

TEST_F(AwaitersTest, rows_of_a_damaged_file_are_left_out) {
  put(kLoop + "price:40");
  rows.put_task_group(TaskGroupId(1), {EventLoopId(1), FrameId(999)});
  rows.put_task_group(TaskGroupId(2), {EventLoopId(1), maker.frame("price:40")});
  rows.put_task_stack(TaskStackId(1), {TaskStackId(9), FrameId(999)});
  rows.put_task_waiter(TaskWaiterId(1), {TaskGroupId(1), TaskStackId(77), 9});
  rows.put_task_waiter(TaskWaiterId(2), {TaskGroupId(5), TaskStackId(1), 9});
  rows.put_task_waiter(TaskWaiterId(3), {TaskGroupId(2), TaskStackId(1), 9});
  show_awaiters(profile, rows);
  EXPECT_EQ(last_of(profile), "price:40");
}

}  // namespace
}  // namespace phlox::view
