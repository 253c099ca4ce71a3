// Appending to an existing recording.
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "phlox/base/clock.h"
#include "phlox/profile/counters.h"
#include "phlox/profile/kept.h"
#include "phlox/recording/reader.h"
#include "phlox/recording/recorder_mark.h"
#include "phlox/recording/schema.h"
#include "phlox/recording/schema_check.h"
#include "phlox/recording/writer.h"

namespace phlox::recording {
namespace {

// A reader, such as a report, and a recorder that has only to write its last rows.
constexpr Nanoseconds kSoonGone = 2 * kSecond;

tl::unexpected<Error> cannot_append(const std::string& path, const std::string& why) {
  return fail(ErrorKind::output, fmt::format("cannot append to {}: {}", path, why),
              "choose another file with -o FILE");
}

std::string meta_number(std::string_view key) {
  return fmt::format("SELECT CAST(value AS INTEGER) FROM meta WHERE key = '{}'", key);
}

}  // namespace

Result<void> Writer::check_append(const std::string& path, const std::optional<Owner>& owner) {
  for (const Nanoseconds until = clock_now() + kSoonGone;; ::usleep(20'000)) {
    auto possible = check(path, owner, "append to");
    if (possible || clock_now() >= until) return possible;
  }
}

// Of two recorders at once, one marks the file and the other waits for its end: otherwise both would give
// their rows the same numbers.
Result<Descriptor> Writer::mark_for_append(const std::string& path, const std::optional<Owner>& owner) {
  for (const Nanoseconds until = clock_now() + kSoonGone;; ::usleep(20'000)) {
    const auto place = Place::find(path, owner);
    const Descriptor folder = place ? lock_folder(*place) : Descriptor();
    const auto possible = check(path, owner, "append to");
    if (possible && place) return mark_as_growing(*place);
    if (clock_now() >= until) return possible ? cannot_append(path, "it is gone") : fail(possible);
  }
}

Result<std::unique_ptr<Writer>> Writer::append(const std::string& path, std::optional<Owner> owner) {
  std::unique_ptr<Writer> writer(new Writer());
  auto mark = mark_for_append(path, owner);
  if (!mark) return fail(mark);
  writer->mark_ = *std::move(mark);
  // The recording must be sound: rows are added to its own.
  if (auto sound = read(path); !sound) return fail(sound);
  if (auto opened = writer->open(path, owner); !opened) return cannot_append(path, opened.error().message);
  if (auto plain = check_schema(writer->database_, path); !plain) return fail(plain);
  const ActAs as = writer->place_->rights();
  if (auto ready = writer->continue_after_what_is_there(); !ready) return fail(ready);
  return writer;
}

// In one transaction, so that a reader sees either format.
Result<void> Writer::bring_to_this_format() {
  const int64_t format = number("PRAGMA user_version").value_or(kSchemaVersion);
  if (format >= kSchemaVersion) return {};
  begin();
  if (format < 2) run(kFromFormat1);
  run(kDropViews);
  for (const auto& [table, column, name] :
       {std::tuple(std::string_view("process"), kNamesBefore3.process_mode, kNames.process_mode),
        {"state", kNamesBefore3.state_waker, kNames.state_waker},
        {"state", kNamesBefore3.state_wait_target, kNames.state_wait_target}}) {
    if (number(fmt::format("SELECT 1 FROM pragma_table_info('{}') WHERE name = '{}'", table, column)))
      run(fmt::format("ALTER TABLE {} RENAME COLUMN {} TO {}", table, column, name));
  }
  for (const auto& [table, name] : {std::pair(kNamesBefore3.counters, kNames.counters),
                                    {kNamesBefore3.wakers, kNames.wakers},
                                    {kNamesBefore3.wait_targets, kNames.wait_targets}}) {
    if (number(fmt::format("SELECT 1 FROM sqlite_schema WHERE name = '{}'", table)))
      run(fmt::format("ALTER TABLE {} RENAME TO {}", table, name));
  }
  run(fmt::format("PRAGMA user_version={}", kSchemaVersion));
  return commit_rows();
}

Result<void> Writer::add_what_older_ones_lack() {
  for (const auto& [table, added] : {std::pair("waker", kAddWakers),
                                     {"wait_target", kAddWaitTargets},
                                     {"task_time", kAddTaskTimes},
                                     {"task_group", kAddTaskGroups},
                                     {"task_waiter", kAddTaskWaiters},
                                     {"job_waiter", kAddJobWaiters},
                                     {"request", kAddRequests},
                                     {"trace_time", kAddTraceTimes}}) {
    if (number(fmt::format("SELECT 1 FROM sqlite_schema WHERE name = '{}'", table))) continue;
    begin();
    run(added);
    if (auto done = commit_rows(); !done) return done;
  }
  if (!number("SELECT 1 FROM pragma_table_info('waker') WHERE name = 'kind'")) {
    begin();
    run(kAddWakerKinds);
    if (auto done = commit_rows(); !done) return done;
  }
  for (const auto& [table, column, added] : {std::tuple("state", "code_file", kAddCodeFiles),
                                             {"state", "no_call", kAddNoCalls},
                                             {"task_time", "changes", kAddTaskChanges}}) {
    if (number(fmt::format("SELECT 1 FROM pragma_table_info('{}') WHERE name = '{}'", table, column)))
      continue;
    begin();
    run(added);
    if (auto done = commit_rows(); !done) return done;
  }
  return {};
}

Result<Writer::Began> Writer::check_same_clock() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const auto same_host = number(fmt::format("SELECT value = '{}' FROM meta WHERE key = 'host'", host));
  if (same_host == 0) return cannot_append(path_, "it was recorded on another host");
  // Its times are valid for this clock only until the host reboots; a wall clock that was set since is no
  // reason to refuse.
  constexpr Nanoseconds kClockSet = 600 * kSecond;
  const auto start = number(meta_number("start_monotonic_ns")),
             unix_start = number(meta_number("start_unix_ns"));
  if (!start || !unix_start) return cannot_append(path_, "it does not say when it began");
  const Nanoseconds now = clock_now();
  const Nanoseconds offset = clock_now(CLOCK_REALTIME) - now;
  if (*start > now || std::abs((*unix_start - *start) - offset) > kClockSet)
    return cannot_append(path_, "this host was rebooted since, so its clock started again");
  return Began{*start, *unix_start};
}

Result<void> Writer::continue_ids() {
  const auto most = [&](const char* column, const char* table) {
    return number(fmt::format("SELECT coalesce(max({}), 0) FROM {}", column, table)).value_or(0);
  };
  const auto most_id = [&](const char* table) { return static_cast<uint32_t>(most("id", table)); };
  processes_.begin_behind(most_id("process"));
  threads_.begin_behind(most_id("thread"));
  if (auto ready = prepare_statements(); !ready) return cannot_append(path_, ready.error().message);
  before_ = {most_id("module"),
             most_id("frame"),
             most_id("stack"),
             most_id("waker"),
             most_id("wait_target"),
             most_id("task_census"),
             most_id("event_loop"),
             most_id("task_stack"),
             most_id("task_time"),
             most_id("task_group"),
             most_id("ready_tasks"),
             most_id("task_waiter"),
             most_id("job_waiter"),
             most_id("request"),
             most_id("request_part"),
             most_id("trace_time"),
             static_cast<uint32_t>(most("rowid", "sample")),
             most("id", "state"),
             true,
             {}};
  for (const std::string_view name : {profile::counters::kElapsed, profile::counters::kRecorderTime})
    before_.recorder_times.emplace(
        name,
        number(fmt::format("SELECT value FROM counter WHERE process = 0 AND name = '{}'", name)).value_or(0));
  if (const auto epoch = number(meta_number("sample_epoch_ns"))) epoch_ = *epoch;
  return {};
}

Result<void> Writer::continue_after_what_is_there() {
  if (auto brought = bring_to_this_format(); !brought) return brought;
  if (auto added = add_what_older_ones_lack(); !added) return added;
  if (!number("SELECT 1 FROM sqlite_schema WHERE name = 'span'")) {
    begin();
    run(kViews);
    if (auto done = commit_rows(); !done) return done;
  }
  // Its recorder was killed before the first commit: the recording begins now.
  if (number("SELECT (SELECT count(*) FROM meta) + (SELECT count(*) FROM process)") == 0)
    return prepare_statements();
  const auto began = check_same_clock();
  if (!began) return fail(began);
  if (auto continued = continue_ids(); !continued) return continued;
  const Nanoseconds let_go = number(meta_number(profile::kLetGo)).value_or(0);
  first_start_ = began->monotonic - let_go;
  first_unix_ = began->unix_clock - let_go;
  const Nanoseconds seen =
      epoch_ ? *epoch_ + number("SELECT max(start_us * 1000 + wall_ns) FROM sample").value_or(0)
             : began->monotonic;
  const Nanoseconds until =
      number(meta_number("end_monotonic_ns")).value_or(std::max(seen, began->monotonic));
  begin();
  run(fmt::format("UPDATE process SET end_ns = {}, how_ended = 'recorder killed' WHERE end_ns = 0", until));
  run("DELETE FROM meta WHERE key IN ('end_monotonic_ns', 'snapshot_of')");
  profile::Event gap;
  gap.kind = profile::EventKind::lost;
  gap.time = until;
  gap.value = std::max<Nanoseconds>(0, clock_now() - until);
  gap.text = "between two recorders";
  emit(gap);
  if (auto known = continued_.load(database_); !known) return cannot_append(path_, known.error().message);
  return commit();
}

}  // namespace phlox::recording
