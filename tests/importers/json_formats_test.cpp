#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "phlox/importers/cpuprofile.h"
#include "phlox/importers/event_numbers.h"
#include "phlox/importers/registry.h"
#include "phlox/importers/speedscope_file.h"
#include "phlox/profile/sampled_events.h"
#include "support/imported.h"

namespace phlox::importers {
namespace {

using test::import_text;
using test::Imported;

constexpr const char* kSampled =
    R"json({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"x",
 "shared":{"frames":[{"name":"main","file":"/app.py","line":3},{"name":"work"}]},
 "profiles":[{"type":"sampled","name":"worker","unit":"milliseconds","startValue":5,"endValue":9,
  "samples":[[0],[0,1],[7]],"weights":[1,2.5,1]}]})json";

TEST(Speedscope, samples_have_the_time_of_their_weight) {
  const Imported in = import_text(import_speedscope, kSampled);
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.profile.samples()[1].start, 1'000'000);  // times begin where the profile does
  EXPECT_EQ(in.profile.samples()[1].wall, 2'500'000);
  EXPECT_EQ(in.profile.samples()[1].cpu, 0);
  EXPECT_EQ(in.stack(1), (std::vector<std::string>{"work", "main"}));
  EXPECT_EQ(in.profile.frames()[0].kind, profile::FrameKind::python);
  EXPECT_EQ(in.profile.frames()[0].line, 3);
  EXPECT_EQ(in.profile.threads()[0].name, "worker");
  EXPECT_EQ(in.outcome.warnings.size(), 1u);  // frame 7 is not there
}

TEST(Speedscope, what_is_open_between_two_events_is_a_span) {
  const Imported in =
      import_text(import_speedscope,
                  R"json({"$schema":"speedscope","shared":{"frames":[{"name":"a"},{"name":"b"}]},
 "profiles":[{"type":"evented","name":"t","unit":"nanoseconds","startValue":0,"endValue":10,"events":[
  {"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":4},{"type":"C","frame":1,"at":6},{"type":"C","frame":0,"at":10}]}]})json");
  ASSERT_EQ(in.profile.samples().size(), 3u);
  EXPECT_EQ(in.profile.samples()[0].wall, 4);
  EXPECT_EQ(in.stack(1), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(in.profile.samples()[2].wall, 4);
  EXPECT_TRUE(in.outcome.warnings.empty());
}

TEST(Speedscope, weights_without_a_unit_of_time_are_counts) {
  const Imported in =
      import_text(import_speedscope, R"json({"$schema":"speedscope","shared":{"frames":[{"name":"a"}]},
 "profiles":[{"type":"sampled","name":"t","unit":"none","samples":[[0]],"weights":[7]}]})json");
  EXPECT_EQ(in.profile.samples()[0].samples, 7u);
  EXPECT_EQ(in.profile.samples()[0].wall, 0);
}

Imported evented(const std::string& events) {
  return import_text(
      import_speedscope,
      R"json({"$schema":"speedscope","shared":{"frames":[{"name":"a"},{"name":"b"},{"name":"c"}]},
 "profiles":[{"type":"evented","name":"t","unit":"nanoseconds","startValue":0,"endValue":40,"events":[)json" +
          events + "]}]}");
}

// "a": from where to where a frame is on the stack, in all.
Nanoseconds total(const Imported& in, std::string_view name) {
  Nanoseconds sum = 0;
  for (size_t i = 0; i < in.profile.samples().size(); ++i) {
    const auto stack = in.stack(i);
    if (std::find(stack.begin(), stack.end(), name) != stack.end()) sum += in.profile.samples()[i].wall;
  }
  return sum;
}

TEST(Speedscope, calls_that_end_in_another_order_keep_their_own_times) {
  const Imported in = evented(
      R"json({"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":10},{"type":"O","frame":2,"at":12},
             {"type":"C","frame":0,"at":20},{"type":"C","frame":1,"at":30},{"type":"C","frame":2,"at":33})json");
  EXPECT_EQ(total(in, "a"), 20);
  EXPECT_EQ(total(in, "b"), 20);
  EXPECT_EQ(total(in, "c"), 21);
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
}

TEST(Speedscope, calls_without_an_end_last_until_their_profile_ends) {
  const Imported in = evented(R"json({"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":10})json");
  EXPECT_EQ(total(in, "a"), 40);
  EXPECT_EQ(total(in, "b"), 30);
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
}

Imported sampled(const std::string& unit, const std::string& samples, const std::string& weights) {
  return import_text(
      import_speedscope,
      R"json({"$schema":"speedscope","shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"sampled","name":"t",
 "unit":")json" +
          unit + R"json(","samples":)json" + samples + R"json(,"weights":)json" + weights + "}]}");
}

