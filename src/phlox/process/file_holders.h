// The process at the other end of a pipe, or of a pair of sockets: searches the open files of a process's
// relatives, its parent and children. The longer the search takes, the more rarely it is done. Used by the
// recorder's thread; reads /proc only.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "phlox/base/clock.h"

namespace phlox::process {

class FileHolders {
 public:
  enum class End { reading, writing, any };

  // Except `process` itself: the holders of this end of the file with this link ("pipe:[4711]"). Empty: none
  // is known.
  std::vector<pid_t> find(pid_t process, const std::string& link, End end);

 private:
  struct Holder {
    pid_t process = 0;
    bool reads = false, writes = false;
  };
  struct Family {
    std::map<std::string, std::vector<Holder>> holders;  // by link
    Nanoseconds next = 0;                                // no new search before
  };

  static void ask(pid_t process, Family& into);

  std::map<pid_t, Family> families_;
};

// Its command line, if it is short, or its name if it has none; empty: it is gone.
std::string command_words(pid_t process);
// With its number: "python3 worker.py (4712)".
std::string process_words(pid_t process);

}  // namespace phlox::process
