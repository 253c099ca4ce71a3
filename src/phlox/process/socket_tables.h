// The sockets of network namespaces, looked up by inode: /proc/PID/net of a process in it. Reading these
// tables takes longer the more sockets the host has, and the longer it takes, the more rarely it is done.
// Used by the recorder's thread; reads /proc only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "phlox/base/clock.h"
#include "phlox/process/open_file.h"

namespace phlox::process {

class SocketTables {
 public:
  // The socket with this inode in the process; none: it is no such socket, or the tables were read lately
  // without it.
  std::optional<NamedFile> find(pid_t process, uint64_t inode);
  // Whether any process in this process's network namespace accepts TCP connections at that port.
  bool is_accepting(pid_t process, uint16_t port);

 private:
  struct Namespace {
    Sockets sockets;
    Nanoseconds next = 0;              // not read again before
    std::set<uint16_t> not_accepting;  // of the ports that were looked up
  };

  Namespace* of(pid_t process);
  // False: it is too early.
  static bool read(pid_t process, Namespace& into);

  struct Member {
    uint64_t inode = 0;
    Nanoseconds next = 0;  // no new search before
  };

  std::map<uint64_t, Namespace> namespaces_;  // by inode
  std::unordered_map<pid_t, Member> members_;
};

}  // namespace phlox::process
