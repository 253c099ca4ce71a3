// The code objects of tasks, decoded once and kept from one reading of the tasks to the next, for as long as
// each is proved to be the same object (CodeIdentity). What a reading does not use is forgotten at the next
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/python/async_tasks.h"
#include "phlox/python/code_object.h"
#include "phlox/python/page_memory.h"

namespace phlox::python {

class TaskCodes {
 public:
  struct Known {
    Code code;
    uint32_t function = 0;   // index into the functions of this reading
    uint32_t variables = 0;  // entries of a frame before its stack (3.11+)
    // The last line looked up: tasks of a kind wait at the same place.
    mutable int32_t last_offset = -1, last_line = 0;
  };

  // The next calls belong to another reading, which has these functions and reads this memory. All three must
  // live until its last call.
  void begin(const Layout& layout, PageMemory& memory, std::vector<TaskFunction>& functions);
  // Valid until begin(). nullptr: cannot be read, or there are too many.
  const Known* find(RemoteAddress code);
  const TaskFunction& function(uint32_t index) const { return (*functions_)[index]; }

 private:
  struct Kept {
    std::optional<Known> known;  // none: could not be read
    CodeIdentity identity;
    uint64_t reading = 0;  // the last one that asked for it
  };
  std::optional<Known> read(RemoteAddress address, CodeIdentity& identity);

  const Layout* layout_ = nullptr;
  PageMemory* memory_ = nullptr;
  std::vector<TaskFunction>* functions_ = nullptr;
  std::unordered_map<uint64_t, Kept> kept_;
  uint64_t reading_ = 0;
  size_t bytes_ = 0;  // of names and line tables in this reading
};

}  // namespace phlox::python
