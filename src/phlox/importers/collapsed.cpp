#include "phlox/importers/collapsed.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <vector>

#include "phlox/importers/event_numbers.h"
#include "phlox/importers/foreign_rows.h"
#include "phlox/importers/stack_batch.h"
#include "phlox/importers/stack_root.h"
#include "phlox/importers/tachyon_frames.h"
#include "phlox/importers/text_lines.h"

namespace phlox::importers {
namespace {

__extension__ using Wide = unsigned __int128;

// Weights are shown with a precision of a millionth.
constexpr unsigned kMostDigits = 6;
// Digits of a fraction that count: a double has no more.
constexpr unsigned kMostWritten = 18;
// Bytes of text before the first stack: "Sampling process 100 times a second. Press Control-C to exit."
constexpr size_t kMostPreamble = 1000;

// perl's \s, without line ends.
constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}
// The position of the last blank, or npos.
size_t last_blank(std::string_view text) {
  size_t at = text.size();
  while (at > 0 && !is_blank(text[at - 1])) --at;
  return at - 1;
}
constexpr bool is_of_number(char c) {
  return (c >= '0' && c <= '9') || c == '.';
}

constexpr uint64_t power_of_ten(unsigned exponent) {
  uint64_t power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}

// A weight as written: 12.5 is 12 and 5 * 10^17.
struct WrittenNumber {
  uint64_t whole = 0;
  uint64_t fraction = 0;  // of 10^18
  unsigned digits = 0;    // of the fraction, without trailing zeros

