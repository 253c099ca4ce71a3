// What stands for a frame, a thread or a process wherever people look: on a box of a flame graph, in a table.
// Nothing is counted here (call_tree.h).
#pragma once

#include <cstdint>
#include <string>

#include "phlox/profile/choices.h"
#include "phlox/profile/profile.h"

namespace phlox::profile {

// What a box of a flame graph stands for. Two stacks share a node when their labels are equal up to there.
struct Label {
  FrameKind kind = FrameKind::python;
  std::string name;  // what is drawn: qualified name; "Thread worker-1 (4711)"; "python3 app.py (pid 12)"
  std::string file = {};    // "" where there is none
  int32_t line = 0;         // by line: the line; by function: the first line of the function; 0: none
  std::string module = {};  // what colours go by: top package or module of a Python file ("json", "numpy",
                            // "app"), of a native function its library ("libc"); module_of_file.h
  std::string full = {};    // the name with namespaces, template arguments and all; "": `name` is that
  // With By::place only.
  ModuleId module_id = {};  // native: the row of its library
  int32_t first_line = 0;   // by line: of the function
  uint64_t address = 0;     // by line: of a native frame, as the module's file states it

  const std::string& whole_name() const { return full.empty() ? name : full; }

  friend bool operator==(const Label&, const Label&) = default;
};

// As the choices want it; what a tree made with them has.
Label frame_label(const Profile& profile, FrameId frame, const Choices& choices);
// With the names by_format.
Label function_label(const Profile& profile, FrameId frame);
Label line_label(const Profile& profile, FrameId frame);
std::string thread_label(const Thread& thread);     // "Thread worker-1 (4711)"
std::string process_label(const Process& process);  // "python3 app.py (pid 12)"

}  // namespace phlox::profile