TEST(Speedscope, samples_without_a_weight_are_left_out_and_said) {
  const Imported in = sampled("none", "[[0],[0],[0]]", "[2,3]");
  EXPECT_EQ(in.outcome.samples, 5u);
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
  // Without any, each is one.
  EXPECT_EQ(sampled("none", "[[0],[0],[0]]", "[]").outcome.samples, 3u);
}

TEST(Speedscope, rounded_weights_keep_their_sum) {
  const Imported in = sampled("none", "[[0],[0],[0],[0]]", "[0.5,0.5,0.5,0.5]");
  EXPECT_EQ(in.outcome.samples, 2u);
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
  const Imported thirds = sampled("microseconds", "[[0],[0],[0]]", "[0.0003333,0.0003333,0.0003334]");
  Nanoseconds sum = 0;
  for (const auto& sample : thirds.profile.samples()) sum += sample.wall;
  EXPECT_EQ(sum, 1);
}

TEST(Speedscope, bytes_and_large_weights_are_values_of_an_event) {
  const Imported bytes = sampled("bytes", "[[0],[0]]", "[1048576,17]");
  EXPECT_EQ(profile::sampled_events(bytes.profile),
            (std::vector<profile::SampledEvent>{{"bytes", profile::Unit::bytes}}));
  EXPECT_EQ(bytes.profile.samples()[0].value, 1'048'576);
  const Imported large = sampled("none", "[[0]]", "[86400000000000]");
  EXPECT_EQ(large.profile.samples()[0].value, 86'400'000'000'000);
  EXPECT_TRUE(large.outcome.warnings.empty());
}

