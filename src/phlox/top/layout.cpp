#include "phlox/top/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "phlox/base/utf8.h"
#include "phlox/report/table.h"

namespace phlox::top {
namespace {

using report::plain;

constexpr size_t kHeadLines = 4;  // title, numbers, choices, table header
constexpr size_t kFootLines = 1;

// "  9.8", "100.0"; blank for nothing, since "   . " would be too much to read.
std::string percent(double share) {
  if (share <= 0) return "";
  return share < 0.0005 ? "<0.1" : fmt::format("{:.1f}", share * 100);
}

std::string right(const std::string& text, size_t columns) {
  const size_t width = columns_of(text);
  return width >= columns ? fit(text, columns) : std::string(columns - width, ' ') + text;
}

// Its width does not change all the time.
std::string elapsed_words(Nanoseconds time) {
  if (time < 119 * kSecond) return fmt::format("{:.1f} s", static_cast<double>(time) * 1e-9);
  return time_words(time);
}

Line title_line(const Head& head, const Controls& controls, size_t columns) {
  const std::string end = fmt::format("  {}{}", elapsed_words(head.elapsed),
                                      controls.frozen       ? "  frozen"
                                      : head.status.empty() ? ""
                                                            : "  " + head.status);
  const size_t room = columns > columns_of(end) ? columns - columns_of(end) : 0;
  return {{fit("phlox top  " + plain(head.title), room), Style::title}, {end, Style::title}};
}

Line numbers_line(const Picture& p) {
  std::string text = fmt::format("CPU {:.0f} %   GIL held {:.0f} %", p.cpu * 100, p.gil_holds * 100);
  if (p.gil_waits > 0.0005) text += fmt::format(", waited for {:.0f} %", p.gil_waits * 100);
  const auto busy = static_cast<size_t>(std::count_if(p.threads_seen.begin(), p.threads_seen.end(),
                                                      [](const ThreadRow& t) { return t.cpu > 0.01; }));
  text += fmt::format("   threads {} ({} computing)", p.threads, busy);
  if (p.processes > 1) text += fmt::format("   processes {}", p.processes);
  text += "   " + p.quality;
  return {{text, Style::plain}};
}

// A narrow screen shows only what was requested.
bool has_both_times(size_t columns) {
  return columns >= 70;
}

Line choices_line(const Picture& p, const Controls& c, size_t columns) {
  const bool places = c.page == Page::functions || c.page == Page::lines;
  const std::string lately = fmt::format("last {:.0f} s", static_cast<double>(p.span) * 1e-9);
  // Above the two pairs of columns that they describe.
  std::string text =
      places && has_both_times(columns) ? right(lately, 13) + right("since start", 14) : lately;
  text += fmt::format("   {}   {}", view::show_name(c.show), report::weight_name(c.weight));
  if (places) text += fmt::format("   by {}", order_words(c.order));
  if (!c.picked.empty()) text += "   " + c.picked;
  Line line = {{text, Style::faint}};
  if (!c.filter.empty()) line.push_back({fmt::format("   /{}/", plain(c.filter)), Style::hot});
  if (p.left_out > 0.001)
    line.push_back({fmt::format("   since the start without {:.1f} %: too many stacks", p.left_out * 100),
                    Style::warning});
  return line;
}

// Divides the room for the two text columns: `first` gets what it needs, but `second` keeps up to two fifths
// of it.
std::pair<size_t, size_t> share_out(size_t room, size_t first, size_t second) {
  if (room < 2) return {room, 0};
  room -= 2;  // the gap between them
  if (first + second <= room) return {first, second};
  const size_t least = room * 2 / 5;
  const size_t for_second = std::min(second, std::max(least, room - std::min(first, room)));
  return {room - for_second, for_second};
}

struct Row {
  Line numbers;               // the front columns, equally wide in all rows
  std::string first, second;  // any bytes
};

// Screen rows with their text columns aligned.
std::vector<Line> lined_up(const Line& header, const std::string& first, const std::string& second,
                           std::vector<Row> rows, size_t columns) {
  size_t front = 0, widest_first = columns_of(first), widest_second = columns_of(second);
  for (const Span& span : header) front += columns_of(span.text);
  for (Row& row : rows) {
    row.first = plain(row.first);
    row.second = plain(row.second);
    widest_first = std::max(widest_first, columns_of(row.first));
    widest_second = std::max(widest_second, columns_of(row.second));
  }
  const auto [a, b] = share_out(columns > front ? columns - front : 0, widest_first, widest_second);
  std::vector<Line> lines;
  // clang before 16 cannot capture a structured binding by its name alone.
  const auto add = [&lines, a = a, b = b](Line line, const std::string& one, const std::string& two,
                                          Style style) {
    line.push_back({fit(one, a) + (b > 0 ? "  " + fit(two, b) : ""), style});
    lines.push_back(std::move(line));
  };
  add(header, first, second, Style::header);
  for (const Row& row : rows) add(row.numbers, row.first, row.second, Style::plain);
  return lines;
}

std::vector<Line> place_lines(const Picture& p, const Controls& c, const std::vector<size_t>& shown,
                              size_t columns) {
  const bool both = has_both_times(columns);
  const bool since = c.order == Order::self_all || c.order == Order::total_all;
  Line header;
  const auto column = [&](const std::string& text) {
    header.push_back({right(text, 6) + " ", Style::header});
  };
  if (both || !since) {
    column("SELF");
    column("TOTAL");
  }
  if (both || since) {
    column("SELF");
    column("TOTAL");
  }
  header.back().text += ' ';
  std::vector<Row> rows;
  for (const size_t i : shown) {
    const PlaceRow& row = p.places[i];
    Line numbers;
    const auto number = [&](double value, bool faint) {
      const Style style = value >= 0.2 ? Style::hot : faint ? Style::faint : Style::plain;
      numbers.push_back({right(percent(value), 6) + " ", style});
    };
    if (both || !since) {
      number(row.self, false);
      number(row.total, false);
    }
    if (both || since) {
      number(row.self_all, true);
      number(row.total_all, true);
    }
    numbers.back().text += ' ';
    rows.push_back({std::move(numbers), row.name, row.where});
  }
  return lined_up(header, c.page == Page::lines ? "LINE OF" : "FUNCTION", "WHERE", std::move(rows), columns);
}

// Running, runnable, waiting for the GIL; blank means blocked.
Line bar(const ThreadRow& row, size_t width) {
  const std::array<std::pair<double, std::pair<char, Style>>, 3> parts = {
      {{row.running, {'#', Style::running}},
       {row.runnable, {'+', Style::runnable}},
       {row.gil_waits, {'g', Style::gil}}}};
  Line line = {{"[", Style::faint}};
  double sum = 0;
  size_t drawn = 0;
  for (const auto& [part, style] : parts) {
    sum += part;
    const auto to = std::min(width, static_cast<size_t>(sum * static_cast<double>(width) + 0.5));
    if (to > drawn) line.push_back({std::string(to - drawn, style.first), style.second});
    drawn = std::max(drawn, to);
  }
  line.push_back({std::string(width - drawn, '.') + "] ", Style::faint});
  return line;
}

std::vector<Line> thread_lines(const Picture& p, const std::vector<size_t>& shown, size_t columns) {
  const size_t width = columns >= 100 ? 20 : 10;
  Line header = {{right("CPU", 6) + " ", Style::header},
                 {right("GIL", 6) + " ", Style::header},
                 {right("TID", 8) + " ", Style::header},
                 {fit("STATES", width + 2) + " ", Style::header}};
  std::vector<Row> rows;
  for (const size_t i : shown) {
    const ThreadRow& row = p.threads_seen[i];
    Line numbers = {{right(percent(row.cpu), 6) + " ", row.cpu >= 0.2 ? Style::hot : Style::plain},
                    {right(percent(row.gil_holds), 6) + " ", Style::plain},
                    {right(row.tid > 0 ? std::to_string(row.tid) : "?", 8) + " ", Style::plain}};
    for (Span& span : bar(row, width)) numbers.push_back(std::move(span));
    std::string second = row.busiest;
    if (!row.waits_for.empty())
      second += fmt::format("{}{:.0f} % {}", second.empty() ? "" : ": ", row.waits * 100, row.waits_for);
    rows.push_back({std::move(numbers), row.name, std::move(second)});
  }
  return lined_up(header, "THREAD", "BUSIEST FUNCTION, WAITS FOR", std::move(rows), columns);
}

std::vector<Line> process_lines(const Picture& p, const std::vector<size_t>& shown, size_t columns) {
  Line header;
  for (const char* text : {"CPU", "GIL", "WAITS", "THR"})
    header.push_back({right(text, 6) + " ", Style::header});
  header.push_back({right("PID", 8) + "  ", Style::header});
  std::vector<Row> rows;
  for (const size_t i : shown) {
    const ProcessRow& row = p.processes_seen[i];
    Line numbers = {{right(percent(row.cpu), 6) + " ", row.cpu >= 0.2 ? Style::hot : Style::plain},
                    {right(percent(row.gil_holds), 6) + " ", Style::plain},
                    {right(percent(row.gil_waits), 6) + " ", Style::plain},
                    {right(std::to_string(row.threads), 6) + " ", Style::plain},
                    {right(std::to_string(row.pid), 8) + "  ", Style::plain}};
    rows.push_back({std::move(numbers), row.how_ended.empty() ? row.busiest : row.how_ended, row.command});
  }
  return lined_up(header, "BUSIEST FUNCTION", "COMMAND", std::move(rows), columns);
}

std::vector<Line> loop_lines(const Picture& p, const std::vector<size_t>& shown, size_t columns) {
  Line header;
  for (const char* text : {"IDLE", "RUNS", "BLOCKS", "GIL", "CPU", "?"})
    header.push_back({right(text, 6) + " ", Style::header});
  header.back().text += ' ';
  std::vector<Row> rows;
  for (const size_t i : shown) {
    const LoopRow& row = p.loops[i];
    Line numbers;
    for (const double share : {row.idle, row.running, row.blocked, row.gil_waits, row.runnable, row.unknown})
      numbers.push_back({right(percent(share), 6) + " ", Style::plain});
    if (row.blocked >= 0.2) numbers[2].style = Style::hot;
    numbers.back().text += ' ';
    std::string second = row.stall;
    if (!row.blocked_in.empty())
      second += fmt::format("{}blocked in {}", second.empty() ? "" : "; ", row.blocked_in);
    rows.push_back({std::move(numbers), fmt::format("{} ({})", row.name, row.kind), std::move(second)});
  }
  return lined_up(header, "EVENT LOOP IN", "LONGEST STALL, BLOCKED LONGEST IN", std::move(rows), columns);
}

std::vector<Line> stack_lines(const Picture& p, const Controls& c, const std::vector<size_t>& shown,
                              size_t columns) {
  Line header = {{p.stack.empty()
                      ? "not seen lately: " + plain(c.stack_name)
                      : fmt::format("the heaviest of the last {:.0f} s, {:.1f} %, innermost first: ",
                                    static_cast<double>(p.span) * 1e-9, p.stack_share * 100),
                  Style::header}};
  header.front().text = fit(header.front().text, columns);
  std::vector<Row> rows;
  for (const size_t i : shown) rows.push_back({{{"  ", Style::plain}}, p.stack[i].name, p.stack[i].where});
  auto lines = lined_up({{"  ", Style::plain}}, "FUNCTION", "WHERE", std::move(rows), columns);
  lines.front() = std::move(header);
  return lines;
}

constexpr std::pair<const char*, const char*> kHelp[] = {
    {"1 2 3 4 5", "functions, lines, threads, processes, event loops (also: f l t p e)"},
    {"Up Down", "choose a row (also: k j, PgUp PgDn, Home End)"},
    {"Enter", "the heaviest stack through it; of a thread or process: it alone"},
    {"Esc", "back; without the filter; all threads again"},
    {"s", "sort: self, total, self and total since the start"},
    {"/", "only what matches a regular expression"},
    {"v", "show work, computing, waiting, everything"},
    {"c", "wall time or CPU time"},
    {"Space", "freeze, and go on"},
    {"w", "write what was seen to a recording"},
    {"q", "quit"},
    {"", ""},
    {"SELF TOTAL", "% of what is shown: of the last seconds, then since the start"},
    {"CPU GIL", "% of one CPU, % of the time that the GIL was held"},
    {"IDLE RUNS", "of an event loop's time: it waits for events, it runs callbacks"},
    {"BLOCKS", "of that time: a callback waits, and nothing else can run in the loop"},
    {"STATES", "# runs  + waits for a CPU  g waits for the GIL  . blocked"},
};

std::vector<Line> help_lines(size_t columns) {
  std::vector<Line> lines = {{{fit("Keys", columns), Style::header}}};
  for (const auto& [key, words] : kHelp)
    lines.push_back({{fit(fmt::format("  {:<11}", key), std::min<size_t>(13, columns)), Style::hot},
                     {words, Style::plain}});
  return lines;
}

Line foot(const Controls& c) {
  if (c.typing) return {{"only what matches: ", Style::header}, {plain(*c.typing) + "_", Style::plain}};
  if (!c.message.empty()) return {{plain(c.message), Style::warning}};
  if (c.page == Page::help || c.page == Page::stack) return {{"Esc back  q quit", Style::faint}};
  return {{"? help  1 functions 2 lines 3 threads 4 processes 5 loops  / filter  q quit", Style::faint}};
}

// Why there is no row.
std::string nothing_words(const Controls& c) {
  if (c.page == Page::loops && c.filter.empty()) return "  no event loop in the last seconds";
  if (!c.filter.empty()) return "  nothing matches";
  return c.show == view::Show::everything
             ? "  nothing in the last seconds"
             : fmt::format("  nothing of this kind ({}) in the last seconds: v shows others",
                           view::show_name(c.show));
}

// Cuts a line to the screen's width.
Line cut(Line line, size_t columns) {
  size_t used = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const size_t width = columns_of(line[i].text);
    if (used + width > columns) {
      line[i].text = fit(line[i].text, columns - used);
      line.resize(i + 1);
      break;
    }
    used += width;
  }
  return line;
}

std::vector<Line> page_lines(const Picture& picture, const Controls& controls,
                             const std::vector<size_t>& shown, size_t columns) {
  switch (controls.page) {
    case Page::functions:
    case Page::lines:
      return place_lines(picture, controls, shown, columns);
    case Page::threads:
      return thread_lines(picture, shown, columns);
    case Page::processes:
      return process_lines(picture, shown, columns);
    case Page::loops:
      return loop_lines(picture, shown, columns);
    case Page::stack:
      return stack_lines(picture, controls, shown, columns);
    case Page::help:
      return help_lines(columns);
  }
  return {};
}

}  // namespace

