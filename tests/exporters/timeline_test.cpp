#include "phlox/exporters/timeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "phlox/exporters/registry.h"
#include "phlox/view/markers.h"
#include "support/profile_of.h"

namespace phlox::exporters {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

class Told : public SliceSink {
 public:
  explicit Told(const FrameTable& frames) : frames_(frames) {}
  void open(size_t label, Nanoseconds at) override {
    text += fmt::format("{}<{} ", at / kMillisecond, frames_.labels()[label].name);
  }
  void close(size_t label, Nanoseconds at) override {
    text += fmt::format("{}>{} ", frames_.labels()[label].name, at / kMillisecond);
  }
  std::string text;

 private:
  const FrameTable& frames_;
};

std::string slices(const profile::Profile& profile, const view::Choices& choices = {}) {
  FrameTable frames(profile, choices);
  const size_t no_frames = frames.marker("none");
  Told told(frames);
  const auto filter = view::SampleFilter::make(profile, choices);
  for (const auto& samples : samples_by_thread(profile, *filter))
    write_slices(samples, Axis(profile, choices), frames, no_frames, told);
  return told.text;
}

TEST(slices, neighbours_share_their_outer_functions) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  make.add(main, "main;load", 2 * kMillisecond);
  make.add(main, "main;load;parse", 3 * kMillisecond);
  make.add(main, "main;render", 1 * kMillisecond);
  EXPECT_EQ(slices(profile), "0<main 0<load 2<parse parse>5 load>5 5<render render>6 main>6 ");
}

TEST(slices, time_without_samples_ends_them_and_time_without_frames_is_one) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  make.add(main, "main", 2 * kMillisecond);
  profile::Sample later = make.sample(main, "main", 3 * kMillisecond);
  later.start += 10 * kMillisecond;
  make.put(later);
  profile::Sample none = make.sample(main, "main", 1 * kMillisecond);
  none.stack = profile::StackId();
  none.start = later.start + later.wall;
  make.put(none);
  EXPECT_EQ(slices(profile), "0<main main>2 12<main main>15 15<none none>16 ");
}

TEST(slices, what_overlaps_is_moved_behind) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  make.add(main, "main", 5 * kMillisecond);
  profile::Sample early = make.sample(main, "other", 5 * kMillisecond);
  early.start -= 2 * kMillisecond;
  make.put(early);
  EXPECT_EQ(slices(profile), "0<main main>5 5<other other>10 ");
}

TEST(slices, of_another_weight_follow_one_another) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  make.add(main, "main", 5 * kMillisecond);
  profile::Sample second = make.sample(main, "other", 5 * kMillisecond);
  second.samples = 3;
  make.put(second);
  view::Choices choices;
  choices.weight = view::Weight::samples;
  EXPECT_EQ(slices(profile, choices), "0<main main>1 1<other other>4 ");
}

TEST(frame_table, native_names_are_full_or_short) {
  profile::Profile profile;
  profile::Frame frame;
  frame.kind = profile::FrameKind::native;
  frame.function = "Op::run";
  frame.qualified_name = "<bytewax::Op as Run>::run";
  profile.emit(profile::FrameId(1), frame);
  const auto names = [&](view::NativeNames native_names) {
    view::Choices choices;
    choices.native_names = native_names;
    const FrameTable frames(profile, choices);
    return frames.labels()[0].name + ", " + frames.labels()[0].whole_name();
  };
  EXPECT_EQ(names(view::NativeNames::by_format), "Op::run, <bytewax::Op as Run>::run");
  EXPECT_EQ(names(view::NativeNames::full), "<bytewax::Op as Run>::run, <bytewax::Op as Run>::run");
  EXPECT_EQ(names(view::NativeNames::brief), "Op::run, Op::run");
}

TEST(state_runs, say_what_a_wait_was_for) {
  profile::Profile profile;
  profile.emit_meta("machine", "x86_64");
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  profile.emit(profile::WaitTargetId(1), {profile::WaitTargetKind::socket, "10.0.0.5:5432", ""});
  profile.emit(profile::WaitTargetId(2), {profile::WaitTargetKind::time, "", ""});
  for (const uint32_t wait_target : {1U, 1U, 2U}) {
    profile::Sample sample = make.sample(main, "main", kMillisecond);
    sample.cpu_state = profile::CpuState::blocked;
    sample.system_call = 45;
    sample.wait_target = profile::WaitTargetId(wait_target);
    make.put(sample);
  }
  const auto threads = samples_by_thread(profile, *view::SampleFilter::make(profile, {}));
  const auto states = state_runs(profile, threads[0]);
  ASSERT_EQ(states.size(), 2U);
  EXPECT_EQ(states[0].name, "recvfrom (10.0.0.5:5432)");
  EXPECT_EQ(states[1].name, "recvfrom");
  const auto notable = notable_runs(profile, threads[0]);
  ASSERT_EQ(notable.size(), 1U);
  EXPECT_EQ(notable[0].name, "Waits for 10.0.0.5:5432");
  EXPECT_EQ(notable[0].end - notable[0].start, 2 * kMillisecond);
}

