// A recording as a flame graph: its title, the part that is shown, how far to trust it, and the tree. Pure.
#pragma once

#include <string>
#include <vector>

#include "phlox/exporters/flame_picture.h"
#include "phlox/exporters/registry.h"
#include "phlox/profile/profile.h"
#include "phlox/view/quality.h"

namespace phlox::exporters {

FlamePicture make_picture(const profile::Profile& profile, const view::Choices& choices, view::CallTree tree,
                          const ExportOptions& options);

// Nanoseconds since 1970; 0: not known.
int64_t recording_start_time(const profile::Profile& profile);

// "main.py (pid 4711)": the program of a recording, from its processes and meta.
std::string recording_title(const profile::Profile& profile);
// "Python 3.12.1, pid 12, 4 threads over 10.0 s, 2026-11-23 08:30 UTC on host": the facts of a recording,
// whatever is shown.
std::string recording_facts(const profile::Profile& profile);
// ", only while running, only pid 12 from 1.00 s": the part that the choices select; empty: all.
std::string choices_words(const profile::Profile& profile, const view::Choices& choices);
// The recorder was killed.
bool is_unfinished(const profile::Profile& profile);
// How far to trust it, and what it lacks. Displayable.
std::vector<std::string> quality_lines(const profile::Profile& profile, const view::QualitySummary& quality);
// Both, and the weight: the texts of a picture.
std::string recording_subtitle(const profile::Profile& profile, const view::Choices& choices);

}  // namespace phlox::exporters
