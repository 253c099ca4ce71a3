#include "phlox/process/control_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "phlox/process/cpu_list.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

constexpr size_t kDeepest = 64;  // parent groups
constexpr uint64_t kMostMicroseconds = uint64_t{1} << 53;

template <class Visit>
void each_part(std::string_view text, char divider, Visit&& visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(divider), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::vector<std::string_view> parts_of(std::string_view text, char divider) {
  std::vector<std::string_view> parts;
  each_part(text, divider, [&](std::string_view part) { parts.push_back(part); });
  return parts;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return {};
  return value;
}

template <class T>
std::optional<T> read_number(const std::string& file) {
  const auto text = read_text(file);
  return text ? number<T>(*text) : std::nullopt;
}

std::optional<double> read_quota(const std::string& folder, bool unified) {
  if (unified) {
    const auto text = read_text(folder + "/cpu.max");
    return text ? parse_cpu_max(*text) : std::nullopt;
  }
  const auto quota = read_number<int64_t>(folder + "/cpu.cfs_quota_us");
  const auto period = read_number<int64_t>(folder + "/cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return {};
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// The groups of a controller that a process is in: the hierarchy, and the folders of their files, innermost
// first.
struct Place {
  bool unified = false;
  std::string path;
  std::vector<std::string> folders;
};
std::optional<Place> place_of(const std::map<std::string, std::string>& memberships,
                              const std::vector<GroupMount>& mounts, const std::string& controller) {
  const auto own = memberships.find(controller), unified = memberships.find("");
  const bool is_unified = own == memberships.end();
  if (is_unified && unified == memberships.end()) return {};
  const std::string& path = is_unified ? unified->second : own->second;
  for (const GroupMount& mount : mounts) {
    const auto& has = mount.controllers;
    if (is_unified ? !has.empty() : std::find(has.begin(), has.end(), controller) == has.end()) continue;
    auto folders = folders_of(mount, path);
    if (!folders.empty()) return Place{is_unified, path, std::move(folders)};
  }
  return Place{is_unified, path, {}};
}

std::optional<CpuQuota> least_quota(const Place& place) {
  std::optional<CpuQuota> least;
  for (const std::string& folder : place.folders) {
    const auto quota = read_quota(folder, place.unified);
    if (quota && (!least || *quota < least->cpus)) least = CpuQuota{place.path, folder, *quota};
  }
  return least;
}

struct Groups {
  std::map<std::string, std::string> memberships;
  std::vector<GroupMount> mounts;
};
std::optional<Groups> read_groups(pid_t pid) {
  const auto text = read_text(fmt::format("/proc/{}/cgroup", pid));
  const auto mountinfo = read_text("/proc/self/mountinfo");
  if (!text || !mountinfo) return {};
  return Groups{parse_memberships(*text), parse_group_mounts(*mountinfo)};
}

}  // namespace

std::map<std::string, std::string> parse_memberships(std::string_view text) {
  std::map<std::string, std::string> paths;
  each_part(text, '\n', [&](std::string_view line) {
    // "4:memory:/a:b": a path may hold colons.
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) return;
    const std::string path(line.substr(second + 1));
    if (second == first + 1) paths[""] = path;
    each_part(line.substr(first + 1, second - first - 1), ',',
              [&](std::string_view controller) { paths[std::string(controller)] = path; });
  });
  return paths;
}

std::vector<GroupMount> parse_group_mounts(std::string_view mountinfo) {
  std::vector<GroupMount> mounts;
  each_part(mountinfo, '\n', [&](std::string_view line) {
    // "36 35 0:30 ROOT FOLDER options [tags...] - type source options"
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) return;
    const auto before = parts_of(line.substr(0, dash), ' ');
    const auto after = parts_of(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3 || (after[0] != "cgroup" && after[0] != "cgroup2")) return;
    GroupMount mount{{}, std::string(before[3]), std::string(before[4])};
    if (after[0] == "cgroup")
      each_part(after[2], ',', [&](std::string_view word) { mount.controllers.emplace_back(word); });
    mounts.push_back(std::move(mount));
  });
  return mounts;
}

std::vector<std::string> folders_of(const GroupMount& mount, const std::string& path) {
  std::string below = path;
  if (mount.root != "/") {
    // Without a control group namespace, a container has its own group mounted, under its path on the host.
    if (below != mount.root && !below.starts_with(mount.root + "/")) return {};
    below = below.substr(mount.root.size());
  }
  // Outside our control group namespace: "/../other".
  if (below.starts_with("/..")) return {};
  std::vector<std::string> folders;
  while (!below.empty() && below != "/" && folders.size() < kDeepest) {
    folders.push_back(mount.folder + below);
    below.resize(below.rfind('/') == std::string::npos ? 0 : below.rfind('/'));
  }
  folders.push_back(mount.folder);
  return folders;
}

GroupFolders read_group_folders(pid_t pid, const std::string& controller) {
  const auto groups = read_groups(pid);
  auto place = groups ? place_of(groups->memberships, groups->mounts, controller) : std::nullopt;
  return place ? GroupFolders{place->unified, std::move(place->folders)} : GroupFolders{};
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const auto words = parts_of(text.substr(0, std::min(text.find('\n'), text.size())), ' ');
  if (words.size() < 2) return {};
  const auto quota = number<int64_t>(words[0]), period = number<int64_t>(words[1]);  // "max": no number
  if (!quota || !period || *quota <= 0 || *period <= 0) return {};
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

Throttling parse_throttling(std::string_view text) {
  Throttling throttling;
  each_part(text, '\n', [&](std::string_view line) {
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string_view name = line.substr(0, blank);
    const auto value = number<uint64_t>(line.substr(std::min(blank + 1, line.size()))).value_or(0);
    if (name == "nr_periods") throttling.periods = value;
    if (name == "nr_throttled") throttling.throttled = value;
    if (name == "throttled_time") throttling.time_ns = value;
    if (name == "throttled_usec") throttling.time_ns = std::min(value, kMostMicroseconds) * 1000;
  });
  return throttling;
}

Throttling CpuQuota::read_throttling() const {
  return parse_throttling(read_text(folder + "/cpu.stat").value_or(""));
}

std::optional<CpuQuota> find_cpu_quota(pid_t pid) {
  const auto groups = read_groups(pid);
  const auto place = groups ? place_of(groups->memberships, groups->mounts, "cpu") : std::nullopt;
  return place ? least_quota(*place) : std::nullopt;
}

ControlGroups read_control_groups(pid_t pid) {
  ControlGroups groups;
  const auto read = read_groups(pid);
  if (!read) return groups;
  if (const auto place = place_of(read->memberships, read->mounts, "cpu")) {
    groups.path = place->path;
    if (const auto least = least_quota(*place)) {
      const Throttling throttling = least->read_throttling();
      groups.quota = least->cpus;
      groups.periods = throttling.periods;
      groups.throttled = throttling.throttled;
    }
    if (!place->folders.empty())
      groups.real_time_us = read_number<int64_t>(place->folders.front() + "/cpu.rt_runtime_us");
  }
  const auto place = place_of(read->memberships, read->mounts, "cpuset");
  for (const std::string& folder : place ? place->folders : std::vector<std::string>()) {
    const auto list =
        read_text(folder + (place->unified ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus"));
    groups.cpus = list ? parse_cpu_list(*list) : std::vector<int>();
    if (!groups.cpus.empty()) break;
  }
  return groups;
}

}  // namespace phlox::process
