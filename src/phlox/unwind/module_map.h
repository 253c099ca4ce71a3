// Which module is mapped where, for the Unwinder.
#pragma once

#include <cstdint>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/unwind/unwind_table.h"

namespace phlox::unwind {

inline constexpr uint32_t kNoModule = 0xffffffff;

// Executable ranges, and their contents.
class ModuleMap {
 public:
  struct Entry {
    uint64_t start = 0, end = 0;
    uint64_t bias = 0;
    uint32_t module = kNoModule;
    Rule returned_to = {};  // for code without a file: at every return address in it
  };
  // Module kNoModule: executable memory without a file (JIT code).
  void add(RemoteAddress start, RemoteAddress end, uint64_t bias, uint32_t module);
  // Executable memory without a file that repeats one short function (perf trampolines).
  void add_code(RemoteAddress start, RemoteAddress end, const Rule& returned_to);
  // After the last add, before the first find. Ranges that overlap an earlier one are dropped.
  void settle();
  void clear();
  // Sets the bias of a module whose file was not read when it was added. For the Unwinder's TableOf, whose
  // cache stays valid.
  void set_bias(uint32_t module, uint64_t bias);
  const Entry* find(RemoteAddress pc) const;
  // The highest address that is mapped; 0: nothing is.
  uint64_t highest() const { return entries_.empty() ? 0 : entries_.back().end - 1; }
  // Grows with every change: the Unwinder then drops its cache.
  uint64_t generation() const { return generation_; }

 private:
  std::vector<Entry> entries_;
  uint64_t generation_ = 1;
};

}  // namespace phlox::unwind
