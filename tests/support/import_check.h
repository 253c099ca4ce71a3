// Invariants of every import, whatever its input: for the fuzz targets and for replays of their corpora.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "phlox/importers/importer.h"
#include "phlox/profile/profile.h"

namespace phlox::test {

// Ends the program if a row refers to one that does not exist, or time runs backwards.
inline void check_import(importers::ImportFunction import, std::span<const std::byte> bytes) {
  importers::MemoryInput input(bytes);
  importers::ImportOptions options;
  options.files.sysroot = "/nonexistent";
  profile::Profile profile;
  const auto outcome = import(input, options, profile);
  if (!outcome) return;
  const auto require = [](bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "an import is not whole: %s\n", what);
    std::abort();
  };
  for (const profile::Sample& sample : profile.samples()) {
    require(sample.stack.value <= profile.stacks().size(), "stack of a sample");
    require(sample.thread.value >= 1 && sample.thread.value <= profile.threads().size(),
            "thread of a sample");
    require(sample.wall >= 0 && sample.cpu >= 0, "time of a sample");
  }
  for (size_t i = 0; i < profile.stacks().size(); ++i) {
    require(profile.stacks()[i].parent.value <= i, "parent of a stack");
    require(
        profile.stacks()[i].frame.value >= 1 && profile.stacks()[i].frame.value <= profile.frames().size(),
        "frame of a stack");
  }
  for (const profile::Thread& thread : profile.threads())
    require(thread.process.value >= 1 && thread.process.value <= profile.processes().size(),
            "process of a thread");
  for (const profile::Frame& frame : profile.frames())
    require(!frame.module || frame.module->value <= profile.modules().size() || !outcome->modules.empty(),
            "module of a frame");
}

}  // namespace phlox::test