// Beyond 2^53 a double holds every second number only.
TEST(Speedscope, whole_numbers_of_64_bits_are_exact) {
  const auto sum_of = [](const Imported& in) {
    int64_t sum = 0;
    for (const auto& sample : in.profile.samples()) sum += sample.value + sample.wall;
    return sum;
  };
  EXPECT_EQ(sum_of(sampled("none", "[[0],[0]]", "[9007199254740993,1]")), 9'007'199'254'740'994);
  EXPECT_EQ(sum_of(sampled("bytes", "[[0],[0]]", "[9007199254740993,1]")), 9'007'199'254'740'994);
  EXPECT_EQ(sum_of(sampled("nanoseconds", "[[0],[0]]", "[9007199254740993,1]")), 9'007'199'254'740'994);
  // Times of today, in nanoseconds since 1970.
  const auto evented = [](std::string_view unit, std::string_view from, std::string_view to) {
    return import_text(import_speedscope,
                       fmt::format(R"json({{"$schema":"speedscope","shared":{{"frames":[{{"name":"main"}}]}},
          "profiles":[{{"type":"evented","name":"x","unit":"{}","startValue":{},"endValue":{},"events":[
          {{"type":"O","frame":0,"at":{}}},{{"type":"C","frame":0,"at":{}}}]}}]}})json",
                                   unit, from, to, from, to));
  };
  EXPECT_EQ(sum_of(evented("nanoseconds", "1764246000000000001", "1764246000000000104")), 103);
  EXPECT_EQ(sum_of(evented("none", "0", "9007199254740993")), 9'007'199'254'740'993);
}

TEST(Speedscope, values_beyond_every_sum_are_said) {
  const Imported in = sampled("none", "[[0],[0]]", "[8000000000000000000,2000000000000000000]");
  EXPECT_EQ(in.profile.samples()[1].value, std::numeric_limits<int64_t>::max() - 8'000'000'000'000'000'000);
  EXPECT_EQ(in.outcome.warnings, std::vector<std::string>{EventNumbers::kLeftOut});
  const Imported larger = sampled("bytes", "[[0],[0]]", "[7,18446744073709551615]");
  EXPECT_EQ(larger.profile.samples()[1].value, std::numeric_limits<int64_t>::max() - 7);
  EXPECT_EQ(larger.outcome.warnings, std::vector<std::string>{EventNumbers::kLeftOut});
}

// What a reader of recordings refuses is not written.
TEST(Speedscope, times_that_no_recording_holds_are_said) {
  const Imported in = sampled("nanoseconds", "[[0],[0]]", "[1500000000000000000,1500000000000000000]");
  EXPECT_EQ(in.outcome.warnings.size(), 2u);
  for (const auto& process : in.profile.processes()) EXPECT_LE(process.end, Nanoseconds{1} << 60);
  for (const auto& sample : in.profile.samples()) EXPECT_LE(sample.start, Nanoseconds{1} << 59);
}

// As of a browser: times since 1970 or since boot.
TEST(Speedscope, times_count_from_where_the_first_profile_begins) {
  const Imported in =
      import_text(import_speedscope,
                  R"json({"$schema":"speedscope","shared":{"frames":[{"name":"a"}]},"profiles":[
    {"type":"sampled","name":"t","unit":"microseconds","startValue":1764246000000010,"samples":[[0]],"weights":[5]},
    {"type":"evented","name":"u","unit":"microseconds","startValue":1764246000000000,"events":[
      {"type":"O","frame":0,"at":1764246000000002},{"type":"C","frame":0,"at":1764246000000009}]}]})json");
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.profile.samples()[0].start, 10'000);
  EXPECT_EQ(in.profile.samples()[1].start, 2'000);
  EXPECT_EQ(in.profile.samples()[1].wall, 7'000);
}

TEST(Speedscope, events_are_taken_in_the_order_of_time) {
  const Imported in = evented(
      R"json({"type":"O","frame":0,"at":0},{"type":"C","frame":0,"at":20},{"type":"O","frame":1,"at":5},
             {"type":"C","frame":1,"at":9})json");
  EXPECT_EQ(total(in, "a"), 20);
  EXPECT_EQ(total(in, "b"), 4);
  EXPECT_EQ(in.stack(1), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
  // Also before the profile's start.
  EXPECT_EQ(total(evented(R"json({"type":"O","frame":0,"at":-5},{"type":"C","frame":0,"at":5})json"), "a"),
            10);
}

TEST(Speedscope, frames_without_a_name_and_weights_without_a_sample_are_said) {
  const Imported in =
      import_text(import_speedscope,
                  R"json({"$schema":"speedscope","shared":{"frames":[{"name":""},{"file":"x.py"}]},
    "profiles":[{"type":"sampled","name":"t","unit":"none","samples":[[0,1]],"weights":[2,3]}]})json");
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"[no name]", "[no name]"}));
  EXPECT_EQ(
      in.outcome.warnings,
      (std::vector<std::string>{"1 weight is of no sample and was left out: speedscope refuses such a file",
                                "2 frames have no name and are shown as [no name]"}));
}

