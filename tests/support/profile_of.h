// Recordings made by hand: one span per line.
#pragma once

#include <string>
#include <vector>

#include "phlox/profile/interner.h"
#include "phlox/profile/profile.h"

namespace phlox::test {

// Fills a Sink with a process, its threads and their spans. Frames are written "name:line" or "name";
// functions are in /app/app.py unless written "file.py/name". "(text)" is a marker, "@name" a native frame.
class ProfileMaker {
 public:
  explicit ProfileMaker(profile::Sink& sink);

  // Another process, started by `parent`; the first one exists already.
  profile::ProcessId process(int32_t pid, profile::ProcessId parent = profile::ProcessId(1));
  profile::ThreadId thread(const std::string& name, int32_t tid = 0,
                           profile::ProcessId of = profile::ProcessId(1));
  profile::StackId stack(const std::string& frames);  // "main;work:7", root first
  profile::FrameId frame(const std::string& text);
  // Begins at the end of the thread's previous one.
  profile::Sample sample(profile::ThreadId thread, const std::string& frames, Nanoseconds wall);
  // The same in a system call, waiting for it or for the GIL.
  profile::Sample blocked(profile::ThreadId thread, const std::string& frames, Nanoseconds wall, int16_t call,
                          profile::GilState gil = profile::GilState::none) {
    profile::Sample waits = sample(thread, frames, wall);
    waits.cpu = 0;
    waits.cpu_state = profile::CpuState::blocked;
    waits.gil_state = gil;
    waits.system_call = call;
    return waits;
  }
  void put(const profile::Sample& sample);
  void add(profile::ThreadId thread, const std::string& frames, Nanoseconds wall) {
    put(sample(thread, frames, wall));
  }

  static constexpr Nanoseconds kStart = 1'000 * kSecond;

 private:
  profile::Sink& sink_;
  profile::Interner interner_;
  std::vector<Nanoseconds> ends_;
  uint32_t processes_ = 1;
  uint32_t samples_ = 0;
};

}  // namespace phlox::test
