#include "phlox/exporters/firefox.h"

#include <gtest/gtest.h>

#include <sstream>

#include "support/profile_of.h"

namespace phlox::exporters {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

std::string written(const profile::Profile& profile, const view::Choices& choices = {}) {
  std::ostringstream out;
  const auto done = write_firefox_json(profile, choices, "shop", out);
  EXPECT_TRUE(done) << done.error().message;
  return out.str();
}

// The value of the key, up to the end of its array or object of one line.
std::string part(const std::string& text, const std::string& key, size_t from = 0) {
  const size_t at = text.find("\"" + key + "\":", from);
  if (at == std::string::npos) return "(no " + key + ")";
  const size_t begin = at + key.size() + 3;
  size_t depth = 0, end = begin;
  do {
    depth += text[end] == '[' || text[end] == '{';
    depth -= text[end] == ']' || text[end] == '}';
    ++end;
  } while (depth > 0 && end < text.size());
  return text.substr(begin, end - begin);
}

TEST(firefox, a_span_is_a_sample_at_its_first_and_one_at_its_last_sample) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  profile::Sample work = make.sample(main, "main:3;load:7", 20 * kMillisecond);
  work.samples = 4;
  work.cpu = 8 * kMillisecond;
  make.put(work);
  make.add(main, "main:4", 1 * kMillisecond);
  const std::string text = written(profile);
  const std::string samples = part(text, "samples");
  EXPECT_EQ(part(samples, "time"), "[0.0,15.0,20.0,21.0]");
  EXPECT_EQ(part(samples, "weight"), "[15.0,5.0,1.0,0.0]");
  // Of the time since the row before.
  EXPECT_EQ(part(samples, "threadCPUDelta"), "[null,6000000,2000000,1000000]");
  EXPECT_EQ(part(samples, "stack"), "[1,1,2,null]");
  const std::string shared = part(text, "shared");
  EXPECT_EQ(part(part(shared, "stackTable"), "prefix"), "[null,0,null]");
  EXPECT_EQ(part(part(shared, "frameTable"), "line"), "[3,7,4]");
  EXPECT_EQ(part(part(shared, "frameTable"), "func"), "[0,1,0]");
  EXPECT_EQ(part(part(shared, "funcTable"), "lineNumber"), "[1,1]");
  EXPECT_EQ(part(shared, "stringArray"), R"~(["main","/app/app.py","load","Recording started"])~");
}

TEST(firefox, time_without_samples_is_no_stack_and_time_without_frames_is) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  make.add(main, "main", 2 * kMillisecond);
  profile::Sample later = make.sample(main, "main", 3 * kMillisecond);
  later.start += 10 * kMillisecond;
  later.stack = profile::StackId();
  make.put(later);
  const std::string samples = part(written(profile), "samples");
  EXPECT_EQ(part(samples, "time"), "[0.0,2.0,12.0,15.0]");
  EXPECT_EQ(part(samples, "stack"), "[1,null,0,null]");
  EXPECT_EQ(part(samples, "weight"), "[2.0,0.0,3.0,0.0]");
  EXPECT_NE(part(written(profile), "stringArray").find("(no Python frames)"), std::string::npos);
}

TEST(firefox, events_and_waits_for_the_gil_are_markers) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  for (int i = 0; i < 2; ++i) {
    profile::Sample waits = make.sample(main, "main", 2 * kMillisecond);
    waits.gil_state = profile::GilState::waits;
    make.put(waits);
  }
  profile::Event event;
  event.kind = profile::EventKind::thread_end;
  event.time = make.kStart + 4 * kMillisecond;
  event.thread = main;
  profile.emit(event);
  const std::string markers = part(written(profile), "markers");
  EXPECT_EQ(part(markers, "startTime"), "[0.0,4.0,0.0]");
  EXPECT_EQ(part(markers, "endTime"), "[null,null,4.0]");
  EXPECT_EQ(part(markers, "phase"), "[0,0,1]");
}

TEST(firefox, native_frames_have_their_library_with_its_build_id_and_their_address) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  profile.emit(profile::ModuleId(1),
               {"/usr/lib/libm.so.6", "0102030405060708090a0b0c0d0e0f1011121314", 0x1000, {}});
  profile::Frame frame;
  frame.kind = profile::FrameKind::native;
  frame.function = frame.qualified_name = "hypot";
  frame.module = profile::ModuleId(1);
  frame.address = 0x1a40;
  profile.emit(profile::FrameId(1), frame);
  profile.emit(profile::StackId(1), {profile::StackId(), profile::FrameId(1)});
  profile::Sample sample = make.sample(main, "", kMillisecond);
  sample.stack = profile::StackId(1);
  make.put(sample);
  const std::string text = written(profile);
  EXPECT_NE(part(text, "libs").find(R"("breakpadId":"0403020106050807090A0B0C0D0E0F100")"),
            std::string::npos);
  EXPECT_EQ(part(part(text, "frameTable"), "address"), "[6720]");
  EXPECT_EQ(part(part(text, "funcTable"), "resource"), "[0]");
  EXPECT_EQ(part(part(text, "resourceTable"), "lib"), "[0]");
}

TEST(firefox, what_has_no_build_id_has_no_id_for_symbol_servers) {
  EXPECT_EQ(breakpad_id(""), "");
  EXPECT_EQ(breakpad_id("0102"), "");
}

TEST(firefox, weights_are_counts_where_samples_count) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  profile::Sample sample = make.sample(main, "main", 2 * kMillisecond);
  sample.samples = 5;
  make.put(sample);
  view::Choices choices;
  choices.weight = view::Weight::samples;
  const std::string samples = part(written(profile, choices), "samples");
  EXPECT_EQ(part(samples, "weight"), "[4,1,0]");
  EXPECT_NE(samples.find(R"("weightType":"samples")"), std::string::npos);
}

}  // namespace
}  // namespace phlox::exporters
