// The frames of a live, standing process, for tests: what locate() and walk_frames() make of it.
#pragma once

#include <map>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/frame_walk.h"
#include "phlox/python/interpreter.h"

namespace phlox::test {

// A Memory as walk_frames() takes it, over any RemoteMemory: fetches what it is asked for and keeps it.
class FetchedMemory {
 public:
  explicit FetchedMemory(memory::RemoteMemory& memory) : memory_(memory) {}
  const std::byte* find(RemoteAddress address, size_t size);

 private:
  memory::RemoteMemory& memory_;
  std::map<std::pair<uint64_t, size_t>, std::vector<std::byte>> pieces_;
};

struct LiveThread {
  RemoteAddress state;
  uint64_t python_id = 0;
  python::WalkResult walk;
  std::vector<python::RawFrame> frames;  // leaf first
};

// The threads of the first interpreter, as its list has them: newest first.
std::vector<LiveThread> live_threads(const python::Interpreter& interpreter, memory::RemoteMemory& memory);

}  // namespace phlox::test
