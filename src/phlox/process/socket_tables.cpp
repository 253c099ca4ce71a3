#include "phlox/process/socket_tables.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "phlox/base/paced.h"
#include "phlox/process/text_file.h"

namespace phlox::process {
namespace {

constexpr Nanoseconds kLeastRest = kSecond / 5;
constexpr size_t kMostNamespaces = 1000;
constexpr size_t kMostMembers = 10000;

}  // namespace

SocketTables::Namespace* SocketTables::of(pid_t process) {
  const Nanoseconds now = clock_now();
  if (members_.size() >= kMostMembers) members_.clear();
  Member& member = members_[process];
  // A server is looked up for each of its connections.
  if (now >= member.next) {
    struct stat there {};
    if (::stat(fmt::format("/proc/{}/ns/net", process).c_str(), &there) != 0) return nullptr;
    member = {.inode = there.st_ino, .next = now + kLeastRest};
  }
  if (namespaces_.size() >= kMostNamespaces) namespaces_.clear();
  return &namespaces_[member.inode];
}

bool SocketTables::read(pid_t process, Namespace& into) {
  const Nanoseconds start = clock_now();
  if (start < into.next) return false;
  into.sockets = {};
  into.not_accepting.clear();
  const auto text = [process](std::string_view table) {
    return read_text(fmt::format("/proc/{}/net/{}", process, table)).value_or("");
  };
  parse_inet_sockets(text("tcp"), AF_INET, Protocol::tcp, into.sockets);
  parse_inet_sockets(text("tcp6"), AF_INET6, Protocol::tcp, into.sockets);
  parse_inet_sockets(text("udp"), AF_INET, Protocol::udp, into.sockets);
  parse_inet_sockets(text("udp6"), AF_INET6, Protocol::udp, into.sockets);
  parse_unix_sockets(text("unix"), into.sockets);
  into.next = again_after(start, clock_now(), kLeastRest);
  return true;
}

std::optional<NamedFile> SocketTables::find(pid_t process, uint64_t inode) {
  Namespace* space = of(process);
  if (space == nullptr) return {};
  do {
    const Sockets& sockets = space->sockets;
    if (const auto found = sockets.inet.find(inode); found != sockets.inet.end())
      return NamedFile{found->second, {}};
    if (const auto found = sockets.unix_sockets.find(inode); found != sockets.unix_sockets.end())
      return found->second;
  } while (read(process, *space));
  return {};
}

bool SocketTables::is_accepting(pid_t process, uint16_t port) {
  Namespace* space = of(process);
  if (space == nullptr) return false;
  if (space->sockets.accepting.contains(port)) return true;
  if (space->not_accepting.contains(port) || !read(process, *space)) return false;
  if (space->sockets.accepting.contains(port)) return true;
  space->not_accepting.insert(port);
  return false;
}

}  // namespace phlox::process
