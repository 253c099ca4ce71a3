#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "phlox/profile/sampled_events.h"
#include "phlox/profile/spans.h"
#include "phlox/profile/unfinished.h"
#include "phlox/profile/waker_words.h"
#include "phlox/recording/labels.h"
#include "phlox/recording/reader.h"
#include "phlox/recording/schema.h"
#include "phlox/recording/task_tables.h"
#include "phlox/recording/writer.h"
#include "phlox/view/shown_event.h"
#include "support/old_formats.h"
#include "support/profile_of.h"
#include "support/source_path.h"

namespace phlox::recording {
namespace {

using namespace phlox::profile;
using test::ProfileMaker;
namespace fs = std::filesystem;

class Recording : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "phlox-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "a.phlox";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<Writer> writer() {
    auto made = Writer::create(path_.string());
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }

  // What the first sentence of an error must say; its kind is always input.
  void expect_refused(std::string_view words) {
    const auto read_back = read(path_.string());
    ASSERT_FALSE(read_back) << words;
    EXPECT_EQ(read_back.error().kind, ErrorKind::input);
    EXPECT_NE(read_back.error().message.find(words), std::string::npos) << read_back.error().message;
    EXPECT_NE(read_back.error().message.find("a.phlox"), std::string::npos) << read_back.error().message;
  }

  void run_sql(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << message << ": " << sql;
    sqlite3_free(message);
    sqlite3_close(database);
  }

  // A recording that may be gone on with.
  static void put_this_host(Sink& sink) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    sink.emit_meta("host", host);
    sink.emit_meta("start_monotonic_ns", std::to_string(clock_now()));
    sink.emit_meta("start_unix_ns", std::to_string(clock_now(CLOCK_REALTIME)));
  }

  // A small recording of two threads.
  void write_small() {
    auto out = writer();
    ASSERT_TRUE(out);
    ProfileMaker maker(*out);
    const ThreadId main = maker.thread("MainThread"), worker = maker.thread("worker-1");
    maker.add(main, "main:3;load:10;json/decoder.py/decode:5", 30'000'000);
    maker.add(main, "main:4;work:20;work:21", 50'000'000);
    Sample waits = maker.sample(worker, "run:7;get:9", 80'000'000);
    waits.cpu = 0;
    waits.cpu_state = CpuState::blocked;
    waits.gil_state = GilState::waits;
    waits.system_call = 202;
    waits.waker = WakerId(1);
    out->emit(WakerId(1), {main, maker.stack("main:4;work:20"), ""});
    waits.wait_target = WaitTargetId(1);
    out->emit(WaitTargetId(1), {WaitTargetKind::pipe, "", "worker.py (72)"});
    maker.put(waits);
    out->put_task_census(TaskCensusId(1), {ProcessId(1), 10, kSecond});
    out->put_event_loop(EventLoopId(1), {ProcessId(1), main, "uvloop.Loop"});
    out->put_task_stack(TaskStackId(1), {{}, FrameId(1)});
    out->put_task_time(TaskTimeId(1),
                       {EventLoopId(1), TaskStackId(1), TaskState::waiting, "lock", "Lock", 5, 1});
    out->emit({ProcessId(1), "samples", 3});
    out->emit({{}, "elapsed_ns", 80'000'000});
    ASSERT_TRUE(out->finish());
  }

  fs::path folder_;
  fs::path path_;
};

