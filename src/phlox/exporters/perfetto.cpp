#include "phlox/exporters/perfetto.h"

#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "phlox/exporters/recording_picture.h"
#include "phlox/exporters/timeline.h"
#include "phlox/exporters/words.h"
#include "phlox/profile/trace_ids.h"
#include "phlox/view/markers.h"

namespace phlox::exporters {
namespace {

using Tag = protozero::pbf_tag_type;
using protozero::pbf_writer;

namespace trace {
enum : Tag { kPacket = 1 };
}
namespace packet {
enum : Tag {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kTrackDescriptor = 60,
};
enum : uint32_t { kStateCleared = 1, kNeedsState = 2 };  // bits of kSequenceFlags
}  // namespace packet
namespace clocks {
enum : Tag { kClock = 1, kPrimary = 2 };
enum : Tag { kId = 1, kTimestamp = 2 };
enum : uint32_t { kRealtime = 1, kMonotonic = 3 };
}  // namespace clocks
namespace track {
enum : Tag { kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5 };
enum : Tag { kProcessPid = 1, kProcessName = 6 };
enum : Tag { kThreadPid = 1, kThreadTid = 2, kThreadName = 5 };
}  // namespace track
namespace event {
enum : Tag { kAnnotation = 4, kType = 9, kNameIid = 10, kTrack = 11, kName = 23, kSourceIid = 34 };
enum : int32_t { kBegin = 1, kEnd = 2, kInstant = 3 };
enum : Tag { kAnnotationString = 6, kAnnotationName = 10 };
}  // namespace event
namespace interned {
enum : Tag { kEventName = 2, kSource = 4 };
enum : Tag { kIid = 1, kName = 2 };
enum : Tag { kFile = 2, kFunction = 3, kLine = 4 };
}  // namespace interned

// Track ids: the kind above a row number.
enum class Track : uint64_t { process = 1, thread = 2, state = 3, spans = 4 };
uint64_t uuid(Track kind, size_t row) {
  return static_cast<uint64_t>(kind) << 32 | (row + 1);
}

// One sequence of packets.
class Packets : public SliceSink {
 public:
  Packets(std::ostream& out, const FrameTable& frames, Nanoseconds zero)
      : out_(out), frames_(frames), zero_(zero) {}

  template <class Fill>
  void packet(uint32_t flags, Fill&& fill) {
    bytes_.clear();
    pbf_writer whole(bytes_);
    {
      pbf_writer message(whole, trace::kPacket);
      message.add_uint32(packet::kSequence, 1);
      if (flags != 0) message.add_uint32(packet::kSequenceFlags, flags);
      fill(message);
    }
    out_.write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
  }

  void on(uint64_t track) { track_ = track; }

  void open(size_t label, Nanoseconds at) override {
    packet(packet::kNeedsState, [&](pbf_writer& message) {
      intern(message, label);
      message.add_uint64(packet::kTimestamp, static_cast<uint64_t>(zero_ + at));
      pbf_writer out(message, packet::kTrackEvent);
      out.add_int32(event::kType, event::kBegin);
      out.add_uint64(event::kTrack, track_);
      out.add_uint64(event::kNameIid, label + 1);
      const view::Label& frame = frames_.labels()[label];
      if (!frame.file.empty()) out.add_uint64(event::kSourceIid, label + 1);
      if (frame.kind == profile::FrameKind::native && !frame.module.empty())
        annotate(out, "module", displayable(frame.module));
    });
  }
  void close(size_t, Nanoseconds at) override { end(at); }

  void slice(const std::string& name, Nanoseconds start, Nanoseconds stop) {
    packet(packet::kNeedsState, [&](pbf_writer& message) {
      message.add_uint64(packet::kTimestamp, static_cast<uint64_t>(zero_ + start));
      pbf_writer out(message, packet::kTrackEvent);
      out.add_int32(event::kType, event::kBegin);
      out.add_uint64(event::kTrack, track_);
      out.add_string(event::kName, name);
    });
    end(stop);
  }

