#include "phlox/profile/awaited.h"

#include <gtest/gtest.h>

namespace phlox::profile {
namespace {

TEST(Awaited, every_kind_has_a_key_of_its_own) {
  for (int i = 0; i <= static_cast<int>(AwaitedKind::object); ++i) {
    const auto kind = static_cast<AwaitedKind>(i);
    EXPECT_EQ(awaited_kind(awaited_key(kind)), kind);
  }
  EXPECT_EQ(awaited_kind("no such kind"), AwaitedKind::other);
}

TEST(Awaited, words_say_which_one) {
  EXPECT_EQ(awaited_words({AwaitedKind::socket, "10.0.0.5:5432", ""}), "10.0.0.5:5432");
  EXPECT_EQ(awaited_words({AwaitedKind::socket, "/run/redis.sock", "redis-server (812)"}),
            "/run/redis.sock with redis-server (812)");
  EXPECT_EQ(awaited_words({AwaitedKind::client, "127.0.0.1:8000", "10.0.0.9"}),
            "a client of 127.0.0.1:8000, 10.0.0.9");
  EXPECT_EQ(awaited_words({AwaitedKind::listener, "127.0.0.1:8000", ""}), "connections to 127.0.0.1:8000");
  EXPECT_EQ(awaited_words({AwaitedKind::pipe, "", "worker.py (4712)"}), "with worker.py (4712)");
  EXPECT_EQ(awaited_words({AwaitedKind::pipe, "", ""}), "");
  EXPECT_EQ(awaited_words({AwaitedKind::process, "sleep 5", "4713"}), "sleep 5 (4713)");
  EXPECT_EQ(awaited_words({AwaitedKind::process, "", "4713"}), "process 4713");
  EXPECT_EQ(awaited_words({AwaitedKind::object, "eventfd", ""}), "an eventfd");
}

TEST(Awaited, of_many_that_are_alike_words_leave_out_what_differs) {
  EXPECT_EQ(awaited_words({AwaitedKind::client, "127.0.0.1:8000", "10.0.0.9"}, AwaitedDetail::alike),
            "a client of 127.0.0.1:8000");
  EXPECT_EQ(awaited_words({AwaitedKind::process, "sleep 5", "4713"}, AwaitedDetail::alike), "sleep 5");
  EXPECT_EQ(awaited_words({AwaitedKind::process, "", "4713"}, AwaitedDetail::alike), "");
  EXPECT_EQ(awaited_words({AwaitedKind::pipe, "", "worker.py (4712)"}, AwaitedDetail::alike),
            "with worker.py");
  EXPECT_EQ(awaited_words({AwaitedKind::pipe, "", "f(x) (y)"}, AwaitedDetail::alike), "with f(x) (y)");
}

TEST(Awaited, those_that_are_alike_have_one_number) {
  Profile profile;
  profile.emit(AwaitedId(1), {AwaitedKind::process, "sleep 5", "1"});
  profile.emit(AwaitedId(2), {AwaitedKind::socket, "10.0.0.5:5432", ""});
  profile.emit(AwaitedId(3), {AwaitedKind::process, "sleep 5", "2"});
  const AlikeAwaited alike(profile);
  EXPECT_EQ(alike.of(AwaitedId(1)), alike.of(AwaitedId(3)));
  EXPECT_NE(alike.of(AwaitedId(1)), alike.of(AwaitedId(2)));
  EXPECT_EQ(alike[alike.of(AwaitedId(3))].words, "sleep 5");
  EXPECT_EQ(alike.of(AwaitedId()), 0U);
  EXPECT_EQ(alike.of(AwaitedId(4)), 0U) << "none that is there";
}

}  // namespace
}  // namespace phlox::profile
