#include "phlox/python/layout_table.h"

#include <array>
#include <iterator>

#include "phlox/base/machine.h"

namespace phlox::python {
namespace {

constexpr Offset none;

// Differences in behaviour, by version: each version has the traits of the one before, with its changes.

constexpr Traits kPython2_7 = [] {
  Traits t;
  t.anchor = FrameAnchor::frame_object;
  t.instruction = InstructionUnit::lasti_bytes;
  t.lines = LineTable::lnotab_unsigned;
  t.code_proof = CodeProof::contents;
  t.code_epoch = CodeEpoch::none;
  t.gil = GilOwner::symbols;
  t.managed_dict = ManagedDict::none;
  t.delegation = Delegation::next_opcode;
  t.has_data_stack = false;
  t.python2 = true;
  t.interpreter_frames = false;
  t.first_state_unbound = true;
  return t;
}();

constexpr Traits kPython3_6 = [] {
  Traits t = kPython2_7;
  t.lines = LineTable::lnotab;  // https://bugs.python.org/issue26107
  t.python2 = false;
  return t;
}();

constexpr Traits kPython3_7 = [] {
  Traits t = kPython3_6;
  t.gil = GilOwner::runtime;
  return t;
}();
constexpr Traits kPython3_8 = kPython3_7;
constexpr Traits kPython3_9 = kPython3_8;

constexpr Traits kPython3_10 = [] {
  Traits t = kPython3_9;
  t.instruction = InstructionUnit::lasti_code_units;  // https://bugs.python.org/issue27129
  t.lines = LineTable::pep626;
  return t;
}();

constexpr Traits kPython3_11 = [] {
  Traits t = kPython3_10;
  t.anchor = FrameAnchor::cframe;
  t.instruction = InstructionUnit::prev_instr;
  t.lines = LineTable::pep657;
  t.managed_dict = ManagedDict::two_words;
  t.delegation = Delegation::resume_oparg;
  t.has_data_stack = true;
  t.interpreter_frames = true;
  return t;
}();

constexpr Traits kPython3_12 = [] {
  Traits t = kPython3_11;
  t.code_proof = CodeProof::co_version;
  t.code_epoch = CodeEpoch::global_version;
  t.gil = GilOwner::interpreter;  // PEP 684
  t.owner.entry = 3;              // FRAME_OWNED_BY_CSTACK
  t.managed_dict = ManagedDict::tagged;
  return t;
}();

constexpr Traits kPython3_13 = [] {
  Traits t = kPython3_12;
  t.first_state_unbound = false;
  t.code_epoch = CodeEpoch::interpreter_version;
  t.anchor = FrameAnchor::current_frame;
  t.instruction = InstructionUnit::instr_ptr;
  t.managed_dict = ManagedDict::inline_values;
  t.delegation = Delegation::frame_state;
  return t;
}();

constexpr Traits kPython3_14 = [] {
  Traits t = kPython3_13;
  t.code_epoch = CodeEpoch::generation;
  t.tagged_executable = true;  // f_executable is a _PyStackRef
  return t;
}();

constexpr Traits kPython3_15 = [] {
  Traits t = kPython3_14;
  // Include/internal/pycore_frame.h: FRAME_SUSPENDED_YIELD_FROM, its locked form and FRAME_EXECUTING are
  // numbered separately.
  t.generator_delegates = 2;
  t.generator_delegates_locked = 3;
  t.generator_executing = 4;
  t.delegate_depth = 2;  // an iterator and its index, or NULL (GET_ITER)
  return t;
}();

constexpr Traits free_threaded(Traits t) {
  t.free_threaded = true;
  // Include/cpython/unicodeobject.h of 3.14: `interned` is a separate byte there, changed atomically.
  if (t.tagged_executable) t.unicode_kind_shift = 8;
  return t;
}

constexpr Traits debug(Traits t) {
  t.debug = true;
  return t;
}

// Read from the headers on x86-64.
// clang-format off
constexpr Layout kRead[] = {
{.name = "2.7", .major = 2, .minor = 7, .traits = kPython2_7,
#include "phlox/python/rows/2.7.inc"
},
{.name = "3.6", .major = 3, .minor = 6, .traits = kPython3_6,
#include "phlox/python/rows/3.6.inc"
},
{.name = "3.7", .major = 3, .minor = 7, .traits = kPython3_7,
#include "phlox/python/rows/3.7.inc"
},
{.name = "3.8", .major = 3, .minor = 8, .traits = kPython3_8,
#include "phlox/python/rows/3.8.inc"
},
{.name = "3.8 debug", .major = 3, .minor = 8, .traits = debug(kPython3_8),
#include "phlox/python/rows/3.8-debug.inc"
},
{.name = "3.9", .major = 3, .minor = 9, .traits = kPython3_9,
#include "phlox/python/rows/3.9.inc"
},
{.name = "3.9 debug", .major = 3, .minor = 9, .traits = debug(kPython3_9),
#include "phlox/python/rows/3.9-debug.inc"
},
{.name = "3.10", .major = 3, .minor = 10, .traits = kPython3_10,
#include "phlox/python/rows/3.10.inc"
},
{.name = "3.10 debug", .major = 3, .minor = 10, .traits = debug(kPython3_10),
#include "phlox/python/rows/3.10-debug.inc"
},
{.name = "3.11", .major = 3, .minor = 11, .traits = kPython3_11,
#include "phlox/python/rows/3.11.inc"
},
{.name = "3.11 debug", .major = 3, .minor = 11, .traits = debug(kPython3_11),
#include "phlox/python/rows/3.11-debug.inc"
},
{.name = "3.12", .major = 3, .minor = 12, .traits = kPython3_12,
#include "phlox/python/rows/3.12.inc"
},
{.name = "3.12 debug", .major = 3, .minor = 12, .traits = debug(kPython3_12),
#include "phlox/python/rows/3.12-debug.inc"
},
{.name = "3.13", .major = 3, .minor = 13, .traits = kPython3_13,
#include "phlox/python/rows/3.13.inc"
},
{.name = "3.13 debug", .major = 3, .minor = 13, .traits = debug(kPython3_13),
#include "phlox/python/rows/3.13-debug.inc"
},
{.name = "3.13t", .major = 3, .minor = 13, .traits = free_threaded(kPython3_13),
#include "phlox/python/rows/3.13t.inc"
},
{.name = "3.13t debug", .major = 3, .minor = 13, .traits = debug(free_threaded(kPython3_13)),
#include "phlox/python/rows/3.13t-debug.inc"
},
{.name = "3.14", .major = 3, .minor = 14, .traits = kPython3_14,
#include "phlox/python/rows/3.14.inc"
},
{.name = "3.14 debug", .major = 3, .minor = 14, .traits = debug(kPython3_14),
#include "phlox/python/rows/3.14-debug.inc"
},
{.name = "3.14t", .major = 3, .minor = 14, .traits = free_threaded(kPython3_14),
#include "phlox/python/rows/3.14t.inc"
},
{.name = "3.14t debug", .major = 3, .minor = 14, .traits = debug(free_threaded(kPython3_14)),
#include "phlox/python/rows/3.14t-debug.inc"
},
{.name = "3.15", .major = 3, .minor = 15, .traits = kPython3_15,
#include "phlox/python/rows/3.15.inc"
},
{.name = "3.15 debug", .major = 3, .minor = 15, .traits = debug(kPython3_15),
#include "phlox/python/rows/3.15-debug.inc"
},
{.name = "3.15t", .major = 3, .minor = 15, .traits = free_threaded(kPython3_15),
#include "phlox/python/rows/3.15t.inc"
},
{.name = "3.15t debug", .major = 3, .minor = 15, .traits = debug(free_threaded(kPython3_15)),
#include "phlox/python/rows/3.15t-debug.inc"
},
};
// clang-format on

// A pthread_mutex_t takes 48 bytes on aarch64 and 40 on x86-64; the struct of the GIL holds two. Fields after
// it in another struct are 16 bytes further on. Nothing else differs from 3.8 to 3.13
// (CC=aarch64-linux-gnu-gcc tools/layouts row).
constexpr Layout on_aarch64(Layout row) {
  constexpr uint32_t kMore = 16;
  const auto move = [](Offset& field) {
    if (field.present()) field = Offset(*field + kMore);
  };
  const auto move_behind = [&](Offset gil, Offset& field) {
    if (gil.present() && field.present() && *field > *gil) move(field);
  };
  auto& runtime = row.runtime;
  auto& interpreter = row.interpreter;
  for (Offset* field : {&runtime.size, &runtime.interpreters_head, &runtime.interpreters_main,
                        &runtime.tstate_current, &runtime.finalizing, &runtime.autoTSSkey})
    move_behind(runtime.gil, *field);
  // The first interpreter is at the end of the runtime.
  if (interpreter.gil.present()) move(runtime.size);
  for (Offset* field : {&interpreter.size, &interpreter.next, &interpreter.id, &interpreter.threads_head,
                        &interpreter.ceval_gil, &interpreter.gc_collecting, &interpreter.modules,
                        &interpreter.code_object_generation, &interpreter.func_state_next_version,
                        &interpreter.tlbc_generation, &interpreter.threads_main})
    move_behind(interpreter.gil, *field);
  move(row.gil_state.size);
  return row;
}

constexpr auto kRows = [] {
  std::array<Layout, std::size(kRead)> rows{};
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = kOnAarch64 ? on_aarch64(kRead[i]) : kRead[i];
  return rows;
}();

// From the headers of 3.8.18 to 3.13.0, compiled for aarch64.
constexpr Layout of_aarch64(uint8_t minor) {
  for (const Layout& row : kRead) {
    if (row.major == 3 && row.minor == minor) return on_aarch64(row);
  }
  return {};
}
static_assert(of_aarch64(8).runtime.tstate_current == 1384 && of_aarch64(8).runtime.autoTSSkey == 1408);
static_assert(of_aarch64(9).runtime.tstate_current == 584 && of_aarch64(9).runtime.autoTSSkey == 600);
static_assert(of_aarch64(10).runtime.tstate_current == 584 && of_aarch64(10).runtime.autoTSSkey == 600);
static_assert(of_aarch64(11).runtime.tstate_current == 592 && of_aarch64(11).runtime.autoTSSkey == 608);
static_assert(of_aarch64(11).runtime.size == 166704 && of_aarch64(11).gil_state.size == 224);
static_assert(of_aarch64(12).interpreter.func_state_next_version == 269832);
static_assert(of_aarch64(12).interpreter.size == 383568 && of_aarch64(12).runtime.size == 459960);
static_assert(of_aarch64(13).interpreter.func_state_next_version == 17016);

Build build_of(const Layout& row) {
  return {.debug = row.traits.debug, .free_threaded = row.traits.free_threaded};
}

}  // namespace

const char* name_of(Build build) {
  if (build.free_threaded) return build.debug ? "free-threaded debug" : "free-threaded";
  return build.debug ? "debug" : "default";
}

std::span<const Layout> layouts() {
  return kRows;
}

const Layout* find_layout(uint8_t major, uint8_t minor, Build build) {
  for (const Layout& row : kRows) {
    if (row.major == major && row.minor == minor && build_of(row) == build) return &row;
  }
  return nullptr;
}

const Layout* newest_layout(Build build) {
  const Layout* newest = nullptr;
  for (const Layout& row : kRows) {
    if (build_of(row) == build) newest = &row;
  }
  return newest;
}

}  // namespace phlox::python
