// The conditions of `phlox record --on` and `phlox agent --on` while it records: watches them, and writes an
// incident when one becomes true. Rows are judged on the recorder's thread (incidents/row_watch.h); one
// thread of ours looks at log files and memory, and writes; signals and requests come from the threads that
// take them.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "phlox/cli/incident_files.h"
#include "phlox/cli/log_tail.h"
#include "phlox/cli/talk.h"
#include "phlox/cli/trigger_request.h"
#include "phlox/incidents/condition.h"
#include "phlox/incidents/plan.h"
#include "phlox/incidents/row_watch.h"
#include "phlox/naming/live_names.h"
#include "phlox/process/memory_limit.h"
#include "phlox/push/metrics_port.h"

namespace phlox::cli {

class Triggers {
 public:
  // Makes the folder, and proves that log files can be read and the address is free. Starts nothing. `mask`:
  // of processes that we start.
  static Result<std::unique_ptr<Triggers>> open(const TriggerRequest& request, const sigset_t& mask,
                                                Talk& talk);
  ~Triggers();
  Triggers(const Triggers&) = delete;
  Triggers& operator=(const Triggers&) = delete;

  // The recorder's sink, which passes everything on to `to`. `recording`: the path that `to` writes to. Call
  // it once, before start(). `is_child`: we started the program.
  profile::Sink& watch(profile::Sink& to, const std::string& recording, bool is_child);
  // Native functions get their names while the recording goes on: an incident hurries `names`, and is not
  // written before they are there, or 15 s have passed. Before start(); `names` must outlive this.
  void wait_for(naming::LiveNames& names) { names_ = &names; }
  // After the recorder has given up the rights that it needs no more.
  void start();
  // False: no condition is about this signal. For the thread that takes signals.
  bool on_signal(int number);
  // After the last row: writes what is open. `recording`: where it is; empty: nowhere.
  void finish(const std::string& recording);

 private:
  struct Log {
    std::unique_ptr<LogTail> tail;
    std::string file;
  };

  Triggers(const TriggerRequest& request, const sigset_t& mask, Talk& talk);
  void note(incidents::Cause cause);
  void meet(const profile::Process& process);
  void run();
  void look_at_logs();
  void look_at_memory();
  void say_if_no_loop();
  void write_due();
  bool has_names();
  std::optional<push::Page> posted(std::string_view path);

  const TriggerRequest request_;
  Talk& talk_;
  IncidentFiles files_;
  std::vector<Log> logs_;
  std::unique_ptr<incidents::RowWatch> rows_;
  std::string recording_;
  naming::LiveNames* names_ = nullptr;
  bool is_child_ = false;
  std::atomic<bool> started_{false};
  std::set<std::string> said_;  // blind spots; the recorder's thread

  std::mutex mutex_;  // for what follows
  std::condition_variable changed_;
  incidents::Plan plan_;
  std::map<pid_t, std::vector<process::MemoryGroup>> memory_;  // of recorded processes
  bool said_no_limit_ = false;
  bool over_ = false;

  // Our thread's.
  struct Due {
    incidents::Incident incident;
    Nanoseconds since = 0;
  };
  std::optional<Due> due_;
  std::map<process::MemoryGroup, bool> is_full_;
  Nanoseconds next_memory_ = 0, no_loop_after_ = 0;
  std::unique_ptr<push::MetricsPort> port_;
  std::thread thread_;
};

}  // namespace phlox::cli
