#include "phlox/view/prepared.h"

#include "phlox/view/native_frames.h"
#include "phlox/view/process_names.h"
#include "phlox/view/time_labels.h"

namespace phlox::view {

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
  return show_time_labels(profile, choices);
}

}  // namespace phlox::view
