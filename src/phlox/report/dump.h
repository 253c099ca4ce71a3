// `phlox dump`: what every thread does at one instant, as text or JSON. Pure: the sample is a Profile;
// variables and source text come from the caller. Never prints, never opens a file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/report/dump_tasks.h"

namespace phlox::report {

struct DumpVariable {
  std::string name;
  std::string value;  // as Python writes it, short
  bool argument = false;
};

// The variables of the `depth`-th Python frame of a thread's stack, leaf first, from 0.
struct DumpVariables {
  profile::ThreadId thread;
  size_t depth = 0;
  std::vector<DumpVariable> variables;
};

// Threads of the process that the dump does not show; 0: the number is not known.
struct DumpMissing {
  size_t threads = 0;
  std::string why;
};

struct Dump {
  std::string python;  // "CPython 3.12.1 (default), found by ..."
  std::vector<DumpVariables> variables;
  std::vector<DumpMissing> missing;
  std::vector<DumpTasks> tasks;  // one for each process; none: not asked for
  bool every_task = false;       // in text; otherwise they are grouped
};

// The text of a source file of the target, whole, or none. Called once for each file.
using DumpSource = std::function<std::optional<std::string>(const std::string& file)>;

// Leaf first, as in a debugger.
std::string dump_text(const profile::Profile& instant, const Dump& dump, const DumpSource& source);
// "12 threads are not shown: ...".
std::string describe(const DumpMissing& missing);
std::string dump_json(const profile::Profile& instant, const Dump& dump);  // docs/json/dump.schema.json

}  // namespace phlox::report
