// A program with asyncio in it, and no more of that than its tasks need.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "phlox/python/async_tasks.h"
#include "support/fake_interpreter.h"

namespace phlox::python {

class FakeAsyncio {
 public:
  explicit FakeAsyncio(const Layout& layout) : fake(layout), layout_(layout) {
    task_type = type("Task");
    fake.set(task_type, layout.type.tp_basicsize, uint64_t{*layout.task.size});
    future_type = type("_asyncio.Future");
    loop = instance("Loop", {{"_thread_id", fake.integer(77)}});
    if (layout.task.node.present()) {
      head = fake.thread().state() + *layout.thread.size + 64;
      link(head, head);
    }
  }

  RemoteAddress object(RemoteAddress type, size_t size) {
    const RemoteAddress at = fake.memory().allocate(size + 64);
    fake.set(at, layout_.object.ob_refcnt, int64_t{1});
    fake.set(at, layout_.object.ob_type, type);
    return at;
  }
  RemoteAddress type(const std::string& name) { return fake.type(name); }

  RemoteAddress dict(const std::map<std::string, RemoteAddress>& items) {
    const auto& fields = layout_.dictkeys;
    const RemoteAddress at = object(type("dict"), 64), keys = fake.memory().allocate(1024);
    fake.set(at, layout_.dict.ma_keys, keys);
    fake.set(keys, fields.dk_log2_size, uint8_t{4});
    fake.set(keys, fields.dk_log2_index_bytes, uint8_t{4});
    fake.set(keys, fields.dk_size, uint64_t{16});
    fake.set(keys, fields.dk_nentries, uint64_t{items.size()});
    RemoteAddress entry = keys + *fields.dk_indices + 16;
    for (const auto& [key, value] : items) {
      fake.memory().put_value(entry + 8, fake.string(key).value);
      fake.memory().put_value(entry + 16, value.value);
      entry = entry + 24;
    }
    return at;
  }
  RemoteAddress module(const std::map<std::string, RemoteAddress>& items) {
    const RemoteAddress at = object(type("module"), 64);
    fake.set(at, layout_.module.md_dict, dict(items));
    return at;
  }
  // Of a class whose instances keep a dict behind their head.
  RemoteAddress instance(const std::string& name, const std::map<std::string, RemoteAddress>& items) {
    const RemoteAddress class_ = type(name), at = object(class_, 64);
    fake.set(class_, layout_.type.tp_dictoffset, uint64_t{*layout_.object.size});
    fake.memory().put_value(at + *layout_.object.size, dict(items).value);
    return at;
  }
  void is_class_of(const std::string& class_, const std::string& module) {
    fake.memory().put_value(type(class_) + *layout_.type.tp_base + 8,
                            dict({{"__module__", fake.string(module)}}).value);
  }
  RemoteAddress set(const std::vector<RemoteAddress>& items) {
    const RemoteAddress at = object(type("set"), 256), table = fake.memory().allocate(16 * 64);
    fake.set(at, layout_.set.mask, uint64_t{63});
    fake.set(at, layout_.set.table, table);
    for (size_t i = 0; i < items.size(); ++i) {
      fake.memory().put_value(table + 32 * i, items[i].value);
      fake.memory().put_value(table + 32 * i + 8, uint64_t{i + 5});
    }
    return at;
  }
  RemoteAddress reference(RemoteAddress to) {
    const RemoteAddress at = object(type("weakref"), 64);
    fake.set(at, layout_.weakref.wr_object, to);
    return at;
  }

  // Suspended at an `await` in `line` of the function.
  RemoteAddress coroutine(const std::string& function, int32_t line, RemoteAddress wait_target) {
    const auto& fields = layout_.generator;
    const RemoteAddress at = object(type("coroutine"), 512);
    const bool embedded = fields.gi_iframe.present();
    const RemoteAddress frame = embedded ? at + *fields.gi_iframe : object(type("frame"), 512);
    const RemoteAddress code = fake.code(function);
    const int32_t offset = 2 * (line - fake.code_at(code).first_line);
    fake.set(at, fields.gi_frame, frame);
    fake.set(frame, layout_.frame.executable, code);
    const RemoteAddress stack = frame + *layout_.frame.localsplus + 8;
    fake.memory().put_value(stack, wait_target.value);
    const uint32_t depth = layout_.traits.delegate_depth;
    suspend(at, frame, stack, depth);
    set_instruction(frame, code, offset);
    return at;
  }
  RemoteAddress iterator_of(RemoteAddress future) {
    const RemoteAddress at = object(type("_asyncio.FutureIter"), 64);
    fake.memory().put_value(at + *layout_.object.size, future.value);
    return at;
  }
  RemoteAddress future() {
    const RemoteAddress at = object(future_type, *layout_.task.size);
    return at;
  }
  RemoteAddress task(const std::string& name, RemoteAddress coroutine, RemoteAddress waiter) {
    const RemoteAddress at = object(task_type, *layout_.task.size);
    fake.set(at, layout_.task.coro, coroutine);
    fake.set(at, layout_.task.fut_waiter, waiter);
    fake.set(at, layout_.task.name, fake.string(name));
    fake.set(at, layout_.task.loop, loop);
    tasks.push_back(at);
    return at;
  }

