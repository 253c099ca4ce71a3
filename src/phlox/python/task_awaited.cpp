// What a waiting task awaits: by the future's own class, by the function of asyncio's whose `await` it is, or
// by who is to be called when it is done. What none of these proves stays a future.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "phlox/base/load.h"
#include "phlox/python/task_reader.h"

namespace phlox::python {
namespace {

struct Function {
  std::string_view file, name;
  AwaitedKind kind;
};

// Lib/asyncio of 3.8 to 3.15. Locks: explain_lock().
constexpr Function kFunctions[] = {
    {"tasks.py", "sleep", AwaitedKind::sleep},
    {"tasks.py", "_wait", AwaitedKind::wait},
    {"tasks.py", "wait_for", AwaitedKind::wait},
    {"taskgroups.py", "__aexit__", AwaitedKind::task_group},
    {"taskgroups.py", "_aexit", AwaitedKind::task_group},
    {"locks.py", "acquire", AwaitedKind::lock},
    {"locks.py", "wait", AwaitedKind::event},
    {"queues.py", "get", AwaitedKind::queue_item},
    {"queues.py", "put", AwaitedKind::queue_room},
    {"streams.py", "_wait_for_data", AwaitedKind::stream_data},
    {"streams.py", "_drain_helper", AwaitedKind::stream_room},
    {"base_subprocess.py", "_wait", AwaitedKind::subprocess},
    {"base_events.py", "serve_forever", AwaitedKind::server},
};

struct Class {
  std::string_view name;
  AwaitedKind kind;
};
constexpr Class kLocks[] = {{"Lock", AwaitedKind::lock},
                            {"Semaphore", AwaitedKind::semaphore},
                            {"Condition", AwaitedKind::condition},
                            {"Event", AwaitedKind::event}};

}  // namespace

// `self` of a method in asyncio/locks.py.
void TaskReader::explain_lock(TaskReading& out) {
  const RemoteAddress type = word(leaf_.first + *layout_.object.ob_type);
  for (const Class& one : kLocks) {
    if (!module_.derives(type, one.name)) continue;
    out.task.kind = one.kind;
    out.task.awaited = module_.type(type).name;
    return;
  }
  out.task.kind = AwaitedKind::future;
}

std::string TaskReader::number_text(RemoteAddress object) {
  const std::string name = module_.type_of(object).name;
  if (name == "int") {
    const auto value = module_.objects().integer(object);
    return value ? std::to_string(*value) : std::string();
  }
  const std::byte* bytes =
      name == "float" && is_plausible(object) ? memory_.find(object + *layout_.real.ob_fval, 8) : nullptr;
  return bytes == nullptr ? std::string() : fmt::format("{:g}", load<double>(bytes));
}

// The tasks in a list or a set.
void TaskReader::add_children(RemoteAddress collection, TaskReading& out) {
  std::vector<RemoteAddress> members;
  const std::string& type = module_.type_of(collection).name;
  if (type == "list") {
    const uint64_t size =
        std::min<uint64_t>(word(collection + *layout_.list.ob_size).value, kMaxAwaitedTasks);
    const RemoteAddress items = word(collection + *layout_.list.ob_item);
    std::vector<uint64_t> words(size);
    if (size > 0 && memory_.read(items, std::as_writable_bytes(std::span(words)))) {
      for (uint64_t value : words) members.emplace_back(value);
    }
  } else if (type == "set") {
    if (const auto read = module_.set_members_once(collection, kMaxAwaitedTasks)) members = *read;
  } else {
    members.push_back(collection);
  }
  for (RemoteAddress member : members) {
    const TypeKind kind = module_.type_of(member).kind;
    if (kind == TypeKind::c_task || kind == TypeKind::python_task) out.awaits.push_back(member);
  }
}

bool TaskReader::explain_by_frame(TaskReading& out) {
  if (leaf_code_ == nullptr || module_.folder().empty()) return false;
  const std::string_view file = leaf_code_->code.file;
  if (!file.starts_with(module_.folder())) return false;
  const std::string_view own = file.substr(module_.folder().size());
  for (const Function& function : kFunctions) {
    if (function.file != own || function.name != leaf_code_->code.name) continue;
    out.task.kind = function.kind;
    if (own == "locks.py") explain_lock(out);
    if (function.kind == AwaitedKind::sleep) out.task.awaited = number_text(leaf_.first);
    if (function.kind == AwaitedKind::wait) add_children(leaf_.first, out);
    if (function.kind == AwaitedKind::task_group) {
      if (const auto tasks = module_.objects().attribute(leaf_.first, "_tasks"); tasks && *tasks)
        add_children(*tasks, out);
    }
    return out.task.kind != AwaitedKind::future;
  }
  return false;
}

// futures._chain_future() has its own function called first.
bool TaskReader::is_concurrent(RemoteAddress future) {
  const RemoteAddress callback = word(future + *layout_.task.callback0);
  if (!callback || module_.type_of(callback).name != "function") return false;
  // func_code: the first field up to 3.9, the fifth since (Include/cpython/funcobject.h); a code object's
  // type proves it.
  for (uint64_t field : {uint64_t{0}, uint64_t{32}}) {
    const RemoteAddress code = word(callback + *layout_.object.size + field);
    if (!is_plausible(code) || word(code + *layout_.object.ob_type) != module_.code_type()) continue;
    const TaskCodes::Known* known = codes_.find(code);
    return known != nullptr && known->code.name == "_call_check_cancel" &&
           known->code.file == module_.folder() + "futures.py";
  }
  return false;
}

void TaskReader::explain(RemoteAddress waiter, TaskReading& out) {
  const TypeInfo type = module_.type_of(waiter);
  out.task.kind = AwaitedKind::future;
  if (type.kind == TypeKind::c_task || type.kind == TypeKind::python_task) {
    out.task.kind = AwaitedKind::task;
    out.awaits.push_back(waiter);
    return;
  }
  if (type.kind == TypeKind::gathering) {
    out.task.kind = AwaitedKind::gather;
    const auto children = module_.objects().attribute(waiter, "_children");
    if (children && *children) add_children(*children, out);
    return;
  }
  if (explain_by_frame(out)) return;
  out.task.kind = AwaitedKind::future;
  if (type.kind == TypeKind::c_future && is_concurrent(waiter)) {
    out.task.kind = AwaitedKind::concurrent_future;
  } else if (leaf_object_ && leaf_object_ != waiter) {
    out.task.kind = AwaitedKind::object;
    out.task.awaited = module_.type_of(leaf_object_).name;
  } else if (type.name != "_asyncio.Future" && type.name != "Future") {
    out.task.awaited = type.name;
  }
}

}  // namespace phlox::python
