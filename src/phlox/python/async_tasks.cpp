#include "phlox/python/async_tasks.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "phlox/python/greenlet_module.h"
#include "phlox/python/known_modules.h"
#include "phlox/python/task_reader.h"
#include "phlox/python/trio_module.h"

namespace phlox::python {
namespace {

// Tasks per batch: all are read, then their evidence is read again. Few enough that little changes in
// between.
constexpr size_t kBatch = 512;
// Tries for a task that changed and is read again alone.
constexpr size_t kTries = 5;
constexpr size_t kMaxInterpreters = 256;
constexpr size_t kMaxLoops = 1024;
// To find those that run tasks, in one census.
constexpr size_t kMostThreadsTried = 256;
// Tasks that wait for a lock or hold one are checked again at the end, by the bytes of their evidence.
constexpr size_t kMaxLockFacts = 100'000;
constexpr size_t kMaxLockBytes = size_t{64} << 20;

// What PageMemory::forget() is for. Threads are read by their addresses.
enum Purpose : uint64_t { kLists = 1, kFirstTasks, kTrio, kGreenlets };

class Census {
 public:
  Census(const Layout& layout, memory::RemoteMemory& memory, const TaskSources& sources, AsyncTasks& out)
      : layout_(layout),
        source_(memory),
        sources_(sources),
        own_pages_(memory),
        pages_(sources.pages != nullptr ? *sources.pages : own_pages_),
        codes_(sources.known != nullptr ? sources.known->codes : own_codes_),
        out_(out) {
    codes_.begin(layout, pages_, out.functions);
    pages_.forget(kLists);
  }

  void read_interpreter(RemoteAddress state);
  void resolve_awaits();
  void resolve_locks();

 private:
  void read_jobs(TaskReader& reader, AsyncioModule& module, size_t first);
  void note_jobs(AsyncioModule& module);
  void add_jobs(AsyncioModule& module);
  bool open(AsyncioModule& module, RemoteAddress state) const;
  bool open(TrioModule& trio, RemoteAddress state) const;
  void read_trio(AsyncioModule& module, RemoteAddress state);
  void read_greenlets(AsyncioModule& module, RemoteAddress state);
  void read_all(TaskReader& reader, AsyncioModule& module, std::span<const AsyncioModule::Found> found);
  void read_batch(TaskReader& reader, AsyncioModule& module, std::span<const AsyncioModule::Found> found);
  void look_again(std::span<const TaskReading> readings);
  bool read_alone(TaskReader& reader, RemoteAddress task, TaskReading& into);
  void add_callees(TaskReader& reader, AsyncioModule& module, TaskReading& reading);
  void keep(AsyncioModule& module, TaskReading& reading, uint64_t python_id);
  AsyncLoop describe_loop(AsyncioModule& module, const TaskReading& reading) const;
  uint32_t loop_of(AsyncioModule& module, const TaskReading& reading, uint64_t python_id);
  size_t room() const {
    const size_t most = sources_.chains_only ? kMaxChains : kMaxTasks;
    return most - std::min(most, out_.tasks.size());
  }

  const Layout& layout_;
  memory::RemoteMemory& source_;
  const TaskSources& sources_;
  PageMemory own_pages_;
  PageMemory& pages_;
  bool has_read_ = false;  // tasks
  TaskCodes own_codes_;
  TaskCodes& codes_;
  AsyncTasks& out_;
  std::unordered_map<uint64_t, uint32_t> loops_;
  std::unordered_set<uint64_t> trio_runners_, eventlet_hubs_;
  std::vector<std::vector<RemoteAddress>> awaits_;  // of each task in out_
  size_t awaits_kept_ = 0;
  size_t threads_left_ = kMostThreadsTried;
  // A task that waits for a lock or is inside its `async with`.
  struct LockFact {
    RemoteAddress lock;
    uint32_t task = 0;
    bool waits = false;
    std::vector<RemoteAddress> owners;
    std::shared_ptr<Evidence> evidence;  // of the task
  };
  std::vector<LockFact> lock_facts_;
  size_t lock_bytes_ = 0;
  std::vector<std::pair<size_t, RemoteAddress>> jobs_;  // tasks that wait for a job, with its future
  // What threads of the interpreter ran before its tasks were read, once that is known.
  std::optional<std::vector<std::pair<RemoteAddress, JobHead>>> heads_;
};

void Census::read_all(TaskReader& reader, AsyncioModule& module,
                      std::span<const AsyncioModule::Found> found) {
  for (size_t at = 0; at < found.size(); at += kBatch) {
    read_batch(reader, module, found.subspan(at, std::min(kBatch, found.size() - at)));
    if (sources_.between) sources_.between();
  }
}

bool Census::open(AsyncioModule& module, RemoteAddress state) const {
  if (sources_.known == nullptr) return module.open(state);
  auto& known = sources_.known->asyncio;
  if (const auto at = known.find(state.value); at != known.end()) return module.open_again(state, at->second);
  const bool opened = module.open(state);
  if (auto found = module.found()) known.emplace(state.value, *std::move(found));
  return opened;
}

bool Census::open(TrioModule& trio, RemoteAddress state) const {
  if (sources_.known == nullptr) return trio.open(state);
  auto& known = sources_.known->trio;
  if (const auto at = known.find(state.value); at != known.end()) return trio.open_again(at->second);
  const bool opened = trio.open(state);
  if (auto found = trio.found()) known.emplace(state.value, *std::move(found));
  return opened;
}

void Census::read_interpreter(RemoteAddress state) {
  AsyncioModule module(layout_, pages_);
  const bool opened = open(module, state);
  if (opened) {
    note_jobs(module);
    TaskLists unknown;
    TaskLists& lists = sources_.known != nullptr ? sources_.known->lists[state.value] : unknown;
    auto found = module.find_tasks(room(), out_.beyond, lists);
    // Neighbouring tasks share pages, and so do most of their coroutines.
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.task < b.task; });
    TaskReader reader(layout_, pages_, module, codes_, sources_.link);
    if (sources_.chains_only) reader.with_chains_only();
    const size_t first = out_.tasks.size();
    read_all(reader, module, found);
    if (!jobs_.empty() && !sources_.chains_only) read_jobs(reader, module, first);
  }
  out_.imported |= opened || !module.problem().empty();
  if (!module.problem().empty()) out_.problem = module.problem();
  read_trio(module, state);
  add_jobs(module);
  read_greenlets(module, state);
}

