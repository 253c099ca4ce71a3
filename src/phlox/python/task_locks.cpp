// Which of asyncio's locks a task holds. The lock does not record its holder, but `async with` does: while
// its body runs, the frame's stack holds the `__aexit__` to call at the end. Up to 3.13 that is a bound
// method, since 3.14 a function followed by its object (Python/bytecodes.c: BEFORE_ASYNC_WITH, LOAD_SPECIAL).
#include <algorithm>
#include <string_view>

#include "phlox/base/load.h"
#include "phlox/python/task_reader.h"

namespace phlox::python {
namespace {

constexpr uint64_t kMaxEntries = 64;  // per stack, from its top
constexpr size_t kMaxExits = 64;      // per task

}  // namespace

// Whether it is asyncio's function of this name, in that file.
bool TaskReader::is_function(uint32_t function, std::string_view file, std::string_view name) const {
  const TaskFunction& known = codes_.function(function);
  return known.name == name && !module_.folder().empty() &&
         known.file.size() == module_.folder().size() + file.size() &&
         known.file.starts_with(module_.folder()) && known.file.ends_with(file);
}

// func_code: the first field up to 3.9, the fifth since (Include/cpython/funcobject.h); a code object's type
// proves it.
RemoteAddress TaskReader::code_of_function(RemoteAddress function) {
  for (uint64_t field : {uint64_t{0}, uint64_t{32}}) {
    const RemoteAddress code = memory_.word(function + *layout_.object.size + field);
    if (is_plausible(code) && memory_.word(code + *layout_.object.ob_type) == module_.code_type())
      return code;
  }
  return {};
}

// None: not the exit of a lock.
RemoteAddress TaskReader::object_of_exit(RemoteAddress entry, RemoteAddress next) {
  if (!is_plausible(entry)) return {};
  const std::string& type = module_.type_of(entry).name;
  RemoteAddress function, object;
  if (type == "method") {  // PyMethodObject: im_func, im_self
    function = memory_.word(entry + *layout_.object.size);
    object = memory_.word(entry + *layout_.object.size + 8);
  } else if (type == "function") {
    function = entry;
    object = next;
  }
  if (!is_plausible(function) || !is_plausible(object)) return {};
  const RemoteAddress code = code_of_function(function);
  const TaskCodes::Known* known = code ? codes_.find(code) : nullptr;
  return known != nullptr && is_function(known->function, "locks.py", "__aexit__") ? object : RemoteAddress();
}

void TaskReader::note_exits(const Generator& generator, TaskReading& out) {
  if (!generator.bottom || generator.top <= generator.bottom || generator.executing) return;
  const uint64_t entries = std::min((generator.top - generator.bottom) / 8, kMaxEntries);
  // A frame that only awaits has nothing else on its stack.
  if (entries <= layout_.traits.delegate_depth) return;
  const RemoteAddress from = generator.top - 8 * entries;
  std::vector<RemoteAddress> stack;
  for (uint64_t i = 0; i < entries; ++i) {
    const std::byte* bytes = peek(from + 8 * i, 8, out.evidence);
    if (bytes == nullptr) return;
    stack.push_back(variable(bytes));
  }
  const size_t first = exits_.size();
  for (size_t i = 0; i < stack.size() && exits_.size() < kMaxExits; ++i) {
    const RemoteAddress object =
        object_of_exit(stack[i], i + 1 < stack.size() ? stack[i + 1] : RemoteAddress());
    if (object) exits_.push_back({out.task.frames.size() - 1, object, false});
  }
  if (exits_.size() > first) exits_.back().innermost = true;
}

// If a frame awaits `__aenter__`, its innermost exit belongs to a lock that it does not hold yet. A task in
// Condition.wait() has released the condition's lock, or waits for it.
void TaskReader::find_held_locks(TaskReading& out) {
  const auto& frames = out.task.frames;
  for (const Exit& exit : exits_) {
    const bool enters = exit.frame + 1 < frames.size() &&
                        is_function(frames[exit.frame + 1].function, "locks.py", "__aenter__");
    if (enters && exit.innermost) continue;
    const RemoteAddress type = memory_.word(exit.object + *layout_.object.ob_type);
    RemoteAddress lock = exit.object;
    if (module_.derives(type, "Condition")) {
      lock = attribute(lock, "_lock");
    } else if (!module_.derives(type, "Lock") && !module_.derives(type, "Semaphore")) {
      continue;
    }
    bool released = !lock;
    for (size_t i = exit.frame + 1; i < frames.size() && !released; ++i) {
      if (!is_function(frames[i].function, "locks.py", "wait")) continue;
      const RemoteAddress self = frame_variable(frames.size() - 1 - i, 0);
      released = is_plausible(self) && attribute(self, "_lock") == lock;
    }
    if (!released) out.holds.push_back(lock);
  }
}

}  // namespace phlox::python
