// The tables of a recording, once, for the writer and the reader. docs/recording.md describes them.
#pragma once

#include <string_view>

namespace phlox::recording {

// "Phlx", in the file's header (PRAGMA application_id), so that file(1) and we recognise it.
inline constexpr int kApplicationId = 0x50686c78;
// PRAGMA user_version. Readers take this one and those before; a change that older readers would misread
// raises it. 2: rows of several events, `state.event` and `sample.value`. 3: other names (kNamesBefore3).
inline constexpr int kSchemaVersion = 3;

// What format 3 renamed.
struct Names {
  std::string_view counters, wakers, wait_targets;                // tables
  std::string_view state_waker, state_wait_target, process_mode;  // columns
};
inline constexpr Names kNames = {"counter", "waker", "wait_target", "waker", "wait_target", "mode"};
inline constexpr Names kNamesBefore3 = {"tally", "wake", "awaited", "wake", "awaited", "way_of_reading"};

// Turns format 1 into format 2; its contents stay valid.
inline constexpr const char* kFromFormat1 =
    "ALTER TABLE state ADD COLUMN event INTEGER; ALTER TABLE sample ADD COLUMN value INTEGER; "
    "PRAGMA user_version=2";

// Added later; a reader that does not know it is not misled.
inline constexpr const char* kAddWakers =
    "ALTER TABLE state ADD COLUMN waker INTEGER; "
    "CREATE TABLE waker (id INTEGER PRIMARY KEY, thread INTEGER, stack INTEGER, other TEXT, kind TEXT)";
// Older rows have none: their wakers were not proved.
inline constexpr const char* kAddWakerKinds = "ALTER TABLE waker ADD COLUMN kind TEXT";

inline constexpr const char* kAddWaitTargets =
    "ALTER TABLE state ADD COLUMN wait_target INTEGER; "
    "CREATE TABLE wait_target (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT, other TEXT)";

// Libraries, in recordings without native frames.
inline constexpr const char* kAddCodeFiles = "ALTER TABLE state ADD COLUMN code_file INTEGER";

// Distinguishes a wait in no system call from one whose call is not known. Older rows do not.
inline constexpr const char* kAddNoCalls = "ALTER TABLE state ADD COLUMN no_call INTEGER";

// What tasks of event loops awaited.
inline constexpr const char* kAddTaskTimes = R"sql(
CREATE TABLE task_census (
  id INTEGER PRIMARY KEY, process INTEGER NOT NULL, times INTEGER NOT NULL, span_ns INTEGER NOT NULL,
  phlox_cpu_ns INTEGER NOT NULL, tasks INTEGER NOT NULL, unproved INTEGER NOT NULL, ended INTEGER NOT NULL,
  beyond INTEGER NOT NULL, without_stack INTEGER NOT NULL, problem TEXT);
CREATE TABLE event_loop (id INTEGER PRIMARY KEY, process INTEGER NOT NULL, thread INTEGER, type TEXT NOT NULL);
CREATE TABLE task_stack (id INTEGER PRIMARY KEY, parent INTEGER, frame INTEGER NOT NULL);
CREATE TABLE task_time (
  id INTEGER PRIMARY KEY, loop INTEGER NOT NULL, stack INTEGER, state INTEGER NOT NULL, kind TEXT, awaited TEXT,
  time_ns INTEGER NOT NULL, seen INTEGER NOT NULL, longest_ns INTEGER NOT NULL);
)sql";
// Tasks that never end, and those that were ready to run. Older rows of task_time lack them.
inline constexpr const char* kAddTaskGroups = R"sql(
ALTER TABLE task_time ADD COLUMN at_end INTEGER;
ALTER TABLE task_time ADD COLUMN went_on INTEGER;
CREATE TABLE task_group (
  id INTEGER PRIMARY KEY, loop INTEGER NOT NULL, frame INTEGER NOT NULL, lasted_ns INTEGER NOT NULL,
  times INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, begun INTEGER NOT NULL,
  rises INTEGER NOT NULL, gone INTEGER NOT NULL, mean_begin_ns INTEGER NOT NULL, last_begin_ns INTEGER NOT NULL,
  unobserved INTEGER NOT NULL);
