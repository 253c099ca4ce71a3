// A condition of `--on`, from its text. Pure: whether a file can be read or an address is free is found out
// by who watches it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/clock.h"
#include "phlox/base/result.h"

namespace phlox::incidents {

enum class Kind { stall, gil, cpu, cpu_wait, memory, log, signal, http, death };
// As typed: "cpu-wait"; also a part of the names of files.
std::string_view kind_name(Kind kind);

struct Condition {
  Kind kind = Kind::stall;
  Nanoseconds length = 0;           // stall, gil: at least this long
  double share = 0;                 // cpu, cpu_wait: of one CPU; memory: of the limit
  Nanoseconds over = 10 * kSecond;  // cpu, cpu_wait: the average over this time
  std::string file, regex;          // log
  int signal = 0;                   // SIGUSR1 or SIGUSR2
  std::string address;              // http
};

// "stall=200ms", "gil=100ms", "cpu=90%", "cpu=250%/30s", "cpu-wait=50%", "memory=90%", "log=FILE:REGEX",
// "signal=USR2", "http=127.0.0.1:9465", "death". ErrorKind::usage, with a hint.
Result<Condition> parse_condition(std::string_view text);

bool has(const std::vector<Condition>& conditions, Kind kind);
// The shortest `length` of a kind; 0: there is no condition of it.
Nanoseconds shortest(const std::vector<Condition>& conditions, Kind kind);

}  // namespace phlox::incidents
