// Which rows of a recording that is gone on with are of processes and threads that live on. A process is the
// same when its pid, the kernel's time of its start (meta `start_ticks.PID`) and its executable are; a thread
// is when its process, its kernel id and its Python id are. The writer asks about each row that is put first.
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

// The rows that ids get: behind those of an earlier recorder, except for what was there.
class Numbering {
 public:
  void begin_behind(uint32_t rows) { before_ = rows; }
  // 0: of no id.
  int64_t row(uint32_t id) const;
  bool is_new(uint32_t id) const { return id > rows_.size(); }
  // Of one that is new; `there`: it has this row already.
  int64_t add(uint32_t id, std::optional<uint32_t> there);

 private:
  uint32_t before_ = 0, continued_ = 0;
  std::vector<uint32_t> rows_;  // by id - 1; empty as long as nothing was there
};

class Continued {
 public:
  struct Process {
    uint32_t row = 0;
    Nanoseconds start = 0;
    int64_t parent = 0;  // row; 0: none
    std::map<std::string, int64_t, std::less<>> tallies;
  };
  struct Thread {
    uint32_t row = 0;
    Nanoseconds start = 0;
  };

  // Those that lived when the earlier recorder ended; `database` holds rows that were read and found sound.
  Result<void> load(sqlite3* database);
  // What this recorder says of who runs: key and value of its meta.
  void note(std::string_view key, std::string_view value);
  // Each is given once.
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
  std::map<int32_t, std::string> start_ticks_;  // of those that run, by pid
};

}  // namespace phlox::recording
