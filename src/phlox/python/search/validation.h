// Whether a candidate is an interpreter: its thread states point back to it, and a trial walk along their
// frames finds code objects. Called before an address is used; reads memory of the target, decides nothing
// else.
#pragma once

#include <cstdint>
#include <string>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/interpreter.h"

namespace phlox::python {

enum class Verdict : uint8_t {
  valid,
  not_up,  // the place may be right: no interpreter, or one without a thread state
  wrong,
};
// `reason`: the check that failed.
Verdict validate(const Interpreter& candidate, memory::RemoteMemory& memory, std::string& reason);

// Whether a word can be the address of an object.
inline bool is_pointer(uint64_t value) {
  return is_plausible(RemoteAddress(value)) && (value & 7) == 0;
}

}  // namespace phlox::python
