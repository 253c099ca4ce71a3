#include "phlox/importers/austin_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace phlox::importers {
namespace {

// A hundred years in microseconds: the sum of two does not overflow in nanoseconds.
constexpr int64_t kLongest = 3'150'000'000'000'000;
constexpr Nanoseconds kLatest = kLongest * 1000;
constexpr size_t kMostAustinProcesses = 1'000'000;

template <class Number>
std::optional<Number> number_in_row(std::string_view text, int base = 10) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A version or a mode is one word, but the metadata of a damaged file may be anything.
constexpr size_t kLongestMetadata = 100;

// austinp's C frames are in libraries; all others are Python's, whatever the file's name.
bool is_library(std::string_view file) {
  return file.starts_with("native@") || file.ends_with(".so") || file.find(".so.") != std::string_view::npos;
}

}  // namespace

void AustinRows::metadata(std::string_view key, std::string_view value) {
  value = value.substr(0, kLongestMetadata);
  if (key == "austin") {
    version_ = value;
  } else if (key == "mode") {
    mode_ = value;
  } else if (key == "python") {
    python_ = value;
  } else if (key == "errors") {
    errors_ = value;
  } else if (key == "duration") {
    ended_ = true;
    duration_ = std::clamp<int64_t>(number_in_row<int64_t>(value).value_or(0), 0, kLongest) * 1000;
  }
}

AustinFrame AustinRows::frame(std::string_view file, std::string_view function, int32_t line) {
  profile::Frame frame;
  nameless_ += function.empty();
  if (function.empty()) function = kNoName;
  frame.kind = is_library(file) ? profile::FrameKind::native : profile::FrameKind::python;
  frame.qualified_name = function;
  frame.function = function;
  const size_t dot = function.rfind('.');
  if (frame.kind == profile::FrameKind::python && dot != std::string_view::npos && dot + 1 < function.size())
    frame.function = function.substr(dot + 1);
  frame.file = file;
  frame.line = std::max(line, 0);
  return {rows_.interner().frame(frame), frame.kind == profile::FrameKind::python};
}

profile::FrameId AustinRows::invalid_frame() {
  profile::Frame frame;
  frame.kind = profile::FrameKind::marker;
  frame.function = frame.qualified_name = "(a part that austin could not read)";
  return rows_.interner().frame(frame);
}

profile::FrameId AustinRows::kernel_frame(std::string_view function) {
  profile::Frame frame;
  frame.kind = profile::FrameKind::kernel;
  frame.function = frame.qualified_name = function;
  return rows_.interner().frame(frame);
}

// Before Python 3.11 a thread may be known only by its pthread_t, which is not a kernel id.
profile::ThreadId AustinRows::thread_of(const AustinSample& sample) {
  const profile::ProcessId process = rows_.process(sample.pid, "");
  const std::string_view text = sample.thread;
  const size_t colon = text.find(':');
  const std::string_view interpreter = colon == std::string_view::npos ? "0" : text.substr(0, colon);
  const std::string_view digits = colon == std::string_view::npos ? text : text.substr(colon + 1);
  std::string name;
  if (interpreter != "0") name = fmt::format("interpreter {}", interpreter);
  const auto tid = number_in_row<int32_t>(digits, hexadecimal_ ? 16 : 10);
  if (tid && *tid > 0) return rows_.thread(process, *tid, name);
  return rows_.thread(process, 0, fmt::format("{}{}{}", name, name.empty() ? "" : ", ", digits));
}

void AustinRows::put(const AustinSample& row) {
  if (row.microseconds && (*row.microseconds < 0 || *row.microseconds > kLongest)) {
    ++refused_;
    return;
  }
  if (turns_.size() >= kMostAustinProcesses && !turns_.contains(row.pid)) {
    ++refused_;
    return;
  }
  profile::Sample sample;
  sample.thread = thread_of(row);
  sample.stack = row.stack;
  sample.collecting = row.collecting;
  sample.quality = row.invalid ? profile::Quality::cut : profile::Quality::ok;
  if (row.idle) {
    sample.cpu_state = *row.idle ? profile::CpuState::blocked : profile::CpuState::running;
    if (*row.idle) sample.system_call = profile::kCallNotRecorded;
  }
  if (row.microseconds) {
    Turn& turn = turns_[row.pid];
    const bool again = turn.threads.contains(sample.thread.value);
    if (again || turn.threads.empty() || turn.microseconds != *row.microseconds) {
      const Nanoseconds passed = turn.threads.empty() ? 0 : turn.microseconds * 1000;
      turn.start = std::min(turn.start + passed, kLatest + 1);
      turn.microseconds = *row.microseconds;
      turn.threads.clear();
    }
    turn.threads.insert(sample.thread.value);
    sample.wall = *row.microseconds * 1000;
    sample.start = turn.start;
    if (turn.start > kLatest) {
      ++refused_;
      return;
    }
    longest_ = std::max(longest_, sample.start + sample.wall);
  } else {
    ++timeless_;
  }
  invalid_ += row.invalid;
  ++stacks_;
  rows_.sample(sample, 1);
}

ImportOutcome AustinRows::finish(std::string_view format, uint64_t refused, bool cut) {
  std::string summary =
      fmt::format("austin{}{}, {}: {} sample{} of mode {}", version_.empty() ? "" : " ", version_, format,
                  stacks_, stacks_ == 1 ? "" : "s", mode_.empty() ? "wall" : mode_);
  if (!python_.empty()) summary += fmt::format(", Python {}", python_);
  if (!errors_.empty()) summary += fmt::format(", austin's errors {}", errors_);
  if (timeless_ > 0) summary += "; memory is not taken over, samples are counted";
  ImportOutcome out = rows_.finish(duration_ > 0 ? duration_ : longest_, std::move(summary));
  if (!version_.empty()) sink_.emit_meta("recorded_by", "austin " + version_);
  warn(out, refused + refused_, "sample made no sense and was left out",
       "samples made no sense and were left out");
  warn(out, invalid_, "sample has a part that austin could not read",
       "samples have a part that austin could not read");
  if (nameless_ > 0) out.warnings.push_back(warning_of_no_names(nameless_));
  if (cut || (!ended_ && stacks_ > 0))
    out.warnings.push_back("it has no end: austin was killed, or the file was cut");
  return out;
}

}  // namespace phlox::importers
