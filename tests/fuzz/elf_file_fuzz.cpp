// Any file, from disk or out of memory: no crash, no read outside it.
#include <cstdint>
#include <cstdlib>

#include "phlox/elf/elf_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox;
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const uint64_t loaded_at : {uint64_t{0}, uint64_t{0x7f0000000000}}) {
    const auto file = elf::ElfFile::parse(bytes, loaded_at);
    if (!file) return 0;
    size_t seen = 0;
    file->for_each_symbol(
        [&](const elf::Symbol& symbol) { return (seen += symbol.name.size()) < (size_t{1} << 24); });
    for (const elf::Section& section : file->sections()) {
      if (file->contents(section).size() > size) std::abort();
    }
    file->for_each_relocation([&](const elf::Relocation& one) { return (seen += one.type & 1) < size + 1; });
    seen += file->find_dynamic_symbol("otel_thread_ctx_v1") ? 1 : 0;
    seen += file->build_id().size() + file->at(ImageAddress(0x1000), 16).size();
    if (seen == ~size_t{0}) std::abort();
  }
  return 0;
}
