#include "phlox/python/locate.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "phlox/memory/process_memory.h"
#include "phlox/python/layout_table.h"

namespace phlox::python {
namespace {

using target::LoadedModule;
using target::Module;

struct Version {
  uint8_t major = 0, minor = 0, micro = 0;
  std::string text;
};

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// PY_VERSION_HEX (Include/patchlevel.h): 0xMMmmuuLS, L the release level (a, b, c, f), S its serial.
Version version_of_hex(uint32_t hex) {
  Version v;
  v.major = static_cast<uint8_t>(hex >> 24);
  v.minor = static_cast<uint8_t>(hex >> 16);
  v.micro = static_cast<uint8_t>(hex >> 8);
  v.text = fmt::format("{}.{}.{}", v.major, v.minor, v.micro);
  const unsigned level = hex >> 4 & 0xF;
  if (level != 0xF) v.text += fmt::format("{}{}", level == 0xA ? "a" : level == 0xB ? "b" : "rc", hex & 0xF);
  return v;
}

// "libpython3.9.so.1.0", "python2.7", "python3.13t"
std::optional<Version> version_of_name(const std::string& name) {
  const size_t at = name.find("python");
  if (at == std::string::npos) return {};
  unsigned major = 0, minor = 0;
  int used = 0;
  if (std::sscanf(name.c_str() + at + 6, "%1u.%2u%n", &major, &minor, &used) != 2) return {};
  Version v;
  v.major = static_cast<uint8_t>(major);
  v.minor = static_cast<uint8_t>(minor);
  v.text = fmt::format("{}.{}", major, minor);
  return v;
}

// PY_VERSION as a string of its own in the constants: "\0" "3.9.18" "\0". Of several, the longest, so that "3.9" alone does not win.
void find_version_string(const LoadedModule& module, Version& version) {
  const auto* rodata = module.elf.find_section(".rodata");
  if (rodata == nullptr) return;
  const auto bytes = module.elf.contents(*rodata);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string wanted = std::string(1, '\0') + fmt::format("{}.{}.", version.major, version.minor);
  for (size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + 1)) {
    const std::string_view found = text.substr(at + 1, std::min<size_t>(16, text.size() - at - 1));
    const size_t end = found.find('\0');
    if (end == std::string_view::npos || end < wanted.size()) continue;
    const std::string_view micro = found.substr(wanted.size() - 1, end - wanted.size() + 1);
    if (!std::all_of(micro.begin(), micro.end(), [](char c) { return (c >= '0' && c <= '9') || c == '+' || c == 'a' || c == 'b' || c == 'r' || c == 'c'; })) continue;
    if (micro.empty() || micro[0] < '0' || micro[0] > '9') continue;
    version.micro = static_cast<uint8_t>(std::atoi(std::string(micro).c_str()));
    version.text = std::string(found.substr(0, end));
    return;
  }
}

std::optional<Version> version_of(const LoadedModule& module, memory::RemoteMemory& memory) {
  if (const auto symbol = module.elf.find_symbol("Py_Version")) {  // 3.11+
    uint32_t hex = 0;
    if (memory.read_value(module.remote(symbol->address), hex) && (hex >> 24 == 3)) return version_of_hex(hex);
  }
  auto version = version_of_name(base_name(module.module.path));
  if (version) find_version_string(module, *version);
  return version;
}

// The interpreters_head word for a candidate _PyRuntime (3.7+).
Interpreter make(const Layout& layout, const Version& version, RemoteAddress runtime) {
  Interpreter i;
  i.layout = layout;
  i.major = version.major;
  i.minor = version.minor;
  i.micro = version.micro;
  i.version = version.text;
  i.build = layout.traits.free_threaded ? (layout.traits.debug ? "free-threaded debug" : "free-threaded")
                                        : (layout.traits.debug ? "debug" : "default");
  i.runtime = runtime;
  if (layout.runtime.interpreters_head.present()) i.interpreters_head = runtime + *layout.runtime.interpreters_head;
  if (layout.traits.gil == GilPlace::runtime) {
    if (layout.runtime.gil.present()) i.gil = runtime + *layout.runtime.gil;
    if (layout.runtime.tstate_current.present()) i.tstate_current = runtime + *layout.runtime.tstate_current;
  }
  return i;
}

struct Search {
  const LoadedModule& module;
  const Layout& layout;
  const Version& version;
  memory::RemoteMemory& memory;
  std::string reason;  // why the last strategy brought nothing
  bool not_up = false;  // the place was found, but no interpreter is up there yet
};

std::optional<Interpreter> accept(Search& search, Interpreter candidate, const std::string& how) {
  candidate.found_by = fmt::format("{} in {}", how, base_name(search.module.module.path));
  std::string reason;
  if (validate(candidate, search.memory, reason)) return candidate;
  uint64_t head = 1;
  if (search.memory.read_value(candidate.interpreters_head, head) && head == 0) search.not_up = true;
  search.reason = reason;
  return {};
}

std::optional<Interpreter> by_symbol(Search& search) {
  if (search.layout.traits.gil == GilPlace::symbols) {
    const auto head = search.module.elf.find_symbol("interp_head");
    const auto current = search.module.elf.find_symbol("_PyThreadState_Current");
    if (!current) {
      search.reason = "no symbol _PyThreadState_Current";
      return {};
    }
    Interpreter i = make(search.layout, search.version, {});
    i.tstate_current = search.module.remote(current->address);
    if (!head) {
      search.reason = "no symbol interp_head (the file is stripped)";
      return {};
    }
    i.interpreters_head = search.module.remote(head->address);
    return accept(search, i, "symbol interp_head");
  }
  const auto runtime = search.module.elf.find_symbol("_PyRuntime");
  if (!runtime) {
    search.reason = "no such symbol (the file is stripped, or is no Python)";
    return {};
  }
  return accept(search, make(search.layout, search.version, search.module.remote(runtime->address)), "symbol _PyRuntime");
}

std::optional<Interpreter> by_section(Search& search) {
  // Python/pylifecycle.c puts _PyRuntime into a section of its own (3.11+ and 3.7-3.10: plain .data).
  const auto* section = search.module.elf.find_section(".PyRuntime");
  if (section == nullptr) {
    search.reason = "no such section";
    return {};
  }
  return accept(search, make(search.layout, search.version, search.module.remote(section->address)), "section .PyRuntime");
}

// Every aligned word of the module's writable memory might be where _PyRuntime starts: the word at interpreters_head must
// lead to an interpreter whose thread states point back.
std::optional<Interpreter> by_scan(Search& search) {
  if (!search.layout.runtime.interpreters_head.present()) {
    search.reason = "this version has no _PyRuntime";
    return {};
  }
  constexpr uint64_t kMost = uint64_t{64} << 20;
  uint64_t left = kMost;
  std::vector<std::byte> block;
  const uint64_t head_at = *search.layout.runtime.interpreters_head;
  for (const auto& mapping : search.module.module.mappings) {
    if (!mapping.writable || !mapping.readable) continue;
    const uint64_t size = std::min(mapping.end - mapping.start, left);
    left -= size;
    block.resize(size);
    if (!search.memory.read(mapping.start, block)) continue;
    for (uint64_t at = head_at; at + 16 <= size; at += 8) {
      uint64_t words[2];  // interpreters.head and interpreters.main, equal in a process with one interpreter
      std::memcpy(words, block.data() + at, sizeof words);
      if (words[0] == 0 || !is_plausible(RemoteAddress(words[0])) || (words[0] & 7) != 0) continue;
      if (words[1] != words[0] && !is_plausible(RemoteAddress(words[1]))) continue;
      const auto candidate = make(search.layout, search.version, mapping.start + (at - head_at));
      if (auto found = accept(search, candidate, "scan of writable memory")) return found;
    }
  }
  search.reason = "nothing there leads to an interpreter";
  return {};
}

struct Strategy {
  const char* name;
  std::optional<Interpreter> (*run)(Search&);
};
constexpr Strategy kStrategies[] = {
    {"symbol", by_symbol},
    {"section .PyRuntime", by_section},
    {"scan of writable memory", by_scan},
};

}  // namespace

