// The frames of a live, stopped process, for tests: the results of locate() and walk_frames().
#pragma once

#include <map>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/frame_walk.h"
#include "phlox/python/interpreter.h"

namespace phlox::test {

// A Memory as walk_frames() takes it, over any RemoteMemory: fetches and keeps what is requested.
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

// The first interpreter's threads in the order of its list: newest first.
std::vector<LiveThread> live_threads(const python::Interpreter& interpreter, memory::RemoteMemory& memory);

}  // namespace phlox::test
