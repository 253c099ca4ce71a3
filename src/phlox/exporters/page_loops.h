// The page's data about event loops and pools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/exporters/page_json.h"
#include "phlox/profile/profile.h"
#include "phlox/view/choices.h"

namespace phlox::exporters {

// A time in which an event loop did not wait for events (view/loop_stalls.h).
struct PageStall {
  profile::ThreadId thread;
  Nanoseconds start = 0, wall = 0;
  std::string length, place, words;
  bool exact = false, one_turn = false;
  int64_t callbacks = 0;
};
struct PageLoops {
  // How the time of event loops divides, and the pools that have no worker to spare: the longest of each.
  std::vector<std::string> words;
  std::vector<PageStall> stalls;  // the longest first
};
PageLoops loops_of_page(const profile::Profile& profile, view::Choices choices);
// `thread`: its index in the page.
void put_stall(Json& json, int64_t thread, const PageStall& stall);

}  // namespace phlox::exporters
