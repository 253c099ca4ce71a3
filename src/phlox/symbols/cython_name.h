// What Cython calls the C functions that it writes, and what they are called in the .pyx file. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace phlox::symbols {

// One function of a .pyx file becomes several of C, each called by the one before.
enum class CythonPart : uint8_t {
  none,
  slot,      // what the type's table points to
  wrapper,   // takes the arguments apart: __pyx_pw_
  body,      // of a def: __pyx_pf_
  function,  // of a cdef or a cpdef: __pyx_f_
};

struct CythonName {
  std::string name;  // "fast.inner.compute"; empty: none of Cython's names
  CythonPart part = CythonPart::none;
};

// `symbol`: as the file has it, mangled where Cython wrote C++. `stem`: what the module's file is called up
// to the first dot, which tells a module from a function; may be empty.
CythonName cython_name(std::string_view symbol, std::string_view stem = {});

}  // namespace phlox::symbols
