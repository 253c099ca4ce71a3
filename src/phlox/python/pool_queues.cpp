#include "phlox/python/pool_queues.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

namespace phlox::python {
namespace {

constexpr uint32_t kCallsBetweenSearches = 16;
constexpr uint64_t kLargestLimiter = 256;
// A pool is counted even if it has more threads than this.
constexpr size_t kMostPoolThreads = 4096;

}  // namespace

// The dict of a WeakKeyDictionary (Lib/weakref.py: data) in a module's variable.
Read<RemoteAddress> PoolQueues::weak_table(const std::vector<DictItem>& modules, std::string_view module,
                                           std::string_view variable) {
  const auto names = objects_.names_of(modules, module);
  if (!names) return tl::unexpected(names.error());
  const auto table = objects_.find(*names, variable);
  if (!table || !*table) return table;
  return objects_.attribute(*table, "data");
}

void PoolQueues::find_tables(RemoteAddress interpreter) {
  const auto modules = objects_.modules(interpreter);
  if (!modules) return;
  if (!executors_)
    executors_ =
        weak_table(*modules, "concurrent.futures.thread", "_threads_queues").value_or(RemoteAddress());
  if (!limiters_) limiters_ = weak_table(*modules, "anyio.lowlevel", "_run_vars").value_or(RemoteAddress());
}

std::optional<int64_t> PoolQueues::queue_length(RemoteAddress queue) {
  const auto type = objects_.type_of(queue);
  if (!type || type->name != "_queue.SimpleQueue") return {};
  const Layout& layout = objects_.layout();
  const RemoteAddress fields = queue + *layout.object.size;
  if (layout.major == 3 && layout.minor >= 13) {
    // has_threads_waiting, then RingBuf: put_idx, get_idx, items, items_cap, num_items.
    const auto capacity = objects_.pointer(fields + 32), count = objects_.pointer(fields + 40);
    if (!capacity || !count || count->value > capacity->value) return {};
    return static_cast<int64_t>(count->value);
  }
  // lock, locked, lst, lst_pos: items before lst_pos are already taken.
  const auto list = objects_.pointer(fields + 16), taken = objects_.pointer(fields + 24);
  if (!list || !taken) return {};
  const auto list_type = objects_.type_of(*list);
  if (!list_type || (list_type->flags & TypeFlag::kList) == 0) return {};
  const auto size = objects_.pointer(*list + *layout.list.ob_size);
  // Taken items are sometimes removed from the list: both numbers must be from the same moment.
  const auto list_after = objects_.pointer(fields + 16), taken_after = objects_.pointer(fields + 24);
  if (!size || !list_after || !taken_after || *list_after != *list || *taken_after != *taken) return {};
  if (size->value < taken->value) return {};
  return static_cast<int64_t>(size->value - taken->value);
}

void PoolQueues::read_executors(std::vector<PoolQueue>& queues) {
  const auto items = objects_.dict(executors_);
  if (!items) return;
  std::map<uint64_t, RemoteAddress> threads;  // by queue: a thread that fetches from it
  const size_t most = std::min(items->size(), kMostPoolThreads);
  for (size_t i = 0; i < most && threads.size() < kMostPools; ++i)
    threads.try_emplace((*items)[i].value.value, (*items)[i].key);
  for (const auto& [queue, reference] : threads) {
    // PyWeakReference: wr_object comes first.
    const auto thread = objects_.pointer(reference + *objects_.layout().object.size);
    const auto ident = thread ? objects_.attribute(*thread, "_ident") : thread;
    const auto id = ident && *ident ? objects_.integer(*ident) : Read<int64_t>(0);
    if (!id || *id == 0) continue;
    if (const auto calls = queue_length(RemoteAddress(queue)); calls && *calls <= kMostCalls)
      queues.push_back({"ThreadPoolExecutor", static_cast<uint64_t>(*id), *calls});
  }
}

// Its fields are slots, or in a dict in older versions; only one is an OrderedDict, _wait_queue.
std::optional<int64_t> PoolQueues::waiting_for(RemoteAddress limiter) {
  const Layout& layout = objects_.layout();
  std::vector<RemoteAddress> fields;
  const auto type = objects_.type_of(limiter);
  if (!type || type->name != "CapacityLimiter") return {};
  if (const auto attribute = objects_.attribute(limiter, "_wait_queue"); attribute && *attribute) {
    fields.push_back(*attribute);
  } else {
    const auto size = objects_.pointer(type->address + *layout.type.tp_basicsize);
    if (!size || size->value > kLargestLimiter) return {};
    for (uint64_t at = *layout.object.size; at + 8 <= size->value; at += 8) {
      if (const auto field = objects_.pointer(limiter + at); field && *field) fields.push_back(*field);
    }
  }
  std::optional<int64_t> calls;
  for (const RemoteAddress field : fields) {
    const auto kind = objects_.type_of(field);
    if (!kind || kind->name != "collections.OrderedDict") continue;
    const auto used = objects_.pointer(field + *layout.dict.ma_used);
    if (!used || calls) return {};
    calls = static_cast<int64_t>(used->value);
  }
  return calls;
}

void PoolQueues::read_limiters(std::vector<PoolQueue>& queues) {
  const auto loops = objects_.dict(limiters_);
  if (!loops) return;
  std::vector<int64_t> found;
  for (size_t i = 0; i < loops->size() && i < kMostPools; ++i) {
    const auto variables = objects_.dict((*loops)[i].value);
    if (!variables || variables->size() > kMostPools) continue;
    for (const DictItem& variable : *variables) {
      if (const auto calls = waiting_for(variable.value)) found.push_back(*calls);
    }
  }
  // If several loops have a limiter, it is unknown which threads belong to which.
  if (found.size() == 1 && found[0] >= 0 && found[0] <= kMostCalls) queues.push_back({"AnyIO", 0, found[0]});
}

std::vector<PoolQueue> PoolQueues::read(RemoteAddress interpreter) {
  if (!executors_ || !limiters_) {
    if (calls_++ >= next_search_) {
      next_search_ = calls_ + std::min(calls_, kCallsBetweenSearches) - 1;
      find_tables(interpreter);
    }
  }
  std::vector<PoolQueue> queues;
  if (executors_) read_executors(queues);
  if (limiters_) read_limiters(queues);
  return queues;
}

}  // namespace phlox::python
