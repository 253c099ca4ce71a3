#include "phlox/process/open_file.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "phlox/base/text.h"

namespace phlox::process {
namespace {

// include/net/tcp_states.h
constexpr unsigned kListen = 10;
// Flag of a listening Unix socket: __SO_ACCEPTCON (include/uapi/linux/net.h).
constexpr unsigned kAccepts = 1U << 16;

// "socket:[4711]"
std::optional<uint64_t> inode_of(std::string_view link, std::string_view before) {
  uint64_t inode = 0;
  if (!link.starts_with(before)) return {};
  link.remove_prefix(before.size());
  return take_number(link, inode) && link == "]" ? std::optional(inode) : std::nullopt;
}

NamedFile object(std::string_view name) {
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  const bool is_process = name == "pidfd";
  return {{.kind = is_process ? OpenFile::Kind::process : OpenFile::Kind::object},
          is_process ? std::string() : std::string(name)};
}

std::string_view next_word(std::string_view& line) {
  while (line.starts_with(' ')) line.remove_prefix(1);
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

template <class Line>
void each_line(std::string_view text, Line&& line) {
  // The first line has the column names.
  for (size_t at = text.find('\n'); at != std::string_view::npos && at + 1 < text.size();) {
    const size_t end = std::min(text.find('\n', at + 1), text.size());
    line(text.substr(at + 1, end - at - 1));
    at = end;
  }
}

template <class Number>
std::optional<Number> hexadecimal(std::string_view word) {
  Number value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(value) : std::nullopt;
}

// "0100007F:1F90": 32-bit words in this machine's byte order, and the port as a number.
std::optional<SocketEnd> parse_end(std::string_view word, uint16_t family) {
  const size_t words = family == AF_INET6 ? 4 : 1;
  const size_t colon = word.find(':');
  if (colon != words * 8) return {};
  SocketEnd end;
  for (size_t i = 0; i < words; ++i) {
    const auto value = hexadecimal<uint32_t>(word.substr(i * 8, 8));
    if (!value) return {};
    std::memcpy(end.address.data() + i * 4, &*value, 4);
  }
  const auto port = hexadecimal<uint16_t>(word.substr(colon + 1));
  if (!port) return {};
  end.port = *port;
  return end;
}

}  // namespace

NamedFile parse_descriptor_link(std::string_view link) {
  using Kind = OpenFile::Kind;
  if (const auto inode = inode_of(link, "socket:[")) return {{.kind = Kind::socket, .inode = *inode}, ""};
  if (const auto inode = inode_of(link, "pipe:[")) return {{.kind = Kind::pipe, .inode = *inode}, ""};
  constexpr std::string_view kObject = "anon_inode:";
  if (link.starts_with(kObject)) return object(link.substr(kObject.size()));
  if (!link.starts_with('/'))
    return {{.kind = link.empty() ? Kind::unknown : Kind::object}, std::string(link)};
  NamedFile file{{.kind = Kind::file}, {}};
  constexpr std::string_view kRemoved = " (deleted)";
  if (link.ends_with(kRemoved)) {
    file.file.removed = true;
    link.remove_suffix(kRemoved.size());
  }
  // A memfd's path is in no real folder.
  if (link.starts_with("/memfd:")) link.remove_prefix(1);
  const bool in_memory = link.starts_with("/dev/shm/") || link.starts_with("/dev/mqueue/");
  if (link.starts_with("/dev/") && !in_memory) file.file.kind = Kind::device;
  file.name = link;
  return file;
}

std::string address_words(uint16_t family, const SocketEnd& end) {
  constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool mapped = family == AF_INET6 && std::equal(kMapped.begin(), kMapped.end(), end.address.begin());
  char text[INET6_ADDRSTRLEN] = {};
  if (family == AF_INET || mapped) {
    ::inet_ntop(AF_INET, end.address.data() + (mapped ? 12 : 0), text, sizeof text);
    return fmt::format("{}:{}", text, end.port);
  }
  ::inet_ntop(AF_INET6, end.address.data(), text, sizeof text);
  return fmt::format("[{}]:{}", text, end.port);
}

void parse_inet_sockets(std::string_view table, uint16_t family, Protocol protocol, Sockets& into) {
  each_line(table, [&](std::string_view line) {
    // "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 12345 ..."
    next_word(line);
    const auto own = parse_end(next_word(line), family), peer = parse_end(next_word(line), family);
    const auto state = hexadecimal<unsigned>(next_word(line));
    for (int skipped = 0; skipped < 5; ++skipped) next_word(line);
    uint64_t inode = 0;
    std::string_view word = next_word(line);
    if (!own || !peer || !state || !take_number(word, inode)) return;
    const bool accepts = protocol == Protocol::tcp && *state == kListen;
    if (accepts) into.accepting.insert(own->port);
    if (inode == 0) return;
    into.inet[inode] = {.kind = OpenFile::Kind::socket,
                        .accepts = accepts,
                        .family = family,
                        .own = *own,
                        .peer = *peer,
                        .inode = inode};
  });
}

void parse_unix_sockets(std::string_view table, Sockets& into) {
  each_line(table, [&](std::string_view line) {
    // "0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/app.sock"
    for (int skipped = 0; skipped < 3; ++skipped) next_word(line);
    const auto flags = hexadecimal<unsigned>(next_word(line));
    for (int skipped = 0; skipped < 2; ++skipped) next_word(line);
    uint64_t inode = 0;
    std::string_view word = next_word(line);
    if (!flags || !take_number(word, inode) || inode == 0) return;
    if (line.starts_with(' ')) line.remove_prefix(1);
    into.unix_sockets[inode] = {{.kind = OpenFile::Kind::socket,
                                 .accepts = (*flags & kAccepts) != 0,
                                 .family = AF_UNIX,
                                 .inode = inode},
                                std::string(line)};
  });
}

}  // namespace phlox::process
