#include "phlox/exporters/otlp.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <protozero/pbf_reader.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "phlox/exporters/process_series.h"
#include "phlox/exporters/pyroscope.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/view/await_time.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/shown_event.h"
#include "support/gunzip.h"
#include "support/profile_of.h"

namespace phlox::exporters {
namespace {

using protozero::pbf_reader;
using Fields =
    std::multimap<uint32_t, std::string>;  // of length-delimited fields: their bytes; else the number

Fields fields_of(const std::string& bytes) {
  Fields fields;
  for (pbf_reader message(bytes); message.next();) {
    const auto tag = message.tag();
    switch (message.wire_type()) {
      case protozero::pbf_wire_type::length_delimited:
        fields.emplace(tag, message.get_string());
        break;
      case protozero::pbf_wire_type::fixed64:
        fields.emplace(tag, std::to_string(message.get_fixed64()));
        break;
      default:
        fields.emplace(tag, std::to_string(message.get_int64()));
    }
  }
  return fields;
}

std::vector<std::string> all(const Fields& fields, uint32_t tag) {
  std::vector<std::string> found;
  for (auto [at, end] = fields.equal_range(tag); at != end; ++at) found.push_back(at->second);
  return found;
}
std::string only(const Fields& fields, uint32_t tag) {
  const auto found = all(fields, tag);
  return found.size() == 1 ? found[0] : found.empty() ? "" : fmt::format("({} of {})", found.size(), tag);
}
size_t number(const Fields& fields, uint32_t tag) {
  const std::string text = only(fields, tag);
  return text.empty() ? 0 : std::stoul(text);
}
std::vector<int64_t> packed(const std::string& bytes) {
  std::string message;
  std::vector<int64_t> numbers;
  for (const char* at = bytes.data(); at != bytes.data() + bytes.size();)
    numbers.push_back(static_cast<int64_t>(protozero::decode_varint(&at, bytes.data() + bytes.size())));
  return numbers;
}

// A message as text, a line for each sample: "4711 wall/nanoseconds load<main 15 thread.id=11 thread.name=x".
class Message {
 public:
  explicit Message(const std::string& bytes) : top_(fields_of(bytes)), tables_(fields_of(only(top_, 2))) {}

  std::string samples() const {
    std::string text;
    for (const std::string& resource : all(top_, 1)) text += of_resource(fields_of(resource));
    return text;
  }
  std::vector<std::string> table(uint32_t tag) const { return all(tables_, tag); }
  const Fields& top() const { return top_; }

 private:
  std::string string(size_t index) const { return table(5).at(index); }
  static std::string value(const Fields& any) { return only(any, 1).empty() ? only(any, 3) : only(any, 1); }
  std::string attribute(size_t index) const {
    const Fields row = fields_of(table(6).at(index));
    return string(number(row, 1)) + "=" + value(fields_of(only(row, 2)));
  }
  std::string frame(size_t index) const {
    const Fields location = fields_of(table(2).at(index));
    const Fields line = fields_of(only(location, 3));
    const Fields function = fields_of(table(3).at(number(line, 1)));
    std::string text = string(number(function, 1));
    if (!only(line, 2).empty()) text += ":" + only(line, 2);
    for (const int64_t one : packed(only(location, 4)))
      text += "[" + attribute(static_cast<size_t>(one)) + "]";
    return text;
  }
  std::string of_resource(const Fields& resource) const {
    std::string pid;
    for (const std::string& pair : all(fields_of(only(resource, 1)), 1)) {
      const Fields fields = fields_of(pair);
      if (only(fields, 1) == "process.pid") pid = value(fields_of(only(fields, 2)));
    }
    std::string text;
    for (const std::string& profile : all(fields_of(only(resource, 2)), 2))
      text += of_profile(pid, fields_of(profile));
    return text;
  }
  std::string of_profile(const std::string& pid, const Fields& profile) const {
    const Fields type = fields_of(only(profile, 1));
    std::string text;
    for (const std::string& bytes : all(profile, 2)) {
      const Fields sample = fields_of(bytes);
      std::string stack, rest;
      for (const int64_t one : packed(only(fields_of(table(7).at(number(sample, 1))), 1)))
        stack += (stack.empty() ? "" : "<") + frame(static_cast<size_t>(one));
      for (const int64_t one : packed(only(sample, 2))) rest += " " + attribute(static_cast<size_t>(one));
      if (const size_t index = number(sample, 3); index != 0) {
        const Fields link = fields_of(table(4).at(index));
        rest += fmt::format(" trace={:02x}*{} span={:02x}*{}", uint8_t(only(link, 1).at(0)),
                            only(link, 1).size(), uint8_t(only(link, 2).at(0)), only(link, 2).size());
      }
      text += fmt::format("{} {}/{} {} {}{}\n", pid, string(number(type, 1)), string(number(type, 2)), stack,
                          packed(only(sample, 4)).at(0), rest);
    }
    return text;
  }

