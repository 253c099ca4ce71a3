#include "phlox/python/locate.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>

#include "phlox/base/text.h"
#include "phlox/memory/process_memory.h"
#include "phlox/python/debug_offsets.h"
#include "phlox/python/frame_walk.h"
#include "phlox/python/layout_table.h"
#include "phlox/python/recognise.h"
#include "phlox/python/version.h"

namespace phlox::python {
namespace {

using target::LoadedModule;
using target::Mapping;
using target::Module;

// CPython's own .data and .bss have less than 2 MiB; a program that embeds it may have much of its own.
constexpr uint64_t kMostScanned = uint64_t{64} << 20;
constexpr uint64_t kScanBlock = uint64_t{4} << 20;
constexpr int kMostInterpreters = 4096;
constexpr int kMostThreads = 64;  // that are checked of each

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_pointer(uint64_t value) {
  return is_plausible(RemoteAddress(value)) && (value & 7) == 0;
}

// Memory for walk_frames(): every piece fetched when asked for.
class ReadThrough {
 public:
  explicit ReadThrough(memory::RemoteMemory& memory) : memory_(memory) {}
  const std::byte* find(RemoteAddress address, size_t size) {
    auto& piece = pieces_.emplace_back(size);
    return memory_.read(address, piece) ? piece.data() : nullptr;
  }

