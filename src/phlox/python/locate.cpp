#include "phlox/python/locate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "phlox/base/text.h"
#include "phlox/memory/process_memory.h"
#include "phlox/python/recognise.h"
#include "phlox/python/search/candidates.h"
#include "phlox/python/search/identity.h"
#include "phlox/python/search/module_search.h"
#include "phlox/python/search/strategies.h"

namespace phlox::python {
namespace {

using process::Mapping;
using process::Module;

// The result for one module. The first one found wins; the others make up the error message.
struct Outcome {
  std::optional<Interpreter> found;
  bool python = false;
  bool not_up = false;
  std::string unsupported;  // "Python 3.5.2"
  std::string unreadable;   // why its file could not be read
};

Outcome examine(const ProcessView& view, const Module& module, bool insist, std::vector<Attempt>* attempts) {
  Outcome out;
  const auto note = [&](const char* strategy, const std::string& reason) {
    if (attempts != nullptr) attempts->push_back({strategy, module.path, reason, false});
  };
  auto loaded = view.load(module);
  if (!loaded) {
    note("file", loaded.error().message);
    out.unreadable = loaded.error().message;
    loaded = process::load_from_memory(view.memory, module, view.budget);
    if (!loaded) {
      note("image in memory", loaded.error().message);
      return out;
    }
  }
  if (!insist && !exports_interpreter(*loaded)) return out;
  if (!looks_like_python(*loaded)) {
    note("look", "nothing in the file is CPython's: neither its name, nor a symbol, nor the word PYTHONHOME");
    return out;
  }
  ModuleSearch search{view.maps, *loaded, version_of(*loaded, view.memory), builds_of(*loaded), view.memory};
  out.python = search.version.has_value() || loaded->elf.find_symbol("_PyRuntime").has_value();
  if (loaded->elf.find_symbol("_Py_PrintReferences")) {
    // Py_TRACE_REFS puts two pointers in front of every object; --with-pydebug implied it before 3.8.
    out.unsupported =
        fmt::format("Python {} built with Py_TRACE_REFS", search.version ? search.version->text : "?");
    note("build", "built with Py_TRACE_REFS");
    return out;
  }
  for (const Strategy& strategy : strategies()) {
    search.reason.clear();
    if (auto found = strategy.run(search)) {
      if (attempts != nullptr) attempts->push_back({strategy.name, module.path, places_of(*found), true});
      out.found = std::move(found);
      return out;
    }
    note(strategy.name, search.reason);
    if (search.not_up || !search.unsupported.empty()) break;
    // The address is certain, so the interpreter there is still being initialised. A scan would find a
    // half-made copy of its pointers and accept it.
    if (search.place_known) {
      search.not_up = true;
      break;
    }
  }
  out.not_up = search.not_up;
  if (!search.unsupported.empty()) out.unsupported = "Python " + search.unsupported;
  return out;
}

Error not_python(const ProcessView& view, const std::string& executable, const Outcome& executables_outcome) {
  Error error;
  error.kind = ErrorKind::not_python;
  error.message = fmt::format("process {} is not a Python process: {}", view.pid,
                              executable.empty() ? "it has no executable" : "it runs " + executable);
  error.hint = executables_outcome.unreadable.empty() ? "list Python processes with: phlox list"
                                                      : executables_outcome.unreadable;
  return error;
}

// What the modules are in which no interpreter was found.
struct Examined {
  bool not_up = false, any_python = false;
  std::string unsupported;
  Outcome executables;
};

Error nothing_found(const ProcessView& view, const std::string& executable, const Examined& seen) {
  if (!seen.unsupported.empty()) {
    return Error{
        ErrorKind::unsupported_python,
        fmt::format("process {} runs {}, which this phlox does not read", view.pid, seen.unsupported),
        "what is read: docs/pythons.md"};
  }
  if (seen.not_up) {
    return Error{
        ErrorKind::target_state,
        fmt::format("the Python of process {} is not running: it has no interpreter yet, or all have ended",
                    view.pid),
        "try again in a moment"};
  }
  if (seen.executables.unreadable.find("32-bit") != std::string::npos) {
    return Error{
        ErrorKind::unsupported_python,
        fmt::format("process {} is a 32-bit program, which phlox does not read: {}", view.pid, executable),
        "what is read: docs/pythons.md"};
  }
  if (seen.any_python) {
    return Error{ErrorKind::target_state,
                 fmt::format("process {} has a Python in it, but no interpreter was found", view.pid),
                 "--verbose says what was tried"};
  }
  return not_python(view, executable, seen.executables);
}

// A process may run two libpythons: one is read, and a warning names the other. Only files named libpython
// are examined: others would cost time on every attach, and almost never matter.
void warn_of_another(const ProcessView& view, const Module& chosen, const std::vector<const Module*>& all,
                     Interpreter& found) {
  for (const Module* module : all) {
    if (module == &chosen || !base_name(module->path).starts_with("libpython")) continue;
    const Outcome other = examine(view, *module, true, nullptr);
    if (!other.found || other.found->interpreters_head == found.interpreters_head) continue;
    if (!found.warning.empty()) found.warning += "; ";
    found.warning += fmt::format("this process also runs a second Python, {}, in {}; phlox does not read it",
                                 other.found->version, base_name(module->path));
    return;
  }
}

}  // namespace

Result<Interpreter> locate(const ProcessView& view, std::vector<Attempt>* attempts) {
  if (attempts != nullptr) attempts->clear();
  const auto modules = process::modules_of(view.maps);
  const std::string executable = !view.executable.empty() ? view.executable
                                 : modules.empty()        ? ""
                                                          : modules.front().path;
  if (const std::string other = other_implementation(modules, executable); !other.empty()) {
    return fail(
        ErrorKind::unsupported_python,
        fmt::format("process {} runs {}, which phlox does not read: it reads CPython", view.pid, other),
        "what is read: docs/pythons.md");
  }
  // A copy of libpython that is only mapped (by ctypes, by a debugger's helper) has no running interpreter
  // and is skipped.
  const auto rank = [&](const Module& m) { return rank_of(m, executable); };
  std::vector<const Module*> order;
  for (const Module& m : modules) order.push_back(&m);
  std::stable_sort(order.begin(), order.end(),
                   [&](const Module* a, const Module* b) { return rank(*a) < rank(*b); });
  Examined seen;
  for (const Module* module : order) {
    // Only a module with writable memory can hold an interpreter. A file that is mapped twice is examined
    // twice.
    if (std::none_of(module->mappings.begin(), module->mappings.end(),
                     [](const Mapping& m) { return m.writable; }))
      continue;
    if (rank(*module) == Rank::other && (seen.not_up || !seen.unsupported.empty())) break;
    Outcome outcome = examine(view, *module, rank(*module) != Rank::other, attempts);
    if (outcome.found) {
      warn_of_another(view, *module, order, *outcome.found);
      return std::move(*outcome.found);
    }
    seen.not_up = seen.not_up || outcome.not_up;
    seen.any_python = seen.any_python || outcome.python;
    if (seen.unsupported.empty()) seen.unsupported = outcome.unsupported;
    if (module->path == executable) seen.executables = std::move(outcome);
  }
  return tl::unexpected<Error>(nothing_found(view, executable, seen));
}

Result<Interpreter> locate(pid_t pid, std::vector<Attempt>* attempts) {
  auto maps = process::read_maps(pid);
  if (!maps) return fail(maps);
  memory::ProcessMemory memory(pid);
  ProcessView view{pid, {}, std::move(*maps), {}, memory};
  view.load = [pid, budget = view.budget](const Module& m) { return process::load_module(pid, m, budget); };
  view.executable = executable_of(pid);
  auto found = locate(view, attempts);
  if (found) return found;
  const int error = memory.last_error();
  if (error == EPERM || error == EACCES) {
    return fail(ErrorKind::permission,
                fmt::format("cannot read memory of process {}: {} (process_vm_readv, errno {})", pid,
                            std::strerror(error), error),
                "run as the same user, or as root");
  }
  return found;
}

}  // namespace phlox::python
