// A report as plain text, Markdown, annotated source.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "phlox/report/report.h"
#include "phlox/report/stall_table.h"
#include "phlox/report/table.h"
#include "phlox/report/waits.h"

namespace phlox::report {
namespace {

std::string end_of_interval(double share) {
  const double percent = share * 100;
  return percent >= 99.95 ? "100" : fmt::format("{:.{}f}", percent, percent >= 9.995 ? 1 : 2);
}

// "4.10 to 63.2 %": the 99 % interval, which never leaves what a share can be.
std::string interval_words(const Estimate& estimate) {
  return fmt::format("{} to {} %", end_of_interval(estimate.low), end_of_interval(estimate.high));
}

// "1,234 cache-misses", "1.23 MB of inuse_space".
bool is_counted(profile::Weight weight) {
  return weight == profile::Weight::samples || weight == profile::Weight::count;
}

std::string heading(const Report& report) {
  std::string text = fmt::format("{}: {} in {} {}", plain(report.title),
                                 weight_words(report.total, report.weight) +
                                     (is_counted(report.weight) ? " " : " of ") + plain(report.weight_title),
                                 report.threads_seen, report.threads_seen == 1 ? "thread" : "threads");
  if (report.weight != profile::Weight::samples)
    text += fmt::format(", {} samples", count_words(report.samples));
  return report.elapsed > 0 ? text + " over " + time_words(report.elapsed) : text;
}

// Which functions the totals need not list.
std::string common_note(const Report& report) {
  constexpr size_t kNamed = 4;
  if (report.common.empty()) return {};
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, report.common.size()); ++i)
    names += (i == 0 ? "" : ", ") + fitted_name(plain(report.common[i].name), kWidestName);
  if (report.common.size() > kNamed) names += fmt::format(" and {} more", report.common.size() - kNamed);
  return "Not listed, since all stacks that begin there go through them: " + names;
}

// "dgemm_kernel (libopenblas) 96 %"; without native frames "libopenblas 96 % of CPU"; empty: nothing is known
// of native code there.
std::string native_words(const NativeBeneath& native) {
  if (native.is_library())
    return fitted_name(plain(native.module), kWidestName - 20) + " " + share_words(native.share) + " of CPU";
  if (native.name.empty()) return {};
  const std::string share = share_words(native.share);
  const std::string library = native.module.empty() ? "" : " (" + plain(native.module) + ")";
  constexpr size_t kLeast = 20;
  const size_t beside = library.size() + share.size() + 1;
  const size_t room = kWidestName > beside + kLeast ? kWidestName - beside : kLeast;
  return fitted_name(plain(native.name), room) + library + " " + share;
}

// Beside rows some of which have native code beneath.
template <class Row>
void add_native_column(Table& table, const std::vector<Row>& rows) {
  const auto any = std::find_if(rows.begin(), rows.end(), [](const Row& row) {
    return !row.native.name.empty() || row.native.is_library();
  });
  if (any == rows.end()) return;
  table.columns.push_back(
      {any->native.is_library() ? "in C code of (--native shows it)" : "most native time in", false,
       Fit::name});
  for (size_t i = 0; i < rows.size(); ++i) table.rows[i].push_back(native_words(rows[i].native));
}

// Parts of the table of Python functions.
Table native_table(const Report& report) {
  Table table;
  table.title = "Native functions beneath Python (parts of the functions above)";
  table.columns = {{"share", true},
                   {"99 %", true},
                   {"weight", true},
                   {"module", false, Fit::name},
                   {"function", false, Fit::name},
                   {"where", false, Fit::place}};
  for (const FunctionRow& row : report.native_functions) {
    table.rows.push_back({share_words(row.self.share), interval_words(row.self),
                          weight_words(row.self.weight, report.weight), plain(row.module), plain(row.name),
                          location_words(row.file, row.line)});
  }
  return table;
}