bool validate(const Interpreter& candidate, memory::RemoteMemory& memory, std::string& reason) {
  const Layout& l = candidate.layout;
  RemoteAddress interpreter;
  if (!memory.read_value(candidate.interpreters_head, interpreter.value)) {
    reason = "its memory cannot be read";
    return false;
  }
  if (!interpreter) {
    reason = "no interpreter is up";
    return false;
  }
  if (!is_plausible(interpreter) || (interpreter.value & 7) != 0) {
    reason = fmt::format("interpreters.head is {:#x}", interpreter.value);
    return false;
  }
  RemoteAddress thread;
  if (!memory.read_value(interpreter + *l.interpreter.threads_head, thread.value) || !is_plausible(thread) || (thread.value & 7) != 0) {
    reason = "the interpreter has no thread state";
    return false;
  }
  // All thread states point back, for as many as matter.
  constexpr int kEnough = 64;
  for (int i = 0; thread && i < kEnough; ++i) {
    RemoteAddress back;
    if (!is_plausible(thread) || !memory.read_value(thread + *l.thread.interp, back.value) || back != interpreter) {
      reason = "a thread state does not point back to its interpreter";
      return false;
    }
    if (!memory.read_value(thread + *l.thread.next, thread.value)) {
      reason = "the list of thread states cannot be read";
      return false;
    }
  }
  return true;
}

