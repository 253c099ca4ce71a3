// The offsets of CPython's fields: one Layout is one row of the version table (layout_table.cpp), or such a
// row with the words of the target's own _Py_DebugOffsets (3.13+). Code asks for a field or a trait, never
// for a version. "Absent" is a value of its own, not 0.
//
// Field names are CPython's. Sources: Include/internal/pycore_{runtime,interp,frame,gil,ceval_state}.h,
// Include/cpython/{pystate,code,unicodeobject,dictobject,frameobject}.h of each version; read off by
// tools/layouts.
#pragma once

#include <cstdint>
#include <string_view>

namespace phlox::python {

// Byte offset of a field in its struct, or a size.
class Offset {
 public:
  constexpr Offset() = default;
  constexpr Offset(uint32_t value) : value_(value) {}  // NOLINT: rows read as tables of numbers
  constexpr bool present() const { return value_ != kAbsent; }
  // Must be present.
  constexpr uint32_t operator*() const { return value_; }
  friend constexpr bool operator==(Offset, Offset) = default;

 private:
  static constexpr uint32_t kAbsent = ~uint32_t{0};
  uint32_t value_ = kAbsent;
};

// Every struct and its fields, written once: the table, tools/layouts, the overlay of _Py_DebugOffsets, the
// checks and the printing loop over this list. S(struct) opens a struct, F(field) is a field in it. "size" is
// sizeof(struct). A path within a struct is written with '_' ("ceval_gil" is interp.ceval.gil).
// clang-format off
#define PHLOX_LAYOUT_FIELDS(S, F)                                                                              \
  /* _PyRuntimeState. gil: the inline struct of 3.7-3.11 (ceval.gil). tstate_current: gilstate.tstate_current */ \
  S(runtime) F(size) F(interpreters_head) F(interpreters_main) F(gil) F(tstate_current) F(finalizing)          \
  F(debug_offsets) F(autoTSSkey)                                                                               \
  /* PyInterpreterState. ceval_gil: a pointer to the GIL (3.12+). gil: the interpreter's own inline GIL struct. \
     func_state_next_version: func_state.next_version */                                                       \
  S(interpreter) F(size) F(next) F(id) F(threads_head) F(ceval_gil) F(gil) F(gc_collecting) F(modules)         \
  F(code_object_generation) F(func_state_next_version) F(tlbc_generation) F(threads_main)                      \
  /* struct _gil_runtime_state */                                                                              \
  S(gil_state) F(size) F(last_holder) F(locked) F(switch_number)                                               \
  /* PyThreadState. frame: <= 3.10; cframe: 3.10-3.12; current_frame, base_frame: 3.13+ */                     \
  S(thread) F(size) F(prev) F(next) F(interp) F(frame) F(cframe) F(current_frame) F(base_frame)                \
  F(thread_id) F(native_thread_id) F(id) F(datastack_chunk) F(datastack_top) F(datastack_limit) F(status)      \
  F(holds_gil) F(gil_requested)                                                                                \
  /* _PyCFrame */                                                                                              \
  S(cframe) F(size) F(current_frame) F(previous)                                                               \
  /* _PyStackChunk */                                                                                          \
  S(chunk) F(previous) F(size) F(top) F(data)                                                                  \
  /* _PyInterpreterFrame (3.11+), PyFrameObject (<= 3.10). executable: f_code or f_executable; previous: previous   \
     or f_back; instr: prev_instr, instr_ptr, or (<= 3.10) the int f_lasti */                                  \
  S(frame) F(size) F(executable) F(previous) F(instr) F(owner) F(is_entry) F(localsplus) F(stacktop)           \
  F(stackpointer) F(funcobj) F(f_globals) F(f_locals) F(frame_obj) F(tlbc_index) F(f_lineno)                   \
  /* PyCodeObject. code_adaptive: co_code_adaptive (3.11+, inline); code: co_code (<= 3.10, a bytes object);   \
     linetable: co_linetable or co_lnotab; version: co_version (3.12+; 3.11 has it without use for us) */      \
  S(code) F(size) F(name) F(qualname) F(filename) F(firstlineno) F(linetable) F(code_adaptive) F(code)         \
  F(version) F(argcount) F(posonlyargcount) F(kwonlyargcount) F(flags) F(nlocals) F(nlocalsplus) F(localsplusnames) \
  F(localspluskinds) F(varnames) F(cellvars) F(freevars) F(tlbc)                                               \
  /* objects */                                                                                                \
  S(object) F(size) F(ob_type) F(ob_refcnt)                                                                    \
  S(type) F(tp_name) F(tp_basicsize) F(tp_flags) F(tp_base) F(tp_dictoffset) F(ht_cached_keys)                 \
  S(unicode) F(size) F(length) F(state) F(asciiobject_size) F(compactobject_size) F(data)                      \
  S(bytes) F(ob_size) F(ob_sval)                                                                               \
  S(tuple) F(ob_size) F(ob_item)                                                                               \
  S(list) F(ob_size) F(ob_item)                                                                                \
  /* ob_ival: the machine integer of 2.7; lv_tag: 3.12+, ob_size before */                                     \
  S(integer) F(lv_tag) F(ob_size) F(ob_digit) F(ob_ival)                                                       \
  S(real) F(ob_fval)                                                                                           \
  /* ma_mask, ma_table: the open hash table of 2.7 */                                                          \
  S(dict) F(ma_used) F(ma_keys) F(ma_values) F(ma_mask) F(ma_table)                                            \
  S(dictkeys) F(dk_kind) F(dk_log2_size) F(dk_log2_index_bytes) F(dk_size) F(dk_nentries) F(dk_indices)        \
  /* what ma_values points to: values is the place of the first of them */                                     \
  S(dictvalues) F(values)                                                                                      \
  S(module) F(md_dict)                                                                                         \
  /* _PyCodeArray, what co_tlbc points to */                                                                   \
  S(tlbc_array) F(size) F(entries)                                                                             \
  S(set) F(mask) F(table)                                                                                      \
  S(weakref) F(wr_object)                                                                                      \
  /* PyGenObject; coroutines and async generators begin alike. gi_frame, gi_running: before 3.11, 3.10 */      \
  S(generator) F(gi_frame) F(gi_running) F(gi_iframe) F(gi_frame_state)                                        \
  /* PyFrameObject of 3.10 and before, beyond `frame`. f_state: 3.10 */                                        \
  S(frame_object) F(f_valuestack) F(f_state)                                                                   \
  /* TaskObj of Modules/_asynciomodule.c (3.8+), which begins as FutureObj does. task_node: 3.14+ */           \
  S(task) F(size) F(loop) F(callback0) F(state) F(fut_waiter) F(coro) F(name) F(node)
// clang-format on

// How the running frame is reached.
enum class FrameAnchor : uint8_t {
  frame_object,   // tstate->frame, a chain of heap PyFrameObject (<= 3.10)
  cframe,         // tstate->cframe->current_frame; cframe is on the C stack (3.11, 3.12)
  current_frame,  // tstate->current_frame (3.13+)
};

enum class InstructionUnit : uint8_t {
  lasti_bytes,       // f_lasti counts bytes (<= 3.9, and 2.7)
  lasti_code_units,  // f_lasti counts two-byte units (3.10)
  prev_instr,        // pointer to the instruction that ran last (3.11, 3.12)
  instr_ptr,         // pointer to the instruction that runs, or to the one after the call that does (3.13+)
};

enum class LineTable : uint8_t {
  lnotab_unsigned,  // line deltas are unsigned (2.7, 3.5 and before)
  lnotab,           // signed line deltas (3.6-3.9)
  pep626,           // co_linetable of 3.10
  pep657,           // location table of 3.11+
};

enum class CodeProof : uint8_t {
  contents,    // name, qualified name and file name compared by content (before 3.12)
  co_version,  // co_version, unique per interpreter life, beside the pointers (3.12+)
};

// A word that changes as soon as the address of a code object may hold another one.
enum class CodeEpoch : uint8_t {
  none,
  // _Py_next_func_version, which init_code() adds to for each code object it makes (3.12:
  // Objects/codeobject.c)
  global_version,
  // the same, one for each interpreter: func_state.next_version (3.13)
  interpreter_version,
  // _code_object_generation, which code_dealloc() adds to before it frees (3.14+)
  generation,
};

enum class GilOwner : uint8_t {
  symbols,      // <= 3.6: file statics, only _PyThreadState_Current is reachable by symbol
  runtime,      // 3.7-3.11: in _PyRuntime
  interpreter,  // 3.12+: one for each interpreter, by pointer
};

// Where an instance of a class with Py_TPFLAGS_MANAGED_DICT keeps its attributes
// (Include/internal/pycore_object.h).
enum class ManagedDict : uint8_t {
  none,       // no such instances: tp_dictoffset has the place of the dict (<= 3.10)
  two_words,  // values at -4 words, dict at -3 words, one of them NULL (3.11)
  tagged,     // one word at -3: values with the low bit set, or the dict (3.12)
  // Dict at -3 words (-1 when free-threaded) or NULL; values after its fixed part (3.13+)
  inline_values,
};

// How to see that a suspended generator or coroutine delegates to another (yield from, await); see
// _PyGen_yf() in Objects/genobject.c.
enum class Delegation : uint8_t {
  next_opcode,   // the next instruction is YIELD_FROM (<= 3.10)
  resume_oparg,  // the next instruction is RESUME with an argument of 2 or 3 (3.11, 3.12)
  frame_state,   // gi_frame_state has it (3.13+)
};

// frame.owner's values differ per version. What the walk asks: is this the entry frame of one evaluation of
// the interpreter loop (a C local, no code)? The others are for tests that build frames.
struct OwnerTraits {
  uint8_t thread = 0;
  uint8_t generator = 1;
  uint8_t frame_object = 2;
  // owner >= entry: an entry/base frame without code of its own (3 from 3.12 on); 255: none
  uint8_t entry = 255;
};

struct Traits {
  FrameAnchor anchor = FrameAnchor::current_frame;
  InstructionUnit instruction = InstructionUnit::instr_ptr;
  LineTable lines = LineTable::pep657;
  CodeProof code_proof = CodeProof::co_version;
  CodeEpoch code_epoch = CodeEpoch::generation;
  GilOwner gil = GilOwner::interpreter;
  OwnerTraits owner;
  ManagedDict managed_dict = ManagedDict::inline_values;
  Delegation delegation = Delegation::frame_state;
  // Values of gi_frame_state (3.11+) or f_state (3.10); Include/internal/pycore_frame.h.
  int8_t generator_executing = 0;
  int8_t generator_delegates = -1;         // FRAME_SUSPENDED_YIELD_FROM (3.13+)
  int8_t generator_delegates_locked = -1;  // FRAME_SUSPENDED_YIELD_FROM_LOCKED (3.15+)
  // The distance from the top of its stack at which a frame keeps the delegate: 2 from 3.15 on.
  uint8_t delegate_depth = 1;
  // bit of state.kind: 8 in free-threaded builds of 3.14+, where `interned` is a byte
  uint8_t unicode_kind_shift = 2;
  bool tagged_executable = false;  // f_executable is a _PyStackRef: clear the two low bits (3.14+)
  bool has_data_stack = true;      // frames in _PyStackChunk (3.11+)
  bool free_threaded = false;      // no GIL unless enabled at run time
  bool debug = false;
  bool python2 = false;            // str is bytes
  bool interpreter_frames = true;  // _PyInterpreterFrame (3.11+), else PyFrameObject
  // A subinterpreter's first thread state is made by the thread that makes the interpreter, and run by
  // whichever thread swaps to it, with the maker's ids in it (Modules/_xxsubinterpretersmodule.c,
  // until 3.12).
  bool first_state_unbound = false;
};

struct Layout {
  std::string_view name;  // "3.12", "3.13t", "3.11 debug"
  uint8_t major = 3;
  uint8_t minor = 0;
  Traits traits;
// clang-format off
#define PHLOX_STRUCT(s) }; struct s##_fields {
// clang-format on
#define PHLOX_FIELD(f) Offset f;
  struct first_fields {
    PHLOX_LAYOUT_FIELDS(PHLOX_STRUCT, PHLOX_FIELD)
  };
#undef PHLOX_STRUCT
#undef PHLOX_FIELD
#define PHLOX_STRUCT(s) s##_fields s;
#define PHLOX_FIELD(f)
  PHLOX_LAYOUT_FIELDS(PHLOX_STRUCT, PHLOX_FIELD)
#undef PHLOX_STRUCT
#undef PHLOX_FIELD
};

}  // namespace phlox::python