Table function_table(const Report& report, bool self) {
  const auto& rows = self ? report.functions : report.totals;
  Table table;
  table.title =
      !self                                       ? "Functions with everything they call"
      : profile::is_of_event(report.weight)       ? "Hot functions (what was counted in the function itself)"
      : report.weight == profile::Weight::samples ? "Hot functions (samples in the function itself)"
                                                  : "Hot functions (the time in the function itself)";
  table.columns = {{"share", true},
                   {"99 %", true},
                   {"weight", true},
                   {self ? "total" : "self", true},
                   {"function", false, Fit::name},
                   {"where", false, Fit::place}};
  for (const FunctionRow& row : rows) {
    const Estimate& first = self ? row.self : row.total;
    const Estimate& second = self ? row.total : row.self;
    table.rows.push_back({share_words(first.share), interval_words(first),
                          weight_words(first.weight, report.weight), share_words(second.share),
                          plain(row.name), location_words(row.file, row.line)});
  }
  if (self) add_native_column(table, rows);
  if (!self) table.note = common_note(report);
  const size_t listed = rows.size() + (self ? 0 : report.common.size());
  table.left_out = report.functions_seen - std::min(report.functions_seen, listed);
  // Most functions on the stack never run a line of their own when it was looked.
  if (self) table.left_out = 0;
  return table;
}

Table line_table(const Report& report) {
  Table table;
  table.title = "Hot lines";
  table.columns = {{"share", true},
                   {"99 %", true},
                   {"weight", true},
                   {"where", false, Fit::place},
                   {"function", false, Fit::name}};
  for (const LineRow& row : report.lines) {
    table.rows.push_back({share_words(row.self.share), interval_words(row.self),
                          weight_words(row.self.weight, report.weight), location_words(row.file, row.line),
                          plain(row.name)});
  }
  add_native_column(table, report.lines);
  table.left_out = report.lines_seen - std::min(report.lines_seen, report.lines.size());
  return table;
}

std::string of_wall(Nanoseconds time, Nanoseconds wall) {
  return time == 0 ? "-" : share_words(wall > 0 ? double(time) / double(wall) : 0);
}

Table recording_table(const Report& report) {
  Table table;
  table.title = "Recordings that this report is made over";
  table.columns = {{"over", true},    {"wall", true},      {"CPU", true},
                   {"samples", true}, {"processes", true}, {"file"}};
  for (const RecordingRow& row : report.recordings) {
    table.rows.push_back({time_words(row.elapsed), time_words(row.wall), time_words(row.cpu),
                          count_words(row.samples), count_words(row.processes), plain(row.name)});
  }
  return table;
}

Table process_table(const Report& report) {
  Table table;
  table.title = "Processes, the busiest first";
  table.columns = {{"pid", true},
                   {"started by", true},
                   {"recorded", true},
                   {"CPU", true},
                   {"threads", true},
                   {"ended"},
                   {"busiest function", false, Fit::name},
                   {"command"}};
  for (const ProcessRow& row : report.processes) {
    table.rows.push_back({fmt::format("{}", row.pid), row.parent == 0 ? "-" : fmt::format("{}", row.parent),
                          time_words(row.recorded), time_words(row.cpu), count_words(row.threads),
                          plain(row.how_ended), plain(row.busiest), plain(row.command_line)});
  }
  table.left_out = report.processes_seen - report.processes.size();
  return table;
}

Table descendant_table(const Report& report) {
  constexpr size_t kMost = 10;
  Table table;
  table.title = "Processes that recorded ones started and that are not recorded";
  table.columns = {{"pid", true}, {"started by", true}, {"CPU", true}, {"command"}};
  for (const profile::Descendant& row : report.not_looked_into) {
    if (table.rows.size() == kMost) break;
    table.rows.push_back({row.pid == 0 ? "-" : fmt::format("{}", row.pid), fmt::format("{}", row.parent),
                          time_words(row.cpu), plain(row.command_line)});
  }
  table.left_out = report.not_looked_into.size() - table.rows.size();
  return table;
}

Table program_table(const Report& report) {
  Table table;
  table.title = "Programs, the busiest first (processes of one command line added up)";
  table.columns = {{"processes", true},
                   {"recorded", true},
                   {"CPU", true},
                   {"threads", true},
                   {"busiest function", false, Fit::name},
                   {"command"}};
  for (const ProgramRow& row : report.programs) {
    table.rows.push_back({count_words(row.processes), time_words(row.recorded), time_words(row.cpu),
                          count_words(row.threads), plain(row.busiest), plain(row.name)});
  }
  table.left_out = report.programs_seen - report.programs.size();
  return table;
}

bool tells_no_time(const Report& report) {
  return std::all_of(report.threads.begin(), report.threads.end(),
                     [](const ThreadRow& row) { return row.wall == 0 && row.cpu == 0; });
}

