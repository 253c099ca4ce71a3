// Whole recordings on a played clock, host and backend: which processes are recorded and until when.
#include "phlox/sampler/session/live_recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "phlox/profile/counters.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/recorded_words.h"
#include "phlox/recording/reader.h"
#include "phlox/recording/writer.h"
#include "phlox/view/forks.h"
#include "support/played_recording.h"

namespace phlox::sampler {
namespace {

using profile::EventKind;
using Pids = std::vector<pid_t>;

size_t lines_with(const std::vector<std::string>& lines, std::string_view text) {
  return static_cast<size_t>(std::count_if(
      lines.begin(), lines.end(), [&](const std::string& line) { return line.find(text) != line.npos; }));
}

constexpr pid_t kRoot = test::kPlayedPid, kChild = kRoot + 1, kOther = kRoot + 2;

class FailingSink : public profile::Profile {
 public:
  explicit FailingSink(int good) : left_(good) {}
  Result<void> commit() override {
    if (left_-- > 0) return {};
    return fail(ErrorKind::system, "the disk is full");
  }

 private:
  int left_;
};

class CountingSink : public profile::Profile {
 public:
  Result<void> commit() override {
    ++commits;
    return {};
  }
  size_t commits = 0;
};

class Recordings : public testing::Test {
 protected:
  Recordings() {
    play_.start(kRoot);
    options_.rate_hz = play_.rate_hz;
  }

  Outcome record(double seconds = 0) {
    if (seconds > 0) options_.duration = static_cast<Nanoseconds>(seconds * 1e9);
    return play_.record({kRoot}, options_, seen_);
  }
  // A child of the root that the finder finds, one millisecond after it has begun.
  void find_child(double seconds, pid_t pid = kChild, pid_t parent = kRoot) {
    play_.at(seconds, [=, this] { play_.start(pid, parent); });
    play_.at(seconds + 0.001, [=, this] { play_.find(pid); });
  }
  void end(double seconds, pid_t pid, const std::string& how = "exit 0") {
    play_.at(seconds, [=, this] { play_.end(pid, how); });
  }
  void publish(double seconds, std::function<void(SourceNumbers&)> change) {
    play_.at(seconds, [=, this] { play_.process(kRoot).source->publish(change); });
  }

  std::vector<profile::Event> events(EventKind kind) const {
    std::vector<profile::Event> found;
    for (const auto& event : seen_.events())
      if (event.kind == kind) found.push_back(event);
    return found;
  }
  const profile::Process& process(uint32_t id) const { return seen_.process(profile::ProcessId(id)); }
  // The sampled time of a process, in seconds.
  double sampled(uint32_t id) const {
    Nanoseconds sum = 0;
    for (const auto& sample : seen_.samples())
      if (seen_.thread(sample.thread).process.value == id) sum += sample.wall;
    return static_cast<double>(sum) * 1e-9;
  }

