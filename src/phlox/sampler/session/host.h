// All that a recording asks of the operating system: the clock, which processes live, facts about them, and
// the CPU use around them. SystemHost asks the kernel; tests play one, with a clock that they set. One for
// each recording. Called by the recorder's thread; the clock by every thread.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/base/result.h"
#include "phlox/process/process_facts.h"
#include "phlox/profile/sink.h"
#include "phlox/profile/source_rights.h"
#include "phlox/sampler/session/finder.h"
#include "phlox/sampler/session/program.h"

namespace phlox::sampler {

struct Options;

class Host {
 public:
  virtual ~Host() = default;

  virtual Nanoseconds read_clock(clockid_t clock) = 0;
  Nanoseconds now() { return read_clock(CLOCK_MONOTONIC); }
  virtual void sleep_until(Nanoseconds when) = 0;
  // Waits until one of them is readable, for at most `longest`, and sets their `revents`. Returns the errno
  // of a refusal; 0: none.
  virtual int wait(std::span<pollfd> descriptors, Nanoseconds longest) = 0;

  // A descriptor that becomes readable when the process ends. None at all: it had ended.
  virtual Result<Descriptor> watch(pid_t pid) = 0;
  virtual bool has_ended(const Descriptor& pidfd) = 0;
  // "exit 0", "signal 9 (SIGKILL)", "ended".
  virtual std::string how_ended(const Descriptor& pidfd) = 0;
  virtual std::unique_ptr<Finder> find_programs(const std::vector<pid_t>& roots, const Options& options,
                                                const std::vector<Finder::Found>& known) = 0;

  // Facts about a process; empty if it has ended or may not be read.
  virtual process::ProcessFacts facts(pid_t pid) = 0;
  virtual Image image_of(pid_t pid) = 0;
  struct Identity {
    std::optional<uint64_t> start_ticks;  // since boot
    std::optional<profile::SourceRights> rights;
  };
  virtual Identity identity(pid_t pid) = 0;
  virtual std::string environment(pid_t pid) = 0;
  virtual std::string thread_name(pid_t pid, pid_t thread) = 0;
  // Threads of the kernel inside the process.
  virtual size_t kernel_workers(pid_t pid) = 0;

  // The recording begins. Nothing below is called before.
  virtual void begin() = 0;
  // Call it to get the CPU time of the process's first thread at its end, until forget_end(). None: it is
  // running, or it was reaped before.
  virtual std::function<std::optional<Nanoseconds>()> watch_end(pid_t pid, const Descriptor& pidfd) = 0;
  virtual void forget_end(const Descriptor& pidfd) = 0;
  // The call that the kernel refused for this, and why. Empty: none.
  virtual std::string ends_refused() = 0;
  // This process is recorded: from now on, its control group's quota counts, and the CPUs that it may use.
  virtual void meet(pid_t pid) = 0;
  // CPU time of descendants of these processes that are not `recorded`.
  virtual bool descendants_are_due(Nanoseconds now) = 0;
  virtual void check_descendants(Nanoseconds now, const std::vector<pid_t>& of,
                                 const std::function<bool(pid_t)>& recorded) = 0;
  // The rows of the CPU use since begin(): of the host, and of these descendants.
  virtual void put_cpu_use(profile::Sink& sink) = 0;
};

}  // namespace phlox::sampler
