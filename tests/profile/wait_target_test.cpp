#include "phlox/profile/wait_target.h"

#include <gtest/gtest.h>

namespace phlox::profile {
namespace {

TEST(WaitTarget, every_kind_has_a_key_of_its_own) {
  for (int i = 0; i <= static_cast<int>(WaitTargetKind::object); ++i) {
    const auto kind = static_cast<WaitTargetKind>(i);
    EXPECT_EQ(wait_target_kind(wait_target_key(kind)), kind);
  }
  EXPECT_EQ(wait_target_kind("no such kind"), WaitTargetKind::other);
}

TEST(WaitTarget, words_say_which_one) {
  EXPECT_EQ(wait_target_words({WaitTargetKind::socket, "10.0.0.5:5432", ""}), "10.0.0.5:5432");
  EXPECT_EQ(wait_target_words({WaitTargetKind::socket, "/run/redis.sock", "redis-server (812)"}),
            "/run/redis.sock with redis-server (812)");
  EXPECT_EQ(wait_target_words({WaitTargetKind::client, "127.0.0.1:8000", "10.0.0.9"}),
            "a client of 127.0.0.1:8000, 10.0.0.9");
  EXPECT_EQ(wait_target_words({WaitTargetKind::listener, "127.0.0.1:8000", ""}),
            "connections to 127.0.0.1:8000");
  EXPECT_EQ(wait_target_words({WaitTargetKind::pipe, "", "worker.py (4712)"}), "with worker.py (4712)");
  EXPECT_EQ(wait_target_words({WaitTargetKind::pipe, "", ""}), "");
  EXPECT_EQ(wait_target_words({WaitTargetKind::process, "sleep 5", "4713"}), "sleep 5 (4713)");
  EXPECT_EQ(wait_target_words({WaitTargetKind::process, "", "4713"}), "process 4713");
  EXPECT_EQ(wait_target_words({WaitTargetKind::object, "eventfd", ""}), "an eventfd");
}

TEST(WaitTarget, of_many_that_are_alike_words_leave_out_what_differs) {
  EXPECT_EQ(
      wait_target_words({WaitTargetKind::client, "127.0.0.1:8000", "10.0.0.9"}, WaitTargetDetail::alike),
      "a client of 127.0.0.1:8000");
  EXPECT_EQ(wait_target_words({WaitTargetKind::process, "sleep 5", "4713"}, WaitTargetDetail::alike),
            "sleep 5");
  EXPECT_EQ(wait_target_words({WaitTargetKind::process, "", "4713"}, WaitTargetDetail::alike), "");
  EXPECT_EQ(wait_target_words({WaitTargetKind::pipe, "", "worker.py (4712)"}, WaitTargetDetail::alike),
            "with worker.py");
  EXPECT_EQ(wait_target_words({WaitTargetKind::pipe, "", "f(x) (y)"}, WaitTargetDetail::alike),
            "with f(x) (y)");
}

TEST(WaitTarget, those_that_are_alike_have_one_number) {
  Profile profile;
  profile.emit(WaitTargetId(1), {WaitTargetKind::process, "sleep 5", "1"});
  profile.emit(WaitTargetId(2), {WaitTargetKind::socket, "10.0.0.5:5432", ""});
  profile.emit(WaitTargetId(3), {WaitTargetKind::process, "sleep 5", "2"});
  const WaitTargetGroups alike(profile);
  EXPECT_EQ(alike.of(WaitTargetId(1)), alike.of(WaitTargetId(3)));
  EXPECT_NE(alike.of(WaitTargetId(1)), alike.of(WaitTargetId(2)));
  EXPECT_EQ(alike[alike.of(WaitTargetId(3))].words, "sleep 5");
  EXPECT_EQ(alike.of(WaitTargetId()), 0U);
  EXPECT_EQ(alike.of(WaitTargetId(4)), 0U) << "none that is there";
}

}  // namespace
}  // namespace phlox::profile
