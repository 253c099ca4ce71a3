#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "phlox/profile/counters.h"
#include "phlox/profile/kept.h"
#include "phlox/profile/spans.h"
#include "phlox/profile/unfinished.h"
#include "phlox/recording/query.h"
#include "phlox/recording/reader.h"
#include "phlox/recording/snapshot.h"
#include "phlox/recording/writer.h"
#include "phlox/view/view.h"
#include "support/old_formats.h"
#include "support/profile_of.h"
#include "support/recording_file.h"

namespace phlox::recording {
namespace {

using namespace phlox::profile;
using namespace phlox::view;
using test::ProfileMaker;
namespace fs = std::filesystem;

class Long : public test::RecordingFile {
 protected:
  std::unique_ptr<Writer> writer(const Retention& retention) {
    auto made = Writer::create(path_);
    EXPECT_TRUE(made);
    if (!made) return nullptr;
    (*made)->keep_only(retention);
    begin(**made, ProfileMaker::kStart);
    return std::move(*made);
  }
  static void begin(Sink& sink, Nanoseconds start) {
    sink.emit_meta("start_monotonic_ns", std::to_string(start));
    sink.emit_meta("start_unix_ns", std::to_string(start + 7));
    Event event;
    event.kind = EventKind::recording_start;
    event.time = start;
    sink.emit(event);
  }
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const char* suffix : {"", "-wal"}) {
      std::error_code error;
      const auto size = fs::file_size(path_ + suffix, error);
      if (!error) sum += size;
    }
    return sum;
  }
};

long resident_pages() {
  std::ifstream file("/proc/self/statm");
  long size = 0, resident = 0;
  file >> size >> resident;
  return resident;
}

// Twenty looks a second at three threads: what a recorder puts.
void record_for(Writer& out, Spans& spans, const std::vector<std::vector<StackId>>& stacks,
                const std::vector<ThreadId>& threads, Nanoseconds& now, Nanoseconds until,
                const std::function<void()>& at_commit = {}) {
  for (int64_t tick = 0; now < until; ++tick, now += kSecond / 20) {
    for (size_t i = 0; i < threads.size(); ++i) {
      Sample sample;
      sample.thread = threads[i];
      sample.start = now;
      sample.wall = sample.cpu = kSecond / 20;
      sample.stack = stacks[i][static_cast<size_t>(now / (kSecond / 20)) % stacks[i].size()];
      spans.add(sample);
    }
    if (tick % 5 != 4) continue;
    spans.flush();
    ASSERT_TRUE(out.commit());
    if (at_commit) at_commit();
  }
}

TEST_F(Long, half_a_day_at_20_hz_stays_within_size_and_memory) {
  constexpr uint64_t kMost = 20'000'000;
  auto out = writer({kMost, {}});
  ProfileMaker maker(*out);
  std::vector<ThreadId> threads;
  std::vector<std::vector<StackId>> stacks;
  for (int i = 0; i < 3; ++i) {
    threads.push_back(maker.thread("t" + std::to_string(i)));
    stacks.emplace_back();
    for (int k = 0; k < 100; ++k) stacks.back().push_back(maker.stack("main;f" + std::to_string(k)));
  }
  Spans spans(*out);
  Nanoseconds now = ProfileMaker::kStart;
  // Five times as much as there is room for.
  constexpr Nanoseconds kHalfADay = 43'200 * kSecond;
  record_for(*out, spans, stacks, threads, now, ProfileMaker::kStart + kHalfADay / 4);
  const long before = resident_pages();
  uint64_t most = 0;
  int commits = 0;
  record_for(*out, spans, stacks, threads, now, ProfileMaker::kStart + kHalfADay, [&] {
    if (++commits % 1000 == 0) most = std::max(most, bytes());
  });
  EXPECT_LE(most, kMost);
  EXPECT_GE(most, kMost / 2);
  // 2 MiB, whatever the allocator keeps.
  EXPECT_LE((resident_pages() - before) * ::sysconf(_SC_PAGESIZE), 2 << 20);
  out->emit_meta("end_monotonic_ns", std::to_string(now));
  ASSERT_TRUE(out->finish());
  EXPECT_LE(bytes(), kMost);

  const auto profile = read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  const auto& samples = profile->samples();
  // What is there is the last of it, without a hole.
  Nanoseconds wall = 0, first = now;
  for (const Sample& sample : samples) {
    if (!sample.thread) continue;  // ids that went
    wall += sample.wall;
    first = std::min(first, sample.start);
  }
  EXPECT_NEAR(double(wall), 3.0 * double(now - first), double(kSecond));
  EXPECT_NEAR(double(recording_start(*profile)), double(first), 2.0 * double(kSecond));
  EXPECT_EQ(lacking(*profile).let_go, recording_start(*profile) - ProfileMaker::kStart);
  EXPECT_EQ(lacking_words(lacking(*profile)).substr(0, 10), "the first ");
}

