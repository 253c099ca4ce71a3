// A diff as plain text, Markdown and JSON (docs/json/diff.schema.json; a change that readers would misread
// raises kVersion).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "phlox/profile/sampled_events.h"
#include "phlox/report/diff.h"
#include "phlox/report/json_rows.h"
#include "phlox/report/table.h"

namespace phlox::report {
namespace {

constexpr int64_t kVersion = 1;

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::noise:
      return "noise";
    case Verdict::grew:
      return "grew";
    case Verdict::shrank:
      return "shrank";
    case Verdict::appeared:
      return "new";
    case Verdict::vanished:
      return "vanished";
  }
  return "";
}

std::string relative_words(const Change& change) {
  if (change.before.share <= 0 || change.after.share <= 0) return "-";
  const double ratio = change.after.share / change.before.share;
  return ratio >= 10 ? fmt::format("×{:.0f}", ratio) : fmt::format("{:+.0f} %", (ratio - 1) * 100);
}

using Part = Change DiffRow::*;

Table table_of(const Diff& diff, const std::vector<DiffRow>& rows, Part part, std::string title) {
  Table table;
  table.title = std::move(title);
  table.columns = {{"points", true}, {"99 %", true}, {"before", true}, {"after", true},
                   {"change", true}, {""},           {"function"},     {"where"}};
  std::vector<const DiffRow*> certain;
  for (const DiffRow& row : rows) {
    if ((row.*part).verdict != Verdict::noise) certain.push_back(&row);
  }
  std::stable_sort(certain.begin(), certain.end(), [&](const DiffRow* a, const DiffRow* b) {
    return std::abs((a->*part).difference) > std::abs((b->*part).difference);
  });
  for (const DiffRow* row : certain) {
    if (table.rows.size() == diff.limit) break;
    const Change& change = row->*part;
    table.rows.push_back({points_words(change.difference),
                          fmt::format("{} to {}", points_words(change.low), points_words(change.high)),
                          share_words(change.before.share), share_words(change.after.share),
                          relative_words(change), std::string(verdict_name(change.verdict)), plain(row->name),
                          location_words(row->file, row->line)});
  }
  table.left_out = certain.size() - table.rows.size();
  return table;
}

std::vector<Table> tables(const Diff& diff) {
  return {table_of(diff, diff.functions, &DiffRow::self, "Functions whose own share changed"),
          table_of(diff, diff.functions, &DiffRow::total,
                   "Functions whose share with everything they call changed"),
          table_of(diff, diff.lines, &DiffRow::self, "Lines whose share changed")};
}

std::vector<std::string> heading(const Diff& diff) {
  auto side = [&](std::string_view name, const std::string& title, int64_t total, uint64_t samples,
                  Nanoseconds elapsed) {
    return fmt::format("{} {}: {} of {}{}, {} samples", name, plain(title), weight_words(total, diff.weight),
                       plain(diff.weight_title), elapsed > 0 ? " over " + time_words(elapsed) : "",
                       count_words(samples));
  };
  std::vector<std::string> lines = {
      side("before", diff.before_title, diff.before_total, diff.before_samples, diff.before_elapsed),
      side("after ", diff.after_title, diff.after_total, diff.after_samples, diff.after_elapsed)};
  if (!diff.before_warning.empty()) lines.push_back("warning (before): " + diff.before_warning);
  if (!diff.after_warning.empty()) lines.push_back("warning (after): " + diff.after_warning);
  for (const auto& [name, left_out] :
       {std::pair("before", &diff.before_left_out), std::pair("after", &diff.after_left_out)}) {
    if (left_out->wall() > 0)
      lines.push_back(fmt::format("left out ({}): {}", name, plain(profile::left_out_words(*left_out))));
  }
  if (diff.before_left_out.wall() > 0 || diff.after_left_out.wall() > 0)
    lines.emplace_back("--show everything compares that too");
  const size_t changed = diff.functions.size() - diff.noise;
  lines.push_back(
      changed == 0
          ? fmt::format("No difference beyond noise in {} functions.", count_words(diff.functions.size()))
          : fmt::format("{} of {} functions changed; what differs in the others is noise.",
                        count_words(changed), count_words(diff.functions.size())));
  return lines;
}

