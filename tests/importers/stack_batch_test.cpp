#include "phlox/importers/stack_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::importers {
namespace {

using Frames = std::vector<profile::FrameId>;

// Root first.
Frames frames_of(const profile::Profile& profile, profile::StackId id) {
  Frames frames;
  for (; id; id = profile.stack(id).parent) frames.push_back(profile.stack(id).frame);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

void put(StackBatch& batch, const Frames& before, const Frames& frames) {
  const auto shared = static_cast<size_t>(
      std::mismatch(before.begin(), before.end(), frames.begin(), frames.end()).first - before.begin());
  batch.begin(shared);
  for (size_t i = shared; i < frames.size(); ++i) batch.push(frames[i]);
  batch.end();
}

TEST(StackBatch, each_stack_has_the_frames_that_it_was_given) {
  profile::Profile profile;
  profile::Interner interner(profile);
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
      EXPECT_EQ(frames_of(profile, found[k]), given[k]);
      EXPECT_EQ(ids.try_emplace(given[k], found[k]).first->second, found[k]) << "equal stacks have one id";
    }
    given.clear();
  }
  EXPECT_GT(batches, 100u);
  EXPECT_EQ(profile.stacks().size(), interner.stacks());
}

TEST(StackBatch, a_deep_stack_and_one_that_shares_all_of_it) {
  profile::Profile profile;
  profile::Interner interner(profile);
  StackBatch batch(interner);
  Frames deep;
  for (uint32_t i = 1; i <= 3000; ++i) deep.push_back(profile::FrameId(i));
  put(batch, {}, deep);
  EXPECT_TRUE(batch.full());
  const profile::StackId first = batch.finish()[0];
  put(batch, deep, deep);
  const profile::StackId again = batch.finish()[0];
  EXPECT_EQ(first, again);
  EXPECT_EQ(frames_of(profile, first), deep);
  EXPECT_EQ(interner.stacks(), 3000u);
}

TEST(StackBatch, beyond_the_limit_a_stack_ends_at_its_last_known_caller) {
  profile::Profile profile;
  profile::Interner::Limits limits;
  limits.stacks = 2;
  profile::Interner interner(profile, limits);
  StackBatch batch(interner);
  const Frames three = {profile::FrameId(1), profile::FrameId(2), profile::FrameId(3)};
  put(batch, {}, three);
  EXPECT_EQ(frames_of(profile, batch.finish()[0]), Frames(three.begin(), three.begin() + 2));
  EXPECT_EQ(interner.left_out(), 1u);
}

}  // namespace
}  // namespace phlox::importers
