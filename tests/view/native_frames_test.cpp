#include "phlox/view/native_frames.h"

#include <gtest/gtest.h>

#include "phlox/profile/interner.h"

namespace phlox::view {

using namespace profile;

namespace {

// A recording of frames as the sampler and the naming leave them.
class NativeFrames : public testing::Test {
 protected:
  NativeFrames() {
    profile_.emit(ProcessId(1), {});
    Thread thread;
    thread.process = ProcessId(1);
    profile_.emit(ThreadId(1), thread);
    profile_.emit(kPython, {"/usr/bin/python3.12", "", 0});
    profile_.emit(kOther, {"/usr/lib/libother.so", "", 0});
    profile_.emit(kLibc, {"/usr/lib/x86_64-linux-gnu/libc.so.6", "", 0});
  }

  FrameId python(const std::string& name) {
    Frame frame;
    frame.function = frame.qualified_name = name;
    frame.file = "app.py";
    return interner_.frame(frame);
  }
  FrameId native(ModuleId module, const std::string& name, FrameRole role = FrameRole::none) {
    Frame frame;
    frame.kind = FrameKind::native;
    frame.function = frame.qualified_name = name;
    frame.module = module;
    frame.address = ++address_;
    frame.found_by = "cfi";
    frame.role = role;
    return interner_.frame(frame);
  }
  FrameId loop() { return native(kPython, "_PyEval_EvalFrameDefault", FrameRole::interpreter_loop); }
  FrameId inlined(FrameId into, const std::string& name) {
    Frame frame = profile_.frame(into);
    frame.function = frame.qualified_name = name;
    frame.inlined_in = into;
    return interner_.frame(frame);
  }
  void sample(const std::vector<FrameId>& root_first) {
    Sample row;
    row.thread = ThreadId(1);
    row.wall = 1;
    row.stack = interner_.stack(root_first);
    profile_.emit(SampleId(++samples_), row);
  }
  // Of the first sample, as it is shown.
  std::vector<std::string> shown(bool all = false) {
    Choices choices;
    choices.all_frames = all;
    show_native_frames(profile_, choices);
    std::vector<std::string> names;
    for (StackId at = profile_.samples().front().stack; at; at = profile_.stack(at).parent)
      names.insert(names.begin(), profile_.frame(profile_.stack(at).frame).function);
    return names;
  }

