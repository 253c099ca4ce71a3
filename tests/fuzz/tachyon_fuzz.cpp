// A binary file of Tachyon from anybody.
#include "phlox/importers/tachyon.h"
#include "support/import_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  phlox::test::check_import(phlox::importers::import_tachyon, std::as_bytes(std::span(data, size)));
  return 0;
}
