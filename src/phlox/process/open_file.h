// The kind and name of a process's open file, from outside: by the /proc link of its descriptor and, for a
// socket, by the tables of its network namespace. All pure: text in, values out.
#pragma once

#include <sys/types.h>

#include <array>
#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace phlox::process {

// One end of a socket. IPv4: the first four bytes.
struct SocketEnd {
  std::array<uint8_t, 16> address{};
  uint16_t port = 0;

  friend auto operator<=>(const SocketEnd&, const SocketEnd&) = default;
};

// Plain bytes; the name is stored separately.
struct OpenFile {
  enum class Kind : uint8_t { unknown, file, socket, pipe, device, object, process };
  Kind kind = Kind::unknown;
  bool removed = false;                // from its folder
  bool cut = false;                    // its name is the end of a longer one
  bool accepts = false;                // a socket that listens
  bool reads = false, writes = false;  // which end of a pipe; both: not known
  bool named_by_peer = false;          // a Unix socket whose other end has the name
  uint16_t family = 0;                 // AF_INET...
  SocketEnd own = {}, peer = {};
  uint64_t inode = 0;
  uint64_t peer_inode = 0;  // of a Unix socket that has no name; 0: not known
  // Unix socket: the process at the other end when it was connected; pidfd: its process; 0: not known.
  pid_t process = 0;

  friend auto operator<=>(const OpenFile&, const OpenFile&) = default;
};

struct NamedFile {
  OpenFile file;
  // A path, also for a Unix socket; the kernel's name for an object: "eventfd".
  std::string name;

  friend bool operator==(const NamedFile&, const NamedFile&) = default;
};

// From /proc/PID/fd/N (fs/proc/fd.c). A device is recognised only by its folder: no file of a foreign file
// system is opened.
NamedFile parse_descriptor_link(std::string_view link);

// "10.0.0.5:5432", "[::1]:80"; IPv4 in IPv6 is written as IPv4.
std::string address_words(uint16_t family, const SocketEnd& end);

// The sockets of a network namespace, by inode.
struct Sockets {
  std::unordered_map<uint64_t, OpenFile> inet;
  std::unordered_map<uint64_t, NamedFile> unix_sockets;
  std::set<uint16_t> accepting;  // ports on which TCP listens
};
// From /proc/PID/net/tcp, tcp6, udp, udp6 (net/ipv4/tcp_ipv4.c: get_tcp4_sock and its relatives).
enum class Protocol { tcp, udp };
void parse_inet_sockets(std::string_view table, uint16_t family, Protocol protocol, Sockets& into);
// From /proc/PID/net/unix (net/unix/af_unix.c: unix_seq_show).
void parse_unix_sockets(std::string_view table, Sockets& into);

}  // namespace phlox::process