// Before the tasks are found: one of these has begun each of them.
void Census::note_jobs(AsyncioModule& module) {
  const bool has_tasks = sources_.known != nullptr && sources_.known->has_tasks;
  if (!sources_.chains_only || !has_tasks || heads_) return;
  heads_.emplace();
  TaskReader reader(layout_, pages_, module, codes_, sources_.link);
  for (const RemoteAddress thread : module.threads()) {
    if (const auto head = reader.read_job_head(thread)) heads_->emplace_back(thread, *head);
  }
}

// Those that still run: while their tasks were read, they did, too.
void Census::add_jobs(AsyncioModule& module) {
  if (!sources_.chains_only) return;
  std::unordered_map<uint64_t, uint32_t> waiters;
  for (const auto& [task, future] : jobs_) waiters.try_emplace(future.value, static_cast<uint32_t>(task));
  jobs_.clear();
  TaskReader reader(layout_, pages_, module, codes_, sources_.link);
  const auto heads = std::exchange(heads_, std::nullopt);
  if (!heads || out_.beyond > 0) return;  // one of these may wait for it
  for (const auto& [thread, head] : *heads) {
    if (reader.read_job_head(thread) != head) continue;
    PoolJob& job = out_.jobs.emplace_back();
    job.function = head.function;
    if (const auto waiter = waiters.find(head.future.value); waiter != waiters.end())
      job.task = waiter->second;
  }
}

// A thread runs one job, however many tasks wait for it.
void Census::read_jobs(TaskReader& reader, AsyncioModule& module, size_t first) {
  pages_.forget();
  std::unordered_map<uint64_t, AsyncJob> running;
  for (RemoteAddress thread : module.threads()) {
    if (auto job = reader.read_job(thread)) running[job->future.value] = std::move(job->job);
  }
  for (const auto& [task, future] : jobs_) {
    const auto found = running.find(future.value);
    if (task >= first && found != running.end()) out_.tasks[task].job = found->second;
  }
  jobs_.clear();
}

void Census::read_trio(AsyncioModule& module, RemoteAddress state) {
  pages_.forget(kTrio);
  TrioModule trio(layout_, pages_, module);
  const bool opened = open(trio, state);
  if (opened) {
    TaskReader reader(layout_, pages_, module, codes_, sources_.link);
    reader.with_trio(trio);
    if (sources_.chains_only) reader.with_chains_only();
    const size_t first = out_.tasks.size();
    note_jobs(module);
    for (const RemoteAddress runner : trio.runners()) {
      std::vector<AsyncioModule::Found> found;
      for (const RemoteAddress task : trio.tasks(runner, room())) found.push_back({task, 0});
      trio_runners_.insert(runner.value);
      read_all(reader, module, found);
    }
    if (!jobs_.empty() && !sources_.chains_only) read_jobs(reader, module, first);
  }
  out_.imported |= opened || !trio.problem().empty();
  if (!trio.problem().empty()) out_.problem = trio.problem();
}

