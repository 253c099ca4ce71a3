#include "phlox/python/asyncio_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "phlox/base/load.h"
#include "phlox/python/layout_table.h"

namespace phlox::python {
namespace {

constexpr uint64_t kHeapType = 1UL << 9;  // Py_TPFLAGS_HEAPTYPE
constexpr size_t kMaxBases = 32;
constexpr size_t kMaxTypes = 20'000;
constexpr size_t kMaxThreads = 4096;
constexpr uint64_t kMaxSetSlots = uint64_t{1} << 20;
// Largest distance from the end of PyThreadState to asyncio_tasks_head in _PyThreadStateImpl.
constexpr uint64_t kThreadTail = 2048;
constexpr size_t kTableTries = 3;
constexpr const char *kEagerTasks = "_eager_tasks", *kScheduledTasks = "_scheduled_tasks",
                     *kAllTasks = "_all_tasks";
constexpr size_t kMaxModuleName = 200;  // bytes

bool is_forwarder(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"coroutine_wrapper", "async_generator_asend",
                                                      "async_generator_athrow", "anext_awaitable"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

RemoteAddress AsyncioModule::word(RemoteAddress at) {
  const auto value = objects_.pointer(at);
  return value ? *value : RemoteAddress();
}

bool AsyncioModule::open(RemoteAddress interpreter) {
  interpreter_ = interpreter;
  if (!layout_.interpreter.modules.present() || !layout_.module.md_dict.present()) return false;
  const auto modules = objects_.pointer(interpreter + *layout_.interpreter.modules);
  if (!modules || !*modules) return false;
  const auto loaded = objects_.dict(*modules);
  if (!loaded) {
    problem_ = "the list of imported modules could not be read";
    return false;
  }
  auto names_of = [&](const char* module) -> std::vector<DictItem> {
    return objects_.names_of(*loaded, module).value_or(std::vector<DictItem>());
  };
  auto named = [&](const std::vector<DictItem>& names, const char* name) {
    const auto value = objects_.find(names, name);
    return value ? *value : RemoteAddress();
  };
  const auto types = names_of("types");
  known_.coroutine = named(types, "CoroutineType");
  known_.generator = named(types, "GeneratorType");
  known_.async_generator = named(types, "AsyncGeneratorType");
  known_.code = named(types, "CodeType");
  const auto tasks = objects_.find(*loaded, "asyncio.tasks");
  if (!tasks || !*tasks) return false;
  known_.of_tasks = names_of("asyncio.tasks");
  known_.c_task = named(known_.of_tasks, "_CTask");
  known_.python_task = named(known_.of_tasks, "_PyTask");
  known_.gathering = named(known_.of_tasks, "_GatheringFuture");
  if (const auto file = objects_.string(named(known_.of_tasks, "__file__"), 4096))
    known_.folder = file->substr(0, file->rfind('/') + 1);
  const auto futures = names_of("asyncio.futures");
  known_.c_future = named(futures, "_CFuture");
  known_.python_future = named(futures, "_PyFuture");
  return knows_tasks();
}

bool AsyncioModule::open_again(RemoteAddress interpreter, const AsyncioNames& found) {
  interpreter_ = interpreter;
  known_ = found;
  return found.imported;
}

std::optional<AsyncioNames> AsyncioModule::found() {
  const bool imported = known_.python_task && known_.python_future;
  if (!problem_.empty() || !known_.coroutine || !known_.generator || !known_.async_generator || !known_.code)
    return {};
  if (!imported && !known_.of_tasks.empty()) return {};
  // To find a name among a hundred takes many pages.
  std::vector<DictItem> of_tasks;
  for (const char* name : {kEagerTasks, kScheduledTasks, kAllTasks}) {
    for (const DictItem& item : known_.of_tasks) {
      const auto text = objects_.string(item.key, kMaxModuleName);
      if (text && *text == name) of_tasks.push_back(item);
    }
  }
  if (imported && of_tasks.empty()) return {};
  AsyncioNames all = known_;
  all.imported = imported;
  all.of_tasks = std::move(of_tasks);
  return all;
}

bool AsyncioModule::knows_tasks() {
  if (!layout_.task.coro.present()) {
    problem_ = fmt::format("Phlox does not know the tasks of CPython {}.{}", layout_.major, layout_.minor);
    return false;
  }
  if (!known_.python_task || !known_.coroutine || !known_.code) {
    problem_ = "asyncio's names could not be read, or it was still being imported";
    return false;
  }
  if (!known_.c_task) return true;
  const uint64_t size = word(known_.c_task + *layout_.type.tp_basicsize).value;
  if (size == *known_.task.size) return true;
  // Modules/_asynciomodule.c of 3.10: FutureObj_HEAD got fut_exception_tb between 3.10.4, which Ubuntu 22.04
  // was released with, and 3.10.13. Before that, a task was as in 3.9.
  const Layout* before = layout_.major == 3 && layout_.minor == 10 ? find_layout(3, 9) : nullptr;
  if (before != nullptr && size == *before->task.size) {
    known_.task = before->task;
    return true;
  }
  problem_ = fmt::format("a task of this CPython {}.{} has {} bytes, one that Phlox knows {}", layout_.major,
                         layout_.minor, size, *layout_.task.size);
  return false;
}

TypeInfo AsyncioModule::read_type(RemoteAddress type) {
  TypeInfo info;
  std::array<char, 200> name{};
  const RemoteAddress text = word(type + *layout_.type.tp_name);
  for (size_t i = 0; i + 1 < name.size() && is_plausible(text); ++i) {
    const std::byte* byte = memory_.find(text + i, 1);
    if (byte == nullptr || *byte == std::byte{0}) break;
    name[i] = static_cast<char>(*byte);
  }
  info.name = name.data();
  if (type == known_.coroutine || type == known_.generator || type == known_.async_generator) {
    info.kind = TypeKind::coroutine;
    return info;
  }
  const uint64_t flags = word(type + *layout_.type.tp_flags).value;
  if ((flags & kHeapType) == 0 && is_forwarder(info.name)) info.kind = TypeKind::forwarder;
  if (info.name == "_asyncio.FutureIter" || info.name == "FutureIter") info.kind = TypeKind::future_iter;
  const std::pair<RemoteAddress, TypeKind> known[] = {{known_.c_task, TypeKind::c_task},
                                                      {known_.python_task, TypeKind::python_task},
                                                      {known_.gathering, TypeKind::gathering},
                                                      {known_.c_future, TypeKind::c_future},
                                                      {known_.python_future, TypeKind::python_future}};
  RemoteAddress base = type;
  for (size_t i = 0; i < kMaxBases && base; ++i) {
    for (const auto& [address, kind] : known) {
      if (base != address) continue;
      info.kind = kind;
      return info;
    }
    base = word(base + *layout_.type.tp_base);
  }
  return info;
}

const TypeInfo& AsyncioModule::type(RemoteAddress type) {
  Recent& recent = recent_[type.value >> 4 & 63];
  if (recent.info != nullptr && recent.type == type) return *recent.info;
  auto known = types_.find(type.value);
  if (known == types_.end()) {
    if (types_.size() >= kMaxTypes) {
      types_.clear();
      recent_.fill({});
    }
    known = types_.emplace(type.value, read_type(type)).first;
  }
  recent = {type, &known->second};
  return known->second;
}

const TypeInfo& AsyncioModule::type_of(RemoteAddress object) {
  return type(word(object + *layout_.object.ob_type));
}

std::string AsyncioModule::class_words(RemoteAddress object) {
  const RemoteAddress type = word(object + *layout_.object.ob_type);
  const std::string name = this->type(type).name;
  if (name.find('.') != std::string::npos) return name;
  const RemoteAddress names = word(type + *layout_.type.tp_base + 8);  // tp_dict
  if (!is_plausible(names) || type_of(names).name != "dict") return name;
  const auto found = objects_.find_in_dict(names, "__module__");
  const auto module = found && is_plausible(*found) ? objects_.string(*found, kMaxModuleName)
                                                    : Read<std::string>(std::string());
  if (!module || module->empty() || *module == "__main__" || *module == "asyncio" ||
      module->starts_with("asyncio."))
    return name;
  return *module + "." + name;
}

bool AsyncioModule::derives(RemoteAddress type, std::string_view name) {
  for (size_t i = 0; i < kMaxBases && type; ++i, type = word(type + *layout_.type.tp_base)) {
    if (this->type(type).name == name) return true;
  }
  return false;
}

// By its member_descriptor (Include/descrobject.h): three pointers, then its PyMemberDef, with the offset
// after name and type.
std::optional<uint32_t> AsyncioModule::slot(RemoteAddress type, std::string_view name) {
  const RemoteAddress names = word(type + *layout_.type.tp_base + 8);  // tp_dict
  if (!is_plausible(names) || type_of(names).name != "dict") return {};
  const auto descriptor = objects_.find_in_dict(names, name);
  if (!descriptor || !is_plausible(*descriptor) || type_of(*descriptor).name != "member_descriptor")
    return {};
  const uint64_t offset = word(word(*descriptor + *layout_.object.size + 24) + 16).value;
  const uint64_t size = word(type + *layout_.type.tp_basicsize).value;
  if (offset < *layout_.object.size || offset + 8 > size) return {};
  return static_cast<uint32_t>(offset);
}

Read<std::vector<RemoteAddress>> AsyncioModule::set_members_once(RemoteAddress set, size_t most) {
  const uint64_t mask = word(set + *layout_.set.mask).value;
  const RemoteAddress table = word(set + *layout_.set.table);
  if ((mask & (mask + 1)) != 0 || !is_plausible(table)) return fault(FaultKind::implausible, set);
  if (mask >= kMaxSetSlots) return fault(FaultKind::too_large, set);
  std::vector<uint64_t> slots(2 * (mask + 1));  // key, hash
  if (!memory_.read(table, std::as_writable_bytes(std::span(slots))))
    return fault(FaultKind::unreadable, table);
  std::vector<RemoteAddress> members;
  for (size_t slot = 0; slot < slots.size() && members.size() < most; slot += 2) {
    const bool removed = slots[slot + 1] == ~uint64_t{0};  // the dummy's hash
    if (slots[slot] != 0 && !removed) members.emplace_back(slots[slot]);
  }
  return members;
}

Read<std::vector<RemoteAddress>> AsyncioModule::set_members(RemoteAddress set, size_t most) {
  // A set that grows in the meantime gets another table; data from the old one is then unreliable.
  auto members = Read<std::vector<RemoteAddress>>(fault(FaultKind::unreadable, set));
  for (size_t i = 0; i < kTableTries; ++i) {
    memory_.forget();
    const RemoteAddress table = word(set + *layout_.set.table);
    members = set_members_once(set, most);
    memory_.forget();
    if (members && word(set + *layout_.set.table) == table) break;
    if (members) members = fault(FaultKind::unreadable, set);
  }
  return members;
}

void AsyncioModule::add(Search& search, RemoteAddress task, uint64_t python_id) {
  const TypeKind kind = type_of(task).kind;
  if (kind != TypeKind::c_task && kind != TypeKind::python_task) return;
  if (!search.seen.insert(task.value).second) return;
  if (search.found.size() >= search.most) {
    ++search.beyond;
    return;
  }
  search.found.push_back({task, python_id});
}

void AsyncioModule::add_weak_set(Search& search, const char* name) {
  const auto object = objects_.find(known_.of_tasks, name);
  if (!object || !*object) return;
  const auto data = objects_.attribute(*object, "data");
  const auto members = data && *data
                           ? set_members(*data, kMaxSetSlots)
                           : Read<std::vector<RemoteAddress>>(fault(FaultKind::unreadable, *object));
  if (!members) {
    problem_ = fmt::format("asyncio's set {} could not be read", name);
    return;
  }
  // A dead reference refers to None, which is no task.
  for (RemoteAddress reference : *members) add(search, word(reference + *layout_.weakref.wr_object), 0);
}

void AsyncioModule::add_set(Search& search, const char* name) {
  const auto object = objects_.find(known_.of_tasks, name);
  if (!object || !*object) return;
  const auto members = set_members(*object, kMaxSetSlots);
  if (!members) {
    problem_ = fmt::format("asyncio's set {} could not be read", name);
    return;
  }
  for (RemoteAddress task : *members) add(search, task, 0);
}

// Whether `at` is the head of a circular list of tasks: its first node is in a task and points back. `empty`:
// it points to itself.
bool AsyncioModule::is_head(RemoteAddress at, bool& empty) {
  const RemoteAddress next = word(at), previous = word(at + 8);
  empty = next == at && previous == at;
  if (empty) return true;
  if (!is_plausible(next) || !is_plausible(previous) || (next.value & 7) != 0 || (previous.value & 7) != 0)
    return false;
  const RemoteAddress task = next - *known_.task.node;
  if ((task.value & 15) != 0) return false;  // alignment of allocated objects
  return word(next + 8) == at && type_of(task).kind == TypeKind::c_task;
}

// False: the list changed during the walk. The tasks found until then are in `search` anyway.
bool AsyncioModule::walk(Search& search, RemoteAddress head, uint64_t python_id) {
  std::unordered_set<uint64_t> met;
  RemoteAddress at = word(head);
  for (RemoteAddress before = head; at != head; before = at, at = word(at)) {
    if (!is_plausible(at) || (at.value & 7) != 0 || word(at + 8) != before) return false;
    if (!met.insert(at.value).second || met.size() > 2 * search.most) return false;
    add(search, at - *known_.task.node, python_id);
  }
  return true;
}

std::vector<RemoteAddress> AsyncioModule::threads() {
  std::vector<RemoteAddress> threads;
  RemoteAddress thread = word(interpreter_ + *layout_.interpreter.threads_head);
  while (thread && threads.size() < kMaxThreads) {
    threads.push_back(thread);
    thread = word(thread + *layout_.thread.next);
  }
  return threads;
}

// The offset of the task list in a thread state: the same in all of them, found in one whose list has tasks.
// Not present: all lists are empty.
Offset AsyncioModule::find_list(const std::vector<RemoteAddress>& threads) {
  for (size_t again = 0; again < kTableTries; ++again, memory_.forget()) {
    for (RemoteAddress thread : threads) {
      for (uint64_t tail = 0; tail < kThreadTail; tail += 8) {
        const Offset at(static_cast<uint32_t>(*layout_.thread.size + tail));
        bool empty = false;
        if (is_head(thread + *at, empty) && !empty) return at;
      }
    }
  }
  return {};
}

void AsyncioModule::add_list(Search& search, RemoteAddress head, uint64_t python_id) {
  for (size_t again = 0; again < kTableTries; ++again, memory_.forget()) {
    if (walk(search, head, python_id)) return;
  }
  problem_ = "a list of tasks changed each time it was read";
}

void AsyncioModule::add_threads(Search& search) {
  const auto states = threads();
  const Offset list = find_list(states);
  if (!list.present()) return;
  for (RemoteAddress thread : states)
    add_list(search, thread + *list, word(thread + *layout_.thread.thread_id).value);
}

// The interpreter's state takes a quarter of a megabyte.
std::vector<uint32_t> AsyncioModule::find_lists() {
  std::vector<uint32_t> offsets;
  std::vector<uint64_t> words(*layout_.interpreter.size / 8);
  if (!memory_.read(interpreter_, std::as_writable_bytes(std::span(words)))) return offsets;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    bool empty = false;
    if (is_plausible(RemoteAddress(words[i])) && is_plausible(RemoteAddress(words[i + 1])) &&
        is_head(interpreter_ + 8 * i, empty))
      offsets.push_back(static_cast<uint32_t>(8 * i));
  }
  return offsets;
}

void AsyncioModule::add_ended_threads(Search& search, TaskLists& lists) {
  // One that changed while it was searched for was not found.
  constexpr int kMostUses = 100;
  if (lists.uses == 0) lists.offsets = find_lists();
  lists.uses = (lists.uses + 1) % kMostUses;
  for (const uint32_t offset : lists.offsets) {
    bool empty = false;
    if (is_head(interpreter_ + offset, empty) && !empty) add_list(search, interpreter_ + offset, 0);
  }
}

std::vector<AsyncioModule::Found> AsyncioModule::find_tasks(size_t most, size_t& beyond, TaskLists& lists) {
  Search search;
  search.most = most;
  if (layout_.task.node.present() && known_.c_task) {
    add_threads(search);
    add_ended_threads(search, lists);
  }
  // Eager tasks first: one that stops being eager moves to the other set.
  add_set(search, kEagerTasks);
  add_weak_set(search, kScheduledTasks);
  add_weak_set(search, kAllTasks);
  beyond += search.beyond;
  return std::move(search.found);
}

}  // namespace phlox::python