  const ModuleId kPython{1}, kOther{2}, kLibc{3};
  Profile profile_;
  Interner interner_{profile_};
  uint64_t address_ = 0;
  uint32_t samples_ = 0;
};

using Names = std::vector<std::string>;

TEST_F(NativeFrames, loop_start_and_calls_are_folded_and_the_c_function_stays) {
  sample({native(kOther, "__libc_start_main"), native(kPython, "main"), native(kPython, "Py_BytesMain"),
          loop(), python("<module>"), native(kPython, "PyObject_Vectorcall"),
          native(kPython, "cfunction_vectorcall_O.cold"), native(kPython, "list_sort"), loop(), python("key"),
          native(kPython, "take_gil")});
  EXPECT_EQ(shown(), (Names{"<module>", "list_sort", "key", "take_gil"}));
}

TEST_F(NativeFrames, the_c_library_s_start_is_folded_without_a_name_too) {
  sample({native(kPython, "_start"), native(kLibc, "__libc_start_main"), native(kLibc, "libc.so.6+0x27249"),
          native(kPython, "main"), loop(), python("<module>"), native(kLibc, "libc.so.6+0x9a000")});
  EXPECT_EQ(shown(), (Names{"<module>", "libc.so.6+0x9a000"}));
}

TEST_F(NativeFrames, a_thread_without_python_starts_where_its_own_code_does) {
  sample({native(kLibc, "libc.so.6+0x1067db"), native(kLibc, "libc.so.6+0x89144"),
          native(kOther, "pool_main"), native(kLibc, "libc.so.6+0x9a000")});
  EXPECT_EQ(shown(), (Names{"pool_main", "libc.so.6+0x9a000"}));
}

// Tables must cope with a frame in very many places.
TEST_F(NativeFrames, one_function_called_from_everywhere) {
  constexpr uint32_t kCallers = 50'000;
  const FrameId leaf = native(kOther, "malloc");
  for (uint32_t i = 0; i < kCallers; ++i) sample({python("caller" + std::to_string(i)), loop(), leaf});
  EXPECT_EQ(shown(), (Names{"caller0", "malloc"}));
  EXPECT_EQ(profile_.stacks().size(), 2 * size_t{kCallers});
}

TEST_F(NativeFrames, all_frames_show_the_c_library_s_start) {
  sample({native(kLibc, "libc.so.6+0x1067db"), native(kOther, "pool_main")});
  EXPECT_EQ(shown(true), (Names{"libc.so.6+0x1067db", "pool_main"}));
}

TEST_F(NativeFrames, a_stripped_interpreter_s_start_is_folded_where_python_runs) {
  const FrameId start = native(kPython, "python3.12+0x10"), run = native(kPython, "python3.12+0x20");
  sample({start, run, loop(), python("<module>"), native(kPython, "python3.12+0x30")});
  EXPECT_EQ(shown(), (Names{"<module>", "python3.12+0x30"}));
}

TEST_F(NativeFrames, a_stripped_interpreter_s_own_thread_keeps_its_frames) {
  sample({native(kPython, "python3.12+0x10"), native(kPython, "python3.12+0x20")});
  EXPECT_EQ(shown(), (Names{"python3.12+0x10", "python3.12+0x20"}));
}

TEST_F(NativeFrames, all_frames_shows_every_one) {
  sample({native(kPython, "main"), loop(), python("<module>"), native(kPython, "list_sort")});
  EXPECT_EQ(shown(true), (Names{"main", "_PyEval_EvalFrameDefault", "<module>", "list_sort"}));
}

TEST_F(NativeFrames, a_program_with_functions_called_like_those_of_the_interpreter_keeps_them) {
  sample({native(kOther, "main"), native(kOther, "run_mod"), loop(), python("<module>"),
          native(kOther, "call_function")});
  EXPECT_EQ(shown(), (Names{"main", "run_mod", "<module>", "call_function"}));
}

TEST_F(NativeFrames, inlined_functions_are_below_their_caller) {
  const FrameId outer = native(kOther, "outer");
  inlined(inlined(outer, "middle"), "inner");
  sample({python("<module>"), outer, native(kOther, "leaf")});
  EXPECT_EQ(shown(), (Names{"<module>", "outer", "middle", "inner", "leaf"}));
}

TEST_F(NativeFrames, a_stack_of_nothing_else_shows_its_innermost_frame) {
  sample({native(kOther, "clone3"), native(kOther, "start_thread")});
  EXPECT_EQ(shown(), (Names{"start_thread"}));
}

TEST_F(NativeFrames, stacks_that_differ_in_folded_frames_only_become_one) {
  const FrameId module = python("<module>"), work = python("work");
  sample({loop(), module, loop(), work});
  sample({loop(), module, native(kPython, "_PyFunction_Vectorcall"), loop(), work});
  shown();
  EXPECT_EQ(profile_.samples()[0].stack, profile_.samples()[1].stack);
}

TEST_F(NativeFrames, slots_and_calls_between_are_folded_and_shown_innermost) {
  sample({loop(), python("<module>"), native(kPython, "slot_nb_add"), native(kPython, "wrap_binaryfunc"),
          native(kPython, "_PyObject_CallMethodFormat"), native(kOther, "__Pyx_PyObject_CallOneArg"), loop(),
          python("__add__"), native(kPython, "cfunction_vectorcall_O"), native(kPython, "slot_tp_hash")});
  EXPECT_EQ(shown(), (Names{"<module>", "__add__", "slot_tp_hash"}));
}

TEST_F(NativeFrames, the_loop_is_folded_where_it_is_innermost_too) {
  sample({loop(), python("<module>"), native(kPython, "_PyEval_Vector"), loop()});
  EXPECT_EQ(shown(), (Names{"<module>"}));
}

TEST_F(NativeFrames, one_that_is_folded_between_and_shown_innermost_is_two_stacks) {
  const FrameId module = python("<module>"), call = native(kPython, "PyObject_Vectorcall");
  sample({loop(), module, call});
  sample({loop(), module, call, native(kPython, "list_sort")});
  EXPECT_EQ(shown(), (Names{"<module>", "PyObject_Vectorcall"}));
  EXPECT_EQ(profile_.stack(profile_.samples()[1].stack).parent,
            profile_.stack(profile_.samples()[0].stack).parent);
}

TEST_F(NativeFrames, a_trampoline_is_folded_with_or_without_a_name) {
  Frame trampoline;
  trampoline.kind = FrameKind::native;
  trampoline.address = 0x7000;
  trampoline.found_by = "cfi";
  trampoline.role = FrameRole::trampoline;
  Frame named = trampoline;
  named.function = "py::work:/app.py";
  named.found_by = "frame pointer";
  named.role = FrameRole::none;  // its name says it
  sample({interner_.frame(trampoline), loop(), python("<module>"), interner_.frame(named), loop(),
          python("work")});
  EXPECT_EQ(shown(), (Names{"<module>", "work"}));
}

TEST_F(NativeFrames, what_cython_makes_of_one_function_is_shown_as_one) {
  const auto fast = [&](FrameRole role) { return native(kOther, "fast.compute", role); };
  sample({python("<module>"), native(kOther, "fast.outer", FrameRole::cython_wrapper),
          fast(FrameRole::cython_wrapper), fast(FrameRole::cython_body), fast(FrameRole::none)});
  EXPECT_EQ(shown(), (Names{"<module>", "fast.outer", "fast.compute"}));
}

TEST_F(NativeFrames, recursion_in_cython_keeps_its_turns) {
  const auto turn = [&](FrameRole role) { return native(kOther, "fast.fib", role); };
  sample({python("<module>"), turn(FrameRole::cython_wrapper), turn(FrameRole::cython_body),
          turn(FrameRole::cython_wrapper), turn(FrameRole::cython_body), turn(FrameRole::none),
          turn(FrameRole::none)});
  EXPECT_EQ(shown(), (Names{"<module>", "fast.fib", "fast.fib", "fast.fib"}));
}

TEST_F(NativeFrames, time_in_a_cython_wrapper_itself_is_its_function_s) {
  sample({python("<module>"), native(kOther, "fast.compute", FrameRole::cython_wrapper)});
  EXPECT_EQ(shown(), (Names{"<module>", "fast.compute"}));
}

TEST_F(NativeFrames, all_frames_show_what_cython_makes_of_one_function) {
  sample({native(kOther, "fast.compute", FrameRole::cython_wrapper),
          native(kOther, "fast.compute", FrameRole::cython_body)});
  EXPECT_EQ(shown(true), (Names{"fast.compute", "fast.compute"}));
}

TEST_F(NativeFrames, code_made_at_run_time_is_one_frame_with_advice) {
  const auto jit = [&] {
    Frame frame;
    frame.kind = FrameKind::native;
    frame.address = 0x7ff32c407000 + ++address_;
    frame.found_by = "registers";
    return interner_.frame(frame);
  };
  Frame gap;
  gap.kind = FrameKind::marker;
  gap.function = "(native callers unknown: no unwind information)";
  profile_.emit(ModuleId(4),
                {"/venv/site-packages/numba/_dispatcher.cpython-311-x86_64-linux-gnu.so", "", 0});
  const FrameId main = python("main"), call = native(ModuleId(4), "Dispatcher_call"),
                hypot = native(kLibc, "hypot"), unknown = interner_.frame(gap);
  sample({main, call, unknown, jit(), jit(), hypot});
  sample({main, call, unknown, jit(), hypot});
  EXPECT_EQ(shown(), (Names{"main", "Dispatcher_call", "(JIT code of numba)", "hypot"}));
  EXPECT_EQ(profile_.samples()[0].stack, profile_.samples()[1].stack);
  const auto missing = modules_without_names(profile_);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].path, "(JIT code of numba)");
  EXPECT_NE(missing[0].missing->advice.find("NUMBA_DISABLE_JIT=1"), std::string::npos);
}

TEST_F(NativeFrames, code_made_at_run_time_that_its_compiler_names_keeps_its_names) {
  Frame frame;
  frame.kind = FrameKind::native;
  frame.function = frame.qualified_name = "jitted_kernel";
  frame.address = 0x7ff32c407000;
  sample({python("main"), interner_.frame(frame)});
  EXPECT_EQ(shown(), (Names{"main", "jitted_kernel"}));
  EXPECT_TRUE(modules_without_names(profile_).empty());
}

TEST_F(NativeFrames, a_recording_without_native_frames_is_left_alone) {
  sample({python("main"), python("work")});
  const size_t stacks = profile_.stacks().size();
  EXPECT_EQ(shown(), (Names{"main", "work"}));
  EXPECT_EQ(profile_.stacks().size(), stacks);
}

}  // namespace
}  // namespace phlox::view
