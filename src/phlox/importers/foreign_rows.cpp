#include "phlox/importers/foreign_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "phlox/importers/python_frames.h"
#include "phlox/profile/counters.h"

namespace phlox::importers {
namespace {

// Named rows that a file may make us keep.
constexpr size_t kMostRows = 1'000'000;
// Samples between two commits: each commit costs a write to disk.
constexpr uint32_t kRowsPerCommit = 50'000;
// 18 years from time 0: two such times are no further apart than a recording holds.
constexpr Nanoseconds kFarthest = Nanoseconds{1} << 59;
// The latest end of a process or thread, and the longest duration, in a recording.
constexpr Nanoseconds kLatestEnd = Nanoseconds{1} << 60;

// Beyond the limit, all keys share the first number.
template <class Key, class Make>
uint32_t number_of(std::map<Key, uint32_t>& known, uint64_t& beyond, Key key, Make&& make) {
  if (known.size() >= kMostRows && !known.contains(key)) {
    ++beyond;
    return 1;
  }
  const auto [at, fresh] = known.try_emplace(std::move(key), static_cast<uint32_t>(known.size() + 1));
  if (fresh) make(at->second);
  return at->second;
}

// Splits "file.py:12"; returns 0 if there is no number.
int32_t take_line(std::string_view& source) {
  const size_t colon = source.rfind(':');
  if (colon == std::string_view::npos) return 0;
  int32_t line = 0;
  const auto [end, error] = std::from_chars(source.data() + colon + 1, source.data() + source.size(), line);
  if (error != std::errc() || end != source.data() + source.size() || line < 0) return 0;
  source = source.substr(0, colon);
  return line;
}

// Extends a process or thread from its first sample to its last; does nothing if the format has no times.
template <class Row>
void widen(Row& row, const profile::Sample& sample) {
  const Nanoseconds end = std::min(sample.start + sample.wall, kLatestEnd);
  if (end <= 0) return;
  row.start = row.end == 0 ? sample.start : std::min(row.start, sample.start);
  row.end = std::max(row.end, end);
}

// The note that stackcollapse-perf.pl --all adds to a name.
std::optional<char> take_note(std::string_view& text) {
  if (text.size() < 4 || !text.ends_with(']') || text.substr(text.size() - 4, 2) != "_[") return std::nullopt;
  const char note = text[text.size() - 2];
  if (std::string_view("kijw").find(note) == std::string_view::npos) return std::nullopt;
  text.remove_suffix(4);
  return note;
}

}  // namespace

profile::ProcessId ForeignRows::process(int32_t pid, std::string_view name,
                                        std::optional<profile::ProcessId> parent) {
  return profile::ProcessId(
      number_of(processes_, beyond_, std::pair(pid, std::string(name)), [&](uint32_t id) {
        profile::Process row;
        row.pid = row.namespace_pid = pid;
        row.executable = name;
        row.parent = parent;
        process_rows_.push_back(row);
        sink_.emit(profile::ProcessId(id), row);
      }));
}

void ForeignRows::name(profile::ProcessId process, std::string_view name) {
  profile::Process& row = process_rows_[process.value - 1];
  if (!row.executable.empty() || name.empty()) return;
  row.executable = name;
  sink_.emit(process, row);
}

profile::ThreadId ForeignRows::thread(profile::ProcessId process, int32_t tid, std::string_view name) {
  return profile::ThreadId(
      number_of(threads_, beyond_, std::tuple(process.value, tid, std::string(name)), [&](uint32_t id) {
        profile::Thread row;
        row.process = process;
        row.tid = tid;
        row.name = name;
        thread_rows_.push_back(row);
        sink_.emit(profile::ThreadId(id), row);
      }));
}

profile::ModuleId ForeignRows::module(std::string_view path, std::string_view build_id) {
  return profile::ModuleId(
      number_of(modules_, beyond_, std::pair(std::string(path), std::string(build_id)), [&](uint32_t id) {
        sink_.emit(profile::ModuleId(id), {std::string(path), std::string(build_id), 0});
      }));
}

void ForeignRows::sample(profile::Sample sample, uint64_t samples) {
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  // Some 4 * 10^12 samples: a larger number is no count.
  constexpr int kMostOfOne = 1000;
  samples_ += samples;
  for (int i = 0; i < kMostOfOne; ++i) {
    sample.samples = static_cast<uint32_t>(std::min(samples, kMost));
    samples -= sample.samples;
    put(sample);
    sample.wall = sample.cpu = sample.value = 0;
    if (samples == 0) return;
  }
  samples_ -= samples;
  left_out_ += samples;
}

void ForeignRows::value(profile::Sample sample) {
  sample.samples = 1;
  put(sample);
}

void ForeignRows::put(profile::Sample sample) {
  // A reader accepts no more.
  const auto take = [this](Nanoseconds& time) {
    const Nanoseconds taken = std::min(time, time_left_);
    time_cut_ = time_cut_ || taken < time;
    time_left_ -= taken;
    time = taken;
  };
  take(sample.wall);
  take(sample.cpu);
  far_ += sample.start < -kFarthest || sample.start > kFarthest;
  sample.start = std::clamp(sample.start, -kFarthest, kFarthest);
  if (sample.thread && sample.thread.value <= thread_rows_.size()) {
    profile::Thread& thread = thread_rows_[sample.thread.value - 1];
    widen(thread, sample);
    if (thread.process && thread.process.value <= process_rows_.size())
      widen(process_rows_[thread.process.value - 1], sample);
  }
  sink_.emit(profile::SampleId(++last_sample_), sample);
  if (last_sample_ % kRowsPerCommit == 0) static_cast<void>(sink_.commit());
}

// Rows were written at first use, when their end was not known.
void ForeignRows::put_spans() {
  for (size_t i = 0; i < process_rows_.size(); ++i) {
    if (process_rows_[i].end > 0)
      sink_.emit(profile::ProcessId(static_cast<uint32_t>(i + 1)), process_rows_[i]);
  }
  for (size_t i = 0; i < thread_rows_.size(); ++i) {
    if (thread_rows_[i].end > 0) sink_.emit(profile::ThreadId(static_cast<uint32_t>(i + 1)), thread_rows_[i]);
  }
}

ImportOutcome ForeignRows::finish(Nanoseconds elapsed, std::string summary) {
  namespace counters = profile::counters;
  put_spans();
  sink_.emit_meta("recorded_by", recorded_by_.empty() ? "another tool" : recorded_by_);
  sink_.emit({{}, std::string(counters::kSamples), static_cast<int64_t>(samples_)});
  if (elapsed > 0) sink_.emit({{}, std::string(counters::kElapsed), std::min(elapsed, kLatestEnd)});
  ImportOutcome out;
  out.samples = samples_;
  out.summary = std::move(summary);
  if (left_out_ > 0)
    out.warnings.push_back(
        fmt::format("{} samples of one stack are more than can be counted and were left out", left_out_));
  if (beyond_ > 0)
    out.warnings.push_back(
        fmt::format("there are more than {} different processes, threads or libraries: what belongs to one "
                    "beyond those is shown as the first one's",
                    kMostRows));
  if (time_cut_)
    out.warnings.push_back("the times add up to more than 73 years; what is beyond was left out");
  warn(out, far_, "sample is more than 18 years before or after time 0 and shown there: lengths are right",
       "samples are more than 18 years before or after time 0 and shown there: lengths are right");
  if (interner_.left_out() > 0)
    out.warnings.push_back(
        fmt::format("there are more different functions or stacks than a recording holds: {} frames are left "
                    "out of their stacks or shown as a function beyond those; their samples are kept",
                    interner_.left_out()));
  return out;
}

void warn(ImportOutcome& out, uint64_t count, std::string_view of_one, std::string_view of_more) {
  if (count > 0) out.warnings.push_back(fmt::format("{} {}", count, count == 1 ? of_one : of_more));
}

std::string warning_of_no_names(uint64_t frames) {
  return frames == 1 ? fmt::format("1 frame has no name and is shown as {}", kNoName)
                     : fmt::format("{} frames have no name and are shown as {}", frames, kNoName);
}

bool is_python_source(std::string_view file) {
  return file.ends_with(".py") || file.ends_with(".pyc") || (file.starts_with('<') && file.ends_with('>'));
}

profile::Frame frame_of_text(std::string_view text) {
  const auto note = take_note(text);
  if (auto python = python_frame(text)) return *std::move(python);
  profile::Frame frame;
  frame.kind = note == 'k' ? profile::FrameKind::kernel : profile::FrameKind::native;
  // "operator() (file.cpp:3)": the last bracket, after a space.
  const size_t open = text.ends_with(')') ? text.rfind(" (") : std::string_view::npos;
  if (open != std::string_view::npos && open > 0) {
    std::string_view source = text.substr(open + 2, text.size() - open - 3);
    const int32_t line = take_line(source);
    const bool is_source = line > 0 || is_python_source(source) || source.find('/') != std::string_view::npos;
    if (is_source) {
      frame.line = line;
      frame.file = source;
      text = text.substr(0, open);
      if (is_python_source(source)) frame.kind = profile::FrameKind::python;
    }
  }
  frame.qualified_name = text;
  frame.function = text;
  if (frame.kind == profile::FrameKind::python) {
    const size_t dot = text.rfind('.');
    if (dot != std::string_view::npos && dot + 1 < text.size()) frame.function = text.substr(dot + 1);
  }
  return frame;
}

}  // namespace phlox::importers
