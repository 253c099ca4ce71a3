// Python's own objects from a target's memory: str, int, dict, attributes of an instance. For code that has
// time (thread names, locals), while the target may run. A result may be outdated or a mixture, but is never
// larger than requested, and every length, kind and pointer was checked. Loops over the target's tables are
// capped; nothing is followed recursively.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/address.h"
#include "phlox/memory/remote_memory.h"
#include "phlox/python/layout.h"
#include "phlox/python/read_fault.h"

namespace phlox::python {

// The largest number of entries of a dict: sys.modules of the largest programs holds some ten thousand.
inline constexpr uint64_t kMaxDictEntries = uint64_t{1} << 18;

struct DictItem {
  RemoteAddress key;
  RemoteAddress value;
};

// Bits of tp_flags (Include/object.h, the same since 2.6; the first four since 3.11 to 3.13).
struct TypeFlag {
  static constexpr uint64_t kInlineValues = 1UL << 2;
  static constexpr uint64_t kManagedDict = 1UL << 4;
  static constexpr uint64_t kInteger2 = 1UL << 23;  // 2.7's int
  static constexpr uint64_t kLong = 1UL << 24;
  static constexpr uint64_t kList = 1UL << 25;
  static constexpr uint64_t kTuple = 1UL << 26;
  static constexpr uint64_t kBytes = 1UL << 27;  // 2.7's str
  static constexpr uint64_t kUnicode = 1UL << 28;
  static constexpr uint64_t kDict = 1UL << 29;
  static constexpr uint64_t kType = 1UL << 31;
};

struct TypeFacts {
  RemoteAddress address;
  uint64_t flags = 0;
  int64_t dictoffset = 0;
  std::string name;  // tp_name: "int", "collections.OrderedDict"
};

class ObjectReader {
 public:
  ObjectReader(const Layout& layout, memory::RemoteMemory& memory) : layout_(layout), memory_(memory) {}

  // UTF-8 of a str; truncated with "…" after `most` bytes of its characters.
  Read<std::string> string(RemoteAddress object, size_t most);
  // An int that fits into 64 bits, signed or not; others are too_large.
  Read<int64_t> integer(RemoteAddress object);
  // For a dict: every key with its value, in the table's order.
  Read<std::vector<DictItem>> dict(RemoteAddress object);
  // The value under a str key; none: there is no such key.
  Read<RemoteAddress> find(const std::vector<DictItem>& items, std::string_view key);
  Read<RemoteAddress> find_in_dict(RemoteAddress dict, std::string_view key);
  // The modules that an interpreter has imported (sys.modules); empty: it is still starting.
  Read<std::vector<DictItem>> modules(RemoteAddress interpreter);
  // The global names of one of these; empty: it is not imported.
  Read<std::vector<DictItem>> names_of(const std::vector<DictItem>& modules, std::string_view module);
  // An attribute in the instance; none: it has none of that name.
  Read<RemoteAddress> attribute(RemoteAddress instance, std::string_view name);
  Read<TypeFacts> type_of(RemoteAddress object);
  Read<RemoteAddress> pointer(RemoteAddress at);

  const Layout& layout() const { return layout_; }

 private:
  struct Keys {
    RemoteAddress entries;
    uint64_t count = 0;
    uint32_t entry_size = 0;
    uint32_t key_offset = 0;
  };
  Read<Keys> keys(RemoteAddress keys);
  Read<std::vector<DictItem>> table(RemoteAddress keys, RemoteAddress values);
  Read<std::vector<DictItem>> instance_items(RemoteAddress instance);
  Read<std::vector<DictItem>> open_table(RemoteAddress dict);

  const Layout& layout_;
  memory::RemoteMemory& memory_;
};

}  // namespace phlox::python
