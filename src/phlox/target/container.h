// Which container a process is in, as far as /proc tells, and who a number of a container's own counting is.
// No container engine is asked, none of its sockets is opened: a container is what its control groups are
// named after, and a PID namespace. Parsers are pure; only the read_ and find_ functions look.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"

namespace phlox::target {

// Of a control group's path, the innermost container's: the 64 hexadecimal digits that Docker, containerd,
// CRI-O and Podman name groups after, a task of ECS, the name of an LXC, Incus or systemd-nspawn container.
// Empty: none.
std::string container_of_group(std::string_view path);
// Of /proc/PID/mountinfo: engines mount /etc/hostname from a folder that is named after the container; how
// one is known from within, where its own control group shows as "/".
std::string container_of_mounts(std::string_view mountinfo);

struct Container {
  std::string id;             // empty: it is in none that is known as one
  std::string control_group;  // the path that names it, else the process's own; empty: not to be read
};
// Of the text of /proc/PID/cgroup.
Container parse_container(std::string_view memberships);
Container read_container(pid_t pid);

// The PID namespace of a container, given by its id, by how that begins, or by any process of it.
struct PidNamespace {
  std::string name;                                // "pid:[4026532281]"
  std::vector<std::pair<pid_t, pid_t>> processes;  // as it counts, as we count; by the former
};
Result<PidNamespace> find_pid_namespace(const std::string& container);
// Who is `pid` there?
Result<pid_t> find_within(const std::string& container, pid_t pid);

}  // namespace phlox::target
