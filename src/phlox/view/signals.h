// Signals that end a program by default, as a recording inside the kernel has them: who sent each, with its
// place in the code, what came of it, and where each thread was when the kernel gave it the signal. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"

namespace phlox::view {

struct SignalPlace {
  profile::ThreadId thread;
  profile::StackId stack;  // none: not known
};

struct Signal {
  enum class Sender { process, kernel, own_fault };
  enum class Outcome {
    ended,    // the kernel ended the process for it
    handled,  // by a function of the program
    unknown   // it was ignored, blocked, or the recording ended
  };
  Nanoseconds time = 0;
  profile::ProcessId process;
  int number = 0;
  Sender sent_by = Sender::process;
  std::string sender;  // of a process: "gunicorn (4700)"
  SignalPlace from;    // of a recorded process: the thread, and where it was
  Outcome outcome = Outcome::unknown;
  bool no_memory = false;            // ended because memory had run out
  Nanoseconds ended_after = -1;      // until the process ended; below zero: it did not, or not known
  std::vector<SignalPlace> threads;  // the one that was given the signal first, then those that ended with it
};

// In the order of time.
std::vector<Signal> signals(const profile::Profile& profile);

std::string signal_name(int number);  // "SIGTERM"

}  // namespace phlox::view
