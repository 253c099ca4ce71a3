#include "phlox/sampler/session/program.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unordered_set>
#include <utility>

#include "phlox/memory/living_thread.h"
#include "phlox/process/process_facts.h"
#include "phlox/process/process_state.h"
#include "phlox/process/process_tree.h"
#include "phlox/process/text_file.h"
#include "phlox/python/thread_names.h"
#include "phlox/sampler/session/host.h"
#include "phlox/sampler/session/tree_search.h"

namespace phlox::sampler {
namespace {

// Pauses while the interpreter of a launched program comes up.
constexpr Nanoseconds kFirstPause = 200'000;
constexpr Nanoseconds kBrieflyPatient = 300'000'000;
constexpr Nanoseconds kLongestPause = 20'000'000;
constexpr int kMostInterpretersNamed = 1024;
// With up to this many threads, all names are read each time: a thread may be renamed.
constexpr size_t kFewNamed = 1000;

std::string link_of(const std::string& path) {
  char text[4096];
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size < 0 ? std::string() : std::string(text, static_cast<size_t>(size));
}

}  // namespace

Image image_of(pid_t pid) {
  Image image;
  image.executable = link_of(memory::proc_folder(pid) + "/exe");
  if (FILE* f = std::fopen((memory::proc_folder(pid) + "/stat").c_str(), "re")) {
    char text[2048];
    const size_t size = std::fread(text, 1, sizeof text - 1, f);
    std::fclose(f);
    text[size] = 0;
    // Field 28, startstack (fs/proc/array.c); 0 without the right to attach.
    if (const char* at = std::strrchr(text, ')')) {
      for (int field = 2; field < 28 && at != nullptr; ++field) at = std::strchr(at + 1, ' ');
      if (at != nullptr) image.start_stack = std::strtoull(at + 1, nullptr, 10);
    }
  }
  return image;
}

std::string Program::description() const {
  return fmt::format("CPython {} ({}), found by {}", interpreter.version, interpreter.build,
                     interpreter.found_by);
}

profile::Process Program::process_row(const process::ProcessFacts& facts, Nanoseconds now) const {
  profile::Process row;
  row.pid = pid;
  row.namespace_pid = facts.namespace_pid != 0 ? facts.namespace_pid : pid;
  row.executable = facts.executable;
  row.command_line = facts.command_line;
  // The process has ended already.
  if (row.executable.empty() && known_as) {
    row.executable = known_as->executable;
    row.command_line = known_as->command_line;
  }
  row.python_version = interpreter.version;
  row.python_build = interpreter.build;
  row.found_by = interpreter.found_by;
  row.start = begin(now);
  return row;
}

void Program::name_threads(Host& host, Consumer& consumer, Nanoseconds longest) {
  auto& live = consumer.live_threads();
  // By Python id, newest interpreter first: a thread that runs code of several gets its name from the oldest
  // of them, which started it; for a subinterpreter it is the MainThread.
  std::map<uint64_t, std::string> called;
  // The sampler's thread reads through `memory` meanwhile.
  memory::ProcessMemory apart(pid);
  RemoteAddress at;
  apart.read_value(interpreter.interpreters_head, at.value);
  // With thousands of threads: only those in the recording that have no name yet.
  std::unordered_set<uint64_t> nameless;
  for (const auto& thread : live) {
    if (thread.row.name.empty()) nameless.insert(thread.row.python_id);
  }
  const bool many = live.size() > kFewNamed;
  const Nanoseconds until = host.now() + longest;
  const auto goes_on = [&](uint64_t python_id) {
    if (host.now() >= until) return python::Naming::stop;
    return many && !nameless.contains(python_id) ? python::Naming::skip : python::Naming::read;
  };
  for (int i = 0; is_plausible(at) && i < kMostInterpretersNamed; ++i) {
    if (const auto names = python::read_thread_names(interpreter.layout, apart, at, goes_on)) {
      for (const auto& [python_id, name] : names->names) called[python_id] = name;
    }
    if (!interpreter.layout.interpreter.next.present() ||
        !apart.read_value(at + *interpreter.layout.interpreter.next, at.value)) {
      break;
    }
  }
  for (auto& thread : live) {
    const auto name = called.find(thread.row.python_id);
    if (name == called.end() || name->second == thread.row.name) continue;
    thread.row.name = name->second;
    consumer.put_thread(thread);
  }
}

std::unique_ptr<Program> make_program(pid_t pid, python::Interpreter found, Image image) {
  if (image_of(pid) != image) return nullptr;
  auto program = std::make_unique<Program>(pid, std::move(found));
  program->image = std::move(image);
  if (const auto offset = process::find_rseq_offset(pid))
    program->rseq_cpu_offset = *offset + 4;  // struct rseq: cpu_id
  return program;
}

Result<Descriptor> watch(pid_t pid) {
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd) return pidfd;
  if (errno == ESRCH || errno == EINVAL) {
    return fail(ErrorKind::no_such_process, fmt::format("no process with id {}", pid),
                "list Python processes with: phlox list");
  }
  return fail(ErrorKind::system,
              fmt::format("cannot watch process {}: {} (pidfd_open)", pid, std::strerror(errno)));
}

