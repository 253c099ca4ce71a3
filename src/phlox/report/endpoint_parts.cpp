#include "phlox/report/endpoint_parts.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "phlox/profile/web_routes.h"
#include "phlox/report/json_rows.h"
#include "phlox/view/frame_labels.h"

namespace phlox::report {
namespace {

using profile::Profile;
using view::EndpointPart;

std::string_view word_of(EndpointPart part) {
  return part == EndpointPart::handler ? "handler" : part == EndpointPart::task ? "task" : "job";
}

std::string part_time(Nanoseconds time) {
  return time > 0 ? time_words(time) : "-";
}

}  // namespace

void EndpointPartSums::add(const Profile& profile, const view::EndpointPlace& place,
                           const profile::Sample& sample, Nanoseconds cpu, view::WaitClass waits,
                           Nanoseconds wall) {
  const view::Function function =
      place.function ? view::function_of(profile.frame(place.function)) : view::Function();
  Sum& sum = sums_[{place.part, function}];
  sum.function = place.function;
  sum.row.part = place.part;
  sum.row.cpu += cpu;
  if (waits == view::WaitClass::gil) {
    sum.row.gil += wall;
  } else if (waits == view::WaitClass::cpu) {
    sum.row.no_cpu += wall;
  } else if (waits != view::WaitClass::none) {
    sum.row.waiting += wall;
  }
  if (!sample.thread || sample.thread.value > profile.threads().size()) return;
  sum.threads.insert(sample.thread.value);
  sum.processes.insert(profile.thread(sample.thread).process.value);
}

std::vector<EndpointPartRow> EndpointPartSums::rows(const Profile& profile) const {
  std::vector<EndpointPartRow> rows;
  bool any = false;
  for (const auto& [key, sum] : sums_) {
    EndpointPartRow& row = rows.emplace_back(sum.row);
    any = any || row.part != EndpointPart::handler;
    row.threads = sum.threads.size();
    row.processes = sum.processes.size();
    if (!sum.function) continue;
    const auto label = view::function_label(profile, sum.function);
    std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
    row.full = label.whole_name();
  }
  if (!any) return {};
  std::stable_sort(rows.begin(), rows.end(),
                   [](const EndpointPartRow& a, const EndpointPartRow& b) { return a.time() > b.time(); });
  return rows;
}

Table endpoint_part_table(const Report& report) {
  Table table;
  table.title = "Handlers, tasks and jobs of endpoints";
  table.note =
      "Where the threads' time of an endpoint is spent: in its handler, in tasks that the handler awaits, "
      "and "
      "in jobs that threads of a pool run for it.";
  table.columns = {{"CPU", true},
                   {"waits for GIL", true},
                   {"waits for CPU", true},
                   {"waits otherwise", true},
                   {"threads", true},
                   {"processes", true},
                   {"in"},
                   {"function", false, Fit::name},
                   {"where", false, Fit::place},
                   {"endpoint", false, Fit::name}};
  for (const EndpointRow& endpoint : report.endpoints) {
    const std::string routes = plain(profile::routes_words(endpoint.routes));
    for (const EndpointPartRow& row : endpoint.parts) {
      const bool handler = row.part == EndpointPart::handler;
      const std::string& file = handler ? endpoint.file : row.file;
      table.rows.push_back({part_time(row.cpu), part_time(row.gil), part_time(row.no_cpu),
                            part_time(row.waiting), count_words(row.threads), count_words(row.processes),
                            std::string(word_of(row.part)), plain(handler ? endpoint.name : row.name),
                            file.empty() ? "" : location_words(file, handler ? endpoint.line : row.line),
                            routes.empty() ? plain(endpoint.name) : routes});
    }
  }
  return table;
}

void write_endpoint_parts(JsonText& json, const EndpointRow& endpoint) {
  json.objects("parts", endpoint.parts, [&](const EndpointPartRow& row) {
    const bool handler = row.part == EndpointPart::handler;
    json.text("kind", word_of(row.part));
    json.text("name", handler ? endpoint.full : row.full);
    json.text("file", handler ? endpoint.file : row.file);
    json.integer("line", handler ? endpoint.line : row.line);
    json.integer("cpu_ns", row.cpu);
    json.integer("gil_waits_ns", row.gil);
    json.integer("cpu_waits_ns", row.no_cpu);
    json.integer("waiting_ns", row.waiting);
    json.count("threads", row.threads);
    json.count("processes", row.processes);
  });
}

}  // namespace phlox::report
