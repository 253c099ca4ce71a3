#include "phlox/report/cpu_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/text.h"
#include "phlox/profile/cpu_shortage.h"
#include "phlox/report/estimate.h"
#include "phlox/report/table.h"

namespace phlox::report {
namespace {

// Parts of a quota's periods, and of the host's CPU time, from which on it is named as the reason.
constexpr double kUsedUp = 0.05;
constexpr double kStolen = 0.1;
constexpr double kIdle = 0.25;
constexpr double kTakenByOthers = 0.1;

}  // namespace

Nanoseconds used_by_descendants(const Report& report) {
  Nanoseconds used = 0;
  for (const auto& row : report.not_examined) used += row.cpu;
  return used;
}

std::string descendant_words(const Report& report) {
  constexpr size_t kMost = 3, kLongest = 60;
  std::string words;
  const auto groups = profile::descendant_groups(report.not_examined);
  for (size_t i = 0; i < std::min(kMost, groups.size()); ++i) {
    const auto& group = groups[i];
    words += fmt::format("{}{}{} ({})", i == 0 ? "" : ", ",
                         group.processes > 1 ? fmt::format("{} processes ", group.processes) : "",
                         plain(shortened(group.command_line, kLongest)), time_words(group.cpu));
  }
  if (groups.size() > kMost) words += " and others";
  return words;
}

std::string why_no_cpu(const profile::Profile& profile, const Report& report, Nanoseconds used,
                       Nanoseconds active, Numbers& numbers, Names& names) {
  const profile::CpuUse use = profile::cpu_use(profile);
  const auto most =
      std::max_element(use.groups.begin(), use.groups.end(), [](const auto& one, const auto& other) {
        return time_share(one.throttled, one.periods) < time_share(other.throttled, other.periods);
      });
  if (most != use.groups.end() && time_share(most->throttled, most->periods) >= kUsedUp) {
    numbers.insert(numbers.end(), {{"quota_cpus", most->quota},
                                   {"quota_periods", double(most->periods)},
                                   {"quota_used_up", double(most->throttled)},
                                   {"quota_held_back_ns", double(most->held_back)}});
    names.insert(names.end(), {{"because", "quota"}, {"control_group", most->path}});
    return fmt::format("the quota of {:g} CPUs of control group {} was used up in {} of {} periods",
                       most->quota, plain(most->path), most->throttled, most->periods);
  }
  if (!use.is_known()) return "the machine or the container's quota is short of CPUs";
  const Nanoseconds all = use.busy + use.idle + use.stolen, children = used_by_descendants(report),
                    others = std::max<Nanoseconds>(0, use.busy - used - children);
  numbers.insert(numbers.end(), {{"others_share", time_share(others, all)},
                                 {"children_share", time_share(children, all)},
                                 {"idle_share", time_share(use.idle, all)},
                                 {"stolen_share", time_share(use.stolen, all)}});
  names.emplace_back("because", "");
  std::string& because = names.back().second;
  if (time_share(use.stolen, all) >= kStolen) {
    because = "host";
    return fmt::format("the host of this virtual machine gave {} of its CPUs to others",
                       share_words(time_share(use.stolen, all)));
  }
  if (time_share(use.idle, all) >= kIdle) {
    const std::string idle =
        fmt::format("the CPUs were idle {} of the recording", share_words(time_share(use.idle, all)));
    const bool known = use.cpus > 0 && use.allowed > 0;
    because = !known || use.allowed < use.cpus ? "binding" : "queue";
    if (because == "queue")
      return idle + ": there was CPU time to spare, but not where or when these threads needed it";
    if (!known) return idle + "; are these threads bound to some of them (taskset, cpuset)?";
    return fmt::format("{}, but these threads may run on only {} of {} (taskset, cpuset)", idle, use.allowed,
                       use.cpus);
  }
  // It has as many CPUs as it could use, except for those that others take.
  const int64_t cpus = use.allowed > 0 ? use.allowed : use.cpus;
  const bool fits = cpus > 0 && double(active) <= double(cpus) * double(report.elapsed) &&
                    time_share(std::max(others, children), all) >= kTakenByOthers;
  because = used >= std::max(others, children) && !fits ? "itself"
            : children >= others                        ? "children"
                                                        : "others";
  if (because == "children")
    return fmt::format(
        "processes that the program itself started used {} of the CPUs, the recorded ones {}: {}",
        share_words(time_share(children, all)), share_words(time_share(used, all)), descendant_words(report));
  return because == "itself"
             ? fmt::format(
                   "there are more such threads than CPUs; the recorded processes used {} of the CPUs",
                   share_words(time_share(used, all)))
             : fmt::format("other programs used {} of the CPUs, the recorded processes {}",
                           share_words(time_share(others, all)), share_words(time_share(used, all)));
}

}  // namespace phlox::report