TEST_F(Long, what_is_older_goes) {
  auto out = writer({{}, 600 * kSecond});
  ProfileMaker maker(*out);
  const std::vector<ThreadId> threads = {maker.thread("a")};
  const std::vector<std::vector<StackId>> stacks = {{maker.stack("main;f"), maker.stack("main;g")}};
  Spans spans(*out);
  Nanoseconds now = ProfileMaker::kStart;
  record_for(*out, spans, stacks, threads, now, now + 7200 * kSecond);
  const auto profile = read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_NEAR(double(seen_until(*profile) - recording_start(*profile)) / 1e9, 600, 10);
  EXPECT_NEAR(double(lacking(*profile).let_go) / 1e9, 6600, 10);
  // The wall clock of the start moved with it.
  EXPECT_EQ(profile->meta().at("start_unix_ns"), std::to_string(recording_start(*profile) + 7));
}

TEST_F(Long, a_snapshot_is_a_finished_recording_and_the_other_goes_on) {
  auto out = writer({});
  ProfileMaker maker(*out);
  const ThreadId thread = maker.thread("a");
  maker.add(thread, "main;f", kSecond);
  ASSERT_TRUE(out->commit());
  const std::string copy = (folder_ / "b.phlox").string();
  const auto copied = snapshot(path_, copy);
  ASSERT_TRUE(copied) << copied.error().message;
  maker.add(thread, "main;g", kSecond);
  ASSERT_TRUE(out->commit());
  ASSERT_TRUE(out->finish());
  const auto profile = read(copy);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->samples().size(), 1u);
  EXPECT_FALSE(is_unfinished(*profile));
  EXPECT_EQ(seen_until(*profile), ProfileMaker::kStart + kSecond);
  EXPECT_EQ(profile->meta().at("snapshot_of"), path_);
  EXPECT_EQ(fs::status(copy).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(read(path_)->samples().size(), 2u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);
}

TEST_F(Long, a_part_is_a_recording_of_that_time_alone) {
  auto out = writer({});
  ProfileMaker maker(*out);
  const std::vector<ThreadId> threads = {maker.thread("a")};
  const std::vector<std::vector<StackId>> stacks = {{maker.stack("main;f"), maker.stack("main;g")}};
  Spans spans(*out);
  Nanoseconds now = ProfileMaker::kStart;
  record_for(*out, spans, stacks, threads, now, now + 600 * kSecond);
  Event early, within;
  early.kind = within.kind = EventKind::signal_received;
  early.time = ProfileMaker::kStart + 100 * kSecond;
  within.time = ProfileMaker::kStart + 410 * kSecond;
  out->emit(early);
  out->emit(within);
  ASSERT_TRUE(out->commit());
  const std::string copy = (folder_ / "b.phlox").string();
  const Part part{
      ProfileMaker::kStart + 400 * kSecond, ProfileMaker::kStart + 440 * kSecond, {{"incident.1", "why"}}};
  const auto copied = snapshot(path_, copy, {}, part);
  ASSERT_TRUE(copied) << copied.error().message;
  const auto profile = read(copy);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_FALSE(is_unfinished(*profile));
  Nanoseconds wall = 0;
  for (const Sample& sample : profile->samples()) {
    if (!sample.thread) continue;
    wall += sample.wall;
    EXPECT_GT(sample.start + sample.wall, part.from);
    EXPECT_LT(sample.start, part.to);
  }
  EXPECT_NEAR(double(wall) / 1e9, 40, 0.2);
  EXPECT_NEAR(double(recording_start(*profile) - part.from) / 1e9, 0, 0.1);
  EXPECT_EQ(profile->meta().at("start_unix_ns"), std::to_string(recording_start(*profile) + 7));
  EXPECT_NEAR(double(seen_until(*profile) - part.to) / 1e9, 0, 0.1);
  EXPECT_EQ(profile->meta().at("incident.1"), "why");
  EXPECT_EQ(lacking(*profile).let_go, 0);
  const auto& events = profile->events();
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const Event& one) { return one.kind == EventKind::signal_received; }),
            1);
  // Compacted: a fifteenth of the rows.
  EXPECT_LT(fs::file_size(copy) * 3, bytes());
  ASSERT_TRUE(out->finish());
  EXPECT_NEAR(double(seen_until(*read(path_)) - recording_start(*read(path_))) / 1e9, 600, 1);
}

