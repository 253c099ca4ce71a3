// Searches for the Pythons of a tree of processes: of some roots, and of all processes that they start, as
// long as it lives. Reads /proc, and the memory of possible Pythons. Used by one thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/process/process_clock.h"
#include "phlox/process/process_state.h"
#include "phlox/process/process_tree.h"
#include "phlox/python/recognise.h"
#include "phlox/sampler/session/finder.h"
#include "phlox/sampler/session/program.h"

namespace phlox::sampler {

// For a process that came up during the search, and that was not found as a fork of a known Python: its
// birth, or when it called exec. `start`: field 22 of its stat, ticks since boot.
void note_birth(Program& program, uint64_t start, const process::ProcessClock& clock);

class TreeSearch {
 public:
  struct Found {
    std::unique_ptr<Program> program;
    pid_t parent = 0;  // 0: that of a named root is not read
  };
  // `itself`: whether the roots are searched, too; otherwise only the processes that they start.
  // `chosen`: whether a process of this host is a root, too (Options::chosen).
  TreeSearch(const std::vector<pid_t>& roots, bool itself, bool descendants,
             std::function<bool(pid_t pid)> chosen = {});

  // Those with an interpreter that is up and that were not returned before, the oldest first; at most `most`,
  // and none once `stop` is set.
  std::vector<Found> search(size_t most, const std::atomic<bool>* stop = nullptr);
  // The roots were started to be recorded: no process of the tree existed before.
  void is_launched() { began_ = 0; }
  // It is recorded already: it and its forks need no search for the interpreter.
  void is_known(const Program& program);
  // Its program has ended by execve: the next one is another program.
  void check_again(pid_t pid);

  // Whether any process of the tree runs that was not returned: it may become a Python. One whose parent
  // ended is a descendant of no root, and counts.
  bool any_left() const;
  // While this is the id that was given out last on this host, a search finds nothing. None: it may find
  // something all the same.
  std::optional<uint64_t> quiet_until_after() const;
  // Any thread may call it.
  const process::Births& births() const { return births_; }
  // How many processes were found.
  uint64_t born() const { return born_; }
  // How many searches read the children of all processes.
  uint64_t asked_everybody() const { return asked_everybody_; }
  // Why a Python could not be read; the last such.
  const std::string& refused() const { return refused_; }
  // Forks of a Python that ended before they were returned.
  const Finder::Brief& too_brief() const { return brief_; }

 private:
  struct Entry {
    explicit Entry(pid_t pid) : clock(pid) {}
    uint64_t start = 0;  // in ticks since boot
    pid_t parent = 0;
    bool root = false;
    bool given = false;
    bool was_given = false;  // it is, or has been
    bool forked = false;     // has the same image as a known program
    Image image;
    Nanoseconds next = 0, pause = 0;
    std::string command_line;  // of a fork
    process::ProcessClock clock;
    std::optional<Nanoseconds> used;  // at the last search
    bool has_run = true;              // since the one before; sometimes true although it has not run
    size_t spared = 0;                // searches since that was true
  };
  // A process that was not chosen.
  struct Other {
    explicit Other(pid_t pid) : clock(pid) {}
    process::ProcessClock clock;
    std::optional<Nanoseconds> used;  // when it was last checked; none: it was not
    Nanoseconds next = 0, pause = 0;
  };
  // Facts that a process shares with its forks.
  struct Known {
    Image image;
    python::Interpreter interpreter;
    std::optional<int64_t> rseq_cpu_offset;
  };
  // A process that is no Python may load one later (uWSGI), so it is checked now and then.
  static constexpr Nanoseconds kShortest = 20'000'000, kLongest = 500'000'000;

  // Adds it, unless it has ended.
  bool meet(pid_t pid, pid_t parent, bool root);
  // Forgets the process that had its id before.
  void forget_if_reused(pid_t pid, const process::Stat& stat);
  struct Unseen {
    pid_t pid = 0;
    int tries = 0;
  };
  void each_seen(std::vector<Unseen>& unseen, const std::vector<pid_t>& newborn,
                 const std::function<void(pid_t pid, const process::Stat& stat)>& met);
  void list();
  std::optional<std::vector<pid_t>> newborn();
  bool asks_everybody(bool newborn_known);
  void meet_newborn(const std::vector<pid_t>& ids);
  void forget_ended(bool of_all);
  void forget(std::map<pid_t, Entry>::iterator at);
  void list_others();
  void meet_others(const std::vector<pid_t>& newborn);
  void choose(const std::optional<std::vector<pid_t>>& newborn);
  std::unique_ptr<Program> try_one(pid_t pid, Entry& entry);
  const Known* known(const Image& image) const;

  size_t most_spared() const;

  bool itself_, descendants_;
  uint64_t began_ = 0;  // in ticks since boot: a process born later did not exist then
  process::Births births_;
  std::optional<uint64_t> last_birth_;
  size_t known_checks_ = 0;  // since the last birth on this host whose parent is not known
  uint64_t asked_everybody_ = 0;
  std::vector<Unseen> unseen_;  // new processes whose parents were not read yet
  std::vector<Unseen> unmet_;   // new processes that are not in others_ yet
  std::function<bool(pid_t pid)> chosen_;
  std::map<pid_t, Entry> entries_;
  std::map<pid_t, Other> others_;
  size_t listed_before_ = 0;  // searches since all processes were listed
  std::vector<Known> known_;
  // Programs that are no Pythons are checked again and again, and their files may be large.
  python::Recogniser recogniser_;
  uint64_t born_ = 0;
  std::string refused_;
  Finder::Brief brief_;
};

}  // namespace phlox::sampler