  void span(const SpanRun& run) {
    const std::string name = profile::id_text(run.ids.span);
    packet(packet::kNeedsState, [&](pbf_writer& message) {
      message.add_uint64(packet::kTimestamp, static_cast<uint64_t>(run.start));
      pbf_writer out(message, packet::kTrackEvent);
      out.add_int32(event::kType, event::kBegin);
      out.add_uint64(event::kTrack, track_);
      out.add_string(event::kName, "span " + name);
      annotate(out, "trace_id", profile::id_text(run.ids.trace));
      annotate(out, "span_id", name);
    });
    end(run.end - zero_);
  }

  void moment(const profile::Event& row, Nanoseconds at) {
    packet(packet::kNeedsState, [&](pbf_writer& message) {
      message.add_uint64(packet::kTimestamp, static_cast<uint64_t>(zero_ + at));
      pbf_writer out(message, packet::kTrackEvent);
      out.add_int32(event::kType, event::kInstant);
      out.add_uint64(event::kTrack, track_);
      out.add_string(event::kName, std::string(event_name(row.kind)));
      if (const std::string words = event_words(row); !words.empty())
        annotate(out, "details", displayable(words));
    });
  }

 private:
  static void annotate(pbf_writer& out, const char* name, const std::string& value) {
    pbf_writer annotation(out, event::kAnnotation);
    annotation.add_string(event::kAnnotationName, name);
    annotation.add_string(event::kAnnotationString, value);
  }

  void end(Nanoseconds at) {
    packet(packet::kNeedsState, [&](pbf_writer& message) {
      message.add_uint64(packet::kTimestamp, static_cast<uint64_t>(zero_ + at));
      pbf_writer out(message, packet::kTrackEvent);
      out.add_int32(event::kType, event::kEnd);
      out.add_uint64(event::kTrack, track_);
    });
  }

  // A name is written with the first packet that needs it.
  void intern(pbf_writer& message, size_t label) {
    if (known_.size() <= label) known_.resize(frames_.labels().size(), false);
    if (known_[label]) return;
    known_[label] = true;
    const view::Label& frame = frames_.labels()[label];
    pbf_writer data(message, packet::kInternedData);
    {
      pbf_writer name(data, interned::kEventName);
      name.add_uint64(interned::kIid, label + 1);
      name.add_string(interned::kName, displayable(frame.whole_name()));
    }
    if (frame.file.empty()) return;
    pbf_writer source(data, interned::kSource);
    source.add_uint64(interned::kIid, label + 1);
    source.add_string(interned::kFile, displayable(frame.file));
    source.add_string(interned::kFunction, displayable(frame.whole_name()));
    if (frame.line > 0) source.add_uint32(interned::kLine, static_cast<uint32_t>(frame.line));
  }

