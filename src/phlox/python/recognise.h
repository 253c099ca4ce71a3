// Recognises a Python by its files alone: for the search in one process, and to find the Pythons among many
// without reading their memory.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "phlox/process/maps.h"

namespace phlox::python {

// The order of the search for an interpreter: libpython, the executable, other files named python, the rest.
enum class Rank : uint8_t { libpython, executable, named, other };
Rank rank_of(const process::Module& module, const std::string& executable);

// Why a module is worth a closer look: its name, its symbols, or the one word that every CPython carries.
bool looks_like_python(const process::LoadedModule& module);
// For any file, however many a process has of them: a symbol that only an interpreter exports.
bool exports_interpreter(const process::LoadedModule& module);

// "PyPy" and the like, recognised by the names of the executable and the libraries.
std::string other_implementation(const std::vector<process::Module>& modules, const std::string& executable);

// The file that a process runs, as its maps name it.
std::string executable_of(pid_t pid);

// Which of many processes may be Pythons, CPython or not. A file is read once, however many processes have
// mapped it.
class Recogniser {
 public:
  // hidden: the process may not be read. unread: no file is a Python's, but not all could be read.
  enum class Verdict { no, python, hidden, unread };
  Verdict judge(pid_t pid);

 private:
  // An executable that was replaced has another time of change, also if it has the same inode.
  struct File {
    uint64_t device = 0, inode = 0;
    int64_t changed = -1;  // nanoseconds since 1970; -1: it is no executable of a process

    friend auto operator<=>(const File&, const File&) = default;
  };
  Verdict judge_file(pid_t pid, const process::Module& module, const std::string& executable,
                     const process::Budget& budget);

  std::map<File, Verdict> files_;
};

}  // namespace phlox::python
