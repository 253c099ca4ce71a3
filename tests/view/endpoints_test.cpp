#include "phlox/view/endpoints.h"

#include <gtest/gtest.h>

#include <map>

#include "phlox/profile/recorded_words.h"
#include "phlox/profile/web_routes.h"
#include "phlox/view/forks.h"
#include "phlox/view/view.h"
#include "support/profile_of.h"

namespace phlox::view {

using namespace profile;

namespace {

using test::ProfileMaker;

const std::string kSite = "/venv/lib/python3.11/site-packages/";
const std::string kPy = "/usr/lib/python3.11/";
// As a thread of AnyIO has them.
const std::string kInThread = kPy + "threading.py/Thread._bootstrap;" + kPy +
                              "threading.py/Thread._bootstrap_inner;" + kSite +
                              "anyio/_backends/_asyncio.py/WorkerThread.run;";
const std::string kStarlette =
    "serve;" + kSite + "starlette/routing.py/request_response.<locals>.app.<locals>.app;";
const std::string kFastApi = kStarlette + kSite + "fastapi/routing.py/get_request_handler.<locals>.app;" +
                             kSite + "fastapi/routing.py/run_endpoint_function;";
const std::string kDjango = "serve;" + kSite + "django/core/handlers/base.py/BaseHandler._get_response;";
const std::string kFlask = "serve;" + kSite + "flask/app.py/Flask.dispatch_request;";
const std::string kAiohttp = "serve;" + kSite + "aiohttp/web_app.py/Application._handle;";
const std::string kCelery = "serve;" + kSite + "celery/app/trace.py/build_tracer.<locals>.trace_task;";

class EndpointsTest : public testing::Test {
 protected:
  EndpointsTest() : thread_(maker_.thread("MainThread")) {}

  StackId add(const std::string& frames, ThreadId thread = {}) {
    const Sample sample = maker_.sample(thread ? thread : thread_, frames, 10);
    maker_.put(sample);
    return sample.stack;
  }
  // "read_item"; "read_item?": it is only likely; "none", "not read".
  std::string of(StackId stack) {
    const Endpoints endpoints(profile_);
    const uint32_t number = endpoints.of(stack);
    if (number == Endpoints::kNone) return "none";
    if (number == Endpoints::kNotRead) return "not read";
    return profile_.frame(endpoints[number].frame).qualified_name + (endpoints[number].certain ? "" : "?");
  }
  std::string of(const std::string& frames) { return of(add(frames)); }