Result<Interpreter> locate(pid_t pid, std::vector<Attempt>* attempts) {
  auto maps = target::read_maps(pid);
  if (!maps) return fail(maps);
  memory::ProcessMemory memory(pid);
  const auto modules = target::modules_of(*maps);
  // libpython before the executable before anything else that has the symbol; a copy of libpython that was only mapped
  // (by ctypes, by a debugger's helper) has no interpreter up and is passed over.
  std::vector<const Module*> order;
  const auto is_libpython = [](const Module& m) { return base_name(m.path).starts_with("libpython"); };
  const std::string exe = [&] {
    for (const Module& m : modules) {
      if (m.mappings.front().executable || m.mappings.front().offset == 0) return m.path;
    }
    return std::string();
  }();
  for (const Module& m : modules) {
    if (is_libpython(m)) order.push_back(&m);
  }
  for (const Module& m : modules) {
    if (!is_libpython(m) && m.path == exe) order.push_back(&m);
  }
  bool any_not_up = false;
  std::string unsupported;
  std::string unreadable;
  for (const Module* module : order) {
    auto loaded = target::load_module(pid, *module);
    if (!loaded) {
      unreadable = loaded.error().message;
      if (attempts != nullptr) attempts->push_back({"open", module->path, loaded.error().message});
      continue;
    }
    const auto version = version_of(*loaded, memory);
    if (!version) {
      if (attempts != nullptr) attempts->push_back({"version", module->path, "neither a symbol nor its name says one"});
      continue;
    }
    const Layout* layout = find_layout(version->major, version->minor);
    if (layout == nullptr) {
      unsupported = version->text;
      if (attempts != nullptr) attempts->push_back({"layout", module->path, "no row for Python " + version->text});
      continue;
    }
    Search search{*loaded, *layout, *version, memory, {}, false};
    for (const Strategy& strategy : kStrategies) {
      if (auto found = strategy.run(search)) return *found;
      if (attempts != nullptr) attempts->push_back({strategy.name, module->path, search.reason});
      if (search.not_up) break;
    }
    any_not_up = any_not_up || search.not_up;
  }
  if (memory.last_error() == EPERM || memory.last_error() == EACCES) {
    return fail(ErrorKind::permission, fmt::format("cannot read memory of process {}: {} (process_vm_readv, errno {})", pid,
                                                   std::strerror(memory.last_error()), memory.last_error()),
                "run as the same user, or: sudo phlox …");
  }
  if (any_not_up) {
    return fail(ErrorKind::target_state, fmt::format("the Python of process {} is not up: no interpreter has been made, or all are gone", pid),
                "try again in a moment");
  }
  if (!unsupported.empty()) {
    return fail(ErrorKind::unsupported_python, fmt::format("process {} runs Python {}, which this phlox does not read", pid, unsupported),
                "a newer phlox may: see docs/pythons.md");
  }
  return fail(ErrorKind::not_python, fmt::format("process {} is not a Python process: {}", pid, exe.empty() ? "it has no executable" : "it runs " + exe),
              unreadable.empty() ? "list Python processes with: pgrep -a python" : unreadable);
}

}  // namespace phlox::python
