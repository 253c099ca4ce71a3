#include "phlox/process/socket_tables.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phlox/base/descriptor.h"

namespace phlox::process {
namespace {

uint64_t inode_of(const Descriptor& socket) {
  struct stat there {};
  EXPECT_EQ(::fstat(socket.get(), &there), 0);
  return there.st_ino;
}

// Sockets of this process.
TEST(SocketTables, know_a_server_and_both_ends_of_a_connection) {
  const Descriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(::bind(server.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(server.get(), 1), 0);
  ASSERT_EQ(::getsockname(server.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  const uint16_t port = ::ntohs(at.sin_port);
  const Descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);

  SocketTables tables;
  const auto listens = tables.find(::getpid(), inode_of(server));
  ASSERT_TRUE(listens);
  EXPECT_TRUE(listens->file.accepts);
  EXPECT_EQ(listens->file.own.port, port);
  const auto connected = tables.find(::getpid(), inode_of(client));
  ASSERT_TRUE(connected);
  EXPECT_EQ(connected->file.peer.port, port);
  EXPECT_EQ(address_words(AF_INET, connected->file.peer), "127.0.0.1:" + std::to_string(port));
  EXPECT_TRUE(tables.is_accepting(::getpid(), port));
  EXPECT_FALSE(tables.is_accepting(::getpid(), connected->file.own.port));
  EXPECT_FALSE(tables.find(::getpid(), 1));
  EXPECT_FALSE(tables.find(0, inode_of(client))) << "no such process";
}

}  // namespace
}  // namespace phlox::process
