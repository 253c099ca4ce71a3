// A report as plain text, Markdown, annotated source.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "phlox/report/await_rows.h"
#include "phlox/report/endpoint_parts.h"
#include "phlox/report/endpoint_rows.h"
#include "phlox/report/estimate.h"
#include "phlox/report/native_column.h"
#include "phlox/report/report.h"
#include "phlox/report/request_rows.h"
#include "phlox/report/signal_rows.h"
#include "phlox/report/table.h"
#include "phlox/report/trace_rows.h"
#include "phlox/report/wait_tables.h"
#include "phlox/report/waits.h"

namespace phlox::report {
namespace {

std::string end_of_interval(double share) {
  const double percent = share * 100;
  return percent >= 99.95 ? "100" : fmt::format("{:.{}f}", percent, percent >= 9.995 ? 1 : 2);
}

// "1,234 cache-misses", "1.23 MB of inuse_space".
bool is_counted(view::Weight weight) {
  return weight == view::Weight::samples || weight == view::Weight::count;
}

std::string heading(const Report& report) {
  std::string text = fmt::format("{}: {} in {} {}", plain(report.title),
                                 weight_words(report.total, report.weight) +
                                     (is_counted(report.weight) ? " " : " of ") + plain(report.weight_title),
                                 report.threads_seen, report.threads_seen == 1 ? "thread" : "threads");
  if (report.weight != view::Weight::samples)
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
  table.title = !self                              ? "Functions with everything they call"
                : view::is_of_event(report.weight) ? "Hot functions (what was counted in the function itself)"
                : report.weight == view::Weight::samples ? "Hot functions (samples in the function itself)"
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
  table.left_out = report.totals_seen - std::min(report.totals_seen, rows.size());
  // Most functions on a stack are never sampled as the innermost one.
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
  for (const profile::Descendant& row : report.not_examined) {
    if (table.rows.size() == kMost) break;
    table.rows.push_back({row.pid == 0 ? "-" : fmt::format("{}", row.pid), fmt::format("{}", row.parent),
                          time_words(row.cpu), plain(row.command_line)});
  }
  table.left_out = report.not_examined.size() - table.rows.size();
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

// If states were not recorded, it is unknown which threads waited.
bool tells_states(const Report& report) {
  return report.threads.empty() ||
         std::any_of(report.threads.begin(), report.threads.end(), [](const ThreadRow& row) {
           return row.states.running + row.states.runnable + row.states.blocked + row.states.gil_waits > 0;
         });
}

// For recordings that only have counts.
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
  // Recorded by a tool that measures none.
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
                          part_words(s.running, row.wall), part_words(s.runnable, row.wall),
                          part_words(s.blocked, row.wall), part_words(s.for_work, row.wall),
                          part_words(s.not_known, row.wall), part_words(s.gil_holds, row.wall),
                          part_words(s.gil_waits, row.wall), part_words(s.collecting, row.wall),
                          part_words(s.rejected, row.wall), row.busiest.empty() ? "-" : plain(row.busiest)});
  }
  table.left_out = report.threads_seen - report.threads.size();
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
  if (report.traces.count > 0) all.push_back(trace_table(report));
  if (report.by_endpoint) {
    if (Table requests = request_table(report); !requests.rows.empty())
      all.insert(all.begin(), std::move(requests));
    if (Table parts = endpoint_part_table(report); !parts.rows.empty())
      all.insert(all.begin(), std::move(parts));
    all.insert(all.begin(), endpoint_table(report));
  }
  if (!report.recordings.empty()) all.insert(all.begin(), recording_table(report));
  if (!report.programs.empty()) {
    all.push_back(program_table(report));
  } else if (report.processes_seen > 1) {
    all.push_back(process_table(report));
  }
  if (!report.not_examined.empty()) all.push_back(descendant_table(report));
  if (!report.signals.empty()) all.push_back(signal_table(report));
  all.push_back(thread_table(report));
  if (!report.loops.empty()) all.push_back(loop_table(report));
  if (const Table stalls = stall_table(report); !stalls.rows.empty()) all.push_back(stalls);
  for (Table& awaits : await_tables(report)) all.push_back(std::move(awaits));
  if (tells_states(report)) all.push_back(wait_table(report));
  if (!report.gil_waits.empty()) all.push_back(gil_table(report));
  if (!report.ended_waits.empty()) all.push_back(ended_waits_table(report));
  if (!report.missing_names.empty()) all.push_back(missing_names_table(report));
  return all;
}

// What the shares above exclude; empty: nothing.
std::string left_out_note(const Report& report) {
  const std::string words = view::left_out_words(report.left_out);
  return words.empty() ? words : "Left out: " + words + " (--show everything has it)";
}

// What they include although it may not be work.
std::string unknown_note(const Report& report) {
  const std::string words = view::unknown_words(report.left_out);
  return words.empty() ? words : "Waiting, idle or at work not known: " + words;
}

// Findings that the warning above does not contain already.
std::vector<std::string> other_findings(const Report& report) {
  std::vector<std::string> texts;
  for (const Finding& finding : report.findings) {
    if (finding.text != report.warning) texts.push_back(finding.text);
  }
  return texts;
}

constexpr std::string_view kIntervals =
    "Next to each share is its 99 % interval: the sampling error of this recording, not how much another run "
    "would differ.";

constexpr std::string_view kNothing = "No sample of the recording passes these choices.";

constexpr int32_t kLinesAround = 2;  // around a line with samples

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
  int32_t shown = 0;  // the last line written
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
      // A tab in the source becomes blanks, not \x09.
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

std::string interval_words(const Estimate& estimate) {
  return fmt::format("{} to {} %", end_of_interval(estimate.low), end_of_interval(estimate.high));
}

std::string report_text(const Report& report) {
  std::string out = heading(report) + "\n";
  if (!report.services.empty()) out += plain(report.services) + "\n";
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
  if (!report.services.empty()) out += "\n" + markdown_escaped(plain(report.services)) + "\n";
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