// Where nobody told who ran and who was blocked, nobody knows who waited.
bool tells_states(const Report& report) {
  return report.threads.empty() ||
         std::any_of(report.threads.begin(), report.threads.end(), [](const ThreadRow& row) {
           return row.states.running + row.states.runnable + row.states.blocked + row.states.gil_waits > 0;
         });
}

// Of what was only counted.
Table counted_thread_table(const Report& report) {
  Table table;
  table.title = "Threads, the busiest first";
  table.columns = {{"thread"}, {"weight", true}, {"busiest function", false, Fit::name}};
  for (const ThreadRow& row : report.threads)
    table.rows.push_back({plain(row.name), weight_words(row.weight, report.weight), plain(row.busiest)});
  table.left_out = report.threads_seen - report.threads.size();
  return table;
}

Table thread_table(const Report& report) {
  if (tells_no_time(report)) return counted_thread_table(report);
  // Of another tool, which measured none.
  const bool no_cpu = std::all_of(report.threads.begin(), report.threads.end(),
                                  [](const ThreadRow& row) { return row.cpu == 0; });
  Table table;
  table.title = "Threads, the busiest first (parts of each thread's wall time)";
  table.columns = {{"thread"},
                   {"wall", true},
                   {"CPU", true},
                   {"running", true},
                   {"runnable", true},
                   {"blocked", true},
                   {"idle", true},
                   {"not known", true},
                   {"holds GIL", true},
                   {"waits for GIL", true},
                   {"collecting", true},
                   {"rejected", true},
                   {"busiest function", false, Fit::name}};
  for (const ThreadRow& row : report.threads) {
    const StateTimes& s = row.states;
    table.rows.push_back({plain(row.name), time_words(row.wall), no_cpu ? "-" : time_words(row.cpu),
                          of_wall(s.running, row.wall), of_wall(s.runnable, row.wall),
                          of_wall(s.blocked, row.wall), of_wall(s.for_work, row.wall),
                          of_wall(s.not_known, row.wall), of_wall(s.gil_holds, row.wall),
                          of_wall(s.gil_waits, row.wall), of_wall(s.collecting, row.wall),
                          of_wall(s.rejected, row.wall), row.busiest.empty() ? "-" : plain(row.busiest)});
  }
  table.left_out = report.threads_seen - report.threads.size();
  return table;
}

// Two of them in a row: of the path the last part.
std::string place_words(const std::string& name, const std::string& file, int32_t line) {
  if (file.empty()) return plain(name);
  return fmt::format("{} ({})", plain(name), location_words(base_name(file), line));
}

Table loop_table(const Report& report) {
  constexpr size_t kMost = 10;
  Table table;
  table.title = "Event loops (parts of each loop's time)";
  table.columns = {{"thread"},
                   {"loop"},
                   {"time", true},
                   {"idle", true},
                   {"running", true},
                   {"blocked", true},
                   {"waits for GIL", true},
                   {"waits for CPU", true},
                   {"not known", true},
                   {"blocked longest in"}};
  for (const LoopRow& row : report.loops) {
    if (table.rows.size() == kMost) break;
    const profile::LoopTime& loop = row.time;
    table.rows.push_back({plain(row.thread), std::string(loop.kind), time_words(loop.wall),
                          of_wall(loop.idle, loop.wall), of_wall(loop.running, loop.wall),
                          of_wall(loop.blocked, loop.wall), of_wall(loop.gil, loop.wall),
                          of_wall(loop.cpu, loop.wall), of_wall(loop.unknown, loop.wall),
                          row.name.empty() ? "" : place_words(row.name, row.file, row.line)});
  }
  table.left_out = report.loops.size() - table.rows.size();
  return table;
}

Table wait_table(const Report& report) {
  Table table;
  table.title = "Where threads wait (parts of the wall time of all threads)";
  table.columns = {{"share", true},
                   {"wall", true},
                   {"threads", true},
                   {"idle", true},
                   {"not known", true},
                   {"for", false, Fit::name},
                   {"function", false, Fit::name},
                   {"where", false, Fit::place}};
  for (const WaitRow& row : report.waits) {
    table.rows.push_back({share_words(row.share), time_words(row.wall), count_words(row.threads),
                          of_wall(row.for_work, row.wall), of_wall(row.not_known, row.wall),
                          plain(profile::wait_words(row.waits, row.what, row.awaited)), plain(row.name),
                          location_words(row.file, row.line)});
  }
  add_native_column(table, report.waits);
  const bool any = std::any_of(report.waits.begin(), report.waits.end(),
                               [](const WaitRow& row) { return !row.called_from.empty(); });
  if (!any) return table;
  table.columns.push_back({"called from", false, Fit::name});
  for (size_t i = 0; i < report.waits.size(); ++i) {
    const WaitRow& row = report.waits[i];
    table.rows[i].push_back(row.called_from.empty()
                                ? ""
                                : place_words(row.called_from, row.called_from_file, row.called_from_line));
  }
  return table;
}