  test::Play play_;
  Options options_;
  profile::Profile seen_;
};

// --- the end of a recording

TEST_F(Recordings, ends_after_its_duration) {
  const Outcome outcome = record(2);
  EXPECT_EQ(outcome.why, Ended::duration);
  EXPECT_NEAR(static_cast<double>(outcome.progress.elapsed) * 1e-9, 2, 0.05);
  EXPECT_NEAR(sampled(1), 2, 0.05);
  EXPECT_EQ(process(1).how_ended, "recording ended");
  EXPECT_EQ(outcome.how_target_ended, "");
  ASSERT_EQ(events(EventKind::recording_start).size(), 1U);
  ASSERT_EQ(events(EventKind::recording_end).size(), 1U);
  EXPECT_NEAR(play_.seconds(events(EventKind::recording_end)[0].time), 2, 0.05);
  EXPECT_TRUE(events(EventKind::process_end).empty());
}

TEST_F(Recordings, a_duration_waits_for_the_first_sample) {
  play_.process(kRoot).is_sampled = false;
  play_.at(3, [&] { play_.process(kRoot).is_sampled = true; });
  const Outcome outcome = record(1);
  EXPECT_EQ(outcome.why, Ended::duration);
  EXPECT_NEAR(static_cast<double>(outcome.progress.elapsed) * 1e-9, 3, 0.05);
  EXPECT_EQ(outcome.why_no_python, "");
}

TEST_F(Recordings, a_duration_waits_no_longer_than_five_seconds_for_it) {
  play_.process(kRoot).is_sampled = false;
  const Outcome outcome = record(1);
  EXPECT_NEAR(static_cast<double>(outcome.progress.elapsed) * 1e-9, 6, 0.05);
  EXPECT_EQ(outcome.why_no_python, "the recording ended before the first sample");
}

TEST_F(Recordings, ends_with_its_program) {
  end(0.7, kRoot, "exit 3");
  const Outcome outcome = record();
  EXPECT_EQ(outcome.why, Ended::target_ended);
  EXPECT_EQ(outcome.how_target_ended, "exit 3");
  EXPECT_EQ(process(1).how_ended, "exit 3");
  EXPECT_NEAR(sampled(1), 0.7, 0.02);
  ASSERT_EQ(events(EventKind::process_end).size(), 1U);
  EXPECT_EQ(events(EventKind::process_end)[0].text, "exit 3");
  EXPECT_EQ(play_.forgotten_ends.size(), 1U);
}

TEST_F(Recordings, a_program_that_was_killed_says_so) {
  end(0.2, kRoot, "signal 9 (SIGKILL)");
  const Outcome outcome = record(5);
  EXPECT_EQ(outcome.why, Ended::target_ended);
  EXPECT_EQ(outcome.how_target_ended, "signal 9 (SIGKILL)");
  EXPECT_EQ(process(1).how_ended, "signal 9 (SIGKILL)");
}

TEST_F(Recordings, time_after_the_end_of_the_last_program_does_not_count) {
  end(0.5, kRoot);
  play_.at(0, [&] { play_.start(kOther, kRoot); });  // a shell that stays for a while
  const Outcome outcome = record();
  EXPECT_NEAR(static_cast<double>(outcome.progress.elapsed) * 1e-9, 0.5, 0.02);
  EXPECT_NEAR(play_.seconds(events(EventKind::recording_end)[0].time), 0.5 + 2, 0.2) << "orphans";
}

TEST_F(Recordings, stops_within_a_tenth_of_a_second_when_asked_to) {
  play_.at(0.5, [&] { play_.stop = true; });
  const Outcome outcome = record(60);
  EXPECT_EQ(outcome.why, Ended::stopped);
  EXPECT_GE(outcome.progress.elapsed, kSecond / 2);
  EXPECT_LE(outcome.progress.elapsed, kSecond / 2 + kSecond / 10);
  EXPECT_EQ(process(1).how_ended, "recording ended");
}

TEST_F(Recordings, a_program_that_ends_together_with_the_recording_has_ended) {
  // After the last wait.
  play_.on_progress = [&] {
    if (play_.progress_at.back() < play_.time(0.5)) return;
    play_.end(kRoot, "exit 1");
    play_.stop = true;
  };
  record(60);
  EXPECT_EQ(process(1).how_ended, "exit 1");
}

TEST_F(Recordings, ends_when_the_sink_fails) {
  FailingSink sink(3);
  const Outcome outcome = play_.record({kRoot}, options_, sink);
  EXPECT_EQ(outcome.why, Ended::sink_failed);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->message, "the disk is full");
  EXPECT_NEAR(play_.seconds(play_.progress_at.back()), 1.1, 0.2) << "the fourth commit";
}

TEST_F(Recordings, ends_when_the_kernel_goes_on_refusing_to_let_it_wait) {
  play_.refused_wait = ENOSYS;
  const Outcome outcome = record(60);
  EXPECT_EQ(outcome.why, Ended::wait_failed);
  ASSERT_TRUE(outcome.error);
  EXPECT_NE(outcome.error->hint.find("allow poll"), std::string::npos);
  EXPECT_LE(outcome.progress.elapsed, 2 * kSecond);
}

TEST_F(Recordings, one_refusal_to_let_it_wait_passes) {
  play_.at(0.3, [&] { play_.refused_wait = ENOMEM; });
  play_.at(0.9, [&] { play_.refused_wait = 0; });
  EXPECT_EQ(record(3).why, Ended::duration);
}

// --- processes that come and go

TEST_F(Recordings, follows_the_processes_that_its_program_starts) {
  std::vector<pid_t> descendants;
  options_.follow = true;
  options_.on_descendant = [&](pid_t pid) { descendants.push_back(pid); };
  find_child(0.5);
  end(1.5, kChild, "exit 7");
  const Outcome outcome = record(2);
  EXPECT_EQ(outcome.processes, 2U);
  EXPECT_EQ(descendants, Pids{kChild}) << "the root is none";
  ASSERT_EQ(seen_.processes().size(), 2U);
  EXPECT_EQ(process(2).pid, kChild);
  EXPECT_EQ(process(2).parent, profile::ProcessId(1));
  EXPECT_EQ(process(2).how_ended, "exit 7");
  EXPECT_NEAR(sampled(1), 2, 0.05);
  EXPECT_NEAR(sampled(2), 1, 0.05);
}

TEST_F(Recordings, a_recording_without_follow_has_one_program_at_a_time) {
  end(0.5, kRoot);
  find_child(0.2);
  end(1.5, kChild);
  record();
  EXPECT_EQ(play_.wanted, (std::vector<size_t>{0, 1, 0, 1}));
  ASSERT_EQ(seen_.processes().size(), 2U);
  EXPECT_NEAR(play_.seconds(process(2).start), 0.5, 0.05) << "when the first had ended";
}

TEST_F(Recordings, at_most_a_thousand_are_recorded_at_once) {
  options_.follow = true;
  find_child(0.2);
  record(1);
  EXPECT_EQ(play_.wanted, (std::vector<size_t>{999, 998}));
}

TEST_F(Recordings, a_child_that_outlives_its_parent_is_recorded_until_its_end) {
  options_.follow = true;
  find_child(0.2);
  end(0.5, kRoot, "exit 2");
  end(3, kChild);
  const Outcome outcome = record();
  EXPECT_EQ(outcome.why, Ended::target_ended);
  EXPECT_EQ(outcome.how_target_ended, "exit 2") << "the root's";
  EXPECT_NEAR(sampled(2), 2.8, 0.05);
}

TEST_F(Recordings, a_fork_is_known_by_its_image) {
  options_.follow = true;
  find_child(0.2, kChild);
  find_child(0.3, kOther);
  play_.at(0.2005, [&] { play_.process(kChild).image = play_.process(kRoot).image; });
  record(1);
  EXPECT_EQ(seen_.meta().count(std::string(profile::kForkedFrom) + "2"), 1U);
  EXPECT_EQ(seen_.meta().count(std::string(profile::kForkedFrom) + "3"), 0U) << "it has a stack of its own";
}

TEST_F(Recordings, chosen_processes_come_and_go_until_the_recording_is_stopped) {
  options_.chosen = [](pid_t) { return true; };
  options_.follow = true;
  end(0.5, kRoot);
  find_child(4);
  const Outcome outcome = record(6);
  EXPECT_EQ(outcome.why, Ended::duration);
  EXPECT_NEAR(sampled(2), 2, 0.05);
}

TEST_F(Recordings, the_user_hears_once_of_a_long_wait_for_the_next_program) {
  size_t times = 0;
  options_.on_waiting = [&] { ++times; };
  const pid_t shell = kOther;
  play_.start(shell);
  play_.process(shell).given = false;
  end(0.5, kRoot);
  play_.at(6, [&] { play_.stop = true; });
  // The shell of a launched command has no Python, and stays.
  play_.without_python = {shell};
  play_.record({shell, kRoot}, options_, seen_);
  EXPECT_EQ(times, 1U);
  EXPECT_EQ(seen_.processes().size(), 1U);
}

// --- reports of the backend

TEST_F(Recordings, a_birth_that_the_backend_reports_is_recorded_from_then_on) {
  options_.follow = true;
  play_.reports_births = true;
  play_.at(0.5, [&] { play_.bear(kChild, kRoot); });
  record(1);
  EXPECT_EQ(play_.told_about_births, (std::vector<bool>{true}));
  ASSERT_EQ(seen_.processes().size(), 2U);
  EXPECT_EQ(process(2).parent, profile::ProcessId(1));
  EXPECT_NEAR(play_.seconds(process(2).start), 0.5, 1e-4) << "its birth, not when it was begun with";
}

TEST_F(Recordings, what_was_found_before_its_birth_was_told_is_recorded_once) {
  options_.follow = true;
  play_.reports_births = true;
  play_.at(0.5, [&] {
    play_.bear(kChild, kRoot);
    play_.find(kChild);
  });
  const Outcome outcome = record(1);
  EXPECT_EQ(outcome.processes, 2U);
  EXPECT_NEAR(play_.seconds(process(2).start), 0.5, 1e-4) << "by its birth";
  EXPECT_TRUE(play_.left.empty()) << "the birth was not late";
}

TEST_F(Recordings, a_birth_of_a_recorded_process_is_left) {
  options_.follow = true;
  play_.reports_births = true;
  find_child(0.2);
  play_.at(0.5, [&] {
    const auto source = play_.process(kChild).source;
    play_.bear(kChild, kRoot);
    play_.process(kChild).source = source;
  });
  EXPECT_EQ(record(1).processes, 2U);
  EXPECT_EQ(play_.left, Pids{kChild});
}

TEST_F(Recordings, a_process_whose_times_the_backend_has_is_not_begun_with) {
  options_.follow = true;
  play_.reports_births = true;
  play_.has_its_times = {kChild};
  find_child(0.2);
  EXPECT_EQ(record(1).processes, 1U);
}

TEST_F(Recordings, a_found_process_that_runs_another_program_by_now_is_searched_again) {
  options_.follow = true;
  play_.reports_births = true;
  play_.at(0.2, [&] { play_.start(kChild, kRoot); });
  play_.at(0.3, [&] { play_.find(kChild); });
  play_.after_found = [&](pid_t pid) { play_.exec(pid, "/bin/true", false); };
  EXPECT_EQ(record(1).processes, 1U);
  EXPECT_EQ(play_.checked_again, Pids{kChild});
}

TEST_F(Recordings, a_program_ends_with_a_reported_execve) {
  play_.reports_births = true;
  play_.at(0.5, [&] { play_.exec(kRoot, "/usr/bin/bash", true); });
  play_.at(0.8, [&] { play_.stop = true; });
  const Outcome outcome = record(5);
  EXPECT_EQ(process(1).how_ended, "exec");
  EXPECT_NEAR(sampled(1), 0.5, 0.02);
  ASSERT_EQ(events(EventKind::exec).size(), 1U);
  EXPECT_EQ(events(EventKind::exec)[0].text, "/usr/bin/bash");
  EXPECT_EQ(play_.checked_again, Pids{kRoot});
  EXPECT_EQ(lines_with(outcome.warnings, "became another program, /usr/bin/bash"), 1U);
}

TEST_F(Recordings, an_execve_that_is_not_reported_shows_in_the_image) {
  play_.at(0.6, [&] { play_.exec(kRoot, "/usr/bin/python3.13", false); });
  play_.at(2, [&] { play_.find(kRoot); });
  const Outcome outcome = record(3);
  EXPECT_EQ(process(1).how_ended, "exec");
  EXPECT_LT(sampled(1), 1.2) << "within half a second";
  ASSERT_EQ(seen_.processes().size(), 2U) << "the next program of the same process";
  EXPECT_EQ(process(2).pid, kRoot);
  EXPECT_EQ(process(2).executable, "/usr/bin/python3.13");
  EXPECT_EQ(lines_with(outcome.warnings, "became another program"), 0U);
}

// A title is read again as the recording goes on, and at its end.
class CommandLines : public Recordings, public testing::WithParamInterface<double> {};
INSTANTIATE_TEST_SUITE_P(Seconds, CommandLines, testing::Values(0.6, 0.99));
TEST_P(CommandLines, a_program_does_not_get_that_of_the_program_after_it) {
  play_.at(GetParam(), [&] {
    play_.exec(kRoot, "/usr/bin/python3.13", false);
    play_.process(kRoot).command_line = "python3 next.py";
  });
  const std::string first = play_.process(kRoot).command_line;
  record(1);
  EXPECT_EQ(process(1).command_line, first);
}

TEST_F(Recordings, a_title_that_a_program_sets_is_its_command_line) {
  play_.at(0.4, [&] { play_.process(kRoot).command_line = "worker: ready"; });
  record(1);
  EXPECT_EQ(process(1).command_line, "worker: ready");
}

TEST_F(Recordings, a_program_that_is_sampled_otherwise_is_a_detail) {
  play_.reports_births = true;
  play_.why_otherwise = "it has no thread states";
  const Outcome outcome = record(0.5);
  EXPECT_EQ(lines_with(outcome.details, "it has no thread states"), 1U);
  EXPECT_TRUE(outcome.warnings.empty());
  EXPECT_EQ(play_.told_about_births, (std::vector<bool>{true, false}))
      << "of its children nothing is reported";
}

TEST_F(Recordings, one_that_is_sampled_otherwise_than_requested_is_a_warning) {
  play_.why_otherwise = "it has no thread states";
  options_.mode = Mode::kernel;
  EXPECT_EQ(lines_with(record(0.5).warnings, "it has no thread states"), 1U);
}

TEST_F(Recordings, forks_too_brief_for_the_search_are_counted_unless_they_were_reported) {
  play_.reports_births = true;
  options_.follow = true;
  play_.found_state.too_brief = {3, "python3 -c pass", {kChild, kOther, kOther + 1}};
  play_.at(0.2, [&] { play_.bear(kChild, kRoot); });
  EXPECT_EQ(lines_with(record(1).warnings, "2 processes that were forked lived too briefly"), 1U);
}

TEST_F(Recordings, a_child_that_ended_before_its_first_sample_has_its_cpu_time) {
  play_.reports_births = true;
  options_.follow = true;
  play_.at(0.5, [&] {
    play_.bear(kChild, kRoot);
    play_.process(kChild).is_sampled = false;
  });
  play_.at(0.55, [&] { play_.end(kChild, "exit 0", 30'000'000); });
  record(1);
  Nanoseconds cpu = 0;
  for (const auto& sample : seen_.samples())
    if (seen_.thread(sample.thread).process.value == 2) cpu += sample.cpu;
  EXPECT_EQ(cpu, 30'000'000);
}

// --- the budget

TEST_F(Recordings, a_rate_that_the_budget_lowers_is_told_once_and_recorded) {
  options_.max_overhead_percent = 1;
  publish(0.5, [](SourceNumbers& numbers) { numbers.rate_hz = 40; });
  publish(1.0, [](SourceNumbers& numbers) { numbers.rate_hz = 20; });
  publish(1.5, [](SourceNumbers& numbers) { numbers.rate_hz = 60; });
  const Outcome outcome = record(2);
  const auto changes = events(EventKind::rate_change);
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0].value, 40'000);
  EXPECT_EQ(changes[0].text, "to stay within --max-overhead");
  EXPECT_NEAR(play_.seconds(changes[0].time), 0.5, 0.11);
  EXPECT_EQ(changes[2].text, "within --max-overhead again");
  EXPECT_EQ(outcome.warnings,
            std::vector<std::string>{"rate lowered to 40 Hz to stay within --max-overhead 1 %"});
}

