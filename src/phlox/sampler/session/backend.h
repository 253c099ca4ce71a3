// What samples the programs of a recording. ThreadBackend has a sampler thread for each; KernelBackend
// samples all of them inside the kernel, and also reports births and execs. The recording does not know
// which. Called by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/descriptor.h"
#include "phlox/sampler/observe/ring.h"
#include "phlox/sampler/observe/sample_source.h"
#include "phlox/sampler/session/program.h"

namespace phlox::sampler {

// A process that was born while its parent was recorded.
struct Birth {
  std::unique_ptr<Program> program;  // as its parent's, in the child
  pid_t parent = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // Before the first program begins. `help`: may be called by any thread that is awake for a sample, which
  // may do a small job that needs no thread of its own.
  virtual void start(std::function<void(Nanoseconds now)> help) = 0;
  // Sets when the program was started, if that is known.
  virtual void note_start(Program&) {}
  struct Begun {
    std::unique_ptr<SampleSource> source;
    std::string why_otherwise;  // why it is not sampled as the others; empty: it is
  };
  // Begins to sample into the ring, at once.
  using Begin = std::function<Begun(Ring& ring)>;
  // Finds out how to sample a program, which must outlive its source. Empty: it has ended, and is reported
  // by births().
  virtual Begin prepare(Program& program, const Descriptor& pidfd) = 0;

  // Whether every fork and execve of the recorded processes is reported: the rest is empty otherwise.
  virtual bool reports_births() const { return false; }
  // Readable when there is a report; -1: never.
  virtual int descriptor() const { return -1; }
  // Passes samples on to the rings, until `deadline`. Returns whether there may be more; empty the rings
  // first.
  virtual bool drain(Nanoseconds) { return false; }
  // Whether more than a little has come since the last call.
  virtual bool came_much() { return false; }
  // Processes forked before `until`, or ended, that were not returned before. Begin each of them, or leave
  // it.
  virtual std::vector<Birth> births(Nanoseconds) { return {}; }
  virtual void leave(const Program&) {}
  // Whether it was forked, and births() will return it.
  virtual bool is_newborn(pid_t) const { return false; }
  // Whether one was born just now, so that the next report may be due soon.
  virtual bool has_newborn(Nanoseconds) const { return false; }
  // Whether its birth was reported.
  virtual bool has_reported(pid_t) const { return false; }
  // Processes whose program has ended by execve since the last call.
  struct Exec {
    pid_t pid = 0;
    bool was_begun_with = false;
  };
  virtual std::vector<Exec> execs() { return {}; }
  // Pythons, by their names, that ended before a similar one was recorded, and the command line of the last.
  struct Brief {
    size_t programs = 0;
    std::string command_line;
  };
  virtual Brief too_brief() const { return {}; }
};

}  // namespace phlox::sampler
