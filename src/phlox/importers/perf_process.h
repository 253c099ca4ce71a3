// The executable mappings of a recorded process, from the records of a perf.data: the state at the last
// delivered record. Pure but for files of modules and of JIT compilers, which are opened when a stack first
// leads there.
#pragma once

#include <sys/types.h>
#include <tsl/robin_map.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/spread.h"
#include "phlox/importers/module_files.h"
#include "phlox/perf/records.h"
#include "phlox/profile/model.h"
#include "phlox/symbols/jit_map.h"
#include "phlox/unwind/unwinder.h"

namespace phlox::importers {

class PerfProcess {
 public:
  // `files` must outlive it.
  PerfProcess(pid_t pid, uint16_t machine, ModuleFiles& files)
      : pid_(pid), machine_(machine), files_(files), own_map_(std::make_shared<PerfMap>(pid)) {}

  void map(const perf::MapRecord& record);
  // execve: removes all mappings.
  void clear();
  // fork: copies all mappings.
  void inherit(const PerfProcess& parent);

  // The code at an address.
  struct MappedCode {
    ModuleFile* file = nullptr;  // null: code without a file, or nothing
    uint32_t file_number = 0;
    uint64_t bias = 0;
    bool mapped = false;
  };
  // False: no mapping is known.
  bool tells_maps() const { return !regions_.empty(); }
  MappedCode find(RemoteAddress address);
  // A function that a JIT compiler or -X perf has named; only for code without a file.
  std::optional<symbols::JitMap::Found> jit_function(RemoteAddress address);
  // Whether its Python names its functions (-X perf, perf_jit).
  bool tells_python();
  // Why its file of function names was not used; empty: it was, or there is none.
  const std::string& jit_trouble() const { return jit_trouble_; }

  // `out` is emptied first.
  void unwind(const unwind::UnwindInput& input, unwind::NativeStack& out);
  bool read_code(RemoteAddress at, std::span<std::byte> into);
  // Grows when the contents of an address may have changed.
  uint64_t generation() {
    settle();
    return generation_;
  }
  // Frees what can be rebuilt.
  void rest() {
    unwinder_.reset();
    known.clear();
  }
  // From its own file: "3.12"; empty: not known, or it runs no Python.
  std::string python();
  // How many of its stacks have user frames, and how many contain a Python function.
  void count_stack(bool with_python) {
    ++stacks_;
    python_stacks_ += with_python;
  }
  uint64_t stacks() const { return stacks_; }
  uint64_t python_stacks() const { return python_stacks_; }
  // The file that was mapped first: the program's, because the kernel maps it first.
  const std::string& program() const { return program_; }

  // By the address: how it was found, and whether it is exact. Valid only for `known_generation`.
  tsl::robin_map<uint64_t, profile::FrameId, Spread> known;
  uint64_t known_generation = 0;

 private:
  struct Region {
    uint64_t end = 0;
    uint32_t mapping = unwind::kNoModule;  // in mapped_
    bool from_fork = false;                // as its parent had it: the parent named the code there
  };
  // A file as it was mapped.
  struct MappedFile {
    uint32_t file = 0;
    uint64_t start = 0, offset = 0;
    bool asked = false;
    uint64_t bias = 0;
  };
  struct Jit {
    symbols::JitMap map;
    bool python = false;
  };
  // /tmp/perf-PID.map, read once for the process and all its children.
  struct PerfMap {
    explicit PerfMap(pid_t process) : pid(process) {}
    pid_t pid;
    bool asked = false;
    Jit jit;
  };

  void put(uint64_t start, uint64_t end, uint32_t mapping);
  void settle();
  void read_jit();
  void read(PerfMap& map);
  std::optional<symbols::JitMap::Found> named(RemoteAddress address) const;
  MappedFile& opened(uint32_t mapping);
  uint32_t python_version();
  unwind::Rule trampoline_rule();

  pid_t pid_;
  uint16_t machine_;
  ModuleFiles& files_;
  std::map<uint64_t, Region> regions_;  // by start, free of overlaps
  std::vector<MappedFile> mapped_;
  std::string program_;
  std::string jitdump_;             // its path, as the recording has it
  std::shared_ptr<const Jit> jit_;  // of the jitdump
  std::shared_ptr<PerfMap> own_map_;
  std::vector<std::shared_ptr<PerfMap>>
      parents_maps_;  // of the processes that it was forked from, the first one first
  bool jit_asked_ = false;
  uint64_t stacks_ = 0, python_stacks_ = 0;
  bool injected_ = false;  // perf inject has made files of the code that a JIT compiler named
  std::string jit_trouble_;
  bool changed_ = true;
  uint64_t generation_ = 1;
  unwind::ModuleMap map_;
  std::unique_ptr<unwind::Unwinder> unwinder_;
};

}  // namespace phlox::importers
