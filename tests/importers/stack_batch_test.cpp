#include "phlox/importers/stack_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace phlox::importers {
namespace {

using Frames = std::vector<profile::FrameId>;

// Keeps the stacks that an interner makes.
class Stacks : public profile::Sink {
 public:
  void put_meta(std::string_view, std::string_view) override {}
  void put_process(profile::ProcessId, const profile::Process&) override {}
  void put_thread(profile::ThreadId, const profile::Thread&) override {}
  void put_module(profile::ModuleId, const profile::Module&) override {}
  void put_frame(profile::FrameId, const profile::Frame&) override {}
  void put_wake(profile::WakeId, const profile::Wake&) override {}
  void put_awaited(profile::AwaitedId, const profile::Awaited&) override {}
  void put_sample(profile::SampleId, const profile::Sample&) override {}
  void put_event(const profile::Event&) override {}
  void put_tally(const profile::Tally&) override {}
  Result<void> commit() override { return {}; }
  void put_stack(profile::StackId id, const profile::Stack& stack) override {
    Frames frames = stack.parent ? frames_.at(stack.parent) : Frames();
    frames.push_back(stack.frame);
    EXPECT_TRUE(frames_.emplace(id, frames).second);
  }

  // Root first.
  Frames of(profile::StackId id) const { return id ? frames_.at(id) : Frames(); }
  size_t size() const { return frames_.size(); }

 private:
  std::map<profile::StackId, Frames> frames_;
};

void put(StackBatch& batch, const Frames& before, const Frames& frames) {
  const auto shared = static_cast<size_t>(
      std::mismatch(before.begin(), before.end(), frames.begin(), frames.end()).first - before.begin());
  batch.begin(shared);
  for (size_t i = shared; i < frames.size(); ++i) batch.push(frames[i]);
  batch.end();
}

TEST(StackBatch, each_stack_has_the_frames_that_it_was_given) {
  Stacks stacks;
  profile::Interner interner(stacks);
  StackBatch batch(interner);
  std::minstd_rand random(1);
  Frames before;
  std::vector<Frames> given;
  std::map<Frames, profile::StackId> ids;
  size_t batches = 0;
  for (int i = 0; i < 20'000; ++i) {
    Frames frames(random() % 8);
    for (profile::FrameId& frame : frames) frame = profile::FrameId(static_cast<uint32_t>(1 + random() % 4));
    put(batch, before, frames);
    given.push_back(before = frames);
    if (!batch.full() && random() % 50 != 0) continue;
    ++batches;
    const auto found = batch.finish();
    ASSERT_EQ(found.size(), given.size());
    for (size_t k = 0; k < given.size(); ++k) {
      EXPECT_EQ(stacks.of(found[k]), given[k]);
      EXPECT_EQ(ids.try_emplace(given[k], found[k]).first->second, found[k]) << "equal stacks have one id";
    }
    given.clear();
  }
  EXPECT_GT(batches, 100u);
  EXPECT_EQ(stacks.size(), interner.stacks());
}

TEST(StackBatch, a_deep_stack_and_one_that_shares_all_of_it) {
  Stacks stacks;
  profile::Interner interner(stacks);
  StackBatch batch(interner);
  Frames deep;
  for (uint32_t i = 1; i <= 3000; ++i) deep.push_back(profile::FrameId(i));
  put(batch, {}, deep);
  EXPECT_TRUE(batch.full());
  const profile::StackId first = batch.finish()[0];
  put(batch, deep, deep);
  const profile::StackId again = batch.finish()[0];
  EXPECT_EQ(first, again);
  EXPECT_EQ(stacks.of(first), deep);
  EXPECT_EQ(interner.stacks(), 3000u);
}

TEST(StackBatch, beyond_the_limit_a_stack_ends_at_its_last_known_caller) {
  Stacks stacks;
  profile::Interner::Limits limits;
  limits.stacks = 2;
  profile::Interner interner(stacks, limits);
  StackBatch batch(interner);
  const Frames three = {profile::FrameId(1), profile::FrameId(2), profile::FrameId(3)};
  put(batch, {}, three);
  EXPECT_EQ(stacks.of(batch.finish()[0]), Frames(three.begin(), three.begin() + 2));
  EXPECT_EQ(interner.left_out(), 1u);
}

}  // namespace
}  // namespace phlox::importers