CREATE TABLE ready_tasks (
  id INTEGER PRIMARY KEY, loop INTEGER NOT NULL, time_ns INTEGER NOT NULL, took_ns INTEGER NOT NULL,
  tasks INTEGER NOT NULL);
)sql";

// Which tasks wait for others. Older recordings lack it.
inline constexpr const char* kAddTaskWaiters =
    "CREATE TABLE task_waiter (id INTEGER PRIMARY KEY, task_group INTEGER NOT NULL, stack INTEGER, seen "
    "INTEGER NOT NULL)";

// Which tasks wait for the jobs of thread pools. Older recordings lack it.
inline constexpr const char* kAddJobWaiters =
    "CREATE TABLE job_waiter (id INTEGER PRIMARY KEY, process INTEGER NOT NULL, frame INTEGER NOT NULL, "
    "stack INTEGER, seen INTEGER NOT NULL)";

// The longest requests of event-loop servers. Older recordings lack them.
inline constexpr const char* kAddRequests = R"sql(
CREATE TABLE request (
  id INTEGER PRIMARY KEY, loop INTEGER NOT NULL, earliest_begin_ns INTEGER, latest_begin_ns INTEGER NOT NULL,
  earliest_end_ns INTEGER NOT NULL, latest_end_ns INTEGER, seen INTEGER NOT NULL);
CREATE TABLE request_part (
  id INTEGER PRIMARY KEY, request INTEGER NOT NULL, task_time INTEGER, awaited INTEGER NOT NULL,
  time_ns INTEGER NOT NULL);
)sql";

// For which spans of traces threads worked. Older recordings lack it.
inline constexpr const char* kAddTraceTimes =
    "CREATE TABLE trace_time (id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, start_ns INTEGER NOT NULL, "
    "end_ns INTEGER NOT NULL, trace TEXT NOT NULL, span TEXT NOT NULL)";

// What the sampling error of await time follows from, as blobs. Older rows lack it. Older versions open a
// recording only if all columns are INTEGER or TEXT, and SQLite does not convert a blob to TEXT.
inline constexpr const char* kAddTaskChanges = "ALTER TABLE task_time ADD COLUMN changes TEXT";

// A process that records into a file holds a lock on this byte of it, of the open file (F_OFD_SETLK), so that
// the lock ends with the recorder, however it ends. Far beyond the bytes that SQLite locks (os.h:
// PENDING_BYTE).
inline constexpr long kRecorderByte = 0x40000000 + 4096;
// A process that will replace the file, once it has recorded something, holds a lock on this byte of it.
inline constexpr long kReplacerByte = kRecorderByte + 1;

// A sample row must stay within 30 bytes (a million rows, docs/recording.md has the measurement). So the
// states of a thread are rows of their own, few and shared, `start_us` counts from the first sample instead
// of the boot of the host (4 bytes instead of 8), and the row number is the id.
inline constexpr const char* kSchema = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE process (
  id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, namespace_pid INTEGER NOT NULL, parent INTEGER, executable TEXT NOT NULL,
  command_line TEXT NOT NULL, python_version TEXT NOT NULL, python_build TEXT NOT NULL, found_by TEXT NOT NULL,
  mode TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, how_ended TEXT NOT NULL);