std::string and_more(const std::string& thread, uint32_t threads) {
  return plain(thread) + (threads > 1 ? fmt::format(" and {} more", threads - 1) : "");
}

// What is held for less than this part of a wait is not worth a row.
constexpr double kWorthARow = 0.05;

void add_gil_holders(Table& table, std::vector<std::string> waiter, const GilWaitRow& row, size_t most) {
  const auto add = [&](double share, std::string by, std::string in) {
    waiter.insert(waiter.end(), {share_words(share), std::move(by), std::move(in)});
    table.rows.push_back(std::move(waiter));
    waiter.assign(4, "");
  };
  const auto part = [&](Nanoseconds time) { return row.wall > 0 ? double(time) / double(row.wall) : 0; };
  double rest = 1 - part(row.unseen);
  for (size_t i = 0; i < std::min(most, row.holders.size()); ++i) {
    const GilHolderRow& holder = row.holders[i];
    if (holder.share < kWorthARow) break;
    rest -= holder.share;
    add(holder.share, and_more(holder.thread, holder.threads),
        place_words(holder.name, holder.file, holder.line));
  }
  if (rest >= kWorthARow) add(rest, "others", "");
  if (part(row.free) >= kWorthARow) add(part(row.free), "nobody: it was free, and no CPU was", "");
  const double unseen = part(row.unseen - row.free);
  if (unseen >= kWorthARow || !waiter.front().empty()) add(unseen, "nobody that was seen", "");
}

Table gil_table(const Report& report) {
  Table table;
  table.title = "Who waits for the GIL, and who held it meanwhile";
  table.note =
      report.waits_exact
          ? "Waits are exact, the scheduler's own account; who held it is as each thread left its "
            "CPU, or the "
            "clock found it."
          : "As threads were found from time to time: nothing is known of a wait between two samples.";
  table.columns = {{"thread"},     {"waits", true}, {"of its time", true},   {"longest in", false, Fit::name},
                   {"held", true}, {"by"},          {"in", false, Fit::name}};
  constexpr size_t kMostHolders = 3;
  const size_t waiters = std::max<size_t>(report.gil_waits.size(), 1);
  // Of many waiters the first holder each.
  const size_t most = std::clamp<size_t>(15 / waiters, 1, kMostHolders);
  for (const GilWaitRow& row : report.gil_waits) {
    add_gil_holders(table,
                    {plain(row.thread), time_words(row.wall), share_words(row.share),
                     place_words(row.name, row.file, row.line)},
                    row, most);
  }
  table.left_out = report.gil_waits_seen - report.gil_waits.size();
  return table;
}

Table ended_waits_table(const Report& report) {
  Table table;
  table.title = "What ended waits: a lock was released, a queue or a pipe was written to, a timeout was over";
  table.note = "As far as it is proved. Of waits that are not here it is not known, or they went on.";
  table.columns = {
      {"wall", true},           {"waits", true}, {"threads", true},       {"for", false, Fit::name},
      {"in", false, Fit::name}, {"ended by"},    {"in", false, Fit::name}};
  for (const EndedWaitRow& row : report.ended_waits) {
    table.rows.push_back({time_words(row.wall), count_words(row.count), count_words(row.threads),
                          plain(profile::wait_words(row.waits, row.what, row.awaited)),
                          place_words(row.name, row.file, row.line), and_more(row.by, row.by_threads),
                          place_words(row.by_name, row.by_file, row.by_line)});
  }
  table.left_out = report.ended_waits_seen - report.ended_waits.size();
  return table;
}

