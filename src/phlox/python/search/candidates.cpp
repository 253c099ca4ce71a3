#include "phlox/python/search/candidates.h"

#include <fmt/format.h>

#include <cstddef>
#include <span>

#include "phlox/base/text.h"
#include "phlox/python/debug_offsets.h"
#include "phlox/python/search/validation.h"

namespace phlox::python {
namespace {

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

std::optional<Interpreter> accept(ModuleSearch& search, Interpreter candidate, const std::string& how) {
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
std::optional<Interpreter> accept_stated(ModuleSearch& search, RemoteAddress runtime,
                                         std::span<const std::byte> bytes, const DebugHeader& header,
                                         const std::string& how) {
  const Version version = version_of_hex(header.version);
  for (Build build : search.builds) {
    build.free_threaded = header.free_threaded;
    const Layout* row = find_layout(version.major, version.minor, build);
    std::string warning;
    if (row == nullptr) {
      row = newest_layout(build);
      warning = fmt::format(
          "Python {} is newer than this phlox, which relies on the layout that this Python publishes",
          version.text);
    } else if (version.pre_release) {
      warning = fmt::format("Python {} is a pre-release: phlox relies on the layout that it publishes",
                            version.text);
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

}  // namespace

std::string places_of(const Interpreter& i) {
  std::string text = fmt::format("the row of {}.{} {}, ", i.major, i.minor, i.build);
  if (i.runtime) text += fmt::format("_PyRuntime at {:#x}, ", i.runtime.value);
  text += fmt::format("interpreters from {:#x}", i.interpreters_head.value);
  if (i.tstate_current) text += fmt::format(", current thread state at {:#x}", i.tstate_current.value);
  if (i.gil) text += fmt::format(", GIL at {:#x}", i.gil.value);
  return text;
}

std::vector<const Layout*> rows_of(const ModuleSearch& search) {
  std::vector<const Layout*> rows;
  for (const Build build : search.builds) {
    if (!search.version) break;
    if (const Layout* row = find_layout(search.version->major, search.version->minor, build))
      rows.push_back(row);
  }
  return rows;
}

std::optional<Interpreter> accept_runtime(ModuleSearch& search, RemoteAddress runtime,
                                          const std::string& how) {
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

std::optional<Interpreter> accept_head(ModuleSearch& search, RemoteAddress head, const std::string& how) {
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

}  // namespace phlox::python
