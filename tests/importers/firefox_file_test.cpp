#include "phlox/importers/firefox_file.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "phlox/exporters/firefox.h"
#include "phlox/importers/registry.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/view/view.h"
#include "support/imported.h"
#include "support/profile_of.h"

namespace phlox::importers {
namespace {

using test::import_text;
using test::Imported;

// Version 28: every thread has its own tables.
constexpr const char* kOld = R"json({"meta":{"preprocessedProfileVersion":28,"product":"x",
 "categories":[{"name":"Other"},{"name":"Kernel"}],"sampleUnits":{"threadCPUDelta":"us"}},
 "libs":[{"path":"/lib/libc.so.6","codeId":"ab12"}],
 "threads":[{"name":"worker","pid":"12","tid":13,"processName":"app",
  "stringArray":["main","/app.py","memcpy","irq"],
  "stackTable":{"frame":[0,1,2],"prefix":[null,0,1]},
  "frameTable":{"func":[0,1,2],"line":[7,null,null],"category":[0,0,1],"address":[-1,4096,-1]},
  "funcTable":{"name":[0,2,3],"fileName":[1,null,null],"lineNumber":[2,null,null],"resource":[-1,0,-1]},
  "resourceTable":{"lib":[0]},
  "samples":{"stack":[0,2,null,9],"time":[1.5,2.5,3.5,4],"weight":null,"weightType":"samples","threadCPUDelta":[null,400,600,0]}}]})json";

TEST(FirefoxImport, a_sample_has_a_stack_and_a_time) {
  const Imported in = import_text(import_firefox, kOld);
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.profile.samples()[0].start, 1'500'000);
  // What a sample lasts is not in the file; what CPU time passed until the next one is.
  EXPECT_EQ(in.profile.samples()[0].wall, 0);
  EXPECT_EQ(in.profile.samples()[0].cpu, 400'000);
  EXPECT_EQ(in.profile.samples()[1].cpu, 600'000);
  EXPECT_EQ(in.stack(1), (std::vector<std::string>{"irq", "memcpy", "main"}));
  const auto& frames = in.profile.frames();
  EXPECT_EQ(frames[0].kind, profile::FrameKind::python);
  EXPECT_EQ(frames[0].file, "/app.py");
  EXPECT_EQ(frames[0].line, 7);
  EXPECT_EQ(frames[0].first_line, 2);
  EXPECT_EQ(frames[1].kind, profile::FrameKind::native);
  EXPECT_EQ(frames[1].address, 4096u);
  EXPECT_EQ(in.profile.modules()[0].build_id, "ab12");
  EXPECT_EQ(frames[2].kind, profile::FrameKind::kernel);
  EXPECT_EQ(in.profile.threads()[0].tid, 13);
  EXPECT_EQ(in.profile.processes()[0].pid, 12);
  EXPECT_EQ(in.outcome.warnings.size(), 1u);  // there is no stack 9
}

TEST(FirefoxImport, milliseconds_are_time_and_bytes_are_not) {
  std::string text = kOld;
  text.replace(text.find("\"weight\":null,\"weightType\":\"samples\""), 36,
               R"("weight":[1.25,0.5,0,1],"weightType":"tracing-ms")");
  EXPECT_EQ(import_text(import_firefox, text).profile.samples()[0].wall, 1'250'000);
  text.replace(text.find("tracing-ms"), 10, "bytes");
  const Imported in = import_text(import_firefox, text);
  EXPECT_EQ(in.profile.samples()[0].wall, 0);
  EXPECT_EQ(in.outcome.warnings.size(), 2u);  // and fractions of a byte
}

// `text` with these weights in place of none.
std::string weighted(std::string text, std::string_view weights, std::string_view type) {
  text.replace(text.find("\"weight\":null,\"weightType\":\"samples\""), 36,
               fmt::format(R"("weight":{},"weightType":"{}")", weights, type));
  return text;
}

TEST(FirefoxImport, large_weights_and_bytes_are_values_of_an_event) {
  using profile::SampledEvent, profile::Unit;
  const Imported counts = import_text(import_firefox, weighted(kOld, "[9007199254740993,1,0,1]", "samples"));
  EXPECT_EQ(profile::sampled_events(counts.profile), (std::vector<SampledEvent>{{"weight", Unit::count}}));
  ASSERT_EQ(counts.profile.samples().size(), 2u);
  EXPECT_EQ(counts.profile.samples()[0].value, 9'007'199'254'740'993);
  EXPECT_EQ(counts.profile.samples()[1].value, 1);
  const Imported bytes = import_text(import_firefox, weighted(kOld, "[4096,-512,0,1]", "bytes"));
  EXPECT_EQ(profile::sampled_events(bytes.profile),
            (std::vector<SampledEvent>{{"bytes", Unit::bytes}, {"bytes (less)", Unit::bytes}}));
  EXPECT_EQ(bytes.profile.samples()[1].value, 512);
  EXPECT_EQ(bytes.outcome.warnings.size(), 2u);  // there is no stack 9, and some was freed
  // Few enough to be samples.
  EXPECT_EQ(import_text(import_firefox, weighted(kOld, "[3,4,0,1]", "samples")).outcome.samples, 7u);
}

TEST(FirefoxImport, rounded_weights_keep_their_sum_and_missing_ones_are_said) {
  const Imported in = import_text(import_firefox, weighted(kOld, "[0.4,0.4,0.4,0.4]", "samples"));
  EXPECT_EQ(in.outcome.samples, 1u);
  EXPECT_EQ(in.outcome.warnings.size(), 2u);  // there is no stack 9
  const Imported missing = import_text(import_firefox, weighted(kOld, "[3]", "samples"));
  EXPECT_EQ(missing.outcome.samples, 4u);
  EXPECT_EQ(missing.outcome.warnings.size(), 2u);
}

// As the Firefox Profiler's comparison of two profiles has them.
TEST(FirefoxImport, weights_below_zero_are_an_event_of_their_own) {
  using profile::SampledEvent, profile::Unit;
  const Imported counts = import_text(import_firefox, weighted(kOld, "[-3,5,0,1]", "samples"));
  EXPECT_EQ(profile::sampled_events(counts.profile),
            (std::vector<SampledEvent>{{"weight", Unit::count}, {"weight (less)", Unit::count}}));
  EXPECT_EQ(counts.profile.samples()[0].value, 3);
  EXPECT_EQ(counts.profile.samples()[1].value, 5);
  const Imported time = import_text(import_firefox, weighted(kOld, "[-1.5,2,0,1]", "tracing-ms"));
  EXPECT_EQ(profile::sampled_events(time.profile)[1].name, "time (less)");
  EXPECT_EQ(time.profile.samples()[0].wall, 1'500'000);
  // As much as there is, not nothing.
  const Imported large =
      import_text(import_firefox, weighted(kOld, "[18446744073709551615,1,0,1]", "samples"));
  EXPECT_EQ(large.profile.samples()[0].value, std::numeric_limits<int64_t>::max());
}

TEST(FirefoxImport, times_since_1970_count_from_the_first) {
  std::string text = kOld;
  text.replace(text.find("[1.5,2.5,3.5,4]"), 15, "[1764246000001.5,1764246000002.5,3.5,4]");
  const Imported in = import_text(import_firefox, text);
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.profile.samples()[1].start - in.profile.samples()[0].start, 1'000'000);
  EXPECT_EQ(in.profile.samples()[0].start, 0);
}

TEST(FirefoxImport, what_firefox_records_itself_is_refused_with_what_helps) {
  const std::string_view text = R"json({"meta":{"version":29},"threads":[],"libs":[]})json";
  MemoryInput input(std::as_bytes(std::span(text)));
  profile::Profile profile;
  const auto refused = import_firefox(input, {}, profile);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().hint.find("profiler.firefox.com"), std::string::npos);
}

