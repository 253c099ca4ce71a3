#include "phlox/process/container.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>

#include "phlox/base/text.h"
#include "phlox/process/control_group.h"
#include "phlox/process/process_state.h"
#include "phlox/process/process_tree.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

constexpr size_t kIdLength = 64;
// docker ps prints 12; fewer than 4 would match too many.
constexpr size_t kShortestPrefix = 4;
constexpr size_t kMostNamed = 8;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The last run of exactly 64 hexadecimal digits: "docker-ID.scope", "kubepods-pod1.slice:cri-containerd:ID".
std::string_view long_id_in(std::string_view name) {
  size_t end = name.size();
  while (end > 0) {
    while (end > 0 && !is_hex(name[end - 1])) --end;
    size_t begin = end;
    while (begin > 0 && is_hex(name[begin - 1])) --begin;
    if (end - begin == kIdLength) return name.substr(begin, kIdLength);
    end = begin;
  }
  return {};
}

// ECS: 32 hexadecimal digits, '-', digits.
bool is_task(std::string_view name) {
  return name.size() > 33 && name[32] == '-' && std::all_of(name.begin(), name.begin() + 32, is_hex) &&
         std::all_of(name.begin() + 33, name.end(), is_digit);
}

std::string_view between(std::string_view name, std::string_view before, std::string_view after) {
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return {};
  return name.substr(before.size(), name.size() - before.size() - after.size());
}

// systemd escapes characters that a unit name may not contain as \x2d.
std::string unescape_unit(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string_view rest = text.substr(i);
    uint32_t code = 0;
    if (rest.size() >= 4 && rest.starts_with("\\x")) {
      std::string_view digits = rest.substr(2, 2);
      if (take_number(digits, code, 16) && digits.empty()) {
        name += static_cast<char>(code);
        i += 3;
        continue;
      }
    }
    name += text[i];
  }
  return name;
}

std::string id_in(std::string_view name, std::string_view parent) {
  // Podman's monitor of a container, in a group next to it.
  if (name.starts_with("libpod-conmon-") || name.starts_with("crio-conmon-")) return {};
  if (const auto id = long_id_in(name); !id.empty()) return std::string(id);
  if (is_task(name)) return std::string(name);
  if (const auto lxc = between(name, "lxc.payload.", ""); !lxc.empty()) return std::string(lxc);
  if (parent == "lxc") return std::string(name);
  if (const auto machine = between(name, "machine-", ".scope"); !machine.empty())
    return unescape_unit(machine);
  return {};
}

std::optional<std::string> pid_namespace_of(pid_t pid) {
  char text[64];
  const ssize_t size = ::readlink(fmt::format("/proc/{}/ns/pid", pid).c_str(), text, sizeof text);
  if (size <= 0) return {};
  return std::string(text, static_cast<size_t>(size));
}

// Our number first, the innermost namespace's last.
std::vector<pid_t> numbers_of(pid_t pid) {
  const auto status = read_status(pid);
  return status ? status->namespace_pids : std::vector<pid_t>();
}

tl::unexpected<Error> hidden(const std::string& container) {
  return fail(ErrorKind::permission,
              fmt::format("{}: its PID namespace is not to be seen (/proc/PID/ns/pid)", container),
              "sudo phlox, or run phlox within the container");
}

// A process whose container has this name, or an id that begins with it. The innermost one: the process that
// started the container may be in its control group too, but in the host's namespace.
Result<pid_t> any_process_of(const std::string& container, const std::vector<pid_t>& all) {
  std::set<std::string> ids;
  pid_t found = 0;
  size_t deepest = 0;
  for (const pid_t pid : all) {
    const std::string id = read_container(pid).id;
    const bool begins = container.size() >= kShortestPrefix && id.size() == kIdLength;
    if (id.empty() || (id != container && !(begins && id.starts_with(container)))) continue;
    ids.insert(id);
    const size_t depth = numbers_of(pid).size();
    if (found != 0 && depth <= deepest) continue;
    found = pid;
    deepest = depth;
  }
  if (ids.size() > 1) {
    return fail(ErrorKind::usage,
                fmt::format("{} is how the ids of {} containers begin: {}", container, ids.size(),
                            fmt::join(ids, ", ")),
                "more of the id");
  }
  if (found != 0) return found;
  return fail(
      ErrorKind::no_such_process, fmt::format("no process is in a container {}", container),
      "its id: docker ps --no-trunc, crictl ps --no-trunc; or any process of it, as this machine counts: "
      "docker inspect -f '{{.State.Pid}}' NAME");
}

}  // namespace

