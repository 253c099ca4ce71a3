// Greenlets of a target, with those of gevent and eventlet: their types, and where they are. Nothing lists
// them, so the heap is searched for objects of these types. Known since greenlet 2.0: its object points to a
// C++ object with the state (src/greenlet/TGreenlet.hpp), and that one points back, which proves both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/async_tasks.h"
#include "phlox/python/asyncio_module.h"
#include "phlox/python/page_memory.h"

namespace phlox::python {

struct GreenletState {
  RemoteAddress address;  // of the C++ object
  size_t size = 0;        // bytes of it that this was read from
  RemoteAddress frame;    // a frame object, innermost; none: it does not wait in Python
  RemoteAddress main;     // the greenlet in which its thread began; none: not known
  RemoteAddress parent;   // none for `main`
  RemoteAddress thread;   // of `main` alone: the C++ object of its thread
  bool started = false;
  bool active = false;  // started and not ended
};

// greenlet of one interpreter.
class GreenletModule {
 public:
  // `module`: open() was called.
  GreenletModule(const Layout& layout, PageMemory& memory, AsyncioModule& module)
      : layout_(layout), memory_(memory), module_(module) {}

  // False: this interpreter has not imported greenlet, or it cannot be read; problem() says which.
  bool open(RemoteAddress interpreter);
  const std::string& problem() const { return problem_; }

  // Every greenlet once. `source`: the memory itself, read in large pieces.
  std::vector<AsyncioModule::Found> find(memory::RemoteMemory& source, const Heap& heap, size_t most,
                                         size_t& beyond);
  bool is_greenlet(RemoteAddress object);
  // None: it is no greenlet, or its state has a form that is not known.
  std::optional<GreenletState> read(RemoteAddress greenlet);
  // Where its thread has the greenlet that runs now, by the thread's main greenlet; none: not known.
  RemoteAddress place_of_current(RemoteAddress main);

 private:
  static constexpr size_t kWords = 28;  // of the C++ object: it has up to 26
  static constexpr size_t kHints = 1 << 14;
  static size_t hint(uint64_t address) { return address >> 4 & (kHints - 1); }
  void add_subclasses();
  bool search(memory::RemoteMemory& source, HeapRange range, std::vector<uint64_t>& chunk,
              std::vector<RemoteAddress>& candidates) const;
  RemoteAddress state_of(RemoteAddress greenlet);

  const Layout& layout_;
  PageMemory& memory_;
  AsyncioModule& module_;
  std::vector<uint64_t> types_;
  std::vector<bool> hints_ = std::vector<bool>(kHints);  // by hint(): whether a type may have that address
  std::string problem_;
};

}  // namespace phlox::python
