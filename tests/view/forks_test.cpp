#include "phlox/view/forks.h"

#include <gtest/gtest.h>

#include <string>

#include "support/profile_of.h"

#include "phlox/profile/recorded_words.h"

namespace phlox::view {

using namespace profile;

namespace {

using test::ProfileMaker;

constexpr Nanoseconds kMs = 1'000'000;
const std::string kLaunch = "/usr/lib/python3.12/multiprocessing/popen_fork.py/Popen._launch";
const std::string kBootstrap = "/usr/lib/python3.12/multiprocessing/process.py/BaseProcess._bootstrap";

class Forks : public testing::Test {
 protected:
  Forks() {
    parent = maker.thread("MainThread", 4711);
    process = maker.process(4712);
    child = maker.thread("MainThread", 4712, process);
  }
  // Born after this many milliseconds, as a fork of the first process.
  void born_after(int64_t time) {
    Process row = profile.process(process);
    row.start = ProfileMaker::kStart + time * kMs;
    profile.emit(process, row);
    profile.emit_meta(std::string(kForkedFrom) + "2", "1");
    maker.sample(child, "x", time * kMs);  // moves the child's clock
  }
  // Of a sample, by its place: "main:3;work:4".
  std::string stack_of(size_t sample) const {
    std::string text;
    for (StackId at = profile.samples()[sample].stack; at; at = profile.stack(at).parent) {
      const Frame& frame = profile.frame(profile.stack(at).frame);
      const std::string name = frame.kind == FrameKind::marker
                                   ? frame.function
                                   : frame.function + ":" + std::to_string(frame.line);
      text = name + (text.empty() ? "" : ";") + text;
    }
    return text;
  }

  Profile profile;
  ProfileMaker maker{profile};
  ThreadId parent, child;
  ProcessId process;
};

TEST_F(Forks, a_worker_of_multiprocessing_has_its_own_frames_alone) {
  maker.add(child, "train:5;" + kLaunch + ":7;" + kBootstrap + ":3;worker:9", 10 * kMs);
  show_forks(profile, Inherited::hidden);
  EXPECT_EQ(stack_of(0), "(forked here);_bootstrap:3;worker:9");
}

TEST_F(Forks, the_mark_is_between_inherited_and_own_frames) {
  maker.add(child, "train:5;" + kLaunch + ":7;" + kBootstrap + ":3;worker:9", 10 * kMs);
  show_forks(profile, Inherited::shown);
  EXPECT_EQ(stack_of(0), "train:5;_launch:7;(forked here);_bootstrap:3;worker:9");
}

TEST_F(Forks, a_child_of_a_child_has_what_is_behind_the_last_fork) {
  maker.add(
      child,
      "train:5;" + kLaunch + ":7;" + kBootstrap + ":3;worker:9;" + kLaunch + ":7;" + kBootstrap + ":3;deep:1",
      10 * kMs);
  show_forks(profile, Inherited::hidden);
  EXPECT_EQ(stack_of(0), "(forked here);_bootstrap:3;deep:1");
}

TEST_F(Forks, the_parents_own_stack_in_the_same_function_stays_whole) {
  maker.add(parent, "train:5;" + kLaunch + ":7", 10 * kMs);
  maker.add(child, kLaunch + ":7;" + kBootstrap + ":3;worker:9", 10 * kMs);
  show_forks(profile, Inherited::hidden);
  EXPECT_EQ(stack_of(0), "train:5;_launch:7");
}

TEST_F(Forks, only_the_thread_that_came_out_of_the_fork_inherits) {
  const ThreadId other = maker.thread("pool", 4799, process);
  maker.add(child, "train:5;" + kLaunch + ":7;" + kBootstrap + ":3;worker:9", 10 * kMs);
  maker.add(other, "train:5;" + kLaunch + ":7;" + kBootstrap + ":3;worker:9", 10 * kMs);
  show_forks(profile, Inherited::hidden);
  EXPECT_EQ(stack_of(1), "train:5;_launch:7;_bootstrap:3;worker:9");
}

TEST_F(Forks, after_it_returned_from_the_fork_only_unchanged_callers_are_inherited) {
  maker.add(parent, "a:5;b:6;spawn:2", 20 * kMs);
  born_after(10);
  maker.add(child, "a:5;b:6;spawn:3;setup:1", 10 * kMs);
  maker.add(child, "a:5;b:7;handle:8", 10 * kMs);
  maker.add(child, "a:5;b:6;spawn:2;again:1", 10 * kMs);
  show_forks(profile, Inherited::hidden);
  EXPECT_EQ(stack_of(1), "(forked here);setup:1");
  EXPECT_EQ(stack_of(2), "(forked here);b:7;handle:8");
  EXPECT_EQ(stack_of(3), "(forked here);b:6;spawn:2;again:1");
}

TEST_F(Forks, what_the_child_computes_in_the_function_that_forked_is_its_own) {
  maker.add(parent, "serve:5;spawn:2", 20 * kMs);
  born_after(10);
  maker.add(child, "serve:5;spawn:4", 10 * kMs);
  show_forks(profile, Inherited::hidden);
  EXPECT_EQ(stack_of(1), "(forked here);spawn:4");
}

TEST_F(Forks, what_the_parent_did_before_and_after_and_the_child_does_too_is_inherited) {
  maker.add(parent, "module:30;main:11;load:1", 10 * kMs);
  maker.add(parent, "module:30;main:20;wait:1", 10 * kMs);
  born_after(10);
  maker.add(child, "module:30;main:14;work:5", 10 * kMs);
  show_forks(profile, Inherited::hidden);
  EXPECT_EQ(stack_of(2), "(forked here);work:5");
}

TEST_F(Forks, of_a_process_that_called_execve_nothing_is_inherited) {
  maker.add(parent, "module:30;main:11;load:1", 10 * kMs);
  maker.add(parent, "module:30;main:20;wait:1", 10 * kMs);
  maker.add(child, "module:30;main:14;work:5", 10 * kMs);
  show_forks(profile, Inherited::hidden);
  EXPECT_EQ(stack_of(2), "module:30;main:14;work:5");
}

TEST_F(Forks, a_child_that_does_what_its_parent_does_proves_nothing) {
  maker.add(parent, "module:30;work:5", 10 * kMs);
  maker.add(parent, "module:30;work:5", 10 * kMs);
  born_after(10);
  maker.add(child, "module:30;work:5;step:1", 10 * kMs);
  show_forks(profile, Inherited::hidden);
  EXPECT_EQ(stack_of(2), "module:30;work:5;step:1");
}

TEST_F(Forks, a_number_in_meta_that_is_no_row_changes_nothing) {
  profile.emit_meta(std::string(kForkedFrom) + "2", "77");
  maker.add(child, "module:30;work:5", 10 * kMs);
  show_forks(profile, Inherited::hidden);
  EXPECT_EQ(stack_of(0), "module:30;work:5");
}

}  // namespace
}  // namespace phlox::view
