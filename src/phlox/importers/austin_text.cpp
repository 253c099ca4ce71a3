#include "phlox/importers/austin_text.h"

#include <charconv>
#include <optional>
#include <string>

#include "phlox/importers/austin_rows.h"
#include "phlox/importers/text_lines.h"

namespace phlox::importers {
namespace {

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

// Up to the next ';', which is taken too.
std::string_view take_part(std::string_view& text) {
  const size_t end = text.find(';');
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

// "12": time or, of a recording of memory, bytes. "12,1,4096": time, whether it was idle, bytes.
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
    const size_t space = text.rfind(' ');
    if (space == std::string_view::npos) return false;
    AustinSample sample;
    if (!take_metrics(text.substr(space + 1), rows_.mode() == "memory", sample)) return false;
    text = text.substr(0, space);
    if (!take(text, "P")) return false;
    const auto pid = take_number<int32_t>(text);
    if (!pid || *pid < 0 || !take(text, ";T")) return false;
    sample.pid = *pid;
    sample.thread = take_part(text);
    while (!text.empty()) take_frame(text, sample);
    rows_.put(sample);
    return true;
  }

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

  AustinRows rows_;
};

}  // namespace

bool recognise_austin_text(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with("# austin: ")) return true;
  return take(text, "P") && take_number<int32_t>(text) && take(text, ";T");
}

Result<ImportOutcome> import_austin_text(Input& input, const ImportOptions&, profile::Sink& sink) {
  AustinText austin(sink);
  TextLines lines(input);
  uint64_t refused = 0;
  bool last_refused = false;
  std::string_view text;
  while (lines.next(text)) {
    if (text.empty()) continue;
    last_refused = false;
    if (text.starts_with("# ")) {
      const size_t colon = text.find(": ");
      if (colon != std::string_view::npos)
        austin.rows().metadata(text.substr(2, colon - 2), text.substr(colon + 2));
    } else if (!austin.take_line(text)) {
      ++refused;
      last_refused = true;
    }
  }
  return austin.rows().finish("text", refused + lines.cut(), last_refused);
}

}  // namespace phlox::importers
