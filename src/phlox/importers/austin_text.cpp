#include "phlox/importers/austin_text.h"

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "phlox/importers/austin_rows.h"
#include "phlox/importers/text_lines.h"

namespace phlox::importers {
namespace {

constexpr size_t kMostNumbers = 3;
constexpr size_t kLowestPthread = 8;

template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// Removes the number after the last blank or tab, with the blanks around it.
std::string_view take_last_word(std::string_view& text) {
  constexpr std::string_view kBetween = " \t";
  const size_t end = text.find_last_not_of(kBetween);
  text = text.substr(0, end == std::string_view::npos ? 0 : end + 1);
  const size_t blank = text.find_last_of(kBetween);
  if (blank == std::string_view::npos) return {};
  const std::string_view word = text.substr(blank + 1);
  text = text.substr(0, text.find_last_not_of(kBetween, blank) + 1);
  return word;
}

// Up to the next ';', which is removed too.
std::string_view take_part(std::string_view& text) {
  const size_t end = text.find(';');
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

// "12": time, or bytes in a recording of memory. "12,1,4096": time, whether it was idle, bytes.
bool take_metrics(std::string_view text, bool memory, AustinSample& sample) {
  const auto first = take_number<int64_t>(text);
  if (!first) return false;
  if (!memory) sample.microseconds = *first;
  if (text.empty()) return true;
  if (!take(text, ",")) return false;
  const auto idle = take_number<int>(text);
  if (!idle || *idle < 0 || *idle > 1 || !take(text, ",") || !take_number<int64_t>(text)) return false;
  sample.microseconds = *first;
  sample.idle = *idle == 1;
  return text.empty();
}

class AustinText {
 public:
  explicit AustinText(profile::Sink& sink) : rows_(sink, false) {}

  bool take_line(std::string_view text) {
    AustinSample sample;
    if (!take_metrics(take_last_word(text), rows_.mode() == "memory", sample)) return false;
    if (!take(text, "P")) return false;
    const auto pid = take_number<int32_t>(text);
    if (!pid || *pid < 0 || !take(text, ";T")) return false;
    sample.pid = *pid;
    sample.thread = take_part(text);
    while (!text.empty()) take_frame(text, sample);
    rows_.put(sample);
    return true;
  }

  // austin 1: "Process 12;Thread 55d2a2e1be40;work (app.py);L7 1200", without the process unless children
  // were recorded. One number is time or memory (the text does not say which); three are time and memory.
  bool take_old_line(std::string_view text) {
    AustinSample sample;
    std::vector<int64_t> numbers;
    while (numbers.size() < kMostNumbers) {
      std::string_view before = text;
      std::string_view digits = take_last_word(before);
      const auto number = take_number<int64_t>(digits);
      if (!number || !digits.empty()) break;
      numbers.push_back(*number);
      text = before;
    }
    if (numbers.empty() || numbers.size() == 2) return false;
    one_number_ = one_number_ || numbers.size() == 1;
    sample.microseconds = numbers.back();
    if (take(text, "Process ")) {
      const auto pid = take_number<int32_t>(text);
      if (!pid || *pid < 0 || !take(text, ";")) return false;
      sample.pid = *pid;
    }
    if (!take(text, "Thread ")) return false;
    sample.thread = take_part(text);
    while (!text.empty()) take_old_frame(text, sample);
    rows_.put(sample);
    return true;
  }

  // Whether a line of austin 1 had only one number.
  bool one_number() const { return one_number_; }
  AustinRows& rows() { return rows_; }

 private:
  void push(AustinSample& sample, profile::FrameId frame) {
    sample.stack = rows_.interner().stack(sample.stack, frame);
  }

  // "file:function:12", or "file:function;L12" with --alt-format.
  void take_frame(std::string_view& text, AustinSample& sample) {
    std::string_view part = take_part(text);
    if (part == ":GC:") {
      sample.collecting = true;
      return;
    }
    if (part == ":INVALID:") {
      sample.invalid = true;
      return push(sample, rows_.invalid_frame());
    }
    const size_t last = part.rfind(':');
    std::string_view digits = last == std::string_view::npos ? std::string_view() : part.substr(last + 1);
    const bool has_line = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
    if (has_line) part = part.substr(0, last);
    if (!has_line && text.starts_with('L')) {
      std::string_view rest = text;
      std::string_view line = take_part(rest).substr(1);
      if (!line.empty() && line.find_first_not_of("0123456789") == std::string_view::npos) {
        digits = line;
        text = rest;
      }
    }
    const auto line = take_number<int32_t>(digits);
    const size_t colon = part.rfind(':');
    const std::string_view file = colon == std::string_view::npos ? "" : part.substr(0, colon);
    const std::string_view function = colon == std::string_view::npos ? part : part.substr(colon + 1);
    push(sample, rows_.frame(file, function, line.value_or(0)).id);
  }

  // "name (file);L12", or "name (file:12)" with --alt-format.
  void take_old_frame(std::string_view& text, AustinSample& sample) {
    std::string_view part = take_part(text);
    std::string_view file;
    int32_t line = 0;
    if (const size_t open = part.rfind(" ("); part.ends_with(')') && open != std::string_view::npos) {
      file = part.substr(open + 2, part.size() - open - 3);
      part = part.substr(0, open);
    }
    std::string_view rest = text;
    std::string_view digits = take_part(rest);
    if (take(digits, "L")) {
      if (const auto number = take_number<int32_t>(digits); number && digits.empty()) {
        line = *number;
        text = rest;
      }
    }
    const size_t colon = file.rfind(':');
    if (line == 0 && colon != std::string_view::npos) {
      digits = file.substr(colon + 1);
      if (const auto number = take_number<int32_t>(digits); number && digits.empty()) {
        line = *number;
        file = file.substr(0, colon);
      }
    }
    push(sample, rows_.frame(file, part, line).id);
  }

  AustinRows rows_;
  bool one_number_ = false;
};

// "main (app.py);L7"
bool has_line_of_austin(std::string_view text) {
  for (size_t at = text.find(");L"); at != std::string_view::npos; at = text.find(");L", at + 1)) {
    if (at + 3 < text.size() && text[at + 3] >= '0' && text[at + 3] <= '9') return true;
  }
  return false;
}

// The thread id is a pthread_t: hexadecimal, and always longer than a kernel id. Without such an id, the
// lines of frames decide.
bool begins_as_austin_1(std::string_view text) {
  if (take(text, "Process ") && (!take_number<int32_t>(text) || !take(text, ";"))) return false;
  if (!take(text, "Thread ")) return false;
  const size_t end = text.find_first_of("; ");
  const std::string_view id = text.substr(0, end);
  if (end == std::string_view::npos || id.empty() ||
      id.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return false;
  return has_line_of_austin(text) ||
         (id.size() >= kLowestPthread && id.find_first_of("abcdef") != std::string_view::npos);
}

bool begins_as_austin(std::string_view text) {
  if (text.starts_with("# austin: ")) return true;
  return take(text, "P") && take_number<int32_t>(text) && take(text, ";T");
}

}  // namespace

bool recognise_austin_text(std::span<const std::byte> head) {
  constexpr size_t kMostPreambleLines = 100;  // of a log, or of the program's output
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.find('\0') != std::string_view::npos) return false;
  for (size_t i = 0; i < kMostPreambleLines && !text.empty(); ++i) {
    const std::string_view line = take_text_line(text);
    if (begins_as_austin(line) || begins_as_austin_1(line)) return true;
  }
  return false;
}

Result<ImportOutcome> import_austin_text(Input& input, const ImportOptions&, profile::Sink& sink) {
  AustinText austin(sink);
  TextLines lines(input);
  uint64_t refused = 0;
  bool last_refused = false, old = false, known = false;
  std::string_view text;
  while (lines.next(text)) {
    if (text.empty()) continue;
    if (!known && begins_as_austin_1(text)) {
      old = known = true;
      austin.rows().is_of_version_1();
    }
    known = known || begins_as_austin(text);
    last_refused = false;
    if (text.starts_with("# ")) {
      const size_t colon = text.find(": ");
      if (colon != std::string_view::npos)
        austin.rows().metadata(text.substr(2, colon - 2), text.substr(colon + 2));
    } else if (!(old ? austin.take_old_line(text) : austin.take_line(text))) {
      ++refused;
      last_refused = true;
    }
  }
  ImportOutcome out = austin.rows().finish("text", refused + lines.cut(), last_refused);
  if (austin.one_number())
    out.warnings.push_back(
        "austin 1 does not say whether it recorded time or memory: its numbers are taken for microseconds");
  return out;
}

}  // namespace phlox::importers
