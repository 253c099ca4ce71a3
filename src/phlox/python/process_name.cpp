#include "phlox/python/process_name.h"

#include <initializer_list>

#include "phlox/python/objects.h"

namespace phlox::python {
namespace {

// Lib/multiprocessing/process.py: _current_process._name; none: the module is not imported.
Read<std::string> name_in(ObjectReader& objects, const std::vector<DictItem>& modules, const char* module) {
  const auto names = objects.names_of(modules, module);
  if (!names) return tl::unexpected(names.error());
  const auto process = objects.find(*names, "_current_process");
  if (!process) return tl::unexpected(process.error());
  if (!*process) return std::string();
  const auto text = objects.attribute(*process, "_name");
  if (!text) return tl::unexpected(text.error());
  if (!*text) return std::string();
  auto called = objects.string(*text, kMaxProcessNameBytes);
  if (called && *called == "MainProcess") called->clear();
  return called;
}

}  // namespace

Read<std::string> read_process_name(const Layout& layout, memory::RemoteMemory& memory,
                                    RemoteAddress interpreter) {
  ObjectReader objects(layout, memory);
  const auto modules = objects.modules(interpreter);
  if (!modules) return tl::unexpected(modules.error());
  for (const char* module : {"multiprocessing.process", "billiard.process"}) {
    auto name = name_in(objects, *modules, module);
    if (!name || !name->empty()) return name;
  }
  return std::string();
}

}  // namespace phlox::python