TEST(state_runs, neighbours_in_one_state_are_one) {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  const auto main = make.thread("MainThread");
  for (int i = 0; i < 5; ++i) {
    profile::Sample sample = make.sample(main, "main", kMillisecond);
    sample.cpu_state = i == 4 ? profile::CpuState::blocked : profile::CpuState::running;
    if (i == 4) sample.system_call = 202;
    if (i == 1 || i == 2) sample.gil_state = profile::GilState::waits;
    make.put(sample);
  }
  const auto threads = samples_by_thread(profile, *view::SampleFilter::make(profile, {}));
  std::string text;
  for (const StateRun& run : state_runs(profile, threads[0]))
    text += fmt::format("{} {}, ", run.name, (run.end - run.start) / kMillisecond);
  EXPECT_EQ(text, "running 1, waits for the GIL 2, running 1, futex 1, ");
  ASSERT_EQ(notable_runs(profile, threads[0]).size(), 1U);
  EXPECT_EQ(notable_runs(profile, threads[0])[0].name, "Waits for the GIL");
}

// One function and one event, byte for byte.
profile::Profile small() {
  profile::Profile profile;
  test::ProfileMaker make(profile);
  make.add(make.thread("MainThread"), "main:3", 1'500);
  profile.emit_meta("start_unix_ns", "1763711940000000000");
  return profile;
}

std::string exported(std::string_view format) {
  std::ostringstream out;
  EXPECT_TRUE(find_format(format)->write(small(), {}, {}, out));
  return out.str();
}

TEST(chrome, golden) {
  const std::string text = exported("chrome");
  EXPECT_EQ(text.substr(text.find("\"traceEvents\"")),
            R"~("traceEvents":[{"ph":"M","pid":4711,"tid":4711,"name":"process_name","args":)~"
            R"~({"name":"python3 app.py (pid 4711)"}},)~"
            R"~({"ph":"M","pid":4711,"tid":4711,"name":"thread_name","args":{"name":"MainThread"}},)~"
            R"~({"ph":"B","pid":4711,"tid":4711,"ts":0.000,"name":"main","cat":"python",)~"
            R"~("args":{"file":"/app/app.py","line":1}},)~"
            R"~({"ph":"E","pid":4711,"tid":4711,"ts":1.500}]})~");
}

TEST(rows, json_lines_golden) {
  EXPECT_EQ(exported("jsonl"),
            R"~({"start_ns":0,"unix_ns":1763711940000000000,"wall_ns":1500,"cpu_ns":1500,"samples":1,)~"
            R"~("event":null,"value":null,)~"
            R"~("pid":4711,"process":"python3 app.py (pid 4711)","tid":4711,"thread":"MainThread",)~"
            R"~("cpu_state":"running","gil_state":"holds","system_call":null,)~"
            R"~("wait_target_kind":null,"wait_target":null,"collecting":false,)~"
            R"~("cpu_number":1,"quality":"ok","kind":"python","function":"main","module":"app",)~"
            R"~("file":"/app/app.py","first_line":1,"line":3,"stack":["main (/app/app.py)"]})~"
            "\n");
}

TEST(rows, csv_golden) {
  EXPECT_EQ(
      exported("csv"),
      "start_ns,unix_ns,wall_ns,cpu_ns,samples,event,value,pid,process,tid,thread,cpu_state,gil_state,"
      "system_call,wait_target_kind,wait_target,collecting,cpu_number,quality,kind,function,module,file,"
      "first_line,"
      "line,stack\n"
      "0,1763711940000000000,1500,1500,1,,,4711,python3 app.py (pid 4711),4711,MainThread,running,holds,,,,"
      "false,1,ok,python,main,app,/app/app.py,1,3,main (/app/app.py)\n");
}

TEST(rows, say_what_a_wait_was_for) {
  profile::Profile profile;
  test::ProfileMaker maker(profile);
  profile.emit(profile::WaitTargetId(1), {profile::WaitTargetKind::client, "127.0.0.1:8000", "10.0.0.9"});
  profile::Sample sample = maker.sample(maker.thread("MainThread"), "main:3", 1000);
  sample.cpu_state = profile::CpuState::blocked;
  sample.system_call = 45;
  sample.wait_target = profile::WaitTargetId(1);
  maker.put(sample);
  std::ostringstream out;
  ASSERT_TRUE(find_format("jsonl")->write(profile, {}, {}, out));
  EXPECT_NE(
      out.str().find(R"~("wait_target_kind":"client","wait_target":"a client of 127.0.0.1:8000, 10.0.0.9")~"),
      std::string::npos)
      << out.str();
}

// marshal.dumps({("/app/app.py", 1, "main"): (0, 0, 1.5e-06, 1.5e-06, {})}, 3), with what is no reference
// left out.
TEST(pstats, golden) {
  using namespace std::string_literals;
  const std::string seconds = "g\x54\xe4\x10\x71\x73\x2a\xb9\x3e"s;
  EXPECT_EQ(exported("pstats"), "{\xa8\x03\0\0\0u\x0b\0\0\0/app/app.pyi\x01\0\0\0u\x04\0\0\0main"s +
                                    "(\x05\0\0\0i\0\0\0\0i\0\0\0\0"s + seconds + seconds + "{00"s);
}

}  // namespace
}  // namespace phlox::exporters