TEST_F(Long, a_part_in_which_nothing_was_sampled_is_a_recording_without_samples) {
  auto out = writer({});
  ProfileMaker maker(*out);
  maker.add(maker.thread("a"), "main;f", kSecond);
  ASSERT_TRUE(out->commit());
  const std::string copy = (folder_ / "b.phlox").string();
  ASSERT_TRUE(
      snapshot(path_, copy, {}, Part{ProfileMaker::kStart + kSecond, ProfileMaker::kStart + 2 * kSecond}));
  const auto profile = read(copy);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->samples().size(), 0u);
}

TEST_F(Long, of_a_recording_that_has_just_begun_there_is_no_snapshot) {
  const auto out = Writer::create(path_);
  ASSERT_TRUE(out);
  const auto copied = snapshot(path_, (folder_ / "b.phlox").string());
  ASSERT_FALSE(copied);
  EXPECT_NE(copied.error().message.find("holds nothing yet"), std::string::npos) << copied.error().message;
  EXPECT_FALSE(fs::exists(folder_ / "b.phlox"));
}

TEST_F(Long, a_snapshot_that_cannot_be_written_leaves_nothing) {
  auto out = writer({});
  ASSERT_TRUE(out->commit());
  EXPECT_FALSE(snapshot(path_, (folder_ / "no" / "b.phlox").string()));
  EXPECT_FALSE(snapshot((folder_ / "none.phlox").string(), (folder_ / "b.phlox").string()));
  EXPECT_FALSE(fs::exists(folder_ / "b.phlox"));
}

class Append : public Long {
 public:
  // What a recorder writes, at this host's time: one that appends compares it.
  static void record_part(Writer& out, const std::string& name, int spans) {
    begin_now(out);
    ProfileMaker maker(out);
    const ThreadId thread = maker.thread(name);
    for (int i = 0; i < spans; ++i) {
      Sample sample = maker.sample(thread, "main;" + name, kSecond / 1000);
      sample.start = clock_now();
      maker.put(sample);
    }
    out.emit({{}, std::string(counters::kElapsed), 10});
    out.emit({ProcessId(1), "samples", spans});
  }
  static void begin_now(Sink& sink) {
    const Nanoseconds now = clock_now();
    sink.emit_meta("start_monotonic_ns", std::to_string(now));
    sink.emit_meta("start_unix_ns", std::to_string(clock_now(CLOCK_REALTIME)));
    Event event;
    event.kind = EventKind::recording_start;
    event.time = now;
    sink.emit(event);
  }
};

