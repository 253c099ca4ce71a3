// Looks for the Pythons of a tree of processes: of some roots, and of all that they start, as long as it
// lives. Reads /proc; of what may be a Python, its memory. One thread uses it.
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
#include "phlox/sampler/session/program.h"
#include "phlox/target/process_clock.h"
#include "phlox/target/process_tree.h"

namespace phlox::sampler {

// Of one that came up while it was watched, and that was not found as a fork of a Python that is known: its
// birth, or when it called exec. `start`: field 22 of its stat, ticks since boot.
void note_birth(Program& program, uint64_t start, const target::ProcessClock& clock);

class TreeSearch {
 public:
  struct Found {
    std::unique_ptr<Program> program;
    pid_t parent = 0;  // 0: that of a root that was named is not asked for
  };
  // `itself`: whether the roots are looked at, too; else only what they start.
  // `chosen`: whether a process of this host is a root, too (Options::chosen).
  TreeSearch(const std::vector<pid_t>& roots, bool itself, bool descendants,
             std::function<bool(pid_t pid)> chosen = {});

  // Those with an interpreter that is up and that were not given before, the oldest first; `most` of them,
  // and no more once `stop` is set.
  std::vector<Found> look(size_t most, const std::atomic<bool>* stop = nullptr);
  // The roots were started to be recorded: nobody of the tree was there before.
  void is_launched() { began_ = 0; }
  // Is recorded already: it, and forks of it, need no search for the interpreter.
  void is_known(const Program& program);
  // Its program has ended by execve: what comes there is another one.
  void look_again(pid_t pid);

  // Whether anything of the tree runs that is not given: it may yet become a Python. One whose parent ended
  // is nobody's descendant, and counts.
  bool any_left() const;
  // As long as this is the id that was given out last on this host, a look finds nothing. None: it may all
  // the same.
  std::optional<uint64_t> quiet_until_after() const;
  // Asked by anybody.
  const target::Births& births() const { return births_; }
  // How many processes were met.
  uint64_t born() const { return born_; }
  // At how many looks everybody was asked for his children.
  uint64_t asked_everybody() const { return asked_everybody_; }
  // Why a Python could not be had; the last such.
  const std::string& refused() const { return refused_; }
  // Forks of a Python that ended before they were given, and the command line of the last.
  struct Brief {
    size_t processes = 0;
    std::string command_line;
    std::vector<pid_t> ids;  // of the first of them
  };
  const Brief& too_brief() const { return brief_; }

 private:
  struct Entry {
    explicit Entry(pid_t pid) : clock(pid) {}
    uint64_t start = 0;  // in ticks since boot
    pid_t parent = 0;
    bool root = false;
    bool given = false;
    bool was_given = false;  // it is, or has been
    bool forked = false;     // looks like a program that is known
    Image image;
    Nanoseconds next = 0, pause = 0;
    std::string command_line;  // of a fork
    target::ProcessClock clock;
    std::optional<Nanoseconds> used;  // at the last look
    bool has_run = true;              // since the one before; sometimes said of one that has not
    size_t spared = 0;                // looks since that was said
  };
  // One of those that were not chosen.
  struct Other {
    explicit Other(pid_t pid) : clock(pid) {}
    target::ProcessClock clock;
    std::optional<Nanoseconds> used;  // when it was asked about
    Nanoseconds next = 0, pause = 0;
    uint64_t listed = 0;  // by the how-manieth look
  };
  // What is the same in a process and its forks.
  struct Known {
    Image image;
    python::Interpreter interpreter;
    std::optional<int64_t> rseq_cpu_offset;
  };
  // What is no Python may load one later (uWSGI), which costs a look now and then.
  static constexpr Nanoseconds kShortest = 20'000'000, kLongest = 500'000'000;

  // Adds it, unless it has ended.
  bool meet(pid_t pid, pid_t parent, bool root);
  void list();
  std::optional<std::vector<pid_t>> newborn();
  bool asks_everybody(bool newborn_known);
  void meet_newborn(const std::vector<pid_t>& ids);
  void forget_ended(bool of_all);
  void forget(std::map<pid_t, Entry>::iterator at);
  void choose();
  std::unique_ptr<Program> try_one(pid_t pid, Entry& entry);
  const Known* known(const Image& image) const;

  size_t most_spared() const;

  bool itself_, descendants_;
  uint64_t began_ = 0;  // in ticks since boot: who was born later was not there
  target::Births births_;
  std::optional<uint64_t> last_birth_;
  size_t known_looks_ = 0;  // since somebody was born on this host of whom it is not known whose he is
  uint64_t asked_everybody_ = 0;
  struct Unseen {
    pid_t pid = 0;
    int tries = 0;
  };
  std::vector<Unseen> unseen_;  // born, and not asked yet whose they are
  std::function<bool(pid_t pid)> chosen_;
  std::map<pid_t, Entry> entries_;
  std::map<pid_t, Other> others_;
  uint64_t lists_ = 0;
  std::vector<Known> known_;
  uint64_t born_ = 0;
  std::string refused_;
  Brief brief_;
};

}  // namespace phlox::sampler
