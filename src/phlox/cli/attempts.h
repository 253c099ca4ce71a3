// How the interpreter was searched for, for --verbose: every strategy in the order tried, and why it failed.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "phlox/cli/talk.h"
#include "phlox/python/locate.h"

namespace phlox::cli {

inline void say_attempts(const std::vector<python::Attempt>& attempts, Talk& talk) {
  for (const python::Attempt& a : attempts) {
    std::string line =
        fmt::format("{} {} in {}: {}", a.found ? "found by" : "tried", a.strategy, a.module, a.reason);
    for (char& c : line) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';  // a file may have any name
    }
    talk.detail(line);
  }
}

}  // namespace phlox::cli
