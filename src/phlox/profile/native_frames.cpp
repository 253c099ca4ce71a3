#include "phlox/profile/native_frames.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include <tsl/robin_map.h>

#include "phlox/profile/kernel_frames.h"

namespace phlox::profile {
namespace {

// A function inlined into one inlined into one ...: deeper is somebody's damaged file.
constexpr size_t kMostInlined = 64;

// What the sampler adds to `found_by` of the interpreter loop's frames (sampler/native_stacks.cpp).
constexpr std::string_view kLoop = "interpreter loop";

// Sorted. From Objects/call.c, Objects/methodobject.c, Objects/descrobject.c, Objects/typeobject.c,
// Objects/genobject.c, Python/ceval.c, Python/pythonrun.c, Modules/main.c, Modules/_threadmodule.c of
// CPython 2.7 to 3.15.
constexpr std::string_view kPlumbing[] = {
    "PyCFunction_Call",
    "PyEval_CallObjectWithKeywords",
    "PyEval_EvalCode",
    "PyEval_EvalCodeEx",
    "PyEval_EvalFrame",
    "PyEval_EvalFrameEx",
    "PyObject_Call",
    "PyObject_CallFunction",
    "PyObject_CallFunctionObjArgs",
    "PyObject_CallMethod",
    "PyObject_CallMethodNoArgs",
    "PyObject_CallMethodObjArgs",
    "PyObject_CallMethodOneArg",
    "PyObject_CallNoArgs",
    "PyObject_CallObject",
    "PyObject_CallOneArg",
    "PyObject_Vectorcall",
    "PyObject_VectorcallMethod",
    "PyRun_AnyFileExFlags",
    "PyRun_AnyFileFlags",
    "PyRun_AnyFileObject",
    "PyRun_FileExFlags",
    "PyRun_SimpleFileExFlags",
    "PyRun_SimpleStringFlags",
    "PyRun_StringFlags",
    "PyVectorcall_Call",
    "PyVectorcall_Function",
    "Py_BytesMain",
    "Py_Main",
    "Py_RunMain",
    "_PyCFunction_FastCallDict",
    "_PyCFunction_FastCallKeywords",
    "_PyCFunction_Vectorcall",
    "_PyCFunction_vectorcall",
    "_PyEval_EvalCodeWithName",
    "_PyEval_EvalFrame",
    "_PyEval_EvalFrameDefault",
    "_PyEval_Vector",
    "_PyFunction_FastCall",
    "_PyFunction_FastCallDict",
    "_PyFunction_FastCallKeywords",
    "_PyFunction_Vectorcall",
    "_PyGen_Send",
    "_PyMethodDef_RawFastCallDict",
    "_PyMethodDef_RawFastCallKeywords",
    "_PyMethodDescr_FastCallKeywords",
    "_PyMethodDescr_Vectorcall",
    "_PyObject_Call",
    "_PyObject_CallFunctionVa",
    "_PyObject_CallFunction_SizeT",
    "_PyObject_CallMethod",
    "_PyObject_CallMethodIdNoArgs",
    "_PyObject_CallMethodIdObjArgs",
    "_PyObject_CallMethodIdOneArg",
    "_PyObject_CallMethodNoArgs",
    "_PyObject_CallNoArg",
    "_PyObject_CallNoArgs",
    "_PyObject_CallNoArgsTstate",
    "_PyObject_CallOneArg",
    "_PyObject_Call_Prepend",
    "_PyObject_FastCall",
    "_PyObject_FastCallDict",
    "_PyObject_FastCallDictTstate",
    "_PyObject_FastCallKeywords",
    "_PyObject_FastCall_Prepend",
    "_PyObject_MakeTpCall",
    "_PyObject_Vectorcall",
    "_PyObject_VectorcallMethodId",
    "_PyObject_VectorcallTstate",
    "_PyRun_AnyFileObject",
    "_PyRun_SimpleFile",
    "_PyRun_SimpleFileObject",
    "_PyVectorcall_Call",
    "bootstrap_thread",
    "call_function",
    "call_unbound",
    "call_unbound_noarg",
    "callmethod",
    "cfunction_call",
    "cfunction_call_varargs",
    "cfunction_vectorcall_FASTCALL",
    "cfunction_vectorcall_FASTCALL_KEYWORDS",
    "cfunction_vectorcall_FASTCALL_KEYWORDS_METHOD",
    "cfunction_vectorcall_NOARGS",
    "cfunction_vectorcall_O",
    "classmethoddescr_call",
    "context_run",
    "do_call_core",
    "do_pymain",
    "fast_function",
    "function_call",
    "function_code_fastcall",
    "gen_iternext",
    "gen_send",
    "gen_send_ex",
    "gen_send_ex2",
    "instancemethod_call",
    "method_call",
    "method_vectorcall",
    "method_vectorcall_FASTCALL",
    "method_vectorcall_FASTCALL_KEYWORDS",
    "method_vectorcall_FASTCALL_KEYWORDS_METHOD",
    "method_vectorcall_NOARGS",
    "method_vectorcall_O",
    "method_vectorcall_VARARGS",
    "method_vectorcall_VARARGS_KEYWORDS",
    "methoddescr_call",
    "object_vacall",
    "py_trampoline_evaluator",
    "pymain_main",
    "pymain_run_command",
    "pymain_run_file",
    "pymain_run_file_obj",
    "pymain_run_module",
    "pymain_run_python",
    "pymain_run_startup",
    "pymain_run_stdin",
    "pyrun_file",
    "pyrun_simple_file",
    "pythread_wrapper",
    "run_eval_code_obj",
    "run_mod",
    "slot_tp_call",
    "t_bootstrap",
    "thread_run",
    "trampoline_vectorcall",
    "type_call",
    "vectorcall_maybe",
    "vectorcall_method",
    "vectorcall_unbound",
    "wrapper_call",
};
static_assert(std::is_sorted(std::begin(kPlumbing), std::end(kPlumbing)));

constexpr std::string_view kStarts[] = {
    "__clone", "__clone3", "__libc_start_call_main", "__libc_start_main", "__libc_start_main_impl", "_start",
    "clone",   "clone3",   "start_thread",
};
static_assert(std::is_sorted(std::begin(kStarts), std::end(kStarts)));

std::string_view without_suffix(std::string_view name) {
  // "f.cold", "f.constprop.0", "f@@GLIBC_2.34", BOLT's "f.cold.0"; a leading dot belongs to the name.
  return name.substr(0, name.find_first_of(".@", 1));
}

template <class Names>
bool among(const Names& names, std::string_view name) {
  return std::binary_search(std::begin(names), std::end(names), without_suffix(name));
}

bool is_loop(const Frame& frame) {
  return frame.kind == FrameKind::native && std::string_view(frame.found_by).ends_with(kLoop);
}

// Whether the module is a Python, by its file's name: for those whose symbols were stripped, outside the
// outermost Python frame.
bool is_python_file(const Profile& profile, const Frame& frame) {
  if (!frame.module || frame.module->value == 0 || frame.module->value > profile.modules().size())
    return false;
  const std::string_view path = profile.modules()[frame.module->value - 1].path;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("libpython");
}

// A part of the C library without a name: as long as nothing but starts lies outside of it, it starts the
// program or the thread as well. __libc_start_call_main, start_thread and clone3 have names in the C
// library's debug information only.
bool is_unnamed_libc(const Profile& profile, const Frame& frame) {
  if (!frame.module || frame.module->value == 0 || frame.module->value > profile.modules().size())
    return false;
  const std::string_view path = profile.modules()[frame.module->value - 1].path;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  constexpr std::string_view kLibraries[] = {"libc.so.", "libc-2.", "libpthread", "ld-musl-", "libc.musl-"};
  if (std::none_of(std::begin(kLibraries), std::end(kLibraries), [&](auto l) { return name.starts_with(l); }))
    return false;
  // Without a symbol a function is called by its file and address (symbols/module_names.cpp).
  const std::string_view function = frame.function;
  return function.empty() || (function.starts_with(name) && function.substr(name.size()).starts_with("+0x"));
}

// For each frame whether it is folded.
std::vector<uint8_t> folded_frames(const Profile& profile) {
  const auto& frames = profile.frames();
  std::vector<uint8_t> interpreter(profile.modules().size() + 1, 0);
  for (const Frame& frame : frames) {
    if (is_loop(frame) && frame.module && frame.module->value < interpreter.size())
      interpreter[frame.module->value] = 1;
  }
  std::vector<uint8_t> folded(frames.size() + 1, 0);
  for (size_t i = 0; i < frames.size(); ++i) {
    const Frame& frame = frames[i];
    if (frame.kind == FrameKind::kernel) folded[i + 1] = is_kernel_entry(frame.function) ? 1 : 0;
    if (frame.kind != FrameKind::native) continue;
    const bool in_interpreter =
        frame.module && frame.module->value < interpreter.size() && interpreter[frame.module->value] != 0;
    bool fold = is_loop(frame) || is_start(frame.function);
    if (in_interpreter) fold = fold || is_plumbing(frame.function) || frame.function == "main";
    // A trampoline of -X perf stands for the Python frame beside it (Python/perf_trampoline.c).
    if (!frame.module) fold = fold || frame.function.starts_with("py::");
    folded[i + 1] = fold ? 1 : 0;
  }
  return folded;
}

}  // namespace

bool is_plumbing(std::string_view function) {
  // The tail-calling interpreter has a function an instruction (Python/generated_cases.c.h, 3.14).
  return among(kPlumbing, function) || function.starts_with("_TAIL_CALL_");
}

bool is_start(std::string_view function) {
  return among(kStarts, function);
}

void show_native_frames(Profile& profile, const Choices& choices) {
  const auto& frames = profile.frames();
  const auto& stacks = profile.stacks();
  if (std::none_of(frames.begin(), frames.end(), [](const Frame& f) { return f.kind == FrameKind::native; }))
    return;
  const std::vector<uint8_t> folded =
      choices.all_frames ? std::vector<uint8_t>(frames.size() + 1, 0) : folded_frames(profile);
  // What was inlined at a frame's address: one chain, since a frame is one address.
  std::vector<FrameId> inlined(frames.size() + 1);
  for (uint32_t i = 0; i < frames.size(); ++i) {
    const auto& into = frames[i].inlined_in;
    if (into && into->value != 0 && into->value <= i && !inlined[into->value])
      inlined[into->value] = FrameId(i + 1);
  }

  std::vector<Stack> rows;
  tsl::robin_map<uint64_t, uint32_t> known;  // parent << 32 | frame
  const auto put = [&](StackId parent, FrameId frame) {
    const auto [at, fresh] =
        known.try_emplace(uint64_t{parent.value} << 32 | frame.value, static_cast<uint32_t>(rows.size() + 1));
    if (fresh) rows.push_back({parent, frame});
    return StackId(at->second);
  };
  // Outside the outermost Python frame every function of the interpreter is folded, named or not; whether
  // there is a Python frame is known only further in. Hence two forms of a stack until then: with those
  // functions, and without.
  struct Shown {
    StackId with, without;
    bool python = false;
  };
  std::vector<Shown> forms(stacks.size() + 1);
  for (uint32_t i = 0; i < stacks.size(); ++i) {
    const Stack& stack = stacks[i];
    Shown form = stack.parent.value <= i ? forms[stack.parent.value] : Shown();
    FrameId frame = stack.frame;
    const bool there = frame && frame.value <= frames.size();
    if (there && !form.python && frames[frame.value - 1].kind == FrameKind::python) {
      form.python = true;
      form.with = form.without;
    }
    if (!there) form = {put(form.with, frame), put(form.without, frame), form.python};
    for (size_t depth = 0; frame && frame.value <= frames.size() && depth < kMostInlined; ++depth) {
      if (folded[frame.value] == 0) {
        const Frame& row = frames[frame.value - 1];
        const bool unnamed = !choices.all_frames && is_unnamed_libc(profile, row);
        if (form.with || !unnamed) form.with = put(form.with, frame);
        const bool starts = !choices.all_frames && is_python_file(profile, row);
        if (form.python) {
          form.without = form.with;
        } else if (!starts && (form.without || !unnamed)) {
          form.without = put(form.without, frame);
        }
      }
      frame = inlined[frame.value];
    }
    forms[i + 1] = form;
  }
  std::vector<StackId> shown(stacks.size() + 1);
  for (size_t i = 1; i <= stacks.size(); ++i) shown[i] = forms[i].with;
  std::vector<uint8_t> ends(stacks.size() + 1, 0);
  for (const Sample& sample : profile.samples()) {
    if (sample.stack.value <= stacks.size()) ends[sample.stack.value] = 1;
  }
  // A stack that is folded whole shows its innermost frame.
  for (uint32_t i = 1; i <= stacks.size(); ++i) {
    if (ends[i] != 0 && !shown[i]) shown[i] = put({}, stacks[i - 1].frame);
  }
  profile.replace_stacks(std::move(rows), shown);
}

}  // namespace phlox::profile
