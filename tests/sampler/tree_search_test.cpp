#include "phlox/sampler/session/tree_search.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "phlox/process/process_state.h"

namespace phlox::sampler {
namespace {

// A process that forks a child with a second thread on request, and reports when that one runs.
class Forks {
 public:
  Forks() {
    int to[2], from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      char byte = 0;
      ::close(to[1]);
      while (::read(to[0], &byte, 1) == 1) {
        if (::fork() != 0) continue;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::thread idle([] { ::pause(); });
        (void)!::write(from[1], &byte, 1);
        ::pause();
      }
      ::_exit(0);
    }
    tell_ = to[1];
    hear_ = from[0];
    ::close(to[0]);
    ::close(from[1]);
  }
  ~Forks() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(tell_);
    ::close(hear_);
  }
  pid_t pid() const { return pid_; }
  void fork() const {
    char byte = 'f';
    (void)!::write(tell_, &byte, 1);
    (void)!::read(hear_, &byte, 1);
  }

 private:
  pid_t pid_ = 0;
  int tell_ = -1, hear_ = -1;
};

// Somebody else's: ids that are given out.
void be_born_elsewhere() {
  std::thread([] {}).join();
}

// Until births are known one by one.
void settle(TreeSearch& search) {
  for (int i = 0; i < 40; ++i) search.search(8);
}

TEST(TreeSearch, unrelated_births_do_not_cause_a_search_of_all_processes) {
  const Forks root;
  TreeSearch search({root.pid()}, false, true);
  settle(search);
  const uint64_t before = search.asked_everybody();
  for (int i = 0; i < 256; ++i) {
    be_born_elsewhere();
    search.search(8);
  }
  // Twice it would have been anyway; more where the host is busier than this can know.
  EXPECT_LE(search.asked_everybody() - before, 100u);
  EXPECT_EQ(search.born(), 0u);
}

// Who asks for that id need not look.
TEST(TreeSearch, is_quiet_until_a_process_is_born_on_this_host) {
  const Forks root;
  TreeSearch search({root.pid()}, false, true);
  settle(search);
  // The root is none that was given, and may become a Python.
  EXPECT_FALSE(search.quiet_until_after());
  Program program(root.pid(), {});
  search.is_known(program);
  std::optional<uint64_t> last;
  for (int i = 0; i < 1000 && !last; ++i) {
    search.search(8);
    last = search.quiet_until_after();
  }
  ASSERT_TRUE(last);
  be_born_elsewhere();
  EXPECT_NE(search.births().last_id(), last);
  search.search(8);
  EXPECT_NE(search.quiet_until_after(), last);
}

TEST(TreeSearch, a_child_is_found_at_the_next_search_and_its_threads_are_no_processes) {
  const Forks root;
  TreeSearch search({root.pid()}, false, true);
  settle(search);
  for (uint64_t children = 1; children <= 5; ++children) {
    be_born_elsewhere();
    root.fork();
    search.search(8);
    EXPECT_EQ(search.born(), children);
  }
  for (int i = 0; i < 10; ++i) search.search(8);
  EXPECT_EQ(search.born(), 5u);
}

TEST(TreeSearch, a_chosen_process_is_found_at_the_next_search_and_no_thread_is_asked_about) {
  const Forks parent;
  bool asked_about_thread = false;
  TreeSearch search({}, true, false, [&](pid_t pid) {
    const auto status = process::read_status(pid);
    const auto stat = process::read_stat(pid);
    asked_about_thread |= status && status->process != pid;
    return stat && stat->parent == parent.pid();
  });
  settle(search);
  EXPECT_EQ(search.born(), 0u);
  for (uint64_t children = 1; children <= 5; ++children) {
    be_born_elsewhere();
    parent.fork();
    search.search(8);
    EXPECT_EQ(search.born(), children);
  }
  // Longer than until all processes are listed again.
  for (int i = 0; i < 300; ++i) search.search(8);
  EXPECT_EQ(search.born(), 5u);
  EXPECT_FALSE(asked_about_thread);
}

TEST(TreeSearch, a_process_that_is_chosen_only_later_is_found_once_it_has_run) {
  const Forks late;
  bool chosen = false;
  TreeSearch search({}, true, false, [&](pid_t pid) { return chosen && pid == late.pid(); });
  settle(search);
  chosen = true;
  late.fork();
  for (int i = 0; i < 200 && search.born() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    late.fork();
    search.search(8);
  }
  EXPECT_EQ(search.born(), 1u);
}

}  // namespace
}  // namespace phlox::sampler
