#include <gtest/gtest.h>

#include "phlox/importers/cpuprofile.h"
#include "phlox/importers/registry.h"
#include "phlox/importers/speedscope_file.h"
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
  EXPECT_EQ(in.profile.samples()[1].start, 6'000'000);
  EXPECT_EQ(in.profile.samples()[1].wall, 2'500'000);
  EXPECT_EQ(in.profile.samples()[1].cpu, 0);
  EXPECT_EQ(in.stack(1), (std::vector<std::string>{"work", "main"}));
  EXPECT_EQ(in.profile.frames()[0].kind, profile::FrameKind::python);
  EXPECT_EQ(in.profile.frames()[0].line, 3);
  EXPECT_EQ(in.profile.threads()[0].name, "worker");
  EXPECT_EQ(in.outcome.warnings.size(), 1u);  // frame 7 is not there
}

TEST(Speedscope, what_is_open_between_two_events_is_a_stretch) {
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

TEST(CpuProfile, a_sample_stands_for_the_time_until_the_next) {
  const Imported in = import_text(import_cpuprofile, kCpuProfile);
  ASSERT_EQ(in.profile.samples().size(), 3u);
  EXPECT_EQ(in.profile.samples()[0].start, 1'010'000);
  EXPECT_EQ(in.profile.samples()[0].wall, 20'000);
  EXPECT_EQ(in.stack(0), (std::vector<std::string>{"f", "(anonymous)"}));
  EXPECT_EQ(in.stack(1), std::vector<std::string>{"(idle)"});
  EXPECT_EQ(in.profile.samples()[2].stack, in.profile.samples()[0].stack);
  EXPECT_EQ(in.outcome.warnings.size(), 1u);
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
