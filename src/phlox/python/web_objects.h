// Objects of web frameworks: attributes, texts, lists, dictionaries. Whatever is missing or not of the
// expected kind is empty, and the number of attributes read is capped: a table may contain itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/memory/remote_memory.h"
#include "phlox/python/asyncio_module.h"
#include "phlox/python/objects.h"
#include "phlox/python/page_memory.h"

namespace phlox::python {

class WebObjects {
 public:
  static constexpr size_t kMostItems = 10'000;  // of one list

  // `between`: called after every few hundred attributes; may be missing.
  WebObjects(const Layout& layout, memory::RemoteMemory& memory, const std::function<void()>& between)
      : layout_(layout),
        pages_(memory),
        types_(layout, pages_),
        objects_(layout, pages_),
        between_(between) {}

 protected:
  // Of the instance's dictionary.
  RemoteAddress attribute(RemoteAddress object, std::string_view name);
  // Of a class with __slots__, or one that derives from it: the place of an attribute in its instances.
  std::optional<uint32_t> slot_of(RemoteAddress type, std::string_view name);
  RemoteAddress slot(RemoteAddress object, std::string_view name);
  std::string text(RemoteAddress object);
  const std::string& type_name(RemoteAddress object) { return types_.type_of(object).name; }
  bool derives(RemoteAddress object, std::string_view name);
  RemoteAddress word(RemoteAddress at) { return pages_.word(at); }
  // `at`: counted from the end of the object's head.
  RemoteAddress field(RemoteAddress object, uint64_t at) { return word(object + *layout_.object.size + at); }
  // The items of a list or a class that derives from it, a tuple, set or frozenset.
  std::vector<RemoteAddress> items(RemoteAddress object);
  std::vector<DictItem> dict(RemoteAddress object);
  RemoteAddress named(const std::vector<DictItem>& names, std::string_view name);

  const Layout& layout_;
  PageMemory pages_;
  AsyncioModule types_;  // not opened: only its types and sets
  ObjectReader objects_;

 private:
  bool may_read(RemoteAddress object);

  const std::function<void()>& between_;
  size_t attributes_ = 0;  // so far
};

}  // namespace phlox::python