void Census::read_greenlets(AsyncioModule& module, RemoteAddress state) {
  pages_.forget(kGreenlets);
  GreenletModule greenlets(layout_, pages_, module);
  if (sources_.heap && greenlets.open(state)) {
    const size_t first = out_.tasks.size();
    const auto found = greenlets.find(source_, sources_.heap(), room(), out_.beyond);
    TaskReader reader(layout_, pages_, module, codes_, sources_.link);
    reader.with_greenlets(greenlets);
    read_all(reader, module, found);
    for (size_t i = first; i < out_.tasks.size(); ++i) {
      if (eventlet_hubs_.contains(out_.tasks[i].address.value)) out_.tasks[i].name = "hub";
    }
  }
  if (!greenlets.problem().empty()) out_.problem = greenlets.problem();
}

void Census::read_batch(TaskReader& reader, AsyncioModule& module,
                        std::span<const AsyncioModule::Found> found) {
  if (std::exchange(has_read_, true)) {
    pages_.forget();
  } else {
    pages_.forget(kFirstTasks);
  }
  std::vector<TaskReading> readings(found.size());
  std::vector<bool> proved(found.size());
  for (size_t i = 0; i < found.size(); ++i) proved[i] = reader.read(found[i].task, readings[i]);
  look_again(readings);
  for (size_t i = 0; i < found.size(); ++i) proved[i] = proved[i] && readings[i].evidence.holds(pages_);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!proved[i] && !read_alone(reader, found[i].task, readings[i])) {
      ++(readings[i].gone ? out_.ended : out_.unproved);
      out_.missed.push_back(found[i].task);
      continue;
    }
    if (!readings[i].pending) continue;
    add_callees(reader, module, readings[i]);
    keep(module, readings[i], found[i].python_id);
  }
}

// A request whose task does not wait: only its thread's frames show what it is about.
void Census::add_callees(TaskReader& reader, AsyncioModule& module, TaskReading& reading) {
  if (!sources_.chains_only || sources_.known == nullptr || reading.task.request == 0 ||
      !reading.running_frame || threads_left_ == 0)
    return;
  --threads_left_;
  auto& known = sources_.known->threads;
  const auto last = known.find(reading.loop.value);
  if (last != known.end() && reader.read_callees(last->second, reading)) return;
  pages_.forget();
  if (last != known.end() && !reading.evidence.holds(pages_)) return;  // it no longer runs
  for (const RemoteAddress thread : module.threads()) {
    if (threads_left_ == 0) return;
    --threads_left_;
    if (!reader.read_callees(thread, reading)) continue;
    if (known.size() < kMaxLoops) known[reading.loop.value] = thread;
    return;
  }
}

// Reads the bytes of their evidence again.
void Census::look_again(std::span<const TaskReading> readings) {
  std::vector<PageMemory::Part> parts;
  for (const TaskReading& reading : readings) reading.evidence.add_parts(parts);
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.page < b.page; });
  size_t kept = 0;
  for (const PageMemory::Part& part : parts) {
    if (kept > 0 && parts[kept - 1].page == part.page) {
      parts[kept - 1].blocks |= part.blocks;
    } else {
      parts[kept++] = part;
    }
  }
  parts.resize(kept);
  pages_.forget();
  pages_.read_ahead(parts);
}

bool Census::read_alone(TaskReader& reader, RemoteAddress task, TaskReading& into) {
  for (size_t i = 0; i < kTries; ++i) {
    pages_.forget();
    const bool sound = reader.read(task, into);
    look_again(std::span(&into, 1));
    if (!into.evidence.holds(pages_)) continue;
    if (sound || into.gone) return sound;
  }
  return false;
}

AsyncLoop Census::describe_loop(AsyncioModule& module, const TaskReading& reading) const {
  AsyncLoop row;
  row.address = reading.loop;
  row.greenlets = reading.greenlet;
  row.type = reading.greenlet                             ? "greenlet"
             : trio_runners_.contains(reading.loop.value) ? "trio"
                                                          : module.class_words(reading.loop);
  return row;
}

uint32_t Census::loop_of(AsyncioModule& module, const TaskReading& reading, uint64_t python_id) {
  const auto attribute = [&](RemoteAddress object, std::string_view name) {
    const auto value = module.objects().attribute(object, name);
    const auto id = value && *value ? module.objects().integer(*value) : Read<int64_t>(0);
    return id ? static_cast<uint64_t>(*id) : 0;
  };
  const auto known = loops_.find(reading.loop.value);
  uint32_t index = 0;
  if (known != loops_.end()) {
    index = known->second;
  } else {
    if (out_.loops.size() >= kMaxLoops) return static_cast<uint32_t>(out_.loops.size() - 1);
    index = static_cast<uint32_t>(out_.loops.size());
    loops_[reading.loop.value] = index;
    out_.loops.push_back(describe_loop(module, reading));
    // Only asyncio's own loops have it; uvloop keeps it where Python cannot see it.
    if (!reading.greenlet) out_.loops.back().python_id = attribute(reading.loop, "_thread_id");
  }
  AsyncLoop& row = out_.loops[index];
  if (row.python_id == 0) row.python_id = python_id;
  if (reading.hub) {
    row.type = "gevent";
    row.python_id = attribute(reading.task.address, "thread_ident");
  } else if (reading.of_eventlet) {
    row.type = "eventlet";
    eventlet_hubs_.insert(reading.parent.value);
  }
  return index;
}

