// A command of phlox as a process of its own, for `phlox mcp`: its standard output, and its messages as data
// (Talk::Options::json). In a process of its own it may use signals, drop rights, wait for ever or run out of
// memory as at the command line, without the server; and what it says is said in the same words.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/base/result.h"
#include "phlox/mcp/json.h"

namespace phlox::cli {

// What it was until its end.
struct CommandOutcome {
  int status = 0;  // its exit status; of one that a signal ended, 128 and the signal
  std::string output;
  std::vector<mcp::Json> messages;  // objects
  std::string last_words;           // what is no message: of a crash
  bool too_much = false;            // more than kMostOutput
};

class ServedCommand {
 public:
  static constexpr size_t kMostOutput = size_t{64} << 20;

  // `words`: without the name of the program. `mask`: its signal mask. It ends with us.
  static Result<std::unique_ptr<ServedCommand>> start(const std::vector<std::string>& words,
                                                      const sigset_t& mask);
  // Kills it if it still runs.
  ~ServedCommand();
  ServedCommand(const ServedCommand&) = delete;
  ServedCommand& operator=(const ServedCommand&) = delete;

  // To poll; negative: closed.
  int output() const { return output_.get(); }
  int messages() const { return messages_.get(); }
  // Takes what is there, without waiting. Whether it said since the last time that it goes on.
  bool read();
  // Whether it has ended; what it wrote is then complete.
  bool has_ended();
  void send_signal(int number) const;
  CommandOutcome take_outcome() { return std::move(outcome_); }

 private:
  ServedCommand() = default;
  bool take_line(std::string_view line);

  pid_t pid_ = 0;  // 0: has ended
  Descriptor output_, messages_;
  std::string line_;  // of a message, as far as it has come
  CommandOutcome outcome_;
};

}  // namespace phlox::cli
