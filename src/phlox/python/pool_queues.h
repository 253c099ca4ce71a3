// How many calls wait for a thread of a pool: the length of the queue from which its threads fetch. Read
// while the program runs, outside the hot path; a queue that changed while it was read is left out.
//
//   ThreadPoolExecutor   `_threads_queues` of Lib/concurrent/futures/thread.py (3.7 and later): a thread and
//                        its SimpleQueue (Modules/_queuemodule.c), for every pool of the process; asyncio's
//                        run_in_executor uses it, too
//   AnyIO                the default CapacityLimiter of each event loop, for which `to_thread.run_sync`
//   waits:
//                        in `_run_vars` of anyio/lowlevel.py (3.0 and later)
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/layout.h"
#include "phlox/python/objects.h"
#include "phlox/python/read_fault.h"

namespace phlox::python {

struct PoolQueue {
  std::string_view kind;  // "ThreadPoolExecutor", "AnyIO": as view/known_waits names pools
  // threading.get_ident() of one of its threads; 0: not known, the pool is the process's only one of its
  // kind.
  uint64_t thread = 0;
  int64_t calls = 0;
};

// For one interpreter of one program. Keeps the addresses of the queues.
class PoolQueues {
 public:
  static constexpr size_t kMostPools = 64;
  static constexpr int64_t kMostCalls = int64_t{1} << 40;

  PoolQueues(const Layout& layout, memory::RemoteMemory& memory) : objects_(layout, memory) {}

  // `interpreter`: its PyInterpreterState. Modules that are not imported yet are searched again in later
  // calls, less and less often.
  std::vector<PoolQueue> read(RemoteAddress interpreter);

 private:
  void find_tables(RemoteAddress interpreter);
  Read<RemoteAddress> weak_table(const std::vector<DictItem>& modules, std::string_view module,
                                 std::string_view variable);
  void read_executors(std::vector<PoolQueue>& queues);
  void read_limiters(std::vector<PoolQueue>& queues);
  std::optional<int64_t> queue_length(RemoteAddress queue);
  std::optional<int64_t> waiting_for(RemoteAddress limiter);

  ObjectReader objects_;
  RemoteAddress executors_, limiters_;  // dicts; none: not found
  uint32_t calls_ = 0, next_search_ = 0;
};

}  // namespace phlox::python
