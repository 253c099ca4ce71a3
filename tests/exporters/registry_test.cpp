#include "phlox/exporters/registry.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "phlox/exporters/diff_svg.h"
#include "phlox/exporters/recording_picture.h"
#include "phlox/profile/counters.h"
#include "support/profile_of.h"

namespace phlox::exporters {
namespace {

namespace counters = profile::counters;

constexpr Nanoseconds kMillisecond = 1'000'000;

// Two threads, a few spans, a rejected one, and the facts around them.
profile::Profile shop() {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  profile::ThreadId main = make.thread("MainThread");
  profile::ThreadId worker = make.thread("worker-1");
  make.add(main, "main:3;load:7", 20 * kMillisecond);
  make.add(main, "main:4;render:9", 10 * kMillisecond);
  make.add(worker, "run:1;load:8", 5 * kMillisecond);
  make.add(main, "main:3;load:7", 15 * kMillisecond);
  profile::Sample rejected = make.sample(worker, "(rejected, moved while read)", 2 * kMillisecond);
  rejected.quality = profile::Quality::rejected;
  make.put(rejected);
  for (auto [name, value] : {std::pair{counters::kSamples, int64_t{5}},
                             {counters::kRejectedMoved, 1},
                             {counters::kTicks, 5},
                             {counters::kElapsed, 50 * kMillisecond},
                             {counters::kAskedRate, 100'000}}) {
    profile.emit({profile::ProcessId(), std::string(name), value});
  }
  return profile;
}

std::string exported(std::string_view format, const profile::Profile& profile,
                     const view::Choices& choices = {}) {
  std::ostringstream out;
  Result<void> done = find_format(format)->write(profile, choices, {}, out);
  EXPECT_TRUE(done) << done.error().message;
  return out.str();
}

TEST(registry, names_and_extensions_are_unique_and_found) {
  std::set<std::string_view> seen;
  for (const Format& format : formats()) {
    EXPECT_TRUE(seen.insert(format.name).second);
    EXPECT_EQ(find_format(format.name), &format);
    EXPECT_FALSE(format.description.empty());
    ASSERT_FALSE(format.extensions.empty());
    for (std::string_view extension : format.extensions) {
      EXPECT_EQ(extension[0], '.');
      EXPECT_TRUE(seen.insert(extension).second);
      EXPECT_EQ(find_format_for_file("/tmp/a" + std::string(extension)), &format);
    }
  }
  EXPECT_EQ(find_format("SVG"), nullptr);
  EXPECT_EQ(find_format_for_file("A.SVG"), find_format("svg"));
  EXPECT_EQ(find_format_for_file("x.speedscope.json"), find_format("speedscope"));
  EXPECT_EQ(find_format_for_file("a.phlox"), nullptr);
  EXPECT_EQ(format_names(),
            "svg, html, collapsed, speedscope, pprof, otlp, firefox, perfetto, chrome, callgrind, pstats, "
            "jsonl, csv");
  EXPECT_EQ(find_format_for_file("x.FIREFOX.json.gz"), find_format("firefox"));
  EXPECT_EQ(find_format_for_file("x.json"), find_format("speedscope"));
}

TEST(registry, every_format_writes_every_recording_and_the_same_twice) {
  profile::Profile empty;
  for (const Format& format : formats()) {
    for (view::Weight weight : {view::Weight::wall, view::Weight::cpu, view::Weight::samples}) {
      view::Choices choices;
      choices.weight = weight;
      exported(format.name, empty, choices);
      EXPECT_EQ(exported(format.name, shop(), choices), exported(format.name, shop(), choices))
          << format.name;
    }
  }
}

TEST(registry, choices_that_cannot_be_read_write_nothing) {
  view::Choices choices;
  choices.thread_regex = "(";
  for (const Format& format : formats()) {
    std::ostringstream out;
    Result<void> done = format.write(shop(), choices, {}, out);
    ASSERT_FALSE(done) << format.name;
    EXPECT_EQ(done.error().kind, ErrorKind::usage);
    EXPECT_EQ(out.str(), "");
  }
}

TEST(registry, collapsed_golden) {
  EXPECT_EQ(exported("collapsed", shop()),
            "(rejected: could not be read) 2000000\n"
            "main (/app/app.py);load (/app/app.py) 35000000\n"
            "main (/app/app.py);render (/app/app.py) 10000000\n"
            "run (/app/app.py);load (/app/app.py) 5000000\n");
}

TEST(registry, collapsed_by_line_and_thread_golden) {
  view::Choices choices;
  choices.by.line = true;
  choices.by.thread = true;
  choices.weight = view::Weight::samples;
  EXPECT_EQ(exported("collapsed", shop(), choices),
            "(rejected: could not be read) 1\n"
            "Thread MainThread (4711);main (/app/app.py:3);load (/app/app.py:7) 2\n"
            "Thread MainThread (4711);main (/app/app.py:4);render (/app/app.py:9) 1\n"
            "Thread worker-1 (4712);run (/app/app.py:1);load (/app/app.py:8) 1\n");
}

TEST(registry, speedscope_golden) {
  std::string expected =
      R"~({"$schema":"https://www.speedscope.app/file-format-schema.json","name":"python3 app.py",)~";
  expected += R"~("exporter":"phlox )~";
  expected += PHLOX_VERSION;
  expected += R"~(","shared":{"frames":[{"name":"main","file":"/app/app.py","line":1},)~";
  expected +=
      R"~({"name":"load","file":"/app/app.py","line":1},{"name":"render","file":"/app/app.py","line":1},)~";
  expected +=
      R"~({"name":"run","file":"/app/app.py","line":1},{"name":"(rejected, moved while read)"}]},"profiles":[)~";
  expected += R"~({"type":"sampled","name":"Thread MainThread (4711)","unit":"nanoseconds","startValue":0,)~";
  expected +=
      R"~("endValue":45000000,"samples":[[0,1],[0,2],[0,1]],"weights":[20000000,10000000,15000000]},)~";
  expected += R"~({"type":"sampled","name":"Thread worker-1 (4712)","unit":"nanoseconds","startValue":0,)~";
  expected += R"~("endValue":7000000,"samples":[[3,1],[4]],"weights":[5000000,2000000]}]})~";
  EXPECT_EQ(exported("speedscope", shop()), expected);
}

TEST(registry, speedscope_without_samples_still_has_a_profile) {
  std::string text = exported("speedscope", profile::Profile());
  EXPECT_NE(text.find(R"("profiles":[{"type":"sampled","name":"no samples")"), std::string::npos) << text;
}

TEST(registry, picture_by_line_draws_the_lines) {
  view::Choices choices;
  choices.by.line = true;
  std::string text = exported("svg", shop(), choices);
  EXPECT_NE(text.find(">load:7</text>"), std::string::npos);
  EXPECT_EQ(exported("svg", shop()).find(">load:"), std::string::npos);
}

TEST(registry, picture_says_what_is_shown_and_how_far_to_believe_it) {
  view::Choices choices;
  choices.states = static_cast<uint8_t>(view::StateChoice::running);
  choices.thread_regex = "Main";
  Result<view::CallTree> tree = view::build_call_tree(shop(), choices);
  ASSERT_TRUE(tree);
  FlamePicture picture = make_picture(shop(), choices, *tree, {});
  EXPECT_EQ(picture.title, "python3 app.py");
  EXPECT_EQ(picture.subtitle,
            "Python 3.12.1, pid 4711, 2 threads over 50.0 ms. Widths: wall time, only while running, only "
            "threads /Main/.");
  ASSERT_EQ(picture.quality.size(), 1U);
  EXPECT_TRUE(picture.quality[0].starts_with(
      "5 samples (100 Hz of 100 Hz asked), 0 missed, 0 retried, 1 rejected (20.0 %"));
  EXPECT_TRUE(picture.warning.starts_with("20.0 % of the samples")) << picture.warning;
}

TEST(registry, picture_says_when_and_where_and_that_the_recorder_was_killed) {
  profile::Profile profile = shop();
  profile.emit_meta("start_unix_ns", "1763711940123456789");
  profile.emit_meta("host", "build<7>");
  profile.emit_meta("start_monotonic_ns", "1");
  FlamePicture picture = make_picture(profile, {}, *view::build_call_tree(profile, {}), {});
  EXPECT_EQ(picture.subtitle,
            "Python 3.12.1, pid 4711, 2 threads over 50.0 ms, 2025-11-21 07:59 UTC on build<7>. Widths: wall "
            "time.");
  ASSERT_EQ(picture.quality.size(), 2U);
  EXPECT_TRUE(picture.quality[1].starts_with("the recorder was killed"));
  profile.emit_meta("end_monotonic_ns", "2");
  EXPECT_EQ(make_picture(profile, {}, *view::build_call_tree(profile, {}), {}).quality.size(), 1U);
}

TEST(html, a_page_carries_its_policy_and_nothing_to_load) {
  const std::string page = exported("html", shop());
  EXPECT_NE(page.find("default-src 'none'; script-src 'sha256-"), std::string::npos);
  for (const char* loads : {"src=\"", "href=\"http", "url(http", "@import"})
    EXPECT_EQ(page.find(loads), std::string::npos) << loads;
  EXPECT_NE(page.find("<title>python3 app.py</title>"), std::string::npos);
}

TEST(html, names_are_never_markup) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  make.add(make.thread("</script><hostile>"), "<hostile>", kMillisecond);
  ExportOptions options;
  options.title = "</script><hostile>&";
  std::ostringstream out;
  ASSERT_TRUE(find_format("html")->write(profile, {}, options, out));
  EXPECT_EQ(out.str().find("</script><hostile>"), std::string::npos);
  EXPECT_EQ(out.str().find("<hostile>"), std::string::npos);
}

TEST(html, a_page_that_cannot_be_small_enough_is_an_error_with_numbers) {
  ExportOptions options;
  options.page_bytes = 1000;
  std::ostringstream out;
  const Result<void> done = find_format("html")->write(shop(), {}, options, out);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::output);
  EXPECT_EQ(out.str(), "");
}

TEST(diff_svg, carries_both_recordings) {
  profile::Profile before = shop();
  profile::Profile after;
  test::ProfileMaker make(after);
  make.add(make.thread("MainThread"), "main;render", 10 * kMillisecond);
  std::ostringstream out;
  ASSERT_TRUE(write_diff_svg(before, after, {}, {}, out));
  for (const char* words :
       {"Difference: python3 app.py", "before: 5 samples", "after: 0 samples", "\"changes\":["}) {
    EXPECT_NE(out.str().find(words), std::string::npos) << words;
  }
}

}  // namespace
}  // namespace phlox::exporters
