// Writes a recording while it grows. Crash-safe: rows are durable at each commit() (four times a second), so
// a killed recorder leaves a file that opens and lacks at most half a second; finish() merges everything into
// one file. A recording that is made from another file need not be crash-safe: it is written once, at
// finish().
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tsl/robin_map.h>

#include "phlox/base/descriptor.h"
#include "phlox/base/place.h"
#include "phlox/base/result.h"
#include "phlox/base/spread.h"
#include "phlox/profile/sink.h"
#include "phlox/profile/task_time.h"
#include "phlox/recording/bulk_insert.h"
#include "phlox/recording/continued.h"
#include "phlox/recording/new_recording.h"

struct sqlite3;
struct sqlite3_stmt;

namespace phlox::recording {

// When rows are durable. at_finish: for a file that nothing reads before; a truncated one is no recording.
// Then nothing waits for the disk: after a power failure in the next seconds you still have the file that it
// was made from.
enum class Safe { at_each_commit, at_finish };

// The limits of a long recording: the oldest samples beyond them are deleted.
struct Retention {
  std::optional<uint64_t> bytes;   // of the file and its log
  std::optional<Nanoseconds> age;  // of a sample
  explicit operator bool() const { return bytes || age; }
};

class Writer : public profile::Sink, public profile::TaskSink {
 public:
  // Whether create() would work. Changes nothing; another recorder may be using the file. `verb`: for the
  // error.
  static Result<void> check(const std::string& path, const std::optional<Owner>& owner = {},
                            std::string_view verb = "replace");
  // Whether append() would work. Waits up to two seconds for another process that uses the file.
  static Result<void> check_append(const std::string& path, const std::optional<Owner>& owner = {});
  // Makes the file, mode 0600; it belongs to `owner` if given (under sudo: the calling user). From its first
  // moment on it is a valid recording, empty at first. An old file stays until the first commit with a
  // sample: this one, which grew in memory, then replaces it. With at_finish it is replaced at once.
  static Result<std::unique_ptr<Writer>> create(const std::string& path, std::optional<Owner> owner = {},
                                                Safe safe = Safe::at_each_commit);
  // Continues a recording made on this host since its last boot: finished, or of a killed recorder. Ids of
  // new rows count from 1 again and are renumbered in the file: processes and threads that are still running
  // get their old rows. The gap is an event `lost`.
  static Result<std::unique_ptr<Writer>> append(const std::string& path, std::optional<Owner> owner = {});
  // Below this there is no room for a file and its log.
  static constexpr uint64_t kLeastBytes = 10'000'000;
  void keep_only(const Retention& retention) { retention_ = retention; }
  ~Writer() override;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void receive(const profile::AnyRow& row) override;
  void put_task_census(profile::TaskCensusId id, const profile::TaskCensus& census) override;
  void put_event_loop(profile::EventLoopId id, const profile::EventLoop& loop) override;
  void put_task_stack(profile::TaskStackId id, const profile::TaskStack& stack) override;
  void put_task_time(profile::TaskTimeId id, const profile::TaskTime& time) override;
  void put_task_group(profile::TaskGroupId id, const profile::TaskGroup& group) override;
  void put_ready_tasks(profile::ReadyTasksId id, const profile::ReadyTasks& ready) override;
  void put_task_waiter(profile::TaskWaiterId id, const profile::TaskWaiter& waiter) override;
  void put_job_waiter(profile::JobWaiterId id, const profile::JobWaiter& waiter) override;
  void put_request(profile::RequestId id, const profile::Request& request) override;
  void put_request_part(profile::RequestPartId id, const profile::RequestPart& part) override;

  // After an error (the disk is full) committed rows stay readable, and later rows are dropped. A renamed or
  // removed file is an error, too; but all rows still go into it.
  Result<void> commit() override;
  // Commits, and merges the write-ahead log: one file, nothing next to it. If that fails (another program
  // reads the file, the disk is full), it is an error, and the recording is complete together with its "-wal"
  // file. Write nothing afterwards. Without a sample, an old file stays as it is.
  Result<void> finish();
  // Whether the recording is in a file; for any thread.
  bool has_file() const { return has_file_; }
  // After finish(): a path that leads to the recording. Empty: there is none.
  const std::string& where() const { return where_; }

 private:
  // The numbers of existing rows: added to every new id.
  struct Before {
    uint32_t modules = 0, frames = 0, stacks = 0, wakers = 0, wait_targets = 0, task_censuses = 0,
             event_loops = 0, task_stacks = 0, task_times = 0, task_groups = 0, ready_tasks = 0,
             task_waiters = 0, job_waiters = 0, requests = 0, request_parts = 0, trace_times = 0, samples = 0;
    int64_t states = 0;
    bool any = false;
    std::map<std::string, int64_t, std::less<>> recorder_times;  // counters
  };

