#include "phlox/python/search/identity.h"

#include <string>
#include <string_view>

#include "phlox/base/as_text.h"
#include "phlox/base/text.h"
#include "phlox/python/search/writable_memory.h"

namespace phlox::python {

using process::LoadedModule;

namespace {

std::string_view constants_of(const LoadedModule& module) {
  const auto* rodata = module.elf.find_section(".rodata");
  return rodata == nullptr ? std::string_view() : as_text(module.elf.contents(*rodata));
}

}  // namespace

std::optional<Version> version_of(const LoadedModule& module, memory::RemoteMemory& memory) {
  if (const auto symbol = module.elf.find_symbol("Py_Version")) {  // 3.11+
    uint32_t hex = 0;
    if (memory.read_value(module.remote(symbol->address), hex) && hex >> 24 == 3) return version_of_hex(hex);
  }
  const auto named = version_of_file_name(base_name(module.module.path));
  if (named) {
    if (auto constant = find_version_constant(constants_of(module), named->major, named->minor))
      return constant;
  }
  // Py_GetVersion()'s buffer is filled when sys is initialised.
  std::optional<Version> found;
  scan_writable(module.module, memory, 512, [&](RemoteAddress, std::span<const std::byte> bytes) {
    found = find_version_text(as_text(bytes));
    return found.has_value();
  });
  return found ? found : named;
}

// Build options that move fields, from the symbols and the file name.
std::vector<Build> builds_of(const LoadedModule& module) {
  const std::string name(base_name(module.module.path));
  const bool named = version_of_file_name(name).has_value();
  const std::string flags = named ? name.substr(name.find("python") + 6) : std::string();
  const size_t letters = flags.find_first_not_of("0123456789.");
  const std::string abi =
      letters == std::string::npos ? "" : flags.substr(letters, flags.find('.', letters) - letters);
  Build build;
  build.free_threaded = abi.find('t') != std::string::npos;
  // Objects/object.c: exists only with Py_REF_DEBUG, which --with-pydebug sets.
  build.debug = module.elf.find_symbol("_Py_RefTotal") || module.elf.find_symbol("_Py_INCREF_IncRefTotal") ||
                abi.find('d') != std::string::npos;
  Build other = build;
  other.debug = !build.debug;
  return {build, other};
}

}  // namespace phlox::python
