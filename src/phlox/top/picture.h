// The numbers of one refresh. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/top/model.h"
#include "phlox/view/view.h"

namespace phlox::top {

// A function or a line. Shares are parts of what is shown, 0 to 1.
struct PlaceRow {
  std::string name;                    // any bytes
  std::string where;                   // "app.py:7"
  double self = 0, total = 0;          // of the last seconds
  double self_all = 0, total_all = 0;  // since the start
};

// Parts of the thread's wall time. gil_waits is no part of blocked.
struct ThreadRow {
  profile::ThreadId id;
  std::string name;  // "worker-1"
  int32_t tid = 0, pid = 0;
  double cpu = 0;  // of one CPU
  double running = 0, runnable = 0, gil_waits = 0, blocked = 0;
  double gil_holds = 0;
  std::string busiest;
  // The longest wait target, if it takes half of the time or more: "a socket, 10.0.0.5:5432". Empty: it
  // computes.
  std::string waits_for;
  double waits = 0;
};

struct ProcessRow {
  profile::ProcessId id;
  int32_t pid = 0;
  std::string command;
  double cpu = 0;        // of one CPU, all its threads
  double gil_holds = 0;  // of the time
  double gil_waits = 0;  // of its threads, added up
  size_t threads = 0;
  std::string busiest;
  std::string how_ended;
};

// An event loop and parts of its time, of the last seconds.
struct LoopRow {
  profile::ThreadId id;
  std::string name;  // of its thread
  int32_t tid = 0;
  std::string kind;  // "asyncio"
  double idle = 0, running = 0, blocked = 0, gil_waits = 0, runnable = 0, unknown = 0;
  std::string blocked_in;  // "fetch (app.py:7)": where its callbacks were blocked longest
  std::string stall;       // the longest; empty: none of profile::kStall and more
};

struct StackRow {
  std::string name, where;
};

struct Picture {
  Nanoseconds span = 0, since_start = 0;  // of the last seconds, and of the whole time
  double cpu = 0, gil_holds = 0,
         gil_waits = 0;  // of everything picked; gil_holds: of the busiest process
  size_t threads = 0, processes = 0;
  std::vector<PlaceRow> places;
  std::vector<ThreadRow> threads_seen;     // the busiest first
  std::vector<ProcessRow> processes_seen;  // likewise
  std::vector<LoopRow> loops;              // the longest first
  // The heaviest stack of the last seconds through the requested place, innermost first.
  std::vector<StackRow> stack;
  double stack_share = 0;
  std::string quality;  // "200 Hz, 3 rejected"
  double left_out = 0;  // of all time since the start: stacks beyond the limit
};

struct PictureOptions {
  view::Choices choices;  // by line or not, show, weight
  // The place whose stack is requested; empty: none.
  std::string stack_name, stack_where;
};

Result<Picture> make_picture(const Seen& seen, const PictureOptions& options);

}  // namespace phlox::top
