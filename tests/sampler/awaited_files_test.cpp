#include "phlox/sampler/assemble/awaited_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"

namespace phlox::sampler {
namespace {

using profile::Awaited;
using profile::AwaitedKind;
using Kind = process::Awaits::Kind;
using process::OpenFile;

// The sockets and pipes that this process, its parent and children have are asked for; its descriptors are
// what the test says.
class AwaitedFile : public testing::Test {
 protected:
  std::optional<Awaited> wait(int descriptor, Nanoseconds since, Nanoseconds from, Nanoseconds until) {
    return files_.of_wait({{Kind::descriptor, descriptor, 0}, from, since, until});
  }
  // One that lasted until now.
  std::optional<Awaited> wait(int descriptor, int32_t others = 0) {
    const Nanoseconds now = clock_now();
    return files_.of_wait({{Kind::descriptor, descriptor, others}, now, now, now});
  }

  AwaitedFiles::Host host_;
  std::map<int, std::string> links_{{3, "/var/log/app.log"}, {4, "anon_inode:[eventfd]"}};
  int reads_ = 0;
  AwaitedFiles files_{::getpid(), host_, [this](int descriptor) {
                        ++reads_;
                        const auto found = links_.find(descriptor);
                        return found != links_.end() ? found->second : std::string();
                      }};
};

TEST_F(AwaitedFile, of_a_wait_that_is_over_needs_the_same_link_before_and_after) {
  const Nanoseconds first = clock_now();
  EXPECT_FALSE(wait(3, 0, first, first)) << "nobody knows what the descriptor was then";
  const Nanoseconds second = clock_now();
  EXPECT_EQ(wait(3, 0, second, second), (Awaited{AwaitedKind::file, "/var/log/app.log", ""}));
  const Nanoseconds third = clock_now();
  links_[3] = "/var/log/other.log";
  EXPECT_FALSE(wait(3, 0, third, third)) << "it became another one";
}

TEST_F(AwaitedFile, of_a_wait_that_goes_on_is_what_the_descriptor_names_meanwhile) {
  const Nanoseconds since = clock_now();
  EXPECT_FALSE(wait(3, since, since, since)) << "it may be over as the link is read";
  const Nanoseconds later = clock_now();
  const int before = reads_;
  EXPECT_EQ(wait(3, since, later, later), (Awaited{AwaitedKind::file, "/var/log/app.log", ""}));
  EXPECT_EQ(reads_, before) << "that was read while it lasted";
}

TEST_F(AwaitedFile, links_are_read_so_often_and_not_more) {
  for (int i = 0; i < 5000; ++i) {
    const Nanoseconds now = clock_now();
    wait(i, 0, now, now);
  }
  EXPECT_LE(reads_, 1500) << "500 a second";
}

TEST_F(AwaitedFile, without_a_descriptor_is_time_or_a_child) {
  const Nanoseconds now = clock_now();
  EXPECT_EQ(files_.of_wait({{.kind = Kind::time}, now, now, now}), (Awaited{AwaitedKind::time, "", ""}));
  EXPECT_FALSE(files_.of_wait({{}, now, now, now}));
  EXPECT_EQ(files_.of_wait({{Kind::child, 1, 0}, now, now, now}), (Awaited{AwaitedKind::process, "", "1"}))
      << "no child of ours: its command is not asked for";
}

TEST_F(AwaitedFile, of_a_child_has_its_command_as_long_as_it_is_there) {
  std::array<int, 2> until{};
  ASSERT_EQ(::pipe2(until.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(until[1]);
    char byte = 0;
    (void)!::read(until[0], &byte, 1);
    ::_exit(0);
  }
  ::usleep(20'000);  // the kernel counts starts in clock ticks
  const Nanoseconds now = clock_now();
  const auto found = files_.of_wait({{Kind::child, child, 0}, now, now, now});
  ASSERT_TRUE(found);
  EXPECT_NE(found->name.find("sampler_tests"), std::string::npos) << found->name;
  EXPECT_EQ(found->other, std::to_string(child));
  ::close(until[1]);
  ::close(until[0]);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(files_.of_child(child, "short", now).name, found->name) << "it was seen during that wait";
  EXPECT_EQ(files_.of_child(child, "short", now + 1).name, "short") << "another one with its number";
}

OpenFile tcp(std::initializer_list<uint8_t> own, uint16_t port, std::initializer_list<uint8_t> peer,
             uint16_t peer_port) {
  OpenFile file;
  file.kind = OpenFile::Kind::socket;
  file.family = AF_INET;
  std::copy(own.begin(), own.end(), file.own.address.begin());
  std::copy(peer.begin(), peer.end(), file.peer.address.begin());
  file.own.port = port;
  file.peer.port = peer_port;
  return file;
}

TEST_F(AwaitedFile, of_a_socket_is_whom_it_is_connected_to) {
  EXPECT_EQ(files_.of_file(tcp({10, 0, 0, 7}, 50'000, {10, 0, 0, 5}, 5432), ""),
            (Awaited{AwaitedKind::socket, "10.0.0.5:5432", ""}));
  EXPECT_EQ(files_.of_file(tcp({10, 0, 0, 7}, 53, {}, 0), ""),
            (Awaited{AwaitedKind::socket, "10.0.0.7:53", ""}));
  OpenFile server = tcp({127, 0, 0, 1}, 8000, {}, 0);
  server.accepts = true;
  EXPECT_EQ(files_.of_file(server, ""), (Awaited{AwaitedKind::listener, "127.0.0.1:8000", ""}));
}

TEST_F(AwaitedFile, of_a_unix_socket_is_its_path_and_who_has_the_other_end) {
  OpenFile file;
  file.kind = OpenFile::Kind::socket;
  file.family = AF_UNIX;
  EXPECT_EQ(files_.of_file(file, "/run/app.sock"), (Awaited{AwaitedKind::client, "/run/app.sock", ""}));
  file.named_by_peer = true;
  file.process = 1;
  const Awaited connected = files_.of_file(file, "/run/app.sock");
  EXPECT_EQ(connected.kind, AwaitedKind::socket);
  EXPECT_TRUE(connected.other.ends_with(" (1)")) << connected.other;
  file.process = ::getpid();
  EXPECT_EQ(files_.of_file(file, "").other, "") << "who made the pair, not who has the other end";
}

TEST_F(AwaitedFile, says_of_a_path_what_is_odd_about_it) {
  OpenFile file;
  file.kind = OpenFile::Kind::file;
  file.removed = file.cut = true;
  EXPECT_EQ(files_.of_file(file, "/b/c").name, ".../b/c (deleted)");
}

TEST_F(AwaitedFile, of_several_says_one_and_how_many_more) {
  wait(3);
  EXPECT_EQ(wait(3, 2), (Awaited{AwaitedKind::poll, "/var/log/app.log and 2 more", ""}));
  wait(4);
  EXPECT_EQ(wait(4), (Awaited{AwaitedKind::object, "eventfd", ""}));
}

// Real descriptors of this process.
TEST(AwaitedFilesOfThisProcess, are_what_they_are) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const Descriptor reads(pipe[0]), writes(pipe[1]);
  const Descriptor device(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const Descriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(server.get(), 1), 0);
  const Descriptor poll(::epoll_create1(EPOLL_CLOEXEC));
  for (const Descriptor* one : {&reads, &server}) {
    epoll_event event{};
    ASSERT_EQ(::epoll_ctl(poll.get(), EPOLL_CTL_ADD, one->get(), &event), 0);
  }
  AwaitedFiles::Host host;
  AwaitedFiles files(::getpid(), host);
  files.begin();
  const Nanoseconds now = clock_now();
  const auto of = [&](const Descriptor& one) {
    return files.of_wait({{Kind::descriptor, one.get(), 0}, now, 0, now}).value_or(Awaited());
  };
  EXPECT_EQ(of(reads), (Awaited{AwaitedKind::pipe, "", ""}));
  EXPECT_EQ(of(device), (Awaited{AwaitedKind::device, "/dev/zero", ""}));
  const Awaited listens = of(server);
  EXPECT_EQ(listens.kind, AwaitedKind::listener);
  EXPECT_TRUE(listens.name.starts_with("0.0.0.0:")) << listens.name;
  EXPECT_EQ(of(poll), (Awaited{AwaitedKind::poll, "connections to " + listens.name, ""}));
}

}  // namespace
}  // namespace phlox::sampler
