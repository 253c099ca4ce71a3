// SQL that turns a recording into one of an older format.
#pragma once

namespace phlox::test {

inline constexpr const char* kToFormat2 =
    "DROP VIEW span; DROP VIEW function_self; DROP VIEW function_total; "
    "ALTER TABLE process RENAME COLUMN mode TO way_of_reading; ALTER TABLE counter RENAME TO tally; "
    "ALTER TABLE state RENAME COLUMN waker TO wake; ALTER TABLE waker RENAME TO wake; "
    "ALTER TABLE state RENAME COLUMN wait_target TO awaited; ALTER TABLE wait_target RENAME TO awaited; "
    "PRAGMA user_version=2";

// The columns that format 2 brought are the last ones of their tables.
inline constexpr const char* kToFormat1 =
    "DROP VIEW span; DROP VIEW function_self; DROP VIEW function_total; "
    "ALTER TABLE process RENAME COLUMN mode TO way_of_reading; ALTER TABLE counter RENAME TO tally; "
    "ALTER TABLE state DROP COLUMN event; ALTER TABLE sample DROP COLUMN value; "
    "ALTER TABLE state DROP COLUMN waker; DROP TABLE waker; "
    "ALTER TABLE state DROP COLUMN wait_target; DROP TABLE wait_target; "
    "ALTER TABLE state DROP COLUMN code_file; ALTER TABLE state DROP COLUMN no_call; PRAGMA user_version=1";

}  // namespace phlox::test
