// What a stack shows about a thread that is blocked at its end: that it fetches work, or is in the middle of
// some. Decided by the functions that are known by name (known_waits.h) and by their position: by the stack
// alone, never by how much time was spent where. docs/decisions/0005 has the rule. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "phlox/profile/profile.h"
#include "phlox/view/known_waits.h"

namespace phlox::view {

// The state of a thread that is blocked with this stack, whatever the system call.
enum class Position : uint8_t {
  no_python,
  not_read,      // a marker is in the place of the function that waits, or of one that it called
  fetch,         // at the place where it fetches work, with nothing of a work item on the stack
  nested_fetch,  // in an event loop that runs within a work item: for itself, or for that item
  native_loop,   // the same as fetch, if the system call is one of the loop's
  within_work,   // in a work item, or in a function that a loop has called
  root,          // the function with which the thread began waits itself
  elsewhere,     // deeper, and no function on the stack is known to hand out work
};

struct WaitPlace {
  Position position = Position::no_python;
  // The function that waits on behalf of the one at `position`; none: that one itself.
  Role waits = Role::none;
  bool is_event = false;      // waits_for_condition: an Event's
  bool of_child = false;      // the stack begins where multiprocessing starts a child
  bool calls_python = false;  // the innermost line is also one that calls functions of Python
  uint32_t loop = 0;          // the innermost event loop, by WaitPlaces::name; 0: none
  uint32_t pool = 0;          // likewise the pool whose worker this is
};

class WaitPlaces {
 public:
  explicit WaitPlaces(const profile::Profile& profile);
  const WaitPlace& of(profile::StackId stack) const {
    return places_[stack.value < places_.size() ? stack.value : 0];
  }
  std::string_view name(uint32_t loop_or_pool) const;

 private:
  struct Function {
    Role role = Role::none;
    uint32_t name = 0;  // of its loop or pool
    bool begins_thread = false;
    bool calls_selector = false, may_be_selector = false;
    bool not_read = false;     // a marker in the place of functions
    bool forked_here = false;  // a marker: what is above it is the parent's
  };
  // The Python functions of a stack from the root to one of them, whatever their lines.
  struct Path {
    uint32_t parent = 0;
    uint32_t function = 0;
    int32_t depth = -1;  // 0: the function with which the thread began; -1: frames before it
    uint32_t known =
        0;  // the innermost path, from here up, of a function that fetches work or does it; 0: none
    bool of_child = false;
    uint32_t loop = 0, pool = 0;
  };
  std::vector<uint32_t> number_functions(const profile::Profile& profile);
  void number_paths(const profile::Profile& profile, const std::vector<uint32_t>& function_of_frame);
  void add_path(uint32_t above, uint32_t function);
  WaitPlace place_of(uint32_t path) const;
  uint32_t asking(uint32_t path, WaitPlace& place) const;
  bool is_within_item(uint32_t path) const;
  uint32_t native_loop_above(uint32_t stack) const;
  void find_native_loops(const profile::Profile& profile, const std::vector<uint32_t>& function_of_frame);
  void learn_fetches(const profile::Profile& profile);
  uint32_t number_of(std::string_view name);
  uint32_t as_called_by(uint32_t above, uint32_t function);

  std::vector<std::string_view> names_;
  std::vector<Function> functions_;
  std::vector<Path> paths_;
  std::vector<uint32_t> path_of_stack_;
  std::vector<WaitPlace> places_;  // by stack
};

// Whether this is the main thread of its process.
bool is_main(const profile::Profile& profile, const profile::Thread& thread);

}  // namespace phlox::view