  Writer() = default;
  void write(const profile::Meta& meta);
  bool write_fact_of_process(std::string_view key, std::string_view value);
  void write(profile::ProcessId id, const profile::Process& process);
  void write(profile::ThreadId id, const profile::Thread& thread);
  void write(profile::ModuleId id, const profile::Module& module);
  void write(profile::FrameId id, const profile::Frame& frame);
  void write(profile::StackId id, const profile::Stack& stack);
  void write(profile::WakerId id, const profile::Waker& waker);
  void write(profile::WaitTargetId id, const profile::WaitTarget& wait_target);
  void write(profile::SampleId id, const profile::Sample& sample);
  void write(profile::TraceTimeId id, const profile::TraceTime& time);
  void write(const profile::Event& event);
  void write(const profile::Counter& counter);
  Result<void> set_up();
  Result<void> commit_rows();
  Result<void> open(const std::string& path, const std::optional<Owner>& owner);
  Result<void> open_in_memory(const std::string& path, const std::optional<Owner>& owner);
  Result<void> put_in_place();
  Result<void> check_place() const;
  void note_side_files();
  int fold();
  void finalize_statements();
  Result<void> prepare_statements();
  static Result<Descriptor> mark_for_append(const std::string& path, const std::optional<Owner>& owner);
  struct Began {
    Nanoseconds monotonic, unix_clock;
  };
  Result<void> continue_after_what_is_there();
  Result<void> bring_to_this_format();
  Result<void> add_what_older_ones_lack();
  Result<Began> check_same_clock();
  Result<void> continue_ids();
  std::optional<int64_t> number(const std::string& sql);
  void run(const std::string& sql);
  void let_go();
  void let_go_until(int64_t row);
  sqlite3_stmt* prepare(const char* sql);
  void begin();
  void step(sqlite3_stmt* statement);
  void put(BulkInsert& rows, std::initializer_list<BulkInsert::Value> row);
  void flush(BulkInsert& rows);
  void note_error();
  int64_t state_of(const profile::Sample& sample);
  std::optional<int64_t> earlier_counter(const profile::Counter& counter) const;

  std::string path_;  // as the user named it, for messages
  std::string where_;
  std::optional<Owner> owner_;
  std::optional<Place> place_;
  std::atomic<bool> has_file_{false};
  // Its log and the index of that: name, device and inode.
  std::vector<std::pair<std::string, std::pair<dev_t, ino_t>>> side_files_;
  Safe safe_ = Safe::at_each_commit;
  Descriptor mark_;  // of the file, or of the one to be replaced: locked while we write (schema.h)
  sqlite3* database_ = nullptr;
  sqlite3_stmt *meta_ = nullptr, *process_ = nullptr, *thread_ = nullptr, *module_ = nullptr,
               *missing_names_ = nullptr, *frame_ = nullptr, *waker_ = nullptr, *wait_target_ = nullptr,
               *state_ = nullptr, *grown_sample_ = nullptr, *event_ = nullptr, *counter_ = nullptr,
               *task_census_ = nullptr, *event_loop_ = nullptr, *task_stack_ = nullptr, *task_time_ = nullptr,
               *task_group_ = nullptr, *ready_tasks_ = nullptr, *task_waiter_ = nullptr,
               *job_waiter_ = nullptr, *request_ = nullptr, *request_part_ = nullptr, *trace_time_ = nullptr;
  BulkInsert stacks_, samples_;
  // Rows of `state` by their values, waker, wait target, and library.
  struct StateKey {
    uint64_t values = 0;
    uint32_t waker = 0, wait_target = 0, code_file = 0;
    friend bool operator==(const StateKey&, const StateKey&) = default;
  };
  struct StateHash {
    size_t operator()(const StateKey& key) const noexcept {
      return Spread{}((key.values ^ (uint64_t{key.wait_target} << 32 | key.waker) * 0x9E3779B97F4A7C15U) +
                      uint64_t{key.code_file} * 0xD6E8FEB86659FD93U);
    }
  };
  tsl::robin_map<StateKey, int64_t, StateHash> states_;
  std::optional<Nanoseconds> epoch_;  // start_us counts from here
  uint32_t last_sample_ = 0;
  Before before_;
  Continued continued_;
  Numbering processes_, threads_;
  std::map<uint32_t, Continued::Process> continued_processes_;  // by id
  std::map<uint32_t, Nanoseconds> continued_threads_;           // by id: when it was first seen
  Retention retention_;
  // Times of samples; when to check again for samples that are too old.
  Nanoseconds newest_ = 0, next_check_ = 0;
  Nanoseconds first_start_ = 0, first_unix_ = 0;  // of the recording, dropped parts included
  bool in_transaction_ = false;
  bool failed_ = false;
  Error error_;
};

}  // namespace phlox::recording
