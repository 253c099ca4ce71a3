// The names of the C functions that Cython writes, and their names in the .pyx file. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace phlox::symbols {

// One function of a .pyx file becomes several of C, each called by the one before.
enum class CythonPart : uint8_t {
  none,
  slot,      // the type's table points to it
  wrapper,   // takes the arguments apart: __pyx_pw_
  body,      // of a def: __pyx_pf_
  function,  // of a cdef or a cpdef: __pyx_f_
};

struct CythonName {
  std::string name;  // "fast.inner.compute"; empty: not one of Cython's names
  CythonPart part = CythonPart::none;
};

// `symbol`: as the file has it, mangled if Cython wrote C++. `stem`: the name of the module's file up to the
// first dot, which distinguishes a module from a function; may be empty.
CythonName cython_name(std::string_view symbol, std::string_view stem = {});

}  // namespace phlox::symbols
