#include "phlox/view/native_frames.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <tsl/robin_map.h>

#include "phlox/base/spread.h"
#include "phlox/base/text.h"
#include "phlox/profile/declarations.h"
#include "phlox/view/kernel_frames.h"
#include "phlox/view/module_of_file.h"
#include "phlox/view/plumbing.h"

namespace phlox::view {

using namespace profile;

namespace {

// Inlined functions within each other; only a damaged file has more levels.
constexpr size_t kMostInlined = 64;

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
     "line beneath calls, or set NUMBA_DISABLE_JIT=1 to run them as Python, with names and lines"},
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

// A function without a symbol is named by its file and address (symbols/module_names.cpp).
bool is_address(std::string_view function, std::string_view file) {
  return function.starts_with(file) && function.substr(file.size()).starts_with("+0x");
}

// An unnamed part of the C library: while only start functions are outside it, it starts the program or the
// thread, too. Only the C library's debug information names __libc_start_call_main, start_thread and clone3.
bool is_unnamed_libc(const Profile& profile, const Frame& frame) {
  if (!frame.module || frame.module->value == 0 || frame.module->value > profile.modules().size())
    return false;
  const std::string_view path = profile.modules()[frame.module->value - 1].path;
  const std::string_view name = base_name(path);
  return is_libc(name) && (frame.function.empty() || is_address(frame.function, name));
}

// The innermost function of a stack is shown even if it only leads on: there is nothing to lead to.
enum class Fold : uint8_t { no, but_innermost, always };

// The C functions that Cython makes of one function call each other (naming/native_names.cpp): smaller values
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

// What was inlined at a frame's address: one chain, because a frame is one address.
std::vector<FrameId> inlined_at(const std::vector<Frame>& frames) {
  std::vector<FrameId> inlined(frames.size() + 1);
  for (uint32_t i = 0; i < frames.size(); ++i) {
    const auto& into = frames[i].inlined_in;
    if (into && into->value != 0 && into->value <= i && !inlined[into->value])
      inlined[into->value] = FrameId(i + 1);
  }
  return inlined;
}

// Makes the stacks that are shown from those of the recording.
class ShownStacks {
 public:
  // `jit` represents code that was made at run time; none: it is shown as it is.
  ShownStacks(Profile& profile, const Choices& choices, FrameId jit)
      : profile_(profile),
        frames_(profile.frames()),
        stacks_(profile.stacks()),
        all_(choices.all_frames),
        jit_(jit),
        folded_(all_ ? std::vector<Fold>(frames_.size() + 1, Fold::no) : folded_frames(profile)),
        inlined_(inlined_at(frames_)) {}

  void replace() && {
    std::vector<Form> forms(stacks_.size() + 1);
    std::vector<StackId> shown(stacks_.size() + 1);
    for (uint32_t i = 0; i < stacks_.size(); ++i) {
      forms[i + 1] =
          form_of(stacks_[i], stacks_[i].parent.value <= i ? forms[stacks_[i].parent.value] : Form());
      shown[i + 1] = forms[i + 1].with;
    }
    show_innermost(shown);
    profile_.replace_stacks(std::move(rows_), shown);
  }

 private:
  // Outside the outermost Python frame every function of the interpreter is folded, named or not, but only
  // frames further in show whether there is a Python frame. Until then a stack has two forms: with those
  // functions, and without.
  struct Form {
    StackId with, without;
    bool python = false;
  };

  bool is_known(FrameId frame) const { return frame && frame.value <= frames_.size(); }
  const Frame& frame_of(FrameId frame) const { return frames_[frame.value - 1]; }
  FrameId frame_at(StackId stack) const { return rows_[stack.value - 1].frame; }
  StackId parent_of(StackId stack) const { return rows_[stack.value - 1].parent; }

  StackId put(StackId parent, FrameId frame) {
    const auto [at, fresh] = known_.try_emplace(uint64_t{parent.value} << 32 | frame.value,
                                                static_cast<uint32_t>(rows_.size() + 1));
    if (fresh) rows_.push_back({parent, frame});
    return StackId(at->second);
  }

  StackId put_jit(StackId parent) {
    while (parent && is_known(frame_at(parent)) && is_gap(frame_of(frame_at(parent))))
      parent = parent_of(parent);
    return parent && frame_at(parent) == jit_ ? parent : put(parent, jit_);
  }

