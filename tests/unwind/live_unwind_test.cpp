// A running Python stopped at any moment: our frames against libdwfl's, pc by pc.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <random>

#include "phlox/unwind/arch/this_machine.h"
#include "support/dwfl_reference.h"
#include "support/frame_comparison.h"
#include "support/live_python.h"
#include "support/source_path.h"
#include "support/stopped_thread.h"

namespace phlox::unwind {
namespace {

class LiveUnwind : public testing::TestWithParam<test::Python> {};

TEST_P(LiveUnwind, frames_equal_libdwfl_s_at_any_moment) {
  test::LivePython python(GetParam(), test::source_path("tests/unwind/native_target.py"));
  ASSERT_TRUE(python.ready());
  test::StoppedThread thread(python.pid());
  ASSERT_TRUE(thread.attached());
  ASSERT_TRUE(thread.stop(4096));
  test::TargetTables tables(python.pid());
  test::DwflReference reference(python.pid());
  ASSERT_TRUE(reference.ok());
  thread.resume();
  Unwinder unwinder(
      tables.map(), kThisMachine, [&tables](uint32_t m) { return tables.table_of(m); },
      [&tables](uint32_t m) { return tables.code_of(m); });

  std::mt19937 random(7);
  NativeStack stack;
  std::map<std::string, int> libraries;
  size_t equal = 0, whole = 0, broken = 0, stepped_past = 0, coded = 0, frames = 0, deepest = 0;
  constexpr size_t kStops = 120;
  for (size_t i = 0; i < kStops; ++i) {
    // Stops at moments that have nothing to do with the program's turns.
    const timespec pause{0, static_cast<long>(random() % 3'000'000)};
    ASSERT_EQ(::ppoll(nullptr, 0, &pause, nullptr), 0);
    ASSERT_TRUE(thread.stop(256 * 1024));
    UnwindInput input;
    input.registers = thread.registers();
    input.stack_start = thread.stack_start();
    input.stack = thread.stack();
    input.read_code = [&tables](RemoteAddress at, std::span<std::byte> into) {
      return tables.read_code(at, into);
    };
    unwinder.unwind(input, stack);
    thread.resume();
    const std::vector<uint64_t> theirs = reference.pcs(thread);
    std::vector<uint64_t> ours;
    for (const auto& f : stack.frames) {
      ours.push_back(f.pc.value);
      if (f.module != kNoModule) ++libraries[tables.path(f.module)];
    }
    // libdwfl also reports the frame before the outermost one if that has no CFI; ours is never the
    // shorter.
    const bool same = test::same_frames(stack.frames, theirs);
    coded += std::any_of(stack.frames.begin(), stack.frames.end(),
                         [](const NativeFrame& f) { return f.found_by == FoundBy::code; });
    // Builds rewritten by BOLT hold a few places whose CFI is wrong or missing (3.14.6's adler32_z: the rule
    // of the early return goes on behind it). libdwfl then steps to what is no code, or guesses by rbp; we
    // have to say that the stack is not whole, and be right up to there.
    if (!same && stack.end != StackEnd::reached_end && ours.size() < theirs.size() &&
        std::equal(ours.begin(), ours.end(), theirs.begin())) {
      ++broken;
      continue;
    }
    // Or the frame pointer, which leads behind a call, takes us past such a place, and libdwfl past what it
    // took for a frame: but for that, both say the same.
    const size_t first = static_cast<size_t>(
        std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end()).first - ours.begin());
    const bool past = !same && first < theirs.size() &&
                      tables.map().find(RemoteAddress(theirs[first])) == nullptr &&
                      std::equal(ours.begin() + static_cast<ptrdiff_t>(first), ours.end(),
                                 theirs.begin() + static_cast<ptrdiff_t>(first) + 1, theirs.end());
    stepped_past += past;
    equal += same || past;
    whole += stack.end == StackEnd::reached_end;
    frames += ours.size();
    deepest = std::max(deepest, ours.size());
    if (!same && !past) {
      std::string text;
      for (size_t k = 0; k < std::max(ours.size(), theirs.size()); ++k) {
        const uint64_t a = k < ours.size() ? ours[k] : 0, b = k < theirs.size() ? theirs[k] : 0;
        if (a == b) continue;
        const auto* entry = tables.map().find(RemoteAddress(a != 0 ? a : b));
        char line[256];
        std::snprintf(
            line, sizeof line, "  %zu: ours %lx theirs %lx in %s\n", k, a, b,
            entry != nullptr && entry->module != kNoModule ? tables.path(entry->module).c_str() : "?");
        text += line;
        break;
      }
      std::printf("stop %zu differs: %zu frames (end %d) against %zu\n%s", i, ours.size(),
                  static_cast<int>(stack.end), theirs.size(), text.c_str());
    }
  }
  std::printf(
      "%zu of %zu equal, %zu whole, %zu broken, %zu by instructions, %.1f frames on average, %zu at most, "
      "%zu libraries\n",
      equal, kStops, whole, broken, coded, static_cast<double>(frames) / kStops, deepest, libraries.size());
  EXPECT_EQ(equal, kStops - broken);
  EXPECT_EQ(whole, kStops - broken);
  EXPECT_LE(broken + stepped_past, 6u);
  EXPECT_GE(libraries.size(), 1u);  // a standalone build has most libraries inside
  EXPECT_GE(deepest, 30u);
}

INSTANTIATE_TEST_SUITE_P(Pythons, LiveUnwind, testing::ValuesIn(test::pythons()),
                         [](const auto& python) { return python.param.label; });

}  // namespace
}  // namespace phlox::unwind