TEST_F(Append, two_parts_are_one_recording_with_a_gap_that_is_said) {
  for (const char* name : {"first", "second", "third"}) {
    auto out = fs::exists(path_) ? Writer::append(path_) : Writer::create(path_);
    ASSERT_TRUE(out) << out.error().message;
    record_part(**out, name, 3);
    // The second recorder is killed: its writer goes away without an end.
    if (std::string_view(name) != "second")
      (*out)->emit_meta("end_monotonic_ns", std::to_string(clock_now()));
    ASSERT_TRUE((*out)->commit());
    if (std::string_view(name) != "second") {
      ASSERT_TRUE((*out)->finish());
    }
    ::usleep(2000);
  }
  const auto profile = read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->samples().size(), 9u);
  ASSERT_EQ(profile->threads().size(), 3u);
  for (size_t i = 0; i < 9; ++i) {
    const Sample& sample = profile->samples()[i];
    const std::string& thread = profile->thread(sample.thread).name;
    EXPECT_EQ(thread, i < 3 ? "first" : i < 6 ? "second" : "third");
    EXPECT_EQ(profile->frame(profile->stack(sample.stack).frame).function, thread);
  }
  EXPECT_EQ(profile->counter("samples"), 9);
  EXPECT_EQ(profile->counter(counters::kElapsed), 30);
  EXPECT_EQ(std::count_if(profile->events().begin(), profile->events().end(),
                          [](const Event& e) { return e.kind == EventKind::lost; }),
            2);
  EXPECT_GE(lacking(*profile).between, 4'000'000);
  EXPECT_NE(lacking_words(lacking(*profile)).find("between were not recorded"), std::string::npos);
  EXPECT_EQ(profile->meta().at("start_monotonic_ns"), std::to_string(recording_start(*profile)));
  EXPECT_FALSE(is_unfinished(*profile));
}

class AppendToOld : public Append, public testing::WithParamInterface<const char*> {};

TEST_P(AppendToOld, goes_on_in_this_format) {
  for (const char* name : {"first", "second"}) {
    auto out = fs::exists(path_) ? Writer::append(path_) : Writer::create(path_);
    ASSERT_TRUE(out) << out.error().message;
    record_part(**out, name, 3);
    ASSERT_TRUE((*out)->finish());
    if (std::string_view(name) == "second") break;
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(
        sqlite3_exec(
            database,
            fmt::format("{}; CREATE VIEW stretch AS SELECT rowid AS id FROM sample", GetParam()).c_str(),
            nullptr, nullptr, nullptr),
        SQLITE_OK);
    sqlite3_close(database);
  }
  const auto profile = read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->samples().size(), 6u);
  const auto spans = query(path_, "SELECT count(*), count(waker) FROM span", {});
  ASSERT_TRUE(spans) << spans.error().message;
  EXPECT_EQ(spans->rows, (std::vector<std::vector<QueryValue>>{{int64_t{6}, int64_t{0}}}));
}
INSTANTIATE_TEST_SUITE_P(Formats, AppendToOld, testing::Values(test::kToFormat1, test::kToFormat2));

// A part with a process of that start and a thread in it; killed, or ended.
void record_process(Writer& out, std::string_view ticks, const std::string& executable, bool ends) {
  Append::begin_now(out);
  out.emit_meta("start_ticks.4711", ticks);
  Process process;
  process.pid = process.namespace_pid = 4711;
  process.executable = executable;
  process.start = clock_now();
  out.emit(ProcessId(1), process);
  Thread thread;
  thread.process = ProcessId(1);
  thread.tid = 4711;
  thread.python_id = 7;
  thread.start = clock_now();
  out.emit(ThreadId(1), thread);
  const Thread main = thread;
  thread.tid = 4712;
  thread.python_id = ends ? 8 : 9;  // two that were given one kernel id, one after the other
  out.emit(ThreadId(2), thread);
  Event event;
  event.kind = EventKind::process_start;
  event.process = ProcessId(1);
  out.emit(event);
  Sample sample;
  sample.thread = ThreadId(1);
  sample.start = clock_now();
  sample.wall = 1000;
  out.emit(SampleId(1), sample);
  out.emit({ProcessId(1), std::string(counters::kSamples), 5});
  out.emit({ProcessId(1), std::string(counters::kNativeWithoutEvent), ends ? 2 : 3});
  if (!ends) {
    ASSERT_TRUE(out.commit());
    return;
  }
  // As the recorder does: whatever lives ends with it.
  thread.end = process.end = clock_now();
  process.how_ended = "recording ended";
  Thread ended = main;
  ended.end = thread.end;
  out.emit(ThreadId(1), ended);
  out.emit(ThreadId(2), thread);
  out.emit(ProcessId(1), process);
  ASSERT_TRUE(out.finish());
}