 private:
  memory::RemoteMemory& memory_;
  std::deque<std::vector<std::byte>> pieces_;
};

// Everything that one module's strategies need.
struct Search {
  const ProcessView& view;
  const LoadedModule& module;
  std::optional<Version> version;  // none: only what states its own (3.13+) can be read
  std::vector<Build> builds;       // that may be: most likely first
  memory::RemoteMemory& memory;
  std::string reason;        // why the last strategy brought nothing
  std::string unsupported;   // a version that no row covers
  bool not_up = false;       // the place was found, but no interpreter is up there yet
  bool place_known = false;  // the file itself says where _PyRuntime or interp_head lies
};

Interpreter make(const Layout& layout, const Version& version, RemoteAddress runtime) {
  Interpreter i;
  i.layout = layout;
  i.major = version.major;
  i.minor = version.minor;
  i.micro = version.micro;
  i.version = version.text;
  i.build = name_of({.debug = layout.traits.debug, .free_threaded = layout.traits.free_threaded});
  i.runtime = runtime;
  if (layout.runtime.interpreters_head.present())
    i.interpreters_head = runtime + *layout.runtime.interpreters_head;
  if (layout.traits.gil == GilOwner::runtime) {
    if (layout.runtime.gil.present()) i.gil = runtime + *layout.runtime.gil;
    if (layout.runtime.tstate_current.present()) i.tstate_current = runtime + *layout.runtime.tstate_current;
  }
  return i;
}

std::string places_of(const Interpreter& i) {
  std::string text = fmt::format("the row of {}.{} {}, ", i.major, i.minor, i.build);
  if (i.runtime) text += fmt::format("_PyRuntime at {:#x}, ", i.runtime.value);
  text += fmt::format("interpreters from {:#x}", i.interpreters_head.value);
  if (i.tstate_current) text += fmt::format(", current thread state at {:#x}", i.tstate_current.value);
  if (i.gil) text += fmt::format(", GIL at {:#x}", i.gil.value);
  return text;
}

std::optional<Interpreter> accept(Search& search, Interpreter candidate, const std::string& how) {
  candidate.found_by = fmt::format("{} in {}", how, base_name(search.module.module.path));
  const Verdict verdict = validate(candidate, search.memory, search.reason);
  search.reason = fmt::format("{}: {}", places_of(candidate), search.reason);
  switch (verdict) {
    case Verdict::valid:
      if (candidate.layout.traits.code_epoch == CodeEpoch::global_version) {
        if (const auto next = search.module.elf.find_symbol("_Py_next_func_version"))
          candidate.next_func_version = search.module.remote(next->address);
      }
      return candidate;
    case Verdict::not_up:
      search.not_up = true;
      return {};
    case Verdict::wrong:
      return {};
  }
  return {};
}

// A candidate whose _PyRuntime states its own offsets (3.13+).
std::optional<Interpreter> accept_stated(Search& search, RemoteAddress runtime,
                                         std::span<const std::byte> bytes, const DebugHeader& header,
                                         const std::string& how) {
  const Version version = version_of_hex(header.version);
  for (Build build : search.builds) {
    build.free_threaded = header.free_threaded;
    const Layout* row = find_layout(version.major, version.minor, build);
    std::string warning;
    if (row == nullptr) {
      row = newest_layout(build);
      warning = fmt::format("Python {} is newer than this phlox: read through what it states of itself",
                            version.text);
    } else if (version.pre_release) {
      warning =
          fmt::format("Python {} is a pre-release: read through what it states of itself", version.text);
    }
    Layout layout = *row;
    if (const auto applied = apply_debug_offsets(bytes, layout); !applied) {
      search.reason = applied.error().message;
      continue;
    }
    Interpreter candidate = make(layout, version, runtime);
    candidate.warning = warning;
    if (auto found = accept(search, candidate, how)) return found;
    if (search.not_up) return {};
  }
  return {};
}

// _PyRuntime may be at `runtime`.
std::optional<Interpreter> accept_runtime(Search& search, RemoteAddress runtime, const std::string& how) {
  std::vector<std::byte> bytes(debug_offsets_size());
  if (search.memory.read(runtime, std::span(bytes).first(DebugHeader::kSize))) {
    if (const auto header = parse_debug_header(bytes)) {
      search.memory.read(runtime, bytes);
      return accept_stated(search, runtime, bytes, *header, how);
    }
  }
  if (!search.version) {
    search.reason = "it does not say which Python it is";
    return {};
  }
  const Version& version = *search.version;
  bool any = false;
  for (const Build build : search.builds) {
    const Layout* row = find_layout(version.major, version.minor, build);
    if (row == nullptr) continue;
    any = true;
    if (row->runtime.debug_offsets.present()) {
      search.reason = fmt::format("Python {}, but _Py_DebugOffsets is not there", version.text);
      continue;
    }
    if (auto found = accept(search, make(*row, version, runtime), how)) return found;
    if (search.not_up) return {};
  }
  if (!any) {
    search.unsupported = version.text;
    search.reason = fmt::format("no row for Python {}", version.text);
  }
  return {};
}

// Which rows may fit; their fields are enough for a scan.
std::vector<const Layout*> rows_of(const Search& search) {
  std::vector<const Layout*> rows;
  for (const Build build : search.builds) {
    if (!search.version) break;
    if (const Layout* row = find_layout(search.version->major, search.version->minor, build))
      rows.push_back(row);
  }
  return rows;
}

// Calls `visit(address, bytes)` for the module's writable memory, block by block with `overlap` bytes of the
// next. Stops when visit says true.
template <class Visit>
void scan_writable(const Search& search, uint64_t overlap, Visit visit) {
  uint64_t left = kMostScanned;
  std::vector<std::byte> block;
  for (const Mapping& mapping : search.module.module.mappings) {
    if (!mapping.writable || !mapping.readable) continue;
    for (uint64_t at = 0; at < mapping.end - mapping.start && left > 0; at += kScanBlock) {
      const uint64_t rest = mapping.end - mapping.start - at;
      block.resize(std::min({rest, kScanBlock + overlap, left}));
      left -= block.size();
      if (search.memory.read(mapping.start + at, block) &&
          visit(mapping.start + at, std::span<const std::byte>(block)))
        return;
    }
  }
}

// The words at these addresses, nothing where there is none to read.
std::vector<std::optional<uint64_t>> read_words(memory::RemoteMemory& memory,
                                                std::span<const RemoteAddress> addresses) {
  std::vector<uint64_t> values(addresses.size());
  std::vector<std::optional<uint64_t>> words(addresses.size());
  std::vector<memory::Range> ranges(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i)
    ranges[i] = {addresses[i], std::as_writable_bytes(std::span(&values[i], 1))};
  for (size_t at = 0; at < ranges.size();) {
    const size_t count = std::min<size_t>(ranges.size() - at, 256);
    const size_t got = memory.read(std::span<const memory::Range>(ranges).subspan(at, count));
    for (size_t i = at; i < at + got; ++i) words[i] = values[i];
    at += got < count ? got + 1 : got;  // the next one is not readable
  }
  return words;
}

// Places in the module's writable memory whose word leads to an interpreter whose first thread state points
// back.
std::vector<RemoteAddress> find_heads(const Search& search, const Layout& row) {
  std::vector<RemoteAddress> places, interpreters, fields;
  const auto is_mapped = [&](uint64_t value) {
    const auto after = std::upper_bound(search.view.maps.begin(), search.view.maps.end(), value,
                                        [](uint64_t v, const Mapping& m) { return v < m.start.value; });
    return after != search.view.maps.begin() && std::prev(after)->holds(RemoteAddress(value)) &&
           std::prev(after)->writable;
  };
  scan_writable(search, 8, [&](RemoteAddress start, std::span<const std::byte> bytes) {
    for (size_t at = 0; at + 8 <= bytes.size() && at < kScanBlock; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      if (!is_pointer(word) || !is_mapped(word)) continue;
      places.push_back(start + at);
      interpreters.push_back(RemoteAddress(word));
    }
    return false;
  });
  for (const RemoteAddress i : interpreters) fields.push_back(i + *row.interpreter.threads_head);
  const auto threads = read_words(search.memory, fields);
  std::vector<size_t> kept;
  fields.clear();
  for (size_t i = 0; i < threads.size(); ++i) {
    if (!threads[i] || !is_pointer(*threads[i]) || !is_mapped(*threads[i])) continue;
    kept.push_back(i);
    fields.push_back(RemoteAddress(*threads[i]) + *row.thread.interp);
  }
  const auto back = read_words(search.memory, fields);
  std::vector<RemoteAddress> found;
  for (size_t k = 0; k < kept.size(); ++k) {
    if (back[k] == interpreters[kept[k]].value) found.push_back(places[kept[k]]);
  }
  return found;
}

// interp_head and _PyThreadState_Current of 2.7 and 3.6.
std::optional<Interpreter> accept_head(Search& search, RemoteAddress head, const std::string& how) {
  for (const Layout* row : rows_of(search)) {
    Interpreter i = make(*row, *search.version, {});
    i.interpreters_head = head;
    if (const auto current = search.module.elf.find_symbol("_PyThreadState_Current")) {
      i.tstate_current = search.module.remote(current->address);
    }
    if (auto found = accept(search, i, how)) return found;
  }
  return {};
}

bool has_no_runtime(const Search& search) {
  const auto rows = rows_of(search);
  return !rows.empty() && rows.front()->traits.gil == GilOwner::symbols;
}

std::optional<Interpreter> by_symbol(Search& search) {
  if (has_no_runtime(search)) {
    const auto head = search.module.elf.find_symbol("interp_head");
    search.place_known = head.has_value();
    if (head) return accept_head(search, search.module.remote(head->address), "symbol interp_head");
    search.reason = "no symbol interp_head (the file is stripped)";
    return {};
  }
  const auto runtime = search.module.elf.find_symbol("_PyRuntime");
  search.place_known = runtime.has_value();
  if (runtime) return accept_runtime(search, search.module.remote(runtime->address), "symbol _PyRuntime");
  search.reason = "no symbol _PyRuntime (the file is stripped, or is no Python)";
  return {};
}

std::optional<Interpreter> by_section(Search& search) {
  // Python/pylifecycle.c puts _PyRuntime into a section of its own since 3.10 (bpo-36710).
  const auto* section = search.module.elf.find_section(".PyRuntime");
  if (section == nullptr) {
    search.reason = "no section .PyRuntime";
    return {};
  }
  search.place_known = true;
  return accept_runtime(search, search.module.remote(section->address), "section .PyRuntime");
}

std::optional<Interpreter> by_cookie(Search& search) {
  std::optional<Interpreter> found;
  search.reason = "no debug-offsets cookie in writable memory";
  scan_writable(search, DebugHeader::kSize, [&](RemoteAddress start, std::span<const std::byte> bytes) {
    const std::string_view text = as_text(bytes);
    for (size_t at = text.find(kDebugCookie); at != std::string_view::npos;
         at = text.find(kDebugCookie, at + 1)) {
      const RemoteAddress runtime = start + at;
      if ((runtime.value & 7) != 0 || !parse_debug_header(bytes.subspan(at))) continue;
      found = accept_runtime(search, runtime, "debug-offsets cookie");
      if (found || search.not_up) return true;
    }
    return false;
  });
  return found;
}

std::optional<Interpreter> by_scan(Search& search) {
  for (const Layout* row : rows_of(search)) {
    for (const RemoteAddress place : find_heads(search, *row)) {
      auto found =
          row->runtime.interpreters_head.present()
              ? accept_runtime(search, place - *row->runtime.interpreters_head, "scan of writable memory")
              : accept_head(search, place, "scan of writable memory");
      if (found) return found;
    }
  }
  search.not_up = false;  // what a scan came across proves nothing
  search.reason = "nothing in writable memory leads to an interpreter";
  return {};
}

struct Strategy {
  const char* name;
  std::optional<Interpreter> (*run)(Search&);
};
constexpr Strategy kStrategies[] = {
    {"symbol", by_symbol},
    {"section .PyRuntime", by_section},
    {"debug-offsets cookie", by_cookie},
    {"scan of writable memory", by_scan},
};

std::string_view constants_of(const LoadedModule& module) {
  const auto* rodata = module.elf.find_section(".rodata");
  return rodata == nullptr ? std::string_view() : as_text(module.elf.contents(*rodata));
}

std::optional<Version> version_of(const ProcessView& view, const LoadedModule& module) {
  if (const auto symbol = module.elf.find_symbol("Py_Version")) {  // 3.11+
    uint32_t hex = 0;
    if (view.memory.read_value(module.remote(symbol->address), hex) && hex >> 24 == 3)
      return version_of_hex(hex);
  }
  const auto named = version_of_file_name(base_name(module.module.path));
  if (named) {
    if (auto constant = find_version_constant(constants_of(module), named->major, named->minor))
      return constant;
  }
  // Py_GetVersion()'s buffer is filled when sys is made.
  std::optional<Version> found;
  const Search search{view, module, {}, {}, view.memory, {}, {}, false, false};
  scan_writable(search, 512, [&](RemoteAddress, std::span<const std::byte> bytes) {
    found = find_version_text(as_text(bytes));
    return found.has_value();
  });
  return found ? found : named;
}

// Fields that configure options move: what the symbols and the name tell.
std::vector<Build> builds_of(const LoadedModule& module) {
  const std::string name(base_name(module.module.path));
  const bool named = version_of_file_name(name).has_value();
  const std::string flags = named ? name.substr(name.find("python") + 6) : std::string();
  const size_t letters = flags.find_first_not_of("0123456789.");
  const std::string abi =
      letters == std::string::npos ? "" : flags.substr(letters, flags.find('.', letters) - letters);
  Build build;
  build.free_threaded = abi.find('t') != std::string::npos;
  // Objects/object.c: there only with Py_REF_DEBUG, which --with-pydebug sets.
  build.debug = module.elf.find_symbol("_Py_RefTotal") || module.elf.find_symbol("_Py_INCREF_IncRefTotal") ||
                abi.find('d') != std::string::npos;
  Build other = build;
  other.debug = !build.debug;
  return {build, other};
}

// What came of one module; the first that found wins, the rest make up the message.
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
    loaded = target::load_from_memory(view.memory, module);
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
  Search search{view,  *loaded, version_of(view, *loaded), builds_of(*loaded), view.memory, {}, {},
                false, false};
  out.python = search.version.has_value() || loaded->elf.find_symbol("_PyRuntime").has_value();
  if (loaded->elf.find_symbol("_Py_PrintReferences")) {
    // Py_TRACE_REFS puts two pointers in front of every object; --with-pydebug implied it before 3.8.
    out.unsupported =
        fmt::format("Python {} built with Py_TRACE_REFS", search.version ? search.version->text : "?");
    note("build", "built with Py_TRACE_REFS");
    return out;
  }
  for (const Strategy& strategy : kStrategies) {
    search.reason.clear();
    if (auto found = strategy.run(search)) {
      if (attempts != nullptr) attempts->push_back({strategy.name, module.path, places_of(*found), true});
      out.found = std::move(found);
      return out;
    }
    note(strategy.name, search.reason);
    if (search.not_up || !search.unsupported.empty()) break;
    // The place is certain, so what lies there is an interpreter that is still being made. A scan would come
    // across a half-made copy of its pointers and believe it.
    if (search.place_known) {
      search.not_up = true;
      break;
    }
  }
  out.not_up = search.not_up;
  if (!search.unsupported.empty()) out.unsupported = "Python " + search.unsupported;
  return out;
}

bool leads_to_code(const Layout& l, RemoteAddress top, memory::RemoteMemory& memory) {
  ReadThrough reader(memory);
  std::array<RawFrame, 32> frames;
  const WalkResult walk = walk_frames(l, top, reader, frames);
  return std::any_of(frames.begin(), frames.begin() + static_cast<ptrdiff_t>(walk.count),
                     [&](const auto& frame) {
                       RemoteAddress type, name;
                       std::array<char, 5> text{};
                       return frame.code && memory.read_value(frame.code + *l.object.ob_type, type.value) &&
                              memory.read_value(type + *l.type.tp_name, name.value) &&
                              memory.read(name, std::as_writable_bytes(std::span(text))) &&
                              std::memcmp(text.data(), "code", 5) == 0;
                     });
}

// Frames of some threads lead to code objects. Running threads move on meanwhile: several tries.
bool trial_walk(const Layout& l, std::span<const RemoteAddress> threads, memory::RemoteMemory& memory,
                std::string& reason) {
  constexpr int kTries = 6;
  bool any_frames = false;
  std::vector<std::byte> state(*l.thread.size);
  for (int i = 0; i < kTries; ++i) {
    for (const RemoteAddress thread : threads) {
      ReadThrough reader(memory);
      if (!memory.read(thread, state)) continue;
      bool unreadable = false;
      const RemoteAddress top = top_frame(l, state.data(), reader, unreadable);
      if (!top && !unreadable) continue;
      any_frames = true;
      if (leads_to_code(l, top, memory)) return true;
      // Or it is just entering an evaluation, and stopped there.
      const RemoteAddress outer = outer_frame(l, thread, state.data(), reader);
      if (outer && leads_to_code(l, outer, memory)) return true;
    }
    if (!any_frames) return true;  // no thread runs Python at this moment
  }
  reason = "its frames do not lead to code objects";
  return false;
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

// Two libpythons may be up in one process: one is read, and the other is not passed over in silence. Only
// files that are called so are looked at: any other would cost every attach what almost none needs.
void warn_of_another(const ProcessView& view, const Module& chosen, const std::vector<const Module*>& all,
                     Interpreter& found) {
  for (const Module* module : all) {
    if (module == &chosen || !base_name(module->path).starts_with("libpython")) continue;
    const Outcome other = examine(view, *module, true, nullptr);
    if (!other.found || other.found->interpreters_head == found.interpreters_head) continue;
    if (!found.warning.empty()) found.warning += "; ";
    found.warning += fmt::format("a second Python, {}, is up in this process, in {}: it is not read",
                                 other.found->version, base_name(module->path));
    return;
  }
}

}  // namespace

Verdict validate(const Interpreter& candidate, memory::RemoteMemory& memory, std::string& reason) {
  const Layout& l = candidate.layout;
  RemoteAddress interpreter;
  if (!memory.read_value(candidate.interpreters_head, interpreter.value)) {
    reason = "its memory cannot be read";
    return Verdict::wrong;
  }
  if (!interpreter) {
    reason = "no interpreter is up";
    return Verdict::not_up;
  }
  // The main interpreter is the oldest of the list. Without this a thread state can pass for an interpreter
  // and the other way round: in 3.11 each has the pointer to the other at byte 16.
  std::optional<uint64_t> main;
  if (candidate.runtime && l.runtime.interpreters_main.present()) {
    main.emplace();
    if (!memory.read_value(candidate.runtime + *l.runtime.interpreters_main, *main)) {
      reason = "its memory cannot be read";
      return Verdict::wrong;
    }
  }
  std::vector<RemoteAddress> threads;
  for (int count = 0; interpreter; ++count) {
    if (main == interpreter.value) main.reset();
    if (!is_pointer(interpreter.value) || count == kMostInterpreters) {
      reason = fmt::format("the list of interpreters holds {:#x}", interpreter.value);
      return Verdict::wrong;
    }
    RemoteAddress thread, next;
    if (!memory.read_value(interpreter + *l.interpreter.threads_head, thread.value) ||
        !memory.read_value(interpreter + *l.interpreter.next, next.value)) {
      reason = "the interpreter's memory cannot be read";
      return Verdict::wrong;
    }
    for (int i = 0; thread && i < kMostThreads; ++i) {
      RemoteAddress back;
      if (!is_pointer(thread.value) || !memory.read_value(thread + *l.thread.interp, back.value) ||
          back != interpreter) {
        reason = "a thread state does not point back to its interpreter";
        return Verdict::wrong;
      }
      threads.push_back(thread);
      if (!memory.read_value(thread + *l.thread.next, thread.value)) {
        reason = "the list of thread states cannot be read";
        return Verdict::wrong;
      }
    }
    interpreter = next;
  }
  if (main) {
    reason = fmt::format("interpreters.main is {:#x}, which is not in the list of interpreters", *main);
    return Verdict::wrong;
  }
  if (threads.empty()) {
    reason = "the interpreter has no thread state";
    return Verdict::not_up;
  }
  return trial_walk(l, threads, memory, reason) ? Verdict::valid : Verdict::wrong;
}

Result<Interpreter> locate(const ProcessView& view, std::vector<Attempt>* attempts) {
  if (attempts != nullptr) attempts->clear();
  const auto modules = target::modules_of(view.maps);
  const std::string executable = !view.executable.empty() ? view.executable
                                 : modules.empty()        ? ""
                                                          : modules.front().path;
  if (const std::string other = other_implementation(modules, executable); !other.empty()) {
    return fail(
        ErrorKind::unsupported_python,
        fmt::format("process {} runs {}, which phlox does not read: it reads CPython", view.pid, other),
        "what is read: docs/pythons.md");
  }
  // A copy of libpython that was only mapped (by ctypes, by a debugger's helper) has no interpreter up and is
  // passed over.
  const auto rank = [&](const Module& m) { return rank_of(m, executable); };
  std::vector<const Module*> order;
  for (const Module& m : modules) order.push_back(&m);
  std::stable_sort(order.begin(), order.end(),
                   [&](const Module* a, const Module* b) { return rank(*a) < rank(*b); });
  bool not_up = false, any_python = false;
  std::string unsupported;
  Outcome executables;
  std::vector<std::string> failures;
  for (const Module* module : order) {
    // Only what can hold an interpreter: something writable. A file that is mapped twice is looked at twice.
    if (std::none_of(module->mappings.begin(), module->mappings.end(),
                     [](const Mapping& m) { return m.writable; }))
      continue;
    if (rank(*module) == Rank::other && (not_up || !unsupported.empty())) break;
    Outcome outcome = examine(view, *module, rank(*module) != Rank::other, attempts);
    if (outcome.found) {
      warn_of_another(view, *module, order, *outcome.found);
      return std::move(*outcome.found);
    }
    not_up = not_up || outcome.not_up;
    any_python = any_python || outcome.python;
    if (unsupported.empty()) unsupported = outcome.unsupported;
    if (module->path == executable) executables = std::move(outcome);
  }
  if (!unsupported.empty()) {
    return fail(ErrorKind::unsupported_python,
                fmt::format("process {} runs {}, which this phlox does not read", view.pid, unsupported),
                "what is read: docs/pythons.md");
  }
  if (not_up) {
    return fail(
        ErrorKind::target_state,
        fmt::format("the Python of process {} is not up: no interpreter has been made, or all are gone",
                    view.pid),
        "try again in a moment");
  }
  if (executables.unreadable.find("32-bit") != std::string::npos) {
    return fail(
        ErrorKind::unsupported_python,
        fmt::format("process {} is a 32-bit program, which phlox does not read: {}", view.pid, executable),
        "what is read: docs/pythons.md");
  }
  if (any_python) {
    return fail(ErrorKind::target_state,
                fmt::format("process {} has a Python in it, but no interpreter was found", view.pid),
                "--verbose says what was tried");
  }
  return tl::unexpected<Error>(not_python(view, executable, executables));
}

Result<Interpreter> locate(pid_t pid, std::vector<Attempt>* attempts) {
  auto maps = target::read_maps(pid);
  if (!maps) return fail(maps);
  memory::ProcessMemory memory(pid);
  ProcessView view{
      pid, {}, std::move(*maps), [pid](const Module& m) { return target::load_module(pid, m); }, memory};
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
