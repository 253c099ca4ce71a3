// What a page holds of a recording: tables in a numbering of their own, small enough to be packed and in the
// order in which the page's script wants them (web/src/model/recording.ts reads them). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/profile/profile.h"
#include "phlox/profile/sampled_events.h"
#include "phlox/profile/view.h"

namespace phlox::exporters {

struct PageFunction {
  profile::Label label;
  std::string binary;  // native: path of the mapped file
  // Native: whose time is spent in it. 0: its own; 1: Python's, of whose own C it is; 2: of the code that
  // calls it, which is the C library's.
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
  std::string library = {};  // in whose code it ran, where no native frames are known; empty: not known
  friend auto operator<=>(const PageState&, const PageState&) = default;
};

// What a thread was blocked for, and who ended that.
struct PageWait {
  std::string words;       // "a socket, 10.0.0.5:5432 (recvfrom)": as report has it
  std::string which;       // with what tells many apart that are alike: the other end, a process's number
  uint32_t place = 0;      // that asked for it
  int32_t by = -1;         // thread, as PageStretch counts; -1: none that is recorded, or nobody knows
  uint32_t by_place = 0;   // what that was doing
  std::string other = {};  // who it was, without a thread

  friend auto operator<=>(const PageWait&, const PageWait&) = default;
};

struct PageStretch {
  uint32_t thread = 0;    // index of the recording's thread
  Nanoseconds start = 0;  // since the recording's start
  Nanoseconds wall = 0;
  Nanoseconds cpu = 0;
  uint32_t samples = 0;
  uint32_t node = 0;
  uint32_t state = 0;
  int16_t cpu_number = -1;
  uint8_t event = 0;  // which of PageTables::events counted something here, from 1; 0: none
  int64_t value = 0;  // what it counted
  profile::Doing doing = profile::Doing::computing;
  uint32_t wait = 0;  // of PageTables::waits
};

// More have no room in the page's head; the first ones stay.
inline constexpr size_t kMostPageEvents = 32;

struct PageTables {
  // Index 0 of the next three is the root: "all", its place, its node.
  std::vector<PageFunction> functions;  // by name, file and line, as profile::build_call_tree orders siblings
  std::vector<PagePlace> places;        // by function and line
  std::vector<PageNode> nodes;          // the call tree by line: depth first, siblings by place
  std::vector<PageState> states;
  std::vector<PageWait> waits = std::vector<PageWait>(1);  // 0: none
  std::vector<PageStretch> stretches;                      // by thread, then by start
  // What is counted besides time: what the event that is shown counted comes first. Stretches of the others
  // have neither times nor samples: these are those of the one that is shown.
  std::vector<profile::SampledEvent> events;
};

// Of what the choices let pass, whatever of it they show: what is shown is chosen in the page.
// `with_inherited`: the same recording, whose stacks are put in place of those of `profile`
// (ExportOptions::with_inherited).
Result<PageTables> make_page_tables(const profile::Profile& profile, const profile::Choices& choices,
                                    const profile::Profile* with_inherited = nullptr);

// Drops what no stretch leads to, sorts, and numbers anew: whatever changed a table calls this last.
void settle(PageTables& tables);

}  // namespace phlox::exporters
