// The container of a process, as far as /proc shows it, and the process behind a container's own number. No
// container engine is asked, none of its sockets is opened: a container is identified by the name of its
// control groups, and by a PID namespace. Parsers are pure; only the read_ and find_ functions open files.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"

namespace phlox::process {

// From a control group's path, the innermost container: the 64 hexadecimal digits that Docker, containerd,
// CRI-O and Podman use as group names, a task of ECS, the name of an LXC, Incus or systemd-nspawn container.
// Empty: none.
std::string container_of_group(std::string_view path);
// From /proc/PID/mountinfo: engines mount /etc/hostname from a folder with the container's name. This
// identifies a container from within, where its own control group is shown as "/".
std::string container_of_mounts(std::string_view mountinfo);

struct Container {
  std::string id;             // empty: in no container that is known
  std::string control_group;  // the path that names it, otherwise the process's own; empty: not readable
};
// From the text of /proc/PID/cgroup.
Container parse_container(std::string_view memberships);
Container read_container(pid_t pid);

// The PID namespace of a container, given by its id, by the beginning of its id, or by any process in it.
struct PidNamespace {
  std::string name;                                // "pid:[4026532281]"
  std::vector<std::pair<pid_t, pid_t>> processes;  // PID in the container, PID for us; sorted by the former
};
Result<PidNamespace> find_pid_namespace(const std::string& container);
// The process whose PID in the container is `pid`.
Result<pid_t> find_within(const std::string& container, pid_t pid);

}  // namespace phlox::process
