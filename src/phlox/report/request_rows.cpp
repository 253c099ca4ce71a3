#include "phlox/report/request_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "phlox/profile/web_routes.h"
#include "phlox/report/await_groups.h"
#include "phlox/view/await_time.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/frame_labels.h"
#include "phlox/view/loop_stacks.h"
#include "phlox/view/sample_filter.h"

namespace phlox::report {
namespace {

using profile::Profile;
using profile::Request;
using profile::RequestPart;
using profile::TaskRows;
using profile::TaskState;
using view::Endpoints;

// Of one request, in the text: of its own task, and of those that it waits for.
constexpr size_t kMostOwnParts = 4, kMostAwaitedParts = 3;

std::string_view state_key(TaskState state) {
  return state == TaskState::waiting ? "waiting" : state == TaskState::ready ? "ready" : "running";
}

class FindingRequests {
 public:
  FindingRequests(const Profile& profile, const ReportOptions& options)
      : profile_(profile),
        options_(options),
        tasks_(*options.tasks),
        endpoints_(profile, options.tasks, false),
        start_(view::recording_start(profile)),
        parts_(tasks_.requests.size()) {
    if (options.choices.endpoint_regex)
      chosen_ = view::chosen_endpoints(profile, endpoints_, *options.choices.endpoint_regex);
    for (const RequestPart& part : tasks_.request_parts) {
      if (part.time && part.duration > 0) parts_[part.request.value - 1].push_back(&part);
    }
  }

  std::vector<RequestRow> rows() {
    std::vector<RequestRow> rows;
    for (size_t i = 0; i < tasks_.requests.size(); ++i) {
      const Request& request = tasks_.requests[i];
      const uint32_t endpoint = endpoint_of(parts_[i]);
      if (is_chosen(request, endpoint)) rows.push_back(row(request, endpoint, parts_[i]));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const RequestRow& a, const RequestRow& b) {
      return a.request.least() > b.request.least();
    });
    return rows;
  }

 private:
  using Parts = std::vector<const RequestPart*>;

  const profile::TaskTime& time_of(const RequestPart& part) const {
    return tasks_.times[part.time.value - 1];
  }

  // Of the stack in which its task was longest.
  uint32_t endpoint_of(const Parts& parts) const {
    uint32_t endpoint = Endpoints::kNone;
    Nanoseconds most = 0;
    for (const RequestPart* part : parts) {
      const uint32_t number = endpoints_.of(time_of(*part).stack);
      if (part->awaited || number == Endpoints::kNone || number == Endpoints::kNotRead) continue;
      if (part->duration > most) std::tie(endpoint, most) = std::pair(number, part->duration);
    }
    return endpoint;
  }

  // Of the time range, only what is certain counts.
  bool is_chosen(const Request& request, uint32_t endpoint) const {
    const view::Choices& choices = options_.choices;
    if (!chosen_.empty() && !chosen_[endpoint]) return false;
    const profile::EventLoop& loop = tasks_.loops[request.loop.value - 1];
    if (choices.pid && profile_.process(loop.process).pid != *choices.pid) return false;
    return request.latest_begin - start_ < choices.to && request.earliest_end - start_ > choices.from;
  }

  RequestRow row(const Request& request, uint32_t endpoint, const Parts& parts) const {
    RequestRow row;
    row.request = request;
    for (Nanoseconds* moment : {&row.request.latest_begin, &row.request.earliest_end}) *moment -= start_;
    for (auto* moment : {&row.request.earliest_begin, &row.request.latest_end}) {
      if (*moment) **moment -= start_;
    }
    const profile::EventLoop& loop = tasks_.loops[request.loop.value - 1];
    row.pid = profile_.process(loop.process).pid;
    if (loop.thread) row.thread = view::thread_label(profile_.thread(loop.thread));
    if (endpoint == Endpoints::kNone) {
      row.name = row.full = view::endpoint_label(profile_, endpoints_, endpoint);
    } else {
      const auto label = view::function_label(profile_, endpoints_[endpoint].frame);
      std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
      row.full = label.whole_name();
      row.routes = view::endpoint_routes(profile_, endpoints_, endpoint);
    }
    row.parts = part_rows(parts);
    return row;
  }

