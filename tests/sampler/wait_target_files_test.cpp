#include "phlox/sampler/assemble/wait_target_files.h"

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

using profile::WaitTarget;
using profile::WaitTargetKind;
using Kind = process::WaitsFor::Kind;
using process::OpenFile;

// The sockets and pipes that this process, its parent and children have are asked for; its descriptors are
// what the test says.
class WaitTargetFile : public testing::Test {
 protected:
  std::optional<WaitTarget> wait(int descriptor, Nanoseconds since, Nanoseconds from, Nanoseconds until) {
    return files_.of_wait({{Kind::descriptor, descriptor, 0}, from, since, until});
  }
  // One that lasted until now.
  std::optional<WaitTarget> wait(int descriptor, int32_t others = 0) {
    const Nanoseconds now = clock_now();
    return files_.of_wait({{Kind::descriptor, descriptor, others}, now, now, now});
  }

  WaitTargetFiles::Host host_;
  std::map<int, std::string> links_{{3, "/var/log/app.log"}, {4, "anon_inode:[eventfd]"}};
  int reads_ = 0;
  WaitTargetFiles files_{::getpid(), host_, [this](int descriptor) {
                           ++reads_;
                           const auto found = links_.find(descriptor);
                           return found != links_.end() ? found->second : std::string();
                         }};
};

TEST_F(WaitTargetFile, of_a_wait_that_is_over_needs_the_same_link_before_and_after) {
  const Nanoseconds first = clock_now();
  EXPECT_FALSE(wait(3, 0, first, first)) << "nobody knows what the descriptor was then";
  const Nanoseconds second = clock_now();
  EXPECT_EQ(wait(3, 0, second, second), (WaitTarget{WaitTargetKind::file, "/var/log/app.log", ""}));
  const Nanoseconds third = clock_now();
  links_[3] = "/var/log/other.log";
  EXPECT_FALSE(wait(3, 0, third, third)) << "it became another one";
}

TEST_F(WaitTargetFile, of_a_wait_that_goes_on_is_what_the_descriptor_names_meanwhile) {
  const Nanoseconds since = clock_now();
  EXPECT_FALSE(wait(3, since, since, since)) << "it may be over as the link is read";
  const Nanoseconds later = clock_now();
  const int before = reads_;
  EXPECT_EQ(wait(3, since, later, later), (WaitTarget{WaitTargetKind::file, "/var/log/app.log", ""}));
  EXPECT_EQ(reads_, before) << "that was read while it lasted";
}

TEST_F(WaitTargetFile, links_are_read_so_often_and_not_more) {
  for (int i = 0; i < 5000; ++i) {
    const Nanoseconds now = clock_now();
    wait(i, 0, now, now);
  }
  EXPECT_LE(reads_, 1500) << "500 a second";
}

TEST_F(WaitTargetFile, without_a_descriptor_is_time_or_a_child) {
  const Nanoseconds now = clock_now();
  EXPECT_EQ(files_.of_wait({{.kind = Kind::time}, now, now, now}),
            (WaitTarget{WaitTargetKind::time, "", ""}));
  EXPECT_FALSE(files_.of_wait({{}, now, now, now}));
  EXPECT_EQ(files_.of_wait({{Kind::child, 1, 0}, now, now, now}),
            (WaitTarget{WaitTargetKind::process, "", "1"}))
      << "no child of ours: its command is not asked for";
}

TEST_F(WaitTargetFile, of_a_child_has_its_command_as_long_as_it_is_there) {
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

TEST_F(WaitTargetFile, of_a_socket_is_its_peer) {
  EXPECT_EQ(files_.of_file(tcp({10, 0, 0, 7}, 50'000, {10, 0, 0, 5}, 5432), ""),
            (WaitTarget{WaitTargetKind::socket, "10.0.0.5:5432", ""}));
  EXPECT_EQ(files_.of_file(tcp({10, 0, 0, 7}, 53, {}, 0), ""),
            (WaitTarget{WaitTargetKind::socket, "10.0.0.7:53", ""}));
  OpenFile server = tcp({127, 0, 0, 1}, 8000, {}, 0);
  server.accepts = true;
  EXPECT_EQ(files_.of_file(server, ""), (WaitTarget{WaitTargetKind::listener, "127.0.0.1:8000", ""}));
}

TEST_F(WaitTargetFile, of_a_unix_socket_is_its_path_and_the_holder_of_the_other_end) {
  OpenFile file;
  file.kind = OpenFile::Kind::socket;
  file.family = AF_UNIX;
  EXPECT_EQ(files_.of_file(file, "/run/app.sock"), (WaitTarget{WaitTargetKind::client, "/run/app.sock", ""}));
  file.named_by_peer = true;
  file.process = 1;
  const WaitTarget connected = files_.of_file(file, "/run/app.sock");
  EXPECT_EQ(connected.kind, WaitTargetKind::socket);
  EXPECT_TRUE(connected.other.ends_with(" (1)")) << connected.other;
  file.process = ::getpid();
  EXPECT_EQ(files_.of_file(file, "").other, "") << "who made the pair, not who has the other end";
}

TEST_F(WaitTargetFile, says_of_a_path_what_is_odd_about_it) {
  OpenFile file;
  file.kind = OpenFile::Kind::file;
  file.removed = file.cut = true;
  EXPECT_EQ(files_.of_file(file, "/b/c").name, ".../b/c (deleted)");
}

TEST_F(WaitTargetFile, of_several_says_one_and_how_many_more) {
  wait(3);
  EXPECT_EQ(wait(3, 2), (WaitTarget{WaitTargetKind::poll, "/var/log/app.log and 2 more", ""}));
  wait(4);
  EXPECT_EQ(wait(4), (WaitTarget{WaitTargetKind::object, "eventfd", ""}));
}

// Real descriptors of this process.
TEST(WaitTargetFilesOfThisProcess, are_what_they_are) {
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
  WaitTargetFiles::Host host;
  WaitTargetFiles files(::getpid(), host);
  files.begin();
  const Nanoseconds now = clock_now();
  const auto of = [&](const Descriptor& one) {
    return files.of_wait({{Kind::descriptor, one.get(), 0}, now, 0, now}).value_or(WaitTarget());
  };
  EXPECT_EQ(of(reads), (WaitTarget{WaitTargetKind::pipe, "", ""}));
  EXPECT_EQ(of(device), (WaitTarget{WaitTargetKind::device, "/dev/zero", ""}));
  const WaitTarget listens = of(server);
  EXPECT_EQ(listens.kind, WaitTargetKind::listener);
  EXPECT_TRUE(listens.name.starts_with("0.0.0.0:")) << listens.name;
  EXPECT_EQ(of(poll), (WaitTarget{WaitTargetKind::poll, "connections to " + listens.name, ""}));
}

}  // namespace
}  // namespace phlox::sampler
