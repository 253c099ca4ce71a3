#include "phlox/report/signal_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <tuple>

#include "phlox/base/text.h"
#include "phlox/view/sample_filter.h"
#include "phlox/view/stack_places.h"

namespace phlox::report {
namespace {

using SignalOutcome = view::Signal::Outcome;
using SignalSender = view::Signal::Sender;

// If a process ends within this time after a signal, the signal ended it.
constexpr Nanoseconds kAtOnce = kSecond;
// The most threads of one process that are listed.
constexpr size_t kMostThreads = 100;

SignalThread thread_of(const profile::Profile& profile, const std::vector<view::StackPlace>& places,
                       const view::SignalPlace& from) {
  SignalThread row;
  if (!from.thread) return row;
  row.thread = view::thread_label(profile.thread(from.thread));
  const profile::FrameId frame = from.stack ? places[from.stack.value].frame : profile::FrameId();
  if (!frame || profile.frame(frame).kind == profile::FrameKind::marker) return row;
  const auto label = view::line_label(profile, frame);
  std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
  return row;
}

// The script or the module of "/usr/bin/python3 /usr/bin/gunicorn app:application"; else the whole.
std::string program_of(const std::string& command) {
  constexpr size_t kWidest = 60;
  std::string_view rest = command;
  const auto next = [&rest] {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    return word;
  };
  if (base_name(next()).starts_with("python")) {
    std::string_view script = next();
    if (script == "-m") script = next();
    if (!script.empty() && !script.starts_with('-')) return std::string(base_name(script));
  }
  return fitted_name(plain(command), kWidest);
}

std::string sender_words(const SignalRow& row) {
  const view::Signal& signal = row.signal;
  if (signal.no_memory) return "the kernel (out of memory)";
  if (signal.sent_by == SignalSender::kernel) return "the kernel";
  if (signal.sent_by == SignalSender::own_fault) return "itself (a fault)";
  return signal.sender.empty() ? "an unknown process" : plain(signal.sender);
}

std::string thread_words(const SignalThread& row) {
  if (row.name.empty()) return plain(row.thread);
  return fmt::format("{} in {}", plain(row.thread), place_words(row.name, row.file, row.line));
}

std::string outcome_words(const view::Signal& signal) {
  const bool at_once = signal.ended_after >= 0 && signal.ended_after <= kAtOnce;
  if (signal.outcome == SignalOutcome::ended) return "the process ended";
  if (signal.outcome == SignalOutcome::handled)
    return at_once ? fmt::format("handled; the process ended {} later", time_words(signal.ended_after))
                   : "handled by the program";
  return at_once ? fmt::format("the process ended {} later", time_words(signal.ended_after)) : "-";
}

}  // namespace

std::vector<SignalRow> signal_rows(const profile::Profile& profile, size_t limit) {
  std::vector<view::Signal> all = view::signals(profile);
  if (all.empty()) return {};
  if (all.size() > limit) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(limit));
  const auto places = view::stack_places(profile);
  const Nanoseconds begin = view::recording_start(profile);
  std::vector<SignalRow> rows;
  for (view::Signal& signal : all) {
    SignalRow row;
    const profile::Process& process = profile.process(signal.process);
    row.pid = process.pid;
    row.process = process.command();
    row.name = view::signal_name(signal.number);
    row.after = signal.time - begin;
    row.from = thread_of(profile, places, signal.from);
    row.threads_seen = signal.threads.size();
    for (const view::SignalPlace& place : signal.threads) {
      if (row.threads.size() == kMostThreads) break;
      row.threads.push_back(thread_of(profile, places, place));
    }
    row.signal = std::move(signal);
    rows.push_back(std::move(row));
  }
  return rows;
}

bool is_unexpected_end(const SignalRow& row) {
  const view::Signal& signal = row.signal;
  const bool asks_to_end = signal.number == SIGTERM || signal.number == SIGINT || signal.number == SIGHUP;
  if (asks_to_end) return false;
  return signal.outcome == SignalOutcome::ended || (signal.ended_after >= 0 && signal.ended_after <= kAtOnce);
}

std::string signal_sentence(const SignalRow& row) {
  const view::Signal& signal = row.signal;
  const std::string process = fmt::format("process {} ({})", row.pid, plain(program_of(row.process)));
  std::string text = signal.outcome == SignalOutcome::ended ? fmt::format("{} ended {}", row.name, process)
                     : signal.outcome == SignalOutcome::handled
                         ? fmt::format("{} handled {}", process, row.name)
                         : fmt::format("{} was sent {}", process, row.name);
  text += fmt::format(" {} into the recording", time_words(row.after));
  if (signal.outcome != SignalOutcome::ended)
    text += fmt::format(", and ended {} later", time_words(signal.ended_after));
  text += signal.sent_by == SignalSender::own_fault ? ": one of its own instructions faulted"
                                                    : fmt::format(": {} sent it", sender_words(row));
  if (!row.from.name.empty())
    text += fmt::format(" in {}", place_words(row.from.name, row.from.file, row.from.line));
  if (!row.threads.empty() && !row.threads.front().name.empty()) {
    const SignalThread& at = row.threads.front();
    text += fmt::format(", while {} was in {}", plain(at.thread), place_words(at.name, at.file, at.line));
  }
  return text;
}

Table signal_table(const Report& report) {
  constexpr size_t kMost = 20;
  Table table;
  table.title = "Signals that end a program by default";
  table.columns = {{"at", true},
                   {"process", true},
                   {"signal"},
                   {"sent by"},
                   {"sender in"},
                   {"outcome"},
                   {"threads", false, Fit::whole}};
  const size_t first = report.signals.size() > kMost ? report.signals.size() - kMost : 0;
  for (size_t i = first; i < report.signals.size(); ++i) {
    const SignalRow& row = report.signals[i];
    const size_t more = row.threads_seen > 1 ? row.threads_seen - 1 : 0;
    std::string threads = row.threads.empty() ? "" : thread_words(row.threads.front());
    if (more > 0) threads += fmt::format(" and {} more", more);
    table.rows.push_back(
        {time_words(row.after), std::to_string(row.pid), row.name, sender_words(row),
         row.from.name.empty() ? "" : place_words(row.from.name, row.from.file, row.from.line),
         outcome_words(row.signal), threads});
  }
  table.left_out = first;
  return table;
}

void write_signals(JsonText& json, const std::vector<SignalRow>& rows) {
  const auto write_thread = [&](const SignalThread& row) {
    json.text("thread", row.thread);
    json.text("name", row.name);
    json.text("file", row.file);
    json.integer("line", row.line);
  };
  json.objects("signals", rows, [&](const SignalRow& row) {
    const view::Signal& signal = row.signal;
    json.integer("after_ns", row.after);
    json.integer("pid", row.pid);
    json.integer("signal", signal.number);
    json.text("name", row.name);
    json.text("sent_by", signal.no_memory                            ? "kernel, out of memory"
                         : signal.sent_by == SignalSender::kernel    ? "kernel"
                         : signal.sent_by == SignalSender::own_fault ? "own fault"
                                                                     : "process");
    json.text("sender", signal.sender);
    json.object("sender_at", [&] { write_thread(row.from); });
    json.text("outcome", signal.outcome == SignalOutcome::ended     ? "ended"
                         : signal.outcome == SignalOutcome::handled ? "handled"
                                                                    : "unknown");
    json.integer("ended_after_ns", signal.ended_after);
    json.count("threads_seen", row.threads_seen);
    json.objects("threads", row.threads, write_thread);
  });
}

}  // namespace phlox::report
