#include "phlox/python/debug_offsets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "phlox/base/byte_reader.h"

namespace phlox::python {
namespace {

// _PyRuntimeState of a 3.15 free-threaded debug build has 425,368 bytes. This limit is 39 times that.
constexpr uint64_t kMaxOffset = uint64_t{1} << 24;

struct Place {
  const char* name;
  Offset& (*field)(Layout&);
  uint32_t at;  // in _Py_DebugOffsets
};
struct Table {
  uint8_t minor;
  uint32_t size;
  uint32_t gc_collecting;  // place of gc.collecting; interpreter_state.gc is added to its value
  std::span<const Place> places;
};

#define FIELD(s, f, at) {#s "." #f, [](Layout& l) -> Offset& { return l.s.f; }, at},
#define SIZE(n)
#define GC_COLLECTING(n)
constexpr Place k3_13[] = {
#include "phlox/python/rows/debug_offsets-3.13.inc"
};
constexpr Place k3_14[] = {
#include "phlox/python/rows/debug_offsets-3.14.inc"
};
constexpr Place k3_15[] = {
#include "phlox/python/rows/debug_offsets-3.15.inc"
};
#undef FIELD
#undef SIZE
#undef GC_COLLECTING
#define FIELD(s, f, at)
#define SIZE(n) n,
#define GC_COLLECTING(n) n,
constexpr Table kTables[] = {
    {13,
#include "phlox/python/rows/debug_offsets-3.13.inc"
     k3_13},
    {14,
#include "phlox/python/rows/debug_offsets-3.14.inc"
     k3_14},
    {15,
#include "phlox/python/rows/debug_offsets-3.15.inc"
     k3_15},
};
#undef FIELD
#undef SIZE
#undef GC_COLLECTING

const Table& table_for(const DebugHeader& header) {
  const auto minor = static_cast<uint8_t>(header.version >> 16);
  for (const Table& table : kTables) {
    if (table.minor == minor) return table;
  }
  return *std::prev(std::end(kTables));
}

struct Reach {
  const char* prefix;
  Offset size;
};

// The first field beyond the end of its struct.
const char* beyond_its_struct(const Layout& l, const std::vector<std::pair<const char*, uint64_t>>& stated) {
  const Reach reaches[] = {{"runtime.", l.runtime.size}, {"interpreter.", l.interpreter.size},
                           {"thread.", l.thread.size},   {"frame.", l.frame.size},
                           {"code.", l.code.size},       {"unicode.", l.unicode.size}};
  for (const auto& [name, value] : stated) {
    const std::string_view text(name);
    if (text.ends_with(".size")) {
      if (value == 0) return name;
      continue;
    }
    for (const Reach& reach : reaches) {
      // <=: data directly after a struct (co_code_adaptive, localsplus, the characters of a str) starts at
      // its size.
      if (text.starts_with(reach.prefix) && reach.size.present() && value > *reach.size) return name;
    }
  }
  return nullptr;
}

}  // namespace

std::optional<DebugHeader> parse_debug_header(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto cookie = reader.bytes(8);
  const auto version = reader.read<uint64_t>();
  const auto free_threaded = reader.read<uint64_t>();
  if (reader.failed() || std::memcmp(cookie.data(), kDebugCookie, 8) != 0) return {};
  if (version >> 24 != 3 || (version >> 16 & 0xFF) < 13 || free_threaded > 1) return {};
  return DebugHeader{static_cast<uint32_t>(version), free_threaded == 1};
}

size_t debug_offsets_size() {
  size_t size = 0;
  for (const Table& table : kTables) size = std::max<size_t>(size, table.size);
  return size;
}

Result<void> apply_debug_offsets(std::span<const std::byte> bytes, Layout& layout) {
  const auto header = parse_debug_header(bytes);
  if (!header)
    return fail(ErrorKind::unsupported_python, "_Py_DebugOffsets has not got its cookie or no sane version");
  const Table& table = table_for(*header);
  if (bytes.size() < table.size) {
    return fail(ErrorKind::unsupported_python,
                fmt::format("_Py_DebugOffsets: {} bytes of {} could be read", bytes.size(), table.size));
  }
  const auto word = [&](uint32_t at) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  const auto refuse = [&](const char* name, uint64_t value) {
    return fail(ErrorKind::unsupported_python,
                fmt::format("_Py_DebugOffsets says {} is {:#x}, which it cannot be", name, value));
  };
  Layout result = layout;
  std::vector<std::pair<const char*, uint64_t>> stated;
  uint64_t gil = 0;
  for (const Place& place : table.places) {
    Offset& field = place.field(result);
    if (!field.present()) continue;
    uint64_t value = word(place.at);
    const std::string_view name(place.name);
    if (name == "interpreter.gil") gil = value;
    // CPython counts gil_state from the interpreter, and gc_collecting within the struct gc.
    if (name.starts_with("gil_state.")) value = value >= gil ? value - gil : kMaxOffset;
    if (name == "interpreter.gc_collecting" && value < kMaxOffset) value += word(table.gc_collecting);
    if (value >= kMaxOffset) return refuse(place.name, value);
    field = Offset(static_cast<uint32_t>(value));
    stated.emplace_back(place.name, value);
  }
  if (const char* name = beyond_its_struct(result, stated)) {
    for (const auto& [other, value] : stated) {
      if (other == name) return refuse(name, value);
    }
  }
  // Fields that the walk loads as pointers.
  for (const Offset pointer :
       {result.runtime.interpreters_head, result.interpreter.next, result.interpreter.threads_head,
        result.thread.next, result.thread.interp, result.thread.current_frame, result.frame.previous,
        result.frame.executable, result.frame.instr}) {
    if (pointer.present() && *pointer % 8 != 0) return refuse("a pointer's place", *pointer);
  }
  layout = result;
  return {};
}

}  // namespace phlox::python
