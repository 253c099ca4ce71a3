#include "phlox/exporters/page_tables.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "phlox/exporters/page_size.h"
#include "phlox/view/await_time.h"
#include "support/profile_of.h"

namespace phlox::exporters {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

std::string stack_of(const PageTables& tables, uint32_t node) {
  std::string text;
  for (; node != 0; node = tables.nodes[node].parent) {
    const PagePlace& place = tables.places[tables.nodes[node].place];
    text = tables.functions[place.function].label.name + ":" + std::to_string(place.line) +
           (text.empty() ? "" : ";") + text;
  }
  return text;
}

using Weights = std::map<std::string, Nanoseconds>;

Weights weights(const PageTables& tables) {
  Weights all;
  for (const PageSpan& span : tables.spans) all[stack_of(tables, span.node)] += span.wall;
  return all;
}

PageTables tables_of(const profile::Profile& profile, const view::Choices& choices = {}) {
  auto tables = make_page_tables(profile, choices);
  EXPECT_TRUE(tables);
  return *std::move(tables);
}

TEST(page_tables, stacks_become_a_tree_by_line_depth_first_and_by_name) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto thread = make.thread("main");
  make.add(thread, "main:9;work:2", kMillisecond);
  make.add(thread, "main:3;work:2;deep:1", kMillisecond);
  make.add(thread, "main:3;again:1", kMillisecond);
  const PageTables tables = tables_of(profile);
  std::string seen;
  for (uint32_t node = 1; node < tables.nodes.size(); ++node) {
    EXPECT_LT(tables.nodes[node].parent, node);
    seen += stack_of(tables, node) + "\n";
  }
  EXPECT_EQ(seen, "main:3\nmain:3;again:1\nmain:3;work:2\nmain:3;work:2;deep:1\nmain:9\nmain:9;work:2\n");
  EXPECT_EQ(tables.functions.size(), 5U);  // with "all"
}

TEST(page_tables, states_name_the_library_that_ran) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto thread = make.thread("main");
  profile.emit(profile::ModuleId(1), {"/usr/lib/libblas.so.3", "", 0});
  profile::Sample sample = make.sample(thread, "main:3", kMillisecond);
  sample.code_file = profile::ModuleId(1);
  make.put(sample);
  make.add(thread, "main:3", kMillisecond);
  const PageTables tables = tables_of(profile);
  ASSERT_EQ(tables.states.size(), 2U);
  EXPECT_EQ(tables.states[0].library, "libblas");
  EXPECT_EQ(tables.states[1].library, "");
}

TEST(page_tables, stacks_are_those_with_what_forked_children_inherited) {
  profile::Profile own, all;
  for (profile::Profile* profile : {&own, &all}) {
    test::ProfileMaker make(*profile);
    const auto thread = make.thread("main");
    make.add(thread, "main:1;work:2", kMillisecond);
    make.add(thread, profile == &all ? "main:1;work:2" : "work:2", kMillisecond);
  }
  auto tables = make_page_tables(own, {}, &all);
  ASSERT_TRUE(tables);
  EXPECT_EQ(weights(*tables), (Weights{{"main:1;work:2", 2 * kMillisecond}}));
  // Another recording is none of it.
  profile::Profile other;
  tables = make_page_tables(own, {}, &other);
  ASSERT_TRUE(tables);
  EXPECT_EQ(weights(*tables), (Weights{{"main:1;work:2", kMillisecond}, {"work:2", kMillisecond}}));
}

TEST(page_tables, await_time_is_there_alongside_inherited_frames) {
  profile::Profile own, all;
  for (profile::Profile* profile : {&own, &all}) {
    test::ProfileMaker make(*profile);
    const auto thread = make.thread("main");
    make.add(thread, "main:1;work:2", kMillisecond);
    if (profile == &all) make.stack("work:2;main:1");  // stacks are numbered otherwise
    make.add(thread, profile == &all ? "main:1;work:2" : "work:2", kMillisecond);
    profile::TaskRows tasks;
    tasks.put_event_loop(profile::EventLoopId(1), {profile::ProcessId(1), thread, "asyncio"});
    tasks.put_task_stack(profile::TaskStackId(1), {{}, make.frame("work:2")});
    profile::TaskTime time;
    time.loop = profile::EventLoopId(1);
    time.stack = profile::TaskStackId(1);
    time.kind = "lock";
    time.time = 70 * kMillisecond;
    tasks.put_task_time(profile::TaskTimeId(1), time);
    ASSERT_TRUE(view::add_await_time(*profile, tasks));
  }
  const auto tables = make_page_tables(own, {}, &all);
  ASSERT_TRUE(tables);
  ASSERT_EQ(tables->events.size(), 1U);
  Weights threads, awaits;
  for (const PageSpan& span : tables->spans) {
    if (span.event == 1) {
      awaits[stack_of(*tables, span.node)] += span.value;
      EXPECT_EQ(span.wall, 0);
      EXPECT_EQ(span.doing, view::Doing::waiting);
    } else {
      threads[stack_of(*tables, span.node)] += span.wall;
    }
  }
  EXPECT_EQ(awaits, (Weights{{"work:2;(awaits a lock):0", 70 * kMillisecond}}));
  EXPECT_EQ(threads, (Weights{{"main:1;work:2", 2 * kMillisecond}}));
}