  Profile profile_;
  ProfileMaker maker_{profile_};
  ThreadId thread_;
};

TEST_F(EndpointsTest, the_handler_is_what_the_dispatcher_calls_with_all_that_it_calls_itself) {
  EXPECT_EQ(of(kFastApi + "read_item:7"), "read_item");
  EXPECT_EQ(of(kFastApi + "read_item:9;query;" + kSite + "db.py/execute"), "read_item");
  EXPECT_EQ(of(kStarlette + "home"), "home");
  EXPECT_EQ(of(kDjango + "users"), "users");
  EXPECT_EQ(of(kFlask + "index"), "index");
  EXPECT_EQ(of(kCelery + "add"), "add");
  EXPECT_EQ(of("serve;" + kSite + "tornado/web.py/RequestHandler._execute;Main.get"), "Main.get");
  EXPECT_EQ(of("serve;" + kSite + "bottle.py/Bottle._handle;hello"), "hello");
  EXPECT_EQ(of("serve;" + kSite + "falcon/app.py/App.__call__;Things.on_get"), "Things.on_get");
  EXPECT_EQ(of("serve;" + kSite + "sanic/app.py/Sanic.handle_request;hello"), "hello");
  // As Sanic compiles it again when it starts.
  EXPECT_EQ(of("serve;handle_request/handle_request;hello"), "hello");
  EXPECT_EQ(of("serve;" + kSite + "quart/app.py/Quart.dispatch_request;hello"), "hello");
}

TEST_F(EndpointsTest, what_the_framework_does_itself_is_no_endpoint) {
  EXPECT_EQ(of(kFastApi + kPy + "contextlib.py/_GeneratorContextManager.__enter__;hook"), "none");
  EXPECT_EQ(of(kFastApi), "none");
  EXPECT_EQ(of(kStarlette + kSite + "fastapi/routing.py/get_request_handler.<locals>.app;" + kSite +
               "fastapi/utils.py/is_body_allowed_for_status_code"),
            "none");
  EXPECT_EQ(of(kStarlette + kSite + "fastapi/dependencies/utils.py/solve_dependencies;get_user"), "none");
  EXPECT_EQ(of(kStarlette + "MyResponse.__call__"), "none");
  EXPECT_EQ(of(kDjango + "Audit.process_view"), "none");
  EXPECT_EQ(of(kDjango + kSite + "django/template/response.py/SimpleTemplateResponse.render;my_tag"), "none");
  EXPECT_EQ(of(kCelery + "Base.on_success"), "none");
  EXPECT_EQ(of(kCelery + "<string>/<lambda>"), "none");
  EXPECT_EQ(of("serve;" + kSite + "tornado/web.py/RequestHandler._execute;Main.prepare"), "none");
  EXPECT_EQ(of("serve;" + kSite + "falcon/app.py/App.__call__;Auth.process_request"), "none");
  EXPECT_EQ(of("main;work"), "none");
  EXPECT_EQ(of("/app/flask_like.py/dispatch_request;index"), "none") << "the file is not Flask's";
}

TEST_F(EndpointsTest, the_innermost_dispatcher_is_the_one_that_counts) {
  EXPECT_EQ(
      of(kStarlette + "custom_route_handler;" + kSite + "fastapi/routing.py/run_endpoint_function;read"),
      "read");
  EXPECT_EQ(of(kStarlette + "custom_route_handler;" + kSite + "fastapi/routing.py/run_endpoint_function"),
            "none");
}

TEST_F(EndpointsTest, a_router_that_calls_a_middleware_is_no_dispatcher) {
  EXPECT_EQ(of("serve;" + kSite + "starlette/routing.py/Router.app;Timing.__call__"), "none");
  EXPECT_EQ(of("serve;" + kSite + "starlette/routing.py/Router.app;timing"), "none");
  // Before Python 3.11 all of them are called app.
  const std::string router =
      "serve;" + kSite + "starlette/routing.py/__call__;" + kSite + "starlette/routing.py/app;";
  EXPECT_EQ(of(router + "timing"), "none");
  EXPECT_EQ(of(router + kSite + "starlette/routing.py/handle;" + kSite + "starlette/routing.py/app;home"),
            "home");
  EXPECT_EQ(of(router + kSite + "starlette/_exception_handler.py/wrapped_app;" + kSite +
               "starlette/routing.py/app;other"),
            "other");
}

TEST_F(EndpointsTest, a_function_in_a_worker_thread_is_likely_one_if_the_process_has_the_framework) {
  const StackId in_thread = add(kInThread + "read_sync");
  EXPECT_EQ(of(in_thread), "none") << "no Starlette in it: any program may use AnyIO";
  add(kStarlette);
  EXPECT_EQ(of(in_thread), "read_sync?");
  EXPECT_EQ(of(kInThread + kSite + "starlette/concurrency.py/_next;rows"), "none");
  EXPECT_EQ(of("main;" + kSite + "anyio/_backends/_asyncio.py/AsyncIOBackend.run;main"), "none");
  const ThreadId elsewhere = maker_.thread("worker", 99, maker_.process(4712));
  EXPECT_EQ(of(add(kInThread + "convert", elsewhere)), "none") << "the process has no Starlette";
}

TEST_F(EndpointsTest, where_the_framework_names_its_endpoints_in_threads_other_functions_there_are_none) {
  add(kStarlette);
  const StackId dependency = add(kInThread + "get_user");
  EXPECT_EQ(of(dependency), "get_user?");
  EXPECT_EQ(of(kInThread + kSite + "fastapi/telemetry/_api.py/_run_sync_endpoint;read_sync"), "read_sync");
  EXPECT_EQ(of(dependency), "none");
}

TEST_F(EndpointsTest, a_sync_view_of_django_runs_in_a_thread_of_asgiref) {
  const std::string thread = "run;" + kSite + "asgiref/sync.py/SyncToAsync.thread_handler;";
  const StackId view = add(thread + kSite + "asgiref/sync.py/SyncToAsync.__call__.<locals>.func;" + kSite +
                           "asgiref/sync.py/SyncToAsync.__call__.<locals>.func.<locals>.run_child;" + kSite +
                           "django/views/generic/base.py/View.dispatch;Users.get");
  EXPECT_EQ(of(view), "none") << "no Django in it";
  add("serve;" + kSite + "django/core/handlers/base.py/BaseHandler._get_response_async");
  EXPECT_EQ(of(view), "Users.get?");
  EXPECT_EQ(of(thread + "users"), "users?") << "asgiref 3.5";
  EXPECT_EQ(of(thread + kSite + "django/db/models/query.py/QuerySet.get"), "none");
}

TEST_F(EndpointsTest, a_function_that_is_certain_somewhere_is_certain) {
  const StackId in_thread = add(kInThread + "read_item");
  add(kFastApi + "read_item");
  EXPECT_EQ(of(in_thread), "read_item");
}

TEST_F(EndpointsTest, wrappers_of_libraries_are_passed_over) {
  EXPECT_EQ(of(kDjango + kPy + "contextlib.py/ContextDecorator.__call__.<locals>.inner;" + kSite +
               "django/views/decorators/csrf.py/csrf_exempt.<locals>._view_wrapper;" + kSite +
               "django/views/generic/base.py/View.as_view.<locals>.view;" + kSite +
               "rest_framework/views.py/APIView.dispatch;Users.get"),
            "Users.get");
  EXPECT_EQ(of(kFlask + kSite + "flask/views.py/View.as_view.<locals>.view;Items.__init__"), "none");
  EXPECT_EQ(of(kCelery + kSite +
               "celery/app/trace.py/setup_worker_optimizations.<locals>.__protected_call__;"
               "refresh"),
            "refresh");
  EXPECT_EQ(
      of(kStarlette + kSite + "sentry_sdk/integrations/starlette.py/patch.<locals>._sentry_async_func;home"),
      "home");
}

TEST_F(EndpointsTest, a_decorator_of_the_program_calls_handlers_where_it_calls_several_functions) {
  const std::string at_check = kFlask + "login.<locals>.wrapper:12;";
  const std::string at_call = kFlask + "login.<locals>.wrapper:13;";
  const StackId page = add(at_call + "profile_page;render");
  EXPECT_EQ(of(page), "login.<locals>.wrapper?") << "it may be a function of the decorator";
  EXPECT_EQ(of(at_call + "settings_page"), "settings_page?");
  EXPECT_EQ(of(page), "profile_page?");
  EXPECT_EQ(of(at_check + "check_token;decode"), "login.<locals>.wrapper?");
  EXPECT_EQ(of(at_call), "login.<locals>.wrapper?");
  EXPECT_EQ(of(at_call + kSite + "jwt/api.py/decode;check"), "login.<locals>.wrapper?");
  EXPECT_EQ(of(at_call + "timed.<locals>.inner:20;report"), "timed.<locals>.inner?");
  EXPECT_EQ(of(at_call + "timed.<locals>.inner:20;basket"), "basket?") << "a decorator below another";
  const StackId mail = add(kCelery + "ContextTask.__call__:5;send_mail");
  EXPECT_EQ(of(kCelery + "ContextTask.__call__:5;resize"), "resize?");
  EXPECT_EQ(of(mail), "send_mail?");
  EXPECT_EQ(of(kFlask + "wrapper"), "wrapper?") << "before Python 3.11 a closure is not told from a function";
  EXPECT_EQ(of(kFlask + "Gift.wrapper;fold"), "Gift.wrapper") << "a method";
}

TEST_F(EndpointsTest, a_framework_that_calls_one_function_only_may_call_a_middleware) {
  const StackId first = add(kAiohttp + "timed;handler");
  EXPECT_EQ(of(first), "timed?");
  add(kAiohttp + "other");
  EXPECT_EQ(of(first), "timed");
  EXPECT_EQ(of(kAiohttp + "auth_middleware:4;secret"), "auth_middleware?");
  EXPECT_EQ(of(kAiohttp + "auth_middleware:4;public"), "public?");
  EXPECT_EQ(of(kAiohttp + "auth_middleware:4;" + kSite + "aiohttp/web_urldispatcher.py/View._iter;Pages.get"),
            "Pages.get?");
  EXPECT_EQ(of(kAiohttp + kSite + "aiohttp_session/__init__.py/factory;page"), "page");
}

TEST_F(EndpointsTest, a_child_that_was_forked_in_a_handler_has_its_own_requests_only) {
  EXPECT_EQ(of(kFlask + "index;" + std::string(kForkedHere) + ";work"), "none");
  EXPECT_EQ(of(kFlask + "index;" + std::string(kForkedHere) + ";" + kCelery + "add"), "add");
}

TEST_F(EndpointsTest, frames_that_were_not_read_hide_the_endpoint_unless_it_is_above_them) {
  const std::string hidden = "(… 12 frames left out)";
  EXPECT_EQ(of("serve;" + hidden + ";query"), "not read");
  EXPECT_EQ(of(kFlask + hidden + ";query"), "not read");
  EXPECT_EQ(of(kFlask + "index;" + hidden + ";query"), "index");
  EXPECT_EQ(of("serve;" + hidden + ";" + kFlask + "index"), "index");
  Sample rejected = maker_.sample(thread_, "(changed while it was read)", 10);
  rejected.quality = Quality::rejected;
  maker_.put(rejected);
  EXPECT_EQ(Endpoints(profile_).of(rejected), Endpoints::kNotRead);
}

// The thread of a loop that answers requests. Its waits for events were read, but for the last ones.
class UnreadWaits : public EndpointsTest {
 protected:
  static constexpr int16_t kEpoll = 232, kRecv = 45, kFutex = 202;
  static constexpr Nanoseconds kMs = 1'000'000;
  const std::string kOnce = kPy + "asyncio/runners.py/run;" + kPy + "asyncio/base_events.py/_run_once;";
  const std::string kPoll = kOnce + kPy + "selectors.py/select";
  const std::string kUnread = std::string(kWaitNotRead);