TEST_F(Recording, what_was_written_is_read) {
  auto out = writer();
  out->emit_meta("host", "here");
  ProfileMaker maker(*out);
  const ThreadId thread = maker.thread("worker \xf0\x9f\x8c\xb8");
  Process process;
  process.pid = 7;
  process.namespace_pid = 1;
  process.parent = ProcessId(1);
  process.how_ended = "exit 0";
  out->emit(ProcessId(2), process);
  out->emit(ModuleId(1), {"/lib/libc.so.6", "ab12", 0xffff'8000'0000'0000});
  out->emit(ModuleId(2), {"/lib/libm.so.6", "", 0});
  out->emit(ModuleId(2), {"/lib/libm.so.6", "", 0, MissingNames{true, false, "stripped", "install it"}});
  Frame native;
  native.kind = FrameKind::native;
  native.module = ModuleId(1);
  native.address = 0xffff'ffff'8100'0000;
  native.inlined_in = FrameId(1);
  native.found_by = "cfi";
  native.role = FrameRole::cython_body;
  Sample sample = maker.sample(thread, "main;work:7", 123'456'789);
  sample.start = ProfileMaker::kStart + 5'000;
  sample.cpu = 1;
  sample.samples = 4'000'000'000;
  sample.cpu_number = 127;
  sample.cpu_state = CpuState::blocked;
  sample.gil_state = GilState::not_applicable;
  sample.collecting = true;
  sample.system_call = 202;
  sample.quality = Quality::cut;
  out->emit(FrameId(3), native);
  maker.put(sample);
  Sample before = maker.sample(thread, "", 10);  // nothing on its stack, and before the first
  before.start = ProfileMaker::kStart - 1'500;
  maker.put(before);
  out->emit({EventKind::lost, ProfileMaker::kStart, ProcessId(1), thread, -5, "why"});
  out->emit({{}, "ticks", 1});
  out->emit({{}, "ticks", 2});
  ASSERT_TRUE(out->finish());

  const auto profile = read(path_.string());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->meta().at("host"), "here");
  ASSERT_EQ(profile->processes().size(), 2u);
  EXPECT_EQ(profile->processes()[1].parent, ProcessId(1));
  EXPECT_EQ(profile->processes()[1].how_ended, "exit 0");
  EXPECT_EQ(profile->thread(thread).name, "worker \xf0\x9f\x8c\xb8");
  EXPECT_EQ(profile->modules()[0].load_bias, 0xffff'8000'0000'0000);
  EXPECT_FALSE(profile->modules()[0].missing);
  ASSERT_TRUE(profile->modules()[1].missing);
  EXPECT_TRUE(profile->modules()[1].missing->functions);
  EXPECT_FALSE(profile->modules()[1].missing->lines);
  EXPECT_EQ(profile->modules()[1].missing->why, "stripped");
  EXPECT_EQ(profile->modules()[1].missing->advice, "install it");
  EXPECT_EQ(profile->frame(FrameId(3)), native);
  EXPECT_EQ(profile->frame(FrameId(2)).line, 7);
  ASSERT_EQ(profile->stacks().size(), 2u);
  EXPECT_EQ(profile->stack(StackId(2)).parent, StackId(1));
  ASSERT_EQ(profile->samples().size(), 2u);
  const Sample& got = profile->samples()[0];
  EXPECT_EQ(got.start, sample.start);
  EXPECT_EQ(got.wall, sample.wall);
  EXPECT_EQ(got.cpu, sample.cpu);
  EXPECT_EQ(got.samples, sample.samples);
  EXPECT_EQ(got.cpu_number, sample.cpu_number);
  EXPECT_EQ(got.stack, sample.stack);
  EXPECT_EQ(got.cpu_state, sample.cpu_state);
  EXPECT_EQ(got.gil_state, sample.gil_state);
  EXPECT_EQ(got.collecting, sample.collecting);
  EXPECT_EQ(got.system_call, sample.system_call);
  EXPECT_EQ(got.quality, sample.quality);
  EXPECT_EQ(profile->samples()[1].start, sample.start - 7'000);  // -6.5 µs, down to the microsecond
  EXPECT_FALSE(profile->samples()[1].stack);
  EXPECT_EQ(profile->events().back().text, "why");
  EXPECT_EQ(profile->events().back().thread, thread);
  EXPECT_EQ(profile->counter("ticks"), 2);
}

TEST_F(Recording, what_others_recorded_does_not_say_in_which_call_a_thread_was_blocked) {
  for (const bool by_others : {false, true}) {
    auto out = writer();
    ProfileMaker maker{*out};
    if (by_others) out->emit_meta("recorded_by", "perf 6.1");
    Sample sample = maker.sample(maker.thread("worker"), "main", 1000);
    sample.cpu_state = CpuState::blocked;
    maker.put(sample);
    sample.cpu_state = CpuState::running;
    maker.put(sample);
    ASSERT_TRUE(out->finish());
    const auto profile = read(path_.string());
    ASSERT_TRUE(profile) << profile.error().message;
    EXPECT_EQ(profile->samples()[0].system_call, by_others ? kCallNotRecorded : -1);
    EXPECT_EQ(profile->samples()[1].system_call, -1);
    std::filesystem::remove(path_);
  }
}

TEST_F(Recording, one_of_an_older_phlox_says_the_role_of_a_frame_in_words) {
  const FrameRole roles[] = {FrameRole::none,        FrameRole::interpreter_loop, FrameRole::trampoline,
                             FrameRole::cython_slot, FrameRole::cython_wrapper,   FrameRole::cython_body};
  auto out = writer();
  for (uint32_t i = 0; i < std::size(roles); ++i) {
    Frame frame;
    frame.kind = FrameKind::native;
    frame.address = i;
    frame.found_by = "frame pointer";
    frame.role = roles[i];
    out->emit(FrameId(i + 1), frame);
  }
  ASSERT_TRUE(out->finish());
  const auto as_written = read(path_.string());
  ASSERT_TRUE(as_written) << as_written.error().message;
  run_sql(
      "DROP VIEW span; DROP VIEW function_self; DROP VIEW function_total;"
      "UPDATE frame SET found_by = found_by || CASE role WHEN 1 THEN ', interpreter loop' WHEN 2 THEN "
      "', trampoline' WHEN 3 THEN ', Cython slot' WHEN 4 THEN ', Cython wrapper' WHEN 5 THEN ', Cython body' "
      "ELSE '' END; ALTER TABLE frame DROP COLUMN role");
  const auto older = read(path_.string());
  ASSERT_TRUE(older) << older.error().message;
  EXPECT_EQ(older->frames(), as_written->frames());
  EXPECT_EQ(older->frames()[5].role, FrameRole::cython_body);
}

TEST_F(Recording, a_growing_row_is_one_row) {
  auto out = writer();
  ProfileMaker maker(*out);
  Sample sample = maker.sample(maker.thread("a"), "main", 5);
  out->emit(SampleId(1), sample);
  ASSERT_TRUE(out->commit());
  sample.wall = 9;
  sample.samples = 2;
  sample.cpu_number = 5;
  out->emit(SampleId(1), sample);
  ASSERT_TRUE(out->finish());
  const auto profile = read(path_.string());
  ASSERT_TRUE(profile);
  ASSERT_EQ(profile->samples().size(), 1u);
  EXPECT_EQ(profile->samples()[0].wall, 9);
  EXPECT_EQ(profile->samples()[0].samples, 2u);
  EXPECT_EQ(profile->samples()[0].cpu_number, 5);
}

TEST_F(Recording, a_finished_one_is_one_private_file) {
  std::ofstream(path_) << "something of before";
  fs::permissions(path_, fs::perms(0644));
  write_small();
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 1u);
  struct stat there {};
  ASSERT_EQ(::stat(path_.c_str(), &there), 0);
  EXPECT_EQ(there.st_mode & 07777, 0600u);
  EXPECT_TRUE(read(path_.string()));
}

TEST_F(Recording, one_that_is_safe_at_its_end_only_is_as_any_other) {
  auto out = Writer::create(path_.string(), {}, Safe::at_finish);
  ASSERT_TRUE(out) << out.error().message;
  ProfileMaker maker(**out);
  const ThreadId thread = maker.thread("a");
  for (int i = 0; i < 20'000; ++i) {
    maker.add(thread, "main:" + std::to_string(i % 300), 1'000);
    if (i % 1'000 == 0) {
      EXPECT_TRUE((*out)->commit().has_value());
    }
  }
  ASSERT_TRUE((*out)->finish());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  const auto profile = read(path_.string());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->samples().size(), 20'000u);
  run_sql("PRAGMA integrity_check");
}

// In a child, as below. What there is no room for is an error at the latest at the end.
TEST_F(Recording, one_that_is_safe_only_at_its_end_reports_a_full_disk) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{512 << 10, 512 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto out = Writer::create(path_.string(), {}, Safe::at_finish);
    if (!out) ::_exit(100);
    ProfileMaker maker(**out);
    const ThreadId thread = maker.thread("a");
    for (int k = 0; k < 200'000; ++k) maker.add(thread, "main:" + std::to_string(k % 1'000), 1'000);
    (void)(*out)->commit();
    const auto finished = (*out)->finish();
    ::_exit(!finished && finished.error().kind == ErrorKind::output ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(Recording, belongs_to_the_given_owner) {
  // Only root may give files away; anybody may to themselves.
  const Owner owner = ::geteuid() == 0 ? Owner{12345, 23456} : Owner{::geteuid(), ::getegid()};
  auto out = Writer::create(path_.string(), owner);
  ASSERT_TRUE(out) << out.error().message;
  ProfileMaker maker(**out);
  ASSERT_TRUE((*out)->commit());
  for (const auto& entry : fs::directory_iterator(folder_)) {
    struct stat there {};
    ASSERT_EQ(::stat(entry.path().c_str(), &there), 0);
    EXPECT_EQ(there.st_uid, owner.user) << entry.path();
    EXPECT_EQ(there.st_gid, owner.group) << entry.path();
  }
  ASSERT_TRUE((*out)->finish());
}

TEST_F(Recording, is_not_written_through_a_link_or_into_a_folder) {
  std::ofstream(folder_ / "precious") << "text";
  fs::create_symlink(folder_ / "precious", path_);
  auto through_link = Writer::create(path_.string());
  ASSERT_FALSE(through_link);
  EXPECT_EQ(through_link.error().kind, ErrorKind::output);
  EXPECT_EQ(fs::file_size(folder_ / "precious"), 4u);
  EXPECT_FALSE(Writer::create(folder_.string()));
  EXPECT_FALSE(Writer::create((folder_ / "no" / "where").string()));
}

TEST_F(Recording, is_read_while_it_grows) {
  auto out = writer();
  ProfileMaker maker(*out);
  const ThreadId thread = maker.thread("a");
  for (int i = 0; i < 5; ++i) {
    maker.add(thread, "main", 10);
    ASSERT_TRUE(out->commit());
    maker.add(thread, "main;not committed", 10);
    const auto profile = read(path_.string());
    ASSERT_TRUE(profile) << profile.error().message;
    EXPECT_EQ(profile->samples().size(), static_cast<size_t>(2 * i + 1));
    EXPECT_TRUE(grows(*profile));
  }
  ASSERT_TRUE(out->finish());
  EXPECT_FALSE(grows(*read(path_.string())));
}

TEST_F(Recording, a_reader_during_finish_costs_only_a_second_file) {
  auto out = writer();
  ProfileMaker maker(*out);
  maker.add(maker.thread("a"), "main", 10);
  ASSERT_TRUE(out->commit());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path_.c_str(), &other, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN; SELECT * FROM sample", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto finished = out->finish();
  EXPECT_FALSE(finished);
  if (!finished) {
    EXPECT_NE(finished.error().message.find("another program"), std::string::npos)
        << finished.error().message;
  }
  sqlite3_close(other);
  const auto profile = read(path_.string());
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->samples().size(), 1u);
}

// In a child, since the limit on the size of files cannot be taken back.
TEST_F(Recording, on_a_full_disk_what_was_committed_stays) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{512 << 10, 512 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto out = Writer::create(path_.string());
    if (!out) ::_exit(100);
    ProfileMaker maker(**out);
    const ThreadId thread = maker.thread("a");
    for (int i = 0; i < 1'000; ++i) {
      for (int k = 0; k < 1'000; ++k) maker.add(thread, "main:" + std::to_string(k), 1'000);
      if (auto committed = (*out)->commit(); !committed) {
        const bool refused = committed.error().kind == ErrorKind::output && !(*out)->commit();
        (void)(*out)->finish();
        ::_exit(refused ? std::min(i, 90) : 101);
      }
    }
    ::_exit(102);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  const int committed = WEXITSTATUS(status);
  ASSERT_LT(committed, 91);
  ASSERT_GT(committed, 2);
  const auto profile = read(path_.string());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->samples().size(), static_cast<size_t>(committed) * 1'000);
}

// The child writes as the recorder does, and says after each commit how far it is.
TEST_F(Recording, killed_at_any_instant_it_opens_and_has_all_that_was_committed) {
  std::mt19937 random(4711);
  for (int round = 0; round < 25; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto out = Writer::create(path_.string());
      if (!out) ::_exit(1);
      ProfileMaker maker(**out);
      Spans spans(**out);
      const ThreadId threads[] = {maker.thread("a"), maker.thread("b")};
      for (int64_t sample = 0;; ++sample) {
        for (ThreadId thread : threads) {
          spans.add(maker.sample(thread, "main:" + std::to_string(sample / 3 % 500) + ";f", 1'000'000));
        }
        if (sample % 20 != 19) continue;
        spans.flush();
        if (!(*out)->commit()) ::_exit(2);
        const int64_t done = sample + 1;
        if (::write(ends[1], &done, sizeof done) != sizeof done) ::_exit(3);
      }
    }
    ::close(ends[1]);
    int64_t reported = 0;
    const auto wanted = static_cast<int64_t>(random() % 2'000);
    while (reported < wanted)
      ASSERT_EQ(::read(ends[0], &reported, sizeof reported), static_cast<ssize_t>(sizeof reported));
    ::usleep(
        static_cast<useconds_t>(random() % 3'000));  // anywhere between two commits, or in the middle of one
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (int64_t more = 0; ::read(ends[0], &more, sizeof more) == static_cast<ssize_t>(sizeof more);)
      reported = more;
    ::close(ends[0]);
    const auto profile = read(path_.string());
    ASSERT_TRUE(profile) << profile.error().message;
    EXPECT_FALSE(grows(*profile));
    std::vector<Nanoseconds> walls(3);
    for (const Sample& sample : profile->samples()) walls[sample.thread.value] += sample.wall;
    for (uint32_t thread : {1u, 2u}) {
      // All that was reported, and at most the commit that was under way when it died.
      EXPECT_GE(walls[thread], reported * 1'000'000) << round;
      EXPECT_LE(walls[thread], (reported + 20) * 1'000'000) << round;
    }
  }
}

TEST_F(Recording, a_sample_row_takes_at_most_thirty_bytes) {
  auto out = writer();
  ProfileMaker maker(*out);
  const ThreadId threads[] = {maker.thread("MainThread"), maker.thread("worker")};
  std::vector<StackId> stacks;
  for (int i = 0; i < 20'000; ++i) stacks.push_back(maker.stack("main;work:" + std::to_string(i)));
  ASSERT_TRUE(out->commit());
  run_sql("PRAGMA wal_checkpoint(TRUNCATE)");
  const auto before = fs::file_size(path_);
  // A million rows of a thousand looks a second, as measured times are: 1 ms and some hundred microseconds.
  std::mt19937 random(1);
  constexpr uint32_t kRows = 1'000'000;
  Spans spans(*out);
  Nanoseconds now = ProfileMaker::kStart;
  Sample sample = maker.sample(threads[0], "main", 1);
  for (uint32_t i = 0; i < kRows / 2; ++i) {
    sample.wall = 700'000 + static_cast<Nanoseconds>(random() % 600'000);
    for (ThreadId thread : threads) {
      sample.thread = thread;
      sample.start = now;
      sample.cpu = sample.wall - static_cast<Nanoseconds>(random() % 10'000);
      sample.stack = stacks[random() % stacks.size()];
      sample.cpu_state = random() % 4 == 0 ? CpuState::blocked : CpuState::running;
      sample.cpu_number = static_cast<int16_t>(random() % 16);
      spans.add(sample);
    }
    now += sample.wall;
    if (i % 250 == 249) {
      spans.flush();
      ASSERT_TRUE(out->commit());
    }
  }
  spans.flush();
  ASSERT_TRUE(out->finish());
  const double bytes = double(fs::file_size(path_) - before) / kRows;
  RecordProperty("bytes_a_row", std::to_string(bytes));
  printf("%.2f bytes a row\n", bytes);
  EXPECT_LE(bytes, 30);
  const Nanoseconds begin = clock_now(CLOCK_THREAD_CPUTIME_ID);
  const auto profile = read(path_.string());
  printf("%lld ms to read\n",
         static_cast<long long>((clock_now(CLOCK_THREAD_CPUTIME_ID) - begin) / 1'000'000));
  ASSERT_TRUE(profile);
  EXPECT_GT(profile->samples().size(), kRows * 99 / 100);
}

TEST_F(Recording, what_is_no_recording_says_so) {
  expect_refused("No such file");
  std::ofstream(path_).flush();
  expect_refused("empty");
  std::ofstream(path_) << std::string(5000, 'x');
  expect_refused("not a phlox recording");
  fs::remove(path_);
  run_sql("CREATE TABLE something (x); INSERT INTO something VALUES (1)");
  expect_refused("not a phlox recording");
  fs::remove(path_);
  fs::create_directory(path_);
  expect_refused("is a folder");
}

TEST_F(Recording, of_before_there_were_missing_names_is_read) {
  write_small();
  run_sql("DROP TABLE missing_names");
  const auto profile = recording::read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_FALSE(profile->samples().empty());
}

TEST_F(Recording, missing_names_of_no_module_are_refused) {
  write_small();
  run_sql("INSERT INTO missing_names VALUES (999, 1, 1, '', '')");
  expect_refused("missing_names");
}

TEST_F(Recording, of_a_newer_phlox_says_so) {
  write_small();
  run_sql("PRAGMA user_version=4");
  expect_refused("newer phlox");
}

TEST_F(Recording, of_format_1_is_read) {
  write_small();
  const auto as_written = read(path_.string());
  run_sql(test::kToFormat1);
  const auto older = read(path_.string());
  ASSERT_TRUE(older) << older.error().message;
  ASSERT_EQ(older->samples().size(), as_written->samples().size());
  EXPECT_EQ(older->samples()[2].system_call, 202);
  EXPECT_EQ(older->samples()[2].event, 0);
}

TEST_F(Recording, of_format_2_is_read) {
  write_small();
  const auto as_written = read(path_.string());
  run_sql(test::kToFormat2);
  const auto older = read(path_.string());
  ASSERT_TRUE(older) << older.error().message;
  ASSERT_EQ(older->samples().size(), as_written->samples().size());
  for (size_t i = 0; i < older->samples().size(); ++i) {
    EXPECT_EQ(older->samples()[i].waker, as_written->samples()[i].waker);
    EXPECT_EQ(older->samples()[i].wait_target, as_written->samples()[i].wait_target);
  }
  EXPECT_EQ(older->processes()[0].mode, as_written->processes()[0].mode);
  EXPECT_EQ(older->counters().size(), as_written->counters().size());
}

TEST_F(Recording, wakers_are_read_back) {
  auto out = writer();
  ProfileMaker maker(*out);
  const ThreadId thread = maker.thread("a"), by = maker.thread("b");
  out->emit(WakerId(1), {by, maker.stack("main;put"), ""});
  out->emit(WakerId(2), {{}, {}, "nginx (99)"});
  out->emit(WakerId(3), {{}, {}, std::string(profile::kItsTimeout)});
  for (const uint32_t waker : {1U, 2U, 0U, 3U}) {
    Sample sample = maker.sample(thread, "main;get", 1000);
    sample.cpu_state = CpuState::blocked;
    sample.waker = WakerId(waker);
    maker.put(sample);
  }
  ASSERT_TRUE(out->finish());
  out.reset();
  const auto profile = read(path_.string());
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->wakers().size(), 3U);
  EXPECT_EQ(profile->wakers()[0].thread, by);
  EXPECT_EQ(profile->frame(profile->stack(profile->wakers()[0].stack).frame).function, "put");
  EXPECT_EQ(profile->wakers()[1], (Waker{{}, {}, "nginx (99)"}));
  std::vector<uint32_t> wakers;
  for (const Sample& sample : profile->samples()) wakers.push_back(sample.waker.value);
  EXPECT_EQ(wakers, (std::vector<uint32_t>{1, 2, 0, 3}));
  // Older versions: first one that recorded it without a proof.
  run_sql("ALTER TABLE waker DROP COLUMN kind");
  const auto unproved = read(path_.string());
  ASSERT_TRUE(unproved) << unproved.error().message;
  for (const Sample& sample : unproved->samples()) EXPECT_FALSE(sample.waker);
  run_sql("DROP VIEW span; ALTER TABLE state DROP COLUMN waker; DROP TABLE waker");
  const auto older = read(path_.string());
  ASSERT_TRUE(older) << older.error().message;
  EXPECT_FALSE(older->samples()[0].waker);
}

TEST_F(Recording, what_a_wait_was_for_comes_back) {
  auto out = writer();
  ProfileMaker maker(*out);
  const ThreadId thread = maker.thread("a");
  const WaitTarget database{WaitTargetKind::socket, "10.0.0.5:5432", ""},
      child{WaitTargetKind::process, "sleep 5", "71"};
  out->emit(WaitTargetId(1), database);
  out->emit(WaitTargetId(2), child);
  for (const uint32_t wait_target : {1U, 2U, 0U, 1U}) {
    Sample sample = maker.sample(thread, "main;get", 1000);
    sample.cpu_state = CpuState::blocked;
    sample.wait_target = WaitTargetId(wait_target);
    maker.put(sample);
  }
  ASSERT_TRUE(out->finish());
  out.reset();
  const auto profile = read(path_.string());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->wait_targets(), (std::vector<WaitTarget>{database, child}));
  std::vector<uint32_t> wait_target;
  for (const Sample& sample : profile->samples()) wait_target.push_back(sample.wait_target.value);
  EXPECT_EQ(wait_target, (std::vector<uint32_t>{1, 2, 0, 1}));
  // A newer version, with a kind that is not known yet.
  run_sql("UPDATE wait_target SET kind = 'spell' WHERE id = 2");
  const auto newer = read(path_.string());
  ASSERT_TRUE(newer) << newer.error().message;
  EXPECT_EQ(newer->wait_targets()[1].kind, WaitTargetKind::other);
  // Of an older one.
  run_sql("DROP VIEW span; ALTER TABLE state DROP COLUMN wait_target; DROP TABLE wait_target");
  const auto older = read(path_.string());
  ASSERT_TRUE(older) << older.error().message;
  EXPECT_FALSE(older->samples()[0].wait_target);
}

TEST_F(Recording, await_time_is_read_back_as_last_written) {
  const TaskTime waits{EventLoopId(1),
                       TaskStackId(2),
                       TaskState::waiting,
                       "semaphore",
                       "BoundedSemaphore",
                       70'000'000,
                       7,
                       60'000'000,
                       3,
                       4,
                       TaskChanges{{1.5F, -2e12F}}};
  const TaskGroup group{EventLoopId(1), FrameId(2), 9'000, 8, 7, 6, 5, 4, 3, 2'000, 1'000, 1};
  const Request request{EventLoopId(1), 4'000, 5'000, 90'000, 91'000, 7};
  const Request unfinished{EventLoopId(2), {}, 6'000, 7'000, {}, 2};
  const ReadyTasks ready{EventLoopId(2), 30'000'000, 2'000, 5};
  TaskTime bare{EventLoopId(2), {}, TaskState::ready, "", "", 1'000, 1, 0};
  bare.changes.emplace();  // none changed
  TaskCensus census;
  census.process = ProcessId(1);
  census.times = 7;
  census.span = 700'000'000;
  census.cost = 1'000;
  census.tasks = 8;
  census.unproved = 1;
  census.ended = 2;
  census.beyond = 3;
  census.without_stack = 4;
  census.problem = "a list changed";
  {
    auto out = writer();
    ASSERT_TRUE(out);
    ProfileMaker maker(*out);
    const ThreadId main = maker.thread("MainThread");
    maker.add(main, "main:3", 30'000'000);
    put_this_host(*out);
    out->put_task_census(TaskCensusId(1), census);
    out->put_event_loop(EventLoopId(1), {ProcessId(1), main, "uvloop.Loop"});
    out->put_event_loop(EventLoopId(2), {ProcessId(1), {}, "trio"});
    out->put_task_stack(TaskStackId(1), {{}, maker.frame("handle:12")});
    out->put_task_stack(TaskStackId(2), {TaskStackId(1), maker.frame("acquire:50")});
    out->put_task_time(TaskTimeId(1), {EventLoopId(1), TaskStackId(1)});
    out->put_task_time(TaskTimeId(2), bare);
    ASSERT_TRUE(out->commit());
    out->put_task_time(TaskTimeId(1), waits);
    out->put_task_group(TaskGroupId(1), group);
    out->put_ready_tasks(ReadyTasksId(1), ready);
    out->put_task_waiter(TaskWaiterId(1), {TaskGroupId(1), {}, 3});
    out->put_task_waiter(TaskWaiterId(1), {TaskGroupId(1), TaskStackId(2), 4});
    out->put_job_waiter(JobWaiterId(1), {ProcessId(1), maker.frame("resize:0"), TaskStackId(2), 3});
    out->put_request(RequestId(1), {EventLoopId(1), {}, 1, 2, 3, 4});
    out->put_request(RequestId(2), unfinished);
    out->put_request(RequestId(1), request);
    out->put_request_part(RequestPartId(1), {RequestId(2), TaskTimeId(1), true, 5'000});
    out->put_request_part(RequestPartId(2), {RequestId(1), {}, false, 0});
    ASSERT_TRUE(out->finish());
  }
  const auto tasks = read_tasks(path_.string());
  ASSERT_TRUE(tasks) << tasks.error().message;
  const auto profile = read(path_.string());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_TRUE(check_tasks(*tasks, *profile, path_.string()));
  EXPECT_EQ(tasks->times, (std::vector<TaskTime>{waits, bare}));
  EXPECT_EQ(tasks->groups, (std::vector<TaskGroup>{group}));
  EXPECT_EQ(tasks->ready, (std::vector<ReadyTasks>{ready}));
  EXPECT_EQ(tasks->waiters, (std::vector<TaskWaiter>{{TaskGroupId(1), TaskStackId(2), 4}}));
  ASSERT_EQ(tasks->job_waiters.size(), 1u);
  EXPECT_EQ(tasks->job_waiters[0].process, ProcessId(1));
  EXPECT_EQ(profile->frame(tasks->job_waiters[0].frame).function, "resize");
  EXPECT_EQ(tasks->job_waiters[0].stack, TaskStackId(2));
  EXPECT_EQ(tasks->job_waiters[0].seen, 3u);
  EXPECT_EQ(tasks->requests, (std::vector<Request>{request, unfinished}));
  EXPECT_EQ(tasks->request_parts, (std::vector<RequestPart>{{RequestId(2), TaskTimeId(1), true, 5'000},
                                                            {RequestId(1), {}, false, 0}}));
  EXPECT_EQ(tasks->censuses, (std::vector<TaskCensus>{census}));
  EXPECT_EQ(tasks->loops,
            (std::vector<EventLoop>{{ProcessId(1), ThreadId(1), "uvloop.Loop"}, {ProcessId(1), {}, "trio"}}));
  ASSERT_EQ(tasks->stacks.size(), 2u);
  EXPECT_EQ(tasks->stacks[1].parent, TaskStackId(1));
  EXPECT_EQ(profile->frame(tasks->stacks[1].frame).function, "acquire");

  // A recording that goes on puts its own behind them.
  {
    auto more = Writer::append(path_.string());
    ASSERT_TRUE(more) << more.error().message;
    ProfileMaker maker(**more);
    const ThreadId thread = maker.thread("later");
    maker.add(thread, "later:1", 1'000);
    (*more)->put_event_loop(EventLoopId(1), {ProcessId(1), thread, "asyncio"});
    (*more)->put_task_stack(TaskStackId(1), {{}, maker.frame("later:9")});
    (*more)->put_task_time(TaskTimeId(1), {EventLoopId(1), TaskStackId(1)});
    (*more)->put_task_group(TaskGroupId(1), {EventLoopId(1), FrameId(1)});
    (*more)->put_ready_tasks(ReadyTasksId(1), {EventLoopId(1), 1, 1, 1});
    (*more)->put_task_waiter(TaskWaiterId(1), {TaskGroupId(1), TaskStackId(1), 1});
    (*more)->put_job_waiter(JobWaiterId(1), {ProcessId(1), FrameId(1), {}, 1});
    (*more)->put_request(RequestId(1), {EventLoopId(1), 1, 2, 3, 4, 5});
    (*more)->put_request_part(RequestPartId(1), {RequestId(1), TaskTimeId(1), false, 6});
    ASSERT_TRUE((*more)->finish());
  }
  const auto longer = read(path_.string());
  ASSERT_TRUE(longer) << longer.error().message;
  const auto more = read_tasks(path_.string());
  ASSERT_TRUE(more) << more.error().message;
  ASSERT_EQ(more->times.size(), 3u);
  EXPECT_EQ(more->times[2].loop, EventLoopId(3));
  ASSERT_EQ(more->groups.size(), 2u);
  EXPECT_EQ(more->groups[1].loop, EventLoopId(3));
  EXPECT_EQ(longer->frame(more->groups[1].frame).function, "later");
  ASSERT_EQ(more->waiters.size(), 2u);
  EXPECT_EQ(more->waiters[1], (TaskWaiter{TaskGroupId(2), TaskStackId(3), 1}));
  ASSERT_EQ(more->job_waiters.size(), 2u);
  EXPECT_EQ(more->job_waiters[1].process, more->loops[2].process);
  EXPECT_EQ(longer->frame(more->job_waiters[1].frame).function, "later");
  EXPECT_FALSE(more->job_waiters[1].stack);
  ASSERT_EQ(more->requests.size(), 3u);
  EXPECT_EQ(more->requests[2], (Request{EventLoopId(3), 1, 2, 3, 4, 5}));
  ASSERT_EQ(more->request_parts.size(), 3u);
  EXPECT_EQ(more->request_parts[2], (RequestPart{RequestId(3), TaskTimeId(3), false, 6}));
  ASSERT_EQ(more->ready.size(), 2u);
  EXPECT_EQ(more->ready[1].loop, EventLoopId(3));
  EXPECT_EQ(longer->frame(more->stacks[more->times[2].stack.value - 1].frame).function, "later");
}

// Each recorder counts processes from 1; in the file they have other rows.
TEST_F(Recording, facts_of_processes_stay_with_them_when_it_is_gone_on_with) {
  {
    auto out = writer();
    put_this_host(*out);
    ProfileMaker maker(*out);
    maker.add(maker.thread("MainThread"), "main:3", 30'000'000);
    out->emit_meta("resource.1", "service.name=first");
    ASSERT_TRUE(out->finish());
  }
  {
    auto more = Writer::append(path_.string());
    ASSERT_TRUE(more) << more.error().message;
    (*more)->emit_meta("process_name.1", "of a process without a row");
    ProfileMaker maker(**more);
    maker.add(maker.thread("later"), "later:1", 1'000);
    Process child;
    child.pid = 77;
    (*more)->emit(ProcessId(2), child);
    (*more)->emit_meta("resource.1", "service.name=second");
    (*more)->emit_meta("process_rank.2", "RANK 1");
    (*more)->emit_meta("forked_from.2", "1");
    ASSERT_TRUE((*more)->finish());
  }
  const auto both = read(path_.string());
  ASSERT_TRUE(both) << both.error().message;
  ASSERT_EQ(both->processes().size(), 3u);
  EXPECT_EQ(both->meta().at("resource.1"), "service.name=first");
  EXPECT_EQ(both->meta().at("resource.2"), "service.name=second");
  EXPECT_EQ(both->meta().at("process_rank.3"), "RANK 1");
  EXPECT_EQ(both->meta().at("forked_from.3"), "2");
  EXPECT_FALSE(both->meta().contains("process_name.1"));
}

TEST_F(Recording, of_before_there_were_task_times_is_read_and_gone_on_with) {
  {
    auto out = writer();
    put_this_host(*out);
    ProfileMaker maker(*out);
    maker.add(maker.thread("MainThread"), "main:3", 30'000'000);
    ASSERT_TRUE(out->finish());
  }
  run_sql(
      "DROP TABLE task_time; DROP TABLE task_stack; DROP TABLE event_loop; DROP TABLE task_census; DROP "
      "TABLE "
      "task_group; DROP TABLE ready_tasks; DROP TABLE task_waiter; DROP TABLE job_waiter; DROP "
      "TABLE request; DROP TABLE request_part");
  ASSERT_TRUE(read(path_.string()));
  const auto none = read_tasks(path_.string());
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none->times.empty());
  auto more = Writer::append(path_.string());
  ASSERT_TRUE(more) << more.error().message;
  (*more)->put_task_stack(TaskStackId(1), {{}, FrameId(1)});
  EXPECT_TRUE((*more)->finish());
}

TEST_F(Recording, of_before_there_were_groups_of_tasks_is_read_and_gone_on_with) {
  {
    auto out = writer();
    ASSERT_TRUE(out);
    put_this_host(*out);
    ProfileMaker maker(*out);
    maker.add(maker.thread("MainThread"), "main:3", 30'000'000);
    out->put_event_loop(EventLoopId(1), {ProcessId(1), {}, "uvloop.Loop"});
    out->put_task_stack(TaskStackId(1), {{}, FrameId(1)});
    out->put_task_time(TaskTimeId(1), {EventLoopId(1), TaskStackId(1), TaskState::waiting, "", "", 5, 1});
    ASSERT_TRUE(out->finish());
  }
  run_sql(
      "DROP TABLE task_group; DROP TABLE ready_tasks; DROP TABLE task_waiter; DROP TABLE job_waiter; DROP "
      "TABLE request; DROP TABLE request_part; ALTER "
      "TABLE task_time DROP COLUMN at_end; "
      "ALTER TABLE task_time DROP COLUMN went_on; ALTER TABLE task_time DROP COLUMN changes");
  const auto old = read_tasks(path_.string());
  ASSERT_TRUE(old) << old.error().message;
  ASSERT_EQ(old->times.size(), 1u);
  EXPECT_EQ(old->times[0].time, 5);
  EXPECT_EQ(old->times[0].at_end, 0u);
  EXPECT_FALSE(old->times[0].changes);
  TaskTime grown = old->times[0];
  grown.at_end = 2;
  grown.changes.emplace().bins[31] = 7;
  {
    auto more = Writer::append(path_.string());
    ASSERT_TRUE(more) << more.error().message;
    (*more)->put_event_loop(EventLoopId(1), {ProcessId(1), {}, "trio"});
    (*more)->put_task_stack(TaskStackId(1), {{}, FrameId(1)});
    (*more)->put_task_time(TaskTimeId(1), grown);
    ASSERT_TRUE((*more)->finish());
  }
  const auto both = read_tasks(path_.string());
  ASSERT_TRUE(both) << both.error().message;
  ASSERT_EQ(both->times.size(), 2u);
  EXPECT_EQ(both->times[1].at_end, 2u);
  EXPECT_FALSE(both->times[0].changes);
  EXPECT_EQ(both->times[1].changes, grown.changes);
}

TEST_F(Recording, a_wrong_number_in_a_row_of_tasks_is_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {"DELETE FROM event_loop; DELETE FROM task_stack; DELETE FROM task_census; DELETE FROM task_time; "
       "INSERT INTO task_time VALUES (1, 1, NULL, 0, NULL, NULL, 1, 1, 0, 0, 0, NULL)",
       "loop"},
      {"INSERT INTO event_loop VALUES (1, 1, NULL, 'x'); UPDATE task_time SET stack = 1", "stack"},
      {"UPDATE task_time SET stack = NULL, time_ns = -1", "time_ns"},
      {"UPDATE task_time SET time_ns = 9223372036854775807", "time_ns"},
      {"UPDATE task_time SET time_ns = 1, state = 3", "does not know"},
      {"UPDATE task_time SET state = 0, seen = -1", "seen"},
      {"UPDATE task_time SET seen = 1; INSERT INTO task_stack VALUES (1, 1, 1)", "parent"},
      {"UPDATE task_stack SET parent = NULL, id = 2", "comes next"},
      {"DELETE FROM task_stack; INSERT INTO task_census VALUES (1, 1, 1, -1, 0, 0, 0, 0, 0, 0, NULL)",
       "span_ns"},
      {"DELETE FROM task_census; UPDATE task_time SET at_end = -1", "at_end"},
      {"UPDATE task_time SET at_end = NULL, changes = x'00'", "changes"},
      {"UPDATE task_time SET changes = 'text'", "changes"},
      {"UPDATE task_time SET changes = randomblob(0) || zeroblob(124) || x'0000C07F'", "changes"},
      {"UPDATE task_time SET changes = NULL; INSERT INTO ready_tasks VALUES (1, 1, 1, -1, 1)", "took_ns"},
      {"DELETE FROM ready_tasks; INSERT INTO task_group VALUES (1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)",
       "loop"},
      {"UPDATE task_group SET loop = 1, gone = -1", "gone"},
      {"DELETE FROM task_group; INSERT INTO request VALUES (1, 9, 1, 1, 1, 1, 1)", "loop"},
      {"UPDATE request SET loop = 1, latest_end_ns = 9223372036854775807", "latest_end_ns"},
      {"UPDATE request SET latest_end_ns = NULL, latest_begin_ns = 'x'", "latest_begin_ns"},
      {"DELETE FROM request; INSERT INTO request_part VALUES (1, 1, NULL, 0, 0)", "request"},
      {"INSERT INTO request VALUES (1, 1, NULL, 1, 1, NULL, 1); UPDATE request_part SET task_time = 9",
       "task_time"},
      {"UPDATE request_part SET task_time = NULL, awaited = 2", "awaited"},
      {"UPDATE request_part SET awaited = 1, time_ns = -1", "time_ns"},
      {"DROP TABLE task_census", "damaged"}};
  write_small();
  for (const auto& [sql, words] : cases) {
    SCOPED_TRACE(sql);
    run_sql(sql);
    const auto tasks = read_tasks(path_.string());
    ASSERT_FALSE(tasks);
    EXPECT_EQ(tasks.error().kind, ErrorKind::input);
    EXPECT_NE(tasks.error().message.find(words), std::string::npos) << tasks.error().message;
  }
}

TEST_F(Recording, tasks_that_refer_to_what_is_not_there_are_refused) {
  write_small();
  const auto profile = read(path_.string());
  ASSERT_TRUE(profile);
  TaskRows loop, thread, stack;
  loop.put_event_loop(EventLoopId(1), {ProcessId(9), {}, "x"});
  thread.put_event_loop(EventLoopId(1), {ProcessId(1), ThreadId(9), "x"});
  stack.put_task_stack(TaskStackId(1), {{}, FrameId(1000)});
  for (const TaskRows& rows : {loop, thread, stack}) EXPECT_FALSE(check_tasks(rows, *profile, "a.phlox"));
  EXPECT_TRUE(check_tasks(TaskRows(), *profile, "a.phlox"));
}

TEST_F(Recording, which_library_ran_comes_back) {
  auto out = writer();
  ProfileMaker maker(*out);
  const ThreadId thread = maker.thread("a");
  out->emit(ModuleId(1), {"/usr/lib/libblas.so.3", "", 0});
  for (const uint32_t file : {1U, 0U, 1U}) {
    Sample sample = maker.sample(thread, "main;dot", 1000);
    sample.code_file = ModuleId(file);
    maker.put(sample);
  }
  ASSERT_TRUE(out->finish());
  out.reset();
  const auto profile = read(path_.string());
  ASSERT_TRUE(profile) << profile.error().message;
  std::vector<uint32_t> files;
  for (const Sample& sample : profile->samples()) files.push_back(sample.code_file.value);
  EXPECT_EQ(files, (std::vector<uint32_t>{1, 0, 1}));
  run_sql("UPDATE state SET code_file = 9 WHERE code_file = 1");
  EXPECT_FALSE(read(path_.string()));
  run_sql("DROP VIEW span; ALTER TABLE state DROP COLUMN code_file");
  const auto older = read(path_.string());
  ASSERT_TRUE(older) << older.error().message;
  EXPECT_FALSE(older->samples()[0].code_file);
}

TEST_F(Recording, a_call_that_is_not_known_comes_back_as_not_known) {
  auto out = writer();
  ProfileMaker maker(*out);
  const ThreadId thread = maker.thread("a");
  for (const int16_t call : {int16_t{202}, int16_t{-1}, kCallNotRecorded}) {
    Sample sample = maker.sample(thread, "main;burn", 1000);
    sample.cpu_state = CpuState::blocked;
    sample.system_call = call;
    maker.put(sample);
  }
  ASSERT_TRUE(out->finish());
  out.reset();
  const auto calls = [&] {
    const auto profile = read(path_.string());
    EXPECT_TRUE(profile) << profile.error().message;
    std::vector<int16_t> read_back;
    for (const Sample& sample : profile->samples()) read_back.push_back(sample.system_call);
    return read_back;
  };
  EXPECT_EQ(calls(), (std::vector<int16_t>{202, -1, kCallNotRecorded}));
  // Recordings of before say the same of both.
  run_sql("ALTER TABLE state DROP COLUMN no_call");
  EXPECT_EQ(calls(), (std::vector<int16_t>{202, kCallNotRecorded, kCallNotRecorded}));
}

TEST_F(Recording, what_events_counted_comes_back) {
  auto out = writer();
  put_sampled_event(*out, 1, {"cpu-clock", Unit::nanoseconds});
  put_sampled_event(*out, 2, {"cache-misses:u", Unit::count});
  ProfileMaker maker(*out);
  const ThreadId thread = maker.thread("a");
  Sample sample = maker.sample(thread, "main", 1000);
  sample.event = 1;
  maker.put(sample);
  sample.wall = sample.cpu = 0;
  sample.event = 2;
  sample.value = int64_t{1} << 40;
  maker.put(sample);
  sample.value = 7;
  maker.put(sample);
  ASSERT_TRUE(out->finish());
  auto profile = read(path_.string());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(sampled_events(*profile),
            (std::vector<SampledEvent>{{"cpu-clock", Unit::nanoseconds}, {"cache-misses:u", Unit::count}}));
  ASSERT_TRUE(view::show_event(*profile, "cache-misses"));
  ASSERT_EQ(profile->samples().size(), 2u);
  EXPECT_EQ(profile->samples()[0].value, int64_t{1} << 40);
  EXPECT_EQ(profile->samples()[1].value, 7);
  EXPECT_EQ(profile->samples_of_others().size(), 1u);
}

TEST_F(Recording, a_lost_wal_is_an_empty_recording) {
  {
    auto out = writer();
    ProfileMaker maker(*out);
    ASSERT_TRUE(out->commit());
    fs::copy_file(path_, folder_ / "b.phlox");
  }
  const auto profile = read((folder_ / "b.phlox").string());
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_TRUE(profile->processes().empty());
}

TEST_F(Recording, every_wrong_number_is_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {"UPDATE sample SET stack = 4000 WHERE rowid = 1", "sample row 1: stack"},
      {"UPDATE sample SET thread = 0 WHERE rowid = 2", "sample row 2: thread"},
      {"UPDATE sample SET state = 9", "state"},
      {"UPDATE sample SET wall_ns = -1", "wall_ns"},
      {"UPDATE sample SET wall_ns = 9223372036854775807", "wall_ns"},
      {"UPDATE sample SET wall_ns = 2305843009213693000", "ns"},
      {"UPDATE sample SET start_us = 9223372036854775807", "start_us"},
      {"UPDATE sample SET samples = 'many'", "no integer"},
      {"UPDATE sample SET value = -1", "value"},
      {"UPDATE sample SET value = 9223372036854775807", "value"},  // together
      {"UPDATE state SET event = 1", "event"},                     // meta names none
      {"UPDATE state SET cpu = 4", "does not know"},
      {"UPDATE state SET gil = 5", "does not know"},
      {"UPDATE state SET quality = 5", "does not know"},
      {"UPDATE state SET collecting = 2", "collecting"},
      {"UPDATE state SET system_call = 70000", "system_call"},
      {"UPDATE frame SET kind = 4", "does not know"},
      {"UPDATE frame SET role = 7", "does not know"},
      {"UPDATE event SET kind = 99", "does not know"},
      {"UPDATE stack SET parent = id", "parent"},
      {"UPDATE stack SET frame = 1000", "frame"},
      {"UPDATE stack SET id = id + 1000", "comes next"},
      {"DELETE FROM frame WHERE id = 2", "comes next"},
      {"UPDATE frame SET line = 5000000000", "line"},
      {"UPDATE frame SET function = x'00'", "no text"},
      {"UPDATE thread SET process = 2", "process"},
      {"UPDATE process SET parent = 1", "parent"},
      {"UPDATE process SET pid = 1e300", "pid"},
      {"UPDATE counter SET value = 9223372036854775807", "value"},
      {"UPDATE meta SET value = 'soon' WHERE key = 'sample_epoch_ns'", "sample_epoch_ns"},
      {"DROP TABLE event", "no table event"},
      {"ALTER TABLE sample DROP COLUMN stack", "damaged"},
      {"ALTER TABLE sample RENAME TO s; CREATE VIEW sample AS SELECT rowid, * FROM s", "a view of its own"},
      {"DROP TABLE sample; CREATE VIRTUAL TABLE sample USING fts5(start_us)", "not a plain table"},
  };
  write_small();
  const fs::path good = folder_ / "good";
  fs::rename(path_, good);
  for (const auto& [sql, words] : cases) {
    SCOPED_TRACE(sql);
    fs::remove(path_);
    fs::copy_file(good, path_);
    run_sql(std::string("PRAGMA legacy_alter_table=ON; DROP VIEW span; DROP VIEW function_self; DROP VIEW "
                        "function_total;") +
            sql);
    expect_refused(words);
  }
}

TEST_F(Recording, damaged_bytes_never_crash) {
  write_small();
  std::ifstream file(path_, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bytes = good;
    if (round % 4 == 0) {
      bytes.resize(random() % bytes.size());
    } else {
      const size_t page = random() % (bytes.size() / 4096) * 4096;
      for (int i = 0; i < 8; ++i)
        bytes[page + random() % (round % 2 == 0 ? 120 : 4096)] = static_cast<char>(random());
    }
    std::ofstream(path_, std::ios::binary) << bytes;
    const auto profile = read(path_.string());
    if (!profile) ++refused;
  }
  EXPECT_GT(refused, 100);
}

// ---- labels ----

TEST_F(Recording, labels_are_added_and_come_back) {
  write_small();
  EXPECT_TRUE(read(path_.string())->time_labels().empty());
  ASSERT_TRUE(add_labels(path_.string(), {{10, 20, "one"}, {20, 30, "two"}}));
  ASSERT_TRUE(add_labels(path_.string(), {{5, 40, "three"}}));
  const auto profile = read(path_.string());
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->time_labels().size(), 3u);
  EXPECT_EQ(profile->time_labels()[1].text, "two");
  EXPECT_EQ(profile->time_labels()[2].start, 5);
  EXPECT_EQ(profile->time_labels()[2].end, 40);
}

TEST_F(Recording, a_label_that_is_none_is_damage) {
  write_small();
  ASSERT_TRUE(add_labels(path_.string(), {{10, 20, "one"}}));
  run_sql("UPDATE label SET end_ns = 'soon'");
  expect_refused("damaged");
}

TEST_F(Recording, labels_for_a_file_that_may_not_be_written_are_an_error) {
  write_small();
  EXPECT_EQ(add_labels((folder_ / "none.phlox").string(), {{10, 20, "one"}}).error().kind, ErrorKind::output);
}

// ---- docs/recording.md ----

std::vector<std::string> blocks(const std::string& language) {
  std::ifstream file(test::source_path("docs/recording.md"));
  std::vector<std::string> found;
  std::string line, block;
  bool inside = false;
  while (std::getline(file, line)) {
    if (!inside && line == "```" + language) {
      inside = true;
      block.clear();
    } else if (inside && line == "```") {
      inside = false;
      found.push_back(block);
    } else if (inside) {
      block += line + "\n";
    }
  }
  return found;
}

TEST_F(Recording, every_query_of_the_documentation_runs_and_finds_something) {
  write_small();
  const auto queries = blocks("sql");
  ASSERT_GE(queries.size(), 8u);
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path_.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  for (const std::string& query : queries) {
    for (const char* rest = query.c_str(); rest != nullptr && *rest != 0;) {
      sqlite3_stmt* statement = nullptr;
      ASSERT_EQ(sqlite3_prepare_v2(database, rest, -1, &statement, &rest), SQLITE_OK)
          << sqlite3_errmsg(database) << "\n"
          << query;
      if (statement == nullptr) continue;
      EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW) << query;
      sqlite3_finalize(statement);
    }
  }
  sqlite3_close(database);
}

TEST_F(Recording, its_views_distinguish_self_from_total) {
  write_small();
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
  auto wall = [&](const std::string& view, const std::string& name) {
    const std::string sql = "SELECT wall_s FROM " + view + " WHERE qualified_name = '" + name + "'";
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr), SQLITE_OK);
    const double value = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_double(statement, 0) : -1;
    sqlite3_finalize(statement);
    return value;
  };
  EXPECT_DOUBLE_EQ(wall("function_self", "decode"), 0.03);
  EXPECT_DOUBLE_EQ(wall("function_self", "main"), -1);
  EXPECT_DOUBLE_EQ(wall("function_total", "main"), 0.08);
  EXPECT_DOUBLE_EQ(wall("function_total", "work"), 0.05);  // recursion counted once
  sqlite3_close(database);
}

TEST_F(Recording, examples_for_shell_and_python_run) {
  write_small();
  auto output_of = [&](const std::string& command) {
    std::string out;
    FILE* pipe = ::popen(("cd " + folder_.string() + " && " + command).c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    char buffer[4096];
    for (size_t n = 0; (n = ::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return out;
  };
  auto on_this_file = [](std::string text) {
    for (size_t at; (at = text.find("NAME.phlox")) != std::string::npos;) text.replace(at, 10, "a.phlox");
    return text;
  };
  ASSERT_EQ(blocks("sh").size(), 1u);
  ASSERT_EQ(blocks("python").size(), 1u);
  EXPECT_NE(output_of(on_this_file(blocks("sh")[0])).find("decode"), std::string::npos);
  std::ofstream(folder_ / "example.py") << on_this_file(blocks("python")[0]);
  EXPECT_NE(output_of("python3 example.py").find("0.050 s  work"), std::string::npos);
}

// The documentation names every table and column there is, and no other.
TEST_F(Recording, every_column_is_documented) {
  std::ifstream file(test::source_path("docs/recording.md"));
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  write_small();
  ASSERT_TRUE(add_labels(path_.string(), {}));
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  const char* sql =
      "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'";
  ASSERT_EQ(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr), SQLITE_OK);
  size_t columns = 0;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    const std::string table = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    const std::string column = reinterpret_cast<const char*>(sqlite3_column_text(statement, 1));
    const size_t section = page.find("\n### " + table + ":");
    ASSERT_NE(section, std::string::npos) << table;
    const std::string part = page.substr(section, page.find("\n##", section + 5) - section);
    EXPECT_NE(part.find("`" + column + "`"), std::string::npos) << table << "." << column;
    ++columns;
  }
  EXPECT_GT(columns, 50u);
  sqlite3_finalize(statement);
  sqlite3_close(database);
}

}  // namespace
}  // namespace phlox::recording
