#include "phlox/profile/native_frames.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <vector>

#include <tsl/robin_map.h>

#include "phlox/base/spread.h"
#include "phlox/base/text.h"
#include "phlox/profile/declarations.h"
#include "phlox/profile/kernel_frames.h"
#include "phlox/profile/module_of_file.h"

namespace phlox::profile {
namespace {

// Inlined functions within each other; only a damaged file has more levels.
constexpr size_t kMostInlined = 64;

// Sorted, except what kPlumbingPrefixes and is_call_of_object cover. From Objects/call.c,
// Objects/methodobject.c, Objects/descrobject.c, Objects/typeobject.c, Objects/genobject.c, Python/ceval.c,
// Python/pythonrun.c, Modules/main.c, Modules/_threadmodule.c of CPython 2.7 to 3.15.
constexpr std::string_view kPlumbing[] = {
    "PyCFunction_Call",
    "PyEval_CallObjectWithKeywords",
    "PyEval_EvalCode",
    "PyEval_EvalCodeEx",
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
    "_PyCFunctionWithKeywords_TrampolineCall",
    "_PyCFunction_FastCallDict",
    "_PyCFunction_FastCallKeywords",
    "_PyCFunction_TrampolineCall",
    "_PyCFunction_Vectorcall",
    "_PyCFunction_vectorcall",
    "_PyEval_CallTracing",
    "_PyEval_EvalCodeWithName",
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
    "_PyRun_AnyFileObject",
    "_PyRun_SimpleFile",
    "_PyRun_SimpleFileObject",
    "_PyVectorcall_Call",
    "_PyVectorcall_FunctionInline",
    "bootstrap_thread",
    "call_attribute",
    "call_function",
    "call_maybe",
    "call_method",
    "call_unbound",
    "call_unbound_noarg",
    "callmethod",
    "cfunction_call",
    "cfunction_call_varargs",
    "cfunction_enter_call",
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
    "method_enter_call",
    "method_vectorcall",
    "methoddescr_call",
    "methoddescr_vectorcall",
    "object_vacall",
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
    "richcmp_eq",
    "richcmp_ge",
    "richcmp_gt",
    "richcmp_le",
    "richcmp_lt",
    "richcmp_ne",
    "run_eval_code_obj",
    "run_mod",
    "t_bootstrap",
    "thread_run",
    "trampoline_vectorcall",
    "type_call",
    "vectorcall_maybe",
    "vectorcall_method",
    "vectorcall_unbound",
    "wrap_binaryfunc",
    "wrap_binaryfunc_l",
    "wrap_binaryfunc_r",
    "wrap_buffer",
    "wrap_call",
    "wrap_cmpfunc",
    "wrap_coercefunc",
    "wrap_del",
    "wrap_delattr",
    "wrap_delitem",
    "wrap_delslice",
    "wrap_descr_delete",
    "wrap_descr_get",
    "wrap_descr_set",
    "wrap_hashfunc",
    "wrap_indexargfunc",
    "wrap_init",
    "wrap_inquirypred",
    "wrap_lenfunc",
    "wrap_next",
    "wrap_objobjargproc",
    "wrap_objobjproc",
    "wrap_releasebuffer",
    "wrap_richcmpfunc",
    "wrap_setattr",
    "wrap_sq_delitem",
    "wrap_sq_item",
    "wrap_sq_setitem",
    "wrap_ssizeargfunc",
    "wrap_ssizessizeargfunc",
    "wrap_ssizessizeobjargproc",
    "wrap_ternaryfunc",
    "wrap_ternaryfunc_r",
    "wrap_unaryfunc",
    "wrapper_call",
    "wrapperdescr_call",
    "wrapperdescr_raw_call",
};
static_assert(std::is_sorted(std::begin(kPlumbing), std::end(kPlumbing)));

// Type slots that a Python class fills (Objects/typeobject.c), and the ways to call a C function. The
// tail-calling interpreter has one function for each instruction (Python/generated_cases.c.h, 3.14): see
// kLoopPrefix.
constexpr std::string_view kPlumbingPrefixes[] = {
    "slot_tp_",          "slot_nb_", "slot_sq_", "slot_mp_", "slot_am_", "slot_bf_", "cfunction_vectorcall_",
    "method_vectorcall_"};
constexpr std::string_view kLoopNames[] = {"PyEval_EvalFrame", "PyEval_EvalFrameEx", "_PyEval_EvalFrame",
                                           "_PyEval_EvalFrameDefault", "py_trampoline_evaluator"};
static_assert(std::is_sorted(std::begin(kLoopNames), std::end(kLoopNames)));
constexpr std::string_view kLoopPrefix = "_TAIL_CALL_";

// Functions for calls that Cython writes into each of its modules (Cython/Utility/ObjectHandling.c,
// CythonFunction.c, Coroutine.c).
constexpr std::string_view kCythonPlumbing[] = {
    "__Pyx_PyObject_Call",       "__Pyx__PyObject_Call",        "__Pyx_PyObject_FastCall",
    "__Pyx_PyFunction_FastCall", "__Pyx_PyCFunction_FastCall",  "__Pyx_PyVectorcall_",
    "__Pyx_CyFunction_Call",     "__Pyx_CyFunction_Vectorcall", "__Pyx_Coroutine_Send",
    "__Pyx_Generator_Next",      "__pyx_FusedFunction_call"};

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

// Code without a file and a name: a compiler made it at run time.
bool is_unnamed_jit(const Frame& frame) {
  return frame.kind == FrameKind::native && !frame.module && frame.function.empty() &&
         frame.qualified_name.empty() && frame.address != 0;
}

// Compilers that are recognised by a library on the stacks. The first match counts.
struct JitCompiler {
  std::string_view library;  // what its path contains
  std::string_view name;
  std::string_view advice;
};
constexpr JitCompiler kJitCompilers[] = {
    {"/numba/", "numba",
     "numba does not publish the names of what it compiles: look for the @njit functions that the Python "
     "line "
     "beneath calls, or set NUMBA_DISABLE_JIT=1 to run them as Python, with names and lines"},
    {"/llvmlite/", "llvmlite", ""},
    {"/jaxlib/", "jax", ""},
    {"/triton/", "triton", ""},
    {"/torch/", "torch", ""},
    {"libluajit", "LuaJIT", ""},
    {"libjvm.so", "Java", ""},
};
constexpr std::string_view kJitAdvice =
    "have its compiler write /tmp/perf-PID.map or a jitdump while recording, if it can";

const JitCompiler* jit_compiler(const Profile& profile) {
  for (const JitCompiler& compiler : kJitCompilers) {
    for (const Module& module : profile.modules()) {
      if (module.path.find(compiler.library) != std::string::npos) return &compiler;
    }
  }
  return nullptr;
}

// The frame that represents all such code; none if there is none.
FrameId put_jit_frame(Profile& profile) {
  const auto& frames = profile.frames();
  if (std::none_of(frames.begin(), frames.end(), is_unnamed_jit)) return {};
  const JitCompiler* compiler = jit_compiler(profile);
  Frame frame;
  frame.kind = FrameKind::native;
  frame.function = compiler == nullptr ? "(JIT code)" : "(JIT code of " + std::string(compiler->name) + ")";
  frame.qualified_name = frame.function;
  frame.role = FrameRole::jit_code;
  const FrameId id(static_cast<uint32_t>(frames.size() + 1));
  profile.emit(id, frame);
  return id;
}

// A marker between Python and code without unwind information, which JIT code explains.
bool is_gap(const Frame& frame) {
  return frame.kind == FrameKind::marker &&
         std::string_view(frame.function).ends_with(": no unwind information)");
}

bool is_loop(const Frame& frame) {
  return frame.kind == FrameKind::native && frame.role == FrameRole::interpreter_loop;
}

bool starts_with_one_of(std::span<const std::string_view> prefixes, std::string_view name) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

// "python", "python3.13t", "libpython3.11.so.1.0"; not "python_magic.so".
bool is_python_name(std::string_view file) {
  if (file.starts_with("lib")) file.remove_prefix(3);
  constexpr std::string_view kPython = "python";
  if (!file.starts_with(kPython)) return false;
  file.remove_prefix(kPython.size());
  return file.empty() || (file.front() >= '0' && file.front() <= '9');
}

// Whether the module is a Python, by its file's name: for stripped ones, outside the outermost Python frame.
bool is_python_file(const Profile& profile, const Frame& frame) {
  if (!frame.module || frame.module->value == 0 || frame.module->value > profile.modules().size())
    return false;
  const std::string_view path = profile.modules()[frame.module->value - 1].path;
  return is_python_name(base_name(path));
}

bool is_libc(std::string_view file) {
  constexpr std::string_view kLibraries[] = {"libc.so.", "libc-2.", "libpthread", "ld-musl-", "libc.musl-"};
  return file == "libc.so" ||  // musl's own name for it
         starts_with_one_of(kLibraries, file);
}

// Libraries that programs in any language call: the C library, its parts, and replacements for its malloc().
bool is_called_by_all(std::string_view file) {
  constexpr std::string_view kOthers[] = {"ld-linux",    "libm.so.",    "libm-2.",    "libdl",
                                          "librt",       "libgcc_s",    "[vdso]",     "linux-vdso",
                                          "libjemalloc", "libmimalloc", "libtcmalloc"};
  return is_libc(file) || starts_with_one_of(kOthers, file);
}

// An unnamed part of the C library: while only start functions are outside it, it starts the program or the
// thread, too. Only the C library's debug information names __libc_start_call_main, start_thread and clone3.
bool is_unnamed_libc(const Profile& profile, const Frame& frame) {
  if (!frame.module || frame.module->value == 0 || frame.module->value > profile.modules().size())
    return false;
  const std::string_view path = profile.modules()[frame.module->value - 1].path;
  const std::string_view name = base_name(path);
  if (!is_libc(name)) return false;
  // A function without a symbol is named by its file and address (symbols/module_names.cpp).
  const std::string_view function = frame.function;
  return function.empty() || (function.starts_with(name) && function.substr(name.size()).starts_with("+0x"));
}

// The innermost function of a stack is shown even if it only leads on: there is nothing to lead to.
enum class Fold : uint8_t { no, but_innermost, always };

// PyObject_CallOneArg, _PyObject_FastCallDictTstate, _PyObject_VectorcallMethod, ...
bool is_call_of_object(std::string_view name) {
  if (name.starts_with('_')) name.remove_prefix(1);
  return name.starts_with("PyObject_") &&
         (name.find("Call") != std::string_view::npos || name.find("Vectorcall") != std::string_view::npos);
}

// The C functions that Cython makes of one function call each other (cli/native_names.cpp): smaller values
// call greater ones.
enum class CythonLevel : uint8_t { slot, wrapper, body, function };

CythonLevel cython_level(const Frame& frame) {
  if (frame.kind != FrameKind::native) return CythonLevel::function;
  switch (frame.role) {
    case FrameRole::cython_slot:
      return CythonLevel::slot;
    case FrameRole::cython_wrapper:
      return CythonLevel::wrapper;
    case FrameRole::cython_body:
      return CythonLevel::body;
    default:
      return CythonLevel::function;
  }
}

// Whether both belong to one function of a .pyx file, and `outer` only leads into what is at `level`.
bool leads_into(const Frame& outer, const Frame& inner, CythonLevel level) {
  return inner.kind == FrameKind::native && cython_level(outer) < level && outer.module == inner.module &&
         outer.qualified_name == inner.qualified_name;
}

// By module: whether it contains an interpreter's loop.
std::vector<uint8_t> modules_with_loop(const Profile& profile) {
  std::vector<uint8_t> interpreter(profile.modules().size() + 1, 0);
  for (const Frame& frame : profile.frames()) {
    if (is_loop(frame) && frame.module && frame.module->value < interpreter.size())
      interpreter[frame.module->value] = 1;
  }
  return interpreter;
}

// A program with the interpreter linked into it has its own functions as well: names or the folders of
// CPython's source tell them apart.
bool is_of_cpython(const Profile& profile, const Frame& frame) {
  constexpr std::string_view kNames[] = {"Py", "_Py", "py", "_TAIL_CALL_"};
  constexpr std::string_view kFolders[] = {"Objects/", "Python/", "Include/", "Parser/", "Modules/"};
  if (starts_with_one_of(kNames, frame.function) || is_plumbing(frame.function)) return true;
  std::string_view file = declared_in(profile, frame);
  while (starts_with_one_of({{"./", "../"}}, file)) file.remove_prefix(file.find('/') + 1);
  return starts_with_one_of(kFolders, file);
}

// Marks native frames of the interpreter's own C, and those of the C library.
void mark_owners(Profile& profile) {
  enum class Owner : uint8_t { other, python, python_and_others, c_library };
  const std::vector<uint8_t> has_loop = modules_with_loop(profile);
  std::vector<Owner> owners(profile.modules().size() + 1, Owner::other);
  for (size_t i = 0; i < profile.modules().size(); ++i) {
    const std::string_view path = profile.modules()[i].path;
    const std::string_view file = base_name(path);
    owners[i + 1] = is_python_name(file)     ? Owner::python
                    : has_loop[i + 1] != 0   ? Owner::python_and_others
                    : is_called_by_all(file) ? Owner::c_library
                                             : Owner::other;
  }
  for (uint32_t i = 1; i <= profile.frames().size(); ++i) {
    const Frame& frame = profile.frames()[i - 1];
    if (frame.kind != FrameKind::native || frame.role != FrameRole::none || !frame.module) continue;
    const Owner owner = frame.module->value < owners.size() ? owners[frame.module->value] : Owner::other;
    const bool python =
        owner == Owner::python || (owner == Owner::python_and_others && is_of_cpython(profile, frame));
    if (!python && owner != Owner::c_library) continue;
    Frame marked = frame;
    marked.role = python ? kInterpreterCode : kCLibrary;
    profile.emit(FrameId(i), marked);
  }
}

// By frame: whether it is folded.
std::vector<Fold> folded_frames(const Profile& profile) {
  const auto& frames = profile.frames();
  const std::vector<uint8_t> interpreter = modules_with_loop(profile);
  std::vector<Fold> folded(frames.size() + 1, Fold::no);
  for (size_t i = 0; i < frames.size(); ++i) {
    const Frame& frame = frames[i];
    if (frame.kind == FrameKind::kernel)
      folded[i + 1] = is_kernel_entry(frame.function) ? Fold::always : Fold::no;
    if (frame.kind != FrameKind::native) continue;
    const bool in_interpreter =
        frame.module && frame.module->value < interpreter.size() && interpreter[frame.module->value] != 0;
    const std::string_view name = frame.function;
    bool always = is_loop(frame) || is_start(name);
    if (in_interpreter) always = always || is_loop_function(name) || name == "main";
    // A trampoline of -X perf represents the Python frame next to it (Python/perf_trampoline.c).
    if (!frame.module) always = always || name.starts_with("py::") || frame.role == FrameRole::trampoline;
    if (always) {
      folded[i + 1] = Fold::always;
    } else if ((in_interpreter && is_plumbing(name)) || is_cython_plumbing(name)) {
      folded[i + 1] = Fold::but_innermost;
    }
  }
  return folded;
}

}  // namespace

bool is_interpreter(const Frame& frame) {
  return frame.role == kInterpreterCode || frame.role == FrameRole::interpreter_loop ||
         frame.role == FrameRole::trampoline;
}

bool is_plumbing(std::string_view function) {
  const std::string_view name = without_suffix(function);
  return among(kPlumbing, name) || starts_with_one_of(kPlumbingPrefixes, name) || is_call_of_object(name);
}

bool is_cython_plumbing(std::string_view function) {
  return starts_with_one_of(kCythonPlumbing, function);
}

bool is_loop_function(std::string_view function) {
  return among(kLoopNames, function) || function.starts_with(kLoopPrefix);
}

bool is_start(std::string_view function) {
  return among(kStarts, function);
}

std::string code_library(const Profile& profile, const Sample& sample) {
  if (!sample.code_file || sample.code_file.value > profile.modules().size()) return {};
  return std::string(without_extension(base_name(profile.modules()[sample.code_file.value - 1].path)));
}

std::vector<Module> modules_without_names(const Profile& profile) {
  std::vector<Module> out;
  for (const bool functions : {true, false}) {
    for (const Module& module : profile.modules()) {
      if (module.missing && module.missing->functions == functions) out.push_back(module);
    }
  }
  const auto& frames = profile.frames();
  const auto jit = std::find_if(frames.begin(), frames.end(),
                                [](const Frame& f) { return f.role == FrameRole::jit_code; });
  if (jit != frames.end()) {
    const JitCompiler* compiler = jit_compiler(profile);
    Module module;
    module.path = jit->function;
    module.missing = {
        true, true, "it was made at run time, and is in no file",
        std::string(compiler == nullptr || compiler->advice.empty() ? kJitAdvice : compiler->advice)};
    out.insert(out.begin(), std::move(module));
  }
  return out;
}

void show_native_frames(Profile& profile, const Choices& choices) {
  const auto& frames = profile.frames();
  const auto& stacks = profile.stacks();
  if (std::none_of(frames.begin(), frames.end(), [](const Frame& f) { return f.kind == FrameKind::native; }))
    return;
  mark_owners(profile);
  const FrameId jit = choices.all_frames ? FrameId() : put_jit_frame(profile);
  const std::vector<Fold> folded =
      choices.all_frames ? std::vector<Fold>(frames.size() + 1, Fold::no) : folded_frames(profile);
  // What was inlined at a frame's address: one chain, because a frame is one address.
  std::vector<FrameId> inlined(frames.size() + 1);
  for (uint32_t i = 0; i < frames.size(); ++i) {
    const auto& into = frames[i].inlined_in;
    if (into && into->value != 0 && into->value <= i && !inlined[into->value])
      inlined[into->value] = FrameId(i + 1);
  }

  std::vector<Stack> rows;
  tsl::robin_map<uint64_t, uint32_t, Spread> known;  // parent << 32 | frame
  const auto put = [&](StackId parent, FrameId frame) {
    const auto [at, fresh] =
        known.try_emplace(uint64_t{parent.value} << 32 | frame.value, static_cast<uint32_t>(rows.size() + 1));
    if (fresh) rows.push_back({parent, frame});
    return StackId(at->second);
  };
  // Replaces frames that only lead into this one.
  const auto put_below = [&](StackId parent, FrameId frame) {
    if (jit && is_unnamed_jit(frames[frame.value - 1])) {
      const auto gap_at = [&](FrameId outer) {
        return outer && outer.value <= frames.size() && is_gap(frames[outer.value - 1]);
      };
      while (parent && gap_at(rows[parent.value - 1].frame)) parent = rows[parent.value - 1].parent;
      const bool again = parent && rows[parent.value - 1].frame == jit;
      return again ? parent : put(parent, jit);
    }
    // Levels decrease outwards; otherwise it is a recursion.
    CythonLevel level = cython_level(frames[frame.value - 1]);
    while (!choices.all_frames && parent) {
      const FrameId outer = rows[parent.value - 1].frame;
      if (!outer || outer.value > frames.size() ||
          !leads_into(frames[outer.value - 1], frames[frame.value - 1], level))
        break;
      level = cython_level(frames[outer.value - 1]);
      parent = rows[parent.value - 1].parent;
    }
    return put(parent, frame);
  };
  // Outside the outermost Python frame every function of the interpreter is folded, named or not, but only
  // frames further in show whether there is a Python frame. Until then a stack has two forms: with those
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
      if (folded[frame.value] == Fold::no) {
        const Frame& row = frames[frame.value - 1];
        const bool unnamed = !choices.all_frames && is_unnamed_libc(profile, row);
        if (form.with || !unnamed) form.with = put_below(form.with, frame);
        const bool starts = !choices.all_frames && is_python_file(profile, row);
        if (form.python) {
          form.without = form.with;
        } else if (!starts && (form.without || !unnamed)) {
          form.without = put_below(form.without, frame);
        }
      }
      frame = inlined[frame.value];
    }
    forms[i + 1] = form;
  }
  std::vector<StackId> shown(stacks.size() + 1);
  for (size_t i = 1; i <= stacks.size(); ++i) shown[i] = forms[i].with;
  std::vector<uint8_t> ends(stacks.size() + 1, 0);
  for (const auto* samples : {&profile.samples(), &profile.samples_of_others()}) {
    for (const Sample& sample : *samples) {
      if (sample.stack.value <= stacks.size()) ends[sample.stack.value] = 1;
    }
  }
  // The innermost function is shown; a stack that is folded completely shows its innermost frame.
  for (uint32_t i = 1; i <= stacks.size(); ++i) {
    if (ends[i] == 0) continue;
    FrameId innermost = stacks[i - 1].frame;
    if (!innermost || innermost.value > frames.size()) continue;
    for (size_t depth = 0; inlined[innermost.value] && depth < kMostInlined; ++depth)
      innermost = inlined[innermost.value];
    if (folded[innermost.value] == Fold::but_innermost) {
      shown[i] = put(shown[i], innermost);
    } else if (!shown[i]) {
      shown[i] = put({}, stacks[i - 1].frame);
    }
  }
  profile.replace_stacks(std::move(rows), shown);
}

}  // namespace phlox::profile
