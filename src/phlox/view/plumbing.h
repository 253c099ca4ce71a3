// Recognises, by their names, the C functions that only lead from one frame to the next: CPython's way from
// one call to another, Cython's, the interpreter's loop, and what starts programs and threads.
// native_frames.h folds them. Pure.
#pragma once

#include <span>
#include <string_view>

namespace phlox::view {

// Whether this C function of CPython only leads from one Python frame, or one C function, to the next.
// Suffixes that compilers add (".cold", ".constprop.0") do not count.
bool is_plumbing(std::string_view function);
// The same for code that Cython adds, in any module.
bool is_cython_plumbing(std::string_view function);
// Whether it is the interpreter's loop, or a part of it: the Python frame below shows what it did.
bool is_loop_function(std::string_view function);
// Whether it starts a program or a thread, before anything of the program runs.
bool is_start(std::string_view function);

bool starts_with_one_of(std::span<const std::string_view> prefixes, std::string_view name);

}  // namespace phlox::view
