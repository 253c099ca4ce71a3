#include "phlox/recording/query.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "phlox/base/text.h"
#include "phlox/recording/opened_recording.h"
#include "phlox/recording/schema.h"

namespace phlox::recording {
namespace {

// What computes from its arguments alone. Not among them: load_extension, writefile and their like, which
// reach beyond the rows; zeroblob and randomblob, which only take memory.
constexpr std::string_view kFunctions[] = {
    "abs",         "avg",       "ceil",      "ceiling",   "char",         "coalesce",   "concat",
    "concat_ws",   "count",     "cume_dist", "date",      "datetime",     "dense_rank", "exp",
    "first_value", "floor",     "format",    "glob",      "group_concat", "hex",        "ifnull",
    "iif",         "instr",     "julianday", "lag",       "last_value",   "lead",       "length",
    "like",        "ln",        "log",       "log10",     "log2",         "lower",      "ltrim",
    "max",         "min",       "mod",       "nth_value", "ntile",        "nullif",     "percent_rank",
    "pow",         "power",     "printf",    "quote",     "rank",         "replace",    "round",
    "row_number",  "rtrim",     "sign",      "sqrt",      "strftime",     "string_agg", "substr",
    "substring",   "sum",       "time",      "total",     "trim",         "trunc",      "typeof",
    "unicode",     "unixepoch", "upper"};

// Steps of SQLite's machine between two checks of the clock.
constexpr int kStepsPerCheck = 1000;
// More than what a recording of somebody else may have us do (schema_check.h), since these are the words of
// our own user.
constexpr int kDeepestExpression = 200, kMostJoinedSelects = 50, kMostArguments = 50;
constexpr int kLongestPattern = 1000;  // of LIKE, which tries all ways
constexpr int kLongestValue = 4 << 20;
constexpr size_t kMostTables = 200;

struct Guard {
  std::set<std::string> tables;    // that may be read
  std::set<std::string> computed;  // what SQLite computes as if it were a table
  std::string refused;             // the first thing that was not allowed
  Nanoseconds end = 0;
  bool is_late = false;
};

int refuse(Guard& guard, std::string what) {
  if (guard.refused.empty()) guard.refused = std::move(what);
  return SQLITE_DENY;
}

// pragma_table_info, json_each, dbstat and their like.
bool is_computed(const Guard& guard, const std::string& name) {
  return name.starts_with("pragma_") || guard.computed.contains(name);
}

// sqlite3_set_authorizer(): asked while the query is compiled.
int allow(void* data, int action, const char* first, const char* second, const char*, const char*) {
  Guard& guard = *static_cast<Guard*>(data);
  const std::string_view name = first != nullptr ? first : "", other = second != nullptr ? second : "";
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_READ:
      if (guard.tables.contains(lower_case(name))) return SQLITE_OK;
      // Of a name in FROM no column of which is used SQLite does not say what it is (select.c). One that WITH
      // defines is nothing but the query's own; one that is nowhere is an error all the same.
      if (other.empty() && !guard.computed.empty() && !is_computed(guard, lower_case(name))) return SQLITE_OK;
      return refuse(guard, fmt::format("the table {} is not one of the recording", name));
    case SQLITE_FUNCTION:
      if (std::find(std::begin(kFunctions), std::end(kFunctions), lower_case(other)) != std::end(kFunctions))
        return SQLITE_OK;
      return refuse(guard, fmt::format("the function {} is not allowed", other));
    default:
      return refuse(guard, "only SELECT is allowed");
  }
}

// sqlite3_progress_handler()
int check_clock(void* data) {
  Guard& guard = *static_cast<Guard*>(data);
  guard.is_late = clock_now() >= guard.end;
  return guard.is_late ? 1 : 0;
}

// The file's tables, by name. Its views are not used: anybody could have written them.
Result<std::set<std::string>> tables_of(sqlite3* database, const std::string& path) {
  std::set<std::string> tables = {"sqlite_master", "sqlite_schema"};
  const bool done = each_row(database, "SELECT name FROM sqlite_schema WHERE type = 'table'", [&](auto* row) {
    if (tables.size() < kMostTables) tables.insert(lower_case(text_of(row, 0)));
  });
  if (!done) return damaged(path, sqlite3_errmsg(database));
  return tables;
}

// The modules of virtual tables. An SQLite that does not list them lists nothing.
std::set<std::string> computed_tables(sqlite3* database) {
  std::set<std::string> names;
  each_row(database, "PRAGMA module_list", [&](auto* row) { names.insert(lower_case(text_of(row, 0))); });
  return names;
}

// What an older recording has, by the names of this format and with all of its columns.
void add_new_names(sqlite3* database, const Names& old, std::set<std::string>& names) {
  const auto has = [&](std::string_view table, std::string_view column) {
    return prepare(database, fmt::format("SELECT {} FROM main.{}", column, table)) != nullptr;
  };
  const auto add = [&](std::string_view name, std::string_view query) {
    if (run(database, fmt::format("CREATE TEMP VIEW {} AS {}", name, query))) names.emplace(name);
  };
  std::string state = "SELECT *";
  for (const auto& [before, column] :
       {std::pair(old.state_waker, kNames.state_waker), {old.state_wait_target, kNames.state_wait_target}})
    state += fmt::format(", {} AS {}", has("state", before) ? before : "NULL", column);
  for (const std::string_view column : {"event", "code_file", "no_call"})
    if (!has("state", column)) state += fmt::format(", NULL AS {}", column);
  add("state", state + " FROM main.state");
  if (!has("sample", "value")) add("sample", "SELECT rowid, *, NULL AS value FROM main.sample");
  add("process", fmt::format("SELECT *, {} AS {} FROM main.process", old.process_mode, kNames.process_mode));
  add(kNames.counters, fmt::format("SELECT * FROM main.{}", old.counters));
  if (has(old.wakers, "kind")) add(kNames.wakers, fmt::format("SELECT * FROM main.{}", old.wakers));
  if (has(old.wait_targets, "id"))
    add(kNames.wait_targets, fmt::format("SELECT * FROM main.{}", old.wait_targets));
}

// The views that docs/recording.md describes, of our own text, and in memory.
void add_views(sqlite3* database, std::set<std::string>& names) {
  constexpr std::string_view kCreate = "CREATE VIEW ";
  std::string_view rest = kViews;
  for (size_t at = 0; (at = rest.find(kCreate)) != std::string_view::npos;) {
    rest.remove_prefix(at + kCreate.size());
    const std::string_view view = rest.substr(0, rest.find(';'));
    // An SQLite before 3.35 switches off these, too: then the query says so.
    if (run(database, fmt::format("CREATE TEMP VIEW {}", view)))
      names.insert(std::string(view.substr(0, view.find(' '))));
  }
}

QueryValue value_of(sqlite3_stmt* row, int column, size_t longest, size_t& shortened_values) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
      return {};
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(row, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(row, column);
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const unsigned char*>(sqlite3_column_blob(row, column));
      const auto size = static_cast<size_t>(sqlite3_column_bytes(row, column));
      if (size > longest / 2) ++shortened_values;
      std::string text = "X'";
      for (size_t i = 0; i < std::min(size, longest / 2); ++i) text += fmt::format("{:02x}", bytes[i]);
      return text + "'";
    }
    default: {
      std::string text = text_of(row, column);
      if (text.size() <= longest) return text;
      ++shortened_values;
      return shortened(text, longest);
    }
  }
}

