#include "phlox/naming/live_names.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <span>
#include <thread>

#include "phlox/base/memory_file.h"
#include "phlox/profile/interner.h"
#include "phlox/profile/profile.h"
#include "support/load_bias.h"

namespace phlox::naming {

// Outside the anonymous namespace, so that the names are the plain ones.
[[gnu::always_inline]] inline void inlined_here(uint64_t& at) {
#if defined(__x86_64__)
  asm volatile("1: lea 1b(%%rip), %0" : "=r"(at));
#else
  asm volatile("adr %0, ." : "=r"(at));
#endif
}
[[gnu::noinline]] uint64_t has_the_code() {
  uint64_t at = 0;
  inlined_here(at);
  return at;
}

namespace {

using profile::Frame;
using profile::FrameId;
using profile::FrameKind;
using profile::ModuleId;
using profile::NativeModule;
using profile::ProcessId;

Frame native(uint64_t address, std::optional<ModuleId> module = {}) {
  Frame frame;
  frame.kind = FrameKind::native;
  frame.address = address;
  frame.module = module;
  return frame;
}

NativeModule this_program(ModuleId id) {
  NativeModule module;
  module.id = id;
  module.path = "/app/program";
  module.descriptor = std::make_shared<Descriptor>(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  module.root = std::make_shared<Descriptor>(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  return module;
}

NativeModule perf_map(std::string_view text, std::set<FrameId> code) {
  NativeModule module;
  module.kind = profile::NativeFile::perf_map;
  module.descriptor = std::make_shared<Descriptor>(memory_file(std::as_bytes(std::span(text))));
  module.code = std::make_shared<std::set<FrameId>>(std::move(code));
  return module;
}

// A recorder's rows go through it.
class Live : public testing::Test {
 protected:
  Live() { begin({.pace = kNoRest}); }
  static constexpr NamingPace::Limits kNoRest = {1'000'000, 1'000'000, 1000 * kSecond, 1};
  void begin(const LiveNames::Limits& limits) {
    interner_.reset();
    profile_ = profile::Profile();
    names_.emplace(symbols::DebugSearch{}, limits);
    interner_.emplace(*names_);
    names_->begin(profile_, [this] { return interner_->new_frame(); });
  }
  FrameId put(const Frame& frame) { return interner_->frame(frame); }
  FrameId put_here() { return put(native(has_the_code() - test::load_bias(), ModuleId(1))); }
  const std::string& name(FrameId id) const { return profile_.frame(id).function; }
  // As a recorder commits, until it is so.
  template <class Condition>
  bool comes(Condition condition) {
    for (int i = 0; i < 2'000 && !condition(); ++i) {
      EXPECT_TRUE(names_->commit());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
  }

  profile::Profile profile_;
  std::optional<LiveNames> names_;
  std::optional<profile::Interner> interner_;
};

TEST_F(Live, a_function_gets_its_name_while_other_frames_come) {
  names_->emit(ModuleId(1), {"/app/program", "", 0});
  const FrameId here = put_here();
  names_->add(ProcessId(1), this_program(ModuleId(1)));
  EXPECT_EQ(name(here), "");
  ASSERT_TRUE(names_->commit());
  Frame python;
  python.function = "main";
  const FrameId after = put(python);
  ASSERT_TRUE(comes([&] { return !name(here).empty(); }));
  EXPECT_NE(name(here).find("has_the_code"), std::string::npos) << name(here);
  EXPECT_EQ(name(after), "main");
  // What was inlined there, if the test was built with debug information, has an id that no other frame gets.
  if (profile_.frames().size() == 2) return;
  ASSERT_EQ(profile_.frames().size(), 3u);
  EXPECT_NE(name(FrameId(3)).find("inlined_here"), std::string::npos) << name(FrameId(3));
  EXPECT_EQ(profile_.frame(FrameId(3)).inlined_in, here);
  EXPECT_EQ(put(native(1, ModuleId(1))), FrameId(4));
}

TEST_F(Live, code_without_a_file_is_named_by_the_map_of_its_process) {
  const FrameId mine = put(native(0x1010)), other = interner_->frame(native(0x1010), 2);
  names_->add(ProcessId(1), perf_map("1000 100 mine\n", {mine}));
  ASSERT_TRUE(comes([&] { return name(mine) == "mine"; }));
  EXPECT_EQ(name(other), "");
  names_->add(ProcessId(2), perf_map("1000 100 others\n", {other}));
  EXPECT_TRUE(comes([&] { return name(other) == "others"; }));
}

TEST_F(Live, the_files_of_a_process_that_has_ended_are_closed) {
  NativeModule module = this_program(ModuleId(1)), again = this_program(ModuleId(2));
  const std::weak_ptr<Descriptor> file = module.descriptor, second = again.descriptor, root = module.root;
  names_->add(ProcessId(1), std::move(module));
  names_->add(ProcessId(2), std::move(again));
  EXPECT_TRUE(second.expired()) << "the same file is open once";
  const FrameId here = put_here();
  ASSERT_TRUE(comes([&] { return !name(here).empty(); }));
  EXPECT_FALSE(file.expired());
  names_->note_end(ProcessId(1));
  ASSERT_TRUE(names_->commit());
  EXPECT_FALSE(file.expired()) << "another process has it";
  const FrameId last = put(native(0x40, ModuleId(2)));
  names_->note_end(ProcessId(2));
  EXPECT_TRUE(comes([&] { return !name(last).empty(); })) << "of the time before it ended";
  EXPECT_TRUE(comes([&] { return file.expired() && root.expired(); }));
}

TEST_F(Live, what_is_left_is_named_in_the_end) {
  names_->emit(ModuleId(1), {"/app/program", "", 0});
  names_->emit(ModuleId(2), {"/nowhere/lib.so", "", 0});
  names_->add(ProcessId(1), this_program(ModuleId(1)));
  NativeModule gone = this_program(ModuleId(2));
  gone.path = "/nowhere/lib.so";
  gone.descriptor.reset();
  names_->add(ProcessId(1), std::move(gone));
  const FrameId here = put_here(), nowhere = put(native(0x10, ModuleId(2))), code = put(native(0x1010));
  names_->add(ProcessId(1), perf_map("1000 100 mine\n", {code}));
  const auto missing = names_->finish({});
  EXPECT_NE(name(here).find("has_the_code"), std::string::npos) << name(here);
  EXPECT_EQ(name(nowhere), "lib.so+0x10");
  EXPECT_EQ(name(code), "mine");
  ASSERT_FALSE(missing.empty());
  EXPECT_EQ(missing[0].module, ModuleId(2)) << "the worst first";
  ASSERT_TRUE(profile_.modules()[1].missing);
  EXPECT_TRUE(profile_.modules()[1].missing->functions);
}

// A module that takes too long is tried twice, and does not hold up the recorder for ever.
TEST_F(Live, names_that_take_too_long_are_left_out) {
  begin({.batch = 0, .pace = kNoRest});
  names_->add(ProcessId(1), this_program(ModuleId(1)));
  const FrameId here = put_here();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(names_->commit());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(name(here), "");
  names_->finish({});
  EXPECT_EQ(profile_.frames().size(), 1u);
}

// As forks of one program.
TEST_F(Live, a_module_that_processes_share_is_open_as_long_as_one_of_them_has_it) {
  names_->add(ProcessId(1), this_program(ModuleId(1)));
  names_->add(ProcessId(2), this_program(ModuleId(1)));
  const FrameId first = put_here();
  ASSERT_TRUE(comes([&] { return !name(first).empty(); }));
  names_->note_end(ProcessId(2));
  ASSERT_TRUE(names_->commit());
  const FrameId second = put(native(0x40, ModuleId(1)));
  EXPECT_TRUE(comes([&] { return !name(second).empty(); }));
}

TEST_F(Live, names_beyond_the_limit_are_left_out) {
  begin({.pace = kNoRest, .name_bytes = 1});
  names_->add(ProcessId(1), this_program(ModuleId(1)));
  const FrameId here = put_here();
  ASSERT_TRUE(comes([&] { return !name(here).empty(); }));
  const FrameId more = put(native(0x40, ModuleId(1)));
  names_->finish({});
  EXPECT_EQ(name(more), "");
}

TEST_F(Live, an_incident_does_not_wait_for_the_end_of_a_rest) {
  begin({.pace = {3600 * kSecond, 3600 * kSecond, kSecond, 1}});
  names_->add(ProcessId(1), this_program(ModuleId(1)));
  const FrameId here = put_here();
  ASSERT_TRUE(comes([&] { return !name(here).empty(); }));
  const FrameId more = put(native(0x40, ModuleId(1)));
  const Nanoseconds since = clock_now();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(names_->commit());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(name(more), "");
  EXPECT_LT(names_->named_until(), since);
  names_->hurry();
  EXPECT_TRUE(comes([&] { return names_->named_until() > since; }));
  EXPECT_NE(name(more), "");
}

TEST_F(Live, it_knows_until_when_all_have_names) {
  ASSERT_TRUE(names_->commit());
  const Nanoseconds before = clock_now();
  EXPECT_LT(names_->named_until(), before);
  ASSERT_TRUE(names_->commit());
  EXPECT_GE(names_->named_until(), before) << "there is none without a name";
  names_->add(ProcessId(1), this_program(ModuleId(1)));
  const FrameId here = put_here();
  const Nanoseconds came = clock_now();
  ASSERT_TRUE(names_->commit());
  EXPECT_LT(names_->named_until(), came);
  EXPECT_TRUE(comes([&] { return names_->named_until() > came; }));
  EXPECT_NE(name(here), "");
}

TEST(NamingPace, rests_are_short_for_new_files_and_long_once_the_time_is_used_up) {
  NamingPace pace({.shortest = 1, .longest = 6, .at_once = 100, .time_for_each = 10});
  EXPECT_EQ(pace.rest_after(10, 0, true), 1);
  EXPECT_EQ(pace.rest_after(10, 1, false), 2);
  EXPECT_EQ(pace.rest_after(10, 2, false), 4);
  EXPECT_EQ(pace.rest_after(10, 4, false), 6);
  EXPECT_EQ(pace.rest_after(10, 6, true), 1);
  pace.hurry();
  EXPECT_EQ(pace.rest_after(10, 1, false), 1);
  EXPECT_EQ(pace.rest_after(60, 1, true), 200) << "20 too many were taken";
  EXPECT_EQ(pace.rest_after(0, 400, true), 1);
}

TEST_F(Live, frames_beyond_the_limit_have_no_names) {
  begin({.pace = kNoRest, .frames = 1});
  names_->add(ProcessId(1), this_program(ModuleId(1)));
  const FrameId here = put_here(), more = put(native(0x40, ModuleId(1)));
  names_->finish({});
  EXPECT_NE(name(here), "");
  EXPECT_EQ(name(more), "");
}

}  // namespace
}  // namespace phlox::naming
