// Python in C in Python of a running interpreter, stopped at any moment: every entry frame of the chain lies
// in the native frame that ran it. From 3.12 on, where the entry frame is the anchor.
#include <elf.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdio>
#include <random>

#include "phlox/python/locate.h"
#include "phlox/sampler/assemble/merge.h"
#include "phlox/unwind/arch/this_machine.h"
#include "support/live_python.h"
#include "support/live_walk.h"
#include "support/source_path.h"
#include "support/stopped_thread.h"

namespace phlox::sampler {
namespace {

// Cuts a chain of frames, leaf first, at its entry frames.
std::vector<PythonGroup> groups_of(const std::vector<python::RawFrame>& frames) {
  std::vector<PythonGroup> groups;
  PythonGroup group;
  uint32_t python = 0;
  for (const auto& frame : frames) {
    if (!frame.entry) {
      ++group.count;
      ++python;
      continue;
    }
    group.anchor = frame.frame;
    if (group.count != 0) groups.push_back(group);
    group = {python, 0, {}};
  }
  if (group.count != 0) groups.push_back(group);
  return groups;
}

class LiveMerge : public testing::TestWithParam<test::Python> {};

TEST_P(LiveMerge, every_python_frame_is_on_the_native_frame_that_ran_it) {
  test::LivePython live(GetParam(), test::source_path("tests/unwind/native_target.py"));
  ASSERT_TRUE(live.ready());
  const auto interpreter = python::locate(live.pid());
  ASSERT_TRUE(interpreter) << interpreter.error().message;
  test::StoppedThread thread(live.pid());
  ASSERT_TRUE(thread.stop(4096));
  test::TargetTables tables(live.pid());
  thread.resume();
  unwind::Unwinder unwinder(
      tables.map(), unwind::kThisMachine, [&tables](uint32_t m) { return tables.table_of(m); },
      [&tables](uint32_t m) { return tables.code_of(m); });
  std::mt19937 random(11);
  unwind::NativeStack native;
  Merged merged;
  constexpr size_t kStops = 100;
  size_t whole = 0, anchors = 0, deepest = 0, unread = 0, native_cut = 0;
  for (size_t i = 0; i < kStops; ++i) {
    const timespec pause{0, static_cast<long>(random() % 2'000'000)};
    ASSERT_EQ(::ppoll(nullptr, 0, &pause, nullptr), 0);
    ASSERT_TRUE(thread.stop(256 * 1024));
    const auto threads = test::live_threads(*interpreter, live);  // newest first: the main thread is the last
    unwind::UnwindInput input;
    input.registers = thread.registers();
    input.stack_start = thread.stack_start();
    input.stack = thread.stack();
    input.read_code = [&tables](RemoteAddress at, std::span<std::byte> into) {
      return tables.read_code(at, into);
    };
    unwinder.unwind(input, native);
    thread.resume();
    ASSERT_FALSE(threads.empty());
    const auto& main = threads.back();
    const auto groups = groups_of(main.frames);
    // 3.12 publishes a CFrame before its current_frame is set (docs/decisions/0001), and what it holds till
    // then is what lay there: nothing to merge at such a stop.
    if (groups.empty() || main.walk.end == python::WalkEnd::broken) {
      ++unread;
      continue;
    }
    const NativeEnd end = native.end == unwind::StackEnd::reached_end ? NativeEnd::start : NativeEnd::cut;
    merge(groups, native.frames, {}, end, merged);
    size_t frames = 0;
    for (const auto& group : groups) frames += group.count;
    // Nothing is dropped and nothing occurs twice, whatever the end.
    ASSERT_EQ(merged.frames.size(), frames + native.frames.size());
    whole += merged.end == MergeEnd::whole;
    native_cut += merged.end != MergeEnd::whole && native.end != unwind::StackEnd::reached_end;
    anchors += groups.size();
    deepest = std::max(deepest, groups.size());
    if (merged.end != MergeEnd::whole) {
      const auto& last = native.frames.back();
      const auto* entry = tables.map().find(last.pc);
      std::printf(
          "stop %zu: walk %d, end %d, %u of %zu groups without a place, native end %d at %lx in %s, frame "
          "%zu\n",
          i, static_cast<int>(main.walk.end), static_cast<int>(merged.end), merged.unplaced_groups,
          groups.size(), static_cast<int>(native.end), last.pc.value,
          entry != nullptr && entry->module != unwind::kNoModule ? tables.path(entry->module).c_str()
                                                                 : "no module",
          native.frames.size());
    }
  }
  std::printf("%zu of %zu whole, %zu anchors, %zu at most in one stack\n", whole, kStops, anchors, deepest);
  EXPECT_LE(unread, kStops / 10);
  // Its place has no rule in our tables: _dl_runtime_resolve's frame hangs on rbx (glibc
  // sysdeps/x86_64/dl-trampoline.S).
  EXPECT_LE(native_cut, kStops / 20);
  EXPECT_GE(whole + unread + native_cut, kStops - 1);
  EXPECT_GE(deepest, 6u);
}

std::vector<test::Python> with_entry_frames() {
  std::vector<test::Python> out;
  for (const auto& python : test::pythons()) {
    if (python.major == 3 && python.minor >= 12) out.push_back(python);
  }
  return out;
}

// `make check` has the system's Python alone, which may be older.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LiveMerge);
INSTANTIATE_TEST_SUITE_P(Pythons, LiveMerge, testing::ValuesIn(with_entry_frames()),
                         [](const auto& python) { return python.param.label; });

}  // namespace
}  // namespace phlox::sampler
