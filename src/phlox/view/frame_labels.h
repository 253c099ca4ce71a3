// Names of frames, threads and processes in everything that people read: a box of a flame graph, a table.
// Nothing is counted here (call_tree.h).
#pragma once

#include <cstdint>
#include <string>

#include "phlox/profile/profile.h"
#include "phlox/view/choices.h"

namespace phlox::view {

// The label of a box in a flame graph. Two stacks share a node if their labels are equal up to there.
struct Label {
  profile::FrameKind kind = profile::FrameKind::python;
  // The drawn text: qualified name; "Thread worker-1 (4711)"; "python3 app.py (pid 12)".
  std::string name;
  std::string file = {};  // "" if there is none
  int32_t line = 0;       // by line: the line; by function: the first line of the function; 0: none
  // Decides the colour: top package or module of a Python file ("json", "numpy", "app"), library of a native
  // function ("libc"); module_of_file.h.
  std::string module = {};
  // The complete name, with namespaces and template arguments; "": `name` is complete.
  std::string full = {};
  // With By::place only.
  profile::ModuleId module_id = {};  // native: the row of its library
  int32_t first_line = 0;            // by line: of the function
  uint64_t address = 0;              // by line: of a native frame, as the module's file has it

  const std::string& whole_name() const { return full.empty() ? name : full; }

  friend bool operator==(const Label&, const Label&) = default;
};

// As the choices ask for it; trees made with these choices contain it.
Label frame_label(const profile::Profile& profile, profile::FrameId frame, const Choices& choices);
// With the names by_format.
Label function_label(const profile::Profile& profile, profile::FrameId frame);
Label line_label(const profile::Profile& profile, profile::FrameId frame);
std::string thread_label(const profile::Thread& thread);     // "Thread worker-1 (4711)"
std::string process_label(const profile::Process& process);  // "python3 app.py (pid 12)"

}  // namespace phlox::view
