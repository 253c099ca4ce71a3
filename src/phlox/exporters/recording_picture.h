// A recording as a flame graph: its title, what is shown of it, how far it can be believed, and the tree.
// Pure.
#pragma once

#include <string>

#include "phlox/exporters/flame_picture.h"
#include "phlox/exporters/registry.h"
#include "phlox/profile/profile.h"

namespace phlox::exporters {

FlamePicture make_picture(const profile::Profile& profile, const profile::Choices& choices,
                          profile::CallTree tree, const ExportOptions& options);

// Nanoseconds since 1970; 0: not known.
int64_t recording_start_time(const profile::Profile& profile);

// "main.py (pid 4711)": what a recording is of, from its processes and meta.
std::string recording_title(const profile::Profile& profile);
// "Python 3.12.1, 10.0 s of 4 threads; wall time of states running, runnable": what is shown of it.
std::string recording_subtitle(const profile::Profile& profile, const profile::Choices& choices);

}  // namespace phlox::exporters
