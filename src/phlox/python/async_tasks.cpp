#include "phlox/python/async_tasks.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "phlox/python/task_reader.h"
#include "phlox/python/trio_module.h"

namespace phlox::python {
namespace {

// So many tasks are read, then read again as they are: few enough that little changes meanwhile.
constexpr size_t kBatch = 512;
// A task that changed is read again by itself.
constexpr size_t kTries = 5;
constexpr size_t kMaxInterpreters = 256;
constexpr size_t kMaxLoops = 1024;

class Census {
 public:
  Census(const Layout& layout, memory::RemoteMemory& memory, const DescriptorLink& link, AsyncTasks& out)
      : layout_(layout),
        link_(link),
        pages_(memory),
        codes_(layout, pages_, out.functions),
        out_(out) {}

  void read_interpreter(RemoteAddress state);
  void resolve_awaits();

 private:
  void read_trio(AsyncioModule& module, RemoteAddress state);
  void read_batch(TaskReader& reader, AsyncioModule& module, std::span<const AsyncioModule::Found> found);
  bool read_alone(TaskReader& reader, RemoteAddress task, TaskReading& into);
  void keep(AsyncioModule& module, TaskReading& reading, uint64_t python_id);
  uint32_t loop_of(AsyncioModule& module, RemoteAddress loop, uint64_t python_id);

  const Layout& layout_;
  const DescriptorLink& link_;
  PageMemory pages_;
  TaskCodes codes_;
  AsyncTasks& out_;
  std::unordered_map<uint64_t, uint32_t> loops_;
  std::unordered_set<uint64_t> trio_runners_;
  std::vector<std::vector<RemoteAddress>> awaits_;  // of each task in out_
  size_t awaits_kept_ = 0;
};

void Census::read_interpreter(RemoteAddress state) {
  AsyncioModule module(layout_, pages_);
  if (module.open(state)) {
    const size_t room = kMaxTasks - std::min(kMaxTasks, out_.tasks.size());
    auto found = module.find_tasks(room, out_.beyond);
    // Tasks that lie side by side are read with the same pages, and so are their coroutines mostly.
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.task < b.task; });
    TaskReader reader(layout_, pages_, module, codes_, link_);
    for (size_t at = 0; at < found.size(); at += kBatch)
      read_batch(reader, module, std::span(found).subspan(at, std::min(kBatch, found.size() - at)));
  }
  if (!module.problem().empty()) out_.problem = module.problem();
  read_trio(module, state);
}

void Census::read_trio(AsyncioModule& module, RemoteAddress state) {
  pages_.forget();
  TrioModule trio(layout_, pages_, module);
  if (trio.open(state)) {
    TaskReader reader(layout_, pages_, module, codes_, link_);
    reader.with_trio(trio);
    for (const RemoteAddress runner : trio.runners()) {
      const size_t room = kMaxTasks - std::min(kMaxTasks, out_.tasks.size());
      std::vector<AsyncioModule::Found> found;
      for (const RemoteAddress task : trio.tasks(runner, room)) found.push_back({task, 0});
      trio_runners_.insert(runner.value);
      for (size_t at = 0; at < found.size(); at += kBatch)
        read_batch(reader, module, std::span(found).subspan(at, std::min(kBatch, found.size() - at)));
    }
  }
  if (!trio.problem().empty()) out_.problem = trio.problem();
}

void Census::read_batch(TaskReader& reader, AsyncioModule& module,
                        std::span<const AsyncioModule::Found> found) {
  pages_.forget();
  std::vector<TaskReading> readings(found.size());
  std::vector<bool> proved(found.size());
  for (size_t i = 0; i < found.size(); ++i) proved[i] = reader.read(found[i].task, readings[i]);
  pages_.forget();
  for (size_t i = 0; i < found.size(); ++i) proved[i] = proved[i] && readings[i].evidence.holds(pages_);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!proved[i] && !read_alone(reader, found[i].task, readings[i])) {
      ++(readings[i].gone ? out_.ended : out_.unproved);
      continue;
    }
    if (readings[i].pending) keep(module, readings[i], found[i].python_id);
  }
}

bool Census::read_alone(TaskReader& reader, RemoteAddress task, TaskReading& into) {
  for (size_t i = 0; i < kTries; ++i) {
    pages_.forget();
    const bool sound = reader.read(task, into);
    pages_.forget();
    if (!into.evidence.holds(pages_)) continue;
    if (sound || into.gone) return sound;
  }
  return false;
}

uint32_t Census::loop_of(AsyncioModule& module, RemoteAddress loop, uint64_t python_id) {
  const auto known = loops_.find(loop.value);
  uint32_t index = 0;
  if (known != loops_.end()) {
    index = known->second;
  } else {
    if (out_.loops.size() >= kMaxLoops) return static_cast<uint32_t>(out_.loops.size() - 1);
    index = static_cast<uint32_t>(out_.loops.size());
    loops_[loop.value] = index;
    AsyncLoop row{loop, trio_runners_.contains(loop.value) ? "trio" : module.type_of(loop).name, 0};
    // Of asyncio's own loops; those of uvloop keep it where no Python sees it.
    const auto thread = module.objects().attribute(loop, "_thread_id");
    const auto id = thread && *thread ? module.objects().integer(*thread) : Read<int64_t>(0);
    if (id) row.python_id = static_cast<uint64_t>(*id);
    out_.loops.push_back(std::move(row));
  }
  AsyncLoop& row = out_.loops[index];
  if (row.python_id == 0) row.python_id = python_id;
  return index;
}

void Census::keep(AsyncioModule& module, TaskReading& reading, uint64_t python_id) {
  reading.task.loop = loop_of(module, reading.loop, python_id);
  out_.tasks.push_back(std::move(reading.task));
  if (awaits_kept_ + reading.awaits.size() > kMaxAwaits) reading.awaits.clear();
  awaits_kept_ += reading.awaits.size();
  awaits_.push_back(std::move(reading.awaits));
}

void Census::resolve_awaits() {
  std::unordered_map<uint64_t, uint32_t> index;
  for (size_t i = 0; i < out_.tasks.size(); ++i)
    index[out_.tasks[i].address.value] = static_cast<uint32_t>(i);
  for (size_t i = 0; i < awaits_.size(); ++i) {
    for (RemoteAddress awaited : awaits_[i]) {
      const auto found = index.find(awaited.value);
      if (found != index.end()) out_.tasks[i].awaits.push_back(found->second);
    }
  }
}

}  // namespace

AsyncTasks read_async_tasks(const Interpreter& interpreter, memory::RemoteMemory& memory,
                            const DescriptorLink& link) {
  AsyncTasks out;
  Census census(interpreter.layout, memory, link, out);
  ObjectReader objects(interpreter.layout, memory);
  auto state = objects.pointer(interpreter.interpreters_head);
  for (size_t i = 0; state && *state && i < kMaxInterpreters; ++i) {
    census.read_interpreter(*state);
    state = objects.pointer(*state + *interpreter.layout.interpreter.next);
  }
  census.resolve_awaits();
  return out;
}

}  // namespace phlox::python