Table missing_names_table(const Report& report) {
  constexpr size_t kMost = 10;
  Table table;
  table.title = "Native frames without names";
  table.columns = {{"module", false, Fit::place}, {"lacks"}, {"what would bring it"}};
  for (const profile::Module& module : report.missing_names) {
    if (table.rows.size() == kMost) break;
    table.rows.push_back({plain(module.path), module.missing->functions ? "functions" : "lines",
                          plain(module.missing->advice)});
  }
  table.left_out = report.missing_names.size() - table.rows.size();
  return table;
}

std::vector<Table> tables(const Report& report) {
  std::vector<Table> all = {function_table(report, true)};
  if (!report.native_functions.empty()) all.push_back(native_table(report));
  all.push_back(function_table(report, false));
  all.push_back(line_table(report));
  if (!report.recordings.empty()) all.insert(all.begin(), recording_table(report));
  if (!report.programs.empty()) {
    all.push_back(program_table(report));
  } else if (report.processes_seen > 1) {
    all.push_back(process_table(report));
  }
  if (!report.not_looked_into.empty()) all.push_back(descendant_table(report));
  all.push_back(thread_table(report));
  if (!report.loops.empty()) all.push_back(loop_table(report));
  if (const Table stalls = stall_table(report); !stalls.rows.empty()) all.push_back(stalls);
  if (tells_states(report)) all.push_back(wait_table(report));
  if (!report.gil_waits.empty()) all.push_back(gil_table(report));
  if (!report.ended_waits.empty()) all.push_back(ended_waits_table(report));
  if (!report.missing_names.empty()) all.push_back(missing_names_table(report));
  return all;
}

// What the shares above leave out; empty: nothing.
std::string left_out_note(const Report& report) {
  const std::string words = profile::left_out_words(report.left_out);
  return words.empty() ? words : "Left out: " + words + " (--show everything has it)";
}

// What they take in though it may be no work.
std::string unknown_note(const Report& report) {
  const std::string words = profile::unknown_words(report.left_out);
  return words.empty() ? words : "Waiting, idle or at work not known: " + words;
}

// Those that the warning above them does not say already.
std::vector<std::string> other_findings(const Report& report) {
  std::vector<std::string> texts;
  for (const Finding& finding : report.findings) {
    if (finding.text != report.warning) texts.push_back(finding.text);
  }
  return texts;
}

constexpr std::string_view kIntervals =
    "Beside each share: its 99 % interval. It says what sampling leaves open about this recording, not how "
    "much another run would differ.";

constexpr std::string_view kNothing = "No sample of the recording passes these choices.";

constexpr int32_t kLinesAround = 2;  // of a line that was seen

std::string share_cell(int64_t weight, int64_t whole) {
  return weight == 0 ? std::string(8, ' ')
                     : fmt::format("{:>8}", share_words(whole > 0 ? double(weight) / double(whole) : 0));
}

std::string annotated(const FileLines& file, const std::string& source, int64_t whole) {
  std::vector<std::string_view> lines;
  for (std::string_view rest = source; !rest.empty();) {
    const size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  std::string out;
  int32_t shown = 0;  // the last line that was written
  const auto last = static_cast<int32_t>(std::min<size_t>(lines.size(), 10'000'000));
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const int32_t seen = file.lines[i].first;
    if (seen < 1 || seen > last) {
      out += fmt::format("  line {} was seen ({}), but the file has {} lines: it is not the one that ran\n",
                         seen, share_words(whole > 0 ? double(file.lines[i].second.self) / double(whole) : 0),
                         last);
      continue;
    }
    const int32_t from = std::max(shown + 1, seen > kLinesAround ? seen - kLinesAround : 1);
    const int32_t to = std::min(last, seen + kLinesAround);
    if (from > shown + 1) out += "       ...\n";
    for (int32_t line = from; line <= to; ++line) {
      LineWeight weight;
      for (size_t k = i; k < file.lines.size() && file.lines[k].first <= line; ++k) {
        if (file.lines[k].first == line) weight = file.lines[k].second;
      }
      std::string text = plain(lines[static_cast<size_t>(line) - 1]);
      // A tab of the source is a step of the text, not a \x09.
      for (size_t at; (at = text.find("\\x09")) != std::string::npos &&
                      lines[static_cast<size_t>(line) - 1].find('\t') != std::string_view::npos;)
        text.replace(at, 4, "    ");
      std::string row = fmt::format("{} {} {:>6}  {}", share_cell(weight.self, whole),
                                    share_cell(weight.total, whole), line, text);
      row.erase(row.find_last_not_of(' ') + 1);
      out += row + "\n";
    }
    shown = std::max(shown, to);
  }
  if (shown < last) out += "       ...\n";
  return out;
}

}  // namespace

