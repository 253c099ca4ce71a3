// The first bytes of a file from anybody: what it is, is asked of every format.
#include <cstddef>
#include <cstdint>
#include <span>

#include "phlox/importers/registry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  phlox::importers::MemoryInput input(std::as_bytes(std::span(data, size)));
  static_cast<void>(phlox::importers::recognise(input));
  return 0;
}
