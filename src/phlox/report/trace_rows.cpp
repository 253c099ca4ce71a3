#include "phlox/report/trace_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/profile/trace_ids.h"
#include "phlox/report/estimate.h"

namespace phlox::report {

Table trace_table(const Report& report) {
  const view::Traces& traces = report.traces;
  const bool processes = std::any_of(traces.rows.begin(), traces.rows.end(),
                                     [](const view::TraceRow& row) { return row.processes > 1; });
  const bool endpoints = std::any_of(traces.rows.begin(), traces.rows.end(),
                                     [](const view::TraceRow& row) { return !row.endpoint.empty(); });
  Table table;
  table.title = "Traces";
  table.note = fmt::format(
      "{} {}. The threads worked for {} in {} of their time, without waiting for work. A trace lasts from "
      "its first sample to its last; one shorter than the sampling interval may have no sample.",
      count_words(traces.count), traces.count == 1 ? "trace" : "traces", traces.count == 1 ? "it" : "them",
      share_words(time_share(traces.time, traces.of)));
  table.columns = {{"first seen", true}, {"lasted", true}, {"CPU", true}, {"waits", true}, {"threads", true}};
  if (processes) table.columns.push_back({"processes", true});
  table.columns.push_back({"mostly in", false, Fit::place});
  if (endpoints) table.columns.push_back({"endpoint", false, Fit::name});
  table.columns.push_back({"trace"});
  for (const view::TraceRow& row : traces.rows) {
    std::vector<std::string> cells = {
        fmt::format("{:.2f} s", double(row.first) * 1e-9), time_words(row.last - row.first),
        row.cpu > 0 ? time_words(row.cpu) : "-", row.waiting > 0 ? time_words(row.waiting) : "-",
        count_words(row.threads)};
    if (processes) cells.push_back(count_words(row.processes));
    cells.push_back(row.name.empty() ? "-" : place_words(row.name, row.file, row.line));
    if (endpoints) cells.push_back(row.endpoint.empty() ? "-" : plain(row.endpoint));
    cells.push_back(profile::id_text(row.trace));
    table.rows.push_back(std::move(cells));
  }
  table.left_out = traces.count - traces.rows.size();
  return table;
}

void write_traces(JsonText& json, const Report& report) {
  json.object("traces", [&] {
    json.count("count", report.traces.count);
    json.integer("time_ns", report.traces.time);
    json.integer("of_ns", report.traces.of);
    json.objects("longest", report.traces.rows, [&](const view::TraceRow& row) {
      json.text("trace", profile::id_text(row.trace));
      json.integer("first_ns", row.first);
      json.integer("last_ns", row.last);
      json.integer("cpu_ns", row.cpu);
      json.integer("waiting_ns", row.waiting);
      json.count("threads", row.threads);
      json.count("processes", row.processes);
      json.count("spans", row.spans);
      json.text("name", row.full);
      json.text("file", row.file);
      json.integer("line", row.line);
      json.text("endpoint", row.endpoint);
    });
  });
}

}  // namespace phlox::report