size_t size_of(const QueryValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? text->size() : sizeof(int64_t);
}

tl::unexpected<Error> not_answered(sqlite3* database, const Guard& guard, const QueryLimits& limits) {
  if (guard.is_late) {
    return fail(ErrorKind::usage,
                fmt::format("the query took longer than {} s and was ended", limits.time / kSecond),
                "a WHERE or a LIMIT makes it smaller");
  }
  if (!guard.refused.empty())
    return fail(ErrorKind::usage, fmt::format("the query is refused: {}", guard.refused),
                "a recording is only read: one SELECT over its tables (docs/recording.md)");
  const int code = sqlite3_errcode(database);
  return fail(ErrorKind::usage, fmt::format("the query failed: {}", sqlite3_errmsg(database)),
              code == SQLITE_NOMEM || code == SQLITE_TOOBIG
                  ? "it may take 512 MB: a WHERE or a LIMIT makes it smaller"
                  : "the tables: SELECT name, sql FROM sqlite_schema; docs/recording.md describes them");
}

bool is_blank(std::string_view sql) {
  return sql.find_first_not_of(" \t\r\n;") == std::string_view::npos;
}

Result<Statement> compile(sqlite3* database, const std::string& sql, const Guard& guard,
                          const QueryLimits& limits) {
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &raw, &rest);
  Statement statement(raw);
  if (code != SQLITE_OK) return not_answered(database, guard, limits);
  const auto used = static_cast<size_t>(rest - sql.data());
  if (!statement) return fail(ErrorKind::usage, "there is no query", "SELECT name, sql FROM sqlite_schema");
  if (!is_blank(std::string_view(sql).substr(used)))
    return fail(ErrorKind::usage, "the query is refused: there is a second statement",
                "one SELECT at a time");
  if (sqlite3_stmt_readonly(statement.get()) == 0 || sqlite3_column_count(statement.get()) == 0)
    return fail(ErrorKind::usage, "the query is refused: only SELECT is allowed", "a recording is only read");
  return statement;
}

}  // namespace