TEST(page_tables, rejected_time_and_time_without_frames_lie_beneath_the_root) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto thread = make.thread("main");
  profile::Sample rejected = make.sample(thread, "(rejected, moved while read)", 2 * kMillisecond);
  rejected.quality = profile::Quality::rejected;
  make.put(rejected);
  profile::Sample bare = make.sample(thread, "x", 3 * kMillisecond);
  bare.stack = {};
  make.put(bare);
  EXPECT_EQ(weights(tables_of(profile)), (Weights{{"(rejected: could not be read):0", 2 * kMillisecond},
                                                  {"(no Python frames):0", 3 * kMillisecond}}));
}

TEST(page_tables, spans_are_by_thread_then_by_start_since_the_recording_began) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto first = make.thread("a"), second = make.thread("b");
  make.add(second, "f", kMillisecond);
  make.add(first, "f", kMillisecond);
  make.add(second, "g", kMillisecond);
  const PageTables tables = tables_of(profile);
  ASSERT_EQ(tables.spans.size(), 3U);
  EXPECT_EQ(tables.spans[0].thread, 0U);
  EXPECT_EQ(tables.spans[1].start, 0);
  EXPECT_EQ(tables.spans[2].start, kMillisecond);
}

TEST(page_tables, choices_say_what_goes_in_and_nothing_else_is_named) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  make.add(make.thread("a"), "secret", kMillisecond);
  make.add(make.thread("b"), "shown", kMillisecond);
  view::Choices choices;
  choices.thread_regex = "^b$";
  const PageTables tables = tables_of(profile, choices);
  ASSERT_EQ(tables.functions.size(), 2U);
  EXPECT_EQ(tables.functions[1].label.name, "shown");
}

// A thread that waits in `get` for a socket, twice, and then for a lock that thread 2 let go of in `put`.
profile::Profile waiting() {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto thread = make.thread("a"), other = make.thread("b");
  profile.emit(profile::WakerId(1), {other, make.stack("main;put:7;/usr/lib/python3.12/queue.py/put"), {}});
  profile.emit(profile::WaitTargetId(1), {profile::WaitTargetKind::socket, "10.0.0.5:5432", "db (9)"});
  const auto wait = [&](const char* frames, int16_t call, uint32_t wait_target, uint32_t waker) {
    profile::Sample sample = make.sample(thread, frames, kMillisecond);
    sample.cpu_state = profile::CpuState::blocked;
    sample.system_call = call;
    sample.wait_target = profile::WaitTargetId(wait_target);
    sample.waker = profile::WakerId(waker);
    make.put(sample);
  };
  wait("main:1;get:5", 45, 1, 0);
  make.add(thread, "main:1", kMillisecond);
  wait("main:1;get:5", 45, 1, 0);
  wait("main:1;get:6", 202, 0, 0);
  wait("main:1;get:6", 202, 0, 1);
  return profile;
}

std::string place_of(const PageTables& tables, uint32_t place) {
  return tables.functions[tables.places[place].function].label.name + ":" +
         std::to_string(tables.places[place].line);
}

TEST(page_tables, spans_have_wait_target_and_waker) {
  const PageTables tables = tables_of(waiting());
  ASSERT_EQ(tables.waits.size(), 3U);
  std::vector<uint32_t> waits;
  for (const PageSpan& span : tables.spans) waits.push_back(span.wait);
  EXPECT_EQ(waits, (std::vector<uint32_t>{1, 0, 1, 2, 2}));
  EXPECT_EQ(tables.waits[1].words, "a socket, 10.0.0.5:5432 with db (recvfrom)");
  EXPECT_EQ(tables.waits[1].which, "10.0.0.5:5432 with db (9)");
  EXPECT_EQ(place_of(tables, tables.waits[1].place), "get:5");
  EXPECT_EQ(tables.waits[1].by, -1);
  EXPECT_EQ(tables.waits[2].words, "a lock (futex)");
  EXPECT_EQ(place_of(tables, tables.waits[2].place), "get:6");
  EXPECT_EQ(tables.waits[2].by, 1);
  EXPECT_EQ(place_of(tables, tables.waits[2].by_place), "put:7");  // which is on no stack of the page's
}

