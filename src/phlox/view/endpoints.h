// Whose request a stack belongs to: the endpoint is the function of the program that a known framework calls
// for a request or a task (dispatchers.h). Decided by the stack alone, so it works for every recording, for
// the stacks of threads and the coroutines of tasks. Where no rule fits, there is no endpoint. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/profile/task_time.h"
#include "phlox/view/unread_fetches.h"

namespace phlox::view {

struct Endpoint {
  profile::FrameId frame;      // one of the function's
  std::string_view framework;  // "FastAPI"
  // false: the function may also be a middleware, a dependency or another one that the framework calls.
  bool certain = false;
};

// In which part of the work for an endpoint a stack is: in its handler, in a task that the handler awaits, or
// in a job that a thread of a pool runs for it.
enum class EndpointPart : uint8_t { handler, task, job };
struct EndpointPlace {
  EndpointPart part = EndpointPart::handler;
  profile::FrameId function;  // the outermost one of the task or the job; none: of a handler
};

class Endpoints {
 public:
  static constexpr uint32_t kNone = 0;
  static constexpr uint32_t kNotRead = UINT32_MAX;  // frames are missing that may show it

  // What the stacks show of one process.
  struct Seen {
    uint32_t families = 0;    // of frameworks
    bool in_threads = false;  // DispatchRule::calls_them_in_threads
  };

  // `tasks`: of the same recording; null: none. Without `samples`, of() a sample is not to be asked: what is
  // known of samples without a stack takes the rule of work (work.h).
  explicit Endpoints(const profile::Profile& profile, const profile::TaskRows* tasks = nullptr,
                     bool samples = true);

  // A number from 1 to size(), or one of the two above.
  uint32_t of(profile::StackId stack) const {
    return stack.value < stacks_.size() ? stacks_[stack.value] : kNone;
  }
  uint32_t of(profile::TaskStackId stack) const {
    return stack.value < task_stacks_.size() ? task_stacks_[stack.value] : kNone;
  }
  uint32_t of(const profile::Sample& sample) const {
    const uint32_t number = sample.quality == profile::Quality::rejected ? kNotRead : of(sample.stack);
    return number == kNotRead && fetches_.contains(sample) ? kNone : number;
  }
  // Of a stack of an endpoint.
  EndpointPlace place(profile::StackId stack) const {
    return stack.value < places_.size() ? places_[stack.value] : EndpointPlace();
  }
  uint32_t size() const { return static_cast<uint32_t>(endpoints_.size()); }
  const Endpoint& operator[](uint32_t number) const { return endpoints_[number - 1]; }
  const Seen& seen(profile::ProcessId process) const { return in_process_[process.value]; }

 private:
  friend class FindingEndpoints;
  std::vector<Endpoint> endpoints_;
  std::vector<uint32_t> stacks_, task_stacks_;  // by id
  std::vector<EndpointPlace> places_;           // by id of a stack
  std::vector<Seen> in_process_;                // by id
  UnreadFetches fetches_;
};

// Keeps what the stacks showed of each process, as facts of the profile: its endpoints then depend on earlier
// intervals, too (intervals.h). The key has the process's number behind it.
inline constexpr std::string_view kDispatchersSeen = "dispatchers seen.";
void keep_dispatchers_seen(profile::Profile& profile, const profile::TaskRows& tasks);

inline constexpr std::string_view kNoEndpoint = "(no endpoint)", kEndpointNotRead = "(stack not read)";

// "GET /items/{item_id}": all that lead to its function, sorted; empty: not known (web_routes.h).
std::vector<std::string> endpoint_routes(const profile::Profile& profile, const Endpoints& endpoints,
                                         uint32_t number);
// "GET /items/{item_id} read_item (app.py:12)", without a route "read_item (app.py:12)"; or one of these two.
std::string endpoint_label(const profile::Profile& profile, const Endpoints& endpoints, uint32_t number);

// Those whose label, function or one of whose routes matches, by number; the last one: kNotRead. RE2 syntax;
// none matches an invalid expression.
std::vector<bool> chosen_endpoints(const profile::Profile& profile, const Endpoints& endpoints,
                                   const std::string& regex);

// Puts the label of its endpoint at the root of each stack.
void show_endpoints(profile::Profile& profile);

}  // namespace phlox::view