  Wide parts() const { return Wide{whole} * power_of_ten(kMostWritten) + fraction; }
};

struct CollapsedLine {
  std::string_view stack;  // root first; empty: none
  WrittenNumber weight;
};

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<WrittenNumber> parse_number(std::string_view text) {
  const size_t dot = std::min(text.find('.'), text.size());
  WrittenNumber number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + dot, number.whole);
  if (error != std::errc() || end != text.data() + dot || dot == 0) return std::nullopt;
  std::string_view fraction = text.substr(std::min(dot + 1, text.size()));
  if (fraction.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  fraction = fraction.substr(0, kMostWritten);
  while (fraction.ends_with('0')) fraction.remove_suffix(1);
  number.digits = static_cast<unsigned>(fraction.size());
  for (const char digit : fraction)
    number.fraction = number.fraction * 10 + static_cast<uint64_t>(digit - '0');
  number.fraction *= power_of_ten(kMostWritten - number.digits);
  return number;
}

// The number after the last blank; the rest is the stack, and may be empty.
std::optional<CollapsedLine> parse_line(std::string_view text) {
  text = without_blanks(text);
  const size_t blank = last_blank(text);
  if (blank == std::string_view::npos) return std::nullopt;
  const auto weight = parse_number(text.substr(blank + 1));
  if (!weight) return std::nullopt;
  return CollapsedLine{without_blanks(text.substr(0, blank)), *weight};
}

// Whether a stack ends in another number.
bool ends_in_number(std::string_view stack) {
  size_t begin = stack.size();
  while (begin > 0 && is_of_number(stack[begin - 1])) --begin;
  return begin > 0 && is_blank(stack[begin - 1]) && parse_number(stack.substr(begin)).has_value();
}

// flamegraph.pl has no comments, and Ruby has frames like "#<Class:0x1>#run"; austin's "# mode: wall" is a
// comment.
bool is_comment(std::string_view text) {
  if (without_blanks(text).empty()) return true;
  if (!text.starts_with('#')) return false;
  const bool has_words = text.size() < 2 || is_blank(text[1]) || text[1] == '!';
  return (has_words && text.find(';') == std::string_view::npos) || !parse_line(text);
}

// Our own escapes (docs/formats.md): "\x3b" is ';', "\\" and "\n".
std::string unescape(std::string_view text) {
  std::string out;
  while (true) {
    const size_t plain = std::min(text.find('\\'), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return out;
    unsigned byte = 0;
    size_t taken = 2;
    if (text.starts_with("\\\\")) {
      out += '\\';
    } else if (text.starts_with("\\n")) {
      out += '\n';
    } else if (text.starts_with("\\x") && text.size() >= 4 &&
               std::from_chars(text.data() + 2, text.data() + 4, byte, 16).ptr == text.data() + 4) {
      out += static_cast<char>(byte);
      taken = 4;
    } else {
      out += '\\';
      taken = 1;
    }
    text.remove_prefix(taken);
  }
}

// Properties of all lines together, which decide how their numbers are read.
struct Weights {
  uint64_t lines = 0, with_two = 0, largest = 0;
  unsigned digits = 0;  // of the finest
  Wide sum = 0;         // of the whole numbers

  // difffolded.pl: a stack's weight before and after.
  bool are_two() const { return lines > 0 && with_two == lines; }
  // A row of the model cannot count more samples.
  bool are_samples() const { return digits == 0 && largest <= std::numeric_limits<uint32_t>::max(); }
  // Fewer if the sum would be too large.
  unsigned shown_digits() const {
    unsigned shown = std::min(digits, kMostDigits);
    while (shown > 0 && (sum + lines) * power_of_ten(shown) > EventNumbers::kMost) --shown;
    return shown;
  }
};

Weights survey(Input& input) {
  Weights weights;
  TextLines lines(input);
  std::string_view text;
  while (lines.next(text)) {
    const auto line = is_comment(text) ? std::nullopt : parse_line(text);
    if (!line) continue;
    weights.with_two += ends_in_number(line->stack);
    ++weights.lines;
    weights.largest = std::max(weights.largest, line->weight.whole);
    weights.digits = std::max(weights.digits, line->weight.digits);
    weights.sum += line->weight.whole;
  }
  return weights;
}

class CollapsedImport {
 public:
  CollapsedImport(profile::Sink& sink, const Weights& weights)
      : rows_(sink, ""), numbers_(sink), weights_(weights), digits_(weights.shown_digits()) {
    constexpr std::string_view kParts[kMostDigits + 1] = {"weight",
                                                          "tenths of weight",
                                                          "hundredths of weight",
                                                          "thousandths of weight",
                                                          "ten-thousandths of weight",
                                                          "hundred-thousandths of weight",
                                                          "millionths of weight"};
    if (!weights_.are_samples()) event_ = numbers_.of({std::string(kParts[digits_]), profile::Unit::count});
  }

  ImportOutcome run(Input& input) {
    TextLines lines(input);
    std::string_view text;
    while (lines.next(text)) {
      if (is_comment(text)) continue;
      if (const auto line = parse_line(text)) {
        add(*line);
        if (stacks_.full()) put_lines();
      } else {
        ++refused_;
      }
    }
    put_lines();
    return finish(lines.cut());
  }

 private:
  void add(const CollapsedLine& line) {
    std::string_view frames = line.stack;
    if (weights_.are_two()) frames = without_blanks(frames.substr(0, last_blank(frames)));
    const StackRoot root = take_stack_root(frames);
    lines_.push_back({thread_of(root), line.weight});
    add_stack(frames, root.thread && root.thread->tachyon);
    ++count_;
  }

  void put_lines() {
    const std::span<const profile::StackId> stacks = stacks_.finish();
    for (size_t i = 0; i < lines_.size(); ++i) {
      profile::Sample sample;
      sample.thread = lines_[i].thread;
      sample.stack = stacks[i];
      if (weights_.are_samples()) {
        rows_.sample(sample, lines_[i].weight.whole);
        continue;
      }
      sample.event = event_;
      sample.value = numbers_.take(in_shown_digits(lines_[i].weight));
      rows_.sample(sample, 1);
    }
    lines_.clear();
  }

  // The rest cut from one weight is added to the next, so that only the sum is cut.
  uint64_t in_shown_digits(const WrittenNumber& weight) {
    const uint64_t part = power_of_ten(kMostWritten - digits_);
    const Wide exact = weight.parts() + rest_;
    rest_ = static_cast<uint64_t>(exact % part);
    return static_cast<uint64_t>(std::min<Wide>(exact / part, std::numeric_limits<uint64_t>::max()));
  }

  profile::ThreadId thread_of(const StackRoot& root) {
    if (root.processes.empty() && !root.thread) {
      if (!plain_thread_) plain_thread_ = rows_.thread(rows_.process(0, ""), 0, "");
      return *plain_thread_;
    }
    std::optional<profile::ProcessId> process;
    for (const ProcessName& name : root.processes) process = rows_.process(name.pid, name.command, process);
    if (!process) process = rows_.process(0, "");
    return root.thread ? rows_.thread(*process, root.thread->tid, root.thread->name)
                       : rows_.thread(*process, 0, "");
  }

  // Adjacent lines often begin alike: the shared part is taken from the previous line.
  void add_stack(std::string_view frames, bool tachyon) {
    size_t at = keep_what_is_shared(frames, tachyon);
    stacks_.begin(levels_.size());
    while (at < frames.size()) {
      const size_t end = std::min(frames.find(';', at), frames.size());
      const std::string_view name = frames.substr(at, end - at);
      Level level = levels_.empty() ? Level() : levels_.back();
      level.end = end;
      level.nameless += name.empty();
      stacks_.push(frame_of(name, tachyon));
      levels_.push_back(level);
      at = end + 1;
    }
    before_ = frames;
    stacks_.end();
    if (!levels_.empty()) nameless_ += levels_.back().nameless;
  }

  // Keeps the frames that begin both lines; returns where the next one begins in `frames`.
  size_t keep_what_is_shared(std::string_view frames, bool tachyon) {
    if (tachyon != tachyon_before_) levels_.clear();
    tachyon_before_ = tachyon;
    const auto differs = std::mismatch(frames.begin(), frames.end(), before_.begin(), before_.end()).first;
    const auto alike = static_cast<size_t>(differs - frames.begin());
    const auto is_shared = [&](const Level& level) {
      return level.end <= alike && (level.end == frames.size() || frames[level.end] == ';');
    };
    while (!levels_.empty() && !is_shared(levels_.back())) levels_.pop_back();
    return levels_.empty() ? 0 : std::min(levels_.back().end + 1, frames.size());
  }

  // Names repeat often: the latest ones are kept, each in the slot of its hash.
  profile::FrameId frame_of(std::string_view text, bool tachyon) {
    Known& known = known_[std::hash<std::string_view>()(text) % known_.size()];
    if (known.id && known.tachyon == tachyon && known.text == text) return known.id;
    const std::string name = text.empty() ? std::string(kNoName) : unescape(text);
    const auto id = rows_.interner().frame(tachyon ? tachyon_frame_of_text(name) : frame_of_text(name));
    if (text.size() <= kLongestKnown) known = {std::string(text), id, tachyon};
    return id;
  }

  ImportOutcome finish(uint64_t cut) {
    std::string summary = weights_.are_samples()
                              ? fmt::format("collapsed: {} lines, {} samples by their numbers; no times",
                                            count_, rows_.samples())
                              : fmt::format(
                                    "collapsed: {} lines; their numbers are weights, too large or too fine "
                                    "to be samples; no times",
                                    count_);
    ImportOutcome out = rows_.finish(0, std::move(summary));
    auto& warnings = out.warnings;
    warn(out, refused_ + cut, "line is not a stack with a weight and was left out",
         "lines are not stacks with a weight and were left out");
    if (weights_.are_two())
      warnings.push_back("each line has two numbers, before and after: the second one is shown");
    if (!weights_.are_two() && weights_.with_two * 2 >= weights_.lines && weights_.with_two > 0)
      warnings.push_back(
          fmt::format("{} of {} lines end in two numbers: only the last one is a weight, the other one is a "
                      "part of a name",
                      weights_.with_two, weights_.lines));
    if (digits_ > 0)
      warnings.push_back(fmt::format("weights have fractions: they are shown times {}, as whole numbers",
                                     power_of_ten(digits_)));
    if (weights_.digits > digits_)
      warnings.push_back(fmt::format("{}: each weight is cut so that the sum stays the same",
                                     digits_ == 0
                                         ? "fractions of weights are not shown"
                                         : fmt::format("of fractions, {} digits are shown", digits_)));
    if (numbers_.left_out()) warnings.push_back(EventNumbers::kLeftOut);
    if (nameless_ > 0) warnings.push_back(warning_of_no_names(nameless_));
    return out;
  }

  // A frame of the previous line.
  struct Level {
    size_t end = 0;         // of its name, in the line
    uint64_t nameless = 0;  // including callers
  };
  struct Known {
    std::string text;
    profile::FrameId id;
    bool tachyon = false;
  };
  static constexpr size_t kKnown = 16384, kLongestKnown = 256;

  struct Line {
    profile::ThreadId thread;
    WrittenNumber weight;
  };

  ForeignRows rows_;
  StackBatch stacks_{rows_.interner()};
  std::vector<Line> lines_;  // stacks without ids so far
  EventNumbers numbers_;
  Weights weights_;
  unsigned digits_;     // of shown fractions
  uint64_t rest_ = 0;   // of the last weight, of 10^18
  std::string before_;  // the previous line's frames
  std::vector<Level> levels_;
  bool tachyon_before_ = false;
  std::vector<Known> known_{kKnown};
  std::optional<profile::ThreadId> plain_thread_;
  uint16_t event_ = 0;
  uint64_t count_ = 0, refused_ = 0, nameless_ = 0;
};

}  // namespace

bool recognise_collapsed(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.empty() || text.find('\0') != std::string_view::npos) return false;
  // The last line may be truncated; a byte order mark was removed.
  const bool whole = head.size() + kByteOrderMark.size() < Forwards::kHead;
  size_t good = 0, preamble = 0, bad = 0;
  bool stacks = false;
  while (!text.empty()) {
    const std::string_view line = take_text_line(text);
    if (text.empty() && !whole && good > 0) break;
    if (is_comment(line)) continue;
    if (const auto parsed = parse_line(line)) {
      stacks = stacks || parsed->stack.find(';') != std::string_view::npos;
      ++good;
    } else if (parse_number(without_blanks(line))) {
      continue;  // a weight without a stack: dropped and reported
    } else if (good > 0) {
      ++bad;
    } else if (++preamble > kMostPreamble) {
      return false;
    }
  }
  // Accepts log lines among stacks, but not a log in which some lines end in a number.
  return good > 0 && (preamble + bad == 0 || (stacks && bad * 4 <= good));
}

Result<ImportOutcome> import_collapsed(Input& input, const ImportOptions&, profile::Sink& sink) {
  keep_all(input);
  const Weights weights = survey(input);
  if (input.lost()) return no_room_to_read_again();
  auto outcome = CollapsedImport(sink, weights).run(input);
  if (input.lost()) return no_room_to_read_again();
  return outcome;
}

}  // namespace phlox::importers