TEST(page_tables, merging_leaves_each_wait_its_time) {
  PageTables tables = tables_of(waiting());
  merge_page(tables, 0);
  std::map<uint32_t, Nanoseconds> waits;
  for (const PageSpan& span : tables.spans) waits[span.wait] += span.wall;
  EXPECT_EQ(waits, (std::map<uint32_t, Nanoseconds>{
                       {0, kMillisecond}, {1, 2 * kMillisecond}, {2, 2 * kMillisecond}}));
}

TEST(page_tables, rare_waits_keep_what_they_were_for_and_the_rarest_nothing) {
  const auto wait = [](test::ProfileMaker& make, const char* frames, uint32_t wait_target, Nanoseconds wall) {
    profile::Sample sample = make.sample(profile::ThreadId(1), frames, wall);
    sample.cpu_state = profile::CpuState::blocked;
    sample.system_call = 45;
    sample.wait_target = profile::WaitTargetId(wait_target);
    make.put(sample);
  };
  profile::Profile profile;
  test::ProfileMaker make(profile);
  make.thread("a");
  profile.emit(profile::WaitTargetId(1), {profile::WaitTargetKind::socket, "10.0.0.5:5432", "db (9)"});
  profile.emit(profile::WaitTargetId(2), {profile::WaitTargetKind::socket, "10.0.0.6:80", ""});
  wait(make, "main:1;often:5", 1, 1000 * kMillisecond);
  wait(make, "main:1;rarely:6", 1, 20 * kMillisecond);
  wait(make, "main:1;rarely:7", 1, 20 * kMillisecond);
  wait(make, "main:1;often:5", 2, kMillisecond);
  PageTables tables = tables_of(profile);
  ASSERT_EQ(tables.waits.size(), 5U);
  merge_page(tables, kMergeSteps - 1);  // 3 %
  std::map<std::string, Nanoseconds> which;
  for (const PageSpan& span : tables.spans) {
    const PageWait& told = tables.waits[span.wait];
    which[told.words + "|" + told.which] += span.wall;
  }
  EXPECT_EQ(which,
            (std::map<std::string, Nanoseconds>{
                {"a socket, 10.0.0.5:5432 with db (recvfrom)|10.0.0.5:5432 with db (9)", 1000 * kMillisecond},
                {"a socket, 10.0.0.5:5432 with db (recvfrom)|", 40 * kMillisecond},
                {"|", kMillisecond}}));
  EXPECT_EQ(tables.waits.size(), 3U);
}

profile::Profile busy() {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto one = make.thread("a"), two = make.thread("b");
  for (int i = 0; i < 400; ++i) {
    make.add(one, i % 2 ? "main:1;hot:2" : "main:1;warm:3", kMillisecond + i);
    make.add(two, "run:1;f" + std::to_string(i) + ":1;leaf:2", 10);
    make.add(two, "run:1;wait:5", 2 * kMillisecond);
  }
  return profile;
}

TEST(page_size, the_mildest_merges_keep_every_sum) {
  for (size_t step = 0; step < 7; ++step) {
    PageTables tables = tables_of(busy());
    const Weights before = weights(tables);
    const size_t spans = tables.spans.size();
    const PageMerge merge = merge_page(tables, step);
    EXPECT_EQ(weights(tables), before);
    EXPECT_EQ(merge.rare_share, 0);
    EXPECT_EQ(merge.spans_before, spans);
    EXPECT_EQ(merge.spans_after, tables.spans.size());
    EXPECT_LT(tables.spans.size(), spans);
  }
}

TEST(page_size, merged_spans_stay_in_their_window_and_do_not_overlap) {
  PageTables tables = tables_of(busy());
  merge_page(tables, 3);
  constexpr Nanoseconds kWindow = 100 * kMillisecond;
  for (size_t i = 1; i < tables.spans.size(); ++i) {
    const PageSpan &before = tables.spans[i - 1], &after = tables.spans[i];
    if (before.thread != after.thread) continue;
    EXPECT_LE(before.start + before.wall, after.start);
    EXPECT_LE(after.start / kWindow - before.start / kWindow, 1);
  }
}

TEST(page_size, rare_stacks_end_at_a_marker_and_no_caller_gets_their_time_as_its_own) {
  PageTables tables = tables_of(busy());
  const Weights before = weights(tables);
  const PageMerge merge = merge_page(tables, 9);  // below a ten thousandth
  const Weights after = weights(tables);
  EXPECT_GT(merge.rare_share, 0);
  EXPECT_EQ(merge.cut_wall, 4000);
  EXPECT_EQ(after.at("run:1;(frames left out to fit the page):0"), 4000);
  EXPECT_FALSE(after.contains("run:1"));
  EXPECT_EQ(after.at("main:1;hot:2"), before.at("main:1;hot:2"));
  EXPECT_LT(merge.nodes_after, 12U);
}

}  // namespace
}  // namespace phlox::exporters
