// The process and thread of a stack in text: formats with one line for each stack name both in its first
// frames.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/importers/thread_name.h"

namespace phlox::importers {

struct ProcessName {
  int32_t pid = 0;
  std::string command;  // empty: not named
};

struct StackRoot {
  std::vector<ProcessName> processes;  // a parent before its child; the last one owns the stack
  std::optional<ThreadName> thread;
};

// Removes the name of a process or thread from the start of `frames`, which ';' separates: py-spy's `process
// 12:"command";thread (12): name`, austin 1's `Process 12;Thread 7f00`. A ';' within the quotes of a command
// does not separate. The result is valid as long as the text of `frames`.
StackRoot take_stack_root(std::string_view& frames);

}  // namespace phlox::importers
