// Where CPython's fields sit, for the three versions of this experiment only (pyenv's default builds; read
// off the versions' own headers by offsetof). The product has its own table; this one is never used by it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reading {

struct Layout {
  int minor;
  size_t runtime_interpreters_head;              // _PyRuntimeState.interpreters.head
  size_t runtime_gil;                            // 3.11: _PyRuntimeState.ceval.gil, inline
  size_t interpreter_threads_head;               // PyInterpreterState.threads.head
  size_t interpreter_gil;                        // 3.12+: PyInterpreterState.ceval.gil, a pointer
  size_t gil_last_holder;                        // struct _gil_runtime_state
  size_t thread_id, native_thread_id;            // PyThreadState
  size_t thread_cframe;                          // 3.11, 3.12: PyThreadState.cframe
  size_t cframe_current_frame, cframe_previous;  // 3.11, 3.12: _PyCFrame
  size_t thread_current_frame;                   // 3.13
  size_t frame_code, frame_previous, frame_owner, frame_is_entry;  // _PyInterpreterFrame; is_entry: 3.11
  size_t code_name;                                                // PyCodeObject.co_name
  size_t unicode_length, unicode_ascii_data;
};

inline constexpr Layout kLayouts[] = {
    {11, 40, 360, 16, 0, 8, 152, 160, 56, 8, 16, 0, 32, 48, 69, 68, 120, 16, 48},
    {12, 40, 0, 72, 384, 8, 136, 144, 56, 0, 8, 0, 0, 8, 70, 0, 120, 16, 40},
    {13, 632, 0, 7344, 16, 8, 152, 160, 0, 0, 0, 72, 0, 8, 70, 0, 120, 16, 40},
};

}  // namespace reading
