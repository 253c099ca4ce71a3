#include "phlox/process/open_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace phlox::process {
namespace {

using Kind = OpenFile::Kind;

NamedFile named(Kind kind, std::string name) {
  return {{.kind = kind}, std::move(name)};
}

TEST(DescriptorLink, says_what_it_is) {
  EXPECT_EQ(parse_descriptor_link("socket:[4711]"), (NamedFile{{.kind = Kind::socket, .inode = 4711}, ""}));
  EXPECT_EQ(parse_descriptor_link("pipe:[4712]"), (NamedFile{{.kind = Kind::pipe, .inode = 4712}, ""}));
  EXPECT_EQ(parse_descriptor_link("anon_inode:[eventfd]"), named(Kind::object, "eventfd"));
  EXPECT_EQ(parse_descriptor_link("anon_inode:inotify"), named(Kind::object, "inotify"));
  EXPECT_EQ(parse_descriptor_link("anon_inode:[pidfd]"), named(Kind::process, ""));
  EXPECT_EQ(parse_descriptor_link("/var/log/app.log"), named(Kind::file, "/var/log/app.log"));
  EXPECT_EQ(parse_descriptor_link("/dev/pts/3"), named(Kind::device, "/dev/pts/3"));
  EXPECT_EQ(parse_descriptor_link("/dev/shm/psm_1"), named(Kind::file, "/dev/shm/psm_1"));
  EXPECT_EQ(parse_descriptor_link("/tmp/x y (deleted)"),
            (NamedFile{{.kind = Kind::file, .removed = true}, "/tmp/x y"}));
  EXPECT_EQ(parse_descriptor_link("/memfd:cache (deleted)"),
            (NamedFile{{.kind = Kind::file, .removed = true}, "memfd:cache"}));
}

TEST(DescriptorLink, that_is_odd_is_no_socket) {
  EXPECT_EQ(parse_descriptor_link(""), named(Kind::unknown, ""));
  EXPECT_EQ(parse_descriptor_link("socket:[12x]"), named(Kind::object, "socket:[12x]"));
  EXPECT_EQ(parse_descriptor_link("socket:["), named(Kind::object, "socket:["));
  EXPECT_EQ(parse_descriptor_link("net:[4026531840]"), named(Kind::object, "net:[4026531840]"));
}

// As Linux 6.18 prints them.
constexpr std::string_view kTcp =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1597 1 "
    "00000000"
    "34ff6985 100 0 0 10 0\n"
    "   1: 0100007F:1F40 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1000        0 1601 1 "
    "00000000"
    "34ff6985 20 4 30 10 -1\n"
    "   2: 0100007F:D431 0100007F:1F40 06 00000000:00000000 03:00001691 00000000     0        0 0 3 "
    "0000000034f\n";
constexpr std::string_view kTcp6 =
    "  sl  local_address                         remote_address                        st tx_queue rx_queue "
    "tr\n"
    "   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 "
    "00:00000000 00000000  1000        0 1700 1 0000000034ff6985 100 0 0 10 0\n"
    "   1: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:D432 01 00000000:00000000 "
    "00:00000000 00000000  1000        0 1701 1 0000000034ff6985 100 0 0 10 0";
constexpr std::string_view kUnix =
    "Num       RefCount Protocol Flags    Type St Inode Path\n"
    "000000003ddb973c: 00000003 00000000 00000000 0001 03  1593\n"
    "000000003ddb973d: 00000002 00000000 00010000 0001 01  1594 /run/my app.sock\n"
    "000000003ddb973e: 00000002 00000000 00000000 0002 01  1595 @abstract\n";

TEST(SocketTable, of_tcp_has_both_ends_and_listeners) {
  Sockets sockets;
  parse_inet_sockets(kTcp, AF_INET, Protocol::tcp, sockets);
  ASSERT_EQ(sockets.inet.size(), 2U) << "one that is nobody's any more has no inode";
  EXPECT_TRUE(sockets.inet[1597].accepts);
  EXPECT_EQ(address_words(AF_INET, sockets.inet[1597].own), "0.0.0.0:8000");
  EXPECT_FALSE(sockets.inet[1601].accepts);
  EXPECT_EQ(address_words(AF_INET, sockets.inet[1601].own), "127.0.0.1:8000");
  EXPECT_EQ(address_words(AF_INET, sockets.inet[1601].peer), "127.0.0.1:54321");
  EXPECT_EQ(sockets.accepting, std::set<uint16_t>{8000});
}

TEST(SocketTable, of_ipv6_has_addresses_as_people_write_them) {
  Sockets sockets;
  parse_inet_sockets(kTcp6, AF_INET6, Protocol::tcp, sockets);
  EXPECT_EQ(address_words(AF_INET6, sockets.inet[1700].own), "[::1]:8080");
  EXPECT_EQ(address_words(AF_INET6, sockets.inet[1701].peer), "127.0.0.1:54322");
}

// A server of UDP has a socket in a state that of TCP would be another.
TEST(SocketTable, of_udp_has_no_listener) {
  Sockets sockets;
  parse_inet_sockets(kTcp, AF_INET, Protocol::udp, sockets);
  EXPECT_TRUE(sockets.accepting.empty());
  EXPECT_FALSE(sockets.inet[1597].accepts);
}

TEST(SocketTable, of_unix_sockets_has_their_paths) {
  Sockets sockets;
  parse_unix_sockets(kUnix, sockets);
  EXPECT_EQ(sockets.unix_sockets[1593].name, "");
  EXPECT_EQ(sockets.unix_sockets[1594].name, "/run/my app.sock");
  EXPECT_TRUE(sockets.unix_sockets[1594].file.accepts);
  EXPECT_EQ(sockets.unix_sockets[1595].name, "@abstract");
}

TEST(SocketTable, lines_that_are_none_are_passed_over) {
  for (const std::string_view text :
       {"", "\n", "head\n\n\n", "head\n0: 1 2 3\n", "head\n0: 0100007F:1F4 x:1 0A",
        "head\n0: :1F40 00000000:0000 0A 0:0 0:0 0 0 0 77 "}) {
    Sockets sockets;
    parse_inet_sockets(text, AF_INET, Protocol::tcp, sockets);
    parse_unix_sockets(text, sockets);
    EXPECT_TRUE(sockets.inet.empty() && sockets.unix_sockets.empty()) << text;
  }
}

}  // namespace
}  // namespace phlox::process
