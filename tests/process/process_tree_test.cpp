#include "phlox/process/process_tree.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace phlox::process {
namespace {

bool holds(const std::vector<pid_t>& pids, pid_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

// A child with a child of its own, until the test lets both end.
class Family {
 public:
  Family() {
    if (::pipe(end_.data()) != 0 || ::pipe(report_.data()) != 0) return;
    child = ::fork();
    if (child == 0) {
      ::close(end_[1]);
      const pid_t own = ::fork();
      if (own != 0) (void)!::write(report_[1], &own, sizeof own);
      char byte = 0;
      (void)!::read(end_[0], &byte, 1);
      ::_exit(0);
    }
    (void)!::read(report_[0], &grandchild, sizeof grandchild);
  }
  ~Family() {
    ::close(end_[1]);
    ::waitpid(child, nullptr, 0);
    for (const int fd : {end_[0], report_[0], report_[1]}) ::close(fd);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  pid_t child = -1, grandchild = -1;

 private:
  std::array<int, 2> end_{}, report_{};
};

TEST(ProcessTree, children_are_kept_apart_from_their_children) {
  const Family family;
  EXPECT_TRUE(holds(read_children(::getpid()), family.child));
  EXPECT_FALSE(holds(read_children(::getpid()), family.grandchild));
  const auto all = read_descendants(::getpid());
  const auto child = std::find(all.begin(), all.end(), family.child);
  EXPECT_NE(std::find(child, all.end(), family.grandchild), all.end()) << "after its parent";
  EXPECT_EQ(read_descendants(family.child), std::vector<pid_t>{family.grandchild});
}

TEST(ProcessTree, all_processes_are_listed_by_id) {
  const auto all = read_processes();
  EXPECT_TRUE(holds(all, ::getpid()));
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
}

TEST(ProcessTree, of_a_process_that_is_not_there_there_is_nothing) {
  EXPECT_TRUE(read_children(1 << 23).empty());
  EXPECT_TRUE(read_descendants(1 << 23).empty());
}

TEST(Births, a_birth_shows) {
  const Births births;
  const auto before = births.last_id();
  ASSERT_TRUE(before);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  EXPECT_NE(births.last_id(), before);
  ::waitpid(child, nullptr, 0);
}

TEST(Births, the_last_number_of_the_line) {
  EXPECT_EQ(parse_last_id("1.89 1.82 2.45 3/211 26281\n"), 26281u);
  EXPECT_FALSE(parse_last_id("1.89 1.82 2.45 3/211 many\n"));
  EXPECT_FALSE(parse_last_id(""));
}

}  // namespace
}  // namespace phlox::process
