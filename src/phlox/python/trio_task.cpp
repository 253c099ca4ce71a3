// One task of trio. Its coroutine and what that awaits are read as asyncio's are.
#include <string_view>

#include "phlox/base/load.h"
#include "phlox/python/task_reader.h"
#include "phlox/python/trio_module.h"

namespace phlox::python {

// Whether that frame, counted from the innermost one, is of this function of trio.
bool TaskReader::is_of_trio(const TaskReading& reading, size_t from_leaf, std::string_view file,
                            std::string_view name) const {
  const auto& frames = reading.task.frames;
  if (from_leaf >= frames.size() || trio_->folder().empty()) return false;
  const TaskFunction& function = codes_.function(frames[frames.size() - 1 - from_leaf].function);
  return function.name == name && function.file == trio_->folder() + std::string(file);
}

// Beneath all of them are wait_task_rescheduled() and _async_yield().
void TaskReader::explain_trio(RemoteAddress nurseries, TaskReading& out) {
  constexpr size_t kBeneath = 2;
  if (is_of_trio(out, kBeneath, "_timeouts.py", "sleep_forever") &&
      is_of_trio(out, kBeneath + 1, "_timeouts.py", "sleep_until")) {
    out.task.kind = AwaitedKind::sleep;
  } else if (is_of_trio(out, kBeneath, "_core/_run.py", "_nested_child_finished")) {
    out.task.kind = AwaitedKind::nursery;
    if (module_.type_of(nurseries).name != "list") return;
    const uint64_t size = memory_.word(nurseries + *layout_.list.ob_size).value;
    if (size == 0 || size > kMaxStack) return;
    const RemoteAddress nursery =
        memory_.word(memory_.word(nurseries + *layout_.list.ob_item) + 8 * (size - 1));
    const RemoteAddress children = attribute(nursery, "_children");
    if (!children || module_.type_of(children).name != "set") return;
    if (const auto members = module_.set_members_once(children, kMaxAwaitedTasks)) out.awaits = *members;
  }
}

bool TaskReader::read_trio(RemoteAddress task, TaskReading& out) {
  const TrioModule::Fields& fields = trio_->fields();
  const auto field = [&](uint32_t offset) {
    const std::byte* bytes = look(task + offset, 8, out.evidence);
    return RemoteAddress(bytes == nullptr ? 0 : load<uint64_t>(bytes));
  };
  const RemoteAddress coroutine = field(fields.coroutine), name = field(fields.name),
                      next = field(fields.next), nurseries = field(fields.nurseries);
  out.loop = field(fields.runner);
  if (!coroutine || !next || !out.loop) return false;
  out.task.address = task;
  if (!read_name(name, out) || !read_chain(coroutine, out)) return false;
  out.task.state = runs_                                      ? TaskState::running
                   : module_.type_of(next).name != "NoneType" ? TaskState::ready
                                                              : TaskState::waiting;
  if (out.task.state == TaskState::waiting) explain_trio(nurseries, out);
  return true;
}

}  // namespace phlox::python
