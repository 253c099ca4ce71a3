// asyncio's tasks out of memory that no program ever had: every row of the table that knows them.
#include "phlox/python/async_tasks.h"

#include <gtest/gtest.h>

#include <map>

#include "phlox/python/objects.h"
#include "phlox/python/page_memory.h"
#include "support/fake_interpreter.h"
#include "support/layout_rows.h"

namespace phlox::python {
namespace {

bool knows_tasks(const Layout& layout) {
  return layout.task.coro.present();
}

// A program with asyncio in it, and no more of that than its tasks need.
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
  RemoteAddress coroutine(const std::string& function, int32_t line, RemoteAddress awaited) {
    const auto& fields = layout_.generator;
    const RemoteAddress at = object(type("coroutine"), 512);
    const bool embedded = fields.gi_iframe.present();
    const RemoteAddress frame = embedded ? at + *fields.gi_iframe : object(type("frame"), 512);
    const RemoteAddress code = fake.code(function);
    const int32_t offset = 2 * (line - fake.code_at(code).first_line);
    fake.set(at, fields.gi_frame, frame);
    fake.set(frame, layout_.frame.executable, code);
    const RemoteAddress stack = frame + *layout_.frame.localsplus + 8;
    fake.memory().put_value(stack, awaited.value);
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

  AsyncTasks read(bool chains_only = false) {
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
    TaskSources sources;
    sources.chains_only = chains_only;
    sources.heap = [this] { return Heap{{heap}, ""}; };
    return read_async_tasks(fake.interpreter(), fake.memory(), sources);
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

class EveryTask : public testing::TestWithParam<const Layout*> {
 protected:
  FakeAsyncio program{*GetParam()};
};
INSTANTIATE_TEST_SUITE_P(AsyncTasks, EveryTask, testing::ValuesIn(test::layout_rows(knows_tasks)),
                         test::row_name);

std::vector<std::string> chain(const AsyncTasks& all, const AsyncTask& task) {
  std::vector<std::string> names;
  for (const TaskFrame& frame : task.frames)
    names.push_back(all.functions[frame.function].name + ":" + std::to_string(frame.line));
  return names;
}

TEST_P(EveryTask, has_the_chain_of_its_awaits_down_to_the_future) {
  const RemoteAddress future = program.future();
  const RemoteAddress inner = program.coroutine("inner", 12, program.iterator_of(future));
  const RemoteAddress outer = program.coroutine("outer", 27, inner);
  const RemoteAddress first = program.task("first", outer, future);
  program.task("second", program.coroutine("awaits", 33, program.iterator_of(first)), first);
  const AsyncTasks read = program.read();
  EXPECT_EQ(read.problem, "");
  EXPECT_EQ(read.unproved, 0U);
  ASSERT_EQ(read.tasks.size(), 2U);
  EXPECT_EQ(read.tasks[0].name, "first");
  EXPECT_EQ(chain(read, read.tasks[0]), (std::vector<std::string>{"outer:27", "inner:12"}));
  EXPECT_EQ(read.tasks[0].state, TaskState::waiting);
  EXPECT_EQ(read.tasks[0].kind, AwaitedKind::future);
  EXPECT_EQ(read.tasks[1].kind, AwaitedKind::task);
  EXPECT_EQ(read.tasks[1].awaits, (std::vector<uint32_t>{0}));
  ASSERT_EQ(read.loops.size(), 1U);
  EXPECT_EQ(read.loops[0].type, "Loop");
  EXPECT_EQ(read.loops[0].python_id, 77U);
}

TEST_P(EveryTask, has_its_chain_and_its_kind_where_only_chains_are_read) {
  const RemoteAddress future = program.future();
  const RemoteAddress outer =
      program.coroutine("outer", 27, program.coroutine("inner", 12, program.iterator_of(future)));
  const RemoteAddress first = program.task("first", outer, future);
  program.task("second", program.coroutine("awaits", 33, program.iterator_of(first)), first);
  const AsyncTasks read = program.read(/*chains_only=*/true);
  ASSERT_EQ(read.tasks.size(), 2U);
  EXPECT_EQ(chain(read, read.tasks[0]), (std::vector<std::string>{"outer:27", "inner:12"}));
  EXPECT_EQ(read.tasks[0].name, "");
  EXPECT_EQ(read.tasks[0].state, TaskState::waiting);
  EXPECT_EQ(read.tasks[1].kind, AwaitedKind::task);
  EXPECT_TRUE(read.tasks[1].awaits.empty());
}

TEST_P(EveryTask, can_come_only_where_asyncio_is_imported_and_imports_are_seen) {
  auto& fake = program.fake;
  const auto field = GetParam()->interpreter.modules;
  EXPECT_TRUE(program.read().imported) << "no task, but asyncio";
  const uint64_t all = modules_stamp(fake.interpreter(), fake.memory());
  EXPECT_NE(all, 0U);
  fake.set(fake.state(), field, program.dict({{"sys", program.module({})}}));
  EXPECT_FALSE(read_async_tasks(fake.interpreter(), fake.memory(), {}).imported);
  const uint64_t one = modules_stamp(fake.interpreter(), fake.memory());
  EXPECT_NE(one, all);
  EXPECT_EQ(modules_stamp(fake.interpreter(), fake.memory()), one);
  fake.set(fake.state(), field, program.dict({{"sys", program.module({})}, {"re", program.module({})}}));
  EXPECT_NE(modules_stamp(fake.interpreter(), fake.memory()), one);
  fake.set(fake.state(), field, RemoteAddress(8));
  EXPECT_EQ(modules_stamp(fake.interpreter(), fake.memory()), 0U) << "it cannot be read";
}

TEST_P(EveryTask, is_the_same_with_pages_of_an_earlier_sample_and_others_may_do_something_between) {
  const RemoteAddress future = program.future();
  const RemoteAddress task =
      program.task("one", program.coroutine("outer", 27, program.iterator_of(future)), future);
  PageMemory pages(program.fake.memory());
  TaskSources sources;
  size_t pauses = 0;
  sources.pages = &pages;
  sources.between = [&pauses] { ++pauses; };
  program.read();
  auto& fake = program.fake;
  EXPECT_EQ(read_async_tasks(fake.interpreter(), fake.memory(), sources).tasks.size(), 1U);
  EXPECT_GE(pauses, 1U);
  fake.set(future, GetParam()->task.state, int32_t{2});
  const AsyncTasks again = read_async_tasks(fake.interpreter(), fake.memory(), sources);
  ASSERT_EQ(again.tasks.size(), 1U);
  EXPECT_EQ(again.tasks[0].address, task);
  EXPECT_EQ(again.tasks[0].state, TaskState::ready) << "an old page was used";
}

TEST_P(EveryTask, is_ready_when_what_it_awaited_is_done_or_is_nothing) {
  const RemoteAddress done = program.future();
  program.fake.set(done, GetParam()->task.state, int32_t{2});
  program.task("woken", program.coroutine("inner", 12, program.iterator_of(done)), done);
  program.task("yields", program.coroutine("inner", 12, RemoteAddress()), RemoteAddress());
  const AsyncTasks read = program.read();
  ASSERT_EQ(read.tasks.size(), 2U);
  EXPECT_EQ(read.tasks[0].state, TaskState::ready);
  EXPECT_EQ(read.tasks[1].state, TaskState::ready);
}

TEST_P(EveryTask, that_is_done_is_no_task) {
  const RemoteAddress future = program.future();
  const RemoteAddress task =
      program.task("done", program.coroutine("f", 12, program.iterator_of(future)), future);
  program.fake.set(task, GetParam()->task.state, int32_t{1});
  const AsyncTasks read = program.read();
  EXPECT_TRUE(read.tasks.empty());
  EXPECT_EQ(read.unproved, 0U);
}

TEST_P(EveryTask, whose_future_is_not_the_one_at_the_end_of_its_chain_is_left_out_and_counted) {
  const RemoteAddress iterator = program.iterator_of(program.future());
  program.task("torn", program.coroutine("f", 12, iterator), program.future());
  const AsyncTasks read = program.read();
  EXPECT_TRUE(read.tasks.empty());
  EXPECT_EQ(read.unproved, 1U);
}

TEST_P(EveryTask, that_has_been_freed_is_no_task_and_counted_as_ended) {
  program.task("freed", RemoteAddress(), RemoteAddress());
  const AsyncTasks read = program.read();
  EXPECT_TRUE(read.tasks.empty());
  EXPECT_EQ(read.ended, 1U);
  EXPECT_EQ(read.unproved, 0U);
}

TEST_P(EveryTask, with_a_chain_that_never_ends_is_cut) {
  const RemoteAddress future = program.future();
  const RemoteAddress endless = program.coroutine("f", 12, RemoteAddress(4096));
  const Layout& layout = *GetParam();
  const RemoteAddress frame =
      layout.generator.gi_iframe.present()
          ? endless + *layout.generator.gi_iframe
          : RemoteAddress(program.fake.memory().get<uint64_t>(endless + *layout.generator.gi_frame));
  program.fake.memory().put_value(frame + *layout.frame.localsplus + 8, endless.value);
  program.task("endless", endless, future);
  const AsyncTasks read = program.read();
  ASSERT_EQ(read.tasks.size(), 1U);
  EXPECT_TRUE(read.tasks[0].cut);
  EXPECT_EQ(read.tasks[0].frames.size(), kMaxAwaitFrames);
}

TEST_P(EveryTask, of_another_size_is_not_read_and_that_is_said) {
  program.task("first", program.coroutine("f", 12, RemoteAddress()), RemoteAddress());
  program.fake.set(program.task_type, GetParam()->type.tp_basicsize, uint64_t{*GetParam()->task.size + 8});
  const AsyncTasks read = program.read();
  EXPECT_TRUE(read.tasks.empty());
  EXPECT_NE(read.problem.find("bytes"), std::string::npos) << read.problem;
}

TEST_P(EveryTask, that_is_a_greenlet_has_the_frames_of_its_calls) {
  const RemoteAddress frame = program.frame_object("outer", "inner", 12);
  const RemoteAddress none;
  const RemoteAddress main = program.greenlet(true, 0x7000, {none, none, none});
  // The main greenlet has itself as its main.
  const uint64_t place = GetParam()->traits.interpreter_frames ? 56 : 72;
  const RemoteAddress state(program.fake.memory().get<uint64_t>(main + *GetParam()->object.size + 16));
  program.fake.memory().put_value(state + place + 56, main.value);
  // Behind it is what its thread knows: this one, and the one that runs.
  const RemoteAddress thread = program.fake.memory().allocate(16);
  program.fake.memory().put_value(thread, main.value);
  program.fake.memory().put_value(thread + 8, main.value);
  program.fake.memory().put_value(state + place + 64, thread.value);
  program.greenlet(true, 0x5000, {none, none, main, none, main});  // waits in C
  program.greenlet(true, 0x6000, {frame, none, main, none, main});
  program.greenlet(false, 0, {none, none, none, main});
  program.greenlet(true, 0, {none, none, main, none, main});  // ended
  const AsyncTasks read = program.read();
  EXPECT_EQ(read.problem, "");
  EXPECT_EQ(read.unproved, 0U);
  ASSERT_EQ(read.tasks.size(), 4U);
  EXPECT_EQ(read.tasks[0].name, "main greenlet");
  EXPECT_EQ(read.tasks[0].state, TaskState::running);
  EXPECT_EQ(read.tasks[1].state, TaskState::parked);
  EXPECT_TRUE(read.tasks[1].frames.empty());
  EXPECT_EQ(read.tasks[2].state, TaskState::parked);
  const auto frames = chain(read, read.tasks[2]);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_TRUE(frames[0].starts_with("outer:"));
  EXPECT_EQ(frames[1], "inner:12");
  EXPECT_EQ(read.tasks[3].state, TaskState::unstarted);
  ASSERT_EQ(read.loops.size(), 1U);
  EXPECT_TRUE(read.loops[0].greenlets);
  EXPECT_EQ(read.loops[0].address, main);
}

TEST_P(EveryTask, that_resembles_a_greenlet_with_another_state_is_none) {
  const RemoteAddress none;
  const RemoteAddress greenlet = program.greenlet(true, 0x7000, {none});
  const RemoteAddress state(program.fake.memory().get<uint64_t>(greenlet + *GetParam()->object.size + 16));
  program.fake.memory().put_value(state + 8, greenlet.value + 64);
  const AsyncTasks read = program.read();
  EXPECT_TRUE(read.tasks.empty());
  EXPECT_EQ(read.unproved, 0U);
}

bool lists_tasks(const Layout& layout) {
  return layout.task.node.present();
}
class EveryList : public EveryTask {};
INSTANTIATE_TEST_SUITE_P(AsyncTasks, EveryList, testing::ValuesIn(test::layout_rows(lists_tasks)),
                         test::row_name);

TEST_P(EveryList, that_leads_back_into_itself_gives_each_task_once) {
  for (int i = 0; i < 3; ++i) {
    const RemoteAddress future = program.future();
    program.task("t", program.coroutine("f", 12, program.iterator_of(future)), future);
  }
  program.link_tasks();
  const uint32_t node = *GetParam()->task.node;
  program.fake.memory().put_value(program.tasks[2] + node, (program.tasks[0] + node).value);
  const AsyncTasks read = program.read();
  EXPECT_EQ(read.tasks.size(), 3U);
  EXPECT_NE(read.problem, "");
}

TEST(AsyncTasks, of_versions_that_are_not_known_are_said_to_be_missing) {
  for (const Layout& layout : layouts()) {
    if (knows_tasks(layout) || layout.traits.python2) continue;
    FakeAsyncio program(layout);
    const AsyncTasks read = program.read();
    EXPECT_TRUE(read.tasks.empty());
    EXPECT_NE(read.problem.find("does not know"), std::string::npos) << layout.name << ": " << read.problem;
  }
}

TEST(AsyncTasks, are_none_where_nothing_is_imported) {
  for (const Layout& layout : layouts()) {
    test::FakeInterpreter fake(layout);
    const AsyncTasks read = read_async_tasks(fake.interpreter(), fake.memory(), {});
    EXPECT_TRUE(read.tasks.empty());
    EXPECT_EQ(read.problem, "");
  }
}

}  // namespace
}  // namespace phlox::python
