// Looks for the routes of a program's web applications (python/web_routes.h), now and then, and reports them
// to the sink as facts of the recording. A program registers most of them as it starts: each look comes after
// three times as long as the one before. Called by the recorder's thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>

#include "phlox/base/clock.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/profile/sink.h"
#include "phlox/python/interpreter.h"

namespace phlox::sampler {

class RouteWatch {
 public:
  static constexpr Nanoseconds kFirst = kSecond / 2;  // after the begin

  RouteWatch(pid_t pid, const python::Interpreter& interpreter, memory::RemoteMemory& memory,
             profile::Sink& sink, Nanoseconds begin)
      : pid_(pid),
        interpreter_(interpreter),
        memory_(memory),
        sink_(sink),
        begin_(begin),
        due_(begin + kFirst) {}

  // If it is due.
  void look(Nanoseconds now, const std::function<void()>& between);

 private:
  pid_t pid_;
  const python::Interpreter& interpreter_;
  memory::RemoteMemory& memory_;
  profile::Sink& sink_;
  Nanoseconds begin_, due_;
  int looks_ = 0;
  std::map<std::string, std::string> put_;
};

}  // namespace phlox::sampler