  // At one line of the program, whatever the libraries below it do.
  std::vector<RequestPartRow> part_rows(const Parts& parts) const {
    std::map<std::tuple<bool, TaskState, std::string, std::string, profile::FrameId>, RequestPartRow> rows;
    for (const RequestPart* part : parts) {
      const profile::TaskTime& time = time_of(*part);
      const bool waits = time.state == TaskState::waiting;
      const profile::FrameId frame = place_of(time.stack);
      RequestPartRow& row =
          rows[{part->awaited, time.state, waits ? time.kind : "", waits ? time.awaited : "", frame}];
      row.awaited = part->awaited;
      row.state = time.state;
      row.time += part->duration;
      if (waits) {
        row.kind = time.kind;
        row.words = view::awaited_by_task_words(time.kind, time.awaited);
      } else {
        row.words = time.state == TaskState::ready ? "ready to run" : "running";
      }
      if (!frame) continue;
      const auto label = view::line_label(profile_, frame);
      std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
    }
    std::vector<RequestPartRow> sorted;
    for (auto& [key, row] : rows) sorted.push_back(std::move(row));
    std::stable_sort(sorted.begin(), sorted.end(), [](const RequestPartRow& a, const RequestPartRow& b) {
      return std::pair(a.awaited, -a.time) < std::pair(b.awaited, -b.time);
    });
    return sorted;
  }

  // The innermost line of the program itself; of libraries alone, the innermost one.
  profile::FrameId place_of(profile::TaskStackId stack) const {
    const auto frames = task_frames(tasks_, stack);
    for (size_t i = frames.size(); i-- > 0;) {
      if (!view::is_of_a_library(profile_.frame(frames[i]))) return frames[i];
    }
    return frames.empty() ? profile::FrameId() : frames.back();
  }

  const Profile& profile_;
  const ReportOptions& options_;
  const TaskRows& tasks_;
  Endpoints endpoints_;
  Nanoseconds start_;
  std::vector<Parts> parts_;  // by request
  std::vector<bool> chosen_;  // by endpoint; empty: all
};

std::string moment_words(Nanoseconds moment) {
  return fmt::format("{:.2f}", double(moment) * 1e-9);
}

std::string begin_words(const Request& request) {
  const std::string latest = moment_words(request.latest_begin);
  return request.earliest_begin ? fmt::format("{} to {} s", moment_words(*request.earliest_begin), latest)
                                : fmt::format("before {} s", latest);
}

std::string length_words(const Request& request) {
  const auto most = request.most();
  if (!most) return fmt::format("at least {}", time_words(request.least()));
  return fmt::format("{} to {}", time_words(request.least()), time_words(*most));
}

// One without time if none is known.
std::vector<RequestPartRow> shown_parts(const RequestRow& request) {
  std::vector<RequestPartRow> shown;
  size_t own = 0, awaited = 0;
  for (const RequestPartRow& part : request.parts) {
    const bool has_room = part.awaited ? ++awaited <= kMostAwaitedParts : ++own <= kMostOwnParts;
    if (has_room) shown.push_back(part);
  }
  if (shown.empty()) shown.emplace_back();
  return shown;
}

void write_parts(JsonText& json, const RequestRow& request) {
  json.objects("parts", request.parts, [&](const RequestPartRow& row) {
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

std::vector<RequestRow> request_rows(const Profile& profile, const ReportOptions& options) {
  if (options.tasks == nullptr || options.tasks->requests.empty()) return {};
  return FindingRequests(profile, options).rows();
}

Table request_table(const Report& report) {
  Table table;
  const bool several =
      std::any_of(report.requests.begin(), report.requests.end(),
                  [&](const RequestRow& row) { return row.pid != report.requests.front().pid; });
  table.title = "Slowest requests";
  table.note =
      "Only of servers that run a task for each request. A request begins and ends between two readings of "
      "the "
      "tasks. Beneath it is where its time went; \"tasks\": those that it waits for, all together.";
  table.columns = {{"began", true},           {"lasted", true},          {"of that", true},
                   {"for", false, Fit::name}, {"in", false, Fit::place}, {"by"}};
  if (several) table.columns.push_back({"process", true});
  table.columns.push_back({"endpoint", false, Fit::name});
  const size_t shown = std::min(report.requests.size(), report.most_requests);
  for (size_t i = 0; i < shown; ++i) {
    const RequestRow& request = report.requests[i];
    const std::string routes = plain(profile::routes_words(request.routes));
    bool is_first = true;
    for (const RequestPartRow& part : shown_parts(request)) {
      std::vector<std::string> cells = {is_first ? begin_words(request.request) : "",
                                        is_first ? length_words(request.request) : "",
                                        part.time > 0 ? time_words(part.time) : "-",
                                        plain(part.words),
                                        part.name.empty() ? "" : place_words(part.name, part.file, part.line),
                                        part.time == 0 ? ""
                                        : part.awaited ? "tasks"
                                                       : "itself"};
      if (several) cells.push_back(is_first ? std::to_string(request.pid) : "");
      cells.push_back(!is_first ? "" : routes.empty() ? plain(request.name) : routes);
      table.rows.push_back(std::move(cells));
      is_first = false;
    }
  }
  return table;
}

void write_requests(JsonText& json, const Report& report) {
  json.objects("requests", report.requests, [&](const RequestRow& row) {
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
