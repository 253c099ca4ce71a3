#include "phlox/exporters/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "phlox/exporters/words.h"
#include "phlox/profile/wait_target.h"
#include "phlox/view/signals.h"
#include "phlox/view/system_calls.h"

namespace phlox::exporters {

SamplesByThread samples_by_thread(const profile::Profile& profile, const view::SampleFilter& filter) {
  SamplesByThread threads(profile.threads().size());
  for (const profile::Sample& sample : profile.samples()) {
    const view::SampleFilter::Part part = filter.part(sample);
    if (part.passes && part.weight > 0) threads[sample.thread.value - 1].push_back({&sample, part});
  }
  for (std::vector<ThreadSample>& samples : threads) {
    std::stable_sort(samples.begin(), samples.end(), [](const ThreadSample& a, const ThreadSample& b) {
      return a.part.start < b.part.start;
    });
  }
  return threads;
}

std::optional<size_t> busiest_thread(const SamplesByThread& threads) {
  std::optional<size_t> busiest;
  Nanoseconds most = 0;
  for (size_t i = 0; i < threads.size(); ++i) {
    if (threads[i].empty()) continue;
    Nanoseconds computing = 0;
    for (const auto& [sample, part] : threads[i]) {
      const bool waits =
          sample->cpu_state == profile::CpuState::blocked && sample->gil_state != profile::GilState::waits;
      if (!waits) computing += part.wall;
    }
    if (busiest && computing <= most) continue;
    busiest = i;
    most = computing;
  }
  return busiest;
}

const profile::Process* process_of(const profile::Profile& profile, const profile::Thread& thread) {
  const bool known = thread.process && thread.process.value <= profile.processes().size();
  return known ? &profile.process(thread.process) : nullptr;
}

std::string thread_title(const profile::Profile& profile, const profile::Thread& thread) {
  const std::string name = view::thread_label(thread);
  const profile::Process* process = process_of(profile, thread);
  if (profile.processes().size() < 2 || process == nullptr) return name;
  return view::process_label(*process) + ": " + name;
}

std::string native_location(const view::Label& label) {
  if (label.kind != profile::FrameKind::native || label.module.empty()) return label.file;
  return label.file.empty() ? label.module : label.module + ": " + label.file;
}

FrameTable::FrameTable(const profile::Profile& profile, const view::Choices& choices) : profile_(profile) {
  numbers_.reserve(profile.frames().size());
  for (uint32_t id = 1; id <= profile.frames().size(); ++id) {
    view::Label label = frame_label(profile, profile::FrameId(id), choices);
    auto [at, added] = known_.try_emplace(
        {label.kind, label.whole_name(), label.file.empty() ? label.module : label.file, label.line},
        labels_.size());
    if (added) labels_.push_back(std::move(label));
    numbers_.push_back(at->second);
  }
}

void FrameTable::stack(profile::StackId id, std::vector<size_t>& path) const {
  path.clear();
  while (id && id.value <= profile_.stacks().size()) {
    const profile::Stack& stack = profile_.stack(id);
    if (stack.frame && stack.frame.value <= numbers_.size()) path.push_back(numbers_[stack.frame.value - 1]);
    id = stack.parent < id ? stack.parent : profile::StackId();
  }
  std::reverse(path.begin(), path.end());
}

size_t FrameTable::marker(std::string_view name) {
  labels_.push_back({profile::FrameKind::marker, std::string(name)});
  return labels_.size() - 1;
}

Axis::Axis(const profile::Profile& profile, const view::Choices& choices)
    : weight_(choices.weight), start_(view::recording_start(profile)) {}

Axis::Span Axis::place(const ThreadSample& sample) {
  const bool counted = weight_ == view::Weight::samples;
  Span span{end_, counted ? sample.part.weight * kSample : sample.part.weight};
  // Overlapping samples (possible in another tool's recording) are moved behind the previous one: a thread's
  // slices must nest.
  if (weight_ == view::Weight::wall) span.start = std::max(end_, sample.part.start - start_);
  end_ = span.start + span.length;
  return span;
}

void write_slices(const std::vector<ThreadSample>& samples, Axis axis, const FrameTable& frames,
                  size_t no_frames, SliceSink& sink) {
  std::vector<size_t> open, path;
  Nanoseconds end = 0;
  const auto close_down_to = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back()) sink.close(open.back(), end);
  };
  axis.next_thread();
  for (const ThreadSample& sample : samples) {
    const Axis::Span span = axis.place(sample);
    frames.stack(sample.sample->stack, path);
    if (path.empty()) path.push_back(no_frames);
    size_t same = 0;
    if (span.start == end) {
      const auto [mine, theirs] = std::mismatch(open.begin(), open.end(), path.begin(), path.end());
      same = static_cast<size_t>(mine - open.begin());
    }
    close_down_to(same);
    for (; same < path.size(); ++same) {
      open.push_back(path[same]);
      sink.open(path[same], span.start);
    }
    end = span.start + span.length;
  }
  close_down_to(0);
}

