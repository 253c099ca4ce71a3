// Which rows of a continued recording are of processes and threads that are still running. A process is the
// same if its pid, the kernel's time of its start (meta `start_ticks.PID`) and its executable are the same; a
// thread if its process, its kernel id and its Python id are. The writer asks about each row that is written
// first.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/model.h"

struct sqlite3;

namespace phlox::recording {

// The rows for ids: after those of an earlier recorder, except for processes and threads that have one.
class Numbering {
 public:
  void begin_behind(uint32_t rows) { before_ = rows; }
  // 0: no id.
  int64_t row(uint32_t id) const;
  bool is_new(uint32_t id) const { return id > rows_.size(); }
  // For a new id; `there`: it has this row already.
  int64_t add(uint32_t id, std::optional<uint32_t> there);

 private:
  uint32_t before_ = 0, continued_ = 0;
  std::vector<uint32_t> rows_;  // by id - 1; empty as long as there are no earlier rows
};

class Continued {
 public:
  struct Process {
    uint32_t row = 0;
    Nanoseconds start = 0;
    int64_t parent = 0;  // row; 0: none
    std::map<std::string, int64_t, std::less<>> counters;
  };
  struct Thread {
    uint32_t row = 0;
    Nanoseconds start = 0;
  };

  // Those that were running when the earlier recorder ended; `database` holds rows that were read and found
  // valid.
  Result<void> load(sqlite3* database);
  // This recorder's facts about running processes: key and value of its meta.
  void note(std::string_view key, std::string_view value);
  // Each is returned once.
  std::optional<Process> take(const profile::Process& process);
  std::optional<Thread> take(uint32_t process_row, const profile::Thread& thread);

 private:
  struct Lived {
    Process process;
    std::string start_ticks, executable;
  };
  struct ThreadKey {
    uint32_t process = 0;
    int32_t tid = 0;
    uint64_t python_id = 0;
    int64_t interpreter = 0;
    friend auto operator<=>(const ThreadKey&, const ThreadKey&) = default;
  };
  std::map<int32_t, Lived> processes_;  // by pid
  std::map<ThreadKey, Thread> threads_;
  std::map<int32_t, std::string> start_ticks_;  // of running processes, by pid
};

}  // namespace phlox::recording