constexpr const char* kCpuProfile = R"json({"nodes":[
 {"id":1,"callFrame":{"functionName":"(root)",
                     "scriptId" : "0", "url" : "", "lineNumber" : -1
}
, "children" : [ 2, 3 ]
},
 {"id":2,"callFrame":{"functionName":"","url":"file:///a.js","lineNumber":9},"children":[4]},
 {"id":3,"callFrame":{"functionName":"(idle)","url":"","lineNumber":-1}},
 {"id":4,"callFrame":{"functionName":"f","url":"file:///a.js","lineNumber":19}}],
 "startTime":1000,"endTime":1100,"samples":[4,3,4,99],"timeDeltas":[10,20,30,5]
})json";

TEST(CpuProfile, a_sample_counts_for_the_time_until_the_next) {
  const Imported in = import_text(import_cpuprofile, kCpuProfile);
  ASSERT_EQ(in.profile.samples().size(), 3u);
  EXPECT_EQ(in.profile.samples()[0].start, 10'000);  // from the start of the recording on
  EXPECT_EQ(in.profile.samples()[0].wall, 20'000);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"f", "(anonymous)"}));
  EXPECT_EQ(in.stack(1), std::vector<std::string>{"(idle)"});
  EXPECT_EQ(in.profile.samples()[2].stack, in.profile.samples()[0].stack);
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
}

// Two nodes, "a" with the child "b".
Imported cpu_profile(const std::string& times, const std::string& samples) {
  return import_text(import_cpuprofile,
                     R"json({"nodes":[{"id":1,"callFrame":{"functionName":"a"},"children":[2]},
 {"id":2,"callFrame":{"functionName":"b"}}],)json" +
                         times + R"json(,"samples":)json" + samples + "}");
}

Nanoseconds wall_of(const Imported& in) {
  Nanoseconds sum = 0;
  for (const auto& sample : in.profile.samples()) sum += sample.wall;
  return sum;
}

