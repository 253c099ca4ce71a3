// One program of a process: from where its interpreter is up until it ends or calls execve. What the recorder
// and a single look share: finding it, describing it, naming its threads. Called by the recorder's thread.
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
#include "phlox/profile/sink.h"
#include "phlox/python/interpreter.h"
#include "phlox/python/locate.h"
#include "phlox/sampler/assemble/consumer.h"

namespace phlox::sampler {

// What tells one program image from the next in the same process: execve gives a new stack (its start is
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
  profile::Process process_row() const;
  // Threads that have no name yet; some stay so while the program is changing them: ask again.
  // Of thousands of threads it names as many as it comes to in `longest`.
  void name_threads(Consumer& consumer, Nanoseconds longest = kSecond / 5);

  pid_t pid;
  memory::ProcessMemory memory;
  python::Interpreter interpreter;
  Image image;
  std::optional<int64_t> rseq_cpu_offset;
  // What it was called when it was born; empty: its process says.
  std::optional<profile::Process> known_as;
  // Born while its parent was recorded in the kernel: kernel_process.id.
  std::optional<uint32_t> kernel_id;
  std::string kernel_name;  // of its first thread, then
  // Of a fork whose parent was recorded when it was born: when that was, by the time that it has used and
  // waited for a CPU. All that its thread has used since is of the recording.
  std::optional<Nanoseconds> birth;
  // Of one that was born while whoever begot it was recorded, and called exec: when that was. What it has
  // used until its Python was up is of the recording, and of no look.
  std::optional<Nanoseconds> started;
  // The kernel has kept its times since then: kernel_process.id.
  std::optional<uint32_t> kept_as;
  // Threads that were passed over as the recording began: only those that run later are in it.
  size_t threads_not_read = 0;

  // As far as it is known; else now.
  Nanoseconds begin() const { return birth ? *birth : started.value_or(clock_now()); }
};

// `image`: of before it was found. Null: it has become another program meanwhile, and is to be looked at
// again.
std::unique_ptr<Program> make_program(pid_t pid, python::Interpreter found, Image image);

// A descriptor that becomes readable when the process ends. None at all: it had ended.
Result<Descriptor> watch(pid_t pid);
bool has_ended(const Descriptor& pidfd);

// Nobody is told before that the search for a Python goes on.
inline constexpr Nanoseconds kLongWait = 3 * kSecond;
// What a script left behind in the background may be on its way to a Python.
inline constexpr Nanoseconds kOrphansPatience = 2 * kSecond;

// How long a search goes on when there is no interpreter yet.
struct Patience {
  bool launched = false;             // by us: it may still be coming up; false: only briefly
  std::optional<Nanoseconds> until;  // clock_now() of the recording's end
  // A shell script, make or a wrapper is no Python, but may start one: the first that comes up among its
  // descendants is it.
  bool descendants = false;
  std::function<void()> waiting;  // called once when it takes long
};

// The program that runs in the process now, or in the descendant that was found: Program::pid says which.
// Waits for its interpreter, the end of the process, or `stop`. `attempts` gets what the last search in the
// process itself tried.
Result<std::unique_ptr<Program>> find_program(pid_t pid, const Descriptor& pidfd, Patience patience,
                                              const std::atomic<bool>& stop,
                                              std::vector<python::Attempt>* attempts = nullptr);

// Meta of the machine and the clock.
void put_host(profile::Sink& sink, Nanoseconds start);

}  // namespace phlox::sampler
