// Classes of wait targets, in a programmer's terms: a lock, a queue, a socket. Decided by the system call and
// by the functions of the standard library that lead there. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::view {

enum class WaitClass : uint8_t {
  none,  // it does not wait
  gil,
  cpu,
  lock,
  condition,
  semaphore,
  event,
  queue,
  future,  // the result of one, of concurrent.futures
  thread,  // the end of a thread
  child,   // a process that it started
  sleep,
  socket,
  pipe,
  file,
  device,
  stream,  // a file, a pipe or a terminal: the call does not show which
  poll,    // the first of several files, sockets and timers
  memory,  // in no system call: a page is read or written back, or it was stopped
  other,   // another system call
};

std::string_view wait_class_key(WaitClass what);    // for programs: "lock"
std::string_view wait_class_words(WaitClass what);  // "a lock"; empty: none, other
// "a lock (futex)", "the GIL", "ioctl", "a socket, 10.0.0.5:5432 (recvfrom)". An empty system call is
// omitted.
std::string wait_words(WaitClass what, const std::string& system_call, const std::string& wait_target);

// The innermost Python frame that is not in a library that waits and wakes (threading, queue, socket...): the
// function that caused the wait. If all are, the innermost.
profile::FrameId asking_frame(const profile::Profile& profile, profile::StackId stack);

// Caches the result for each stack.
class WaitClasses {
 public:
  explicit WaitClasses(const profile::Profile& profile);
  WaitClass of(const profile::Sample& sample);

 private:
  WaitClass by_stack(profile::StackId stack);
  WaitClass by_call(int16_t system_call);
  WaitClass named(const profile::Sample& sample, WaitClass found);

  const profile::Profile& profile_;
  std::string machine_;
  std::vector<WaitClass> by_frame_;  // by id: the wait target of a function of the standard library
  std::vector<bool> known_stack_;
  std::vector<WaitClass> by_stack_;
  std::vector<std::pair<int16_t, WaitClass>> by_call_;
};

}  // namespace phlox::view
