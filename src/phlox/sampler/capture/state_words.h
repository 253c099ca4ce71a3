// The words of a thread state that name its thread and the next state, read together. Lists of thousands are
// read with few calls: the states of the last walk first, and then only the new ones one by one. Called by
// PythonThreads; decides nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/layout.h"
#include "phlox/sampler/capture/snapshot.h"

namespace phlox::sampler {

struct StateWords {
  RemoteAddress next;
  uint64_t interp = 0, python_id = 0;
  uint64_t native_id = 0;  // 0 before 3.11
  bool active = false;     // attached: in a free-threaded build it runs Python; false: not, or not known
};

class StateReader {
 public:
  StateReader(const python::Layout& layout, memory::RemoteMemory& memory, Snapshot& snapshot);

  // Reads these states of the target, for the calls of read() that follow.
  void read_ahead(std::span<const RemoteAddress> states);
  void forget() { ahead_.clear(); }
  // False: it cannot be read.
  bool read(RemoteAddress state, bool from_copy, StateWords& words);

 private:
  StateWords parse(const std::byte* bytes) const;
  size_t size() const { return to_ - from_; }

  const python::Layout& layout_;
  memory::RemoteMemory& memory_;
  Snapshot& snapshot_;
  uint32_t from_ = 0, to_ = 0;  // the place of the words in a state
  std::unordered_map<uint64_t, StateWords> ahead_;
  std::vector<std::byte> bytes_;
};

}  // namespace phlox::sampler
