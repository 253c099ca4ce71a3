#include "phlox/view/prepared.h"

#include "phlox/view/awaiters.h"
#include "phlox/view/chosen_trace.h"
#include "phlox/view/native_frames.h"
#include "phlox/view/process_names.h"
#include "phlox/view/task_endpoints.h"
#include "phlox/view/time_labels.h"

namespace phlox::view {

void prepare_tasks(profile::Profile& profile, const profile::TaskRows& tasks, const Choices& choices) {
  learn_task_endpoints(profile, tasks);
  if (choices.awaiters) show_awaiters(profile, tasks);
}

Result<void> prepare_view(profile::Profile& profile, const Choices& choices, Inherited inherited) {
  prepare_processes(profile, inherited);
  return prepare_frames(profile, choices);
}

void prepare_processes(profile::Profile& profile, Inherited inherited) {
  show_process_names(profile);
  show_forks(profile, inherited);
}

Result<void> prepare_frames(profile::Profile& profile, const Choices& choices) {
  show_native_frames(profile, choices);
  if (auto shown = show_trace(profile, choices); !shown) return shown;
  return show_time_labels(profile, choices);
}

}  // namespace phlox::view
