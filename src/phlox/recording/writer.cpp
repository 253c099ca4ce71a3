#include "phlox/recording/writer.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>

#include "phlox/base/text.h"
#include "phlox/profile/counters.h"
#include "phlox/profile/recorded_words.h"
#include "phlox/profile/trace_ids.h"
#include "phlox/profile/wait_target.h"
#include "phlox/profile/waker_words.h"
#include "phlox/recording/database.h"
#include "phlox/recording/schema.h"
#include "phlox/recording/writer_row.h"

namespace phlox::recording {

// Called once it is clear that rows may be written.
Result<void> Writer::prepare_statements() {
  meta_ = prepare("INSERT OR REPLACE INTO meta VALUES (?,?)");
  process_ = prepare("INSERT OR REPLACE INTO process VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)");
  thread_ = prepare("INSERT OR REPLACE INTO thread VALUES (?,?,?,?,?,?,?,?,?)");
  module_ = prepare("INSERT OR REPLACE INTO module VALUES (?,?,?,?)");
  missing_names_ = prepare("INSERT OR REPLACE INTO missing_names VALUES (?,?,?,?,?)");
  frame_ = prepare("INSERT OR REPLACE INTO frame VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");
  waker_ = prepare("INSERT OR REPLACE INTO waker (id, thread, stack, other, kind) VALUES (?,?,?,?,?)");
  wait_target_ = prepare("INSERT OR REPLACE INTO wait_target VALUES (?,?,?,?)");
  state_ = prepare(
      "INSERT INTO state (id, cpu, gil, collecting, system_call, quality, cpu_number, event, "
      "waker, wait_target, code_file, no_call) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");
  if (!stacks_.prepare(database_, "INSERT OR REPLACE INTO stack", 3) ||
      !samples_.prepare(
          database_,
          "INSERT INTO sample (rowid, start_us, wall_ns, cpu_ns, samples, thread, stack, state, value)", 9))
    note_error();
  grown_sample_ = prepare("UPDATE sample SET wall_ns=?, cpu_ns=?, samples=?, state=?, value=? WHERE rowid=?");
  event_ = prepare("INSERT INTO event VALUES (NULL,?,?,?,?,?,?)");
  counter_ = prepare("INSERT OR REPLACE INTO counter VALUES (?,?,?)");
  task_census_ = prepare("INSERT OR REPLACE INTO task_census VALUES (?,?,?,?,?,?,?,?,?,?,?)");
  event_loop_ = prepare("INSERT OR REPLACE INTO event_loop VALUES (?,?,?,?)");
  task_stack_ = prepare("INSERT OR REPLACE INTO task_stack VALUES (?,?,?)");
  task_time_ = prepare("INSERT OR REPLACE INTO task_time VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");
  task_group_ = prepare("INSERT OR REPLACE INTO task_group VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)");
  ready_tasks_ = prepare("INSERT OR REPLACE INTO ready_tasks VALUES (?,?,?,?,?)");
  task_waiter_ = prepare("INSERT OR REPLACE INTO task_waiter VALUES (?,?,?,?)");
  job_waiter_ = prepare("INSERT OR REPLACE INTO job_waiter VALUES (?,?,?,?,?)");
  request_ = prepare("INSERT OR REPLACE INTO request VALUES (?,?,?,?,?,?,?)");
  request_part_ = prepare("INSERT OR REPLACE INTO request_part VALUES (?,?,?,?,?)");
  trace_time_ = prepare("INSERT OR REPLACE INTO trace_time VALUES (?,?,?,?,?,?)");
  if (failed_) return fail(error_.kind, error_.message);
  if (has_file_) note_side_files();
  return {};
}

void Writer::finalize_statements() {
  for (sqlite3_stmt** s :
       {&meta_,        &process_,     &thread_,     &module_,       &missing_names_, &frame_,
        &waker_,       &wait_target_, &state_,      &grown_sample_, &event_,         &counter_,
        &task_census_, &event_loop_,  &task_stack_, &task_time_,    &task_group_,    &ready_tasks_,
        &task_waiter_, &job_waiter_,  &request_,    &request_part_, &trace_time_}) {
    sqlite3_finalize(*s);
    *s = nullptr;
  }
  stacks_.finalize();
  samples_.finalize();
}

void Writer::note_error() {
  if (failed_) return;
  failed_ = true;
  const int code = sqlite3_errcode(database_);
  error_.kind = ErrorKind::output;
  error_.message = code == SQLITE_FULL ? fmt::format("cannot write {}: the disk is full", path_)
                                       : fmt::format("cannot write {}: {}", path_, sqlite3_errmsg(database_));
  error_.hint = has_file_ ? "what was recorded before is in the file" : "";
}

sqlite3_stmt* Writer::prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(database_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK)
    note_error();
  return statement;
}

