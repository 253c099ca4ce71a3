// Who has the other end of a pipe, or of a pair of sockets: the processes beside a process, its parent and
// children, are asked which files they have open. Done as rarely as it takes long. Used by the recorder's
// thread; reads /proc only.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "phlox/base/clock.h"

namespace phlox::target {

class FileHolders {
 public:
  enum class End { reading, writing, any };

  // But for `process` itself, of the files whose link is this one ("pipe:[4711]") and that have this end.
  // Empty: none is known.
  std::vector<pid_t> find(pid_t process, const std::string& link, End end);

 private:
  struct Holder {
    pid_t process = 0;
    bool reads = false, writes = false;
  };
  struct Family {
    std::map<std::string, std::vector<Holder>> holders;  // by link
    Nanoseconds next = 0;                                // not asked again before
  };

  static void ask(pid_t process, Family& into);

  std::map<pid_t, Family> families_;
};

// Its command line, as far as it is short, or its name where it has none; empty: it is gone.
std::string command_words(pid_t process);
// With its number: "python3 worker.py (4712)".
std::string process_words(pid_t process);

}  // namespace phlox::target
