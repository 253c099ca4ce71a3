// One task of trio. Its coroutine, and what that awaits, are read like those of asyncio.
#include <string_view>

#include "phlox/base/load.h"
#include "phlox/python/request_tasks.h"
#include "phlox/python/task_reader.h"
#include "phlox/python/trio_module.h"

namespace phlox::python {

// Whether that frame, counted from the innermost one, belongs to this function of trio.
bool TaskReader::is_of_trio(const TaskReading& reading, size_t from_leaf, std::string_view file,
                            std::string_view name) const {
  const auto& frames = reading.task.frames;
  if (from_leaf >= frames.size() || trio_->folder().empty()) return false;
  const TaskFunction& function = codes_.function(frames[frames.size() - 1 - from_leaf].function);
  return function.name == name && function.file == trio_->folder() + std::string(file);
}

namespace {

// By the function of trio that waits. Beneath its frame are those of wait_task_rescheduled() and
// _async_yield(); if `parks`, also ParkingLot.park().
struct TrioWait {
  std::string_view file, name;
  AwaitedKind kind;
  bool parks = false;
};
constexpr TrioWait kWaits[] = {
    {"_core/_run.py", "_nested_child_finished", AwaitedKind::nursery},
    {"_sync.py", "wait", AwaitedKind::event},
    {"_channel.py", "send", AwaitedKind::queue_room},
    {"_channel.py", "receive", AwaitedKind::queue_item},
    {"_threads.py", "to_thread_run_sync", AwaitedKind::thread_job},
    {"_core/_io_epoll.py", "_epoll_wait", AwaitedKind::socket},
    {"_sync.py", "acquire", AwaitedKind::lock, true},
    {"_sync.py", "acquire_on_behalf_of", AwaitedKind::semaphore, true},
    {"_sync.py", "wait", AwaitedKind::condition, true},
};
constexpr size_t kBeneath = 2;

}  // namespace

void TaskReader::explain_trio_nursery(RemoteAddress nurseries, TaskReading& out) {
  if (module_.type_of(nurseries).name != "list") return;
  const uint64_t size = memory_.word(nurseries + *layout_.list.ob_size).value;
  if (size == 0 || size > kMaxStack) return;
  const RemoteAddress nursery =
      memory_.word(memory_.word(nurseries + *layout_.list.ob_item) + 8 * (size - 1));
  const RemoteAddress children = attribute(nursery, "_children");
  if (!children || module_.type_of(children).name != "set") return;
  if (const auto members = module_.set_members_once(children, kMaxAwaitedTasks)) out.awaits = *members;
}

bool TaskReader::is_of_trio_task(RemoteAddress object) {
  return is_plausible(object) && memory_.word(object + *layout_.object.ob_type) == trio_->fields().type;
}

// `self` of a method in trio/_sync.py that parks. A lock has its owner, a limiter its borrowers.
void TaskReader::explain_trio_lock(RemoteAddress task, TaskReading& out) {
  RemoteAddress lock = frame_variable(kBeneath + 1, 0);
  if (!is_plausible(lock)) return;
  if (out.task.kind == AwaitedKind::condition) {
    // After a notification it is in the parking lot of the condition's lock.
    const RemoteAddress lot = memory_.word(task + trio_->fields().sleep_data);
    const RemoteAddress of_condition = attribute(lock, "_lot");
    if (!lot || !of_condition || lot == of_condition) return;
    lock = attribute(lock, "_lock");
    if (!is_plausible(lock)) return;
    out.task.kind = AwaitedKind::lock;
  }
  const RemoteAddress type = memory_.word(lock + *layout_.object.ob_type);
  out.task.awaited = module_.type(type).name;
  if (module_.derives(type, "Semaphore")) out.task.kind = AwaitedKind::semaphore;
  out.lock = lock;
  if (const RemoteAddress owner = attribute(lock, "_owner"); is_of_trio_task(owner)) out.owners = {owner};
  const RemoteAddress borrowers = attribute(lock, "_borrowers");
  if (!is_plausible(borrowers) || module_.type_of(borrowers).name != "set") return;
  if (const auto members = module_.set_members_once(borrowers, kMaxAwaitedTasks)) {
    for (RemoteAddress member : *members) {
      if (is_of_trio_task(member)) out.owners.push_back(member);
    }
  }
}

// The function that to_thread.run_sync() gave to a thread. That has it as a variable, too (task_job.cpp).
RemoteAddress TaskReader::trio_job() {
  RawFrame frame;
  frame.frame = frames_[frames_.size() - 1 - kBeneath];
  frame.code = codes_of_frames_[codes_of_frames_.size() - 1 - kBeneath];
  const RemoteAddress function = variable_named(frame, "worker_fn");
  return is_plausible(function) ? function : RemoteAddress();
}

void TaskReader::explain_trio(RemoteAddress task, RemoteAddress nurseries, TaskReading& out) {
  if (is_of_trio(out, kBeneath, "_timeouts.py", "sleep_forever") &&
      is_of_trio(out, kBeneath + 1, "_timeouts.py", "sleep_until")) {
    out.task.kind = AwaitedKind::sleep;
    return;
  }
  const bool parks = is_of_trio(out, kBeneath, "_core/_parking_lot.py", "park");
  for (const TrioWait& wait : kWaits) {
    if (wait.parks != parks || !is_of_trio(out, kBeneath + (parks ? 1 : 0), wait.file, wait.name)) continue;
    out.task.kind = wait.kind;
    if (parks) explain_trio_lock(task, out);
    if (wait.kind == AwaitedKind::thread_job) {
      if (const RemoteAddress job = trio_job()) out.jobs.push_back(job);
    }
    if (wait.kind == AwaitedKind::nursery) explain_trio_nursery(nurseries, out);
    if (wait.kind == AwaitedKind::socket) {
      // wait_readable(self, fd): a number or a socket.
      const RemoteAddress what = frame_variable(kBeneath + 1, 1);
      const auto number = is_plausible(what) ? module_.objects().integer(what) : Read<int64_t>(-1);
      if (number) {
        add_descriptor(*number, out.task);
      } else {
        add_socket(what, out.task);
      }
    }
    return;
  }
}

// AsyncTask::request.
bool TaskReader::read_trio_request(RemoteAddress task, TaskReading& out) {
  const auto& frames = out.task.frames;
  const uint32_t counter = trio_->fields().counter;
  if (counter == 0 || frames.empty() || !runs_one_request(codes_.function(frames.front().function)))
    return true;
  const std::byte* bytes = peek(task + counter, 8, out.evidence);
  if (bytes == nullptr) return false;
  const RemoteAddress number(load<uint64_t>(bytes));
  const uint32_t from = *layout_.object.ob_type;
  const auto value = is_plausible(number) ? module_.objects().integer(number) : Read<int64_t>(-1);
  if (!value || *value < 0) return true;
  out.task.request = static_cast<uint64_t>(*value) + 1;
  return peek(number + from, *layout_.integer.ob_digit + 4 - from, out.evidence) != nullptr;
}

bool TaskReader::read_trio(RemoteAddress task, TaskReading& out) {
  const TrioModule::Fields& fields = trio_->fields();
  const auto field = [&](uint32_t offset) {
    const std::byte* bytes = peek(task + offset, 8, out.evidence);
    return RemoteAddress(bytes == nullptr ? 0 : load<uint64_t>(bytes));
  };
  const RemoteAddress coroutine = field(fields.coroutine), name = field(fields.name),
                      next = field(fields.next), nurseries = field(fields.nurseries);
  out.loop = field(fields.runner);
  if (!coroutine || !next || !out.loop) return false;
  out.task.address = task;
  if (!chains_only_ && !read_name(name, out)) return false;
  if (!read_chain(coroutine, out)) {
    out.gone = ended_;  // trio ends a task in the step in which its coroutine returns
    return false;
  }
  if (!read_trio_request(task, out)) return false;
  if (runs_) note_running(out);
  out.task.state = runs_                                      ? TaskState::running
                   : module_.type_of(next).name != "NoneType" ? TaskState::ready
                                                              : TaskState::waiting;
  if (out.task.state == TaskState::waiting) explain_trio(task, nurseries, out);
  return true;
}

}  // namespace phlox::python
