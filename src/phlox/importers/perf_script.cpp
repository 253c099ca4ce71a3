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
#include "phlox/profile/spans.h"

namespace phlox::importers {
namespace {

constexpr size_t kMostScriptFrames = 8192;
constexpr size_t kMostScriptProcesses = 1'000'000;
// Before the time: a command has at most 16 bytes.
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

// "3305.705454": seconds with six decimals or (--ns) nine.
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
  std::optional<Nanoseconds> time;
  uint64_t period = 0;
  std::string_view event;
  std::string_view rest;       // after the event: without a call graph, the only frame
  bool address_first = false;  // in `rest`, in the column where perf prints it
};

// Reads a line word by word.
class Words {
 public:
  explicit Words(std::string_view line) : line_(line) {}
  // Empty at the end.
  std::string_view next() {
    const size_t start = std::min(line_.find_first_not_of(" \t", at_), line_.size());
    at_ = std::min(line_.find_first_of(" \t", start), line_.size());
    return line_.substr(start, at_ - start);
  }
  std::string_view rest() const { return line_.substr(at_); }
  size_t place() const { return at_; }
  void go_back(size_t place) { at_ = place; }

 private:
  std::string_view line_;
  size_t at_ = 0;
};

// "4711/4712" or "4712".
bool take_ids(std::string_view word, Head& head) {
  const size_t slash = word.find('/');
  const auto first = script_number<int32_t>(word.substr(0, slash));
  const auto second =
      slash == std::string_view::npos ? first : script_number<int32_t>(word.substr(slash + 1));
  if (!first || !second) return false;
  head.pid = *first;
  head.tid = *second;
  return true;
}

bool is_cpu(std::string_view word) {
  return word.starts_with('[') && word.ends_with(']') && word.size() > 2 &&
         word.find_first_not_of("0123456789", 1) == word.size() - 1;
}

// -F +misc: "U", "K", "Sp".
bool is_misc(std::string_view word) {
  constexpr size_t kLongestMisc = 4;
  return word.size() <= kLongestMisc && word.find_first_not_of("UKHGgMFfESLDp") == std::string_view::npos;
}

std::string_view between(std::string_view first, std::string_view last) {
  return {first.data(), static_cast<size_t>(last.data() + last.size() - first.data())};
}

// As perf prints an address: right-aligned in a column of 16 digits. `word` is part of `line`.
bool is_in_address_column(std::string_view line, std::string_view word) {
  constexpr size_t kColumn = 16;
  const auto start = static_cast<size_t>(word.data() - line.data());
  const size_t before = line.substr(0, start).find_last_not_of(' ');
  const size_t blanks = before == std::string_view::npos ? start : start - before - 1;
  return blanks + word.size() >= kColumn && script_number<uint64_t>(word, 16).has_value();
}

// After the time: "1001001 cpu-clock:pppH:  ...", of which -F may omit either part. There may be an address
// instead, and all its digits may be decimal.
void take_event(std::string_view line, Words& words, Head& head) {
  size_t place = words.place();
  std::string_view word = words.next();
  if (const auto period = script_number<uint64_t>(word)) {
    const size_t behind = words.place();
    const std::string_view next = words.next();
    if (next.empty() || next.ends_with(':') || is_in_address_column(line, next)) {
      head.period = *period;
      place = behind;
      word = next;
    }
  }
  // "PERF_RECORD_SWITCH OUT" is no sample: the caller skips it.
  if (word.ends_with(':') || word.starts_with("PERF_RECORD_")) {
    while (word.ends_with(':')) word.remove_suffix(1);
    head.event = word;
  } else {
    words.go_back(place);
  }
  head.rest = trimmed(words.rest());
  if (const auto first = words.next(); !first.empty()) head.address_first = is_in_address_column(line, first);
}

// "python3  4711/4712 [001]  3305.705454:    1001001 cpu-clock:pppH:  ..." with the parts that -F requested.
// The command may contain blanks: it is everything before the first number.
std::optional<Head> parse_head(std::string_view line) {
  Head head;
  std::vector<std::string_view> before;
  Words words(line);
  for (auto word = words.next(); !word.empty() && before.size() < kMostWords; word = words.next()) {
    head.time = word.ends_with(':') ? time_of(word.substr(0, word.size() - 1)) : std::nullopt;
    if (head.time) break;
    before.push_back(word);
  }
  if (!head.time) return std::nullopt;
  if (before.size() > 1 && is_misc(before.back())) {
    Head ids;
    if (const auto word = before[before.size() - 2]; is_cpu(word) || take_ids(word, ids)) before.pop_back();
  }
  if (!before.empty() && is_cpu(before.back())) {
    head.cpu = script_number<int16_t>(before.back().substr(1, before.back().size() - 2)).value_or(-1);
    before.pop_back();
  }
  if (!before.empty() && take_ids(before.back(), head)) before.pop_back();
  if (!before.empty()) head.comm = between(before.front(), before.back());
  take_event(line, words, head);
  return head;
}

// Without a time: "python3  4711/4712 [001]  1001001 cycles:". Many lines that are no samples look like it,
// so frames must follow, or one must be on the same line; perf then puts blanks before the command.
std::optional<Head> parse_timeless_head(std::string_view line) {
  Head head;
  Words words(line);
  const std::string_view first = words.next();
  std::string_view last = first;
  bool with_ids = false;
  for (size_t i = 0; i < kMostWords && !with_ids; ++i) {
    const std::string_view word = words.next();
    if (word.empty()) return std::nullopt;
    with_ids = take_ids(word, head);
    if (!with_ids) last = word;
  }
  if (!with_ids) return std::nullopt;
  head.comm = between(first, last);
  size_t place = words.place();
  if (const auto word = words.next(); is_cpu(word)) {
    head.cpu = script_number<int16_t>(word.substr(1, word.size() - 2)).value_or(-1);
    place = words.place();
  }
  words.go_back(place);
  take_event(line, words, head);
  return head;
}

struct TextFrame {
  std::string_view symbol, module;
  uint64_t address = 0;
};

// "    7f0011223344 PyObject_Call+0x24 (/usr/bin/python3.11)"; without +0x24, with (inlined), and without a
// symbol or module if -F omits them.
std::optional<TextFrame> parse_frame_text(std::string_view line) {
  const size_t space = std::min(line.find(' '), line.size());
  const auto address = script_number<uint64_t>(line.substr(0, space), 16);
  if (!address) return std::nullopt;
  TextFrame frame;
  frame.address = *address;
  std::string_view rest = trimmed(line.substr(space));
  if (rest.ends_with(')')) {
    // The module's name may contain brackets: "([kernel.kallsyms])", "(/tmp/a (deleted))".
    size_t open = std::min(rest.find(" (/"), rest.find(" (["));
    if (open == std::string_view::npos) open = rest.rfind(" (");
    if (rest.find(" (/") == std::string_view::npos && rest.ends_with(" (deleted))") && open != 0 &&
        open != std::string_view::npos)
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

// An address as perf prints it after other columns: in a column of 16 digits.
bool is_address_column(std::string_view word) {
  constexpr size_t kShortest = 8;
  return word.size() >= kShortest && script_number<uint64_t>(word, 16).has_value();
}

// The frame of a sample without a call graph. Other fields that -F requested come before it ("+addr"), in
// columns, and no symbol has two blanks in a row. A tracepoint's output there is no frame: without a module
// (-F comm,tid,time,event,ip,sym), the address's column distinguishes the two.
std::optional<TextFrame> parse_only_frame(const Head& head) {
  std::string_view rest = head.rest;
  const bool with_module = rest.ends_with(')');
  if (!with_module && !head.address_first) return std::nullopt;
  for (size_t blanks = rest.rfind("  "); blanks != std::string_view::npos;
       blanks = rest.rfind("  ", blanks - 1)) {
    const std::string_view column = trimmed(rest.substr(blanks));
    if (const auto frame = parse_frame_text(column); frame && frame->module.empty() != with_module) {
      rest = column;
      break;
    }
    if (blanks == 0) break;
  }
  while (true) {
    const size_t blank = rest.find(' ');
    const std::string_view more = blank == std::string_view::npos ? "" : trimmed(rest.substr(blank));
    const size_t end = std::min(more.find(' '), more.size());
    // A name may look like an address: "feedface". After an address there is a name.
    const bool is_address =
        with_module ? is_address_column(more.substr(0, end)) && !trimmed(more.substr(end)).starts_with('(')
                    : !more.empty() && is_in_address_column(rest, more.substr(0, end));
    if (!is_address_column(rest.substr(0, blank)) || !is_address) break;
    rest = more;
  }
  auto frame = parse_frame_text(rest);
  return frame && (!frame->module.empty() || head.address_first) ? frame : std::nullopt;
}

// perf writes a tab before the frames of a call graph. A line with only blanks before it may be the next
// sample of a program whose name or number is also hexadecimal: "  dd  4711 [001] 3305.705454: ...".
std::optional<TextFrame> parse_frame(std::string_view line) {
  if (!is_indented(line)) return std::nullopt;
  if (line.front() != '\t') {
    if (parse_head(line)) return std::nullopt;
    if (const auto head = parse_timeless_head(line); head && parse_only_frame(*head)) return std::nullopt;
  }
  return parse_frame_text(trimmed(line));
}

// "  app.c:10", "  ./nptl/pthread_create.c:442 (discriminator 2)": the source line of the frame above (-F
// +srcline). perf writes "??:0" for none.
bool take_source_line(std::string_view text, profile::Frame& frame) {
  if (!is_indented(text)) return false;
  text = trimmed(text);
  if (text.ends_with(')')) text = trimmed(text.substr(0, std::min(text.rfind(" ("), text.size())));
  // "app[1a2b]", "[kernel.kallsyms][ffffffff81000000]": an address in a file, if no line is known.
  if (const size_t open = text.rfind('['); text.ends_with(']') && open != 0 && open != std::string_view::npos)
    return script_number<uint64_t>(text.substr(open + 1, text.size() - open - 2), 16).has_value();
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
      if (line.starts_with('#') || (open_ && line.starts_with('|'))) continue;  // -F +srccode
      if (!timeless_.empty() && !trimmed(line).empty()) begin_timeless_sample(line);
      if (trimmed(line).empty()) {
        end_sample();
      } else if (const auto frame = open_ ? parse_frame(line) : std::nullopt) {
        if (frames_.size() < kMostScriptFrames) {
          frames_.push_back(frame_of(*frame));
        } else if (!cut_) {
          cut_ = true;
          ++deep_;
        }
      } else if (open_ && take_source_line(line, frames_.empty() ? only_frame_ : frames_.back())) {
        continue;
      } else if (const auto head = parse_head(line)) {
        end_sample();
        if (!head->event.starts_with("PERF_RECORD_")) begin_sample(*head);  // --show-mmap-events and the like
      } else if (parse_timeless_head(line)) {
        end_sample();
        timeless_ = line;
      } else {
        ++refused_;
      }
    }
    end_sample();
    const Nanoseconds elapsed = first_ ? last_ - *first_ : 0;
    const auto samples =
        fmt::format("perf script: {} sample{}", rows_.samples(), rows_.samples() == 1 ? "" : "s");
    ImportOutcome out = rows_.finish(
        elapsed, first_ ? fmt::format("{} in {:.1f} s", samples, static_cast<double>(elapsed) * 1e-9)
                        : samples + "; no times");
    if (clock_periods_.longer() > 0) out.warnings.push_back(clock_periods_.warning());
    if (numbers_.left_out()) out.warnings.push_back(EventNumbers::kLeftOut);
    if (const std::string together = hybrid_.warning(); !together.empty()) out.warnings.push_back(together);
    if (deep_ > 0)
      out.warnings.push_back(fmt::format("{} more than {} frames: the outermost were left out",
                                         deep_ == 1 ? "1 sample has" : fmt::format("{} samples have", deep_),
                                         kMostScriptFrames));
    warn(out, refused_ + lines.cut(), "line is neither a sample nor a frame and was left out",
         "lines are neither samples nor frames and were left out");
    return out;
  }

 private:
  // `next`: the following line.
  void begin_timeless_sample(std::string_view next) {
    const auto head = parse_timeless_head(timeless_);
    if (parse_frame(next) || parse_only_frame(*head)) {
      begin_sample(*head);
    } else {
      ++refused_;
    }
    timeless_.clear();
  }

  void begin_sample(const Head& head) {
    open_ = true;
    cut_ = false;
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
    if (const auto frame = parse_only_frame(head)) only_frame_ = frame_of(*frame);
    if (!clock) sample_.value = numbers_.take(head.period);
    if (clock) sample_.wall = sample_.cpu = clock_periods_.take(head.period);
    if (!head.time) return;
    sample_.start = *head.time - sample_.wall;
    if (!first_) first_ = *head.time;
    last_ = std::max(last_, *head.time);
  }

  // A process is named after its first thread, whichever thread comes first.
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
    // -F without sym and dso: it is unknown whether it is JIT code.
    if ((text.symbol == "[unknown]" || text.symbol.empty()) && text.module.empty()) {
      frame.kind = profile::FrameKind::marker;
      frame.function = frame.qualified_name = "(an address without a name)";
      return frame;
    }
    frame.kind = text.module.starts_with("[kernel") || text.module.starts_with("[guest.kernel")
                     ? profile::FrameKind::kernel
                     : profile::FrameKind::native;
    if (!text.module.empty() && text.module != "[unknown]" && text.module != "inlined")
      frame.module = rows_.module(text.module, "");
    // Addresses of one function share a frame: the text has no lines.
    if (text.symbol == "[unknown]" || text.symbol.empty()) {
      frame.address = text.address;
    } else {
      frame.function = frame.qualified_name = text.symbol;
    }
    return frame;
  }

