// The tables of a recording, once, for the writer and the reader. docs/recording.md says the same in words.
#pragma once

namespace phlox::recording {

// "Phlx", in the file's header (PRAGMA application_id), so that file(1) and we know whose it is.
inline constexpr int kApplicationId = 0x50686c78;
// PRAGMA user_version. Readers take this one; a change that older readers would misread raises it.
inline constexpr int kSchemaVersion = 1;

inline constexpr const char* kSchema = R"sql(
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE process (
  id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, namespace_pid INTEGER NOT NULL, parent INTEGER, executable TEXT NOT NULL,
  command_line TEXT NOT NULL, python_version TEXT NOT NULL, python_build TEXT NOT NULL, found_by TEXT NOT NULL,
  way_of_reading TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, how_ended TEXT NOT NULL);
CREATE TABLE thread (
  id INTEGER PRIMARY KEY, process INTEGER NOT NULL, tid INTEGER NOT NULL, python_id INTEGER NOT NULL, interpreter INTEGER NOT NULL,
  name TEXT NOT NULL, kernel_name TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
CREATE TABLE module (id INTEGER PRIMARY KEY, path TEXT NOT NULL, build_id TEXT NOT NULL, load_bias INTEGER NOT NULL);
CREATE TABLE frame (
  id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, function TEXT NOT NULL, qualified_name TEXT NOT NULL, file TEXT NOT NULL,
  first_line INTEGER NOT NULL, line INTEGER NOT NULL, module INTEGER, address INTEGER NOT NULL, inlined_in INTEGER,
  found_by TEXT NOT NULL);
CREATE TABLE stack (id INTEGER PRIMARY KEY, parent INTEGER, frame INTEGER NOT NULL);
CREATE TABLE sample (
  id INTEGER PRIMARY KEY, thread INTEGER NOT NULL, start_ns INTEGER NOT NULL, wall_ns INTEGER NOT NULL, cpu_ns INTEGER NOT NULL,
  samples INTEGER NOT NULL, cpu_number INTEGER, stack INTEGER, cpu_state INTEGER NOT NULL, gil_state INTEGER NOT NULL,
  collecting INTEGER NOT NULL, system_call INTEGER, quality INTEGER NOT NULL);
CREATE TABLE event (
  id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, time_ns INTEGER NOT NULL, process INTEGER, thread INTEGER, value INTEGER NOT NULL,
  text TEXT NOT NULL);
CREATE TABLE tally (process INTEGER NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (process, name)) WITHOUT ROWID;
)sql";

}  // namespace phlox::recording
