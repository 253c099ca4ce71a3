// What a waiting task awaits: identified by the future's class, by the asyncio function whose `await` it is,
// or by the callback to be called when it is done. If none of these proves more, it stays a future.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

#include "phlox/base/load.h"
#include "phlox/python/task_reader.h"

namespace phlox::python {
namespace {

// In the order of AwaitedKind.
constexpr std::string_view kKeys[] = {"",
                                      "future",
                                      "lost_future",
                                      "task",
                                      "gather",
                                      "wait",
                                      "task_group",
                                      "sleep",
                                      "lock",
                                      "semaphore",
                                      "condition",
                                      "event",
                                      "queue_item",
                                      "queue_room",
                                      "stream_data",
                                      "stream_room",
                                      "concurrent_future",
                                      "subprocess",
                                      "server",
                                      "socket",
                                      "nursery",
                                      "thread_job",
                                      "object"};
static_assert(std::size(kKeys) == static_cast<size_t>(AwaitedKind::object) + 1);

constexpr uint64_t kMaxHandle = 512;  // bytes of a TimerHandle: some 100

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
    {"selector_events.py", "sock_recv", AwaitedKind::socket},
    {"selector_events.py", "sock_recv_into", AwaitedKind::socket},
    {"selector_events.py", "sock_recvfrom", AwaitedKind::socket},
    {"selector_events.py", "sock_recvfrom_into", AwaitedKind::socket},
    {"selector_events.py", "sock_sendall", AwaitedKind::socket},
    {"selector_events.py", "sock_sendto", AwaitedKind::socket},
    {"selector_events.py", "sock_connect", AwaitedKind::socket},
    {"selector_events.py", "sock_accept", AwaitedKind::socket},
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

std::string_view awaited_key(AwaitedKind kind) {
  return kKeys[static_cast<size_t>(kind)];
}

// `self` of a method in asyncio/locks.py.
void TaskReader::explain_lock(TaskReading& out) {
  const RemoteAddress type = memory_.word(leaf_.first + *layout_.object.ob_type);
  for (const Class& one : kLocks) {
    if (!module_.derives(type, one.name)) continue;
    out.task.kind = one.kind;
    out.task.awaited = module_.type(type).name;
    if (one.kind == AwaitedKind::lock || one.kind == AwaitedKind::semaphore) out.lock = leaf_.first;
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

// The tasks and jobs in a list or a set.
void TaskReader::add_children(RemoteAddress collection, TaskReading& out) {
  std::vector<RemoteAddress> members;
  const std::string& type = module_.type_of(collection).name;
  if (type == "list") {
    const uint64_t size =
        std::min<uint64_t>(memory_.word(collection + *layout_.list.ob_size).value, kMaxAwaitedTasks);
    const RemoteAddress items = memory_.word(collection + *layout_.list.ob_item);
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
    if (kind == TypeKind::c_task || kind == TypeKind::python_task) {
      out.awaits.push_back(member);
    } else if (kind == TypeKind::c_future && chains_only_) {
      add_job(concurrent_future(member), out);
    }
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
    if (!chains_only_) {
      if (function.kind == AwaitedKind::sleep) out.task.awaited = number_text(leaf_.first);
      add_details(out.task);
    }
    if (function.kind == AwaitedKind::wait) add_children(leaf_.first, out);
    if (function.kind == AwaitedKind::task_group) {
      if (const auto tasks = module_.objects().attribute(leaf_.first, "_tasks"); tasks && *tasks)
        add_children(*tasks, out);
    }
    return out.task.kind != AwaitedKind::future;
  }
  return false;
}

// A variable of a frame, counted from the function whose `await` it is.
RemoteAddress TaskReader::frame_variable(size_t from_leaf, uint32_t index) {
  if (from_leaf >= frames_.size()) return {};
  const RemoteAddress frame = frames_[frames_.size() - 1 - from_leaf];
  const RemoteAddress at = frame + *layout_.frame.localsplus + 8 * uint64_t{index};
  const std::byte* bytes = is_plausible(at) ? memory_.find(at, 8) : nullptr;
  return bytes == nullptr ? RemoteAddress() : variable(bytes);
}

RemoteAddress TaskReader::attribute(RemoteAddress object, std::string_view name) {
  if (!is_plausible(object)) return {};
  const auto value = module_.objects().attribute(object, name);
  return value ? *value : RemoteAddress();
}

// Its handle's `_when`, the only float in it: the other slots hold no numbers (asyncio.events.TimerHandle).
void TaskReader::add_end_of_sleep(AsyncTask& task) {
  constexpr uint32_t kHandle = 4;  // sleep(delay, result, loop, future, h)
  const RemoteAddress handle = frame_variable(0, kHandle);
  if (!is_plausible(handle) || module_.type_of(handle).name != "TimerHandle") return;
  const RemoteAddress type = memory_.word(handle + *layout_.object.ob_type);
  const uint64_t size = std::min(memory_.word(type + *layout_.type.tp_basicsize).value, kMaxHandle);
  std::optional<double> until;
  for (uint64_t at = *layout_.object.size; at + 8 <= size; at += 8) {
    const RemoteAddress field = memory_.word(handle + at);
    if (!is_plausible(field) || module_.type_of(field).name != "float") continue;
    const std::byte* bytes = memory_.find(field + *layout_.real.ob_fval, 8);
    if (bytes == nullptr || until) return;
    until = load<double>(bytes);
  }
  task.until = until;
}

// The link is read between two readings of the task: if it awaits the same future in both, the descriptor
// still belongs to the socket.
void TaskReader::add_descriptor(int64_t descriptor, AsyncTask& task) {
  if (link_ && descriptor >= 0 && descriptor <= std::numeric_limits<int32_t>::max())
    task.descriptor = link_(static_cast<int32_t>(descriptor));
}

void TaskReader::add_socket(RemoteAddress socket, AsyncTask& task) {
  if (!is_plausible(socket) ||
      !module_.derives(memory_.word(socket + *layout_.object.ob_type), "_socket.socket"))
    return;
  // Modules/socketmodule.h: sock_fd is its first field.
  const std::byte* field = memory_.find(socket + *layout_.object.size, 4);
  if (field != nullptr) add_descriptor(load<int32_t>(field), task);
}

void TaskReader::add_socket_of(RemoteAddress transport, AsyncTask& task) {
  // TLS: sslproto._SSLProtocolTransport leads to its protocol, which leads to the transport beneath.
  if (const RemoteAddress protocol = attribute(transport, "_ssl_protocol"))
    transport = attribute(protocol, "_transport");
  const RemoteAddress descriptor = attribute(transport, "_sock_fd");
  const auto number = descriptor ? module_.objects().integer(descriptor) : Read<int64_t>(-1);
  if (number) add_descriptor(*number, task);
}

void TaskReader::add_details(AsyncTask& task) {
  switch (task.kind) {
    case AwaitedKind::sleep:
      return add_end_of_sleep(task);
    case AwaitedKind::stream_data:
    case AwaitedKind::stream_room:
      return add_socket_of(attribute(leaf_.first, "_transport"), task);
    case AwaitedKind::socket:
      return add_socket(frame_variable(0, 1), task);  // sock_recv(self, sock, …)
    case AwaitedKind::subprocess: {
      const RemoteAddress pid = attribute(leaf_.first, "_pid");
      const auto number = pid ? module_.objects().integer(pid) : Read<int64_t>(0);
      if (number && *number > 0 && *number <= std::numeric_limits<int32_t>::max())
        task.subprocess = static_cast<int32_t>(*number);
      return;
    }
    default:
      return;
  }
}

// Whether all references to a future are the waiting task's own: of the task, of the iterator that awaits the
// future, and of the variables of the function that awaits it. Then nobody can set its result.
bool TaskReader::is_lost(RemoteAddress future, Evidence& evidence) {
  // PyTypeObject: tp_weaklistoffset is the fifth field after tp_flags.
  constexpr uint64_t kWeakList = 40;
  constexpr int64_t kFarthest = 1024;
  if (!layout_.object.ob_refcnt.present() || leaf_future_ != future || !leaf_.bottom) return false;
  const RemoteAddress type = memory_.word(future + *layout_.object.ob_type);
  const auto weak = static_cast<int64_t>(memory_.word(type + *layout_.type.tp_flags + kWeakList).value);
  if (weak < -kFarthest || weak > kFarthest) return false;
  const RemoteAddress variables = leaf_.frame + *layout_.frame.localsplus;
  const uint64_t number = (leaf_.bottom - variables) / 8;
  if (leaf_.bottom < variables || number > kMaxStack) return false;
  const std::byte* count = memory_.find(future + *layout_.object.ob_refcnt, 4);
  if (count == nullptr) return false;
  // Up to 3.13 the count has 64 bits, but no future has this many references.
  const uint64_t references = load<uint32_t>(count);
  uint64_t own = 2;
  for (uint64_t i = 0; i < number && own < references; ++i) {
    const std::byte* bytes = memory_.find(variables + 8 * i, 8);
    if (bytes == nullptr) return false;
    own += variable(bytes) == future ? 1 : 0;
  }
  if (own != references) return false;
  peek(future + *layout_.object.ob_refcnt, 4, evidence);
  if (weak == 0) return true;
  const std::byte* list = peek(future + static_cast<uint64_t>(weak), 8, evidence);
  return list != nullptr && load<uint64_t>(list) == 0;
}

void TaskReader::explain(RemoteAddress waiter, TaskReading& out) {
  TypeInfo type = module_.type_of(waiter);
  out.task.kind = AwaitedKind::future;
  if (type.kind == TypeKind::c_future) {
    if (const RemoteAddress inner = shielded(waiter)) {
      waiter = inner;
      type = module_.type_of(inner);
    }
  }
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
  if (type.kind == TypeKind::c_future && has_callback(waiter, "futures.py", "_call_check_cancel")) {
    out.task.kind = AwaitedKind::concurrent_future;
    add_job(concurrent_future(waiter), out);
  } else if (leaf_code_ != nullptr && leaf_code_->code.name == "run_sync_in_worker_thread" &&
             leaf_code_->code.file.ends_with("/anyio/_backends/_asyncio.py")) {
    out.task.kind = AwaitedKind::thread_job;
    add_job(waiter, out);
  } else if (leaf_object_ && leaf_object_ != waiter) {
    out.task.kind = AwaitedKind::object;
    out.task.awaited = module_.type_of(leaf_object_).name;
  } else if (type.name != "_asyncio.Future" && type.name != "Future") {
    out.task.awaited = type.name;
  } else if (type.kind == TypeKind::c_future && is_lost(waiter, out.evidence)) {
    out.task.kind = AwaitedKind::lost_future;
  }
}

}  // namespace phlox::python
