#include "phlox/report/task_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "phlox/report/await_groups.h"
#include "phlox/report/table.h"
#include "phlox/view/await_time.h"
#include "phlox/view/frame_labels.h"

namespace phlox::report {
namespace {

// A recording that is shorter, or has fewer censuses, proves too little.
constexpr Nanoseconds kLongEnough = 5 * kSecond;
constexpr uint64_t kEnoughCensuses = 10;
// One task that waits for ever is how many programs keep running: `await asyncio.Future()`.
constexpr uint64_t kFewLost = 10;
// Fewer may come and go by chance.
constexpr uint64_t kGrownBy = 20, kRises = 6;
// A number that grows steadily does so in the middle of the time, on average, and up to its end. One that
// grew when the program started, or when its load came, does not.
constexpr double kEarliestMiddle = 0.3, kLatestMiddle = 0.7, kUpToEnd = 0.9;
// Tasks that were seen to end, of those that began.
constexpr double kHardlyAny = 0.01;
constexpr size_t kMostOfKind = 3;

// Connections, consumers and heartbeats wait for these for as long as they like.
constexpr std::array<std::string_view, 6> kByDesign = {"stream_data", "stream_room", "socket",
                                                       "queue_item",  "server",      "sleep"};
// These come, unless something is wrong. A semaphore may also serve as a signal for one task.
constexpr std::array<std::pair<std::string_view, uint64_t>, 3> kMustCome = {
    {{"lock", 1}, {"semaphore", 2}, {"queue_room", 1}}};

std::string tasks_of(const view::Label& label, uint64_t tasks) {
  const std::string place = fmt::format("{} ({})", plain(label.name), location_words(label.file, label.line));
  return tasks == 1 ? fmt::format("one task of {}", place)
                    : fmt::format("{} tasks of {}", count_words(tasks), place);
}

class TaskFindings {
 public:
  TaskFindings(const profile::Profile& profile, const profile::TaskRows& tasks)
      : profile_(profile), tasks_(tasks) {}

  std::vector<Finding> all() && {
    for (const LoopAwaits& loop : loop_awaits(tasks_)) {
      size_t lost = 0, stuck = 0;
      for (const AwaitGroup& group : loop.groups) {
        if (!group.frame || group.at_end == 0) continue;
        if (lost < kMostOfKind) lost += add_lost(loop, group);
        if (stuck < kMostOfKind) stuck += add_stuck(loop, group);
      }
    }
    add_growing();
    return std::move(found_);
  }

 private:
  void add(std::string kind, const profile::EventLoopId loop, std::string text, Numbers numbers,
           const view::Label& label) {
    const profile::EventLoop& of = tasks_.loops[loop.value - 1];
    if (profile_.processes().size() > 1 && of.process)
      text += fmt::format(" (process {})", profile_.process(of.process).pid);
    Names names = {{"function", label.name}, {"file", label.file}, {"loop", of.type}};
    if (of.thread) names.emplace_back("thread", view::thread_label(profile_.thread(of.thread)));
    found_.push_back({std::move(kind), 1, std::move(text), std::move(numbers), std::move(names)});
  }

  bool add_lost(const LoopAwaits& loop, const AwaitGroup& group) {
    if (group.kind != "lost_future" || group.at_end < kFewLost) return false;
    const auto label = view::line_label(profile_, group.frame);
    add("tasks_lost", loop.loop,
        fmt::format(
            "{} can only end if they are cancelled: each awaits a future that nothing else refers to, "
            "so nothing can set its result",
            tasks_of(label, group.at_end)),
        {{"tasks", double(group.at_end)}, {"line", double(label.line)}}, label);
    return true;
  }

  bool add_stuck(const LoopAwaits& loop, const AwaitGroup& group) {
    const auto kind = std::find_if(kMustCome.begin(), kMustCome.end(),
                                   [&](const auto& one) { return one.first == group.kind; });
    if (kind == kMustCome.end() || group.at_end < kind->second || group.went_on > 0) return false;
    const auto census = census_of(tasks_, tasks_.loops[loop.loop.value - 1].process);
    const Nanoseconds every = between_censuses(census.times, census.span);
    if (group.longest < kLongEnough || every <= 0) return false;
    const auto censuses = static_cast<uint64_t>(group.longest / every);
    if (censuses < kEnoughCensuses) return false;
    const auto label = view::line_label(profile_, group.frame);
    const bool one = group.at_end == 1;
    add("tasks_stuck", loop.loop,
        fmt::format(
            "{} {} for {}, and {} seen to get it: in {}, each of about {} censuses found {} still waiting{}",
            tasks_of(label, group.at_end), one ? "waits" : "wait",
            view::awaited_by_task_words(group.kind, plain(group.awaited)), one ? "was not" : "none was",
            time_words(group.longest), count_words(censuses), one ? "it" : "all earlier ones",
            group.kind == "lock" ? ". phlox dump names its holder, if it was taken by `async with`" : ""),
        {{"tasks", double(group.at_end)}, {"wall_ns", double(group.longest)}, {"line", double(label.line)}},
        label);
    return true;
  }

