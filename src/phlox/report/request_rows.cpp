#include "phlox/report/request_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace phlox::report {
namespace {

using profile::Request;
using profile::TaskState;

// Of one request, in the text: of its own task, and of those that it waits for.
constexpr size_t kMostOwnParts = 4, kMostAwaitedParts = 3;

std::string_view state_key(TaskState state) {
  return state == TaskState::waiting ? "waiting" : state == TaskState::ready ? "ready" : "running";
}

// One without time if none is known.
std::vector<view::SlowRequestPart> shown_parts(const view::SlowRequest& request) {
  std::vector<view::SlowRequestPart> shown;
  size_t own = 0, awaited = 0;
  for (const view::SlowRequestPart& part : request.parts) {
    const bool has_room = part.awaited ? ++awaited <= kMostAwaitedParts : ++own <= kMostOwnParts;
    if (has_room) shown.push_back(part);
  }
  if (shown.empty()) shown.emplace_back();
  return shown;
}

void write_parts(JsonText& json, const view::SlowRequest& request) {
  json.objects("parts", request.parts, [&](const view::SlowRequestPart& row) {
    json.truth("awaited", row.awaited);
    json.text("state", state_key(row.state));
    json.text("kind", row.kind);
    json.text("words", row.words);
    json.integer("time_ns", row.time);
    json.text("name", row.name);
    json.text("file", row.file);
    json.integer("line", row.line);
  });
}

}  // namespace

Table request_table(const Report& report) {
  Table table;
  const bool several =
      std::any_of(report.requests.begin(), report.requests.end(),
                  [&](const view::SlowRequest& row) { return row.pid != report.requests.front().pid; });
  table.title = "Slowest requests";
  table.note =
      "Only of servers that run a task for each request. A request begins and ends between two readings of "
      "the tasks. Its row and those below it say where its time went. \"tasks\": all the tasks that it "
      "waits for, added up.";
  table.columns = {{"began", true},           {"lasted", true},          {"of that", true},
                   {"for", false, Fit::name}, {"in", false, Fit::place}, {"by"}};
  if (several) table.columns.push_back({"process", true});
  table.columns.push_back({"endpoint", false, Fit::name});
  const size_t shown = std::min(report.requests.size(), report.most_requests);
  bool any_runs = false;
  for (size_t i = 0; i < shown; ++i) {
    const view::SlowRequest& request = report.requests[i];
    bool is_first = true;
    for (const view::SlowRequestPart& part : shown_parts(request)) {
      std::vector<std::string> cells = {is_first ? view::begin_words(request.request) : "",
                                        is_first ? view::length_words(request.request) : "",
                                        part.time > 0 ? time_words(part.time) : "-",
                                        plain(part.words),
                                        part.name.empty() ? "" : place_words(part.name, part.file, part.line),
                                        part.time == 0 ? ""
                                        : part.awaited ? "tasks"
                                                       : "itself"};
      if (several) cells.push_back(is_first ? std::to_string(request.pid) : "");
      cells.push_back(is_first ? plain(view::endpoint_words(request)) : "");
      table.rows.push_back(std::move(cells));
      is_first = false;
      any_runs = any_runs || part.state == TaskState::running;
    }
  }
  if (any_runs)
    table.note += " \"running\": it computed, or a call in it blocked, and no other task of its loop ran.";
  return table;
}

void write_requests(JsonText& json, const Report& report) {
  json.objects("requests", report.requests, [&](const view::SlowRequest& row) {
    json.text("name", row.full);
    json.text("file", row.file);
    json.integer("line", row.line);
    json.texts("routes", row.routes);
    json.integer("pid", row.pid);
    json.text("thread", row.thread);
    const Request& request = row.request;
    if (request.earliest_begin) json.integer("earliest_begin_ns", *request.earliest_begin);
    json.integer("latest_begin_ns", request.latest_begin);
    json.integer("earliest_end_ns", request.earliest_end);
    if (request.latest_end) json.integer("latest_end_ns", *request.latest_end);
    json.integer("least_ns", request.least());
    if (const auto most = request.most()) json.integer("most_ns", *most);
    json.count("seen", request.seen);
    write_parts(json, row);
  });
}

}  // namespace phlox::report
