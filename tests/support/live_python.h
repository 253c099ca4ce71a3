// A Python program that runs until the test ends it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "support/pythons.h"

namespace phlox::test {

class LivePython : public memory::RemoteMemory {
 public:
  // Starts `script` (a file) and waits for a line "ready". The script then waits for the end of its standard
  // input.
  LivePython(const Python& python, const std::string& script, const std::vector<std::string>& arguments = {});
  ~LivePython() override;
  LivePython(const LivePython&) = delete;
  LivePython& operator=(const LivePython&) = delete;

  pid_t pid() const { return pid_; }
  bool ready() const { return ready_; }
  // Its output before "ready".
  const std::vector<std::string>& lines() const { return lines_; }

  size_t read(std::span<const memory::Range> ranges) override;
  using RemoteMemory::read;
  size_t calls() const { return calls_; }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  bool ready_ = false;
  std::vector<std::string> lines_;
  size_t calls_ = 0;
};

}  // namespace phlox::test
