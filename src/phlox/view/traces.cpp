#include "phlox/view/traces.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "phlox/view/endpoints.h"
#include "phlox/view/frame_labels.h"
#include "phlox/view/loop_stacks.h"
#include "phlox/view/markers.h"
#include "phlox/view/stack_places.h"
#include "phlox/view/trace_parts.h"
#include "phlox/view/wait_class.h"

namespace phlox::view {

using namespace profile;

namespace {

// The traces, numbered from 0, and which one each time belongs to.
struct NumberedTraces {
  explicit NumberedTraces(const std::vector<TraceTime>& times) : of_time(times.size()) {
    std::vector<uint32_t> order(times.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return times[a].ids.trace < times[b].ids.trace; });
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || times[order[i]].ids.trace != times[order[i - 1]].ids.trace) ++count;
      of_time[order[i]] = count - 1;
    }
  }
  uint32_t count = 0;
  std::vector<uint32_t> of_time;
};

struct Extent {
  Nanoseconds first = std::numeric_limits<Nanoseconds>::max(), last = std::numeric_limits<Nanoseconds>::min();
  bool is_seen() const { return first < last; }
};

// Sums of one of the rows.
struct TraceSums {
  TraceRow row;
  std::set<ThreadId> threads;
  std::set<ProcessId> processes;
  std::set<std::array<uint8_t, 8>> spans;
  std::map<Function, std::pair<Nanoseconds, FrameId>> functions;
  std::map<uint32_t, Nanoseconds> endpoints;
};

class FindingTraces {
 public:
  FindingTraces(const Profile& profile, const SampleFilter& filter, const TaskRows* tasks)
      : profile_(profile),
        filter_(filter),
        numbers_(profile.trace_times()),
        parts_(profile),
        endpoints_(profile, tasks),
        classes_(profile),
        places_(stack_places(profile)),
        start_(recording_start(profile)),
        extents_(numbers_.count),
        row_of_(numbers_.count, kNoRow),
        functions_(profile.stacks().size() + 1) {}

  Traces find(size_t limit) {
    Traces traces;
    each_part(
        [&](const Sample&, const SampleFilter::Part& part, Nanoseconds from, Nanoseconds to, uint32_t index) {
          const bool idle = part.doing == Doing::waiting_for_work;
          if (index != TraceParts::kNone || !idle) traces.of += to - from;
          if (index == TraceParts::kNone) return;
          traces.time += to - from;
          Extent& extent = extents_[numbers_.of_time[index]];
          extent.first = std::min(extent.first, from);
          extent.last = std::max(extent.last, to);
        });
    traces.count = static_cast<size_t>(
        std::count_if(extents_.begin(), extents_.end(), [](const Extent& one) { return one.is_seen(); }));
    choose(limit);
    each_part([&](const Sample& sample, const SampleFilter::Part& part, Nanoseconds from, Nanoseconds to,
                  uint32_t index) {
      const uint32_t row = index == TraceParts::kNone ? kNoRow : row_of_[numbers_.of_time[index]];
      if (row != kNoRow) add(sums_[row], sample, part, from, to, index);
    });
    for (TraceSums& sums : sums_) traces.rows.push_back(finished(sums));
    return traces;
  }

 private:
  static constexpr uint32_t kNoRow = std::numeric_limits<uint32_t>::max();

  template <class Visit>
  void each_part(Visit&& visit) const {
    for (const Sample& sample : profile_.samples()) {
      if (TraceParts::is_without_moment(sample)) continue;
      const auto part = filter_.part_of_everything(sample);
      if (!part.passes || part.wall == 0) continue;
      parts_.each(
          sample.thread, part.start, part.wall,
          [&](Nanoseconds from, Nanoseconds to, uint32_t index) { visit(sample, part, from, to, index); });
    }
  }

  void choose(size_t limit) {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < extents_.size(); ++i) {
      if (extents_[i].is_seen()) order.push_back(i);
    }
    const size_t count = std::min(limit, order.size());
    const auto rank = [&](uint32_t i) {
      const Extent& extent = extents_[i];
      return std::tuple(extent.first - extent.last, extent.first, i);
    };
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                      [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
    sums_.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      row_of_[order[i]] = i;
      sums_[i].row.first = extents_[order[i]].first - start_;
      sums_[i].row.last = extents_[order[i]].last - start_;
    }
  }

  void add(TraceSums& sums, const Sample& sample, const SampleFilter::Part& part, Nanoseconds from,
           Nanoseconds to, uint32_t index) {
    const TraceIds& ids = profile_.trace_times()[index].ids;
    sums.row.trace = ids.trace;
    sums.spans.insert(ids.span);
    sums.row.cpu += share_of(part.cpu, from - part.start, to - part.start, part.wall);
    if (classes_.of(sample) != WaitClass::none) sums.row.waiting += to - from;
    sums.threads.insert(sample.thread);
    sums.processes.insert(profile_.thread(sample.thread).process);
    const uint32_t endpoint = endpoints_.of(sample);
    if (endpoint != Endpoints::kNone && endpoint != Endpoints::kNotRead)
      sums.endpoints[endpoint] += to - from;
    const FrameId frame = function_frame(sample.stack);
    if (!frame || frame.value > profile_.frames().size()) return;
    auto& function = sums.functions[function_of(profile_.frame(frame))];
    function.first += to - from;
    function.second = frame;
  }

  FrameId function_frame(StackId stack) {
    if (stack.value >= functions_.size()) return {};
    auto& known = functions_[stack.value];
    if (!known) known = find_function(stack);
    return *known;
  }

  FrameId find_function(StackId stack) const {
    for (StackId at = stack; at && at.value <= profile_.stacks().size();) {
      const Stack& row = profile_.stack(at);
      if (row.frame && row.frame.value <= profile_.frames().size()) {
        const Frame& frame = profile_.frame(row.frame);
        const bool is_program = frame.kind == FrameKind::python && !is_of_a_library(frame);
        if (is_program || hides_python(frame)) return row.frame;
      }
      at = row.parent < at ? row.parent : StackId();
    }
    return stack.value < places_.size() ? places_[stack.value].frame : FrameId();
  }

  TraceRow finished(TraceSums& sums) const {
    TraceRow row = std::move(sums.row);
    row.threads = sums.threads.size();
    row.processes = sums.processes.size();
    row.spans = sums.spans.size();
    const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
    if (const auto most = std::max_element(sums.functions.begin(), sums.functions.end(), less);
        most != sums.functions.end()) {
      const auto label = function_label(profile_, most->second.second);
      std::tie(row.name, row.file, row.line) = std::tie(label.name, label.file, label.line);
      row.full = label.whole_name();
    }
    if (const auto most = std::max_element(sums.endpoints.begin(), sums.endpoints.end(), less);
        most != sums.endpoints.end())
      row.endpoint = endpoint_label(profile_, endpoints_, most->first);
    return row;
  }

  const Profile& profile_;
  const SampleFilter& filter_;
  NumberedTraces numbers_;
  TraceParts parts_;
  Endpoints endpoints_;
  WaitClasses classes_;
  std::vector<StackPlace> places_;
  Nanoseconds start_;
  std::vector<Extent> extents_;   // by trace
  std::vector<uint32_t> row_of_;  // by trace: an index of sums_
  std::vector<TraceSums> sums_;
  std::vector<std::optional<FrameId>> functions_;  // by stack
};

}  // namespace

Traces find_traces(const Profile& profile, const SampleFilter& filter, const TaskRows* tasks, size_t limit) {
  if (profile.trace_times().empty()) return {};
  return FindingTraces(profile, filter, tasks).find(limit);
}

}  // namespace phlox::view