  UnreadWaits() {
    profile_.emit_meta("machine", "x86_64");
    for (int i = 0; i < 120; ++i) {
      maker_.put(maker_.blocked(thread_, kPoll, 5 * kMs, kEpoll));
      run(kOnce + kFlask + "index");
    }
  }
  void run(const std::string& frames) { maker_.add(thread_, frames, kMs); }
  Sample wait(int16_t call) {
    const Sample sample = maker_.blocked(thread_, kUnread, 5 * kMs, call);
    maker_.put(sample);
    return sample;
  }
  Sample no_cpu(const std::string& frames) {
    Sample sample = maker_.sample(thread_, frames, kMs);
    sample.cpu = 0;
    sample.cpu_state = CpuState::runnable;
    maker_.put(sample);
    return sample;
  }
  std::string who(const Sample& sample) {
    const Endpoints endpoints(profile_);
    const uint32_t number = endpoints.of(sample);
    return number == Endpoints::kNotRead ? "not read" : endpoint_label(profile_, endpoints, number);
  }
};

TEST_F(UnreadWaits, for_events_and_for_a_cpu_directly_after_them_are_of_no_endpoint) {
  const Sample events = wait(kEpoll), cpu = no_cpu(kUnread), more = no_cpu(kUnread);
  for (const Sample& one : {events, cpu, more}) EXPECT_EQ(who(one), "(no endpoint)");
}

TEST_F(UnreadWaits, for_a_cpu_after_anything_else_may_be_in_an_endpoint) {
  const Sample other = wait(kRecv), after = no_cpu(kUnread);
  run(kOnce + kFlask + "index");
  const Sample preempted = no_cpu(kUnread);
  EXPECT_EQ(who(other), "not read") << "no other wait in this call is known";
  EXPECT_EQ(who(after), "not read");
  EXPECT_EQ(who(preempted), "not read") << "it ran before";
  wait(kEpoll);
  Sample late = maker_.sample(thread_, kUnread, kMs);
  late.cpu_state = CpuState::runnable;
  late.start += kMs / 100;
  maker_.put(late);
  EXPECT_EQ(who(late), "not read") << "it may have run in between";
}

TEST_F(UnreadWaits, of_a_worker_of_a_pool_are_of_no_endpoint_either) {
  const std::string worker = kInThread + kPy + "queue.py/get;" + kPy + "threading.py/wait";
  thread_ = maker_.thread("AnyIO worker thread", 5001);
  for (int i = 0; i < 120; ++i) {
    maker_.put(maker_.blocked(thread_, worker, 5 * kMs, kFutex));
    run(kInThread + "read_sync");
  }
  const Sample fetch = wait(kFutex), cpu = no_cpu(kUnread);
  EXPECT_EQ(who(fetch), "(no endpoint)");
  EXPECT_EQ(who(cpu), "(no endpoint)");
}

TEST_F(UnreadWaits, are_chosen_and_shown_like_all_that_is_of_no_endpoint) {
  wait(kRecv);
  const Sample events = wait(kEpoll), cpu = no_cpu(kUnread);
  Choices choices;
  choices.endpoint_regex = "no endpoint";
  const auto filter = SampleFilter::make(profile_, choices);
  ASSERT_TRUE(filter);
  for (const Sample& one : {events, cpu}) EXPECT_TRUE(filter->part(one).passes);
  show_endpoints(profile_);
  std::map<std::string, Nanoseconds> roots;
  for (const Sample& sample : profile_.samples()) {
    StackId root = sample.stack;
    while (profile_.stack(root).parent) root = profile_.stack(root).parent;
    roots[profile_.frame(profile_.stack(root).frame).function] += sample.wall;
  }
  EXPECT_EQ(roots, (std::map<std::string, Nanoseconds>{{"(no endpoint)", (120 * 5 + 6) * kMs},
                                                       {"index (app.py:1)", 120 * kMs},
                                                       {"(stack not read)", 5 * kMs}}));
}

TEST_F(EndpointsTest, cpu_time_that_no_sample_found_in_use_may_be_of_any_endpoint) {
  add(kFlask + "index");
  EXPECT_EQ(of(std::string(kBetweenSamples)), "not read");
}

TEST_F(EndpointsTest, tasks_have_the_endpoint_of_their_coroutines) {
  TaskRows tasks;
  tasks.put_event_loop(EventLoopId(1), {ProcessId(1), thread_, "asyncio"});
  uint32_t count = 0;
  const auto put = [&](uint32_t parent, const std::string& frame) {
    tasks.put_task_stack(TaskStackId(++count), {TaskStackId(parent), maker_.frame(frame)});
    tasks.put_task_time(TaskTimeId(count), {EventLoopId(1), TaskStackId(count), TaskState::waiting, "sleep"});
  };
  put(0, "run_asgi:3");
  put(1, kSite + "fastapi/routing.py/run_endpoint_function");
  put(2, "read_item:9");
  put(3, kPy + "asyncio/tasks.py/sleep");
  put(2, kSite + "starlette/concurrency.py/run_in_threadpool");
  const StackId in_thread = add(kInThread + "read_sync");
  const Endpoints endpoints(profile_, &tasks);
  EXPECT_EQ(endpoints.of(TaskStackId(2)), Endpoints::kNone);
  const uint32_t number = endpoints.of(TaskStackId(3));
  ASSERT_TRUE(number >= 1 && number <= endpoints.size());
  EXPECT_EQ(endpoints.of(TaskStackId(4)), number);
  EXPECT_EQ(endpoints.of(TaskStackId(5)), Endpoints::kNone) << "the handler runs in a thread";
  EXPECT_EQ(profile_.frame(endpoints[number].frame).function, "read_item");
  EXPECT_EQ(endpoints[number].framework, "FastAPI");
  EXPECT_NE(endpoints.of(in_thread), Endpoints::kNone) << "the process has FastAPI: its tasks show it";
}

TEST_F(EndpointsTest, rows_that_refer_to_nothing_are_no_endpoint) {
  profile_.emit(StackId(1), Stack{StackId(7), FrameId(99)});
  profile_.emit(StackId(2), Stack{StackId(1), FrameId()});
  const Endpoints endpoints(profile_);
  EXPECT_EQ(endpoints.of(StackId(1)), Endpoints::kNone);
  EXPECT_EQ(endpoints.of(StackId(77)), Endpoints::kNone);
  EXPECT_EQ(endpoints.size(), 0u);
}

TEST_F(EndpointsTest, the_view_puts_the_endpoint_at_the_root_or_shows_some_only) {
  add(kFlask + "index");
  add(kFlask + "index;query");
  add(kFlask + "about");
  add("main;work");
  Choices choices;
  choices.endpoint_regex = "^index ";
  const auto filter = SampleFilter::make(profile_, choices);
  ASSERT_TRUE(filter);
  std::vector<bool> passed;
  for (const Sample& sample : profile_.samples()) passed.push_back(filter->part(sample).passes);
  EXPECT_EQ(passed, (std::vector<bool>{true, true, false, false}));
  choices.endpoint_regex = "(";
  EXPECT_EQ(SampleFilter::make(profile_, choices).error().kind, ErrorKind::usage);
  choices.endpoint_regex.reset();

  show_endpoints(profile_);
  const auto tree = build_call_tree(profile_, choices);
  ASSERT_TRUE(tree);
  std::map<std::string, int64_t> roots;
  for (size_t i = 1; i < tree->nodes.size(); ++i) {
    if (tree->nodes[i].parent == 0) roots[tree->labels[tree->nodes[i].label].name] = tree->nodes[i].total;
  }
  EXPECT_EQ(roots, (std::map<std::string, int64_t>{
                       {"index (app.py:1)", 20}, {"about (app.py:1)", 10}, {"(no endpoint)", 10}}));
}

TEST_F(EndpointsTest, a_route_that_is_known_is_part_of_the_label_and_can_be_chosen) {
  add(kFastApi + "read_item:7");
  add(kFastApi + "home:3");
  const auto number_of = [&](const std::string& name) {
    const Endpoints endpoints(profile_);
    for (uint32_t i = 1; i <= endpoints.size(); ++i)
      if (profile_.frame(endpoints[i].frame).qualified_name == name) return i;
    return 0U;
  };
  const Endpoints endpoints(profile_);
  const Frame& frame = profile_.frame(endpoints[number_of("read_item")].frame);
  const std::string key = route_key(frame.qualified_name, frame.first_line, frame.file);
  EXPECT_EQ(endpoint_label(profile_, endpoints, number_of("read_item")).substr(0, 18), "read_item (app.py:");
  profile_.emit_meta(key, "GET /items/{id}\nPUT /items/{id}\nPUT /things/{id}");
  EXPECT_EQ(endpoint_label(profile_, endpoints, number_of("read_item")).substr(0, 53),
            "GET /items/{id}, PUT /items/{id} and 1 more read_item");
  EXPECT_EQ(endpoint_routes(profile_, endpoints, number_of("read_item")).size(), 3U);
  EXPECT_TRUE(endpoint_routes(profile_, endpoints, number_of("home")).empty());
  for (const char* regex : {"^GET /items/", "^PUT /things/", "^read_item", "more read_item"}) {
    const auto chosen = chosen_endpoints(profile_, endpoints, regex);
    EXPECT_TRUE(chosen[number_of("read_item")]) << regex;
    EXPECT_FALSE(chosen[number_of("home")]) << regex;
  }
}

TEST_F(EndpointsTest, a_sample_without_a_stack_and_a_wake_without_one_stay_so) {
  add(kFlask + "index");
  Sample bare = maker_.sample(thread_, "", 10);
  maker_.put(bare);
  profile_.emit(WakerId(1), Waker{thread_, {}, {}});
  show_endpoints(profile_);
  EXPECT_FALSE(profile_.samples().back().stack);
  EXPECT_FALSE(profile_.wakers().front().stack);
}

}  // namespace
}  // namespace phlox::view
