// Shared by the formats that show threads in the order of time: samples by thread, frames as numbered labels,
// slices (a function from its first to its last sample), events in words. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/view/trace_parts.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

struct ThreadSample {
  const profile::Sample* sample = nullptr;
  view::SampleFilter::Part part;
};

// Samples that pass and have weight, in the order of time; by thread id - 1.
using SamplesByThread = std::vector<std::vector<ThreadSample>>;
SamplesByThread samples_by_thread(const profile::Profile& profile, const view::SampleFilter& filter);

// The thread that computes most, among those that have samples.
std::optional<size_t> busiest_thread(const SamplesByThread& threads);

// "Thread worker-1 (4711)", after its process if there are several.
std::string thread_title(const profile::Profile& profile, const profile::Thread& thread);

// nullptr: the row has none.
const profile::Process* process_of(const profile::Profile& profile, const profile::Thread& thread);

// "libfoo: src/run.rs", for formats without a place for a library.
std::string native_location(const view::Label& label);

// Frames of the recording with the same label in this view are one, numbered from 0.
class FrameTable {
 public:
  FrameTable(const profile::Profile& profile, const view::Choices& choices);

  // Root first. Parents come before children, so this ends for any file.
  void stack(profile::StackId id, std::vector<size_t>& path) const;
  const std::vector<view::Label>& labels() const { return labels_; }
  // A label of our own, which `stack` never returns.
  size_t marker(std::string_view name);

 private:
  const profile::Profile& profile_;
  std::map<std::tuple<profile::FrameKind, std::string, std::string, int32_t>, size_t> known_;
  std::vector<view::Label> labels_;
  std::vector<size_t> numbers_;
};

// The place of a sample on the axis of a thread's slices, in nanoseconds. Wall time is placed where it
// passed, counted from the recording's start. Other weights have no place in time: their samples follow one
// another, each as long as its weight.
class Axis {
 public:
  Axis(const profile::Profile& profile, const view::Choices& choices);

  struct Span {
    Nanoseconds start = 0;
    Nanoseconds length = 0;
  };
  // Samples of one thread, in the order of time.
  Span place(const ThreadSample& sample);
  void next_thread() { end_ = 0; }

  // The length of a sample in the drawing, if samples count.
  static constexpr Nanoseconds kSample = 1'000'000;

 private:
  view::Weight weight_;
  Nanoseconds start_ = 0;
  Nanoseconds end_ = 0;  // of the thread's last sample
};

// Receives slices as they open and close. `label` is a number of the FrameTable.
class SliceSink {
 public:
  virtual ~SliceSink() = default;
  virtual void open(size_t label, Nanoseconds at) = 0;
  virtual void close(size_t label, Nanoseconds at) = 0;  // the one opened last
};
// Neighbouring samples with the same outer functions share their slices. Samples without any frame are a
// slice of their own, `no_frames`. Lengths of outermost slices add up to the samples' weight.
void write_slices(const std::vector<ThreadSample>& samples, Axis axis, const FrameTable& frames,
                  size_t no_frames, SliceSink& sink);

// A run of neighbouring samples in one state.
struct StateRun {
  std::string name;
  Nanoseconds start = 0;
  Nanoseconds end = 0;
};
// Things that readers search for besides stacks: "Waits for the GIL", "Garbage collection", "Waits for
// 10.0.0.5:5432".
std::vector<StateRun> notable_runs(const profile::Profile& profile, const std::vector<ThreadSample>& samples);
// All of a thread's time: "running", "waits for the GIL", "waits for a CPU", "futex", "recvfrom
// (10.0.0.5:5432)".
std::vector<StateRun> state_runs(const profile::Profile& profile, const std::vector<ThreadSample>& samples);

// Times in which a thread worked for one span of a trace, as far as samples show it.
struct SpanRun {
  profile::TraceIds ids;
  Nanoseconds start = 0;
  Nanoseconds end = 0;
};
std::vector<SpanRun> span_runs(const profile::Profile& profile, const view::TraceParts& traces,
                               const std::vector<ThreadSample>& samples);

// "Process started", and a detail if there is one: "exit 0". Empty: not for people.
std::string_view event_name(profile::EventKind kind);
std::string event_words(const profile::Event& event);

}  // namespace phlox::exporters
