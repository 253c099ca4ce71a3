#include "phlox/view/task_endpoints.h"

#include <gtest/gtest.h>

#include "phlox/view/endpoints.h"
#include "phlox/view/together.h"
#include "support/tasks_of.h"

namespace phlox::view {
namespace {

using namespace profile;
using test::ProfileMaker;

using test::kAnyio;
using test::kFastApi;
using test::kLoop;
using test::kPool;
using test::kUvloop;

class TaskEndpointsTest : public testing::Test, public test::TasksOf {
 protected:
  std::string of(const std::string& frames) {
    const Sample sample = maker.sample(thread, frames, 10);
    maker.put(sample);
    const Endpoints endpoints(profile);
    const uint32_t number = endpoints.of(sample.stack);
    if (number == Endpoints::kNone) return "none";
    return profile.frame(endpoints[number].frame).function + (endpoints[number].certain ? "" : "?");
  }
};

TEST_F(TaskEndpointsTest, a_task_that_only_one_handler_waits_for_belongs_to_it) {
  waits("price", handler("dashboard:12"), 9);
  waits("price", {}, 1);
  EXPECT_EQ(of(kLoop + "price:40;parse:7"), "none") << "nothing has been learnt";
  learn_task_endpoints(profile, rows);
  EXPECT_EQ(of(kLoop + "price:40;parse:7"), "dashboard?");
  EXPECT_EQ(of(kUvloop + "price:41"), "dashboard?");
  EXPECT_EQ(of(kLoop + "other:3"), "none");
  EXPECT_EQ(of(kLoop + "refresh:3;price:40"), "none") << "a coroutine of another task awaits it";
  EXPECT_EQ(of("price:40"), "none") << "no loop runs it";
  EXPECT_EQ(of(kLoop + "run_asgi;" + kFastApi + ";dashboard:12;price:40"), "dashboard");
  EXPECT_EQ(of(kLoop + "price:40"), "dashboard") << "the row is certain now";
}

TEST_F(TaskEndpointsTest, a_task_belongs_to_no_endpoint_if_it_is_not_clear_which) {
  const TaskStackId dashboard = handler("dashboard:12"), report = handler("report:30");
  waits("of_two", dashboard, 50);
  waits("of_two", report, 1);
  waits("seldom", dashboard, kLeastSeen - 1);
  waits("mostly_alone", dashboard, 8);
  waits("mostly_alone", {}, 2);
  waits("of_a_worker", stack({"worker:5"}), 50);
  learn_task_endpoints(profile, rows);
  for (const char* name : {"of_two", "seldom", "mostly_alone", "of_a_worker"})
    EXPECT_EQ(of(kLoop + name), "none") << name;
}

TEST_F(TaskEndpointsTest, a_task_of_a_task_belongs_to_the_handler_of_both) {
  waits("leaf", stack({"middle:8"}), 6);
  waits("middle", stack({"outer:5"}), 7);
  waits("outer", handler("dashboard:12"), 8);
  waits("itself", stack({"itself:2"}), 9);
  learn_task_endpoints(profile, rows);
  for (const char* name : {"leaf", "middle", "outer"}) EXPECT_EQ(of(kLoop + name), "dashboard?") << name;
  EXPECT_EQ(of(kLoop + "itself:2"), "none");
}

TEST_F(TaskEndpointsTest, a_job_that_only_one_handler_waits_for_belongs_to_it) {
  waits_for_job("resize", handler("upload:12"), 9);
  waits_for_job("resize", {}, 1);
  EXPECT_EQ(of(kPool + "resize:40;encode:7"), "none") << "nothing has been learnt";
  learn_task_endpoints(profile, rows);
  EXPECT_EQ(of(kPool + "resize:40;encode:7"), "upload?");
  EXPECT_EQ(of(kPool + "/usr/lib/python3.14/concurrent/futures/thread.py/run;resize:40"), "upload?");
  EXPECT_EQ(of(kAnyio + "resize:41"), "upload?");
  EXPECT_EQ(of(kPool + "other:3"), "none");
  EXPECT_EQ(of(kPool + "nightly:3;resize:40"), "none") << "another job calls it";
  EXPECT_EQ(of("bootstrap;resize:40"), "none") << "no pool runs it";
  EXPECT_EQ(of(kLoop + "resize:40"), "none") << "it is no task";
  EXPECT_EQ(of(kLoop + "run_asgi;" + kFastApi + ";report:12;resize:40"), "report");
}

TEST_F(TaskEndpointsTest, a_job_of_sync_to_async_belongs_to_the_handler) {
  const std::string asgiref = "/venv/lib/python3.12/site-packages/asgiref/sync.py/";
  const std::string old = kPool + asgiref + "SyncToAsync.thread_handler;";
  waits_for_job("query", handler("users:12"), 9);
  learn_task_endpoints(profile, rows);
  EXPECT_EQ(of(old + "query:40;parse:7"), "users?");
  EXPECT_EQ(of(old + asgiref + "SyncToAsync.__call__.<locals>.func;" + asgiref +
               "SyncToAsync.__call__.<locals>.run_child;query:40"),
            "users?");
}

TEST_F(TaskEndpointsTest, a_job_belongs_to_no_endpoint_if_it_is_not_clear_which) {
  const TaskStackId upload = handler("upload:12"), report = handler("report:30");
  waits_for_job("of_two", upload, 50);
  waits_for_job("of_two", report, 1);
  waits_for_job("seldom", upload, kLeastSeen - 1);
  waits_for_job("mostly_alone", upload, 8);
  waits_for_job("mostly_alone", {}, 2);
  waits_for_job("of_a_worker", stack({"worker:5"}), 50);
  waits("price", upload, 50);
  learn_task_endpoints(profile, rows);
  for (const char* name : {"of_two", "seldom", "mostly_alone", "of_a_worker"})
    EXPECT_EQ(of(kPool + name), "none") << name;
  EXPECT_EQ(of(kPool + "price:3"), "none") << "it is no job";
}

TEST_F(TaskEndpointsTest, a_job_of_a_task_that_a_handler_waits_for_belongs_to_the_handler) {
  waits("to_thread", handler("upload:12"), 9);
  waits_for_job("resize", stack({"to_thread:25"}), 9);
  // Tasks of this one belong to two handlers, but the chains of its jobs show which.
  waits("shared", handler("upload:12"), 9);
  waits("shared", handler("report:30"), 9);
  waits_for_job("encode", stack({"run_asgi", kFastApi, "upload:14", "shared:3"}), 9);
  waits_for_job("other", stack({"shared:3"}), 9);
  learn_task_endpoints(profile, rows);
  EXPECT_EQ(of(kPool + "resize:40"), "upload?");
  EXPECT_EQ(of(kPool + "encode:40"), "upload?");
  EXPECT_EQ(of(kPool + "other:40"), "none");
}

// A thread of AnyIO also runs handlers of Starlette, which have no mark.
TEST_F(TaskEndpointsTest, a_job_that_handlers_wait_for_is_no_handler) {
  const std::string starlette =
      "/venv/lib/python3.12/site-packages/starlette/routing.py/request_response.app;";
  waits_for_job("resize", handler("upload:12"), 9);
  waits_for_job("of_two", handler("upload:12"), 9);
  waits_for_job("of_two", handler("report:30"), 9);
  waits_for_job("index", stack({"run_asgi", "run_in_threadpool"}), 9);
  EXPECT_EQ(of(kLoop + "run_asgi;" + starlette + "about:3"), "about");
  EXPECT_EQ(of(kAnyio + "of_two:7"), "of_two?");
  learn_task_endpoints(profile, rows);
  EXPECT_EQ(of(kAnyio + "resize:40"), "upload?");
  EXPECT_EQ(of(kAnyio + "of_two:7"), "none");
  EXPECT_EQ(of(kAnyio + "index:7"), "index?");
}

TEST_F(TaskEndpointsTest, several_recordings_keep_what_was_learnt_of_each) {
  waits("price", handler("dashboard:12"), 9);
  learn_task_endpoints(profile, rows);
  Profile all;
  add_recording(all, Profile());
  add_recording(all, profile);
  ASSERT_EQ(task_endpoints(all).size(), 1u);
  EXPECT_EQ(all.frame(task_endpoints(all).begin()->second.handler).function, "dashboard");
}

TEST_F(TaskEndpointsTest, rows_and_facts_that_refer_to_nothing_are_left_out) {
  rows.put_task_group(TaskGroupId(1), {EventLoopId(1), FrameId(999)});
  rows.put_task_waiter(TaskWaiterId(1), {TaskGroupId(1), TaskStackId(77), 9});
  rows.put_task_waiter(TaskWaiterId(2), {TaskGroupId(5), {}, 9});
  rows.put_job_waiter(JobWaiterId(1), {ProcessId(9), FrameId(999), TaskStackId(77), 9});
  learn_task_endpoints(profile, rows);
  profile.emit_meta("tasks of\tx", "FastAPI\t1\tnobody\t/app/app.py");
  profile.emit_meta("tasks of\t1\tprice\t/app/app.py", "Unheard\t1\tprice\t/app/app.py");
  profile.emit_meta("tasks of\t2\tprice\t/app/app.py", "FastAPI");
  profile.emit_meta("jobs of\tx", "");
  EXPECT_TRUE(task_endpoints(profile).empty());
}

const std::string kArq = "/venv/lib/python3.12/site-packages/arq/worker.py/";
const std::string kWaitFor = "/usr/lib/python3.12/asyncio/tasks.py/wait_for";

TEST_F(TaskEndpointsTest, a_job_that_a_framework_runs_as_a_task_of_its_own_is_an_endpoint) {
  const TaskStackId awaits_job = stack({kArq + "run_job", kWaitFor});
  waits("resize:3", awaits_job, 9);
  waits("resize:3", {}, 1);
  const TaskStackId own = stack({"resize:5"});
  waits("part", own, 6);
  waits(kArq + "finish_failed_job", awaits_job, 9);
  waits("aside", stack({kArq + "run_job"}), 9);
  waits("of_another", stack({kArq + "run_job", "helper", kWaitFor}), 9);
  waits("seldom", awaits_job, kLeastSeen - 1);
  waits("mostly_alone", awaits_job, 8);
  waits("mostly_alone", {}, 2);
  EXPECT_EQ(of(kLoop + "resize:5"), "none") << "nothing has been learnt";
  learn_task_endpoints(profile, rows);
  EXPECT_EQ(of(kLoop + "resize:5;encode:7"), "resize");
  EXPECT_EQ(of(kLoop + "part:2"), "resize") << "its tasks belong to it";
  for (const std::string& name : {kArq + "finish_failed_job", std::string("aside"), std::string("of_another"),
                                  std::string("seldom"), std::string("mostly_alone")})
    EXPECT_EQ(of(kLoop + name), "none") << name;
  EXPECT_EQ(of("resize:5"), "none") << "no loop runs it";

  const Endpoints endpoints(profile, &rows);
  ASSERT_NE(endpoints.of(own), Endpoints::kNone) << "it awaits in its own task";
  EXPECT_EQ(endpoints[endpoints.of(own)].framework, "arq");
  EXPECT_EQ(endpoints.of(stack({"other:1", "resize:5"})), Endpoints::kNone);
  const Sample sample = maker.sample(thread, kLoop + "resize:5", 10);
  EXPECT_EQ(endpoints.place(sample.stack).part, EndpointPart::handler);
}

}  // namespace
}  // namespace phlox::view