void Census::keep(AsyncioModule& module, TaskReading& reading, uint64_t python_id) {
  reading.task.loop = loop_of(module, reading, python_id);
  if ((reading.lock || !reading.holds.empty()) && lock_facts_.size() < kMaxLockFacts &&
      lock_bytes_ < kMaxLockBytes) {
    lock_bytes_ += reading.evidence.size();
    const auto evidence = std::make_shared<Evidence>(std::move(reading.evidence));
    const auto task = static_cast<uint32_t>(out_.tasks.size());
    if (reading.lock) lock_facts_.push_back({reading.lock, task, true, std::move(reading.owners), evidence});
    for (RemoteAddress lock : reading.holds) lock_facts_.push_back({lock, task, false, {}, evidence});
  }
  for (const RemoteAddress job : reading.jobs) jobs_.emplace_back(out_.tasks.size(), job);
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

// The facts were read task by task: those whose evidence still holds were true at the same time.
void Census::resolve_locks() {
  std::unordered_map<uint64_t, uint32_t> task_at, lock_at;
  for (size_t i = 0; i < out_.tasks.size(); ++i)
    task_at[out_.tasks[i].address.value] = static_cast<uint32_t>(i);
  pages_.forget();
  std::erase_if(lock_facts_, [&](const LockFact& fact) { return !fact.evidence->holds(pages_); });
  for (const LockFact& fact : lock_facts_) {
    if (!fact.waits) continue;
    const auto [entry, is_new] =
        lock_at.try_emplace(fact.lock.value, static_cast<uint32_t>(out_.locks.size()));
    if (is_new) {
      out_.locks.emplace_back();
      for (RemoteAddress owner : fact.owners) {
        if (const auto task = task_at.find(owner.value); task != task_at.end())
          out_.locks.back().holders.push_back(task->second);
      }
    }
    out_.tasks[fact.task].lock = entry->second + 1;
  }
  for (const LockFact& fact : lock_facts_) {
    const auto lock = lock_at.find(fact.lock.value);
    if (fact.waits || lock == lock_at.end()) continue;
    auto& holders = out_.locks[lock->second].holders;
    if (holders.empty() || holders.back() != fact.task) holders.push_back(fact.task);
  }
}

}  // namespace

uint64_t modules_stamp(const Interpreter& interpreter, memory::RemoteMemory& memory) {
  const Layout& layout = interpreter.layout;
  if (!layout.interpreter.modules.present() || !layout.dict.ma_keys.present() ||
      !layout.dictkeys.dk_nentries.present())
    return 0;
  ObjectReader objects(layout, memory);
  uint64_t stamp = 1;
  const auto mix = [&stamp](uint64_t value) { stamp = (stamp ^ value) * 0x9E3779B97F4A7C15ULL; };
  auto state = objects.pointer(interpreter.interpreters_head);
  for (size_t i = 0; state && *state && i < kMaxInterpreters; ++i) {
    const auto modules = objects.pointer(*state + *layout.interpreter.modules);
    const auto keys =
        modules && *modules ? objects.pointer(*modules + *layout.dict.ma_keys) : Read<RemoteAddress>();
    uint64_t entries = 0;  // never decreases within one table
    if (!modules || !keys || (*keys && !memory.read_value(*keys + *layout.dictkeys.dk_nentries, entries)))
      return 0;
    for (const uint64_t value : {state->value, modules->value, keys->value, entries}) mix(value);
    state = objects.pointer(*state + *layout.interpreter.next);
  }
  return state ? stamp : 0;
}

AsyncTasks read_async_tasks(const Interpreter& interpreter, memory::RemoteMemory& memory,
                            const TaskSources& sources) {
  AsyncTasks out;
  Census census(interpreter.layout, memory, sources, out);
  ObjectReader objects(interpreter.layout, memory);
  auto state = objects.pointer(interpreter.interpreters_head);
  for (size_t i = 0; state && *state && i < kMaxInterpreters; ++i) {
    census.read_interpreter(*state);
    state = objects.pointer(*state + *interpreter.layout.interpreter.next);
  }
  if (sources.known != nullptr) sources.known->has_tasks = !out.tasks.empty();
  census.resolve_awaits();
  if (!sources.chains_only) census.resolve_locks();
  return out;
}

}  // namespace phlox::python
