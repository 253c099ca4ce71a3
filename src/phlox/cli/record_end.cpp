#include "phlox/cli/record_end.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "phlox/cli/exit_status.h"
#include "phlox/cli/record_words.h"
#include "phlox/view/quality.h"

namespace phlox::cli {
namespace {

using MessageKind = Message::Kind;

void add_all(std::vector<Message>& messages, MessageKind kind, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) messages.push_back({kind, text});
}

void add_some(std::vector<Message>& messages, MessageKind kind, const std::string& text) {
  if (!text.empty()) messages.push_back({kind, text});
}

void add_target_end(const RecordEnd& end, std::vector<Message>& messages) {
  if (end.outcome.why != sampler::Ended::target_ended) return;
  // For a process that is not our child, the kernel reports only that it is gone.
  const std::string& how = end.outcome.how_target_ended;
  const bool known = how != "ended" && !how.empty();
  messages.push_back({MessageKind::note, fmt::format("process {} ended{}; the recording is complete", end.pid,
                                                     known ? ": " + how : "")});
}

void add_quality(const RecordEnd& end, std::vector<Message>& messages) {
  const sampler::Progress& progress = end.outcome.progress;
  const auto quality = quality_of(progress);
  const size_t processes = end.outcome.processes;
  messages.push_back(
      {MessageKind::note, fmt::format("{:.1f} s{}: {}", static_cast<double>(progress.elapsed) * 1e-9,
                                      processes > 1 ? fmt::format(" of {} processes", processes) : "",
                                      view::quality_line(quality))});
  add_some(messages, MessageKind::warning, view::quality_warning(quality));
  if (const auto cost = view::cost_warning(quality); !cost.empty()) {
    messages.push_back({MessageKind::warning,
                        cost + (progress.rests > 0 ? "; sampling was limited to half of its time" : "")});
  }
}

// Advice on how to get more native names.
void add_missing(const RecordEnd& end, std::vector<Message>& messages) {
  constexpr size_t kMost = 5;
  size_t shown = 0, more = 0;
  std::set<std::string> said;  // workers share their modules
  for (const naming::NativeRows::Missing& row : end.missing) {
    std::string words = describe(row);
    if (!said.insert(words).second) continue;
    const bool is_worth_it = !row.names.complete, is_shown = is_worth_it && shown < kMost;
    shown += is_shown;
    more += is_worth_it && !is_shown;
    messages.push_back({is_shown ? MessageKind::note : MessageKind::detail, std::move(words)});
  }
  if (more > 0) {
    messages.push_back(
        {MessageKind::note, fmt::format("and {} more module{} without names or lines (--verbose lists them)",
                                        more, more == 1 ? "" : "s")});
  }
}

Error nothing_seen(const RecordEnd& end) {
  const std::string& why = end.outcome.why_no_python;
  if (end.pid == 0) {
    return {ErrorKind::system, "the recording is empty: " + (why.empty() ? end.none_runs : why),
            "which Pythons are running: phlox list"};
  }
  const bool ended = end.outcome.why == sampler::Ended::target_ended;
  const std::string_view otherwise =
      ended ? "it ended before the first sample" : "the recording ended before the first sample";
  return {ErrorKind::system,
          fmt::format("no sample was taken of process {}, so the recording is empty: {}", end.pid,
                      why.empty() ? otherwise : why),
          ended        ? "let it do more work, or record it several times with --append"
          : end.native ? "a longer recording may see it: -d 60"
                       : fmt::format("what it does outside of Python: phlox record --native -p {}", end.pid)};
}

void add_what_was_written(const RecordEnd& end, const std::optional<Error>& error,
                          std::vector<Message>& messages) {
  const std::string& path = end.where;
  if (error) {
    messages.push_back({MessageKind::error, error->message, error->hint});
    if (!end.is_empty() && !path.empty()) {
      messages.push_back({MessageKind::note, fmt::format("what was recorded is in {}", path)});
    } else if (end.stays) {
      messages.push_back({MessageKind::note, fmt::format("{} is as it was", end.recording)});
    }
  } else if (!end.written.empty()) {
    messages.push_back({MessageKind::note, fmt::format("wrote {}", end.written)});
    messages.push_back(
        {MessageKind::note,
         end.exports ? fmt::format("other views of it: phlox report {}; phlox export {} --help", path, path)
                     : fmt::format("more: phlox report {}; in the browser: phlox view {}", path, path)});
  }
}

}  // namespace

std::vector<Message> last_messages(const RecordEnd& end) {
  std::vector<Message> messages;
  add_all(messages, MessageKind::warning, end.outcome.warnings);
  add_some(messages, MessageKind::warning, end.refused);
  add_all(messages, MessageKind::warning, end.remarks);
  add_all(messages, MessageKind::note, end.notes);
  add_all(messages, MessageKind::detail, end.outcome.details);
  add_target_end(end, messages);
  add_quality(end, messages);
  add_missing(end, messages);
  std::optional<Error> error = end.error;
  if (end.is_empty()) {
    error = nothing_seen(end);
  } else if (!end.outcome.why_no_python.empty()) {
    messages.push_back(
        {MessageKind::warning, fmt::format("no Python was seen: {}", end.outcome.why_no_python)});
  } else if (end.why_view_is_empty && !error) {
    messages.push_back({MessageKind::warning, *end.why_view_is_empty});
  }
  if (!error) add_some(messages, MessageKind::lines, end.summary);
  add_what_was_written(end, error, messages);
  return messages;
}

int exit_status(const RecordEnd& end, const std::optional<process::ExitStatus>& program) {
  if (end.is_empty()) return kNothingSeen;
  if (end.error) return exit_status(end.error->kind);
  return program ? program->shell_status() : kSuccess;
}

}  // namespace phlox::cli
