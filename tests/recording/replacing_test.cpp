// What becomes of a file that a recording is to replace, and of a recording whose file is renamed or removed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "phlox/profile/unfinished.h"
#include "phlox/recording/reader.h"
#include "phlox/recording/writer.h"
#include "support/profile_of.h"
#include "support/recording_file.h"

namespace phlox::recording {
namespace {

using namespace phlox::profile;
using test::ProfileMaker;
namespace fs = std::filesystem;

class Replacing : public test::RecordingFile {
 protected:
  static constexpr size_t kOld = 7;

  static std::unique_ptr<Writer> writer(const std::string& path) {
    auto made = Writer::create(path);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
  static void put(Writer& out, size_t samples) {
    ProfileMaker maker(out);
    const ThreadId thread = maker.thread("a");
    for (size_t i = 0; i < samples; ++i) maker.add(thread, "main:" + std::to_string(i), 1'000);
  }
  static void record(const std::string& path, size_t samples) {
    auto out = writer(path);
    put(*out, samples);
    ASSERT_TRUE(out->finish());
  }
  // Of a recorder that is killed: what it committed is in the log.
  void record_and_be_killed(size_t samples) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto out = writer(path_);
      put(*out, samples);
      (void)out->commit();
      ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
  }
  // None: it cannot be read.
  static std::optional<size_t> samples_of(const std::string& path) {
    const auto profile = read(path);
    EXPECT_TRUE(profile) << profile.error().message;
    return profile ? std::optional(profile->samples().size()) : std::nullopt;
  }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename().string());
    return names;
  }
};

TEST_F(Replacing, what_is_there_stays_until_there_is_a_sample) {
  record(path_, kOld);
  auto out = writer(path_);
  EXPECT_EQ(samples_of(path_), kOld);
  ProfileMaker maker(*out);
  const ThreadId thread = maker.thread("a");
  ASSERT_TRUE(out->commit());
  EXPECT_EQ(samples_of(path_), kOld);
  EXPECT_FALSE(out->has_file());
  EXPECT_EQ(names(), std::set<std::string>{"a.phlox"});
  maker.add(thread, "main", 1'000);
  EXPECT_EQ(samples_of(path_), kOld);
  ASSERT_TRUE(out->commit());
  EXPECT_EQ(samples_of(path_), 1u);
  EXPECT_TRUE(out->has_file());
  maker.add(thread, "main;further", 1'000);
  ASSERT_TRUE(out->finish());
  EXPECT_EQ(samples_of(path_), 2u);
  EXPECT_EQ(out->where(), path_);
  EXPECT_EQ(names(), std::set<std::string>{"a.phlox"});
}

TEST_F(Replacing, a_recording_without_a_sample_replaces_nothing) {
  record(path_, kOld);
  auto out = writer(path_);
  out->emit_meta("host", "here");
  ASSERT_TRUE(out->finish());
  EXPECT_EQ(out->where(), "");
  EXPECT_EQ(samples_of(path_), kOld);
}

TEST_F(Replacing, what_is_there_is_not_said_to_grow) {
  record(path_, kOld);
  auto out = writer(path_);
  const auto profile = read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_FALSE(grows(*profile));
}

TEST_F(Replacing, a_second_recorder_is_refused_before_it_begins) {
  record(path_, kOld);
  auto out = writer(path_);
  const auto second = Writer::create(path_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another recorder"), std::string::npos) << second.error().message;
  put(*out, 1);
  ASSERT_TRUE(out->finish());
  EXPECT_EQ(samples_of(path_), 1u);
}

// As if the file system had no locks: the first one has the place, and the other one reports it.
TEST_F(Replacing, of_two_that_did_not_see_each_other_the_first_one_has_the_place) {
  record(path_, kOld);
  auto out = writer(path_);
  fs::remove(path_);
  auto first = writer(path_);
  put(*first, 2);
  ASSERT_TRUE(first->commit());
  const pid_t child = ::fork();  // the lock on the log's index is another process's
  if (child == 0) {
    put(*out, 1);
    const auto refused = out->commit();
    ::_exit(!refused && !out->finish() && out->where().empty() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(first->finish());
  EXPECT_EQ(samples_of(path_), 2u);
}

TEST_F(Replacing, killed_at_any_instant_the_old_one_is_whole_or_the_new_one_is_there) {
  std::mt19937 random(36);
  int stayed = 0, replaced = 0;
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    for (const std::string& name : names()) fs::remove(folder_ / name);
    if (round % 2 == 0) record(path_, kOld);
    if (round % 2 == 1) record_and_be_killed(kOld);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      (void)!::write(ends[1], "", 1);
      auto out = writer(path_);
      put(*out, 3);
      if (!out->commit()) ::_exit(1);
      for (;;) ::pause();
    }
    char begun = 0;
    ASSERT_EQ(::read(ends[0], &begun, 1), 1);
    ::usleep(static_cast<useconds_t>(random() % 12'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
    const auto samples = samples_of(path_);
    ASSERT_TRUE(samples == kOld || samples == 3u);
    ++(samples == 3u ? replaced : stayed);
    // The next one takes away what this one may have left.
    record(path_, 1);
    EXPECT_EQ(names(), std::set<std::string>{"a.phlox"});
  }
  EXPECT_GT(stayed, 0);
  EXPECT_GT(replaced, 0);
}

TEST_F(Replacing, a_file_that_is_renamed_is_noticed_at_the_next_commit_and_has_everything) {
  const std::string renamed = (folder_ / "b.phlox").string();
  auto out = writer(path_);
  put(*out, 2);
  ASSERT_TRUE(out->commit());
  fs::rename(path_, renamed);
  const auto noticed = out->commit();
  ASSERT_FALSE(noticed);
  EXPECT_EQ(noticed.error().kind, ErrorKind::output);
  EXPECT_EQ(noticed.error().message, path_ + " was renamed to " + renamed + " while it was recorded");
  out->emit_meta("last", "one");
  EXPECT_FALSE(out->finish());
  EXPECT_EQ(out->where(), renamed);
  EXPECT_EQ(samples_of(renamed), 2u);
  EXPECT_EQ(read(renamed)->meta().at("last"), "one");
  EXPECT_EQ(names(), std::set<std::string>{"b.phlox"});
}

TEST_F(Replacing, a_file_that_is_removed_is_said_to_be_lost) {
  auto out = writer(path_);
  put(*out, 2);
  ASSERT_TRUE(out->commit());
  fs::remove(path_);
  const auto noticed = out->commit();
  ASSERT_FALSE(noticed);
  EXPECT_EQ(noticed.error().message, path_ + " was removed while it was recorded: what was recorded is lost");
  EXPECT_FALSE(out->finish());
  EXPECT_EQ(out->where(), "");
  EXPECT_TRUE(names().empty());
}

// Its log is next to a recording that it does not belong to: a reader of that one would apply it.
TEST_F(Replacing, another_recording_in_its_place_stays_as_it_is) {
  const std::string other = (folder_ / "b.phlox").string();
  record(other, 5);
  auto out = writer(path_);
  put(*out, 2);
  ASSERT_TRUE(out->commit());
  fs::rename(other, path_);
  const auto noticed = out->commit();
  ASSERT_FALSE(noticed);
  EXPECT_NE(noticed.error().message.find("replaced by another file"), std::string::npos);
  EXPECT_FALSE(out->finish());
  EXPECT_EQ(out->where(), "");
  EXPECT_EQ(samples_of(path_), 5u);
  EXPECT_EQ(names(), std::set<std::string>{"a.phlox"});
}

TEST_F(Replacing, a_removal_at_the_very_end_is_noticed) {
  auto out = writer(path_);
  put(*out, 2);
  fs::remove(path_);
  const auto finished = out->finish();
  ASSERT_FALSE(finished);
  EXPECT_NE(finished.error().message.find("is lost"), std::string::npos) << finished.error().message;
}

TEST_F(Replacing, a_folder_that_is_renamed_harms_nothing) {
  const fs::path inner = folder_ / "inner", moved = folder_ / "moved";
  fs::create_directory(inner);
  auto out = writer((inner / "a.phlox").string());
  put(*out, 2);
  ASSERT_TRUE(out->commit());
  fs::rename(inner, moved);
  out->emit_meta("last", "one");
  ASSERT_TRUE(out->commit());
  ASSERT_TRUE(out->finish());
  EXPECT_EQ(out->where(), (moved / "a.phlox").string());
  EXPECT_EQ(samples_of(out->where()), 2u);
}

}  // namespace
}  // namespace phlox::recording
