// Where CPython's fields sit, for the builds that the experiment and the stopped reference read (default
// builds, and a free-threaded 3.13; read off the versions' own headers by offsetof). The product has its own
// table; this one is never used by it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reading {

struct Layout {
  const char* name;  // as --python says it
  int minor;
  size_t runtime_interpreters_head;                      // _PyRuntimeState.interpreters.head
  size_t runtime_gil = 0;                                // until 3.11: _PyRuntimeState.ceval.gil, inline
  size_t interpreter_threads_head;                       // PyInterpreterState.threads.head
  size_t interpreter_gil = 0;                            // 3.12+: PyInterpreterState.ceval.gil, a pointer
  size_t gil_last_holder = 8;                            // struct _gil_runtime_state
  size_t thread_id, native_thread_id = 0;                // PyThreadState; the kernel's id since 3.11
  size_t thread_frame = 0;                               // until 3.10: PyThreadState.frame, a frame object
  size_t thread_cframe = 0;                              // 3.11, 3.12: PyThreadState.cframe
  size_t cframe_current_frame = 0, cframe_previous = 0;  // 3.11, 3.12: _PyCFrame
  size_t thread_current_frame = 0;                       // 3.13+
  size_t frame_size;                                     // bytes that the walk needs
  size_t frame_code, frame_previous, frame_owner = 0, frame_is_entry = 0;  // is_entry: 3.11
  size_t code_name;                                                        // PyCodeObject.co_name
  size_t unicode_length = 16, unicode_ascii_data;
};

// clang-format off
inline constexpr Layout kLayouts[] = {
    {.name = "3.8", .minor = 8, .runtime_interpreters_head = 32, .runtime_gil = 1152, .interpreter_threads_head = 8, .thread_id = 176,
     .thread_frame = 24, .frame_size = 40, .frame_code = 32, .frame_previous = 24, .code_name = 112, .unicode_ascii_data = 48},
    {.name = "3.9", .minor = 9, .runtime_interpreters_head = 32, .runtime_gil = 352, .interpreter_threads_head = 8, .thread_id = 176,
     .thread_frame = 24, .frame_size = 40, .frame_code = 32, .frame_previous = 24, .code_name = 112, .unicode_ascii_data = 48},
    {.name = "3.10", .minor = 10, .runtime_interpreters_head = 32, .runtime_gil = 352, .interpreter_threads_head = 8, .thread_id = 176,
     .thread_frame = 24, .frame_size = 40, .frame_code = 32, .frame_previous = 24, .code_name = 112, .unicode_ascii_data = 48},
    {.name = "3.11", .minor = 11, .runtime_interpreters_head = 40, .runtime_gil = 360, .interpreter_threads_head = 16, .thread_id = 152,
     .native_thread_id = 160, .thread_cframe = 56, .cframe_current_frame = 8, .cframe_previous = 16, .frame_size = 72, .frame_code = 32,
     .frame_previous = 48, .frame_owner = 69, .frame_is_entry = 68, .code_name = 120, .unicode_ascii_data = 48},
    {.name = "3.12", .minor = 12, .runtime_interpreters_head = 40, .interpreter_threads_head = 72, .interpreter_gil = 384, .thread_id = 136,
     .native_thread_id = 144, .thread_cframe = 56, .cframe_current_frame = 0, .cframe_previous = 8, .frame_size = 72, .frame_code = 0,
     .frame_previous = 8, .frame_owner = 70, .code_name = 120, .unicode_ascii_data = 40},
    {.name = "3.13", .minor = 13, .runtime_interpreters_head = 632, .interpreter_threads_head = 7344, .interpreter_gil = 16,
     .thread_id = 152, .native_thread_id = 160, .thread_current_frame = 72, .frame_size = 72, .frame_code = 0, .frame_previous = 8,
     .frame_owner = 70, .code_name = 120, .unicode_ascii_data = 40},
    {.name = "3.13t", .minor = 13, .runtime_interpreters_head = 632, .interpreter_threads_head = 7344, .interpreter_gil = 16,
     .gil_last_holder = 16, .thread_id = 152, .native_thread_id = 160, .thread_current_frame = 72, .frame_size = 72, .frame_code = 0,
     .frame_previous = 8, .frame_owner = 70, .code_name = 136, .unicode_length = 32, .unicode_ascii_data = 56},
    {.name = "3.14", .minor = 14, .runtime_interpreters_head = 808, .interpreter_threads_head = 7344, .interpreter_gil = 16,
     .thread_id = 152, .native_thread_id = 160, .thread_current_frame = 72, .frame_size = 80, .frame_code = 0, .frame_previous = 8,
     .frame_owner = 74, .code_name = 120, .unicode_ascii_data = 40},
    {.name = "3.15", .minor = 15, .runtime_interpreters_head = 936, .interpreter_threads_head = 7336, .interpreter_gil = 16,
     .thread_id = 176, .native_thread_id = 184, .thread_current_frame = 72, .frame_size = 80, .frame_code = 0, .frame_previous = 8,
     .frame_owner = 74, .code_name = 120, .unicode_ascii_data = 40},
};
// clang-format on

}  // namespace reading
