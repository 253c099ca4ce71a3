#include "phlox/exporters/chrome.h"

#include <fmt/format.h>

#include <vector>

#include "phlox/exporters/json.h"
#include "phlox/exporters/recording_picture.h"
#include "phlox/exporters/timeline.h"
#include "phlox/profile/trace_ids.h"
#include "phlox/view/markers.h"
#include "phlox/view/quality.h"

namespace phlox::exporters {
namespace {

// Microseconds with all digits of the nanoseconds: after conversion to double, slices may nest wrongly.
void put_time(JsonWriter& json, std::string_view key, Nanoseconds ns) {
  put_key(json, key);
  const std::string text = fmt::format("{}.{:03}", ns / 1000, ns % 1000);
  json.RawValue(text.data(), text.size(), rapidjson::kNumberType);
}

std::string_view category_of(profile::FrameKind kind) {
  switch (kind) {
    case profile::FrameKind::python:
      return "python";
    case profile::FrameKind::native:
      return "native";
    case profile::FrameKind::kernel:
      return "kernel";
    case profile::FrameKind::marker:
      return "marker";
  }
  return "";
}

// The viewers' ids of a thread. A thread without a kernel id gets its number in the recording.
struct ChromeRow {
  int32_t pid = 0;
  int64_t tid = 0;
};

ChromeRow row_of(const profile::Profile& profile, size_t index) {
  const profile::Thread& thread = profile.threads()[index];
  const profile::Process* process = process_of(profile, thread);
  ChromeRow row{process == nullptr ? 0 : process->pid, thread.tid};
  for (size_t i = 0; i < index && row.tid > 0; ++i) {
    const profile::Thread& other = profile.threads()[i];
    if (other.tid == thread.tid && other.process == thread.process) row.tid = 0;
  }
  // Above the kernel's range (PID_MAX_LIMIT is 2^22).
  constexpr int64_t kOwn = 1 << 23;
  if (row.tid == 0) row.tid = kOwn + static_cast<int64_t>(index);
  return row;
}

class Events : public SliceSink {
 public:
  Events(JsonWriter& json, const FrameTable& frames) : json_(json), frames_(frames) {}

  void thread(ChromeRow row) { row_ = row; }

  void open(size_t label, Nanoseconds at) override {
    const view::Label& frame = frames_.labels()[label];
    begin("B", at);
    put(json_, "name", frame.whole_name());
    put(json_, "cat", category_of(frame.kind));
    if (!frame.file.empty() || !frame.module.empty()) {
      put_key(json_, "args");
      json_.StartObject();
      if (!frame.file.empty()) put(json_, "file", frame.file);
      if (frame.line > 0) put(json_, "line", int64_t{frame.line});
      if (frame.kind == profile::FrameKind::native) put(json_, "module", frame.module);
      json_.EndObject();
    }
    json_.EndObject();
  }
  void close(size_t, Nanoseconds at) override {
    begin("E", at);
    json_.EndObject();
  }

  // Metadata such as "thread_name".
  void fact(std::string_view name, ChromeRow row, std::string_view value) {
    json_.StartObject();
    put(json_, "ph", "M");
    put(json_, "pid", int64_t{row.pid});
    put(json_, "tid", row.tid);
    put(json_, "name", name);
    put_key(json_, "args");
    json_.StartObject();
    put(json_, "name", value);
    json_.EndObject();
    json_.EndObject();
  }

  void moment(const profile::Event& event, ChromeRow row, Nanoseconds at) {
    row_ = row;
    begin("i", at);
    put(json_, "name", event_name(event.kind));
    put(json_, "cat", "event");
    put(json_, "s", event.thread ? "t" : "p");  // as tall as the thread or the process
    if (const std::string words = event_words(event); !words.empty()) {
      put_key(json_, "args");
      json_.StartObject();
      put(json_, "details", words);
      json_.EndObject();
    }
    json_.EndObject();
  }

