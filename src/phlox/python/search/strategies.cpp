#include "phlox/python/search/strategies.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "phlox/base/as_text.h"
#include "phlox/python/debug_offsets.h"
#include "phlox/python/search/candidates.h"
#include "phlox/python/search/validation.h"
#include "phlox/python/search/writable_memory.h"

namespace phlox::python {
namespace {

using process::Mapping;

// The words at these addresses; none where memory is not readable.
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

// Addresses in the module's writable memory that point to an interpreter whose first thread state points
// back.
std::vector<RemoteAddress> find_heads(const ModuleSearch& search, const Layout& row) {
  std::vector<RemoteAddress> places, interpreters, fields;
  const auto is_mapped = [&](uint64_t value) {
    const auto after = std::upper_bound(search.maps.begin(), search.maps.end(), value,
                                        [](uint64_t v, const Mapping& m) { return v < m.start.value; });
    return after != search.maps.begin() && std::prev(after)->holds(RemoteAddress(value)) &&
           std::prev(after)->writable;
  };
  scan_writable(search.module.module, search.memory, 8,
                [&](RemoteAddress start, std::span<const std::byte> bytes) {
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

bool has_no_runtime(const ModuleSearch& search) {
  const auto rows = rows_of(search);
  return !rows.empty() && rows.front()->traits.gil == GilOwner::symbols;
}

std::optional<Interpreter> by_symbol(ModuleSearch& search) {
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

std::optional<Interpreter> by_section(ModuleSearch& search) {
  // Python/pylifecycle.c puts _PyRuntime into its own section since 3.10 (bpo-36710).
  const auto* section = search.module.elf.find_section(".PyRuntime");
  if (section == nullptr) {
    search.reason = "no section .PyRuntime";
    return {};
  }
  search.place_known = true;
  return accept_runtime(search, search.module.remote(section->address), "section .PyRuntime");
}

std::optional<Interpreter> by_cookie(ModuleSearch& search) {
  std::optional<Interpreter> found;
  search.reason = "no debug-offsets cookie in writable memory";
  scan_writable(search.module.module, search.memory, DebugHeader::kSize,
                [&](RemoteAddress start, std::span<const std::byte> bytes) {
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

std::optional<Interpreter> by_scan(ModuleSearch& search) {
  for (const Layout* row : rows_of(search)) {
    for (const RemoteAddress place : find_heads(search, *row)) {
      auto found =
          row->runtime.interpreters_head.present()
              ? accept_runtime(search, place - *row->runtime.interpreters_head, "scan of writable memory")
              : accept_head(search, place, "scan of writable memory");
      if (found) return found;
    }
  }
  search.not_up = false;  // a match of the scan proves nothing
  search.reason = "nothing in writable memory leads to an interpreter";
  return {};
}

constexpr Strategy kStrategies[] = {
    {"symbol", by_symbol},
    {"section .PyRuntime", by_section},
    {"debug-offsets cookie", by_cookie},
    {"scan of writable memory", by_scan},
};

}  // namespace

std::span<const Strategy> strategies() {
  return kStrategies;
}

}  // namespace phlox::python