void Writer::begin() {
  if (in_transaction_ || failed_) return;
  if (sqlite3_exec(database_, "BEGIN", nullptr, nullptr, nullptr) != SQLITE_OK) return note_error();
  in_transaction_ = true;
}

void Writer::step(sqlite3_stmt* statement) {
  begin();
  if (!failed_ && sqlite3_step(statement) != SQLITE_DONE) note_error();
  sqlite3_reset(statement);
}

void Writer::put(BulkInsert& rows, std::initializer_list<BulkInsert::Value> row) {
  begin();
  if (!failed_ && !rows.put(row)) note_error();
}

void Writer::flush(BulkInsert& rows) {
  if (!failed_ && !rows.flush()) note_error();
}

void Writer::receive(const profile::AnyRow& row) {
  profile::take_apart(row, [this](const auto&... parts) { write(parts...); });
}

void Writer::write(const profile::Meta& meta) {
  const auto& [key, value] = meta;
  if (key == "start_monotonic_ns" || key == "start_unix_ns") {
    if (before_.any) return;  // its start stays
    (key == "start_unix_ns" ? first_unix_ : first_start_) = parse_number<Nanoseconds>(value).value_or(0);
  }
  if (before_.any) {
    continued_.note(key, value);
    if (write_fact_of_process(key, value)) return;
  }
  Row(meta_).text(key).text(value);
  step(meta_);
}

// Some keys end in the row of a process, which has another number here.
bool Writer::write_fact_of_process(std::string_view key, std::string_view value) {
  for (const std::string_view fact :
       {profile::kForkedFrom, profile::kProcessName, profile::kProcessRank, profile::kResource}) {
    if (!key.starts_with(fact)) continue;
    const auto row_of = [this](std::string_view id) {
      const auto number = parse_number<uint32_t>(id);
      return number && *number != 0 && !processes_.is_new(*number) ? processes_.row(*number) : 0;
    };
    const int64_t process = row_of(key.substr(fact.size()));
    const int64_t parent = fact == profile::kForkedFrom ? row_of(value) : 0;
    // Of a process that has no row yet, nothing is better than a fact of another process.
    if (process == 0 || (fact == profile::kForkedFrom && parent == 0)) return true;
    const std::string renumbered = fmt::format("{}{}", fact, process);
    const std::string as_value = parent != 0 ? std::to_string(parent) : std::string(value);
    Row(meta_).text(renumbered).text(as_value);
    step(meta_);
    return true;
  }
  return false;
}

void Writer::write(profile::ProcessId id, const profile::Process& p) {
  if (processes_.is_new(id.value)) {
    auto there = continued_.take(p);
    processes_.add(id.value, there ? std::optional(there->row) : std::nullopt);
    if (there) continued_processes_.emplace(id.value, *std::move(there));
  }
  const auto there = continued_processes_.find(id.value);
  const bool lives_on = there != continued_processes_.end();
  const int64_t row = processes_.row(id.value);
  int64_t parent = p.parent ? processes_.row(p.parent->value) : 0;
  // Parents come before children, and this process keeps its row.
  if (lives_on && (parent == 0 || parent >= row)) parent = there->second.parent;
  Row(process_)
      .integer(row)
      .integer(p.pid)
      .integer(p.namespace_pid)
      .optional(reference(parent))
      .text(p.executable)
      .text(p.command_line)
      .text(p.python_version)
      .text(p.python_build)
      .text(p.found_by)
      .text(p.mode)
      .integer(lives_on ? there->second.start : p.start)
      .integer(p.end)
      .text(p.how_ended);
  step(process_);
}

