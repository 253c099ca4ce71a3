#include "phlox/recording/schema_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "phlox/recording/database.h"
#include "phlox/recording/opened_recording.h"

namespace phlox::recording {
namespace {

// Longest text. Names, command lines and paths of a target are capped at 1 MiB or less where they are read.
constexpr int kMaximumText = 16 << 20;
// For all open recordings: a page cache takes 8 MB, and our sorts none.
constexpr sqlite3_int64 kMostMemory = 512 << 20;
constexpr std::string_view kViewNames[] = {"span", "stretch", "function_self", "function_total"};

// Reads the words and signs of a definition; empty at its end.
class Words {
 public:
  explicit Words(std::string_view sql) : rest_(sql) { next(); }
  std::string_view word() const { return word_; }
  bool take(std::string_view wanted) {
    if (!is(wanted)) return false;
    next();
    return true;
  }
  // With quotes if SQLite has renamed it.
  bool take_name() {
    const bool has_quotes = take("\"");
    if (word_.empty() || std::isalpha(static_cast<unsigned char>(word_[0])) == 0) return false;
    next();
    return !has_quotes || take("\"");
  }
  bool is(std::string_view wanted) const {
    return std::equal(word_.begin(), word_.end(), wanted.begin(), wanted.end(),
                      [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; });
  }

 private:
  static bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
  void next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
    size_t size = 0;
    while (size < rest_.size() && is_letter(rest_[size])) ++size;
    word_ = rest_.substr(0, std::max<size_t>(size, rest_.empty() ? 0 : 1));
    rest_.remove_prefix(word_.size());
  }
  std::string_view rest_, word_;
};

bool take_key(Words& words) {
  return words.take("PRIMARY") && words.take("KEY");
}

bool take_column(Words& words) {
  if (!words.take_name() || !(words.take("INTEGER") || words.take("TEXT"))) return false;
  if (words.is("PRIMARY") && !take_key(words)) return false;
  return !words.take("NOT") || words.take("NULL");
}

bool take_keys(Words& words) {
  if (!take_key(words) || !words.take("(")) return false;
  do {
    if (!words.take_name()) return false;
  } while (words.take(","));
  return words.take(")");
}

}  // namespace

bool is_plain_table(std::string_view sql) {
  Words words(sql);
  if (!words.take("CREATE") || !words.take("TABLE") || !words.take_name() || !words.take("(")) return false;
  do {
    if (!(words.is("PRIMARY") ? take_keys(words) : take_column(words))) return false;
  } while (words.take(","));
  if (!words.take(")")) return false;
  if (words.take("WITHOUT") && !words.take("ROWID")) return false;
  return words.word().empty();
}

void distrust(sqlite3* database, int attached) {
  const std::pair<int, int> switches[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                          {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                          {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                          {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                          {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                                          {SQLITE_DBCONFIG_DQS_DML, 0},
                                          {SQLITE_DBCONFIG_DQS_DDL, 0}};
  for (auto [what, value] : switches) sqlite3_db_config(database, what, value, nullptr);
  const std::pair<int, int> limits[] = {
      {SQLITE_LIMIT_LENGTH, kMaximumText}, {SQLITE_LIMIT_SQL_LENGTH, 100'000},
      {SQLITE_LIMIT_COLUMN, 100},          {SQLITE_LIMIT_EXPR_DEPTH, 20},
      {SQLITE_LIMIT_COMPOUND_SELECT, 5},   {SQLITE_LIMIT_VDBE_OP, 25'000},
      {SQLITE_LIMIT_FUNCTION_ARG, 8},      {SQLITE_LIMIT_ATTACHED, attached},
      {SQLITE_LIMIT_TRIGGER_DEPTH, 1},     {SQLITE_LIMIT_WORKER_THREADS, 0}};
  for (auto [what, value] : limits) sqlite3_limit(database, what, value);
  sqlite3_hard_heap_limit64(kMostMemory);
}

Result<void> check_schema(sqlite3* database, const std::string& path) {
  constexpr int kMost = 100;
  const Statement rows = prepare(database, "SELECT type, name, sql FROM sqlite_schema");
  if (!rows) return damaged(path, sqlite3_errmsg(database));
  for (int count = 0;; ++count) {
    const int step = sqlite3_step(rows.get());
    if (step == SQLITE_DONE) return {};
    if (step != SQLITE_ROW) return damaged(path, sqlite3_errmsg(database));
    if (count == kMost) return damaged(path, "it has too many tables");
    const std::string type = text_of(rows.get(), 0), name = text_of(rows.get(), 1);
    const std::string sql = text_of(rows.get(), 2);
    const bool plain = type == "table"  ? is_plain_table(sql) || name == "sqlite_sequence"
                       : type == "view" ? std::find(std::begin(kViewNames), std::end(kViewNames), name) !=
                                              std::end(kViewNames)
                       : type == "index" ? sql.empty()
                                         : false;
    if (plain) continue;
    return damaged(path, type == "table" ? fmt::format("{} is not a plain table", name)
                                         : fmt::format("it has a {} of its own: {}", type, name));
  }
}

}  // namespace phlox::recording