  // Replaces frames that only lead into this one.
  StackId put_below(StackId parent, FrameId frame) {
    if (jit_ && is_unnamed_jit(frame_of(frame))) return put_jit(parent);
    // Levels decrease outwards; otherwise it is a recursion.
    CythonLevel level = cython_level(frame_of(frame));
    while (!all_ && parent) {
      const FrameId outer = frame_at(parent);
      if (!is_known(outer) || !leads_into(frame_of(outer), frame_of(frame), level)) break;
      level = cython_level(frame_of(outer));
      parent = parent_of(parent);
    }
    return put(parent, frame);
  }

  Form form_of(const Stack& stack, Form form) {
    if (!is_known(stack.frame))
      return {put(form.with, stack.frame), put(form.without, stack.frame), form.python};
    if (!form.python && frame_of(stack.frame).kind == FrameKind::python) {
      form.python = true;
      form.with = form.without;
    }
    FrameId frame = stack.frame;
    for (size_t depth = 0; is_known(frame) && depth < kMostInlined; ++depth) {
      if (folded_[frame.value] == Fold::no) add(form, frame);
      frame = inlined_[frame.value];
    }
    return form;
  }

  void add(Form& form, FrameId frame) {
    const Frame& row = frame_of(frame);
    const bool unnamed = !all_ && is_unnamed_libc(profile_, row);
    if (form.with || !unnamed) form.with = put_below(form.with, frame);
    const bool starts = !all_ && is_python_file(profile_, row);
    if (form.python) {
      form.without = form.with;
    } else if (!starts && (form.without || !unnamed)) {
      form.without = put_below(form.without, frame);
    }
  }

  // By stack: whether a sample ends in it.
  std::vector<uint8_t> ends() const {
    std::vector<uint8_t> ends(stacks_.size() + 1, 0);
    for (const auto* samples : {&profile_.samples(), &profile_.samples_of_others()}) {
      for (const Sample& sample : *samples) {
        if (sample.stack.value <= stacks_.size()) ends[sample.stack.value] = 1;
      }
    }
    return ends;
  }

  // The innermost function is shown; a stack that is folded completely shows its innermost frame.
  void show_innermost(std::vector<StackId>& shown) {
    const std::vector<uint8_t> is_end = ends();
    for (uint32_t i = 1; i <= stacks_.size(); ++i) {
      FrameId innermost = stacks_[i - 1].frame;
      if (is_end[i] == 0 || !is_known(innermost)) continue;
      for (size_t depth = 0; inlined_[innermost.value] && depth < kMostInlined; ++depth)
        innermost = inlined_[innermost.value];
      if (folded_[innermost.value] == Fold::but_innermost) {
        shown[i] = put(shown[i], innermost);
      } else if (!shown[i]) {
        shown[i] = put({}, stacks_[i - 1].frame);
      }
    }
  }

  Profile& profile_;
  const std::vector<Frame>& frames_;
  const std::vector<Stack>& stacks_;
  const bool all_;
  const FrameId jit_;
  const std::vector<Fold> folded_;  // by frame
  const std::vector<FrameId> inlined_;
  std::vector<Stack> rows_;
  tsl::robin_map<uint64_t, uint32_t, Spread> known_;  // parent << 32 | frame
};

}  // namespace

bool is_interpreter(const Frame& frame) {
  return frame.role == kInterpreterCode || frame.role == FrameRole::interpreter_loop ||
         frame.role == FrameRole::trampoline;
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

bool is_address_of_known_file(const Profile& profile, const Label& label) {
  if (label.kind != FrameKind::native || label.address == 0 || !label.module_id ||
      label.module_id.value > profile.modules().size())
    return false;
  const Module& module = profile.modules()[label.module_id.value - 1];
  // Without a name, or not named yet (frame_labels.cpp).
  const std::string& name = label.whole_name();
  return !module.build_id.empty() &&
         (is_address(name, base_name(module.path)) || is_address(name, label.module));
}

void show_native_frames(Profile& profile, const Choices& choices) {
  const auto& frames = profile.frames();
  if (std::none_of(frames.begin(), frames.end(), [](const Frame& f) { return f.kind == FrameKind::native; }))
    return;
  mark_owners(profile);
  const FrameId jit = choices.all_frames ? FrameId() : put_jit_frame(profile);
  ShownStacks(profile, choices, jit).replace();
}

}  // namespace phlox::view
