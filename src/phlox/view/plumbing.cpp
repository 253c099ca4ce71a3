#include "phlox/view/plumbing.h"

#include <algorithm>
#include <iterator>

namespace phlox::view {

namespace {

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

// PyObject_CallOneArg, _PyObject_FastCallDictTstate, _PyObject_VectorcallMethod, ...
bool is_call_of_object(std::string_view name) {
  if (name.starts_with('_')) name.remove_prefix(1);
  return name.starts_with("PyObject_") &&
         (name.find("Call") != std::string_view::npos || name.find("Vectorcall") != std::string_view::npos);
}

}  // namespace

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

bool starts_with_one_of(std::span<const std::string_view> prefixes, std::string_view name) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace phlox::view
