#include "phlox/python/thread_names.h"

#include "phlox/python/objects.h"

namespace phlox::python {

Read<ThreadNames> read_thread_names(const Layout& layout, memory::RemoteMemory& memory,
                                    RemoteAddress interpreter) {
  ObjectReader objects(layout, memory);
  ThreadNames out;
  if (!layout.interpreter.modules.present()) return fault(FaultKind::unsupported, interpreter);
  const auto modules = objects.pointer(interpreter + *layout.interpreter.modules);
  if (!modules) return tl::unexpected(modules.error());
  if (!*modules) return out;  // still starting

  const auto module = objects.find_in_dict(*modules, "threading");
  if (!module) return tl::unexpected(module.error());
  if (!*module) return out;
  out.threading = true;
  const auto dict = objects.pointer(*module + *layout.module.md_dict);
  if (!dict) return tl::unexpected(dict.error());
  const auto active = objects.find_in_dict(*dict, "_active");
  if (!active) return tl::unexpected(active.error());
  if (!*active) return out;  // still being imported
  const auto threads = objects.dict(*active);
  if (!threads) return tl::unexpected(threads.error());

  // 2.7's threading.Thread hides its name: self.__name.
  const char* attribute = layout.traits.python2 ? "_Thread__name" : "_name";
  size_t bytes = 0;
  for (const DictItem& thread : *threads) {
    if (out.names.size() + out.failed >= kMaxThreadNames || bytes > kMaxThreadNamesBytes) break;
    const auto ident = objects.integer(thread.key);
    const auto name = ident ? objects.attribute(thread.value, attribute)
                            : Read<RemoteAddress>(tl::unexpected(ident.error()));
    const auto text = name && *name ? objects.string(*name, kMaxThreadNameBytes)
                                    : Read<std::string>(fault(FaultKind::implausible, thread.value));
    if (text) {
      bytes += text->size();
      out.names.push_back({static_cast<uint64_t>(*ident), *text});
    } else {
      ++out.failed;
    }
  }
  return out;
}

}  // namespace phlox::python
