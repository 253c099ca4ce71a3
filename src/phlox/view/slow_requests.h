// The slowest single requests of event-loop servers (profile/task_time.h, Request), and where the time of
// each went. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/view/choices.h"

namespace phlox::view {

// A part of a request's time at one line of the program.
struct SlowRequestPart {
  bool awaited = false;  // of the tasks that the request waits for, all together; false: of its own task
  profile::TaskState state = profile::TaskState::waiting;
  std::string kind;   // TaskTime::kind
  std::string words;  // "the end of sleep()", "ready to run"
  Nanoseconds time = 0;
  std::string name, file;  // empty: no coroutine
  int32_t line = 0;
};

struct SlowRequest {
  profile::Request request;      // moments since the recording began
  std::string name, full, file;  // of its endpoint: label and whole name of the function
  int32_t line = 0;
  std::vector<std::string> routes;
  int32_t pid = 0;
  profile::ThreadId loop_thread;       // none: not known
  std::string thread;                  // "Thread MainThread (4711)"; empty: not known
  std::vector<SlowRequestPart> parts;  // of its own task first, then the longest first
};

// The longest first. The choices select them by process, time range and endpoint: those that ran in the
// range. `tasks`: of the same recording.
std::vector<SlowRequest> slow_requests(const profile::Profile& profile, const profile::TaskRows& tasks,
                                       const Choices& choices);

// Its routes, or the label of its function: "GET /items/{item_id}".
std::string endpoint_words(const SlowRequest& request);
// Both lie between two moments: "1.97 to 2.10 s", "before 0.05 s"; "1.97 s to 2.21 s", "at least 3.80 s".
std::string begin_words(const profile::Request& request);
std::string length_words(const profile::Request& request);

}  // namespace phlox::view