TEST_F(Recordings, a_rate_that_was_only_a_limit_may_be_lower_without_a_warning) {
  options_.max_overhead_percent = 1;
  options_.rate_is_limit = true;
  publish(0.5, [](SourceNumbers& numbers) { numbers.rate_hz = 40; });
  const Outcome outcome = record(1);
  EXPECT_EQ(events(EventKind::rate_change).size(), 1U);
  EXPECT_TRUE(outcome.warnings.empty());
  EXPECT_EQ(outcome.progress.asked_rate_hz, 0);
  EXPECT_EQ(outcome.progress.most_rate_hz, play_.rate_hz);
}

TEST_F(Recordings, what_was_taken_from_each_program_adds_up) {
  options_.follow = true;
  find_child(0.2);
  publish(0.5, [](SourceNumbers& numbers) { numbers.target_time = 3'000'000; });
  play_.at(0.5, [&] {
    play_.process(kChild).source->publish([](SourceNumbers& n) { n.target_time = 4'000'000; });
  });
  end(0.7, kChild);
  EXPECT_EQ(record(1).progress.target_time, 7'000'000) << "that of the one that ended, too";
  EXPECT_EQ(seen_.counter(profile::counters::kTargetTime), 7'000'000);
}

TEST_F(Recordings, another_mode_is_an_event) {
  publish(0.5, [](SourceNumbers& numbers) { numbers.mode = Mode::hands_off; });
  record(1);
  ASSERT_EQ(events(EventKind::mode_change).size(), 1U);
  EXPECT_EQ(events(EventKind::mode_change)[0].text, "hands off (unproved)");
  EXPECT_EQ(process(1).mode, "hands off (unproved)");
}

