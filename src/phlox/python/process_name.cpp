#include "phlox/python/process_name.h"

#include <initializer_list>

#include "phlox/python/objects.h"

namespace phlox::python {
namespace {

// Lib/multiprocessing/process.py: _current_process._name; none: it is not imported.
Read<std::string> name_in(ObjectReader& objects, RemoteAddress modules, const char* name) {
  const auto module = objects.find_in_dict(modules, name);
  if (!module) return tl::unexpected(module.error());
  if (!*module) return std::string();
  const auto dict = objects.pointer(*module + *objects.layout().module.md_dict);
  if (!dict) return tl::unexpected(dict.error());
  const auto process = objects.find_in_dict(*dict, "_current_process");
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
  if (!layout.interpreter.modules.present()) return fault(FaultKind::unsupported, interpreter);
  const auto modules = objects.pointer(interpreter + *layout.interpreter.modules);
  if (!modules) return tl::unexpected(modules.error());
  if (!*modules) return std::string();  // still starting
  for (const char* module : {"multiprocessing.process", "billiard.process"}) {
    auto name = name_in(objects, *modules, module);
    if (!name || !name->empty()) return name;
  }
  return std::string();
}

}  // namespace phlox::python
