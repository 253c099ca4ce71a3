// The processed profile of the Firefox Profiler (profiler.firefox.com), version 60, gzipped: every thread in
// the order of time, with CPU use, categories, libraries and markers. Its docs-developer/ folder and
// src/types/profile.ts describe the fields; later versions of the profiler upgrade this one. docs/formats.md
// is the reference.
#pragma once

#include <ostream>
#include <string>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

// Gzipped.
Result<void> write_firefox(const profile::Profile& profile, const view::Choices& choices,
                           const std::string& title, std::ostream& out);
// The JSON in it.
Result<void> write_firefox_json(const profile::Profile& profile, const view::Choices& choices,
                                const std::string& title, std::ostream& out);

// "4E1D…0", the id of a library for symbol servers: a build-id's first 16 bytes as a GUID, and an age of 0.
// Empty if there are none.
std::string breakpad_id(std::string_view build_id);

}  // namespace phlox::exporters
