#include "phlox/view/slow_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "phlox/base/number_words.h"
#include "phlox/profile/web_routes.h"
#include "phlox/view/await_time.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/frame_labels.h"
#include "phlox/view/loop_stacks.h"
#include "phlox/view/sample_filter.h"

namespace phlox::view {
namespace {

using profile::Profile;
using profile::Request;
using profile::RequestPart;
using profile::TaskRows;
using profile::TaskState;

class FindingRequests {
 public:
  FindingRequests(const Profile& profile, const TaskRows& tasks, const Choices& choices)
      : profile_(profile),
        tasks_(tasks),
        choices_(choices),
        endpoints_(profile, &tasks, false),
        start_(recording_start(profile)),
        parts_(tasks_.requests.size()) {
    if (choices.endpoint_regex) chosen_ = chosen_endpoints(profile, endpoints_, *choices.endpoint_regex);
    for (const RequestPart& part : tasks_.request_parts) {
      if (part.time && part.duration > 0) parts_[part.request.value - 1].push_back(&part);
    }
  }

  std::vector<SlowRequest> rows() {
    std::vector<SlowRequest> rows;
    for (size_t i = 0; i < tasks_.requests.size(); ++i) {
      const Request& request = tasks_.requests[i];
      const uint32_t endpoint = endpoint_of(parts_[i]);
      if (is_chosen(request, endpoint)) rows.push_back(row(request, endpoint, parts_[i]));
    }
    std::stable_sort(rows.begin(), rows.end(), [](const SlowRequest& a, const SlowRequest& b) {
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
    if (!chosen_.empty() && !chosen_[endpoint]) return false;
    const profile::EventLoop& loop = tasks_.loops[request.loop.value - 1];
    if (choices_.pid && profile_.process(loop.process).pid != *choices_.pid) return false;
    return request.latest_begin - start_ < choices_.to && request.earliest_end - start_ > choices_.from;
  }

  SlowRequest row(const Request& request, uint32_t endpoint, const Parts& parts) const {
    SlowRequest row;
    row.request = request;
    for (Nanoseconds* moment : {&row.request.latest_begin, &row.request.earliest_end}) *moment -= start_;
    for (auto* moment : {&row.request.earliest_begin, &row.request.latest_end}) {
      if (*moment) **moment -= start_;
    }
    const profile::EventLoop& loop = tasks_.loops[request.loop.value - 1];
    row.pid = profile_.process(loop.process).pid;
    row.loop_thread = loop.thread;
    if (loop.thread) row.thread = thread_label(profile_.thread(loop.thread));
    if (endpoint == Endpoints::kNone) {
      row.name = row.full = endpoint_label(profile_, endpoints_, endpoint);
    } else {
      const auto label = function_label(profile_, endpoints_[endpoint].frame);
      std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
      row.full = label.whole_name();
      row.routes = endpoint_routes(profile_, endpoints_, endpoint);
    }
    row.parts = part_rows(parts);
    return row;
  }

  // At one line of the program, whatever the libraries below it do.
  std::vector<SlowRequestPart> part_rows(const Parts& parts) const {
    std::map<std::tuple<bool, TaskState, std::string, std::string, profile::FrameId>, SlowRequestPart> rows;
    for (const RequestPart* part : parts) {
      const profile::TaskTime& time = time_of(*part);
      const bool waits = time.state == TaskState::waiting;
      const profile::FrameId frame = place_of(time.stack);
      SlowRequestPart& row =
          rows[{part->awaited, time.state, waits ? time.kind : "", waits ? time.awaited : "", frame}];
      row.awaited = part->awaited;
      row.state = time.state;
      row.time += part->duration;
      if (waits) {
        row.kind = time.kind;
        row.words = awaited_by_task_words(time.kind, time.awaited);
      } else {
        row.words = time.state == TaskState::ready ? "ready to run" : "running";
      }
      if (!frame) continue;
      const auto label = line_label(profile_, frame);
      std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
    }
    std::vector<SlowRequestPart> sorted;
    for (auto& [key, row] : rows) sorted.push_back(std::move(row));
    std::stable_sort(sorted.begin(), sorted.end(), [](const SlowRequestPart& a, const SlowRequestPart& b) {
      return std::pair(a.awaited, -a.time) < std::pair(b.awaited, -b.time);
    });
    return sorted;
  }

  // The innermost line of the program itself; of libraries alone, the innermost one.
  profile::FrameId place_of(profile::TaskStackId stack) const {
    const auto row = [&](profile::TaskStackId id) { return tasks_.stacks[id.value - 1]; };
    for (profile::TaskStackId at = stack; at; at = row(at).parent) {
      if (!is_of_a_library(profile_.frame(row(at).frame))) return row(at).frame;
    }
    return stack ? row(stack).frame : profile::FrameId();
  }

  const Profile& profile_;
  const TaskRows& tasks_;
  const Choices& choices_;
  Endpoints endpoints_;
  Nanoseconds start_;
  std::vector<Parts> parts_;  // by request
  std::vector<bool> chosen_;  // by endpoint; empty: all
};

std::string moment_words(Nanoseconds moment) {
  return fmt::format("{:.2f}", double(moment) * 1e-9);
}

}  // namespace

std::vector<SlowRequest> slow_requests(const Profile& profile, const TaskRows& tasks,
                                       const Choices& choices) {
  if (tasks.requests.empty()) return {};
  return FindingRequests(profile, tasks, choices).rows();
}

std::string endpoint_words(const SlowRequest& request) {
  return request.routes.empty() ? request.name : profile::routes_words(request.routes);
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

}  // namespace phlox::view