  // A greenlet whose state has these words behind its C stack, which begins at `stack` (none: it has ended)
  // and, if it was started, ends above it.
  RemoteAddress greenlet(bool started, uint64_t stack, const std::vector<RemoteAddress>& words) {
    if (!heap.start) heap.start = fake.memory().allocate(16);
    const RemoteAddress at = object(greenlet_type(), 64), state = fake.memory().allocate(256);
    fake.memory().put_value(at + *layout_.object.size + 16, state.value);
    fake.memory().put_value(state + 8, at.value);
    const uint64_t place = layout_.traits.interpreter_frames ? 56 : 72;
    fake.memory().put_value(state + place, stack);
    fake.memory().put_value(state + place + 8, started ? ~uint64_t{0} : uint64_t{0});
    for (size_t i = 0; i < words.size(); ++i)
      fake.memory().put_value(state + place + 48 + 8 * i, words[i].value);
    heap.end = fake.memory().allocate(16);
    return at;
  }
  RemoteAddress greenlet_type() {
    const RemoteAddress type = this->type("greenlet.greenlet");
    fake.set(type, layout_.type.tp_basicsize, uint64_t{*layout_.object.size} + 24);
    return type;
  }
  // The frame object of calls that are not on a thread's stack any more.
  RemoteAddress frame_object(const std::string& outer, const std::string& inner, int32_t line) {
    fake.code(inner);  // its lines are then the first
    const RemoteAddress frame = fake.new_thread().calls(outer).calls(inner, line).stack().front().address;
    if (!layout_.traits.interpreter_frames) {
      fake.set(frame, layout_.object.ob_type, type("frame"));
      return frame;
    }
    const RemoteAddress at = object(type("frame"), 64);
    fake.memory().put_value(at + *layout_.object.size + 8, frame.value);
    return at;
  }

  // As the program would have it now. Before anything reads the tasks.
  void import_modules() {
    const bool listed = layout_.task.node.present();
    std::vector<RemoteAddress> references;
    for (RemoteAddress task : tasks) references.push_back(reference(task));
    if (listed && !linked) link_tasks();
    const RemoteAddress weak_set =
        instance("WeakSet", {{"data", set(listed ? std::vector<RemoteAddress>() : references)}});
    const RemoteAddress modules =
        dict({{"asyncio.tasks", module({{"_CTask", task_type},
                                        {"_PyTask", type("PyTask")},
                                        {"_GatheringFuture", type("_GatheringFuture")},
                                        {"__file__", fake.string("/lib/asyncio/tasks.py")},
                                        {"_all_tasks", weak_set}})},
              {"asyncio.futures", module({{"_CFuture", future_type}, {"_PyFuture", type("PyFuture")}})},
              {"types", module({{"CoroutineType", type("coroutine")},
                                {"GeneratorType", type("generator")},
                                {"AsyncGeneratorType", type("async_generator")},
                                {"FrameType", type("frame")},
                                {"CodeType", type("code")}})},
              {"greenlet", module({{"greenlet", greenlet_type()}})}});
    fake.set(fake.state(), layout_.interpreter.modules, modules);
  }
  AsyncTasks read(bool chains_only = false) { return read_as(layout_, chains_only); }
  // By the row of another layout than that which it has.
  AsyncTasks read_as(const Layout& layout, bool chains_only = false) {
    import_modules();
    TaskSources sources;
    sources.chains_only = chains_only;
    sources.heap = [this] { return Heap{{heap}, ""}; };
    Interpreter interpreter = fake.interpreter();
    interpreter.layout = layout;
    return read_async_tasks(interpreter, fake.memory(), sources);
  }

  void link(RemoteAddress from, RemoteAddress to) {
    fake.memory().put_value(from, to.value);
    fake.memory().put_value(to + 8, from.value);
  }
  void link_tasks() {
    RemoteAddress before = head;
    for (RemoteAddress task : tasks) {
      link(before, task + *layout_.task.node);
      before = task + *layout_.task.node;
    }
    link(before, head);
    linked = true;
  }

  test::FakeInterpreter fake;
  RemoteAddress task_type, future_type, loop, head;
  std::vector<RemoteAddress> tasks;
  HeapRange heap;
  bool linked = false;

 private:
  void suspend(RemoteAddress generator, RemoteAddress frame, RemoteAddress stack, uint32_t depth) {
    const auto& traits = layout_.traits;
    const int8_t state =
        traits.delegation == Delegation::frame_state ? traits.generator_delegates : int8_t{-1};
    fake.set(generator, layout_.generator.gi_frame_state, state);
    fake.set(frame, layout_.frame_object.f_state, state);
    fake.set(frame, layout_.frame_object.f_valuestack, stack);
    fake.set(frame, layout_.frame.stackpointer, stack + 8 * depth);
    // Counted from the variables on, of which there is one; of frame objects from the stack on.
    fake.set(frame, layout_.frame.stacktop, layout_.traits.interpreter_frames ? uint32_t{1} + depth : depth);
  }
  void set_instruction(RemoteAddress frame, RemoteAddress code, int32_t offset) {
    switch (layout_.traits.instruction) {
      case InstructionUnit::lasti_bytes:
      case InstructionUnit::lasti_code_units: {
        const bool units = layout_.traits.instruction == InstructionUnit::lasti_code_units;
        fake.set(frame, layout_.frame.instr, units ? offset / 2 : offset);
        const RemoteAddress bytes(fake.memory().get<uint64_t>(code + *layout_.code.code));
        constexpr uint8_t kYieldFrom = 72;
        fake.memory().put_value(bytes + *layout_.bytes.ob_sval + static_cast<uint64_t>(offset) + 2,
                                kYieldFrom);
        break;
      }
      case InstructionUnit::prev_instr:
      case InstructionUnit::instr_ptr: {
        const RemoteAddress at = code + *layout_.code.code_adaptive + static_cast<uint64_t>(offset);
        fake.set(frame, layout_.frame.instr, at);
        constexpr uint8_t kAwait = 3;  // RESUME's argument
        fake.memory().put_value(at + 3, kAwait);
        break;
      }
    }
  }

  const Layout& layout_;
};

}  // namespace phlox::python