  std::ostream& out_;
  const FrameTable& frames_;
  Nanoseconds zero_;
  std::string bytes_;
  uint64_t track_ = 0;
  std::vector<bool> known_;
};

void put_clocks(Packets& packets, Nanoseconds zero, int64_t unix_start) {
  packets.packet(packet::kStateCleared, [&](pbf_writer& message) {
    message.add_uint64(packet::kTimestamp, static_cast<uint64_t>(zero));
    pbf_writer snapshot(message, packet::kClockSnapshot);
    const auto clock = [&](uint32_t id, int64_t time) {
      pbf_writer out(snapshot, clocks::kClock);
      out.add_uint32(clocks::kId, id);
      out.add_uint64(clocks::kTimestamp, static_cast<uint64_t>(time));
    };
    clock(clocks::kMonotonic, zero);
    if (unix_start > 0) clock(clocks::kRealtime, unix_start);
    snapshot.add_uint32(clocks::kPrimary, clocks::kMonotonic);
  });
}

void put_process(Packets& packets, const profile::Process& process, size_t row) {
  packets.packet(0, [&](pbf_writer& message) {
    pbf_writer out(message, packet::kTrackDescriptor);
    out.add_uint64(track::kUuid, uuid(Track::process, row));
    pbf_writer inner(out, track::kProcess);
    inner.add_int32(track::kProcessPid, process.pid);
    inner.add_string(track::kProcessName, displayable(view::process_label(process)));
  });
}

// A thread without a kernel id, and a second row with the same id, is a plain track of its process.
void put_thread(Packets& packets, const profile::Profile& profile, size_t index) {
  const profile::Thread& thread = profile.threads()[index];
  const profile::Process* process = process_of(profile, thread);
  bool plain = thread.tid == 0 || process == nullptr;
  for (size_t i = 0; i < index && !plain; ++i)
    plain = profile.threads()[i].tid == thread.tid && profile.threads()[i].process == thread.process;
  packets.packet(0, [&](pbf_writer& message) {
    pbf_writer out(message, packet::kTrackDescriptor);
    out.add_uint64(track::kUuid, uuid(Track::thread, index));
    if (process != nullptr) out.add_uint64(track::kParent, uuid(Track::process, thread.process.value - 1));
    if (plain) {
      out.add_string(track::kName, displayable(view::thread_label(thread)));
      return;
    }
    pbf_writer inner(out, track::kThread);
    inner.add_int32(track::kThreadPid, process->pid);
    inner.add_int64(track::kThreadTid, thread.tid);
    inner.add_string(track::kThreadName, displayable(thread.name.empty() ? thread.kernel_name : thread.name));
  });
  packets.packet(0, [&](pbf_writer& message) {
    pbf_writer out(message, packet::kTrackDescriptor);
    out.add_uint64(track::kUuid, uuid(Track::state, index));
    out.add_uint64(track::kParent, uuid(Track::thread, index));
    out.add_string(track::kName, "State");
  });
}

// A track of its own, below the thread's.
void put_spans(Packets& packets, const std::vector<SpanRun>& runs, size_t index) {
  if (runs.empty()) return;
  packets.packet(0, [&](pbf_writer& message) {
    pbf_writer out(message, packet::kTrackDescriptor);
    out.add_uint64(track::kUuid, uuid(Track::spans, index));
    out.add_uint64(track::kParent, uuid(Track::thread, index));
    out.add_string(track::kName, "Spans");
  });
  packets.on(uuid(Track::spans, index));
  for (const SpanRun& run : runs) packets.span(run);
}

void put_moments(Packets& packets, const profile::Profile& profile, const SamplesByThread& threads) {
  const Nanoseconds zero = view::recording_start(profile);
  for (const profile::Event& event : profile.events()) {
    if (event.time < zero) continue;
    if (event.thread) {
      const size_t index = event.thread->value - 1;
      if (index >= threads.size() || threads[index].empty()) continue;
      packets.on(uuid(Track::thread, index));
    } else {
      if (!event.process || event.process->value > profile.processes().size()) continue;
      packets.on(uuid(Track::process, event.process->value - 1));
    }
    packets.moment(event, event.time - zero);
  }
}

}  // namespace

Result<void> write_perfetto(const profile::Profile& profile, const view::Choices& choices,
                            std::ostream& out) {
  Result<view::SampleFilter> filter = view::SampleFilter::make(profile, choices);
  if (!filter) return fail(filter);
  const SamplesByThread threads = samples_by_thread(profile, *filter);
  FrameTable frames(profile, choices);
  const size_t no_frames = frames.marker(view::no_frames_label().name);
  const Nanoseconds zero = view::recording_start(profile);
  const bool real_time = choices.weight == view::Weight::wall;

  const view::TraceParts traces(profile);
  Packets packets(out, frames, zero);
  put_clocks(packets, zero, recording_start_time(profile));
  for (size_t i = 0; i < profile.processes().size(); ++i) put_process(packets, profile.processes()[i], i);
  for (size_t i = 0; i < threads.size(); ++i) {
    if (threads[i].empty()) continue;
    put_thread(packets, profile, i);
    packets.on(uuid(Track::thread, i));
    write_slices(threads[i], Axis(profile, choices), frames, no_frames, packets);
    if (!real_time) continue;
    packets.on(uuid(Track::state, i));
    for (const StateRun& run : state_runs(profile, threads[i]))
      packets.slice(run.name, run.start - zero, run.end - zero);
    put_spans(packets, span_runs(profile, traces, threads[i]), i);
  }
  if (real_time) put_moments(packets, profile, threads);
  return {};
}

}  // namespace phlox::exporters