// --- fairness and pace

// One program fills its ring faster than it can be drained.
TEST_F(Recordings, no_program_starves_behind_one_with_more_samples_than_can_be_taken) {
  options_.follow = true;
  play_.question = 1'000'000;  // a record takes a millisecond
  play_.process(kRoot).samples_at_once = 1000;
  find_child(0.1);
  double until_then = 0;  // at the end, all of the ring is taken
  play_.at(2.5, [&] { until_then = sampled(2); });
  record(3);
  EXPECT_GT(until_then, 1.2) << "of 2.4 s";
}

TEST_F(Recordings, the_last_samples_are_taken_before_the_end) {
  play_.process(kRoot).samples_at_once = 50;
  end(0.99, kRoot);
  const Outcome outcome = record();
  EXPECT_EQ(outcome.progress.lost, 0U);
  EXPECT_NEAR(sampled(1), 0.99, 0.011);
}

TEST_F(Recordings, commits_four_times_a_second_and_tells_ten_times_how_far_it_is) {
  CountingSink sink;
  options_.duration = 10 * kSecond;
  play_.record({kRoot}, options_, sink);
  EXPECT_NEAR(static_cast<double>(sink.commits), 40, 8);
  EXPECT_NEAR(static_cast<double>(play_.progress.size()), 100, 15);
  EXPECT_TRUE(std::is_sorted(play_.progress.begin(), play_.progress.end(),
                             [](const auto& a, const auto& b) { return a.elapsed < b.elapsed; }));
}

