// A page's data about a recording: tables with a numbering of their own, small enough to be packed and in the
// order that the page's script needs (web/src/model/recording.ts reads them). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/view.h"

namespace phlox::exporters {

struct PageFunction {
  view::Label label;
  std::string binary;  // native: path of the mapped file
  // Native: the owner of the time in it. 0: itself; 1: Python (the interpreter's own C); 2: the calling code
  // (the C library). A marker: 1 if it is in the place of Python functions (view::hides_python).
  uint8_t owner = 0;
};

struct PagePlace {
  uint32_t function = 0;
  int32_t line = 0;
  std::string file = {};  // of the line; empty: the function's
  friend auto operator<=>(const PagePlace&, const PagePlace&) = default;
};

struct PageNode {
  uint32_t parent = 0;
  uint32_t place = 0;
};

struct PageState {
  profile::CpuState cpu = profile::CpuState::unknown;
  profile::GilState gil = profile::GilState::unknown;
  bool collecting = false;
  int16_t system_call = -1;
  profile::Quality quality = profile::Quality::ok;
  // The library whose code ran, if no native frames are known; empty: not known.
  std::string library = {};
  friend auto operator<=>(const PageState&, const PageState&) = default;
};

// A wait target, with its waker.
struct PageWait {
  std::string words;  // "a socket, 10.0.0.5:5432 (recvfrom)": as report has it
  // With the details in which similar targets differ: the other end, a process's number.
  std::string which;
  uint32_t place = 0;      // the place that caused the wait
  int32_t by = -1;         // thread, as PageSpan counts; -1: not recorded, or not known
  uint32_t by_place = 0;   // the place of the waker
  std::string other = {};  // the waker, if it is no recorded thread

  friend auto operator<=>(const PageWait&, const PageWait&) = default;
};

struct PageSpan {
  uint32_t thread = 0;    // index of the recording's thread
  Nanoseconds start = 0;  // since the recording's start
  Nanoseconds wall = 0;
  Nanoseconds cpu = 0;
  uint32_t samples = 0;
  uint32_t node = 0;
  uint32_t state = 0;
  int16_t cpu_number = -1;
  uint8_t event = 0;  // the event of PageTables::events with a count here, from 1; 0: none
  int64_t value = 0;  // its count
  view::Doing doing = view::Doing::computing;
  uint32_t wait = 0;      // of PageTables::waits
  uint32_t endpoint = 0;  // of PageTables::endpoints
};

// The page's head has no room for more; the first ones stay.
inline constexpr size_t kMostPageEvents = 32;

struct PageTables {
  // Index 0 of the next three is the root: "all", its place, its node.
  std::vector<PageFunction> functions;  // by name, file and line, as view::build_call_tree orders siblings
  std::vector<PagePlace> places;        // by function and line
  std::vector<PageNode> nodes;          // the call tree by line: depth first, siblings by place
  std::vector<PageState> states;
  std::vector<PageWait> waits = std::vector<PageWait>(1);  // 0: none
  // Labels of endpoints (view/endpoints.h), "(no endpoint)" first. Only that one: there are none.
  std::vector<std::string> endpoints = {std::string(view::kNoEndpoint)};
  std::vector<PageSpan> spans;  // by thread, then by start
  // Counts besides time: those of the event that is shown come first. Intervals of the other events have
  // neither times nor samples; these belong to the event that is shown.
  std::vector<profile::SampledEvent> events;
};

// For everything that passes the choices, shown or not: the page chooses what to show. `with_inherited`: the
// same recording; its stacks replace those of `profile` (ExportOptions::with_inherited).
Result<PageTables> make_page_tables(const profile::Profile& profile, const view::Choices& choices,
                                    const profile::Profile* with_inherited = nullptr);

// Drops rows that no interval leads to, sorts, and renumbers: call it last after every change of a table.
void settle(PageTables& tables);

// The index of this endpoint, which is added if it is new.
uint32_t endpoint_index(PageTables& tables, const std::string& label);

}  // namespace phlox::exporters