  Fields top_, tables_;
};

class OtlpTest : public testing::Test {
 protected:
  Message message(const view::Choices& choices = {}) {
    const auto made = otlp_message(profile, choices, facts);
    EXPECT_TRUE(made) << made.error().message;
    return Message(made.value_or(""));
  }
  profile::Sample running(profile::ThreadId thread, const std::string& frames, Nanoseconds wall,
                          Nanoseconds cpu) {
    profile::Sample sample = make.sample(thread, frames, wall);
    sample.cpu = cpu;
    sample.cpu_state = profile::CpuState::running;
    return sample;
  }

  profile::Profile profile;
  test::ProfileMaker make{profile};
  profile::ThreadId main = make.thread("MainThread", 11);
  OtlpFacts facts;
};

TEST_F(OtlpTest, each_kind_of_time_is_a_profile_and_equal_samples_are_one) {
  make.put(running(main, "main;load", 10, 8));
  make.put(running(main, "main;load", 5, 5));
  make.put(make.blocked(main, "main;wait", 7, 0));
  make.put(make.blocked(main, "main;load", 3, 202, profile::GilState::waits));
  profile::Sample waits_for_cpu = running(main, "main;load", 2, 0);
  waits_for_cpu.cpu_state = profile::CpuState::runnable;
  make.put(waits_for_cpu);
  const std::string load = "load[profile.frame.type=cpython]<main[profile.frame.type=cpython]";
  const std::string wait = "wait[profile.frame.type=cpython]<main[profile.frame.type=cpython]";
  const std::string thread = " thread.id=11 thread.name=MainThread\n";
  EXPECT_EQ(message().samples(), "4711 cpu/nanoseconds " + load + " 13" + thread +          //
                                     "4711 wall/nanoseconds " + load + " 20" + thread +     //
                                     "4711 wall/nanoseconds " + wait + " 7" + thread +      //
                                     "4711 off_cpu/nanoseconds " + load + " 3" + thread +   //
                                     "4711 off_cpu/nanoseconds " + wait + " 7" + thread +   //
                                     "4711 gil_wait/nanoseconds " + load + " 3" + thread +  //
                                     "4711 cpu_wait/nanoseconds " + load + " 2" + thread);
}

TEST_F(OtlpTest, by_line_a_frame_has_its_line) {
  make.put(running(main, "main:3;load:7", 10, 0));
  view::Choices choices;
  choices.by.line = true;
  EXPECT_EQ(message(choices).samples(),
            "4711 wall/nanoseconds load:7[profile.frame.type=cpython]<main:3[profile.frame.type=cpython] 10 "
            "thread.id=11 thread.name=MainThread\n");
}

TEST_F(OtlpTest, each_process_is_a_resource_of_its_own) {
  const profile::ThreadId other = make.thread("", 12, make.process(200));
  make.put(running(main, "main", 1, 0));
  make.put(running(other, "main", 2, 0));
  view::Choices all_of_it;
  EXPECT_EQ(message(all_of_it).samples(),
            "4711 wall/nanoseconds main[profile.frame.type=cpython] 1 thread.id=11 thread.name=MainThread\n"
            "200 wall/nanoseconds main[profile.frame.type=cpython] 2 thread.id=12 thread.name=python3\n");
  // The choices of a view hold.
  all_of_it.pid = 200;
  EXPECT_EQ(message(all_of_it).samples(),
            "200 wall/nanoseconds main[profile.frame.type=cpython] 2 thread.id=12 thread.name=python3\n");
}

TEST_F(OtlpTest, time_of_an_endpoint_has_its_label) {
  make.put(
      running(main, "main;/venv/lib/python3.12/site-packages/flask/app.py/dispatch_request;index:7", 10, 0));
  make.put(running(main, "main", 2, 0));
  profile.emit_meta("route\t7\tindex\t/app/app.py", "GET /");
  const std::string samples = message().samples();
  EXPECT_NE(samples.find(" 10 thread.id=11 thread.name=MainThread endpoint="), std::string::npos) << samples;
  EXPECT_NE(samples.find(" 2 thread.id=11 thread.name=MainThread\n"), std::string::npos) << samples;
  const view::Endpoints endpoints(profile);
  EXPECT_NE(samples.find("endpoint=" + view::endpoint_label(profile, endpoints, 1) + "\n"),
            std::string::npos);
}

// A push of a pprof: whose label pprof_test.cpp reads.
TEST_F(OtlpTest, time_of_a_span_is_linked_to_it) {
  const auto first = make.thread("main", 11), other = make.thread("pool", 12);
  const Nanoseconds start = test::ProfileMaker::kStart;
  make.put(running(first, "main;load", 100, 50));
  make.put(running(first, "main;load", 10, 10));
  make.put(running(other, "run", 30, 30));
  uint32_t row = 0;
  const auto link = [&](profile::ThreadId thread, uint8_t trace, uint8_t span, Nanoseconds from,
                        Nanoseconds to) {
    profile::TraceTime time{thread, {}, start + from, start + to};
    time.ids.trace.fill(trace);
    time.ids.span.fill(span);
    profile.emit(profile::TraceTimeId(++row), time);
  };
  link(first, 0xab, 0xcd, 20, 60);
  link(first, 0xab, 0xce, 60, 80);
  link(first, 0xab, 0xcd, 105, 110);
  link(other, 0xab, 0xcd, 0, 10);
  const Message made = message();
  EXPECT_EQ(made.table(4).size(), 3u);
  const std::string samples = std::regex_replace(made.samples(), std::regex("\\[[^\\]]*\\]"), "");
  const auto has = [&](const std::string& line) {
    EXPECT_NE(samples.find(line + "\n"), std::string::npos) << line << " in\n" << samples;
  };
  // 20 ns before the first span, 20 after the second, and half of the last sample.
  has("4711 wall/nanoseconds load<main 45 thread.id=11 thread.name=main");
  has("4711 wall/nanoseconds load<main 45 thread.id=11 thread.name=main trace=ab*16 span=cd*8");
  has("4711 wall/nanoseconds load<main 20 thread.id=11 thread.name=main trace=ab*16 span=ce*8");
  has("4711 wall/nanoseconds run 20 thread.id=12 thread.name=pool");
  has("4711 wall/nanoseconds run 10 thread.id=12 thread.name=pool trace=ab*16 span=cd*8");
  has("4711 cpu/nanoseconds load<main 25 thread.id=11 thread.name=main trace=ab*16 span=cd*8");
}

TEST_F(OtlpTest, what_tasks_await_belongs_to_no_span) {
  const auto thread = make.thread("main", 11);
  make.put(running(thread, "main;load", 100, 50));
  profile::TaskRows tasks;
  tasks.put_event_loop(profile::EventLoopId(1), {profile::ProcessId(1), thread, "asyncio"});
  tasks.put_task_stack(profile::TaskStackId(1), {{}, make.frame("handle")});
  tasks.put_task_time(profile::TaskTimeId(1), {profile::EventLoopId(1), profile::TaskStackId(1),
                                               profile::TaskState::waiting, "lock", "", 500, 1});
  ASSERT_TRUE(view::add_await_time(profile, tasks));
  profile.emit(
      profile::TraceTimeId(1),
      profile::TraceTime{thread, {{1}, {2}}, test::ProfileMaker::kStart, test::ProfileMaker::kStart + 1000});
  const std::string samples = message().samples();
  EXPECT_NE(samples.find("await/nanoseconds"), std::string::npos) << samples;
  for (size_t at = samples.find("await/"); at != std::string::npos; at = samples.find("await/", at + 1))
    EXPECT_EQ(samples.substr(at, samples.find('\n', at) - at).find("trace="), std::string::npos) << samples;
  EXPECT_NE(samples.find("trace=01*16"), std::string::npos) << samples;
}

TEST_F(OtlpTest, a_series_of_a_process_has_labels_of_endpoints) {
  make.put(
      running(main, "main;/venv/lib/python3.12/site-packages/flask/app.py/dispatch_request;index:7", 10, 0));
  const auto series = process_series(profile, {}, 20, Unnamed::name_of_address);
  ASSERT_TRUE(series);
  ASSERT_EQ(series->size(), 1U);
  const std::string pprof = test::gunzip((*series)[0].pprof);
  EXPECT_NE(pprof.find("endpoint"), std::string::npos);
  const view::Endpoints endpoints(profile);
  EXPECT_NE(pprof.find(view::endpoint_label(profile, endpoints, 1)), std::string::npos);
}

TEST_F(OtlpTest, the_first_entry_of_each_table_is_its_zero_value) {
  make.put(running(main, "main", 1, 0));
  const Message made = message();
  for (const uint32_t tag : {1U, 2U, 3U, 5U, 6U, 7U}) {
    ASSERT_FALSE(made.table(tag).empty()) << tag;
    EXPECT_EQ(made.table(tag)[0], "") << tag;
  }
  const Fields link = fields_of(made.table(4).at(0));
  EXPECT_EQ(only(link, 1), std::string(16, '\0'));
  EXPECT_EQ(only(link, 2), std::string(8, '\0'));
  // No entry twice.
  for (const uint32_t tag : {2U, 3U, 5U, 6U, 7U}) {
    const auto table = made.table(tag);
    EXPECT_EQ(std::set<std::string>(table.begin(), table.end()).size(), table.size()) << tag;
  }
}

TEST_F(OtlpTest, what_is_no_frame_has_no_type_and_what_is_no_text_is_mended) {
  make.put(running(main, "(rejected, moved while read)", 4, 0));
  profile::Sample none = running(main, "main", 5, 0);
  none.stack = {};
  make.put(none);
  make.put(running(main, "m\xff", 6, 0));
  EXPECT_EQ(message().samples(),
            "4711 wall/nanoseconds (rejected, moved while read) 4 thread.id=11 thread.name=MainThread\n"
            "4711 wall/nanoseconds (no Python frames) 5 thread.id=11 thread.name=MainThread\n"
            "4711 wall/nanoseconds m\xef\xbf\xbd[profile.frame.type=cpython] 6 thread.id=11 "
            "thread.name=MainThread\n");
}

TEST_F(OtlpTest, nothing_sampled_is_no_message) {
  EXPECT_EQ(otlp_message(profile, {}, facts).value_or("?"), "");
  make.put(running(main, "main", 0, 0));
  EXPECT_EQ(otlp_message(profile, {}, facts).value_or("?"), "");
}

TEST_F(OtlpTest, each_profile_has_an_id_its_time_and_its_length) {
  make.put(running(main, "main", 10, 5));
  profile.emit_meta("start_unix_ns", "1700000000000000001");
  profile.emit(profile::Counter{profile::ProcessId(), "elapsed_ns", 15'000'000'000});
  int ids = 0;
  facts.profile_id = [&] { return std::string(15, 'i') + std::to_string(++ids); };
  const Message made = message();
  const auto profiles = all(fields_of(only(fields_of(only(made.top(), 1)), 2)), 2);
  ASSERT_EQ(profiles.size(), 2U);
  for (size_t i = 0; i < profiles.size(); ++i) {
    const Fields fields = fields_of(profiles[i]);
    EXPECT_EQ(only(fields, 3), "1700000000000000001");
    EXPECT_EQ(only(fields, 4), "15000000000");
    EXPECT_EQ(only(fields, 7), std::string(15, 'i') + std::to_string(i + 1));
  }
}

TEST_F(OtlpTest, what_another_tool_counted_is_a_type_of_its_own) {
  profile::put_sampled_event(profile, 1, {"alloc_space", profile::Unit::bytes});
  profile::Sample sample = make.sample(main, "main", 0);
  sample.wall = sample.cpu = 0;
  sample.event = 1;
  sample.value = 4096;
  make.put(sample);
  ASSERT_TRUE(view::show_event(profile, ""));
  view::Choices choices;
  choices.weight = view::Weight::bytes;
  EXPECT_EQ(
      message(choices).samples(),
      "4711 alloc_space/bytes main[profile.frame.type=cpython] 4096 thread.id=11 thread.name=MainThread\n");
}

// A PushRequest: "__name__=process_cpu ...: id".
TEST_F(OtlpTest, pyroscope_gets_a_series_for_each_process) {
  const profile::ThreadId other = make.thread("w", 12, make.process(200));
  make.put(running(main, "main", 1, 0));
  make.put(running(other, "main", 2, 0));
  PyroscopeFacts of_push;
  of_push.profile_id = [] { return "an id"; };
  of_push.rate_hz = 20;
  const auto made = pyroscope_message(profile, {}, of_push);
  ASSERT_TRUE(made);
  std::string text;
  for (const std::string& series : all(fields_of(*made), 1)) {
    for (const std::string& label : all(fields_of(series), 1))
      text += only(fields_of(label), 1) + "=" + only(fields_of(label), 2) + " ";
    const Fields sample = fields_of(only(fields_of(series), 2));
    EXPECT_TRUE(only(sample, 1).starts_with("\x1f\x8b"));
    text += ": " + only(sample, 2) + "\n";
  }
  EXPECT_EQ(text,
            "__name__=process_cpu service_name=app.py pid=4711 python_version=3.12.1 : an id\n"
            "__name__=process_cpu service_name=worker.py pid=200 python_version=3.12.1 : an id\n");
  EXPECT_EQ(pyroscope_message(profile::Profile(), {}, of_push).value_or("?"), "");
}

// For a receiver that knows functions by build-id and address.
TEST(Otlp, a_native_function_without_a_name_can_have_its_address_alone) {
  profile::Profile profile;
  test::ProfileMaker maker(profile);
  const profile::ThreadId thread = maker.thread("main");
  profile.emit(profile::ModuleId(1), {"/lib/libfoo.so", "c0ffee", 0});
  profile.emit(profile::ModuleId(2), {"/lib/libbar.so", "", 0});
  profile::Frame frame;
  frame.kind = profile::FrameKind::native;
  profile::StackId stack;
  uint32_t id = 0;
  for (const auto& [module, name] : std::vector<std::pair<uint32_t, std::string>>{
           {1, "libfoo.so+0x1230"}, {1, "named"}, {2, "libbar.so+0x1230"}, {1, ""}}) {
    frame.module = profile::ModuleId(module);
    frame.function = frame.qualified_name = name;
    frame.address = 0x1234 + id;
    profile.emit(profile::FrameId(++id), frame);
    profile.emit(profile::StackId(id), {stack, profile::FrameId(id)});
    stack = profile::StackId(id);
  }
  profile::Sample sample = maker.sample(thread, "", kSecond);
  sample.stack = stack;
  profile.emit(profile::SampleId(1), sample);
  view::Choices choices;
  choices.by.line = true;
  for (const bool leaves : {false, true}) {
    OtlpFacts facts;
    facts.leaves_addresses = leaves;
    const auto message = otlp_message(profile, choices, facts);
    ASSERT_TRUE(message);
    const auto locations = all(fields_of(only(fields_of(*message), 2)), 2);
    ASSERT_EQ(locations.size(), 5u);  // and the zero value
    std::vector<bool> has_line;
    for (size_t i = 1; i < 5; ++i) {
      const Fields location = fields_of(locations[i]);
      EXPECT_EQ(number(location, 2), 0x1234u + 4 - i);
      has_line.push_back(location.contains(3));
    }
    // The innermost comes first.
    EXPECT_EQ(has_line, (std::vector<bool>{!leaves, true, true, !leaves})) << leaves;
  }
}

}  // namespace
}  // namespace phlox::exporters