std::string report_text(const Report& report) {
  std::string out = heading(report) + "\n";
  if (!report.containers.empty()) out += plain(report.containers) + "\n";
  if (!report.warning.empty()) out += "warning: " + report.warning + "\n";
  if (!report.unfinished.empty()) out += report.unfinished + "\n";
  if (!report.not_recorded.empty()) out += plain(report.not_recorded) + "\n";
  if (const std::string note = left_out_note(report); !note.empty()) out += plain(note) + "\n";
  if (const std::string note = unknown_note(report); !note.empty()) out += plain(note) + "\n";
  if (const auto findings = other_findings(report); !findings.empty()) {
    out += "\nFindings\n";
    for (size_t i = 0; i < findings.size(); ++i) out += fmt::format("  {}. {}\n", i + 1, findings[i]);
  }
  if (report.samples == 0) return out + fmt::format("\n{}\n{}\n", kNothing, plain(report.quality));
  for (const Table& table : tables(report)) out += "\n" + table_text(table);
  out += fmt::format("\n{}\n{}\n", kIntervals, plain(report.quality));
  return out;
}

std::string report_summary(const Report& report) {
  constexpr size_t kLines = 3;
  std::string out = heading(report) + "\n";
  if (const std::string note = left_out_note(report); !note.empty()) out += "  " + plain(note) + "\n";
  if (const std::string note = unknown_note(report); !note.empty()) out += "  " + plain(note) + "\n";
  for (size_t i = 0; i < std::min(kLines, report.findings.size()); ++i)
    out += "  " + report.findings[i].text + "\n";
  for (size_t i = 0; i < std::min(kLines, report.functions.size()); ++i) {
    const FunctionRow& row = report.functions[i];
    out += fmt::format("  {:>7} ({})  {}  {}\n", share_words(row.self.share), interval_words(row.self),
                       fitted_name(plain(row.name), kWidestName),
                       fitted_place(location_words(row.file, row.line), kWidestPlace));
  }
  return out;
}

std::string report_markdown(const Report& report) {
  std::string out = "# " + markdown_escaped(heading(report)) + "\n";
  if (!report.containers.empty()) out += "\n" + markdown_escaped(plain(report.containers)) + "\n";
  if (!report.warning.empty()) out += "\n**Warning:** " + markdown_escaped(report.warning) + "\n";
  if (!report.unfinished.empty()) out += "\n" + markdown_escaped(report.unfinished) + "\n";
  if (!report.not_recorded.empty()) out += "\n" + markdown_escaped(plain(report.not_recorded)) + "\n";
  if (const std::string note = left_out_note(report); !note.empty())
    out += "\n" + markdown_escaped(plain(note)) + "\n";
  if (const std::string note = unknown_note(report); !note.empty())
    out += "\n" + markdown_escaped(plain(note)) + "\n";
  if (const auto findings = other_findings(report); !findings.empty()) {
    out += "\n## Findings\n\n";
    for (size_t i = 0; i < findings.size(); ++i)
      out += fmt::format("{}. {}\n", i + 1, markdown_escaped(findings[i]));
  }
  if (report.samples == 0)
    return out + fmt::format("\n{}\n\n{}\n", kNothing, markdown_escaped(plain(report.quality)));
  for (const Table& table : tables(report)) out += "\n" + table_markdown(table);
  out += fmt::format("\n{}\n\n{}\n", kIntervals, markdown_escaped(plain(report.quality)));
  return out;
}

std::string report_source(const Report& report, const SourceOf& source) {
  std::string out = heading(report) + "\n";
  size_t files = 0;
  for (const FileLines& file : report.files) {
    if (files == kSourceFiles) break;
    if (file.self == 0) continue;
    ++files;
    out += fmt::format("\n{}: {}\n", plain(file.file),
                       share_words(report.total > 0 ? double(file.self) / double(report.total) : 0));
    const auto text = source(file.file);
    if (!text) {
      out += "  (its source cannot be read)\n";
      continue;
    }
    out += "    self    total   line\n" + annotated(file, *text, report.total);
  }
  if (files == 0) out += "\n(no line was seen)\n";
  return out;
}

}  // namespace phlox::report