  void end_sample() {
    if (!timeless_.empty()) begin_timeless_sample({});
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
  profile::Frame only_frame_;           // on the line of a sample's head; empty: none
  std::map<int32_t, profile::ProcessId> processes_;
  std::string timeless_;  // a line that begins a sample without a time, if frames follow
  bool open_ = false, cut_ = false;
  std::optional<Nanoseconds> first_;
  Nanoseconds last_ = 0;
  uint64_t refused_ = 0, deep_ = 0;
};

}  // namespace

bool recognise_perf_script(std::span<const std::byte> head) {
  constexpr size_t kMostPreambleLines = 100;  // perf's own messages: "Warning: ..."
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.find('\0') != std::string_view::npos) return false;
  size_t preamble = 0;
  while (!text.empty() && preamble <= kMostPreambleLines) {
    const std::string_view line = take_text_line(text);
    if (trimmed(line).empty() || line.starts_with('#')) continue;
    std::string_view rest = text;
    const std::string_view next = take_text_line(rest);
    const bool frames_follow = parse_frame(next).has_value();
    if (const auto timed = parse_head(line)) {
      if (frames_follow || parse_only_frame(*timed)) return true;
      if (preamble == 0)
        return trimmed(next).empty() || next.starts_with('#') || parse_head(next) || is_indented(next);
    } else if (const auto timeless = parse_timeless_head(line)) {
      const auto frame = parse_frame(next);
      if ((frame && !frame->module.empty()) || parse_only_frame(*timeless)) return true;
    }
    ++preamble;
  }
  return false;
}

Result<ImportOutcome> import_perf_script(Input& input, const ImportOptions&, profile::Sink& sink) {
  return ScriptImport(sink).run(input);
}

}  // namespace phlox::importers
