// A text that should be /proc/kallsyms. Asked for every address that a line of it could mean.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "phlox/symbols/kallsyms_line.h"
#include "phlox/symbols/kernel_symbols.h"
#include "phlox/symbols/kernel_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox::symbols;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const KernelText in_place(text);
  const KernelSymbols whole(text);
  const auto inside = [&](std::string_view name) {
    return name.data() >= text.data() && name.data() + name.size() <= text.data() + text.size();
  };
  for (size_t at = 0; at + kallsyms::kName < size; ++at) {
    const uint64_t address = kallsyms::address_of(std::string_view(text).substr(at));
    const auto name = in_place.find(address);
    if (name && !inside(*name)) std::abort();
    static_cast<void>(whole.find(address));
  }
  return 0;
}