TEST_F(Append, a_process_that_goes_on_is_one_process) {
  for (const bool ends : {true, false, true}) {
    auto out = fs::exists(path_) ? Writer::append(path_) : Writer::create(path_);
    ASSERT_TRUE(out) << out.error().message;
    record_process(**out, "1234", "/usr/bin/python3", ends);
    ::usleep(2000);
  }
  const auto profile = read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->processes().size(), 1u);
  EXPECT_EQ(profile->processes()[0].how_ended, "recording ended");
  EXPECT_LT(profile->processes()[0].start + 4'000'000, profile->processes()[0].end);
  // Its main thread, and the two with another Python id.
  ASSERT_EQ(profile->threads().size(), 3u);
  for (const Sample& sample : profile->samples()) EXPECT_EQ(sample.thread, ThreadId(1));
  EXPECT_EQ(profile->samples().size(), 3u);
  EXPECT_EQ(profile->counter(counters::kSamples), 15);
  EXPECT_EQ(profile->counter(counters::kNativeWithoutEvent), 3);
  EXPECT_EQ(std::count_if(profile->events().begin(), profile->events().end(),
                          [](const Event& e) { return e.kind == EventKind::process_start; }),
            1);
}

TEST_F(Append, another_process_of_the_same_pid_is_another) {
  for (const auto& [ticks, executable] : {std::pair("1234", "/usr/bin/python3"),
                                          {"5678", "/usr/bin/python3"},
                                          {"5678", "/usr/bin/python3.12"}}) {
    auto out = fs::exists(path_) ? Writer::append(path_) : Writer::create(path_);
    ASSERT_TRUE(out) << out.error().message;
    record_process(**out, ticks, executable, true);
  }
  const auto profile = read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->processes().size(), 3u);
  ASSERT_EQ(profile->threads().size(), 6u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(profile->threads()[2 * i].process, ProcessId(i + 1));
    EXPECT_EQ(profile->samples()[i].thread, ThreadId(2 * i + 1));
  }
}

TEST_F(Append, to_one_that_was_killed_before_its_first_commit) {
  ASSERT_TRUE(Writer::create(path_));
  {
    auto out = Writer::append(path_);
    ASSERT_TRUE(out) << out.error().message;
    record_part(**out, "first", 3);
    ASSERT_TRUE((*out)->finish());
  }
  const auto profile = read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->samples().size(), 3u);
  EXPECT_EQ(lacking(*profile).between, 0);
}

TEST_F(Append, killed_at_any_instant_the_next_one_goes_on) {
  std::mt19937 random(815);
  for (int round = 0; round < 12; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto out = fs::exists(path_) ? Writer::append(path_) : Writer::create(path_);
      if (!out) {
        std::fprintf(stderr, "round %d: %s\n", round, out.error().message.c_str());
        ::_exit(1);
      }
      (*out)->keep_only({Writer::kLeastBytes, 60 * kSecond});
      begin_now(**out);
      ProfileMaker maker(**out);
      const ThreadId thread = maker.thread("round " + std::to_string(round));
      for (int i = 0;; ++i) {
        maker.add(thread, "main:" + std::to_string(i % 300) + ";f", 1'000'000);
        if (i % 7 == 6 && !(*out)->commit()) ::_exit(2);
      }
    }
    ::usleep(20'000 + static_cast<useconds_t>(random() % 30'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    if (!fs::exists(path_)) continue;
    const auto profile = read(path_);
    ASSERT_TRUE(profile) << round << ": " << profile.error().message;
  }
  EXPECT_GE(read(path_)->threads().size(), 2u);
}

TEST_F(Append, not_to_what_another_one_is_recording) {
  auto out = Writer::create(path_);
  ASSERT_TRUE(out);
  begin_now(**out);
  ASSERT_TRUE((*out)->commit());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(Writer::append(path_) ? 1 : 0);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Append, not_to_what_was_recorded_before_the_host_was_started) {
  {
    auto out = writer({});
    ASSERT_TRUE(out->finish());
  }
  const auto out = Writer::append(path_);
  ASSERT_FALSE(out);
  EXPECT_NE(out.error().message.find("rebooted since"), std::string::npos) << out.error().message;
}

}  // namespace
}  // namespace phlox::recording