void Writer::write(profile::ThreadId id, const profile::Thread& t) {
  const int64_t process = processes_.row(t.process.value);
  if (threads_.is_new(id.value)) {
    const auto there = continued_.take(static_cast<uint32_t>(process), t);
    threads_.add(id.value, there ? std::optional(there->row) : std::nullopt);
    if (there) continued_threads_.emplace(id.value, there->start);
  }
  const auto there = continued_threads_.find(id.value);
  Row(thread_)
      .integer(threads_.row(id.value))
      .integer(process)
      .integer(t.tid)
      .integer(static_cast<int64_t>(t.python_id))
      .integer(t.interpreter)
      .text(t.name)
      .text(t.kernel_name)
      .integer(there != continued_threads_.end() ? there->second : t.start)
      .integer(t.end);
  step(thread_);
}

void Writer::write(profile::ModuleId id, const profile::Module& m) {
  Row(module_)
      .id(id, before_.modules)
      .text(m.path)
      .text(m.build_id)
      .integer(static_cast<int64_t>(m.load_bias));
  step(module_);
  if (!m.missing) return;
  Row(missing_names_)
      .id(id, before_.modules)
      .integer(m.missing->functions)
      .integer(m.missing->lines)
      .text(m.missing->why)
      .text(m.missing->advice);
  step(missing_names_);
}

void Writer::write(profile::FrameId id, const profile::Frame& f) {
  Row(frame_)
      .id(id, before_.frames)
      .value(f.kind)
      .text(f.function)
      .text(f.qualified_name)
      .text(f.file)
      .integer(f.first_line)
      .integer(f.line)
      .id(f.module, before_.modules)
      .integer(static_cast<int64_t>(f.address))
      .id(f.inlined_in, before_.frames)
      .text(f.found_by)
      .value(f.role);
  step(frame_);
}

void Writer::write(profile::StackId id, const profile::Stack& s) {
  put(stacks_,
      {row_of(id, before_.stacks), row_of(s.parent, before_.stacks), row_of(s.frame, before_.frames)});
}

void Writer::write(profile::WakerId id, const profile::Waker& w) {
  Row(waker_)
      .id(id, before_.wakers)
      .optional(reference(w.thread ? threads_.row(w.thread.value) : 0))
      .id(w.stack, before_.stacks)
      .optional_text(w.other)
      .optional_text(profile::waker_kind(w));
  step(waker_);
}

void Writer::write(profile::WaitTargetId id, const profile::WaitTarget& a) {
  Row(wait_target_)
      .id(id, before_.wait_targets)
      .text(profile::wait_target_key(a.kind))
      .optional_text(a.name)
      .optional_text(a.other);
  step(wait_target_);
}

int64_t Writer::state_of(const profile::Sample& s) {
  const uint64_t key = static_cast<uint64_t>(s.cpu_state) | static_cast<uint64_t>(s.gil_state) << 4 |
                       uint64_t{s.collecting} << 8 | static_cast<uint64_t>(s.quality) << 12 |
                       uint64_t{s.event} << 16 | uint64_t{static_cast<uint16_t>(s.system_call)} << 32 |
                       uint64_t{static_cast<uint16_t>(s.cpu_number)} << 48;
  const auto [at, fresh] = states_.try_emplace({key, s.waker.value, s.wait_target.value, s.code_file.value},
                                               before_.states + static_cast<int64_t>(states_.size()) + 1);
  if (fresh) {
    const bool no_call = s.cpu_state == profile::CpuState::blocked && s.system_call == -1;
    Row(state_)
        .integer(at->second)
        .value(s.cpu_state)
        .value(s.gil_state)
        .integer(s.collecting)
        .non_negative(s.system_call)
        .value(s.quality)
        .non_negative(s.cpu_number)
        .optional(reference(s.event))
        .id(s.waker, before_.wakers)
        .id(s.wait_target, before_.wait_targets)
        .id(s.code_file, before_.modules)
        .optional(no_call ? std::optional<int64_t>(1) : std::nullopt);
    step(state_);
  }
  return at->second;
}

