// asyncio's tasks out of memory that no program ever had: every row of the table that knows them.
#include "phlox/python/async_tasks.h"

#include <gtest/gtest.h>

#include "phlox/python/known_modules.h"
#include "phlox/python/layout_table.h"
#include "phlox/python/objects.h"
#include "phlox/python/page_memory.h"
#include "support/fake_asyncio.h"
#include "support/layout_rows.h"

namespace phlox::python {
namespace {

bool knows_tasks(const Layout& layout) {
  return layout.task.coro.present();
}

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

TEST_P(EveryTask, is_of_a_loop_whose_class_is_named_with_its_module_unless_that_is_asyncio) {
  const RemoteAddress future = program.future();
  program.task("t", program.coroutine("f", 12, program.iterator_of(future)), future);
  const auto type_in = [&](const char* module) {
    program.is_class_of("Loop", module);
    return program.read().loops.at(0).type;
  };
  EXPECT_EQ(type_in("uvloop"), "uvloop.Loop");
  EXPECT_EQ(type_in("qasync.loops"), "qasync.loops.Loop");
  EXPECT_EQ(type_in("asyncio.unix_events"), "Loop");
  EXPECT_EQ(type_in("__main__"), "Loop");
  EXPECT_EQ(type_in("asyncio_like"), "asyncio_like.Loop");
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
  EXPECT_EQ(read.tasks[1].awaits, (std::vector<uint32_t>{0}));
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

// Read with what earlier readings have found.
class EveryReading : public EveryTask {
 protected:
  EveryReading() {
    program.task("one", program.coroutine("outer", 27, program.iterator_of(future)), future);
    known.is_now(1);
    sources.known = &known;
  }
  AsyncTasks read() { return read_async_tasks(program.fake.interpreter(), program.fake.memory(), sources); }

  RemoteAddress future = program.future();
  KnownModules known;
  TaskSources sources;
};
INSTANTIATE_TEST_SUITE_P(AsyncTasks, EveryReading, testing::ValuesIn(test::layout_rows(knows_tasks)),
                         test::row_name);

TEST_P(EveryReading, has_the_function_that_is_now_where_an_earlier_one_found_another) {
  program.import_modules();
  for (int i = 0; i < 3; ++i) {
    const AsyncTasks again = read();
    ASSERT_EQ(again.tasks.size(), 1U);
    EXPECT_EQ(chain(again, again.tasks[0]), (std::vector<std::string>{"outer:27"}));
    EXPECT_EQ(again.functions.size(), 1U);
  }
  program.fake.set(program.fake.code("outer"), GetParam()->code.name, program.fake.string("another"));
  const AsyncTasks changed = read();
  ASSERT_EQ(changed.tasks.size(), 1U);
  EXPECT_EQ(chain(changed, changed.tasks[0]), (std::vector<std::string>{"another:27"}));
}

TEST_P(EveryReading, takes_fewer_calls_than_the_first) {
  program.import_modules();
  const auto calls = [&] {
    const size_t before = program.fake.memory().calls();
    EXPECT_EQ(read().tasks.size(), 1U);
    return program.fake.memory().calls() - before;
  };
  const size_t first = calls(), second = calls();
  EXPECT_LT(second, first);
  EXPECT_EQ(calls(), second);
}

TEST_P(EveryReading, finds_tasks_by_what_an_earlier_one_found_until_modules_are_imported) {
  auto& fake = program.fake;
  fake.set(fake.state(), GetParam()->interpreter.modules,
           program.dict({{"types", program.module({{"CoroutineType", program.type("coroutine")},
                                                   {"GeneratorType", program.type("generator")},
                                                   {"AsyncGeneratorType", program.type("async_generator")},
                                                   {"CodeType", program.type("code")}})}}));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(read().imported);
  program.import_modules();
  EXPECT_FALSE(read().imported) << "as it was";
  known.is_now(2);
  EXPECT_EQ(read().tasks.size(), 1U);
  fake.set(fake.state(), GetParam()->interpreter.modules, RemoteAddress(8));
  const AsyncTasks again = read();
  ASSERT_EQ(again.tasks.size(), 1U);
  EXPECT_EQ(chain(again, again.tasks[0]), (std::vector<std::string>{"outer:27"}));
  EXPECT_EQ(again.tasks[0].kind, AwaitedKind::future);
  EXPECT_TRUE(again.imported);
  known.is_now(3);
  EXPECT_TRUE(read().tasks.empty());
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

bool counts_references(const Layout& layout) {
  return knows_tasks(layout) && layout.object.ob_refcnt.present();
}
class EveryCount : public EveryTask {
 protected:
  AwaitedKind kind() {
    program.tasks.clear();
    program.linked = false;
    program.task("t", program.coroutine("f", 12, program.iterator_of(future)), future);
    const AsyncTasks read = program.read(true);
    return read.tasks.size() == 1 ? read.tasks[0].kind : AwaitedKind::none;
  }
  void refer(uint64_t references) {
    program.fake.set(future, GetParam()->object.ob_refcnt, uint32_t(references));
  }
  RemoteAddress future = program.future();
};
INSTANTIATE_TEST_SUITE_P(AsyncTasks, EveryCount, testing::ValuesIn(test::layout_rows(counts_references)),
                         test::row_name);

TEST_P(EveryCount, of_references_says_whether_anything_else_can_set_the_future) {
  for (const auto& [references, kind] : {std::pair(1, AwaitedKind::future),
                                         {2, AwaitedKind::lost_future},
                                         {3, AwaitedKind::future},
                                         {2000, AwaitedKind::future}}) {
    refer(static_cast<uint64_t>(references));
    EXPECT_EQ(this->kind(), kind) << references;
  }
}

TEST_P(EveryCount, does_not_prove_it_where_a_weak_reference_leads_there) {
  constexpr uint64_t kList = 64, kWeakList = 40;
  refer(2);
  program.fake.memory().put_value(program.future_type + *GetParam()->type.tp_flags + kWeakList, kList);
  EXPECT_EQ(kind(), AwaitedKind::lost_future);
  program.fake.memory().put_value(future + kList, uint64_t{4096});
  EXPECT_EQ(kind(), AwaitedKind::future);
}

TEST_P(EveryTask, whose_end_nothing_waits_for_is_told_from_those_with_a_callback) {
  const RemoteAddress future = program.future();
  const auto task = [&] {
    return program.task("t", program.coroutine("f", 12, program.iterator_of(future)), future);
  };
  const Layout& layout = *GetParam();
  task();
  program.fake.set(task(), layout.task.callback0, uint64_t{4096});
  program.fake.memory().put_value(task() + *layout.task.callback0 + 16, uint64_t{4096});
  const AsyncTasks read = program.read(true);
  ASSERT_EQ(read.tasks.size(), 3U);
  EXPECT_TRUE(read.tasks[0].unobserved);
  EXPECT_FALSE(read.tasks[1].unobserved);
  EXPECT_FALSE(read.tasks[2].unobserved);
}

TEST_P(EveryTask, that_waits_for_another_future_has_another_identity) {
  const RemoteAddress coroutine = program.coroutine("f", 12, RemoteAddress());
  const RemoteAddress task = program.task("t", coroutine, program.future());
  const auto identity = [&] {
    const AsyncTasks read = program.read(true);
    return read.tasks.size() == 1 ? read.tasks[0].wait_identity : 0;
  };
  const uint64_t before = identity();
  EXPECT_NE(before, 0U);
  EXPECT_EQ(identity(), before);
  program.fake.set(task, GetParam()->task.fut_waiter, program.future());
  EXPECT_NE(identity(), before);
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

// The program is laid out as 3.10.4 is, and read by the row of 3.10.
TEST(AsyncTasks, of_the_first_releases_of_3_10_are_those_of_3_9) {
  Layout first_releases = *find_layout(3, 10);
  first_releases.task = find_layout(3, 9)->task;
  FakeAsyncio program{first_releases};
  const RemoteAddress future = program.future();
  program.task("first", program.coroutine("f", 12, program.iterator_of(future)), future);
  const AsyncTasks read = program.read_as(*find_layout(3, 10));
  EXPECT_EQ(read.problem, "");
  ASSERT_EQ(read.tasks.size(), 1U);
  EXPECT_EQ(read.tasks[0].name, "first");
  EXPECT_EQ(chain(read, read.tasks[0]), (std::vector<std::string>{"f:12"}));
  EXPECT_EQ(read.tasks[0].state, TaskState::waiting);
  EXPECT_EQ(read.tasks[0].kind, AwaitedKind::future);
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