// --- files

class RecordedFiles : public Recordings {
 protected:
  // Times of a file are compared with this host's clock.
  RecordedFiles() : play_now_(clock_now()) {
    folder_ = std::filesystem::temp_directory_path() / ("phlox_played_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~RecordedFiles() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "one.phlox").string(); }

  Nanoseconds play_now_;
  std::filesystem::path folder_;
};

// The events of a kind.
size_t count(const profile::Profile& profile, EventKind kind) {
  return static_cast<size_t>(std::count_if(profile.events().begin(), profile.events().end(),
                                           [kind](const auto& event) { return event.kind == kind; }));
}

Nanoseconds wall_of(const profile::Profile& profile) {
  Nanoseconds sum = 0;
  for (const auto& sample : profile.samples()) sum += sample.wall;
  return sum;
}

TEST_F(RecordedFiles, a_killed_recorder_leaves_all_but_the_last_half_second) {
  test::Play play(play_now_);
  play.start(kRoot);
  {
    auto writer = recording::Writer::create(path());
    ASSERT_TRUE(writer) << writer.error().message;
    // Whatever is put after the kill is lost with the recorder: a sink that stops listening.
    class Killed : public profile::Sink {
     public:
      Killed(recording::Writer& to, const test::Play& play) : to_(to), play_(play) {}
      void receive(const profile::AnyRow& row) override {
        if (!is_dead()) to_.receive(row);
      }
      Result<void> commit() override { return is_dead() ? Result<void>() : to_.commit(); }

     private:
      bool is_dead() const { return !play_.progress_at.empty() && play_.progress_at.back() > play_.time(3); }
      recording::Writer& to_;
      const test::Play& play_;
    } killed(**writer, play);
    options_.duration = 4 * kSecond;
    play.record({kRoot}, options_, killed);
    std::filesystem::copy(folder_, folder_ / "copy");
  }
  auto read = recording::read((folder_ / "copy" / "one.phlox").string());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_GT(wall_of(*read), 5 * kSecond / 2);
  EXPECT_LT(wall_of(*read), 7 * kSecond / 2);
  EXPECT_EQ(count(*read, EventKind::recording_end), 0U);
  EXPECT_EQ(read->processes().front().end, 0);
}

TEST_F(RecordedFiles, a_recording_that_is_continued_has_the_same_process_once) {
  for (int part = 0; part < 2; ++part) {
    test::Play play(play_now_ + part * 5 * kSecond);
    play.start(kRoot);
    auto writer = part == 0 ? recording::Writer::create(path()) : recording::Writer::append(path());
    ASSERT_TRUE(writer) << writer.error().message;
    options_.duration = 2 * kSecond;
    play.record({kRoot}, options_, **writer);
    ASSERT_TRUE((*writer)->finish());
  }
  auto read = recording::read(path());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_NEAR(static_cast<double>(wall_of(*read)) * 1e-9, 4, 0.1);
  EXPECT_EQ(read->processes().size(), 1U);
  EXPECT_EQ(count(*read, EventKind::lost), 1U) << "the gap";
}

TEST_F(RecordedFiles, keep_drops_what_is_older) {
  test::Play play(play_now_);
  play.rate_hz = 10;
  options_.rate_hz = 10;
  play.start(kRoot);
  auto writer = recording::Writer::create(path());
  ASSERT_TRUE(writer) << writer.error().message;
  (*writer)->keep_only({{}, 60 * kSecond});
  options_.duration = 300 * kSecond;
  play.record({kRoot}, options_, **writer);
  ASSERT_TRUE((*writer)->finish());
  auto read = recording::read(path());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_GE(wall_of(*read), 59 * kSecond);
  EXPECT_LT(wall_of(*read), 150 * kSecond);
}

}  // namespace
}  // namespace phlox::sampler
