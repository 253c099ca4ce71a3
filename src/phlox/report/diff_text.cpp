// A diff as plain text, Markdown and JSON (docs/json/diff.schema.json; a change that readers would misread
// raises kDiffVersion).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "phlox/report/diff.h"
#include "phlox/report/json_rows.h"
#include "phlox/report/table.h"
#include "phlox/view/await_time.h"
#include "phlox/view/shown_event.h"

namespace phlox::report {
namespace {

constexpr int64_t kDiffVersion = 2;

// An amount in the compared unit: "4.70 s", "388 ms/s", "1,234".
std::string amount_words(double value, const Diff& diff) {
  const double scaled =
      diff.per == Per::second && view::is_time(diff.weight) ? value * double(kSecond) : value;
  const std::string words = weight_words(std::llround(std::clamp(scaled, -9e18, 9e18)), diff.weight);
  return diff.per == Per::second ? words + "/s" : words;
}

std::string change_words(double value, const Diff& diff) {
  return (value > 0 ? "+" : "") + amount_words(value, diff);
}

std::string interval_words(const Change& change, const Diff& diff) {
  if (!std::isfinite(change.low) || !std::isfinite(change.high)) return "not known";
  return fmt::format("{} to {}", change_words(change.low, diff), change_words(change.high, diff));
}

std::string side_words(const Amount& amount, const Estimate& estimate, const Diff& diff) {
  return fmt::format("{} ({})", amount_words(amount.value, diff), share_words(estimate.share));
}

using Part = Change DiffRow::*;

Table table_of(const Diff& diff, const std::vector<DiffRow>& rows, Part part, std::string title) {
  const bool runs = diff.question == Question::runs;
  Table table;
  table.title = std::move(title);
  table.columns = {{"change", true}, {"99 %", true}, {"before", true}, {"after", true}};
  if (runs) table.columns.push_back({"chance", true});
  table.columns.push_back({""});
  table.columns.push_back({"function", false, Fit::name});
  table.columns.push_back({"where", false, Fit::place});
  std::vector<const DiffRow*> shown;
  for (const DiffRow& row : rows) {
    // If nothing can be judged, the largest differences are shown as they are.
    if (is_certain((row.*part).verdict) || (!diff.decides && (row.*part).difference != 0))
      shown.push_back(&row);
  }
  std::stable_sort(shown.begin(), shown.end(), [&](const DiffRow* a, const DiffRow* b) {
    return std::abs((a->*part).difference) > std::abs((b->*part).difference);
  });
  for (const DiffRow* row : shown) {
    if (table.rows.size() == diff.limit) break;
    const Change& change = row->*part;
    table.rows.push_back({change_words(change.difference, diff), interval_words(change, diff),
                          side_words(change.before_amount, change.before, diff),
                          side_words(change.after_amount, change.after, diff)});
    auto& cells = table.rows.back();
    if (runs) cells.push_back(diff.decides ? fmt::format("{:.2g}", change.chance) : "-");
    cells.emplace_back(verdict_name(change.verdict, diff.question));
    cells.push_back(plain(row->name));
    cells.push_back(location_words(row->file, row->line));
  }
  table.left_out = shown.size() - table.rows.size();
  return table;
}

// The innermost lines are those of libraries.
std::vector<Table> await_tables(const Diff& diff) {
  const std::string_view by = diff.decides ? "whose await time differs" : "by await time (no verdict)";
  return {table_of(diff, diff.functions, &DiffRow::self, fmt::format("Innermost functions {}", by)),
          table_of(diff, diff.functions, &DiffRow::total,
                   fmt::format("Functions {}, with all that they await", by)),
          table_of(diff, diff.lines, &DiffRow::total, fmt::format("Lines {}, with all that they await", by))};
}

std::vector<Table> tables(const Diff& diff) {
  if (diff.of_tasks) return await_tables(diff);
  const std::string_view weight = view::is_time(diff.weight) ? "time" : "weight";
  const std::string_view by = diff.decides ? "whose" : "by";
  const std::string_view end = diff.decides ? "differs" : "(no verdict)";
  return {
      table_of(diff, diff.functions, &DiffRow::self, fmt::format("Functions {} own {} {}", by, weight, end)),
      table_of(diff, diff.functions, &DiffRow::total,
               fmt::format("Functions {} {} with everything they call {}", by, weight, end)),
      table_of(diff, diff.lines, &DiffRow::self, fmt::format("Lines {} {} {}", by, weight, end))};
}

// "12.1 s became 4.1 s (-8.0 s, -66 %)".
std::string became(double before, double after) {
  auto time = [](double ns) { return time_words(std::llround(ns)); };
  std::string words = fmt::format("{} became {}", time(before), time(after));
  if (before == after) return time(before) + " both times";
  words += fmt::format(" ({}{}", after > before ? "+" : "", time(after - before));
  if (before > 0) words += fmt::format(", {:+.0f} %", (after / before - 1) * 100);
  return words + ")";
}

// The whole comes first: users of the program notice that.
std::string whole_line(const Diff& diff) {
  const std::string_view mean = diff.question == Question::runs ? ", on average" : "";
  std::string line;
  if (diff.per == Per::run) {
    if (diff.before.elapsed > 0 || diff.after.elapsed > 0)
      line = became(double(diff.before.elapsed), double(diff.after.elapsed));
  } else {
    line = fmt::format("Recordings of {} and {}", time_words(diff.before.elapsed),
                       time_words(diff.after.elapsed));
  }
  auto verdict = [&](const Change& change) {
    return diff.question == Question::runs && diff.decides
               ? fmt::format(": {}", verdict_name(change.verdict, diff.question))
               : std::string();
  };
  if (diff.per == Per::run && !line.empty()) line += fmt::format("{}{}", mean, verdict(diff.elapsed));
  if (diff.before.cpu > 0 || diff.after.cpu > 0) {
    if (diff.per == Per::run) {
      line += fmt::format("{}CPU time {}{}{}", line.empty() ? "" : "; ",
                          became(double(diff.before.cpu), double(diff.after.cpu)), mean, verdict(diff.cpu));
    } else {
      auto cpus = [](const Change& change, bool after) {
        const double value = (after ? change.after_amount : change.before_amount).value;
        return time_words(std::llround(value * double(kSecond)));
      };
      line += fmt::format("; CPU time {} of each second became {}{}{}", cpus(diff.cpu, false),
                          cpus(diff.cpu, true), mean, verdict(diff.cpu));
    }
  }
  return line;
}

std::string side_line(const Diff& diff, std::string_view name, const DiffSide& side) {
  const std::string seen = diff.of_tasks ? fmt::format("{} censuses", count_words(side.censuses))
                                         : fmt::format("{} samples", count_words(side.samples));
  return fmt::format("{} {}: {}{} of {}{}, {}", name, plain(side.title),
                     side.runs > 1 ? fmt::format("{} runs, each ", side.runs) : std::string(),
                     weight_words(side.total, diff.weight), plain(diff.weight_title),
                     side.elapsed > 0 ? " over " + time_words(side.elapsed) : "", seen);
}

std::string functions_words(size_t count) {
  return fmt::format("{} function{}", count_words(count), count == 1 ? "" : "s");
}

std::string runs_command() {
  const size_t needed = runs_needed();
  std::string words = "phlox diff";
  for (const char* side : {"a", "b"}) {
    if (*side == 'b') words += " --";
    for (size_t i = 1; i <= needed; ++i) words += fmt::format(" {}{}", side, i);
  }
  return words;
}

// The first question. Only what is within bounds is called equal, and the bounds are given.
std::vector<std::string> recordings_lines(const Diff& diff) {
  std::string line;
  if (diff.differ > 0) {
    line = fmt::format("These two recordings differ in {} of {}.", count_words(diff.differ),
                       functions_words(diff.functions.size()));
  } else if (diff.unclear == 0) {
    line = fmt::format("These two recordings are the same in {}: none differs by more than {}.",
                       functions_words(diff.functions.size()), amount_words(diff.farthest, diff));
  } else {
    line = fmt::format("Inconclusive: no function is seen to differ between these two recordings.");
  }
  if (diff.unclear > 0)
    line += fmt::format(" For {}, there are too few {} to see a difference below {}.",
                        functions_words(diff.unclear), diff.of_tasks ? "censuses" : "samples",
                        amount_words(diff.seen, diff));
  else if (diff.differ > 0)
    line += fmt::format(" None of the others differs by more than {}.", amount_words(diff.farthest, diff));
  return {line,
          "One recording of each cannot show whether other runs differ too. Several can: " + runs_command()};
}

// The second question.
std::vector<std::string> runs_lines(const Diff& diff) {
  std::vector<std::string> lines;
  if (!diff.decides) {
    lines.push_back(fmt::format(
        "No verdict on whether other runs differ too: with {} and {} runs, chance alone makes such a "
        "difference too often. Record at least {} of each.",
        diff.before.runs, diff.after.runs, runs_needed()));
  } else {
    lines.push_back(fmt::format(
        "A test over all runs: {} of {} changed, {} are inconclusive, and none of the others changed by as "
        "much as {:g} % or {}.",
        count_words(diff.differ), functions_words(diff.functions.size()), count_words(diff.unclear),
        diff.margin.own * 100, amount_words(diff.margin.least, diff)));
  }
  if (!diff.in_turn)
    lines.emplace_back(
        "All runs of one side were recorded before those of the other: a machine that became slower "
        "meanwhile makes the same difference. Record them in turn: a b a b …");
  return lines;
}

std::vector<std::string> heading(const Diff& diff) {
  std::vector<std::string> lines;
  if (std::string whole = whole_line(diff); !whole.empty()) lines.push_back(std::move(whole));
  lines.push_back(side_line(diff, "before", diff.before));
  lines.push_back(side_line(diff, "after ", diff.after));
  for (const auto& [name, side] : {std::pair("before", &diff.before), std::pair("after", &diff.after)}) {
    if (!side->warning.empty()) lines.push_back(fmt::format("warning ({}): {}", name, side->warning));
    if (side->left_out.wall() > 0)
      lines.push_back(fmt::format("left out ({}{}): {}", name,
                                  side->runs > 1 ? fmt::format(", the first of {} runs", side->runs) : "",
                                  plain(view::left_out_words(side->left_out))));
  }
  if (diff.before.left_out_wall > 0 || diff.after.left_out_wall > 0)
    lines.emplace_back("--show everything compares that too");
  const double waits = std::abs(double(diff.after.cpu_wait - diff.before.cpu_wait));
  if (diff.weight == view::Weight::wall && !diff.of_tasks &&
      waits > 0.05 * double(std::min(diff.before.elapsed, diff.after.elapsed)))
    lines.push_back(
        fmt::format("Threads that could run waited for a CPU: {} before, {} after. Wall time includes that; "
                    "--weight cpu leaves it out.",
                    time_words(diff.before.cpu_wait), time_words(diff.after.cpu_wait)));
  for (std::string& line : diff.question == Question::runs ? runs_lines(diff) : recordings_lines(diff))
    lines.push_back(std::move(line));
  return lines;
}

std::string note(const Diff& diff) {
  std::string words =
      diff.per == Per::run
          ? fmt::format("Compared: {} of each recording (shares beside it).", diff.weight_title)
          : fmt::format(
                "Compared: {} in a second of recording (shares beside it), "
                "because {}. --per run compares sums.",
                diff.weight_title,
                diff.before.whole_run && diff.after.whole_run
                    ? "you asked for --per second"
                    : "not both recordings cover a whole run (phlox record -- PROGRAM)");
  if (diff.question == Question::recordings) {
    words += fmt::format(
        " The tables list what differs by more than sampling alone causes in one of a hundred comparisons, "
        "by "
        "more than {:g} % of its own time, and by more than {}.",
        diff.margin.own * 100, amount_words(diff.margin.least, diff));
  } else if (diff.decides) {
    words += fmt::format(
        " Averages of the runs. chance: how often the same runs, dealt to the two sides at random, differ as "
        "much in any function; changed: {:g} % at most.",
        kFalseAlarms * 100);
  } else {
    words += " Averages of the runs.";
  }
  return words;
}

void write_change(JsonText& json, std::string_view name, const Diff& diff, const Change& change) {
  json.object(name, [&] {
    write_estimate(json, "before", change.before);
    write_estimate(json, "after", change.after);
    json.number("before_amount", change.before_amount.value);
    json.number("after_amount", change.after_amount.value);
    json.number("difference", change.difference);
    json.number("low", change.low);
    json.number("high", change.high);
    if (diff.question == Question::runs) json.number("chance", change.chance);
    json.text("verdict", verdict_name(change.verdict, diff.question));
  });
}

void write_amounts(JsonText& json, std::string_view name, const Diff& diff, const Change& change) {
  json.object(name, [&] {
    json.number("before_amount", change.before_amount.value);
    json.number("after_amount", change.after_amount.value);
    json.number("difference", change.difference);
    json.number("low", change.low);
    json.number("high", change.high);
    if (diff.question == Question::runs) json.number("chance", change.chance);
    json.text("verdict", verdict_name(change.verdict, diff.question));
  });
}

// All rows that differ, and the first few of the others.
void write_rows(JsonText& json, std::string_view name, const Diff& diff, std::span<const DiffRow> rows) {
  const auto other = std::find_if(rows.begin(), rows.end(), [](const DiffRow& row) {
    return !is_certain(row.self.verdict) && !is_certain(row.total.verdict);
  });
  const auto certain = static_cast<size_t>(other - rows.begin());
  json.objects(name, rows.first(std::min(rows.size(), certain + diff.limit)), [&](const DiffRow& row) {
    write_place(json, row.kind, row.full, row.file, row.line, row.module);
    write_change(json, "self", diff, row.self);
    write_change(json, "total", diff, row.total);
  });
}

void write_side(JsonText& json, std::string_view name, const DiffSide& side) {
  json.object(name, [&] {
    json.text("title", side.title);
    json.count("runs", side.runs);
    json.integer("total", side.total);
    json.count("samples", side.samples);
    json.integer("elapsed_ns", side.elapsed);
    json.integer("cpu_ns", side.cpu);
    json.integer("cpu_wait_ns", side.cpu_wait);
    json.truth("whole_run", side.whole_run);
    json.integer("left_out_ns", side.left_out_wall);
    json.text("quality", side.quality);
    json.text("warning", side.warning);
    write_quality(json, "quality_numbers", side.measured);
  });
}

bool has_awaits(const Diff& diff) {
  return diff.awaits && !diff.awaits->groups.empty();
}

}  // namespace

std::string diff_text(const Diff& diff) {
  std::string out;
  for (const std::string& line : heading(diff)) out += line + "\n";
  for (const Table& table : tables(diff)) {
    if (!table.rows.empty()) out += "\n" + table_text(table);
  }
  if (has_awaits(diff)) out += "\n" + table_text(await_diff_table(*diff.awaits, diff.limit));
  return out + "\n" + note(diff) + "\n";
}

std::string diff_markdown(const Diff& diff) {
  std::string out = "# What changed\n\n";
  for (const std::string& line : heading(diff)) out += "- " + markdown_escaped(line) + "\n";
  for (const Table& table : tables(diff)) {
    if (!table.rows.empty()) out += "\n" + table_markdown(table);
  }
  if (has_awaits(diff)) out += "\n" + table_markdown(await_diff_table(*diff.awaits, diff.limit));
  return out + "\n" + note(diff) + "\n";
}

std::string diff_json(const Diff& diff) {
  return JsonText::document([&](JsonText& json) {
    json.text("format", "phlox diff");
    json.integer("version", kDiffVersion);
    json.text("weight", diff.of_tasks ? view::kAwaitTime : weight_key(diff.weight));
    json.text("unit", view::unit_key(diff.weight));
    json.text("before_event", diff.before.event);
    json.text("after_event", diff.after.event);
    json.text("show", view::show_name(diff.show));
    json.text("question", diff.question == Question::runs ? "runs" : "recordings");
    json.truth("decides", diff.decides);
    json.count("runs_needed", runs_needed());
    json.truth("in_turn", diff.in_turn);
    json.text("per", diff.per == Per::second ? "second" : "run");
    json.number("margin_own", diff.margin.own);
    json.number("margin_least", diff.margin.least);
    write_side(json, "before", diff.before);
    write_side(json, "after", diff.after);
    write_amounts(json, "elapsed", diff, diff.elapsed);
    write_amounts(json, "cpu", diff, diff.cpu);
    write_amounts(json, "whole", diff, diff.whole);
    json.count("functions_seen", diff.functions.size());
    json.count("functions_differ", diff.differ);
    json.count("functions_inconclusive", diff.unclear);
    json.number("difference_seen", diff.seen);
    json.number("difference_at_most", diff.farthest);
    write_rows(json, "functions", diff, diff.functions);
    write_rows(json, "lines", diff, diff.lines);
    if (diff.awaits) write_await_diff(json, *diff.awaits, diff.limit);
  });
}

}  // namespace phlox::report