  using FunctionKey = std::tuple<profile::EventLoopId, std::string, std::string, int32_t>;
  FunctionKey key_of(profile::EventLoopId loop, profile::FrameId frame) const {
    const profile::Frame& of = profile_.frame(frame);
    return {loop, of.qualified_name, of.file, of.first_line};
  }

  // Of each outermost coroutine: what most of its tasks await in the last census.
  std::map<FunctionKey, const AwaitGroup*> awaited_at_end(const std::vector<LoopAwaits>& loops) const {
    std::map<FunctionKey, const AwaitGroup*> all;
    for (const LoopAwaits& loop : loops) {
      for (const AwaitGroup& group : loop.groups) {
        if (!group.frame) continue;
        const AwaitGroup*& most = all[key_of(loop.loop, group.frame)];
        if (most == nullptr || group.at_end > most->at_end) most = &group;
      }
    }
    return all;
  }

  // A package that was installed waits for its own things: a connection of a pool, a message.
  bool is_by_design(const AwaitGroup& group) const {
    if (std::find(kByDesign.begin(), kByDesign.end(), group.kind) != kByDesign.end()) return true;
    const auto frames = task_frames(tasks_, group.stack);
    const std::string& file = frames.empty() ? std::string() : profile_.frame(frames.back()).file;
    return file.find("/site-packages/") != std::string::npos ||
           file.find("/dist-packages/") != std::string::npos;
  }

  static bool is_growing(const profile::TaskGroup& group) {
    const double lasted = double(group.lasted);
    return group.lasted >= kLongEnough && group.times >= kEnoughCensuses && group.rises >= kRises &&
           group.last >= group.first + kGrownBy && double(group.gone) <= kHardlyAny * double(group.begun) &&
           double(group.mean_begin) >= kEarliestMiddle * lasted &&
           double(group.mean_begin) <= kLatestMiddle * lasted &&
           double(group.last_begin) >= kUpToEnd * lasted;
  }

  void add_growing() {
    std::vector<const profile::TaskGroup*> growing;
    for (const profile::TaskGroup& group : tasks_.groups) {
      if (group.loop && group.frame && is_growing(group)) growing.push_back(&group);
    }
    if (growing.empty()) return;
    std::stable_sort(growing.begin(), growing.end(),
                     [](const auto* a, const auto* b) { return a->last - a->first > b->last - b->first; });
    const std::vector<LoopAwaits> loops = loop_awaits(tasks_);
    const auto awaited = awaited_at_end(loops);
    size_t told = 0;
    for (const profile::TaskGroup* group : growing) {
      const auto most = awaited.find(key_of(group->loop, group->frame));
      if (most == awaited.end() || is_by_design(*most->second)) continue;
      // Where tasks were left out, the number is not known.
      if (census_of(tasks_, tasks_.loops[group->loop.value - 1].process).beyond > 0) continue;
      if (told++ < kMostOfKind) add_one_growing(*group, most->second->kind);
    }
  }

  void add_one_growing(const profile::TaskGroup& group, const std::string& kind) {
    const auto label = view::function_label(profile_, group.frame);
    const double rate = double(group.last - group.first) / (double(group.lasted) * 1e-9);
    const bool unobserved = group.unobserved == group.last;
    add("tasks_grow", group.loop,
        fmt::format(
            "the number of tasks of {} ({}) only grows: from {} to {} in {}, {:.{}f} a second. Most await "
            "{}{}{}. They leak, unless each belongs to something that is still open, such as a connection",
            plain(label.name), location_words(label.file, label.line), count_words(group.first),
            count_words(group.last), time_words(group.lasted), rate, rate < 10 ? 1 : 0,
            view::awaited_by_task_words(kind, ""), group.gone == 0 ? ", none was seen to end" : "",
            unobserved ? ", and nothing waits for their end" : ""),
        {{"first", double(group.first)},
         {"last", double(group.last)},
         {"per_second", rate},
         {"gone", double(group.gone)},
         {"unobserved", double(group.unobserved)},
         {"wall_ns", double(group.lasted)}},
        label);
  }

  const profile::Profile& profile_;
  const profile::TaskRows& tasks_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> task_findings(const profile::Profile& profile, const profile::TaskRows& tasks) {
  return TaskFindings(profile, tasks).all();
}

}  // namespace phlox::report
