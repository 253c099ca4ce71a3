#include "phlox/top/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "phlox/base/utf8.h"
#include "support/profile_of.h"

namespace phlox::top {
namespace {

std::string text_of(const Line& line) {
  std::string text;
  for (const Span& span : line) text += span.text;
  return text;
}

// A shop: the main thread computes, another one waits for the GIL.
Seen shop(const Pick& pick = {}) {
  Model model(5 * kSecond);
  test::ProfileMaker maker(model);
  const auto main = maker.thread("MainThread", 4711), worker = maker.thread("worker-1", 4712);
  const auto add = [&](profile::ThreadId thread, const std::string& stack, Nanoseconds wall, bool runs) {
    profile::Sample sample = maker.sample(thread, stack, wall);
    sample.cpu = runs ? wall : 0;
    sample.cpu_state = runs ? profile::CpuState::running : profile::CpuState::blocked;
    sample.gil_state = runs ? profile::GilState::holds : profile::GilState::waits;
    maker.put(sample);
  };
  add(main, "main:3;load:10;json/decoder.py/decode:5", 3 * kSecond, true);
  add(main, "main:4;load:11", kSecond, true);
  add(worker, "run:7;get:9", 4 * kSecond, false);
  return picked(model.seen(), pick);
}

Picture picture_of(const Controls& controls, const Seen& seen = shop()) {
  auto made = make_picture(seen, controls.picture_options());
  EXPECT_TRUE(made);
  return made ? *made : Picture();
}

std::string screen(const Controls& controls, Size size = {80, 24}) {
  Head head;
  head.title = "pid 4711: python3 shop.py";
  head.elapsed = 4 * kSecond;
  std::string text;
  for (const Line& line : layout(head, picture_of(controls), controls, size)) {
    std::string one = text_of(line);
    EXPECT_LE(columns_of(one), size.columns) << one;
    one.erase(one.find_last_not_of(' ') + 1);
    text += one + "\n";
  }
  return text;
}

TEST(layout, functions_at_80_by_24) {
  const std::string text = screen({});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 24) << text;
  EXPECT_TRUE(text.starts_with("phlox top  pid 4711: python3 shop.py  ")) << text;
  EXPECT_NE(text.find("\nCPU 100 %   GIL held 100 %, waited for 100 %   threads 2 (1 computing)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n     last 4 s   since start   work   wall time   by self\n"
                      "  SELF  TOTAL   SELF  TOTAL  FUNCTION"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  50.0   50.0   50.0   50.0  get"), std::string::npos) << text;
  EXPECT_NE(text.find("  37.5   37.5   37.5   37.5  decode"), std::string::npos) << text;
  EXPECT_NE(text.find("  12.5   50.0   12.5   50.0  load"), std::string::npos) << text;
  EXPECT_NE(text.find("? help"), std::string::npos) << text;
}

TEST(layout, at_80_columns_the_rate_is_whole_and_rejections_are_said_where_there_are_some) {
  Model model(5 * kSecond);
  test::ProfileMaker maker(model);
  maker.add(maker.thread("MainThread"), "main", kSecond);
  model.emit({{}, "rejected_moved", 3});
  const std::string text = screen({}, {80, 24});
  EXPECT_EQ(text.find("rejected"), std::string::npos) << text;
  EXPECT_NE(picture_of({}, model.seen()).quality.find("3 rejected"), std::string::npos);
}

TEST(layout, what_is_called_alike_in_other_files_is_another_row) {
  Model model(5 * kSecond);
  test::ProfileMaker maker(model);
  maker.add(maker.thread("MainThread"), "/lib/a/__init__.py/<module>:1;/lib/b/__init__.py/<module>:1",
            kSecond);
  const Picture picture = picture_of({}, model.seen());
  ASSERT_EQ(picture.places.size(), 2u);
  for (const PlaceRow& row : picture.places) EXPECT_EQ(row.total, 1.0);
  EXPECT_EQ(picture.places[0].where, "a/__init__.py:1");
  EXPECT_EQ(picture.places[1].where, "b/__init__.py:1");
}

TEST(layout, every_page_fits_every_size) {
  for (const Page page :
       {Page::functions, Page::lines, Page::threads, Page::processes, Page::loops, Page::stack, Page::help}) {
    Controls controls;
    controls.page = page;
    controls.stack_name = "load";
    for (const size_t columns : {1, 7, 20, 40, 80, 200}) {
      for (const size_t rows : {1, 2, 5, 24, 60}) {
        const std::string text = screen(controls, {columns, rows});
        EXPECT_LE(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), rows);
      }
    }
  }
}

TEST(layout, event_loops_have_the_parts_of_their_time) {
  const std::string lib = "/usr/lib/python3.12/", once = "main;" + lib + "asyncio/base_events.py/_run_once",
                    poll = once + ";" + lib + "selectors.py/EpollSelector.select",
                    callback = once + ";" + lib + "asyncio/events.py/_run;";
  Model model(10 * kSecond);
  test::ProfileMaker maker(model);
  model.emit_meta("machine", "x86_64");
  const auto thread = maker.thread("MainThread", 4711);
  profile::Process process;
  process.mode = profile::kInTheKernel;
  model.emit(profile::ProcessId(1), process);
  const auto add = [&](const std::string& stack, Nanoseconds wall, profile::CpuState state, int16_t call) {
    profile::Sample sample = maker.sample(thread, stack, wall);
    sample.cpu_state = state;
    sample.system_call = call;
    sample.gil_state = profile::GilState::none;
    maker.put(sample);
  };
  constexpr int16_t kEpollWait = 232, kRecvfrom = 45;
  add(poll, 5 * kSecond, profile::CpuState::blocked, kEpollWait);
  add(callback + "fetch:4", 3 * kSecond, profile::CpuState::blocked, kRecvfrom);
  add(callback + "parse:9", 2 * kSecond, profile::CpuState::running, -1);
  Controls controls;
  controls.page = Page::loops;
  const Picture picture = picture_of(controls, model.seen());
  ASSERT_EQ(picture.loops.size(), 1u);
  EXPECT_EQ(picture.loops[0].kind, "asyncio");
  EXPECT_DOUBLE_EQ(picture.loops[0].idle, 0.5);
  EXPECT_DOUBLE_EQ(picture.loops[0].blocked, 0.3);
  EXPECT_DOUBLE_EQ(picture.loops[0].running, 0.2);
  std::string text;
  for (const Line& line : layout({}, picture, controls, {100, 24})) text += text_of(line) + "\n";
  EXPECT_NE(
      text.find(
          "  50.0   20.0   30.0                       MainThread (asyncio)  stall of at least 5.00 s in"),
      std::string::npos)
      << text;
  press(controls, kEnter, picture, 10);
  EXPECT_EQ(controls.pick.thread, thread);
}

TEST(layout, without_event_loops_their_page_says_so) {
  Controls controls;
  controls.page = Page::loops;
  EXPECT_NE(screen(controls).find("no event loop"), std::string::npos);
}

TEST(layout, threads_have_bars_of_their_states) {
  Controls controls;
  controls.page = Page::threads;
  const std::string text = screen(controls);
  EXPECT_NE(text.find(" 100.0  100.0     4711 [##########] MainThread  decode"), std::string::npos) << text;
  EXPECT_NE(text.find("                  4712 [gggggggggg] worker-1    get: 100 % the GIL"),
            std::string::npos)
      << text;
}

TEST(layout, a_stack_is_the_heaviest_through_the_place) {
  Controls controls;
  press(controls, 's', picture_of(controls), 10);  // by total
  const Picture picture = picture_of(controls);
  const auto rows = rows_of(picture, controls);
  const auto load =
      std::find_if(rows.begin(), rows.end(), [&](size_t i) { return picture.places[i].name == "load"; });
  controls.cursor = static_cast<size_t>(load - rows.begin());
  press(controls, kEnter, picture, 10);
  EXPECT_EQ(controls.page, Page::stack);
  const std::string text = screen(controls);
  EXPECT_NE(text.find("37.5 %, innermost first"), std::string::npos) << text;
  EXPECT_LT(text.find("decode"), text.find("load")) << text;
  press(controls, kEscape, picture_of(controls), 10);
  EXPECT_EQ(controls.page, Page::functions);
}

TEST(layout, hostile_names_move_no_cursor) {
  Model model(kSecond);
  test::ProfileMaker maker(model);
  maker.add(maker.thread("\x1b[2J"), "a\x1b[31m\r\nb\xff", kSecond);
  for (const Page page : {Page::functions, Page::threads}) {
    Controls controls;
    controls.page = page;
    controls.show = view::Show::everything;
    for (const Line& line : layout({}, picture_of(controls, model.seen()), controls, {80, 24})) {
      for (const char c : text_of(line)) EXPECT_GE(static_cast<unsigned char>(c), 0x20u);
    }
  }
}

TEST(layout, a_text_is_cut_by_columns_and_not_by_bytes) {
  EXPECT_EQ(fit("Grüße", 5), "Grüße");
  EXPECT_EQ(fit("Grüße", 4), "Grü…");
  EXPECT_EQ(fit("ab", 4), "ab  ");
  EXPECT_EQ(fit("日本語", 5), "日本…");
  EXPECT_EQ(fit("日本語", 4), "日… ");
  EXPECT_EQ(columns_of("日本"), 4u);
  EXPECT_EQ(columns_of("e\u0301"), 1u);
  EXPECT_EQ(fit("abc", 0), "");
}

TEST(layout, as_text_has_no_foot_and_no_blanks_at_the_end) {
  const std::string text = as_text({}, picture_of({}), {}, {160, 25});
  EXPECT_EQ(text.find("help"), std::string::npos);
  EXPECT_EQ(text.find(" \n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n"));
}

TEST(controls, a_filter_is_typed_and_taken_back) {
  Controls controls;
  const Picture picture = picture_of(controls);
  EXPECT_EQ(rows_of(picture, controls).size(), 3u);
  for (const int key : {int{'/'}, int{'d'}, int{'x'}, int{kBackspace}, int{'e'}, int{kEnter}})
    press(controls, key, picture, 10);
  EXPECT_EQ(controls.filter, "de");
  EXPECT_EQ(rows_of(picture, controls).size(), 1u);
  press(controls, kEscape, picture, 10);
  EXPECT_EQ(rows_of(picture, controls).size(), 3u);
}

TEST(controls, a_filter_may_say_where_a_name_ends_and_leaves_a_stack_whole) {
  Controls controls;
  controls.filter = "^decode$";
  EXPECT_EQ(rows_of(picture_of(controls), controls).size(), 1u);
  press(controls, kEnter, picture_of(controls), 10);
  EXPECT_EQ(controls.page, Page::stack);
  EXPECT_EQ(rows_of(picture_of(controls), controls).size(), 3u);
}

TEST(controls, what_is_no_expression_is_said_and_changes_nothing) {
  Controls controls;
  const Picture picture = picture_of(controls);
  for (const int key : {int{'/'}, int{'('}, int{kEnter}}) press(controls, key, picture, 10);
  EXPECT_EQ(controls.filter, "");
  EXPECT_EQ(controls.message, "not a regular expression: (");
}

TEST(controls, the_cursor_stays_on_the_rows) {
  Controls controls;
  const Picture picture = picture_of(controls);
  for (int i = 0; i < 9; ++i) press(controls, kDown, picture, 2);
  EXPECT_EQ(controls.cursor, 2u);
  EXPECT_EQ(controls.first, 1u);
  press(controls, kHome, picture, 2);
  EXPECT_EQ(controls.first, 0u);
  press(controls, kPageUp, picture, 2);
  EXPECT_EQ(controls.cursor, 0u);
}

TEST(controls, enter_on_a_thread_picks_it_and_escape_takes_all) {
  Controls controls;
  controls.page = Page::threads;
  controls.filter = "worker";
  press(controls, kEnter, picture_of(controls), 10);
  ASSERT_TRUE(controls.pick.thread);
  EXPECT_EQ(controls.filter, "");
  EXPECT_EQ(controls.picked, "thread worker-1 (4712)");
  const Picture picture = picture_of(controls, shop(controls.pick));
  ASSERT_FALSE(picture.places.empty());
  for (const PlaceRow& row : picture.places) EXPECT_NE(row.name, "decode");
  press(controls, kEscape, picture, 10);
  EXPECT_FALSE(controls.pick.thread);
}

TEST(controls, help_leads_back_to_where_it_was_asked_for) {
  Controls controls;
  const Picture picture = picture_of(controls);
  press(controls, kEnter, picture, 10);
  press(controls, '?', picture, 10);
  EXPECT_EQ(controls.page, Page::help);
  press(controls, kEscape, picture, 10);
  EXPECT_EQ(controls.page, Page::stack);
  press(controls, kEscape, picture, 10);
  EXPECT_EQ(controls.page, Page::functions);
}

TEST(controls, q_quits_but_not_while_a_filter_is_typed) {
  Controls controls;
  press(controls, '/', {}, 10);
  EXPECT_EQ(press(controls, 'q', {}, 10), Wish::nothing);
  press(controls, kEscape, {}, 10);
  EXPECT_EQ(press(controls, 'q', {}, 10), Wish::quit);
}

}  // namespace
}  // namespace phlox::top
