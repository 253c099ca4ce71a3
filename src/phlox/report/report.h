// `phlox report`: where the time went, in words and tables. Pure: a Profile in, text out; a function of the
// caller provides source text. Never prints, never opens a file.
//
// Every share has a 99 % interval: the error of sampling in this recording (sampling_error.h). Time that the
// kernel measured has no such error; only its place may have one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/profile/descendants.h"
#include "phlox/profile/kept.h"
#include "phlox/profile/task_time.h"
#include "phlox/view/endpoints.h"
#include "phlox/view/loop_stalls.h"
#include "phlox/view/loops_and_pools.h"
#include "phlox/view/quality.h"
#include "phlox/view/resource.h"
#include "phlox/view/signals.h"
#include "phlox/view/slow_requests.h"
#include "phlox/view/traces.h"
#include "phlox/view/view.h"
#include "phlox/view/wait_class.h"
#include "phlox/view/work.h"

namespace phlox::report {

// One of several recordings in one report.
struct RecordingRow {
  std::string name;
  Nanoseconds elapsed = 0, wall = 0, cpu = 0;  // of its threads, as the choices select them
  uint64_t samples = 0;
  size_t processes = 0;
};
Result<RecordingRow> recording_row(const std::string& name, const profile::Profile& profile,
                                   const view::Choices& choices);

struct ReportOptions {
  view::Choices choices;                 // only the program of `by` is used
  size_t limit = 15;                     // rows of each list
  std::vector<RecordingRow> recordings;  // if there are several
  Nanoseconds shortest_stall = view::kStall;
  const profile::TaskRows* tasks = nullptr;  // of the same recording; null: not known
};

// A part of the whole, with the interval of its share.
struct Estimate {
  int64_t weight = 0;  // ns, or samples if these are the weight
  double share = 0;    // of the whole, 0..1
  double low = 0;      // of the share: 99 % interval
  double high = 0;
};

// The native function that has most of the time of a Python function or line. Empty: no native code was found
// there, or the recording has no native frames.
struct NativeBeneath {
  std::string name;  // as text shows it
  std::string full;
  std::string module;
  double share = 0;  // of the row's own time
  // In a recording without native frames only `module` and `share`: a library, and its part of the row's own
  // CPU time.
  bool is_library() const { return full.empty() && !module.empty(); }
};

struct FunctionRow {
  profile::FrameKind kind = profile::FrameKind::python;
  std::string name;  // as text shows it; for C++ and Rust the last parts
  std::string full;  // qualified, with all arguments
  std::string file;
  int32_t line = 0;  // first line
  std::string module;
  Estimate self;
  Estimate total;        // time with the function on the stack, recursion counted once
  uint64_t samples = 0;  // samples that `total` is based on
  NativeBeneath native = {};
};

struct LineRow {
  std::string name;  // of the function
  std::string full;
  std::string file;
  int32_t line = 0;
  Estimate self;
  Estimate total;
  uint64_t samples = 0;
  NativeBeneath native = {};
};

// Time by state; they overlap (a blocked thread may hold the GIL).
struct StateTimes {
  Nanoseconds running = 0, runnable = 0, blocked = 0, unknown = 0;
  Nanoseconds gil_holds = 0, gil_waits = 0;
  Nanoseconds idle = 0;        // blocked and not waiting for the GIL
  Nanoseconds collecting = 0;  // without waiting for a CPU
  Nanoseconds rejected = 0;
  // Parts of idle, as view::Doing defines them.
  Nanoseconds for_work = 0, for_others = 0, not_known = 0;
};

struct ThreadRow {
  profile::ThreadId id;
  std::string name;  // "Thread worker-1 (4711)"
  int32_t pid = 0;
  int32_t tid = 0;
  int64_t weight = 0;  // as chosen
  Nanoseconds wall = 0;
  Nanoseconds cpu = 0;
  uint64_t samples = 0;
  StateTimes states;
  uint64_t on_cpu = 0;  // the samples with known CPU time
  // The Python function that used most CPU time; for a thread without Python, the native function; empty: no
  // sample found it on a CPU.
  std::string busiest;
};

struct ProcessRow {
  profile::ProcessId id;
  int32_t pid = 0;
  int32_t namespace_pid = 0;  // in its own PID namespace
  int32_t parent = 0;         // its pid, if it was recorded too; otherwise 0
  std::string container;      // its id; empty: in none
  view::OwnService service;
  std::string control_group;
  std::string command_line;  // the program, if the command line is not known
  Nanoseconds recorded = 0;  // for how long
  Nanoseconds cpu = 0;       // of all its threads
  uint64_t samples = 0;
  size_t threads = 0;
  std::string busiest;  // function of its busiest thread
  std::string how_ended;
};

// Processes with the same name (view/program_name.h), added up.
struct ProgramRow {
  std::string name;
  size_t processes = 0;
  Nanoseconds recorded = 0;  // added up
  Nanoseconds cpu = 0;
  uint64_t samples = 0;
  size_t threads = 0;
  std::string busiest;  // function of its busiest thread
};

enum class WaitKind { system_call, gil, cpu };

struct WaitRow {
  WaitKind kind = WaitKind::system_call;
  view::WaitClass waits = view::WaitClass::other;
  std::string what;                           // "futex", "the GIL", "a CPU"
  std::string wait_target_kind, wait_target;  // "socket", "10.0.0.5:5432"; empty: not known
  std::string name;                           // innermost Python function
  std::string file;
  int32_t line = 0;
  bool has_place = false;  // false if the stack was not read, or has no Python frame
  Nanoseconds wall = 0;
  Nanoseconds for_work = 0;   // of it: for something to do
  Nanoseconds not_known = 0;  // of it: perhaps for something to do
  double share = 0;           // of the wall time of all threads
  uint32_t threads = 0;
  NativeBeneath native = {};
  // The caller of the library whose function waits, in most of the time; empty: none, or `name` itself.
  std::string called_from, called_from_file;
  int32_t called_from_line = 0;
};

// The holder of the GIL while a thread waited for it, in one line of a function.
struct GilHolderRow {
  std::string name;  // innermost Python function
  std::string file;
  int32_t line = 0;
  Nanoseconds wall = 0;
  double share = 0;      // of the waiting
  std::string thread;    // the thread that held it there longest
  uint32_t threads = 0;  // the number of threads that held it there
};

struct GilWaitRow {
  profile::ThreadId id;
  std::string thread;  // "Thread worker-1 (4711)"
  int32_t pid = 0;
  int32_t tid = 0;
  Nanoseconds wall = 0;
  double share = 0;  // of the thread's wall time
  std::string name;  // where it waits longest
  std::string file;
  int32_t line = 0;
  double place_share = 0;             // of the waiting
  std::vector<GilHolderRow> holders;  // the longest first
  std::string holder;                 // the thread that held it longest
  double holder_share = 0;            // of the waiting
  Nanoseconds unseen = 0;             // while no holder was seen
  Nanoseconds free = 0;               // of that, while the thread itself waited for a CPU
};

// Waits that ended at one place: the thread there released the lock, put into the queue or wrote to the pipe.
struct EndedWaitRow {
  view::WaitClass waits = view::WaitClass::other;
  std::string what;  // "futex"
  std::string wait_target_kind, wait_target;
  // The function that caused the wait: the innermost that is not of the waiting itself.
  std::string name;
  std::string file;
  int32_t line = 0;
  uint64_t count = 0;
  Nanoseconds wall = 0;
  uint32_t threads = 0;     // number of threads that waited
  std::string by;           // "Thread worker-1 (4711)", or another process: "nginx (4712)"
  uint32_t by_threads = 0;  // of the process; `by` is the one that ended most of the time
  std::string by_name;      // the place of the waker; empty: not known
  std::string by_file;
  int32_t by_line = 0;
};

// A time in which an event loop did not wait for events.
struct StallRow {
  view::Stall stall;
  view::WaitClass waits = view::WaitClass::none;  // blocked: the class of the wait target
  std::string what, wait_target;                  // blocked: the system call; the file, socket...
  std::string name;                               // the function that took longest; empty: not known
  std::string file;
  int32_t line = 0;
  std::string words;   // "asleep", "waiting for the GIL, held by Thread worker (12)"
  std::string holder;  // gil: the thread that held it
  std::string holder_name, holder_file;
  int32_t holder_line = 0;
  // Tasks of the loop that a census found ready to run while it lasted, the most; none: no census was then.
  uint64_t ready = 0;
  Nanoseconds ready_for = 0;  // proved: one of them waited at least so long; 0: nothing is
};

// A thread's event loop.
struct LoopRow {
  view::LoopTime time;
  std::string thread;  // "Thread MainThread (4711)"
  int32_t pid = 0;
  int32_t tid = 0;
  std::string name;  // the function that was blocked longest; empty: none was
  std::string file;
  int32_t line = 0;
  view::LoopStalls stalls;           // without rows
  std::vector<StallRow> stall_rows;  // the longest first
  size_t stalls_seen = 0;
  std::string sentence;
};

// Tasks of one outermost coroutine that wait at one line of it.
struct AwaitRow {
  std::string name;  // of the coroutine; empty: not known
  std::string file;
  int32_t line = 0;
  std::string kind, awaited;  // as in dump.schema.json
  std::string words;          // "a semaphore (BoundedSemaphore)"
  Nanoseconds time = 0;       // of all tasks together
  uint64_t seen = 0;          // tasks in censuses
  Nanoseconds longest = 0;
  uint64_t at_end = 0;         // tasks in the last census
  std::vector<LineRow> chain;  // of coroutines, outermost first; only name, full, file and line
};

// What the loop's thread did while tasks were ready to run, and waited for their turn.
struct ReadyRow {
  std::string name;  // of the function; empty: the loop itself, or not known
  std::string file;
  int32_t line = 0;
  std::string words;   // "on a CPU", "blocked"
  double share = 0;    // of the ready tasks in all censuses
  uint64_t most = 0;   // ready tasks in one census
  uint64_t times = 0;  // censuses
};

// What the tasks of one event loop awaited.
struct LoopAwaitRow {
  std::string thread;  // "Thread MainThread (4711)"; empty: not known
  int32_t pid = 0;
  std::string type;  // "_UnixSelectorEventLoop"
  Nanoseconds waiting = 0, ready = 0, running = 0;
  profile::TaskCensus census;    // of its process
  std::vector<AwaitRow> groups;  // the most time first
  size_t groups_seen = 0;
  uint64_t most_ready = 0;           // tasks that one census found ready to run
  std::vector<ReadyRow> ready_rows;  // the most first
};

// A thread at the moment of a signal.
struct SignalThread {
  std::string thread;  // "Thread MainThread (4711)"; empty: not known
  std::string name;    // innermost Python function; empty: not known, or none
  std::string file;
  int32_t line = 0;
};

// A signal that ends a program by default.
struct SignalRow {
  view::Signal signal;
  int32_t pid = 0;        // of the process that it was sent to
  std::string process;    // its command line
  std::string name;       // "SIGKILL"
  Nanoseconds after = 0;  // since the recording began
  SignalThread from;      // the sender, if it was recorded
  size_t threads_seen = 0;
  std::vector<SignalThread> threads;  // where they were; the one that was given the signal comes first
};

// The time of requests to one endpoint (view/endpoints.h): in threads, with all of their time, and of
// tasks that awaited something. Two rows are of no endpoint.
enum class EndpointKind { endpoint, none, not_read };
// The threads' time of one part of the work for an endpoint. Of a handler, the names are those of the
// endpoint.
struct EndpointPartRow {
  view::EndpointPart part = view::EndpointPart::handler;
  std::string name, full, file;  // of the outermost function of the task or the job
  int32_t line = 0;
  Nanoseconds cpu = 0, gil = 0, no_cpu = 0, waiting = 0;  // as of the endpoint
  size_t threads = 0, processes = 0;
  Nanoseconds time() const { return cpu + gil + no_cpu + waiting; }
};
struct EndpointRow {
  EndpointKind kind = EndpointKind::endpoint;
  std::string name;  // of the handler; of no endpoint: "(no endpoint)"
  std::string full, file;
  int32_t line = 0;                 // first line
  std::vector<std::string> routes;  // "GET /items/{item_id}"; empty: not known
  std::string framework;            // "FastAPI"
  bool certain = true;              // view::Endpoint
  Estimate total;                   // of threads, by the report's weight
  Nanoseconds cpu = 0;              // these are of threads, whatever the weight and whatever is shown
  double cpu_share = 0;             // of the CPU time of all threads
  Nanoseconds gil = 0;              // waiting for the GIL
  Nanoseconds no_cpu = 0;
  Nanoseconds waiting = 0;  // for anything else, except for something to do
  std::string waits_for;    // the longest part of that, in words; empty: none
  Nanoseconds waits_for_time = 0;
  Nanoseconds await = 0;                      // of all tasks together
  Nanoseconds await_low = 0, await_high = 0;  // its 99 % interval; both 0: not known
  Nanoseconds ready = 0;                      // what they awaited was over, and the loop had not yet run them
  double tasks = 0;                           // that awaited at a time
  std::string awaits_for;                     // the longest part of that
  Nanoseconds awaits_for_time = 0;
  uint64_t samples = 0;
  std::vector<EndpointPartRow> parts = {};  // empty: there is only the handler
  Nanoseconds waited() const { return gil + no_cpu + waiting + await + ready; }
};

// A pool whose workers were all at work all the time.
struct PoolRow {
  view::BusyPool pool;
  std::string sentence;
};

// A finding in plain words with its numbers. The most important first.
using Numbers = std::vector<std::pair<std::string, double>>;
using Names = std::vector<std::pair<std::string, std::string>>;
struct Finding {
  std::string kind;   // "gil_wait", "hot_function", ...: docs/report.md lists them
  double weight = 0;  // 0..1: the rank of findings
  std::string text;   // one sentence
  Numbers numbers;
  Names names;
};

struct LineWeight {
  int64_t self = 0;
  int64_t total = 0;
};

// All sampled lines of one file, for the annotated source.
struct FileLines {
  std::string file;
  int64_t self = 0;                                   // of all its lines
  std::vector<std::pair<int32_t, LineWeight>> lines;  // ordered
};

struct Report {
  std::string title;
  std::string services;    // that the processes belong to, in a sentence; empty: none says
  std::string containers;  // the containers of the processes, in a sentence; empty: none
  view::Weight weight = view::Weight::wall;
  std::string weight_title;  // "wall time", "cache-misses"
  std::string event;         // the event that is shown, if the recording has any
  int64_t total = 0;
  uint64_t samples = 0;
  Nanoseconds elapsed = 0;
  view::Show show = view::Show::everything;
  view::LeftOut left_out;  // by `show`
  size_t functions_seen = 0;
  size_t totals_seen = 0;  // rows that `totals` would have without a limit
  size_t lines_seen = 0;
  size_t threads_seen = 0;
  // By self weight. Python functions with the native code that they call; native ones are those of stacks
  // without Python.
  std::vector<FunctionRow> functions;
  std::vector<FunctionRow> native_functions;  // called by Python: parts of those, by self weight
  std::vector<FunctionRow> totals;            // by total weight, without those in `common`
  std::vector<FunctionRow> common;            // functions common to all stacks, outermost first
  std::vector<LineRow> lines;                 // by self weight
  std::vector<RecordingRow> recordings;       // if there are several
  size_t processes_seen = 0;
  std::vector<ProcessRow> processes;  // by CPU time
  // Started by recorded ones; all of them, by CPU time.
  std::vector<profile::Descendant> not_examined;
  size_t programs_seen = 0;
  std::vector<ProgramRow> programs;  // by CPU time; only if split by program
  std::vector<ThreadRow> threads;    // by CPU time, with all of their time, shown or not
  std::vector<WaitRow> waits;        // by wall time, with all of their time
  size_t gil_waits_seen = 0;
  std::vector<GilWaitRow> gil_waits;  // by wall time, with all of their time
  size_t ended_waits_seen = 0;
  std::vector<EndedWaitRow> ended_waits;  // by wall time, with all of their time
  std::vector<LoopRow> loops;             // the longest first, with all of their time
  std::vector<LoopAwaitRow> awaits;       // of the whole recording, whatever the choices
  std::vector<PoolRow> busy_pools;        // the same
  std::vector<SignalRow> signals;         // the latest, in the order of time
  // The most time first, those of no endpoint last; empty: no endpoint was found.
  std::vector<EndpointRow> endpoints;
  size_t endpoints_seen = 0;
  bool by_endpoint = false;                 // the text has their table
  std::vector<view::SlowRequest> requests;  // the slowest first
  size_t most_requests = 0;                 // in the text
  view::Traces traces;                      // the longest first, with all of their time
  bool waits_exact = false;                 // the waits are the scheduler's own account
  std::vector<Finding> findings;
  std::vector<FileLines> files;                // by self weight
  view::QualitySummary measured;               // the numbers of the quality line
  std::string quality;                         // view::quality_line
  std::string warning;                         // view::quality_warning
  profile::Lacking lacking;                    // time that is missing
  std::string unfinished;                      // profile::unfinished_words
  std::string not_recorded;                    // Pythons that ran at the same time, in a sentence
  std::vector<profile::Module> missing_names;  // modules whose native frames lack names
};

Result<Report> make_report(const profile::Profile& profile, const ReportOptions& options);

std::string report_text(const Report& report);
std::string report_summary(const Report& report);  // the first lines; `phlox record` ends with them
std::string report_markdown(const Report& report);
std::string report_json(const Report& report);  // docs/json/report.schema.json

// The text of a source file as it was recorded, or none.
using SourceOf = std::function<std::optional<std::string>(std::string_view file)>;
// The hottest files with each line's share of the whole next to it; lines without samples are folded away.
// Files without source say so.
std::string report_source(const Report& report, const SourceOf& source);
inline constexpr size_t kSourceFiles = 5;

}  // namespace phlox::report
