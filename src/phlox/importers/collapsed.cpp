#include "phlox/importers/collapsed.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "phlox/importers/foreign_rows.h"
#include "phlox/importers/tachyon_frames.h"
#include "phlox/importers/text_lines.h"
#include "phlox/importers/thread_name.h"

namespace phlox::importers {
namespace {

struct Line {
  std::string_view stack;
  uint64_t count = 0;
};

std::optional<Line> parse_line(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  const size_t space = text.rfind(' ');
  if (space == std::string_view::npos || space == 0) return std::nullopt;
  Line line;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + space + 1, end, line.count);
  if (error != std::errc()) return std::nullopt;
  // stackcollapse-perf.pl and others write fractions.
  if (at != end &&
      (*at != '.' || std::string_view(at + 1, end).find_first_not_of("0123456789") != std::string_view::npos))
    return std::nullopt;
  line.stack = text.substr(0, space);
  return line;
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

}  // namespace

bool recognise_collapsed(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.empty() || text.find('\0') != std::string_view::npos) return false;
  // The last line may be cut.
  const bool whole = head.size() < Forwards::kHead;
  size_t good = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos && !whole && good > 0) break;
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    if (!parse_line(line)) return false;
    ++good;
  }
  return good > 0;
}

Result<ImportOutcome> import_collapsed(Input& input, const ImportOptions&, profile::Sink& sink) {
  ForeignRows rows(sink, "");
  const profile::ProcessId process = rows.process(0, "");
  TextLines lines(input);
  std::string_view text;
  uint64_t stacks = 0, refused = 0;
  while (lines.next(text)) {
    if (text.empty() || text.starts_with('#')) continue;
    const auto line = parse_line(text);
    if (!line) {
      ++refused;
      continue;
    }
    std::string_view rest = line->stack;
    profile::Sample sample;
    std::optional<ThreadName> thread;
    for (bool first = true; !rest.empty(); first = false) {
      const size_t end = rest.find(';');
      const std::string name = unescape(rest.substr(0, end));
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
      if (first && (thread = thread_name(name))) {
        sample.thread = rows.thread(process, thread->tid, thread->name);
        continue;
      }
      const bool tachyon = thread && thread->tachyon;
      const auto frame = rows.interner().frame(tachyon ? tachyon_frame_of_text(name) : frame_of_text(name));
      sample.stack = rows.interner().stack(sample.stack, frame);
    }
    if (!thread) sample.thread = rows.thread(process, 0, "");
    rows.sample(sample, line->count);
    ++stacks;
  }
  ImportOutcome out =
      rows.finish(0, fmt::format("collapsed: {} lines, {} samples by their numbers; they tell of no time",
                                 stacks, rows.samples()));
  if (refused + lines.cut() > 0)
    out.warnings.push_back(fmt::format("{} lines are no stacks and were left out", refused + lines.cut()));
  return out;
}

}  // namespace phlox::importers
