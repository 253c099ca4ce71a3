// A gzip file from anybody, read as importers read: the start, then all, up to some megabytes.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "phlox/importers/gzip_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox::importers;
  MemoryInput packed(std::as_bytes(std::span(data, size)));
  const auto input = GzipInput::of(packed);
  if (!input) return 0;
  std::vector<std::byte> head(100);
  head.resize(input->read_at(0, head));
  const auto all = read_all(*input, size_t{4} << 20);
  if (all && (all->size() < head.size() || std::memcmp(all->data(), head.data(), head.size()) != 0))
    std::abort();
  return 0;
}
