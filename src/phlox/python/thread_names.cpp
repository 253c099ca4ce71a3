#include "phlox/python/thread_names.h"

#include "phlox/python/objects.h"

namespace phlox::python {

Read<ThreadNames> read_thread_names(const Layout& layout, memory::RemoteMemory& memory,
                                    RemoteAddress interpreter,
                                    const std::function<Naming(uint64_t python_id)>& goes_on) {
  ObjectReader objects(layout, memory);
  ThreadNames out;
  const auto modules = objects.modules(interpreter);
  if (!modules) return tl::unexpected(modules.error());
  const auto names = objects.names_of(*modules, "threading");
  if (!names) return tl::unexpected(names.error());
  if (names->empty()) return out;
  out.threading = true;
  const auto active = objects.find(*names, "_active");
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
    const Naming what = goes_on && ident ? goes_on(static_cast<uint64_t>(*ident)) : Naming::read;
    if (what == Naming::stop) break;
    if (what == Naming::skip) continue;
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
