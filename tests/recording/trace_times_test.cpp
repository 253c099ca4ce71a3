#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>

#include "phlox/recording/reader.h"
#include "phlox/recording/snapshot.h"
#include "phlox/recording/writer.h"
#include "support/profile_of.h"
#include "support/recording_file.h"

namespace phlox::recording {
namespace {

using namespace phlox::profile;
using test::ProfileMaker;
namespace fs = std::filesystem;

class TraceTimes : public test::RecordingFile {
 protected:
  static TraceTime time_of(ThreadId thread, uint8_t trace, Nanoseconds start, Nanoseconds end) {
    TraceTime time{thread, {}, start, end};
    time.ids.trace.fill(trace);
    time.ids.span = {1, 2, 3, 4, 5, 6, 7, 0xef};
    return time;
  }
  static void begin(Sink& sink, Nanoseconds start, Nanoseconds unix_start) {
    sink.emit_meta("start_monotonic_ns", std::to_string(start));
    sink.emit_meta("start_unix_ns", std::to_string(unix_start));
  }
  void run_sql(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
    sqlite3_close(database);
  }
  // Two threads for ten seconds; each works for a trace in every second, from its first third to its second.
  void write_seconds(Writer& out, int seconds) {
    ProfileMaker maker(out);
    const ThreadId threads[] = {maker.thread("a"), maker.thread("b")};
    begin(out, ProfileMaker::kStart, 7);
    uint32_t row = 0;
    for (int i = 0; i < seconds; ++i) {
      for (const ThreadId thread : threads) {
        const Nanoseconds start = ProfileMaker::kStart + i * kSecond;
        maker.add(thread, "main;work", kSecond);
        out.emit(TraceTimeId(++row),
                 time_of(thread, static_cast<uint8_t>(i + 1), start + kSecond / 3, start + kSecond * 2 / 3));
      }
      ASSERT_TRUE(out.commit());
    }
  }
};

TEST_F(TraceTimes, come_back_as_last_written) {
  {
    auto out = Writer::create(path_);
    ASSERT_TRUE(out);
    ProfileMaker maker(**out);
    const ThreadId thread = maker.thread("a");
    maker.add(thread, "main;work", kSecond);
    (*out)->emit(TraceTimeId(1), time_of(thread, 0xab, 5, 10));
    ASSERT_TRUE((*out)->commit());
    (*out)->emit(TraceTimeId(1), time_of(thread, 0xab, 5, 20));
    (*out)->emit(TraceTimeId(2), time_of(thread, 0, 20, 21));
    ASSERT_TRUE((*out)->finish());
  }
  const auto profile = read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->trace_times().size(), 2u);
  const TraceTime& first = profile->trace_times()[0];
  EXPECT_EQ(first.thread, ThreadId(1));
  EXPECT_EQ(first.start, 5);
  EXPECT_EQ(first.end, 20);
  EXPECT_EQ(first.ids, time_of({}, 0xab, 0, 0).ids);
}

TEST_F(TraceTimes, a_wrong_row_is_refused) {
  {
    auto out = Writer::create(path_);
    ASSERT_TRUE(out);
    write_seconds(**out, 2);
    ASSERT_TRUE((*out)->finish());
  }
  const fs::path good = folder_ / "good";
  fs::rename(path_, good);
  const std::pair<const char*, const char*> cases[] = {
      {"UPDATE trace_time SET thread = 3 WHERE id = 2", "trace_time row 2: thread"},
      {"UPDATE trace_time SET id = -1 WHERE id = 1", "id"},
      {"UPDATE trace_time SET id = 4294967296 WHERE id = 4", "id"},
      {"UPDATE trace_time SET end_ns = start_ns", "end_ns"},
      {"UPDATE trace_time SET end_ns = 9223372036854775807", "end_ns"},
      {"UPDATE trace_time SET start_ns = -9223372036854775807", "start_ns"},
      {"UPDATE trace_time SET trace = upper(trace) || 'A'", "hex"},
      {"UPDATE trace_time SET trace = 'ABABABABABABABABABABABABABABABAB'", "hex"},
      {"UPDATE trace_time SET span = '123456789abcdef'", "hex"},
      {"UPDATE trace_time SET span = '123456789abcdefg'", "hex"},
      {"UPDATE trace_time SET span = x'00'", "no text"},
      {"ALTER TABLE trace_time DROP COLUMN span", "damaged"}};
  for (const auto& [sql, words] : cases) {
    SCOPED_TRACE(sql);
    fs::remove(path_);
    fs::copy_file(good, path_);
    run_sql(sql);
    const auto refused = read(path_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::input);
    EXPECT_NE(refused.error().message.find(words), std::string::npos) << refused.error().message;
  }
}

TEST_F(TraceTimes, go_with_the_samples_that_a_long_recording_drops) {
  {
    auto out = Writer::create(path_);
    ASSERT_TRUE(out);
    (*out)->keep_only({{}, 10 * kSecond});
    write_seconds(**out, 60);
    ASSERT_TRUE((*out)->finish());
  }
  const auto profile = read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  const auto& times = profile->trace_times();
  EXPECT_LE(times.size(), 26u);
  EXPECT_GE(times.size(), 18u);
  EXPECT_EQ(times.back().ids.trace[0], 60);
  const Nanoseconds begin = std::stoll(profile->meta().at("start_monotonic_ns"));
  EXPECT_GT(begin, ProfileMaker::kStart);
  for (const TraceTime& time : times) EXPECT_GT(time.end, begin);
}

TEST_F(TraceTimes, a_snapshot_of_a_part_has_those_of_that_time) {
  auto out = Writer::create(path_);
  ASSERT_TRUE(out);
  write_seconds(**out, 20);
  const std::string copy = (folder_ / "b.phlox").string();
  const Part part{ProfileMaker::kStart + 10 * kSecond, ProfileMaker::kStart + 13 * kSecond, {}};
  ASSERT_TRUE(snapshot(path_, copy, {}, part));
  const auto profile = read(copy);
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->trace_times().size(), 6u);
  EXPECT_EQ(profile->trace_times().front().ids.trace[0], 11);
  EXPECT_EQ(profile->trace_times().back().ids.trace[0], 13);
}

TEST_F(TraceTimes, an_older_recording_has_none_and_gets_more) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  for (uint8_t round = 1; round <= 3; ++round) {
    auto out = round > 1 ? Writer::append(path_) : Writer::create(path_);
    ASSERT_TRUE(out) << out.error().message;
    (*out)->emit_meta("host", host);
    begin(**out, clock_now(), clock_now(CLOCK_REALTIME));
    ProfileMaker maker(**out);
    const ThreadId thread = maker.thread("a");
    maker.add(thread, "main;work", kSecond);
    (*out)->emit(TraceTimeId(1), time_of(thread, round, 5, 10));
    ASSERT_TRUE((*out)->finish());
    if (round > 1) continue;
    run_sql("DROP TABLE trace_time");
    const auto old = read(path_);
    ASSERT_TRUE(old) << old.error().message;
    EXPECT_TRUE(old->trace_times().empty());
  }
  const auto profile = read(path_);
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->trace_times().size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(profile->trace_times()[i].thread, ThreadId(i + 2));
    EXPECT_EQ(profile->trace_times()[i].ids.trace[0], i + 2);
  }
}

}  // namespace
}  // namespace phlox::recording
