#include "phlox/python/task_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "phlox/base/load.h"
#include "phlox/base/text.h"
#include "phlox/python/line_table.h"
#include "phlox/python/request_tasks.h"
#include "phlox/python/trio_module.h"
#include "phlox/python/unicode.h"

namespace phlox::python {
namespace {

constexpr size_t kMaxForwarders = 32;  // in a row
constexpr std::byte kYieldFrom{72};    // opcode of 3.3 to 3.10

}  // namespace

const std::byte* TaskReader::peek(RemoteAddress at, size_t size, Evidence& evidence) {
  const std::byte* bytes = is_plausible(at) ? memory_.find(at, size) : nullptr;
  if (bytes != nullptr) evidence.add(at, std::span(bytes, size));
  return bytes;
}

// A variable or stack entry, without the tag of a _PyStackRef.
RemoteAddress TaskReader::variable(const std::byte* at) const {
  const auto value = load<uint64_t>(at);
  return RemoteAddress(layout_.traits.tagged_executable ? value & ~uint64_t{3} : value);
}

bool TaskReader::read_c_fields(RemoteAddress task, Fields& fields, Evidence& evidence) {
  const TaskFields& offsets = module_.task_fields();
  if (layout_.object.ob_refcnt.present()) {
    const std::byte* count = memory_.find(task + *layout_.object.ob_refcnt, 8);
    if (count == nullptr || load<int64_t>(count) <= 0) return false;
  }
  const uint32_t from = *layout_.object.ob_type;
  const std::byte* bytes = peek(task + from, *offsets.size - from, evidence);
  if (bytes == nullptr) return false;
  auto pointer = [&](Offset field) { return RemoteAddress(load<uint64_t>(bytes + *field - from)); };
  fields.pending = load<int32_t>(bytes + *offsets.state - from) == 0;
  fields.coroutine = pointer(offsets.coro);
  fields.waiter = pointer(offsets.fut_waiter);
  fields.name = pointer(offsets.name);
  fields.loop = pointer(offsets.loop);
  // FutureObj: the first callback, its context, and a list of the others.
  const RemoteAddress others(load<uint64_t>(bytes + *offsets.callback0 + 16 - from));
  fields.unobserved = !pointer(offsets.callback0) && !others;
  return true;
}

// asyncio.tasks._PyTask, a class like any other.
bool TaskReader::read_python_fields(RemoteAddress task, Fields& fields) {
  auto& objects = module_.objects();
  const auto state = objects.attribute(task, "_state"), coroutine = objects.attribute(task, "_coro"),
             waiter = objects.attribute(task, "_fut_waiter"), name = objects.attribute(task, "_name"),
             loop = objects.attribute(task, "_loop");
  if (!coroutine || !loop) return false;
  fields.coroutine = *coroutine;
  fields.loop = *loop;
  if (waiter && module_.type_of(*waiter).name != "NoneType") fields.waiter = *waiter;
  if (name) fields.name = *name;
  // An instance stores only what differs from its class: _PENDING is in the class.
  const auto text = state && *state ? objects.string(*state, 32) : Read<std::string>(std::string());
  fields.pending = text && (text->empty() || *text == "PENDING");
  return true;
}

bool TaskReader::read_fields(RemoteAddress task, TypeKind kind, Fields& fields, Evidence& evidence) {
  if (kind == TypeKind::c_task) return read_c_fields(task, fields, evidence);
  return kind == TypeKind::python_task && read_python_fields(task, fields);
}

// The name's bytes are evidence, too: another task with the same fields may replace one that ended.
bool TaskReader::read_name(RemoteAddress name, TaskReading& out) {
  if (!name) return true;
  auto& objects = module_.objects();
  const uint32_t from = *layout_.object.ob_type;
  // 3.13+: an unnamed task stores only its number.
  if (const auto number = objects.integer(name)) {
    out.task.name = fmt::format("Task-{}", *number);
    return peek(name + from, *layout_.integer.ob_digit + 4 - from, out.evidence) != nullptr;
  }
  const auto text = objects.string(name, kMaxTaskNameBytes);
  const size_t size = string_head_size(layout_);
  const std::byte* bytes = text ? peek(name + from, size - from, out.evidence) : nullptr;
  if (bytes == nullptr) return false;
  bytes = memory_.find(name, size);
  const auto head = bytes == nullptr ? Read<StringHead>(fault(FaultKind::unreadable, name))
                                     : parse_string_head(layout_, name, std::span(bytes, size));
  if (!head) return false;
  out.task.name = *text;
  const size_t kept = std::min<size_t>(head->content_bytes(), kMaxTaskNameBytes);
  return kept == 0 || peek(head->content, kept, out.evidence) != nullptr;
}

// AsyncTask::request.
bool TaskReader::read_request(RemoteAddress name, TaskReading& out) {
  constexpr std::string_view kPrefix = "Task-";
  const auto& frames = out.task.frames;
  if (frames.empty() || !runs_one_request(codes_.function(frames.front().function))) return true;
  if (std::any_of(frames.begin(), frames.end(), [&](const TaskFrame& frame) {
        return serves_a_connection(codes_.function(frame.function));
      }))
    return true;
  if (chains_only_ && !read_name(name, out)) return false;
  const std::string_view text = out.task.name;
  if (text.starts_with(kPrefix))
    out.task.request = parse_number<uint64_t>(text.substr(kPrefix.size())).value_or(0);
  if (chains_only_) out.task.name.clear();
  return true;
}

bool TaskReader::read_embedded(RemoteAddress object, Generator& out, Evidence& evidence) {
  const auto& fields = layout_.generator;
  const uint32_t from = *layout_.object.ob_type;
  const uint32_t frame = *fields.gi_iframe, locals = frame + *layout_.frame.localsplus;
  const std::byte* bytes = peek(object + from, locals + 8 - from, evidence);
  if (bytes == nullptr) return false;
  const auto state = load<int8_t>(bytes + *fields.gi_frame_state - from);
  out.frame = object + frame;
  out.code = variable(bytes + frame + *layout_.frame.executable - from);
  out.instruction = load<uint64_t>(bytes + frame + *layout_.frame.instr - from);
  out.first = variable(bytes + locals - from);
  out.executing = state == layout_.traits.generator_executing;
  out.finished = state > layout_.traits.generator_executing;
  if (out.executing || out.finished) return true;
  RemoteAddress top;
  if (layout_.frame.stackpointer.present()) {
    top = RemoteAddress(load<uint64_t>(bytes + frame + *layout_.frame.stackpointer - from));
  } else {
    const auto depth = load<int32_t>(bytes + frame + *layout_.frame.stacktop - from);
    top = object + locals + 8 * static_cast<uint64_t>(std::max(depth, 0));
  }
  const uint64_t depth = (top - (object + locals)) / 8;
  if (depth > kMaxStack) return false;
  out.top = top;
  if (depth < layout_.traits.delegate_depth || !delegates(out, state)) return true;
  const std::byte* delegate = peek(top - 8 * uint64_t{layout_.traits.delegate_depth}, 8, evidence);
  if (delegate != nullptr) out.delegate = variable(delegate);
  return delegate != nullptr;
}

bool TaskReader::delegates(const Generator& generator, int8_t state) {
  switch (layout_.traits.delegation) {
    case Delegation::frame_state:
      return state == layout_.traits.generator_delegates ||
             state == layout_.traits.generator_delegates_locked;
    case Delegation::resume_oparg: {
      // RESUME's argument says what it resumes from: 0 call, 1 yield, 2 yield from, 3 await.
      const RemoteAddress argument(generator.instruction + 3);
      const std::byte* byte = is_plausible(argument) ? memory_.find(argument, 1) : nullptr;
      return byte != nullptr && (*byte == std::byte{2} || *byte == std::byte{3});
    }
    case Delegation::next_opcode: {
      const int32_t at = instruction_offset(layout_.traits, {}, generator.instruction);
      if (at < 0) return false;
      const RemoteAddress code = memory_.word(generator.code + *layout_.code.code);
      const RemoteAddress next = code + *layout_.bytes.ob_sval + static_cast<uint64_t>(at) + 2;
      const std::byte* byte = is_plausible(code) ? memory_.find(next, 1) : nullptr;
      return byte != nullptr && *byte == kYieldFrom;
    }
  }
  return false;
}

bool TaskReader::read_frame_object(RemoteAddress object, Generator& out, Evidence& evidence) {
  const auto& fields = layout_.generator;
  const uint32_t from = *layout_.object.ob_type;
  const uint32_t end = fields.gi_running.present() ? *fields.gi_running + 1 : *fields.gi_frame + 8;
  const std::byte* bytes = peek(object + from, end - from, evidence);
  if (bytes == nullptr) return false;
  const bool running = fields.gi_running.present() && bytes[*fields.gi_running - from] != std::byte{0};
  out.frame = RemoteAddress(load<uint64_t>(bytes + *fields.gi_frame - from));
  out.finished = !out.frame;
  if (out.finished) return true;
  const uint32_t locals = *layout_.frame.localsplus;
  bytes = peek(out.frame + from, locals + 8 - from, evidence);
  if (bytes == nullptr) return false;
  out.code = RemoteAddress(load<uint64_t>(bytes + *layout_.frame.executable - from));
  out.instruction = static_cast<uint64_t>(int64_t{load<int32_t>(bytes + *layout_.frame.instr - from)});
  out.first = RemoteAddress(load<uint64_t>(bytes + locals - from));
  RemoteAddress top;
  if (layout_.frame_object.f_state.present()) {
    const auto state = load<int8_t>(bytes + *layout_.frame_object.f_state - from);
    out.executing = state == layout_.traits.generator_executing;
    out.finished = state > layout_.traits.generator_executing;
    const auto depth = load<int32_t>(bytes + *layout_.frame.stacktop - from);
    top = RemoteAddress(load<uint64_t>(bytes + *layout_.frame_object.f_valuestack - from)) +
          8 * static_cast<uint64_t>(std::max(depth, 0));
  } else {
    out.executing = running;
    top = RemoteAddress(load<uint64_t>(bytes + *layout_.frame.stackpointer - from));
  }
  const RemoteAddress bottom(load<uint64_t>(bytes + *layout_.frame_object.f_valuestack - from));
  if (out.executing || out.finished || !top || top == bottom || !delegates(out, 0)) return true;
  if ((top - bottom) / 8 > kMaxStack) return false;
  out.bottom = bottom;
  out.top = top;
  const std::byte* delegate = peek(top - 8, 8, evidence);
  if (delegate != nullptr) out.delegate = RemoteAddress(load<uint64_t>(delegate));
  return delegate != nullptr;
}

bool TaskReader::read_generator(RemoteAddress object, Generator& out, Evidence& evidence) {
  out = {};
  const bool read = layout_.generator.gi_iframe.present() ? read_embedded(object, out, evidence)
                                                          : read_frame_object(object, out, evidence);
  if (!read) return false;
  return out.finished ||
         (is_plausible(out.code) && memory_.word(out.code + *layout_.object.ob_type) == module_.code_type());
}

// 0: unknown.
int32_t TaskReader::line_at(const TaskCodes::Known& known, RemoteAddress frame, RemoteAddress code,
                            uint64_t instruction) {
  const RemoteAddress bytecode =
      bytecode_of_frame(layout_, frame, code, known.code.first_instruction, memory_);
  if (!bytecode) return 0;
  const int32_t at = instruction_offset(layout_.traits, bytecode, instruction);
  if (at < 0) return known.code.line(at);
  if (at != known.last_offset) {
    known.last_line = known.code.line(at);
    known.last_offset = at;
  }
  return known.last_line;
}

bool TaskReader::add_frame(const Generator& generator, TaskReading& out) {
  const TaskCodes::Known* known = codes_.find(generator.code);
  if (known == nullptr) return false;
  out.task.frames.push_back(
      {known->function, line_at(*known, generator.frame, generator.code, generator.instruction)});
  leaf_code_ = known;
  leaf_ = generator;
  if (!leaf_.bottom && layout_.generator.gi_iframe.present() && leaf_.top)
    leaf_.bottom = leaf_.frame + *layout_.frame.localsplus + 8 * uint64_t{known->variables};
  frames_.push_back(generator.frame);
  codes_of_frames_.push_back(generator.code);
  if (!chains_only_) note_exits(leaf_, out);
  return true;
}

// From the coroutine down to the first object that is none. False: inconsistent.
bool TaskReader::read_chain(RemoteAddress coroutine, TaskReading& out) {
  leaf_ = {};
  leaf_code_ = nullptr;
  leaf_future_ = leaf_object_ = {};
  runs_ = ended_ = false;
  frames_.clear();
  codes_of_frames_.clear();
  exits_.clear();
  size_t forwarders = 0;
  RemoteAddress object = coroutine;
  while (object) {
    const std::byte* head = peek(object + *layout_.object.ob_type, 8, out.evidence);
    if (head == nullptr) return false;
    const TypeKind kind = module_.type(RemoteAddress(load<uint64_t>(head))).kind;
    if (kind == TypeKind::coroutine) {
      if (out.task.frames.size() == kMaxAwaitFrames) {
        out.task.cut = true;
        return true;
      }
      Generator generator;
      if (!read_generator(object, generator, out.evidence)) return false;
      ended_ = generator.finished && out.task.frames.empty();
      if (generator.finished) return false;
      if (!add_frame(generator, out)) return false;
      runs_ = generator.executing;
      forwarders = 0;
      object = generator.delegate;
      continue;
    }
    if (kind != TypeKind::forwarder && kind != TypeKind::future_iter) {
      leaf_object_ = object;
      return true;
    }
    // Both have the object as their first field.
    const std::byte* field = peek(object + *layout_.object.size, 8, out.evidence);
    if (field == nullptr || ++forwarders > kMaxForwarders) return false;
    object = RemoteAddress(load<uint64_t>(field));
    if (kind != TypeKind::future_iter) continue;
    leaf_future_ = object;
    return true;
  }
  return true;
}

bool TaskReader::is_done(RemoteAddress future, TypeKind kind, Evidence& evidence) {
  if (kind == TypeKind::python_future || kind == TypeKind::python_task) {
    const auto state = module_.objects().attribute(future, "_state");
    const auto text =
        state && *state ? module_.objects().string(*state, 32) : Read<std::string>(std::string());
    return text && !text->empty() && *text != "PENDING";
  }
  if (kind != TypeKind::c_future && kind != TypeKind::c_task && kind != TypeKind::gathering) return false;
  const std::byte* state = peek(future + *module_.task_fields().state, 4, evidence);
  return state != nullptr && load<int32_t>(state) != 0;
}

bool TaskReader::read(RemoteAddress task, TaskReading& out) {
  out = {};
  if (greenlets_ != nullptr) return read_greenlet(task, out);
  const std::byte* type = peek(task + *layout_.object.ob_type, 8, out.evidence);
  if (type == nullptr) return false;
  if (trio_ != nullptr && RemoteAddress(load<uint64_t>(type)) == trio_->fields().type)
    return read_trio(task, out);
  Fields fields;
  const TypeKind kind = module_.type(RemoteAddress(load<uint64_t>(type))).kind;
  out.gone = kind != TypeKind::c_task && kind != TypeKind::python_task;
  if (out.gone || !read_fields(task, kind, fields, out.evidence)) return false;
  out.pending = fields.pending;
  if (!out.pending) return true;
  out.gone = !fields.coroutine;  // the last field that is cleared before the task is freed
  if (out.gone) return false;
  out.loop = fields.loop;
  out.task.address = task;
  out.task.unobserved = fields.unobserved;
  out.task.wait_identity = fields.coroutine.value * 0x9E3779B97F4A7C15ULL ^ fields.waiter.value;
  if (!chains_only_ && !read_name(fields.name, out)) return false;
  if (!read_chain(fields.coroutine, out) || !read_request(fields.name, out)) return false;
  if (!chains_only_) find_held_locks(out);
  if (fields.waiter && leaf_future_ && leaf_future_ != fields.waiter) return false;
  if (runs_) {
    out.task.state = TaskState::running;
    note_running(out);
  } else if (!fields.waiter) {
    out.task.state = TaskState::ready;
  } else {
    const std::byte* head = peek(fields.waiter + *layout_.object.ob_type, 8, out.evidence);
    if (head == nullptr) return false;
    const TypeKind of_waiter = module_.type(RemoteAddress(load<uint64_t>(head))).kind;
    out.task.state = is_done(fields.waiter, of_waiter, out.evidence) ? TaskState::ready : TaskState::waiting;
  }
  if (out.task.state == TaskState::waiting) explain(fields.waiter, out);
  return true;
}

}  // namespace phlox::python
