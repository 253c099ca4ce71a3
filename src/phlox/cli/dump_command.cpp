#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "phlox/cli/attempts.h"
#include "phlox/cli/commands.h"
#include "phlox/cli/exit_status.h"
#include "phlox/cli/output_file.h"
#include "phlox/cli/overdue.h"
#include "phlox/cli/process_of.h"
#include "phlox/cli/values.h"
#include "phlox/naming/native_names.h"
#include "phlox/process/open_file.h"
#include "phlox/process/process_state.h"
#include "phlox/process/process_tree.h"
#include "phlox/process/reading_user.h"
#include "phlox/process/socket_tables.h"
#include "phlox/process/source_file.h"
#include "phlox/profile/profile.h"
#include "phlox/report/dump.h"
#include "phlox/sampler/session/instant.h"
#include "phlox/selection/attach_error.h"
#include "phlox/selection/pythons.h"
#include "phlox/view/native_frames.h"
#include "phlox/view/together.h"

namespace phlox::cli {
namespace {

// The longest source file that is read to show some of its lines.
constexpr size_t kLongestSource = size_t{16} << 20;

// With more children than this, the dump covers only the first ones, and says so.
constexpr size_t kMostChildren = 200;

Result<pid_t> process_to_dump(const CommandLine& line, Talk& talk) {
  const DumpArguments& arguments = line.dump;
  if (auto checked = check_container(!arguments.pid.empty(), arguments.container); !checked)
    return fail(checked);
  if (arguments.pid.empty()) return fail(ErrorKind::usage, "dump which process?", "phlox dump -p PID");
  auto pid = process_of(line, arguments.pid, arguments.container);
  if (!pid) return pid;
  // top -H, logs and debuggers show thread ids.
  if (const auto process = process::find_process_of(*pid); process && *process != *pid) {
    talk.note(fmt::format("{} is a thread of process {}: this is the dump of that process", *pid, *process));
    return *process;
  }
  return pid;
}

// What was observed of one process.
struct Observed {
  pid_t pid = 0;
  profile::Profile instant;
  report::Dump dump;
  std::optional<FileUser> reader;  // its source is read with this user's rights
};

// Whether the program's CLOCK_MONOTONIC is the same as ours.
bool has_our_clock(pid_t pid) {
  if (const auto is_other = process::other_namespace(pid, "time")) return !*is_other;
  // Before Linux 5.6 there are no time namespaces.
  return ::access("/proc/self/ns/time", F_OK) != 0;
}

// Seconds left of a sleep. More than the requested time means another clock.
std::optional<double> seconds_left(const python::AsyncTask& task, Nanoseconds now) {
  double asked = 0;
  const std::string& text = task.awaited;
  if (!task.until || std::from_chars(text.data(), text.data() + text.size(), asked).ec != std::errc())
    return {};
  const double left = *task.until - double(now) * 1e-9;
  constexpr double kRounding = 1e-5;  // of the requested time as printed
  if (left > asked * (1 + kRounding) + kRounding) return {};
  return std::max(left, 0.0);
}

// Adds both ends of the socket that a task awaits.
void put_socket(report::DumpTask& task, pid_t pid, const std::string& link, process::SocketTables& sockets) {
  const process::NamedFile file = process::parse_descriptor_link(link);
  if (file.file.kind != process::OpenFile::Kind::socket) return;
  const auto found = sockets.find(pid, file.file.inode);
  if (!found) return;
  const process::OpenFile& socket = found->file;
  if (socket.family != AF_INET && socket.family != AF_INET6) {
    task.socket = found->name;
    return;
  }
  task.socket = process::address_words(socket.family, socket.own);
  if (socket.peer != process::SocketEnd{}) task.peer = process::address_words(socket.family, socket.peer);
}

report::DumpTaskState state_of(python::TaskState state) {
  switch (state) {
    case python::TaskState::running:
      return report::DumpTaskState::running;
    case python::TaskState::ready:
      return report::DumpTaskState::ready;
    case python::TaskState::parked:
      return report::DumpTaskState::parked;
    case python::TaskState::unstarted:
      return report::DumpTaskState::unstarted;
    case python::TaskState::waiting:
      break;
  }
  return report::DumpTaskState::waiting;
}

std::vector<report::DumpTaskFrame> frames_of(const std::vector<python::TaskFrame>& frames) {
  std::vector<report::DumpTaskFrame> out;
  out.reserve(frames.size());
  for (const python::TaskFrame& frame : frames) out.push_back({frame.function, frame.line});
  return out;
}

report::DumpTasks tasks_of(pid_t pid, python::AsyncTasks&& read) {
  const Nanoseconds now = clock_now();
  const bool our_clock = has_our_clock(pid);
  process::SocketTables sockets;
  report::DumpTasks out;
  out.pid = pid;
  out.unproved = read.unproved;
  out.ended = read.ended;
  out.beyond = read.beyond;
  out.problem = std::move(read.problem);
  for (python::TaskFunction& row : read.functions)
    out.functions.push_back(
        {std::move(row.name), std::move(row.qualified_name), std::move(row.file), row.first_line});
  for (python::AsyncLoop& row : read.loops)
    out.loops.push_back({std::move(row.type), row.python_id, row.greenlets});
  for (python::AsyncLock& row : read.locks) out.locks.push_back({std::move(row.holders)});
  for (python::AsyncTask& row : read.tasks) {
    report::DumpTask task;
    task.name = std::move(row.name);
    task.state = state_of(row.state);
    task.loop = row.loop;
    task.cut = row.cut;
    task.kind = python::awaited_key(row.kind);
    task.awaited = row.awaited;
    task.awaits = std::move(row.awaits);
    if (our_clock) task.seconds_left = seconds_left(row, now);
    if (!row.descriptor.empty()) put_socket(task, pid, row.descriptor, sockets);
    task.subprocess = row.subprocess;
    task.lock = row.lock;
    if (row.job) task.job = report::DumpJob{row.job->queued, row.job->python_id, frames_of(row.job->frames)};
    task.frames = frames_of(row.frames);
    out.tasks.push_back(std::move(task));
  }
  return out;
}

Result<Observed> observe(pid_t pid, const DumpArguments& arguments, Talk& talk) {
  const auto state = process::read_process_state(pid);
  if (!state) return fail(state);
  if (auto possible = process::check_recordable(*state); !possible) return fail(possible);
  for (const std::string& remark : process::remarks_on(*state)) talk.warn(remark);

  sampler::InstantOptions options;
  options.locals = arguments.locals;
  options.tasks = !arguments.no_async;
  const auto native = native_source_of(arguments.native);
  if (!native) return fail(native);
  options.native = *native;
  if (options.native) options.unwind_cache = unwind_cache();
  Observed observed;
  observed.pid = pid;
  observed.reader = process::reading_user(pid);
  naming::NativeRows rows(observed.instant);
  std::vector<python::Attempt> attempts;
  auto instant = sampler::sample_once(pid, options, rows, &attempts);
  say_attempts(attempts, talk);
  if (!instant) return tl::unexpected<Error>(selection::explain_attach_error(instant.error(), pid, "dump"));
  if (options.native) {
    auto missing = rows.name(instant->modules, debug_search_of(arguments.native));
    if (arguments.json || talk.says_details()) rows.advise(missing);
    for (const auto& row : missing) talk.detail(describe(row));
    view::Choices choices;
    choices.all_frames = arguments.all_frames;
    view::show_native_frames(observed.instant, choices);
  }
  if (!instant->warning.empty()) talk.warn(instant->warning);
  observed.dump.python = instant->description;
  observed.dump.every_task = arguments.async_tasks == "all";
  if (instant->tasks) {
    observed.dump.tasks.push_back(tasks_of(pid, *std::move(instant->tasks)));
    for (const std::string& why : report::missing_tasks(observed.dump.tasks.back())) talk.warn(why);
  }
  for (const sampler::FrameLocals& frame : instant->locals) {
    report::DumpVariables variables{frame.thread, frame.depth, {}};
    for (const python::Local& local : frame.variables)
      variables.variables.push_back({local.name, local.value, local.argument});
    observed.dump.variables.push_back(std::move(variables));
  }
  for (const sampler::MissingThreads& row : instant->missing) {
    observed.dump.missing.push_back({row.threads, row.why});
    talk.warn(report::describe(observed.dump.missing.back()));
  }
  return observed;
}

std::vector<selection::PythonProcess> children_of(pid_t pid) {
  python::Recogniser recogniser;
  return selection::find_pythons(process::read_descendants(pid), recogniser).found;
}

// Names the children that --no-follow leaves out.
void name_children(pid_t pid, Talk& talk) {
  constexpr size_t kMost = 6;
  const auto children = children_of(pid);
  if (children.empty()) return;
  std::string ids;
  for (size_t i = 0; i < std::min(children.size(), kMost); ++i)
    ids += fmt::format("{}{}", i == 0 ? "" : ", ", children[i].pid);
  if (children.size() > kMost) ids += fmt::format(" and {} more", children.size() - kMost);
  talk.warn(fmt::format("{} child Python{} of process {} not shown: {}; without --no-follow they are",
                        children.size(), children.size() == 1 ? "" : "s", pid, ids));
}

// The Pythons that it started. One that has ended since is ignored; one that cannot be read is reported.
std::vector<Observed> dump_children(pid_t pid, const DumpArguments& arguments, Talk& talk) {
  std::vector<Observed> all;
  const auto children = children_of(pid);
  for (size_t i = 0; i < std::min(children.size(), kMostChildren); ++i) {
    auto observed = observe(children[i].pid, arguments, talk);
    if (observed) {
      all.push_back(*std::move(observed));
    } else if (process::read_stat(children[i].pid)) {
      talk.warn(fmt::format("its child {} is not shown: {}", children[i].pid, observed.error().message));
    }
  }
  if (children.size() > kMostChildren)
    talk.warn(fmt::format("{} of its {} children are not shown: phlox dump -p PID shows one",
                          children.size() - kMostChildren, children.size()));
  return all;
}

std::string text_of(const std::vector<Observed>& all) {
  std::string text;
  for (const Observed& one : all) {
    if (!text.empty()) text += "\n";
    text += report::dump_text(one.instant, one.dump, [&one](const std::string& file) {
      return process::read_file_of(one.pid, file, kLongestSource, one.reader);
    });
  }
  return text;
}

// One document for all of them.
std::string json_of(std::vector<Observed> all) {
  Observed whole = std::move(all.front());
  for (size_t i = 1; i < all.size(); ++i) {
    const uint32_t threads = view::add_recording(whole.instant, all[i].instant);
    for (report::DumpVariables& row : all[i].dump.variables) {
      row.thread = profile::ThreadId(row.thread.value + threads);
      whole.dump.variables.push_back(std::move(row));
    }
    for (report::DumpTasks& row : all[i].dump.tasks) whole.dump.tasks.push_back(std::move(row));
    for (report::DumpMissing& row : all[i].dump.missing) whole.dump.missing.push_back(std::move(row));
  }
  return report::dump_json(whole.instant, whole.dump);
}

// Runs on its own thread.
void give_up(Overdue::Why why, Talk& talk) {
  talk.error(Overdue::error_of(why, "Nothing is shown"));
  ::_exit(exit_status(ErrorKind::system));
}

Result<void> run_dump(const CommandLine& line, Talk& talk) {
  const DumpArguments& arguments = line.dump;
  // The dump is due at once, and may take longer while it makes progress. A debuginfod server may take any
  // time.
  const std::atomic<bool> due{!arguments.native.debuginfod};
  std::optional<Overdue> overdue(
      std::in_place, due, [&](Overdue::Why why) { give_up(why, talk); }, Overdue::Limits());
  const auto pid = process_to_dump(line, talk);
  if (!pid) return fail(pid);
  auto first = observe(*pid, arguments, talk);
  if (!first) return fail(first);
  std::vector<Observed> all;
  all.push_back(*std::move(first));
  if (arguments.no_follow) {
    name_children(*pid, talk);
  } else {
    for (Observed& child : dump_children(*pid, arguments, talk)) all.push_back(std::move(child));
  }
  overdue.reset();
  if (arguments.locals) talk.warn("variables may hold secrets: passwords, keys, personal data");
  auto output = OutputFile::open("-", {.text = true});
  if (!output) return fail(output);
  if (arguments.json && talk.wants_text()) talk.text(text_of(all));
  (*output)->stream() << (arguments.json ? json_of(std::move(all)) : text_of(all));
  return (*output)->commit();
}

}  // namespace

int dump(const CommandLine& line, Talk& talk) {
  return status_of(run_dump(line, talk), talk);
}

}  // namespace phlox::cli
