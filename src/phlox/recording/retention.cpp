// Drops the oldest samples of a long recording, and the times of traces until then: they are deleted, and
// their pages are reused. Rows that others refer to (names, stacks, threads, events) stay: they grow with the
// number of different ones, not with time.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>

#include "phlox/profile/kept.h"
#include "phlox/recording/database.h"
#include "phlox/recording/writer.h"

namespace phlox::recording {
namespace {

// The write-ahead log: 1000 pages and what one commit adds (writer.cpp: wal_autocheckpoint).
constexpr uint64_t kLog = 5'000'000;
// The least that stays, however small the file is to be.
constexpr Nanoseconds kLeastAge = 5 * kSecond;
// The fraction of rows deleted at once, so that deletion is rare.
constexpr int64_t kPart = 16;

}  // namespace

std::optional<int64_t> Writer::number(const std::string& sql) {
  return first_number(database_, sql);
}

void Writer::run(const std::string& sql) {
  if (!failed_ && !recording::run(database_, sql)) note_error();
}

// Called within a transaction.
void Writer::let_go() {
  if (!epoch_ || failed_) return;
  if (retention_.age && newest_ >= next_check_) {
    next_check_ = newest_ + std::max(kSecond, *retention_.age / 100);
    const Nanoseconds oldest = newest_ - std::max(*retention_.age, kLeastAge);
    // Rows are ordered by time, within about a second.
    const auto first_to_stay = number(
        fmt::format("SELECT rowid FROM sample WHERE start_us * 1000 + wall_ns >= {} ORDER BY rowid LIMIT 1",
                    oldest - *epoch_));
    if (first_to_stay) let_go_until(*first_to_stay - 1);
  }
  if (!retention_.bytes) return;
  const auto pages = number("PRAGMA page_count"), free = number("PRAGMA freelist_count");
  const auto size = number("PRAGMA page_size");
  if (!pages || !free || !size || static_cast<uint64_t>((*pages - *free) * *size) + kLog <= *retention_.bytes)
    return;
  const auto first = number("SELECT min(rowid) FROM sample"), last = number("SELECT max(rowid) FROM sample");
  if (!first || !last) return;
  const int64_t until = *first + (*last - *first) / kPart;
  const auto start =
      number(fmt::format("SELECT start_us FROM sample WHERE rowid <= {} ORDER BY rowid DESC LIMIT 1", until));
  if (start && *epoch_ + *start * 1000 < newest_ - kLeastAge) let_go_until(until);
}

// Then the recording begins with what is left.
void Writer::let_go_until(int64_t row) {
  run(fmt::format("DELETE FROM sample WHERE rowid <= {}", row));
  if (sqlite3_changes(database_) == 0) return;
  // The rows of some threads begin slightly earlier than the row before them.
  const auto start =
      number("SELECT min(start_us) FROM (SELECT start_us FROM sample ORDER BY rowid LIMIT 1000)");
  if (!start || first_start_ == 0) return;
  const Nanoseconds begin = std::max(first_start_, *epoch_ + *start * 1000);
  const auto put = [&](std::string_view key, Nanoseconds value) {
    run(fmt::format("INSERT OR REPLACE INTO meta VALUES ('{}', '{}')", key, value));
  };
  put("start_monotonic_ns", begin);
  put("start_unix_ns", first_unix_ + (begin - first_start_));
  put(profile::kLetGo, begin - first_start_);
  // Their ids follow their beginnings, but for those that still grow.
  run(fmt::format(
      "DELETE FROM trace_time WHERE end_ns <= {0} AND id < coalesce((SELECT id FROM trace_time WHERE "
      "start_ns >= {0} ORDER BY id LIMIT 1), {1})",
      begin, std::numeric_limits<int64_t>::max()));
  run(fmt::format("UPDATE event SET time_ns = {} WHERE id = (SELECT min(id) FROM event WHERE kind = {})",
                  begin, static_cast<int>(profile::EventKind::recording_start)));
}

}  // namespace phlox::recording