constexpr std::string_view kNote =
    "Shares of each recording's whole; points are percentage points with their 99 % interval. Differences "
    "that chance makes in one of a "
    "hundred comparisons of equal programs are left out.";

void write_change(JsonText& json, std::string_view name, const Change& change) {
  json.object(name, [&] {
    write_estimate(json, "before", change.before);
    write_estimate(json, "after", change.after);
    json.number("difference", change.difference);
    json.number("low", change.low);
    json.number("high", change.high);
    json.text("verdict", verdict_name(change.verdict));
  });
}

// The certain ones, and of the noise behind them the first few.
void write_rows(JsonText& json, std::string_view name, const Diff& diff, std::span<const DiffRow> rows) {
  const auto noise = std::find_if(rows.begin(), rows.end(), [](const DiffRow& row) {
    return row.self.verdict == Verdict::noise && row.total.verdict == Verdict::noise;
  });
  const auto certain = static_cast<size_t>(noise - rows.begin());
  json.objects(name, rows.first(std::min(rows.size(), certain + diff.limit)), [&](const DiffRow& row) {
    write_place(json, row.kind, row.full, row.file, row.line, row.module);
    write_change(json, "self", row.self);
    write_change(json, "total", row.total);
  });
}

void write_side(JsonText& json, std::string_view name, const std::string& title, int64_t total,
                uint64_t samples, Nanoseconds elapsed, const profile::LeftOut& left_out,
                const std::string& quality, const std::string& warning,
                const profile::QualitySummary& measured) {
  json.object(name, [&] {
    json.text("title", title);
    json.integer("total", total);
    json.count("samples", samples);
    json.integer("elapsed_ns", elapsed);
    json.integer("left_out_ns", left_out.wall());
    json.text("quality", quality);
    json.text("warning", warning);
    write_quality(json, "quality_numbers", measured);
  });
}

}  // namespace

std::string diff_text(const Diff& diff) {
  std::string out;
  for (const std::string& line : heading(diff)) out += line + "\n";
  for (const Table& table : tables(diff)) {
    if (!table.rows.empty()) out += "\n" + table_text(table);
  }
  return out + "\n" + std::string(kNote) + "\n";
}

std::string diff_markdown(const Diff& diff) {
  std::string out = "# What changed\n\n";
  for (const std::string& line : heading(diff)) out += "- " + markdown_escaped(line) + "\n";
  for (const Table& table : tables(diff)) {
    if (!table.rows.empty()) out += "\n" + table_markdown(table);
  }
  return out + "\n" + std::string(kNote) + "\n";
}

std::string diff_json(const Diff& diff) {
  return JsonText::document([&](JsonText& json) {
    json.text("format", "phlox diff");
    json.integer("version", kVersion);
    json.text("weight", weight_key(diff.weight));
    json.text("unit", profile::unit_key(diff.weight));
    json.text("before_event", diff.before_event);
    json.text("after_event", diff.after_event);
    json.text("show", profile::show_name(diff.show));
    write_side(json, "before", diff.before_title, diff.before_total, diff.before_samples, diff.before_elapsed,
               diff.before_left_out, diff.before_quality, diff.before_warning, diff.before_measured);
    write_side(json, "after", diff.after_title, diff.after_total, diff.after_samples, diff.after_elapsed,
               diff.after_left_out, diff.after_quality, diff.after_warning, diff.after_measured);
    json.count("functions_seen", diff.functions.size());
    json.count("functions_noise", diff.noise);
    write_rows(json, "functions", diff, diff.functions);
    write_rows(json, "lines", diff, diff.lines);
  });
}

}  // namespace phlox::report