std::string fit(std::string_view text, size_t columns) {
  const size_t width = columns_of(text);
  if (width <= columns) return std::string(text) + std::string(columns - width, ' ');
  if (columns == 0) return {};
  const std::string_view start = first_columns(text, columns - 1);
  return std::string(start) + "…" + std::string(columns - 1 - columns_of(start), ' ');
}

size_t visible_rows(Size size) {
  return size.rows > kHeadLines + kFootLines ? size.rows - kHeadLines - kFootLines : 0;
}

std::vector<Line> layout(const Head& head, const Picture& picture, const Controls& controls, Size size) {
  std::vector<Line> lines = {title_line(head, controls, size.columns), numbers_line(picture),
                             choices_line(picture, controls, size.columns)};
  const std::vector<size_t> rows = rows_of(picture, controls);
  const size_t room = visible_rows(size);
  const size_t first = std::min(controls.first, rows.size());
  const std::vector<size_t> shown(
      rows.begin() + static_cast<std::ptrdiff_t>(first),
      rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), first + room)));
  std::vector<Line> page = page_lines(picture, controls, shown, size.columns);
  if (controls.page != Page::help && controls.cursor >= first && controls.cursor - first + 1 < page.size()) {
    for (Span& span : page[controls.cursor - first + 1]) span.style = Style::chosen;
  }
  if (shown.empty() && controls.page != Page::help && controls.page != Page::stack)
    page.push_back({{nothing_words(controls), Style::faint}});
  for (Line& line : page) lines.push_back(std::move(line));
  if (size.rows > kFootLines) {
    lines.resize(std::max(size.rows - kFootLines, size_t{1}));
    lines.push_back(foot(controls));
  }
  lines.resize(std::min(lines.size(), size.rows));
  for (Line& line : lines) line = cut(std::move(line), size.columns);
  return lines;
}

std::string as_text(const Head& head, const Picture& picture, const Controls& controls, Size size) {
  std::vector<Line> lines = layout(head, picture, controls, size);
  lines.pop_back();
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  std::string text;
  for (const Line& line : lines) {
    std::string one;
    for (const Span& span : line) one += span.text;
    one.erase(one.find_last_not_of(' ') + 1);
    text += one + "\n";
  }
  return text;
}

}  // namespace phlox::top