Result<QueryAnswer> query(const std::string& path, const std::string& sql, const QueryLimits& limits) {
  auto opened = open_recording(path);
  if (!opened) return fail(opened);
  sqlite3* const database = opened->database.get();
  auto tables = tables_of(database, path);
  if (!tables) return fail(tables);
  // What is sorted stays in memory, which is limited (schema_check.h), and fills no disk.
  run(database, "PRAGMA temp_store=MEMORY");
  if (opened->names.counters != kNames.counters) add_new_names(database, opened->names, *tables);
  add_views(database, *tables);
  run(database, "PRAGMA query_only=ON");
  const std::pair<int, int> allowed[] = {{SQLITE_LIMIT_EXPR_DEPTH, kDeepestExpression},
                                         {SQLITE_LIMIT_COMPOUND_SELECT, kMostJoinedSelects},
                                         {SQLITE_LIMIT_FUNCTION_ARG, kMostArguments},
                                         {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, kLongestPattern},
                                         {SQLITE_LIMIT_LENGTH, kLongestValue}};
  for (const auto& [what, value] : allowed) sqlite3_limit(database, what, value);
  Guard guard{*std::move(tables), computed_tables(database), {}, clock_now() + limits.time, false};
  sqlite3_set_authorizer(database, allow, &guard);
  sqlite3_progress_handler(database, kStepsPerCheck, check_clock, &guard);
  const auto statement = compile(database, sql, guard, limits);
  if (!statement) return fail(statement);

  QueryAnswer answer;
  const int columns = sqlite3_column_count(statement->get());
  for (int i = 0; i < columns; ++i) {
    const char* name = sqlite3_column_name(statement->get(), i);
    answer.columns.push_back(shortened(name != nullptr ? name : "", limits.value_bytes));
  }
  size_t bytes = 0;
  int step = 0;
  while ((step = sqlite3_step(statement->get())) == SQLITE_ROW) {
    if (answer.rows.size() == limits.rows || bytes > limits.bytes) {
      answer.has_more = true;
      return answer;
    }
    std::vector<QueryValue> row;
    for (int i = 0; i < columns; ++i) {
      row.push_back(value_of(statement->get(), i, limits.value_bytes, answer.shortened_values));
      bytes += size_of(row.back());
    }
    answer.rows.push_back(std::move(row));
  }
  if (step != SQLITE_DONE) return not_answered(database, guard, limits);
  return answer;
}

}  // namespace phlox::recording
