#include "phlox/target/control_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "phlox/target/cpu_list.h"
#include "phlox/target/text_file.h"

namespace phlox::target {
namespace {

constexpr size_t kDeepest = 64;  // groups on the way up

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

void read_throttling(const std::string& folder, ControlGroups& into) {
  const auto text = read_text(folder + "/cpu.stat");
  if (!text) return;
  each_part(*text, '\n', [&](std::string_view line) {
    const size_t blank = std::min(line.find(' '), line.size());
    const auto value = number<uint64_t>(line.substr(std::min(blank + 1, line.size())));
    if (line.substr(0, blank) == "nr_periods") into.periods = value.value_or(0);
    if (line.substr(0, blank) == "nr_throttled") into.throttled = value.value_or(0);
  });
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
    // A container without a control group namespace has its own group mounted, under its path on the host.
    if (below != mount.root && !below.starts_with(mount.root + "/")) return {};
    below = below.substr(mount.root.size());
  }
  // Outside of our control group namespace: "/../other".
  if (below.starts_with("/..")) return {};
  std::vector<std::string> folders;
  while (!below.empty() && below != "/" && folders.size() < kDeepest) {
    folders.push_back(mount.folder + below);
    below.resize(below.rfind('/') == std::string::npos ? 0 : below.rfind('/'));
  }
  folders.push_back(mount.folder);
  return folders;
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const auto words = parts_of(text.substr(0, std::min(text.find('\n'), text.size())), ' ');
  if (words.size() < 2) return {};
  const auto quota = number<int64_t>(words[0]), period = number<int64_t>(words[1]);  // "max": no number
  if (!quota || !period || *quota <= 0 || *period <= 0) return {};
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

ControlGroups read_control_groups(pid_t pid) {
  ControlGroups groups;
  const auto text = read_text(fmt::format("/proc/{}/cgroup", pid));
  const auto mountinfo = read_text("/proc/self/mountinfo");
  if (!text || !mountinfo) return groups;
  const auto paths = parse_memberships(*text);
  const auto path_of = [&](const std::string& controller) {
    const auto own = paths.find(controller);
    const auto unified = paths.find("");
    return own != paths.end() ? own->second : unified != paths.end() ? unified->second : std::string();
  };
  groups.path = path_of("cpu");
  for (const GroupMount& mount : parse_group_mounts(*mountinfo)) {
    const bool unified = mount.controllers.empty();
    const auto has = [&](const char* name) {
      return std::find(mount.controllers.begin(), mount.controllers.end(), name) != mount.controllers.end();
    };
    if (has("cpu") || (unified && paths.count("cpu") == 0)) {
      for (const std::string& folder : folders_of(mount, path_of("cpu"))) {
        const auto quota = read_quota(folder, unified);
        if (!quota || (groups.quota && *groups.quota <= *quota)) continue;
        groups.quota = quota;
        read_throttling(folder, groups);
      }
      const auto folders = folders_of(mount, path_of("cpu"));
      if (!folders.empty())
        groups.real_time_us = read_number<int64_t>(folders.front() + "/cpu.rt_runtime_us");
    }
    if (has("cpuset") || (unified && paths.count("cpuset") == 0)) {
      for (const std::string& folder : folders_of(mount, path_of("cpuset"))) {
        const auto list = read_text(folder + (unified ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus"));
        const auto cpus = list ? parse_cpu_list(*list) : std::vector<int>();
        if (cpus.empty()) continue;
        groups.cpus = cpus;
        break;
      }
    }
  }
  return groups;
}

}  // namespace phlox::target