TEST(FirefoxImport, stacks_whose_beginning_comes_behind_them_are_none) {
  std::string text = kOld;
  text.replace(text.find("[null,0,1]"), 10, "[2,0,1]");
  const Imported in = import_text(import_firefox, text);
  EXPECT_TRUE(in.profile.samples().empty());
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
}

// Our own export comes back with every nanosecond of each thread and stack.
TEST(FirefoxImport, what_was_exported_comes_back) {
  profile::Profile before;
  test::ProfileMaker maker(before);
  maker.add(maker.thread("Main", 7), "main;load:3;parse", 1'234'567'891);
  maker.add(maker.thread("other", 8), "main;wait", 3);
  std::ostringstream json;
  ASSERT_TRUE(exporters::write_firefox_json(before, {}, "a", json));
  const Imported in = import_text(import_firefox, json.str());
  EXPECT_EQ(in.profile.threads()[1].name, "other");
  EXPECT_EQ(in.profile.threads()[1].tid, 8);
  const auto walls = [](const profile::Profile& profile) {
    std::map<std::pair<std::string, std::string>, Nanoseconds> sums;
    for (const auto& sample : profile.samples()) {
      std::string stack;
      for (auto id = sample.stack; id; id = profile.stack(id).parent)
        stack += ";" + profile.frame(profile.stack(id).frame).qualified_name;
      sums[{profile.threads()[sample.thread.value - 1].name, stack}] += sample.wall;
    }
    return sums;
  };
  EXPECT_EQ(walls(in.profile), walls(before));
  EXPECT_TRUE(in.outcome.warnings.empty());
}

TEST(FirefoxImport, it_is_recognised_by_its_content) {
  const std::string_view text = kOld;
  MemoryInput input(std::as_bytes(std::span(text)));
  ASSERT_NE(recognise(input), nullptr);
  EXPECT_EQ(recognise(input)->name, "firefox");
}

}  // namespace
}  // namespace phlox::importers
