#include "phlox/recording/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/profile/unfinished.h"
#include "phlox/recording/schema.h"

namespace phlox::recording {
namespace {

using profile::Profile;

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

// Times of a host that has been up for less than 36 years, so that a start and a length can be added.
constexpr int64_t kMaximumTime = int64_t{1} << 60;
// Longest text. Names, command lines and paths of a target are capped at 1 MiB or less where they are read.
constexpr int kMaximumText = 16 << 20;

tl::unexpected<Error> damaged(const std::string& path, std::string_view what) {
  return fail(ErrorKind::input, fmt::format("{} is damaged: {}", path, what),
              "sqlite3 FILE .recover may save a part of it");
}

// One row of one table, column by column, each checked. The first thing that is wrong is remembered, what
// follows is zero.
class Columns {
 public:
  Columns(sqlite3_stmt* statement, std::string_view table) : statement_(statement), table_(table) {}

  void next_row() {
    column_ = 0;
    ++row_;
  }
  void reject_row(std::string_view why) {
    if (wrong_.empty()) wrong_ = fmt::format("{} row {} {}", table_, row_, why);
  }
  bool failed() const { return !wrong_.empty(); }
  const std::string& wrong() const { return wrong_; }

  int64_t integer(int64_t low, int64_t high) {
    const int column = column_++;
    // One look at the column for type and number; alone with the connection, its value needs no copy.
    sqlite3_value* const cell = sqlite3_column_value(statement_, column);
    if (sqlite3_value_type(cell) != SQLITE_INTEGER) return reject(column, "is no integer");
    const int64_t value = sqlite3_value_int64(cell);
    if (value < low || value > high) return reject(column, fmt::format("is {}, out of range", value));
    return value;
  }
  template <class T>
  T number() {
    return static_cast<T>(integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
  int64_t time() { return integer(-kMaximumTime, kMaximumTime); }
  // Unsigned 64-bit numbers are stored as SQLite's signed ones.
  uint64_t bits() {
    return static_cast<uint64_t>(
        integer(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()));
  }
  template <class Enum>
  Enum value(Enum last) {
    const int column = column_;
    const int64_t value = integer(0, 255);
    if (value > static_cast<int64_t>(last)) {
      reject(column, fmt::format("has a meaning that this phlox does not know: {}", value));
      return Enum{};
    }
    return static_cast<Enum>(value);
  }
  // A row of another table, 1..count. NULL: none.
  template <class Tag>
  Id<Tag> optional_reference(size_t count) {
    if (sqlite3_column_type(statement_, column_) == SQLITE_NULL) {
      ++column_;
      return {};
    }
    return reference<Tag>(count);
  }
  template <class Tag>
  Id<Tag> reference(size_t count) {
    return Id<Tag>(static_cast<uint32_t>(integer(1, static_cast<int64_t>(count))));
  }
  // A small number that is NULL when not known.
  int16_t small_or_none() {
    if (sqlite3_column_type(statement_, column_) == SQLITE_NULL) {
      ++column_;
      return -1;
    }
    return static_cast<int16_t>(integer(0, std::numeric_limits<int16_t>::max()));
  }
  // Ids count up from 1 without a gap: a row out of order is damage, and an endless table cannot be.
  void row_id() {
    const int column = column_;
    const int64_t id = integer(1, std::numeric_limits<uint32_t>::max());
    if (!failed() && id != row_) reject(column, fmt::format("is {} where {} comes next", id, row_));
  }
  uint32_t row() const { return static_cast<uint32_t>(row_); }
  std::string text() {
    const int column = column_++;
    if (sqlite3_column_type(statement_, column) != SQLITE_TEXT) {
      reject(column, "is no text");
      return {};
    }
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    if (bytes == nullptr) return {};
    return {bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  int64_t reject(int column, std::string_view why) {
    if (wrong_.empty()) {
      const char* name = sqlite3_column_name(statement_, column);
      wrong_ = fmt::format("{} row {}: {} {}", table_, row_, name != nullptr ? name : "?", why);
    }
    return 0;
  }
  sqlite3_stmt* statement_;
  std::string_view table_;
  std::string wrong_;
  int64_t row_ = 0;
  int column_ = 0;
};

template <class Tag>
std::optional<Id<Tag>> optional_of(Id<Tag> id) {
  return id ? std::optional(id) : std::nullopt;
}

// Tables that older recordings, or most, are without.
struct OptionalTables {
  bool missing_names = false, label = false;
};

// Recordings without column `role` say it behind `found_by`. Gives it, and leaves the rest there.
profile::FrameRole take_role(std::string& found_by) {
  constexpr std::pair<std::string_view, profile::FrameRole> kRoles[] = {
      {", interpreter loop", profile::FrameRole::interpreter_loop},
      {", trampoline", profile::FrameRole::trampoline},
      {", Cython slot", profile::FrameRole::cython_slot},
      {", Cython wrapper", profile::FrameRole::cython_wrapper},
      {", Cython body", profile::FrameRole::cython_body}};
  for (const auto& [words, role] : kRoles) {
    if (!found_by.ends_with(words)) continue;
    found_by.resize(found_by.size() - words.size());
    return role;
  }
  return profile::FrameRole::none;
}

class Reading {
 public:
  Reading(sqlite3* database, const std::string& path, OptionalTables has)
      : database_(database), path_(path), has_(has) {}

  Result<Profile> run() {
    for (auto part : {&Reading::meta, &Reading::processes, &Reading::threads, &Reading::modules,
                      &Reading::missing_names, &Reading::frames, &Reading::stacks, &Reading::states,
                      &Reading::samples, &Reading::events, &Reading::tallies, &Reading::labels}) {
      if (auto done = (this->*part)(); !done) return fail(done);
    }
    return std::move(profile_);
  }

 private:
  // Calls `row` for every row of a query over one table.
  template <class OneRow>
  Result<void> each(std::string_view table, std::string_view columns, OneRow&& row) {
    const std::string sql = fmt::format("SELECT {} FROM {}{}", columns, table,
                                        table == "meta" || table == "tally" ? "" : " ORDER BY rowid");
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) return broken();
    const Statement statement(raw);
    Columns values(raw, table);
    for (;;) {
      const int step = sqlite3_step(raw);
      if (step == SQLITE_DONE) return {};
      if (step != SQLITE_ROW) return broken();
      values.next_row();
      row(values);
      if (values.failed()) return damaged(path_, values.wrong());
    }
  }
  tl::unexpected<Error> broken() const { return damaged(path_, sqlite3_errmsg(database_)); }

  Result<void> meta() {
    return each("meta", "key, value", [&](Columns& c) {
      const std::string key = c.text();
      profile_.put_meta(key, c.text());
    });
  }

  Result<void> processes() {
    return each(
        "process",
        "id, pid, namespace_pid, parent, executable, command_line, python_version, python_build, found_by, "
        "way_of_reading, start_ns, end_ns, how_ended",
        [&](Columns& c) {
          profile::Process row;
          c.row_id();
          row.pid = c.number<int32_t>();
          row.namespace_pid = c.number<int32_t>();
          row.parent = optional_of(c.optional_reference<profile::ProcessTag>(c.row() - 1));
          row.executable = c.text();
          row.command_line = c.text();
          row.python_version = c.text();
          row.python_build = c.text();
          row.found_by = c.text();
          row.way_of_reading = c.text();
          row.start = c.time();
          row.end = c.time();
          row.how_ended = c.text();
          if (!c.failed()) profile_.put_process(profile::ProcessId(c.row()), row);
        });
  }

  Result<void> threads() {
    return each("thread", "id, process, tid, python_id, interpreter, name, kernel_name, start_ns, end_ns",
                [&](Columns& c) {
                  profile::Thread row;
                  c.row_id();
                  row.process = c.reference<profile::ProcessTag>(profile_.processes().size());
                  row.tid = c.number<int32_t>();
                  row.python_id = c.bits();
                  row.interpreter = c.number<int64_t>();
                  row.name = c.text();
                  row.kernel_name = c.text();
                  row.start = c.time();
                  row.end = c.time();
                  if (!c.failed()) profile_.put_thread(profile::ThreadId(c.row()), row);
                });
  }

  Result<void> modules() {
    return each("module", "id, path, build_id, load_bias", [&](Columns& c) {
      profile::Module row;
      c.row_id();
      row.path = c.text();
      row.build_id = c.text();
      row.load_bias = c.bits();
      if (!c.failed()) profile_.put_module(profile::ModuleId(c.row()), row);
    });
  }

  Result<void> missing_names() {
    if (!has_.missing_names) return {};
    return each("missing_names", "module, functions, lines, why, advice", [&](Columns& c) {
      const auto id = c.reference<profile::ModuleTag>(profile_.modules().size());
      profile::MissingNames row;
      row.functions = c.integer(0, 1) != 0;
      row.lines = c.integer(0, 1) != 0;
      row.why = c.text();
      row.advice = c.text();
      if (c.failed()) return;
      profile::Module module = profile_.modules()[id.value - 1];
      module.missing = std::move(row);
      profile_.put_module(id, module);
    });
  }

  bool has_column(std::string_view table, std::string_view column) const {
    sqlite3_stmt* raw = nullptr;
    const std::string sql = fmt::format("SELECT {} FROM {}", column, table);
    const bool there = sqlite3_prepare_v2(database_, sql.c_str(), -1, &raw, nullptr) == SQLITE_OK;
    const Statement statement(raw);
    return there;
  }

  Result<void> frames() {
    const bool has_role = has_column("frame", "role");
    return each("frame",
                std::string("id, kind, function, qualified_name, file, first_line, line, module, address, "
                            "inlined_in, found_by") +
                    (has_role ? ", role" : ""),
                [&](Columns& c) {
                  profile::Frame row;
                  c.row_id();
                  row.kind = c.value(profile::FrameKind::marker);
                  row.function = c.text();
                  row.qualified_name = c.text();
                  row.file = c.text();
                  row.first_line = c.number<int32_t>();
                  row.line = c.number<int32_t>();
                  row.module =
                      optional_of(c.optional_reference<profile::ModuleTag>(profile_.modules().size()));
                  row.address = c.bits();
                  row.inlined_in = optional_of(c.optional_reference<profile::FrameTag>(c.row() - 1));
                  row.found_by = c.text();
                  row.role = has_role ? c.value(profile::FrameRole::jit_code) : take_role(row.found_by);
                  if (!c.failed()) profile_.put_frame(profile::FrameId(c.row()), row);
                });
  }

  Result<void> stacks() {
    return each("stack", "id, parent, frame", [&](Columns& c) {
      profile::Stack row;
      c.row_id();
      row.parent = c.optional_reference<profile::StackTag>(c.row() - 1);
      row.frame = c.reference<profile::FrameTag>(profile_.frames().size());
      if (!c.failed()) profile_.put_stack(profile::StackId(c.row()), row);
    });
  }

  // What a row of `state` says, in a Sample that has nothing else.
  Result<void> states() {
    return each("state", "id, cpu, gil, collecting, system_call, quality, cpu_number", [&](Columns& c) {
      profile::Sample row;
      c.row_id();
      row.cpu_state = c.value(profile::CpuState::blocked);
      row.gil_state = c.value(profile::GilState::not_applicable);
      row.collecting = c.integer(0, 1) != 0;
      row.system_call = c.small_or_none();
      row.quality = c.value(profile::Quality::rejected);
      row.cpu_number = c.small_or_none();
      states_.push_back(row);
    });
  }

  Result<void> samples() {
    int64_t epoch = 0;
    if (auto found = profile_.meta().find("sample_epoch_ns"); found != profile_.meta().end()) {
      errno = 0;
      char* end = nullptr;
      epoch = std::strtoll(found->second.c_str(), &end, 10);
      if (errno != 0 || end == found->second.c_str() || *end != 0 || epoch < -kMaximumTime ||
          epoch > kMaximumTime)
        return damaged(path_, "meta: sample_epoch_ns is no time");
    }
    // Whoever adds weights up later need not fear an overflow.
    int64_t left = std::numeric_limits<int64_t>::max() / 4;
    uint32_t last = 0;
    return each("sample", "rowid, start_us, wall_ns, cpu_ns, samples, thread, stack, state", [&](Columns& c) {
      // A recorder that was killed leaves no gaps either, but a program of the user's may have deleted rows.
      const int64_t id = c.integer(int64_t{last} + 1, std::numeric_limits<uint32_t>::max());
      last = static_cast<uint32_t>(id);
      const int64_t start = c.integer(-kMaximumTime / 1000, kMaximumTime / 1000);
      const int64_t wall = c.integer(0, left);
      const int64_t cpu = c.integer(0, left - wall);
      const int64_t looks = c.integer(0, std::numeric_limits<uint32_t>::max());
      const auto thread = c.reference<profile::ThreadTag>(profile_.threads().size());
      const auto stack = c.optional_reference<profile::StackTag>(profile_.stacks().size());
      const int64_t state = c.integer(1, static_cast<int64_t>(states_.size()));
      if (c.failed()) return;
      left -= wall + cpu;
      profile::Sample row = states_[static_cast<size_t>(state) - 1];
      row.start = epoch + start * 1000;
      row.wall = wall;
      row.cpu = cpu;
      row.samples = static_cast<uint32_t>(looks);
      row.thread = thread;
      row.stack = stack;
      profile_.put_sample(profile::SampleId(c.row()), row);
    });
  }

  Result<void> events() {
    return each("event", "id, kind, time_ns, process, thread, value, text", [&](Columns& c) {
      profile::Event row;
      c.row_id();
      row.kind = c.value(profile::EventKind::way_change);
      row.time = c.time();
      row.process = optional_of(c.optional_reference<profile::ProcessTag>(profile_.processes().size()));
      row.thread = optional_of(c.optional_reference<profile::ThreadTag>(profile_.threads().size()));
      row.value = c.number<int64_t>();
      row.text = c.text();
      if (!c.failed()) profile_.put_event(row);
    });
  }

  Result<void> tallies() {
    return each("tally", "process, name, value", [&](Columns& c) {
      profile::Tally row;
      row.process = profile::ProcessId(
          static_cast<uint32_t>(c.integer(0, static_cast<int64_t>(profile_.processes().size()))));
      row.name = c.text();
      row.value = c.integer(-kMaximumTime, kMaximumTime);
      // About twenty a process; Profile looks through them one by one.
      if (c.row() > 50'000) c.reject_row("is one too many");
      if (!c.failed()) profile_.put_tally(row);
    });
  }

  Result<void> labels() {
    if (!has_.label) return {};
    return each("label", "start_ns, end_ns, text", [&](Columns& c) {
      profile::TimeLabel row;
      row.start = c.time();
      row.end = c.time();
      row.text = c.text();
      if (c.row() > 1'000'000) c.reject_row("is one too many");
      if (!c.failed()) profile_.put_time_label(std::move(row));
    });
  }

  sqlite3* database_;
  const std::string& path_;
  OptionalTables has_;
  Profile profile_;
  std::vector<profile::Sample> states_;
};

// What SQLite would do for a file of our own, it must not do for one of somebody else's.
void distrust(sqlite3* database) {
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
      {SQLITE_LIMIT_FUNCTION_ARG, 8},      {SQLITE_LIMIT_ATTACHED, 0},
      {SQLITE_LIMIT_TRIGGER_DEPTH, 1},     {SQLITE_LIMIT_WORKER_THREADS, 0}};
  for (auto [what, value] : limits) sqlite3_limit(database, what, value);
}

Result<int64_t> pragma(sqlite3* database, const std::string& path, const char* name) {
  sqlite3_stmt* raw = nullptr;
  const std::string sql = fmt::format("PRAGMA {}", name);
  const int prepared = sqlite3_prepare_v2(database, sql.c_str(), -1, &raw, nullptr);
  const Statement statement(raw);
  const int step = prepared == SQLITE_OK ? sqlite3_step(raw) : prepared;
  if (step == SQLITE_ROW) return sqlite3_column_int64(raw, 0);
  if (step == SQLITE_NOTADB) return fail(ErrorKind::input, fmt::format("{} is not a phlox recording", path));
  if (step == SQLITE_CANTOPEN || step == SQLITE_READONLY || sqlite3_errcode(database) == SQLITE_CANTOPEN) {
    return fail(
        ErrorKind::input, fmt::format("cannot open {}: {}", path, sqlite3_errmsg(database)),
        "a recording that was cut off needs a folder that can be written: copy it with its -wal file");
  }
  return damaged(path, sqlite3_errmsg(database));
}

// Came later than format 1: a recording without it is one that tells nothing of it.
constexpr const char* kMissingNames = "missing_names";
constexpr const char* kLabel = "label";

// Whether a rollback journal is of this file alone. One that names a super-journal at its end (SQLite's
// pager.c: readSuperJournal) would, when it is applied, remove the file so named, whichever that is.
bool is_trusted_journal(const std::string& path) {
  constexpr std::string_view kSuper("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat there {};
  char end[kSuper.size()];
  return file && ::fstat(file.get(), &there) == 0 && S_ISREG(there.st_mode) &&
         ::pread(file.get(), end, sizeof end, there.st_size - static_cast<off_t>(sizeof end)) == sizeof end &&
         std::string_view(end, sizeof end) != kSuper;
}

// A recorder that was killed while it began or ended the log leaves a rollback journal, which whoever only
// reads may not apply (SQLITE_READONLY_ROLLBACK). One that still lives holds the lock: nothing happens then.
void undo_half_written(const std::string& path) {
  if (!is_trusted_journal(path + "-journal")) return;
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(
      path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX, nullptr);
  const Database database(raw);
  if (opened == SQLITE_OK) sqlite3_exec(raw, "PRAGMA user_version", nullptr, nullptr, nullptr);
}

bool is_being_recorded(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kRecorderByte;
  lock.l_len = 1;
  return file && ::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// Of a recorder that was killed in its first moments, or a copy that lacks what was in the log.
tl::unexpected<Error> holds_nothing(const std::string& path) {
  return fail(
      ErrorKind::input,
      fmt::format("{} holds nothing: it has just begun, or its recorder was killed in its first moments",
                  path),
      fmt::format("if it is a copy of a recording that was cut off: copy {}-wal too", path));
}

bool has_nothing(sqlite3* database) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(database, "SELECT 1 FROM sqlite_schema", -1, &raw, nullptr) != SQLITE_OK)
    return false;
  const Statement statement(raw);
  return sqlite3_step(raw) == SQLITE_DONE;
}

// Every table must be one: a "sample" that is a virtual table or has computed columns is somebody's program.
// Says which are there of those that may be absent.
Result<OptionalTables> check_tables(sqlite3* database, const std::string& path) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(database, "SELECT type, sql FROM sqlite_schema WHERE name = ?", -1, &raw, nullptr) !=
      SQLITE_OK)
    return damaged(path, sqlite3_errmsg(database));
  const Statement statement(raw);
  OptionalTables there;
  for (const char* table : {"meta", "process", "thread", "module", "frame", "stack", "state", "sample",
                            "event", "tally", kMissingNames, kLabel}) {
    sqlite3_reset(raw);
    sqlite3_bind_text(raw, 1, table, -1, SQLITE_STATIC);
    const int step = sqlite3_step(raw);
    if (step == SQLITE_DONE) {
      if (std::string_view(table) == kMissingNames || std::string_view(table) == kLabel) continue;
      if (std::string_view(table) == "meta" && has_nothing(database)) return holds_nothing(path);
      return fail(ErrorKind::input, fmt::format("{} has no table {}", path, table),
                  fmt::format("a recording that was cut off is two files: copy {}-wal too", path));
    }
    if (step != SQLITE_ROW) return damaged(path, sqlite3_errmsg(database));
    const auto* type = reinterpret_cast<const char*>(sqlite3_column_text(raw, 0));
    const auto* sql = reinterpret_cast<const char*>(sqlite3_column_text(raw, 1));
    const std::string_view text = sql != nullptr ? sql : "";
    if (type == nullptr || std::strcmp(type, "table") != 0 || !text.starts_with("CREATE TABLE"))
      return damaged(path, fmt::format("{} is not a plain table", table));
    there.missing_names = there.missing_names || std::string_view(table) == kMissingNames;
    there.label = there.label || std::string_view(table) == kLabel;
  }
  return there;
}

}  // namespace

Result<Profile> read_begun(const std::string& path) {
  auto profile = read(path);
  if (profile && profile->meta().empty() && profile->processes().empty()) return holds_nothing(path);
  return profile;
}

Result<Profile> read(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0)
    return fail(ErrorKind::input, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  if (!S_ISREG(there.st_mode)) return fail(ErrorKind::input, fmt::format("{} is not a regular file", path));
  if (there.st_size == 0)
    return fail(ErrorKind::input, fmt::format("{} is empty, not a phlox recording", path));

  // While SQLite has not opened it: closing a descriptor would drop its locks. A recorder that ends between
  // here and there leaves a finished recording.
  const bool grows = is_being_recorded(path);
  undo_half_written(path);
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  const Database database(raw);
  if (opened != SQLITE_OK) {
    return fail(ErrorKind::input,
                fmt::format("cannot open {}: {}", path, raw != nullptr ? sqlite3_errmsg(raw) : "no memory"),
                "is it yours to read? ls -l FILE");
  }
  distrust(raw);
  sqlite3_busy_timeout(raw, 2000);
  // One moment of a file that may be growing.
  sqlite3_exec(raw, "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; BEGIN",
               nullptr, nullptr, nullptr);
  const auto application = pragma(raw, path, "application_id");
  if (!application) return fail(application);
  if (*application != kApplicationId) {
    return fail(ErrorKind::input, fmt::format("{} is an SQLite file, but not a phlox recording", path));
  }
  const auto version = pragma(raw, path, "user_version");
  if (!version) return fail(version);
  if (*version > kSchemaVersion) {
    return fail(ErrorKind::input,
                fmt::format("{} was recorded by a newer phlox: its format is {}, this one reads {}", path,
                            *version, kSchemaVersion),
                "pip install --upgrade phlox");
  }
  if (*version < 1) return damaged(path, fmt::format("format {}", *version));
  const auto tables = check_tables(raw, path);
  if (!tables) return fail(tables);
  auto profile = Reading(raw, path, *tables).run();
  // Whatever the file says of it.
  if (profile && (grows || profile->meta().contains(profile::kGrows)))
    profile->put_meta(profile::kGrows, grows ? "1" : "");
  return profile;
}

bool is_recording(const std::string& path) {
  // "Database Header Format" of SQLite's file format: a magic string, the application id at byte 68.
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  constexpr size_t kApplication = 68;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char head[kApplication + 4];
  if (!file || ::pread(file.get(), head, sizeof head, 0) != sizeof head) return false;
  if (std::string_view(head, sizeof head).substr(0, kMagic.size()) != kMagic) return false;
  uint32_t id = 0;
  for (size_t i = 0; i < 4; ++i) id = id << 8 | static_cast<unsigned char>(head[kApplication + i]);
  return id == kApplicationId;
}

}  // namespace phlox::recording
