// One program of a process: from when its interpreter is up until it ends or calls execve. Shared by the
// recorder and a single sample: finding it, describing it, naming its threads. Called by the recorder's
// thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/base/result.h"
#include "phlox/memory/process_memory.h"
#include "phlox/process/process_facts.h"
#include "phlox/profile/sink.h"
#include "phlox/python/interpreter.h"
#include "phlox/python/locate.h"
#include "phlox/sampler/assemble/consumer.h"

namespace phlox::sampler {

class Host;

// Distinguishes one program image from the next in the same process: execve gives a new stack (its start is
// random) and often a new executable.
struct Image {
  std::string executable;
  uint64_t start_stack = 0;
  friend bool operator==(const Image&, const Image&) = default;
};
Image image_of(pid_t pid);

struct Program {
  Program(pid_t process, python::Interpreter found)
      : pid(process), memory(process), interpreter(std::move(found)) {}

  std::string description() const;
  // `facts`: of its process.
  profile::Process process_row(const process::ProcessFacts& facts, Nanoseconds now) const;
  // Threads that have no name yet; some stay so while the program is changing them: call it again.
  // With thousands of threads, it names as many as it can in `longest`.
  void name_threads(Host& host, Consumer& consumer, Nanoseconds longest = kSecond / 5);

  pid_t pid;
  memory::ProcessMemory memory;
  python::Interpreter interpreter;
  Image image;
  std::optional<int64_t> rseq_cpu_offset;
  // Its name at its birth; empty: read it from the process.
  std::optional<profile::Process> known_as;
  // Born while its parent was recorded in the kernel: kernel_process.id.
  std::optional<uint32_t> kernel_id;
  std::string kernel_name;  // of its first thread, at that time
  // For a fork whose parent was recorded at its birth: the moment of the birth, from the time that it has
  // used and waited for a CPU. All CPU time of its thread since then belongs to the recording.
  std::optional<Nanoseconds> birth;
  // For a process that was born while its parent was recorded, and called exec: the moment of that. Its CPU
  // time until its Python was up belongs to the recording, and to no sample.
  std::optional<Nanoseconds> started;
  // The kernel has kept its times since then: kernel_process.id.
  std::optional<uint32_t> kept_as;
  // Threads that were passed over as the recording began: only those that run later are in it.
  size_t threads_not_read = 0;

  // If it is known; otherwise `now`.
  Nanoseconds begin(Nanoseconds now) const { return birth ? *birth : started.value_or(now); }
};

// `image`: from before it was found. Null: it runs another program by now; search again.
std::unique_ptr<Program> make_program(pid_t pid, python::Interpreter found, Image image);

// A descriptor that becomes readable when the process ends. None at all: it had ended.
Result<Descriptor> watch(pid_t pid);
bool has_ended(const Descriptor& pidfd);

// The user is notified only after this time that the search for a Python continues.
inline constexpr Nanoseconds kLongWait = 3 * kSecond;
// A process that a script left in the background may be on its way to a Python.
inline constexpr Nanoseconds kOrphansPatience = 2 * kSecond;

// How long a search continues if there is no interpreter yet.
struct Patience {
  bool launched = false;             // by us: it may still be coming up; false: only briefly
  std::optional<Nanoseconds> until;  // the recording's end
  // A shell script, make or a wrapper is no Python, but may start one: the first that comes up among its
  // descendants is used.
  bool descendants = false;
  std::function<void()> waiting;  // called once if the search takes long
};

// The program that runs in the process now, or in the descendant that was found: Program::pid has its
// process. Waits for its interpreter, the end of the process, or `stop`. `attempts` gets the strategies of
// the last search in the process itself.
Result<std::unique_ptr<Program>> find_program(Host& host, pid_t pid, const Descriptor& pidfd,
                                              Patience patience, const std::atomic<bool>& stop,
                                              std::vector<python::Attempt>* attempts = nullptr);

// Meta of the machine and the clock.
void put_host(Host& host, profile::Sink& sink, Nanoseconds start);

}  // namespace phlox::sampler