bool has_ended(const Descriptor& pidfd) {
  if (!pidfd) return true;
  pollfd poll{pidfd.get(), POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0 && (poll.revents & POLLIN) != 0;
}

namespace {

void note_start(Program& program) {
  const auto stat = process::read_stat(program.pid);
  if (stat) note_birth(program, stat->start_ticks, process::ProcessClock(program.pid));
}

tl::unexpected<Error> no_python_came(pid_t pid, bool descendants, const std::string& refused) {
  if (!refused.empty()) {
    return fail(
        ErrorKind::target_gone,
        fmt::format("process {} ended before a Python that phlox can read was running: {}", pid, refused));
  }
  return fail(ErrorKind::target_gone,
              fmt::format("process {} ended before a Python was running in it{}", pid,
                          descendants ? " or in a process that it started" : ""),
              "is the command a Python program? phlox record -- python3 app.py");
}

}  // namespace

Result<std::unique_ptr<Program>> find_program(Host& host, pid_t pid, const Descriptor& pidfd,
                                              Patience patience, const std::atomic<bool>& stop,
                                              std::vector<python::Attempt>* attempts) {
  Nanoseconds pause = kFirstPause;
  const Nanoseconds start = host.now();
  std::optional<TreeSearch> descendants;
  if (patience.descendants) descendants.emplace(std::vector{pid}, false, true);
  if (descendants && patience.launched) descendants->is_launched();
  std::optional<Nanoseconds> orphaned;  // since when only its descendants are left
  for (;;) {
    const Image image = host.image_of(pid);
    auto found = python::locate(pid, attempts);
    if (found) {
      auto program = make_program(pid, *std::move(found), image);
      if (!program) continue;
      if (patience.launched) note_start(*program);
      return program;
    }
    bool gone = host.has_ended(pidfd);
    if (descendants) {
      if (auto first = descendants->search(1); !first.empty()) return std::move(first.front().program);
      if (gone && !orphaned) orphaned = host.now();
      gone = gone && (!descendants->any_left() || host.now() - *orphaned > kOrphansPatience);
      if (gone || orphaned) found = no_python_came(pid, true, descendants->refused());
    }
    const bool may_come = orphaned || found.error().kind == ErrorKind::not_python ||
                          found.error().kind == ErrorKind::target_state;
    // A program that we did not start may just be starting, or caught between two states.
    const bool briefly =
        found.error().kind == ErrorKind::target_state && host.now() - start < kBrieflyPatient;
    const bool over = patience.until && host.now() >= *patience.until;
    if (!(patience.launched || briefly) || gone || !may_come || over ||
        stop.load(std::memory_order_relaxed)) {
      return gone && !descendants ? no_python_came(pid, false, "") : fail(found);
    }
    if (patience.waiting && host.now() - start > kLongWait) std::exchange(patience.waiting, nullptr)();
    host.sleep_until(host.now() + pause);
    pause = std::min(pause * 5 / 4, kLongestPause);
  }
}

void put_host(Host& host, profile::Sink& sink, Nanoseconds start) {
  utsname names{};
  ::uname(&names);
  sink.emit_meta("phlox_version", PHLOX_VERSION);
  sink.emit_meta("host", names.nodename);
  sink.emit_meta("kernel", fmt::format("{} {}", names.sysname, names.release));
  sink.emit_meta("machine", names.machine);
  sink.emit_meta("cpus", std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)));
  sink.emit_meta("clock", "CLOCK_MONOTONIC");
  sink.emit_meta("start_monotonic_ns", std::to_string(start));
  sink.emit_meta("start_unix_ns", std::to_string(host.read_clock(CLOCK_REALTIME)));
}

}  // namespace phlox::sampler