TEST(CpuProfile, a_clock_that_steps_back_takes_no_time_twice) {
  const Imported in =
      cpu_profile(R"json("startTime":0,"endTime":40,"timeDeltas":[10,10,-5,10])json", "[1,2,1,2]");
  EXPECT_EQ(wall_of(in), 30'000);
  EXPECT_EQ(in.profile.samples()[2].start, 20'000);
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
}

TEST(CpuProfile, times_since_1970_count_from_the_start) {
  const Imported in = cpu_profile(
      R"json("startTime":1764246000000000,"endTime":1764246000000100,"timeDeltas":[10,20])json", "[1,2]");
  EXPECT_EQ(in.profile.samples()[0].start, 10'000);
  EXPECT_EQ(wall_of(in), 90'000);
}

TEST(CpuProfile, timestamps_are_read_where_there_are_no_deltas) {
  const Imported in =
      cpu_profile(R"json("startTime":1.5,"timestamps":[1500000,1500040,1500100])json", "[1,2,1]");
  EXPECT_EQ(wall_of(in), 100'000);
  EXPECT_EQ(in.profile.samples()[1].wall, 60'000);
  // Neither: samples are counted, and that is said.
  const Imported none = cpu_profile(R"json("startTime":0,"endTime":100)json", "[1,2]");
  EXPECT_EQ(none.outcome.samples, 2u);
  EXPECT_EQ(wall_of(none), 0);
  EXPECT_EQ(none.outcome.warnings.size(), 1u);
}

// As Chrome wrote it up to 2014: nodes hold their children.
TEST(CpuProfile, an_old_tree_is_read) {
  const Imported in =
      import_text(import_cpuprofile, R"json({"typeId":"CPU","head":{"functionName":"(root)","id":1,
 "children":[{"functionName":"a","url":"x.js","lineNumber":3,"id":2,"children":[
   {"functionName":"b","url":"","lineNumber":0,"id":3,"children":[]}]}]},
 "startTime":1.5,"endTime":1.6,"samples":[3,2],"timestamps":[1500000,1500050]})json");
  ASSERT_EQ(in.profile.samples().size(), 2u);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(in.stack(1), std::vector<std::string>{"a"});
  EXPECT_EQ(wall_of(in), 50'000);
}

TEST(CpuProfile, children_that_lead_in_a_circle_end) {
  const Imported in = import_text(import_cpuprofile, R"json({"nodes":[
 {"id":1,"callFrame":{"functionName":"a"},"children":[2]},{"id":2,"callFrame":{"functionName":"b"},"children":[1]}],
 "samples":[1],"timeDeltas":[1]})json");
  EXPECT_EQ(in.stack(0).size(), 2u);
}

TEST(JsonFormats, they_are_recognised_by_their_content) {
  const auto name_of = [](std::string_view text) {
    MemoryInput input(std::as_bytes(std::span(text)));
    const Format* format = recognise(input);
    return format == nullptr ? std::string_view() : format->name;
  };
  EXPECT_EQ(name_of(kSampled), "speedscope");
  EXPECT_EQ(name_of(kCpuProfile), "cpuprofile");
  EXPECT_EQ(name_of("{\"other\": 1}"), "");
  // The distinguishing part follows a long table.
  const std::string table = "[" + std::string(100'000, ' ') + R"("a\"]}{\\",{"shared":1,"nodes":[]}],)";
  EXPECT_EQ(name_of(R"({"shared":)" + table + R"("profiles":[]})"), "speedscope");
  EXPECT_EQ(name_of(R"({"samples":)" + table + R"("nodes":[]})"), "cpuprofile");
  EXPECT_EQ(name_of(R"({"libs":)" + table + R"("threads":[],"meta":{}})"), "firefox");
  EXPECT_EQ(name_of(R"({"samples":)" + table + R"("other":"nodes"})"), "");
}

TEST(JsonFormats, what_would_take_too_much_memory_is_refused) {
  const auto refusal_of = [](const std::string& text) {
    MemoryInput input(std::as_bytes(std::span(text)));
    profile::Profile profile;
    const auto refused = import_cpuprofile(input, {}, profile);
    return refused ? std::string() : refused.error().message;
  };
  EXPECT_NE(refusal_of("{\"nodes\":" + std::string(200'000, '[')).find("nested"), std::string::npos);
  // Blanks are none of it, how many there may be.
  const std::string blanks(3 << 20, ' ');
  EXPECT_EQ(refusal_of("{" + blanks + "\"nodes\"" + blanks + ":[]," + blanks + "\"samples\":[]}"), "");
}

TEST(JsonFormats, a_byte_order_mark_before_it_is_passed_over) {
  const std::string text = std::string("\xef\xbb\xbf") + kSampled;
  MemoryInput input(std::as_bytes(std::span(text)));
  const Format* format = recognise(input);
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(import_text(format->import, text).profile.samples().size(), 2u);
}

TEST(JsonFormats, a_text_that_is_far_too_long_is_refused) {
  const std::string text = "{\"nodes\":[],\"samples\":[],\"x\":\"" + std::string(17 << 20, 'x') + "\"}";
  MemoryInput input(std::as_bytes(std::span(text)));
  profile::Profile profile;
  const auto refused = import_cpuprofile(input, {}, profile);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("16 MiB"), std::string::npos);
  EXPECT_FALSE(refused.error().hint.empty());
}

TEST(JsonFormats, what_is_no_json_is_refused) {
  const std::string_view text = "{\"nodes\": [";
  MemoryInput input(std::as_bytes(std::span(text)));
  profile::Profile profile;
  EXPECT_EQ(import_cpuprofile(input, {}, profile).error().kind, ErrorKind::input);
  // As deep as the file likes.
  const std::string deep(1'000'000, '[');
  MemoryInput nested(std::as_bytes(std::span(deep)));
  EXPECT_EQ(import_speedscope(nested, {}, profile).error().kind, ErrorKind::input);
}

}  // namespace
}  // namespace phlox::importers
