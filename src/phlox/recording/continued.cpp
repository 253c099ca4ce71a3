#include "phlox/recording/continued.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

#include "phlox/base/text.h"
#include "phlox/profile/kept.h"
#include "phlox/recording/database.h"

namespace phlox::recording {
namespace {

// A recorder that ends records this as the end of its threads. The kernel does not reuse the number of an
// ended thread within a second.
constexpr Nanoseconds kEndsTogether = 1'000'000'000;

}  // namespace

int64_t Numbering::row(uint32_t id) const {
  if (id == 0) return 0;
  return id <= rows_.size() ? int64_t{rows_[id - 1]} : int64_t{before_} + id - continued_;
}

int64_t Numbering::add(uint32_t id, std::optional<uint32_t> there) {
  if (before_ == 0) return id;
  const uint32_t row = there ? *there : before_ + id - continued_;
  if (there) ++continued_;
  rows_.resize(id);
  return rows_[id - 1] = row;
}

Result<void> Continued::load(sqlite3* database) {
  bool sound =
      each_row(database,
               fmt::format("SELECT id, pid, start_ns, coalesce(parent, 0), executable, coalesce(value, ''), "
                           "how_ended IN ('recorder killed', 'recording ended') FROM process "
                           "LEFT JOIN meta ON meta.key = '{}' || pid ORDER BY id",
                           profile::kStartTicks),
               [&](sqlite3_stmt* row) {
                 const auto pid = static_cast<int32_t>(sqlite3_column_int64(row, 1));
                 // Only the last program of a pid can still be running.
                 processes_.erase(pid);
                 Lived lived;
                 lived.process.row = static_cast<uint32_t>(sqlite3_column_int64(row, 0));
                 lived.process.start = sqlite3_column_int64(row, 2);
                 lived.process.parent = sqlite3_column_int64(row, 3);
                 lived.executable = text_of(row, 4);
                 lived.start_ticks = text_of(row, 5);
                 if (sqlite3_column_int64(row, 6) != 0 && !lived.start_ticks.empty())
                   processes_.emplace(pid, std::move(lived));
               });
  std::map<uint32_t, Process*> by_row;
  for (auto& [pid, lived] : processes_) by_row.emplace(lived.process.row, &lived.process);
  sound = sound && each_row(database, "SELECT process, name, value FROM counter", [&](sqlite3_stmt* row) {
            const auto found = by_row.find(static_cast<uint32_t>(sqlite3_column_int64(row, 0)));
            if (found != by_row.end())
              found->second->counters.emplace(text_of(row, 1), sqlite3_column_int64(row, 2));
          });
  sound = sound && each_row(database,
                            fmt::format("SELECT process, tid, python_id, interpreter, thread.id, "
                                        "thread.start_ns FROM thread JOIN process ON process.id = process "
                                        "WHERE tid <> 0 AND (thread.end_ns = 0 OR "
                                        "thread.end_ns >= process.end_ns - {}) ORDER BY thread.id",
                                        kEndsTogether),
                            [&](sqlite3_stmt* row) {
                              ThreadKey key;
                              key.process = static_cast<uint32_t>(sqlite3_column_int64(row, 0));
                              if (!by_row.contains(key.process)) return;
                              key.tid = static_cast<int32_t>(sqlite3_column_int64(row, 1));
                              key.python_id = static_cast<uint64_t>(sqlite3_column_int64(row, 2));
                              key.interpreter = sqlite3_column_int64(row, 3);
                              threads_[key] = {static_cast<uint32_t>(sqlite3_column_int64(row, 4)),
                                               sqlite3_column_int64(row, 5)};
                            });
  if (!sound) return fail(ErrorKind::output, sqlite3_errmsg(database));
  return {};
}

void Continued::note(std::string_view key, std::string_view value) {
  if (!key.starts_with(profile::kStartTicks)) return;
  if (const auto pid = parse_number<int32_t>(key.substr(profile::kStartTicks.size())))
    start_ticks_[*pid] = value;
}

std::optional<Continued::Process> Continued::take(const profile::Process& process) {
  const auto lived = processes_.find(process.pid);
  const auto runs = start_ticks_.find(process.pid);
  if (lived == processes_.end() || runs == start_ticks_.end()) return {};
  if (lived->second.start_ticks != runs->second || lived->second.executable != process.executable) return {};
  Process there = std::move(lived->second.process);
  processes_.erase(lived);
  return there;
}

std::optional<Continued::Thread> Continued::take(uint32_t process_row, const profile::Thread& thread) {
  const auto found = threads_.find({process_row, thread.tid, thread.python_id, thread.interpreter});
  if (found == threads_.end()) return {};
  const Thread there = found->second;
  threads_.erase(found);
  return there;
}

}  // namespace phlox::recording