  // On a separate row above the thread's functions.
  void state(std::string_view name, Nanoseconds start, Nanoseconds end, int64_t id) {
    for (const char* phase : {"b", "e"}) {
      begin(phase, *phase == 'b' ? start : end);
      put(json_, "name", name);
      put(json_, "cat", "state");
      put(json_, "id", fmt::format("0x{:x}", id));
      json_.EndObject();
    }
  }

  // On a row of their own, too.
  void span(const SpanRun& run, Nanoseconds zero, int64_t id) {
    for (const char* phase : {"b", "e"}) {
      begin(phase, (*phase == 'b' ? run.start : run.end) - zero);
      put(json_, "name", "span " + profile::id_text(run.ids.span));
      put(json_, "cat", "trace");
      put(json_, "id", fmt::format("0x{:x}", id));
      if (*phase == 'b') {
        put_key(json_, "args");
        json_.StartObject();
        put(json_, "trace_id", profile::id_text(run.ids.trace));
        put(json_, "span_id", profile::id_text(run.ids.span));
        json_.EndObject();
      }
      json_.EndObject();
    }
  }

 private:
  void begin(std::string_view phase, Nanoseconds at) {
    json_.StartObject();
    put(json_, "ph", phase);
    put(json_, "pid", int64_t{row_.pid});
    put(json_, "tid", row_.tid);
    put_time(json_, "ts", at);
  }

  JsonWriter& json_;
  const FrameTable& frames_;
  ChromeRow row_;
};

void put_moments(Events& events, const profile::Profile& profile, const SamplesByThread& threads) {
  const Nanoseconds zero = view::recording_start(profile);
  for (const profile::Event& event : profile.events()) {
    if (event.time < zero) continue;
    if (event.thread) {
      const size_t index = event.thread->value - 1;
      if (index < threads.size() && !threads[index].empty())
        events.moment(event, row_of(profile, index), event.time - zero);
      continue;
    }
    const bool known = event.process && event.process->value <= profile.processes().size();
    const int32_t pid = known ? profile.process(*event.process).pid : 0;
    if (known) events.moment(event, {pid, pid}, event.time - zero);
  }
}

}  // namespace

Result<void> write_chrome(const profile::Profile& profile, const view::Choices& choices,
                          const std::string& title, std::ostream& out) {
  Result<view::SampleFilter> filter = view::SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);
  const SamplesByThread threads = samples_by_thread(profile, *filter);
  FrameTable frames(profile, choices);
  const size_t no_frames = frames.marker(view::no_frames_label().name);
  const Nanoseconds zero = view::recording_start(profile);

  rapidjson::OStreamWrapper stream(out);
  JsonWriter json(stream);
  json.StartObject();
  put(json, "displayTimeUnit", "ns");
  put_key(json, "otherData");
  json.StartObject();
  put(json, "title", title);
  put(json, "exporter", "phlox " PHLOX_VERSION);
  put(json, "quality", view::quality_line(view::summarize_quality(profile)));
  if (const int64_t start = recording_start_time(profile); start > 0) put(json, "start_unix_ns", start);
  json.EndObject();
  put_key(json, "traceEvents");
  json.StartArray();
  Events events(json, frames);
  const view::TraceParts traces(profile);
  for (const profile::Process& process : profile.processes())
    events.fact("process_name", {process.pid, process.pid}, view::process_label(process));
  for (size_t i = 0; i < threads.size(); ++i) {
    if (threads[i].empty()) continue;
    const ChromeRow row = row_of(profile, i);
    const profile::Thread& thread = profile.threads()[i];
    events.fact("thread_name", row, thread.name.empty() ? thread.kernel_name : thread.name);
    events.thread(row);
    write_slices(threads[i], Axis(profile, choices), frames, no_frames, events);
    if (choices.weight != view::Weight::wall) continue;  // the axis is not time
    for (const StateRun& run : notable_runs(profile, threads[i]))
      events.state(run.name, run.start - zero, run.end - zero, row.tid);
    for (const SpanRun& run : span_runs(profile, traces, threads[i])) events.span(run, zero, row.tid);
  }
  if (choices.weight == view::Weight::wall) put_moments(events, profile, threads);
  json.EndArray();
  json.EndObject();
  return {};
}

}  // namespace phlox::exporters
