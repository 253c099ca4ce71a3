#include "phlox/importers/perf_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "phlox/importers/event_numbers.h"
#include "phlox/importers/foreign_rows.h"
#include "phlox/importers/python_frames.h"
#include "phlox/importers/text_lines.h"
#include "phlox/profile/stretches.h"

namespace phlox::importers {
namespace {

constexpr size_t kMostScriptFrames = 8192;
constexpr size_t kMostScriptProcesses = 1'000'000;
// Before the time: a command is 16 bytes at most.
constexpr size_t kMostWords = 16;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

template <class Number>
std::optional<Number> script_number(std::string_view text, int base = 10) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// "3305.705454": seconds, with six digits of them or (--ns) nine.
std::optional<Nanoseconds> time_of(std::string_view text) {
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto seconds = script_number<int64_t>(text.substr(0, dot));
  std::string digits(text.substr(dot + 1));
  if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  digits.resize(9, '0');
  if (!seconds || *seconds < 0 || *seconds > 1'000'000'000) return std::nullopt;
  return *seconds * kSecond + script_number<int64_t>(digits).value_or(0);
}

struct Head {
  std::string_view comm;
  int32_t pid = 0, tid = 0;
  int16_t cpu = -1;
  Nanoseconds time = 0;
  uint64_t period = 0;
  std::string_view event;
  std::string_view rest;  // behind the event: without a call graph, the one frame that there is
};

// "python3  4711/4712 [001]  3305.705454:    1001001 cpu-clock:pppH:  ..." with the parts that -F asked for.
// The command may hold blanks: what stands before the first number is it.
std::optional<Head> parse_head(std::string_view line) {
  Head head;
  std::vector<std::string_view> before;
  size_t at = 0;
  bool timed = false;
  const auto next_word = [&]() -> std::string_view {
    const size_t start = std::min(line.find_first_not_of(" \t", at), line.size());
    at = std::min(line.find_first_of(" \t", start), line.size());
    return line.substr(start, at - start);
  };
  for (auto word = next_word(); !word.empty() && before.size() < kMostWords; word = next_word()) {
    const auto time = word.ends_with(':') ? time_of(word.substr(0, word.size() - 1)) : std::nullopt;
    timed = time.has_value();
    if (timed) {
      head.time = *time;
      break;
    }
    before.push_back(word);
  }
  if (!timed) return std::nullopt;
  if (!before.empty() && before.back().starts_with('[') && before.back().ends_with(']')) {
    head.cpu = script_number<int16_t>(before.back().substr(1, before.back().size() - 2)).value_or(-1);
    before.pop_back();
  }
  if (!before.empty()) {
    const std::string_view ids = before.back();
    const size_t slash = ids.find('/');
    const auto first = script_number<int32_t>(ids.substr(0, slash));
    const auto second =
        slash == std::string_view::npos ? first : script_number<int32_t>(ids.substr(slash + 1));
    if (first && second) {
      head.pid = *first;
      head.tid = *second;
      before.pop_back();
    }
  }
  if (!before.empty()) {
    const char* const start = before.front().data();
    head.comm = {start, static_cast<size_t>(before.back().data() + before.back().size() - start)};
  }
  std::string_view word = next_word();
  if (const auto period = script_number<uint64_t>(word)) {
    head.period = *period;
    word = next_word();
  }
  while (word.ends_with(':')) word.remove_suffix(1);
  head.event = word;
  head.rest = trimmed(line.substr(at));
  return head;
}

struct TextFrame {
  std::string_view symbol, module;
  uint64_t address = 0;
};

// "    7f0011223344 PyObject_Call+0x24 (/usr/bin/python3.11)"; without +0x24, and with (inlined).
std::optional<TextFrame> parse_frame_text(std::string_view line) {
  const size_t space = line.find(' ');
  const auto address = script_number<uint64_t>(line.substr(0, space), 16);
  if (!address || space == std::string_view::npos) return std::nullopt;
  TextFrame frame;
  frame.address = *address;
  std::string_view rest = trimmed(line.substr(space));
  if (rest.ends_with(')')) {
    // The module's name may hold brackets: "([kernel.kallsyms])", "(/tmp/a (deleted))".
    size_t open = rest.rfind(" (");
    if (rest.ends_with(" (deleted))") && open != 0 && open != std::string_view::npos)
      open = rest.rfind(" (", open - 1);
    if (rest.starts_with('(') && open == std::string_view::npos) open = 0;
    if (open != std::string_view::npos) {
      frame.module = trimmed(rest.substr(open));
      frame.module = frame.module.substr(1, frame.module.size() - 2);
      rest = trimmed(rest.substr(0, open));
    }
  }
  const size_t plus = rest.rfind("+0x");
  frame.symbol = plus == std::string_view::npos ? rest : rest.substr(0, plus);
  return frame;
}

bool is_indented(std::string_view line) {
  return !line.empty() && (line.front() == ' ' || line.front() == '\t');
}

std::optional<TextFrame> parse_frame(std::string_view line) {
  return is_indented(line) ? parse_frame_text(trimmed(line)) : std::nullopt;
}

// The frame of a sample without a call graph. What a tracepoint prints there is none.
std::optional<TextFrame> parse_only_frame(std::string_view rest) {
  if (!rest.ends_with(')')) return std::nullopt;
  auto frame = parse_frame_text(rest);
  return frame && !frame->module.empty() ? frame : std::nullopt;
}

// "  app.c:10", "  ./nptl/pthread_create.c:442 (discriminator 2)": of the frame above (-F +srcline). "??:0"
// is perf's word for none.
bool take_source_line(std::string_view text, profile::Frame& frame) {
  if (!is_indented(text)) return false;
  text = trimmed(text);
  if (text.ends_with(')')) text = trimmed(text.substr(0, std::min(text.rfind(" ("), text.size())));
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view digits = text.substr(colon + 1);
  const auto line = script_number<int32_t>(digits);
  if (digits != "?" && (!line || *line < 0)) return false;
  const std::string_view file = text.substr(0, colon);
  if (file != "??" && line.value_or(0) > 0) {
    frame.file = file;
    frame.line = *line;
  }
  return true;
}

bool is_clock(std::string_view event) {
  return event.starts_with("cpu-clock") || event.starts_with("task-clock");
}

class ScriptImport {
 public:
  explicit ScriptImport(profile::Sink& sink) : rows_(sink, "perf"), numbers_(sink) {}

  Result<ImportOutcome> run(Input& input) {
    TextLines lines(input);
    std::string_view line;
    while (lines.next(line)) {
      if (line.starts_with('#')) continue;
      if (trimmed(line).empty()) {
        end_sample();
      } else if (const auto frame = open_ ? parse_frame(line) : std::nullopt) {
        if (frames_.size() < kMostScriptFrames) frames_.push_back(frame_of(*frame));
      } else if (open_ && take_source_line(line, frames_.empty() ? only_frame_ : frames_.back())) {
        continue;
      } else if (const auto head = parse_head(line)) {
        end_sample();
        begin_sample(*head);
      } else {
        ++refused_;
      }
    }
    end_sample();
    ImportOutcome out =
        rows_.finish(last_ - first_, fmt::format("perf script: {} samples in {:.1f} s", rows_.samples(),
                                                 static_cast<double>(last_ - first_) * 1e-9));
    if (clock_periods_.longer() > 0) out.warnings.push_back(clock_periods_.told());
    if (numbers_.left_out()) out.warnings.push_back(EventNumbers::kLeftOut);
    if (const std::string together = hybrid_.told(); !together.empty()) out.warnings.push_back(together);
    if (refused_ + lines.cut() > 0)
      out.warnings.push_back(
          fmt::format("{} lines are neither samples nor frames and were left out", refused_ + lines.cut()));
    return out;
  }

 private:
  void begin_sample(const Head& head) {
    open_ = true;
    const auto process = process_of(head);
    sample_ = {};
    sample_.thread = rows_.thread(process, head.tid, head.comm);
    sample_.cpu_number = head.cpu;
    sample_.cpu_state = profile::CpuState::running;
    const bool clock = is_clock(head.event);
    const auto unit = clock ? profile::Unit::nanoseconds : profile::Unit::count;
    sample_.event = numbers_.of({on_all_cores(head.event), unit});
    hybrid_.met(head.event);
    only_frame_ = {};
    if (const auto frame = parse_only_frame(head.rest)) only_frame_ = frame_of(*frame);
    if (!clock) sample_.value = numbers_.take(head.period);
    if (clock) sample_.wall = sample_.cpu = clock_periods_.take(head.period);
    sample_.start = head.time - sample_.wall;
    if (first_ == 0) first_ = head.time;
    last_ = std::max(last_, head.time);
  }

  // A process is called what its first thread is, whichever thread is met first.
  profile::ProcessId process_of(const Head& head) {
    const auto known = processes_.find(head.pid);
    const auto process = known != processes_.end() ? known->second : rows_.process(head.pid, "");
    if (known == processes_.end() && processes_.size() < kMostScriptProcesses)
      processes_.emplace(head.pid, process);
    if (head.pid == head.tid) rows_.name(process, head.comm);
    return process;
  }

  profile::Frame frame_of(const TextFrame& text) {
    if (const auto python = python_frame(text.symbol)) return *python;
    profile::Frame frame;
    if (text.symbol == "[unknown]" && text.module == "[unknown]") {
      frame.kind = profile::FrameKind::marker;
      frame.function = frame.qualified_name = "(an address at which perf knows of nothing)";
      return frame;
    }
    frame.kind = text.module.starts_with("[kernel") || text.module.starts_with("[guest.kernel")
                     ? profile::FrameKind::kernel
                     : profile::FrameKind::native;
    if (!text.module.empty() && text.module != "[unknown]" && text.module != "inlined")
      frame.module = rows_.module(text.module, "");
    // Addresses of one function are one frame: the text tells no lines.
    if (text.symbol == "[unknown]" || text.symbol.empty()) {
      frame.address = text.address;
    } else {
      frame.function = frame.qualified_name = text.symbol;
    }
    return frame;
  }

  void end_sample() {
    if (!open_) return;
    open_ = false;
    if (frames_.empty() && only_frame_ != profile::Frame()) frames_.push_back(only_frame_);
    for (size_t i = frames_.size(); i-- > 0;)
      sample_.stack = rows_.interner().stack(sample_.stack, rows_.interner().frame(frames_[i]));
    frames_.clear();
    rows_.sample(sample_, 1);
  }

  ForeignRows rows_;
  EventNumbers numbers_;
  ClockPeriods clock_periods_;
  HybridEvents hybrid_;
  profile::Sample sample_;
  std::vector<profile::Frame> frames_;  // leaf first
  profile::Frame only_frame_;           // behind the head of a sample; empty: none
  std::map<int32_t, profile::ProcessId> processes_;
  bool open_ = false;
  Nanoseconds first_ = 0, last_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace

bool recognise_perf_script(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.find('\0') != std::string_view::npos) return false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (trimmed(line).empty() || line.starts_with('#')) continue;
    if (!parse_head(line)) return false;
    const std::string_view next = text.substr(0, text.find('\n'));
    return trimmed(next).empty() || next.starts_with('#') || parse_frame(next) || parse_head(next) ||
           is_indented(next);
  }
  return false;
}

Result<ImportOutcome> import_perf_script(Input& input, const ImportOptions&, profile::Sink& sink) {
  return ScriptImport(sink).run(input);
}

}  // namespace phlox::importers