std::string container_of_group(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = path.rfind('/');
    const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
    path = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
    const size_t before = path.rfind('/');
    const std::string_view parent = before == std::string_view::npos ? path : path.substr(before + 1);
    if (auto id = id_in(name, parent); !id.empty()) return id;
  }
  return {};
}

std::string container_of_mounts(std::string_view mountinfo) {
  // "... /var/lib/docker/containers/ID/hostname /etc/hostname ...", ".../overlay-containers/ID/userdata/..."
  constexpr std::string_view kFolder = "containers/";
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    const std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    if (line.find(" /etc/hostname ") == std::string_view::npos) continue;
    // Podman uses /var/lib/containers/storage/overlay-containers/ID.
    for (size_t at = line.find(kFolder); at != std::string_view::npos; at = line.find(kFolder, at + 1)) {
      const std::string_view rest = line.substr(at + kFolder.size());
      const std::string_view id = rest.substr(0, rest.find('/'));
      if (id.size() == kIdLength && long_id_in(id) == id) return std::string(id);
    }
  }
  return {};
}

Container parse_container(std::string_view memberships) {
  const auto paths = parse_memberships(memberships);
  Container container;
  for (const auto& [controller, path] : paths) {
    container.id = container_of_group(path);
    if (!container.id.empty()) {
      container.control_group = path;
      return container;
    }
    // The path of version 2; if that is the root, the longest path.
    if (controller.empty() || container.control_group == "/" || container.control_group.empty()) {
      if (path.size() >= container.control_group.size()) container.control_group = path;
    }
  }
  return container;
}

Container read_container(pid_t pid) {
  const auto text = read_text(fmt::format("/proc/{}/cgroup", pid));
  Container container = text ? parse_container(*text) : Container();
  if (container.id.empty()) {
    if (const auto mounts = read_text(fmt::format("/proc/{}/mountinfo", pid)))
      container.id = container_of_mounts(*mounts);
  }
  return container;
}

Result<PidNamespace> find_pid_namespace(const std::string& container) {
  const auto all = read_processes();
  pid_t member = parse_number<pid_t>(container).value_or(0);
  if (!std::binary_search(all.begin(), all.end(), member)) {
    const auto found = any_process_of(container, all);
    if (!found) return fail(found);
    member = *found;
  }
  const auto name = pid_namespace_of(member);
  if (!name) return hidden(container);
  PidNamespace space{*name, {}};
  for (const pid_t pid : all) {
    if (pid_namespace_of(pid) != *name) continue;
    if (const auto numbers = numbers_of(pid); !numbers.empty())
      space.processes.emplace_back(numbers.back(), pid);
  }
  std::sort(space.processes.begin(), space.processes.end());
  return space;
}

Result<pid_t> find_within(const std::string& container, pid_t pid) {
  const auto space = find_pid_namespace(container);
  if (!space) return fail(space);
  for (const auto& [within, here] : space->processes) {
    if (within == pid) return here;
  }
  std::vector<pid_t> there;
  for (const auto& [within, here] : space->processes) {
    if (there.size() < kMostNamed) there.push_back(within);
  }
  return fail(ErrorKind::no_such_process, fmt::format("{} has no process {}", container, pid),
              fmt::format("as it counts, its processes are {}{}", fmt::join(there, ", "),
                          space->processes.size() > there.size() ? ", …" : ""));
}

}  // namespace phlox::process
