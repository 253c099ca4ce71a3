// The kernel thread of a Python thread state. A thread state names its thread twice: by pthread_self(), the
// address of the C library's struct pthread, which contains the kernel's id, and from 3.11 on by that id
// itself. A fork that did not use os.fork() (uWSGI's, Apache's) leaves the second one stale: it is the
// parent's, a task of another process, or by now of another thread of this one. The C library keeps the first
// one right in the thread that forked, and marks the others as gone. Called by the worker that holds the turn
// lock; reads the target and /proc, decides nothing else.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "phlox/memory/remote_memory.h"

namespace phlox::sampler {

class TaskIds {
 public:
  TaskIds(pid_t pid, memory::RemoteMemory& memory);

  enum class Why : uint8_t {
    found,
    no_thread,  // it has none: not started, or ended, or left behind by a fork
    unknown,    // it may have one, but it is not known which
  };
  struct Task {
    pid_t tid = 0;  // in our PID namespace, not its own; 0: none
    Why why = Why::found;
  };
  // `python_id`: thread_id of the state, `native_id`: its native_thread_id; 0: there is none (before 3.11).
  Task find(uint64_t python_id, uint64_t native_id);

  // The list is outdated.
  void forget() { listed_ = false; }
  bool process_gone() const { return process_gone_; }

 private:
  void list();
  // Our id of a thread by its own; 0: this process has none such. quickly: the caller finds that out itself.
  pid_t outer(uint64_t own);
  pid_t outer_quickly(uint64_t own) { return pid_namespace_ ? outer(own) : static_cast<pid_t>(own); }
  std::optional<pid_t> search(uint64_t python_id, uint64_t native_id);
  static Task found(pid_t tid) { return {tid, tid != 0 ? Why::found : Why::no_thread}; }

  pid_t pid_;
  memory::RemoteMemory& memory_;
  bool pid_namespace_ = false;
  bool process_gone_ = false;
  bool listed_ = false;
  std::unordered_map<pid_t, pid_t> outer_;  // by the target's own thread id
  std::optional<uint64_t> tid_offset_;      // of the kernel's id in struct pthread, as learnt
};

}  // namespace phlox::sampler