CREATE TABLE thread (
  id INTEGER PRIMARY KEY, process INTEGER NOT NULL, tid INTEGER NOT NULL, python_id INTEGER NOT NULL, interpreter INTEGER NOT NULL,
  name TEXT NOT NULL, kernel_name TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
CREATE TABLE module (id INTEGER PRIMARY KEY, path TEXT NOT NULL, build_id TEXT NOT NULL, load_bias INTEGER NOT NULL);
CREATE TABLE missing_names (
  module INTEGER PRIMARY KEY, functions INTEGER NOT NULL, lines INTEGER NOT NULL, why TEXT NOT NULL, advice TEXT NOT NULL);
CREATE TABLE frame (
  id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, function TEXT NOT NULL, qualified_name TEXT NOT NULL, file TEXT NOT NULL,
  first_line INTEGER NOT NULL, line INTEGER NOT NULL, module INTEGER, address INTEGER NOT NULL, inlined_in INTEGER,
  found_by TEXT NOT NULL, role INTEGER NOT NULL);
CREATE TABLE stack (id INTEGER PRIMARY KEY, parent INTEGER, frame INTEGER NOT NULL);
CREATE TABLE state (
  id INTEGER PRIMARY KEY, cpu INTEGER NOT NULL, gil INTEGER NOT NULL, collecting INTEGER NOT NULL, system_call INTEGER,
  quality INTEGER NOT NULL, cpu_number INTEGER, event INTEGER, waker INTEGER, wait_target INTEGER,
  code_file INTEGER, no_call INTEGER);
CREATE TABLE waker (id INTEGER PRIMARY KEY, thread INTEGER, stack INTEGER, other TEXT, kind TEXT);
CREATE TABLE wait_target (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT, other TEXT);
CREATE TABLE sample (
  start_us INTEGER NOT NULL, wall_ns INTEGER NOT NULL, cpu_ns INTEGER NOT NULL, samples INTEGER NOT NULL, thread INTEGER NOT NULL,
  stack INTEGER, state INTEGER NOT NULL, value INTEGER);
CREATE TABLE event (
  id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, time_ns INTEGER NOT NULL, process INTEGER, thread INTEGER, value INTEGER NOT NULL,
  text TEXT NOT NULL);
CREATE TABLE counter (process INTEGER NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (process, name)) WITHOUT ROWID;
)sql";

inline constexpr const char* kViews = R"sql(
CREATE VIEW span AS
SELECT sample.rowid AS id, thread, start_us / 1e6 AS start_s, wall_ns / 1e6 AS wall_ms, cpu_ns / 1e6 AS cpu_ms, samples, stack,
  CASE cpu WHEN 1 THEN 'running' WHEN 2 THEN 'runnable' WHEN 3 THEN 'blocked' ELSE 'unknown' END AS cpu,
  CASE gil WHEN 1 THEN 'none' WHEN 2 THEN 'holds' WHEN 3 THEN 'waits' WHEN 4 THEN 'not applicable' ELSE 'unknown' END AS gil,
  collecting, system_call,
  CASE quality WHEN 0 THEN 'ok' WHEN 1 THEN 'cut' WHEN 2 THEN 'unproved' WHEN 3 THEN 'detached' ELSE 'rejected' END AS quality,
  cpu_number, event, value, waker, wait_target, code_file
FROM sample JOIN state ON state.id = sample.state;

CREATE VIEW function_self AS
SELECT qualified_name, file, first_line, sum(wall) / 1e9 AS wall_s, sum(cpu) / 1e9 AS cpu_s, sum(n) AS samples
FROM (SELECT stack, sum(wall_ns) AS wall, sum(cpu_ns) AS cpu, sum(samples) AS n FROM sample
      WHERE state IN (SELECT id FROM state WHERE coalesce(event, 1) = 1) GROUP BY stack) AS s
  JOIN stack ON stack.id = s.stack JOIN frame ON frame.id = stack.frame
GROUP BY qualified_name, file, first_line;

CREATE VIEW function_total AS
WITH RECURSIVE
  s AS (SELECT stack, sum(wall_ns) AS wall, sum(cpu_ns) AS cpu, sum(samples) AS n
         FROM sample WHERE stack IS NOT NULL AND state IN (SELECT id FROM state WHERE coalesce(event, 1) = 1)
         GROUP BY stack),
  up (leaf, stack) AS (SELECT stack, stack FROM s UNION ALL
                       SELECT leaf, parent FROM up JOIN stack ON stack.id = up.stack WHERE parent IS NOT NULL),
  seen AS (SELECT DISTINCT leaf, qualified_name, file, first_line
           FROM up JOIN stack ON stack.id = up.stack JOIN frame ON frame.id = stack.frame)
SELECT qualified_name, file, first_line, sum(wall) / 1e9 AS wall_s, sum(cpu) / 1e9 AS cpu_s, sum(n) AS samples
FROM seen JOIN s ON s.stack = seen.leaf
GROUP BY qualified_name, file, first_line;
)sql";

inline constexpr const char* kDropViews =
    "DROP VIEW IF EXISTS stretch; DROP VIEW IF EXISTS function_self; DROP VIEW IF EXISTS function_total; ";

// Only in recordings with labels.
inline constexpr const char* kLabelTable =
    "CREATE TABLE IF NOT EXISTS label "
    "(id INTEGER PRIMARY KEY, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, text TEXT NOT NULL)";

}  // namespace phlox::recording
