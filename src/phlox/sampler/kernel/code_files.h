// The library or extension module that contains an instruction of a process. For recordings without native
// frames: each sample of the clock has the thread's address in its own code (kernel_sample.native). Knows the
// files by the mappings; the interpreter's own and the program's are not among them. Called by the recorder's
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/base/clock.h"
#include "phlox/base/result.h"
#include "phlox/process/maps.h"

namespace phlox::sampler {

class CodeFiles {
 public:
  using ReadMaps = std::function<Result<std::vector<process::Mapping>>()>;
  // `executable`: the process's executable, as it sees it. `interpreter`: a static variable of its Python.
  CodeFiles(ReadMaps read_maps, std::string executable, RemoteAddress interpreter);

  // Its number, from 1 on; 0: the interpreter's code, code without a file, or not known.
  uint32_t of(uint64_t instruction, Nanoseconds now);
  // By number.
  const std::string& path(uint32_t number) const { return paths_[number - 1]; }

 private:
  struct Range {
    uint64_t start = 0, end = 0;
    std::string path;  // empty: not reported
    uint32_t number = 0;
  };
  Range* find(uint64_t instruction);
  void refresh(Nanoseconds now);
  uint32_t number_of(const std::string& path);

  ReadMaps read_maps_;
  std::string executable_;
  RemoteAddress interpreter_;
  std::vector<Range> ranges_;  // by address
  std::vector<std::string> paths_;
  Nanoseconds refreshed_at_, pause_;
};

}  // namespace phlox::sampler
