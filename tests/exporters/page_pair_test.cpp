#include "phlox/exporters/page_pair.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "support/profile_of.h"

namespace phlox::exporters {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

std::string stack_of(const PageTables& tables, uint32_t node) {
  std::string text;
  for (; node != 0; node = tables.nodes[node].parent) {
    const PagePlace& place = tables.places[tables.nodes[node].place];
    const view::Label& label = tables.functions[place.function].label;
    text =
        label.file + "/" + label.name + ":" + std::to_string(place.line) + (text.empty() ? "" : ";") + text;
  }
  return text;
}

using Weights = std::map<std::pair<uint32_t, std::string>, Nanoseconds>;  // by thread and stack

Weights weights(const PageTables& tables) {
  Weights all;
  for (const PageSpan& span : tables.spans) all[{span.thread, stack_of(tables, span.node)}] += span.wall;
  return all;
}

PageTables tables_of(const profile::Profile& profile) {
  auto tables = make_page_tables(profile, {});
  EXPECT_TRUE(tables);
  return *std::move(tables);
}

// Of a recording whose files lie in `folder` and whose functions begin `shift` lines further down.
PageTables moved(PageTables tables, const std::string& folder, int32_t shift) {
  for (PageFunction& function : tables.functions) {
    if (function.label.kind == profile::FrameKind::marker) continue;
    function.label.file = folder + "/app.py";
    function.label.line += shift;
  }
  for (PagePlace& place : tables.places) place.line += place.line > 0 ? shift : 0;
  return tables;
}

TEST(page_pair, functions_that_moved_are_the_same_and_shown_as_after_has_them) {
  profile::Profile before, after;
  test::ProfileMaker old_one(before), new_one(after);
  old_one.thread("idle");
  old_one.add(old_one.thread("main"), "main:9;work:12", 3 * kMillisecond);
  old_one.add(profile::ThreadId(2), "main:9;gone:4", kMillisecond);
  new_one.add(new_one.thread("main"), "main:9;work:12", 5 * kMillisecond);
  const PageTables pair =
      combine_pages(moved(tables_of(before), "/old", 0), moved(tables_of(after), "/new", 30), 2);
  const Weights expected = {
      {{1, "/new/app.py/main:39;/new/app.py/work:42"}, 3 * kMillisecond},
      {{1, "/new/app.py/main:39;/old/app.py/gone:4"}, kMillisecond},
      {{2, "/new/app.py/main:39;/new/app.py/work:42"}, 5 * kMillisecond},
  };
  EXPECT_EQ(weights(pair), expected);
  EXPECT_EQ(pair.nodes.size(), 4U);
  for (uint32_t node = 1; node < pair.nodes.size(); ++node) EXPECT_LT(pair.nodes[node].parent, node);
}

TEST(page_pair, states_of_both_are_one_table) {
  profile::Profile before, after;
  test::ProfileMaker old_one(before), new_one(after);
  old_one.add(old_one.thread("main"), "main:1", kMillisecond);
  auto blocked = new_one.sample(new_one.thread("main"), "main:1", kMillisecond);
  blocked.cpu_state = profile::CpuState::blocked;
  new_one.put(blocked);
  new_one.add(profile::ThreadId(1), "main:1", kMillisecond);
  const PageTables tables[] = {tables_of(before), tables_of(after)};
  const PageTables pair = combine_pages(tables[0], tables[1], 1);
  ASSERT_EQ(pair.states.size(), 2U);
  for (const PageSpan& span : pair.spans) {
    const auto& from = tables[span.thread];
    bool found = false;
    for (const PageSpan& other : from.spans)
      found = found || from.states[other.state] == pair.states[span.state];
    EXPECT_TRUE(found);
  }
}

TEST(page_pair, an_empty_side_leaves_the_other_as_it_is) {
  profile::Profile nothing, after;
  test::ProfileMaker make(after);
  make.add(make.thread("main"), "main:3;work:4", kMillisecond);
  const PageTables alone = tables_of(after);
  EXPECT_EQ(weights(combine_pages(tables_of(nothing), alone, 0)), weights(alone));
  EXPECT_EQ(weights(combine_pages(alone, tables_of(nothing), 1)), weights(alone));
}

TEST(page_pair, waits_of_both_name_threads_and_places_of_the_pair) {
  profile::Profile before, after;
  for (profile::Profile* profile : {&before, &after}) {
    test::ProfileMaker make(*profile);
    const auto thread = make.thread("a");
    profile->emit(profile::WakerId(1), {thread, make.stack("main;put:7"), {}});
    auto wait = make.sample(thread, profile == &after ? "main:9;get:5" : "get:5", kMillisecond);
    wait.cpu_state = profile::CpuState::blocked;
    wait.system_call = 202;
    wait.waker = profile::WakerId(1);
    make.put(wait);
  }
  const PageTables pair = combine_pages(tables_of(before), tables_of(after), 1);
  ASSERT_EQ(pair.spans.size(), 2U);
  for (const PageSpan& span : pair.spans) {
    const PageWait& wait = pair.waits[span.wait];
    EXPECT_EQ(wait.by, static_cast<int32_t>(span.thread));
    EXPECT_EQ(pair.functions[pair.places[wait.place].function].label.name, "get");
    EXPECT_EQ(pair.places[wait.by_place].line, 7);
  }
}

}  // namespace
}  // namespace phlox::exporters