namespace {

// The file, socket, pipe or child that it waits for.
std::string wait_target_words(const profile::Profile& profile, const profile::Sample& sample) {
  if (!sample.wait_target || sample.wait_target.value > profile.wait_targets().size()) return {};
  const profile::WaitTarget& wait_target = profile.wait_targets()[sample.wait_target.value - 1];
  return wait_target.kind == profile::WaitTargetKind::time
             ? std::string()
             : displayable(profile::wait_target_words(wait_target, profile::WaitTargetDetail::alike));
}

// A sample without a name ends a run and starts none.
template <class Name>
void add_runs(const std::vector<ThreadSample>& samples, std::vector<StateRun>& runs, Name&& name_of) {
  bool open = false;
  for (const auto& [sample, part] : samples) {
    std::string name = part.wall > 0 ? name_of(*sample) : std::string();
    const Nanoseconds end = part.start + part.wall;
    if (open && !name.empty() && runs.back().end == part.start && runs.back().name == name) {
      runs.back().end = end;
      continue;
    }
    open = !name.empty();
    if (open) runs.push_back({std::move(name), part.start, end});
  }
}

}  // namespace

std::vector<StateRun> notable_runs(const profile::Profile& profile,
                                   const std::vector<ThreadSample>& samples) {
  std::vector<StateRun> runs;
  add_runs(samples, runs, [](const profile::Sample& sample) {
    return std::string(sample.gil_state == profile::GilState::waits ? "Waits for the GIL" : "");
  });
  add_runs(samples, runs, [](const profile::Sample& sample) {
    return std::string(sample.collecting ? "Garbage collection" : "");
  });
  add_runs(samples, runs, [&](const profile::Sample& sample) {
    const std::string wait_target = wait_target_words(profile, sample);
    return wait_target.empty() ? wait_target : "Waits for " + wait_target;
  });
  return runs;
}

std::vector<StateRun> state_runs(const profile::Profile& profile, const std::vector<ThreadSample>& samples) {
  const std::string_view machine = view::machine_of(profile);
  std::vector<StateRun> runs;
  add_runs(samples, runs, [&](const profile::Sample& sample) -> std::string {
    if (sample.gil_state == profile::GilState::waits) return "waits for the GIL";
    switch (sample.cpu_state) {
      case profile::CpuState::running:
        return sample.collecting ? "running, collects garbage" : "running";
      case profile::CpuState::runnable:
        return "waits for a CPU";
      case profile::CpuState::blocked: {
        const std::string wait_target = wait_target_words(profile, sample);
        return view::system_call_name(sample.system_call, machine) +
               (wait_target.empty() ? "" : " (" + wait_target + ")");
      }
      case profile::CpuState::unknown:
        break;
    }
    return "not known";
  });
  return runs;
}

std::vector<SpanRun> span_runs(const profile::Profile& profile, const view::TraceParts& traces,
                               const std::vector<ThreadSample>& samples) {
  std::vector<SpanRun> runs;
  for (const auto& [sample, part] : samples) {
    traces.each(sample->thread, part.start, part.wall, [&](Nanoseconds from, Nanoseconds to, uint32_t index) {
      if (index == view::TraceParts::kNone || from == to) return;
      const profile::TraceIds& ids = profile.trace_times()[index].ids;
      if (!runs.empty() && runs.back().end == from && runs.back().ids == ids) {
        runs.back().end = to;
      } else {
        runs.push_back({ids, from, to});
      }
    });
  }
  return runs;
}

std::string_view event_name(profile::EventKind kind) {
  constexpr std::array<std::string_view, 15> kNames = {"Recording started",
                                                       "Recording ended",
                                                       "Process started",
                                                       "Process ended",
                                                       "exec",
                                                       "fork",
                                                       "Thread started",
                                                       "Thread ended",
                                                       "Samples lost",
                                                       "Rate changed",
                                                       "Mode changed",
                                                       "Calls waiting for a thread",
                                                       "Signal sent",
                                                       "Signal received",
                                                       "Signal delivered"};
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "";
}

std::string event_words(const profile::Event& event) {
  std::string words;
  if (event.kind == profile::EventKind::rate_change)
    words = fmt::format("{:g} Hz", double(event.value) / 1000);
  if (event.kind == profile::EventKind::lost)
    words = fmt::format("{:g} s without samples", double(event.value) / 1e9);
  if (event.kind == profile::EventKind::calls_waiting) words = std::to_string(event.value);
  if (event.kind >= profile::EventKind::signal_sent && event.kind <= profile::EventKind::signal_delivered)
    words = view::signal_name(static_cast<int>(event.value));
  if (!event.text.empty()) words += (words.empty() ? "" : ": ") + event.text;
  return words;
}

}  // namespace phlox::exporters