void Writer::write(profile::SampleId id, const profile::Sample& s) {
  if (!epoch_) {
    epoch_ = s.start;
    emit_meta("sample_epoch_ns", std::to_string(s.start));
  }
  const int64_t state = state_of(s);
  if (id.value <= last_sample_) {
    flush(samples_);
    Row(grown_sample_)
        .integer(s.wall)
        .integer(s.cpu)
        .integer(s.samples)
        .integer(state)
        .optional(reference(s.value))
        .id(id, before_.samples);
    return step(grown_sample_);
  }
  last_sample_ = id.value;
  newest_ = std::max(newest_, s.start + s.wall);
  // Rounded down to the microsecond, also before the first sample.
  const Nanoseconds since = s.start - *epoch_;
  const Nanoseconds start_us = since >= 0 ? since / 1000 : -((-since + 999) / 1000);
  put(samples_,
      {row_of(id, before_.samples), start_us, s.wall, s.cpu, s.samples,
       reference(threads_.row(s.thread.value)), row_of(s.stack, before_.stacks), state, reference(s.value)});
}

void Writer::write(profile::TraceTimeId id, const profile::TraceTime& t) {
  const std::string trace = profile::id_text(t.ids.trace), span = profile::id_text(t.ids.span);
  Row(trace_time_)
      .id(id, before_.trace_times)
      .integer(threads_.row(t.thread.value))
      .integer(t.start)
      .integer(t.end)
      .text(trace)
      .text(span);
  step(trace_time_);
}

void Writer::write(const profile::Event& e) {
  // A process or thread that is still running does not start again.
  using profile::EventKind;
  if (e.kind == EventKind::process_start && e.process && continued_processes_.contains(e.process->value))
    return;
  if (e.kind == EventKind::thread_start && e.thread && continued_threads_.contains(e.thread->value)) return;
  Row(event_)
      .value(e.kind)
      .integer(e.time)
      .optional(reference(e.process ? processes_.row(e.process->value) : 0))
      .optional(reference(e.thread ? threads_.row(e.thread->value) : 0))
      .integer(e.value)
      .text(e.text);
  step(event_);
}

std::optional<int64_t> Writer::earlier_counter(const profile::Counter& t) const {
  const auto there = continued_processes_.find(t.process.value);
  if (t.process && there == continued_processes_.end()) return {};
  const auto& counters = t.process ? there->second.counters : before_.recorder_times;
  const auto found = counters.find(t.name);
  return found != counters.end() ? std::optional(found->second) : std::nullopt;
}

void Writer::write(const profile::Counter& t) {
  int64_t value = t.value;
  if (const auto earlier = earlier_counter(t)) {
    const bool is_maximum =
        t.name == profile::counters::kNativeWithoutEvent || t.name == profile::counters::kKernelThreads;
    value = is_maximum ? std::max(value, *earlier) : value + *earlier;
  }
  Row(counter_).integer(processes_.row(t.process.value)).text(t.name).integer(value);
  step(counter_);
}

Result<void> Writer::commit() {
  if (safe_ == Safe::at_finish && !failed_) return {};
  if (auto done = commit_rows(); !done) return done;
  return check_place();
}

Result<void> Writer::commit_rows() {
  if (in_transaction_ && !failed_) {
    flush(stacks_);
    flush(samples_);
  }
  if (in_transaction_ && !failed_) {
    if (retention_) let_go();
    if (sqlite3_exec(database_, "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) note_error();
    in_transaction_ = false;
  }
  if (!failed_ && !has_file_ && last_sample_ > 0) {
    if (auto put = put_in_place(); !put) {
      failed_ = true;
      error_ = put.error();
    }
  }
  if (!failed_) return {};
  // A transaction that cannot be written is dropped, so that what was written before stays a complete
  // recording. Without a journal there is nothing to go back to.
  if (safe_ == Safe::at_each_commit && database_ != nullptr && sqlite3_get_autocommit(database_) == 0)
    sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  in_transaction_ = false;
  return tl::unexpected<Error>(error_);
}

}  // namespace phlox::recording
