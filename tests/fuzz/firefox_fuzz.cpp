// A processed profile of the Firefox Profiler from anybody.
#include "phlox/importers/firefox_file.h"
#include "support/import_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  phlox::test::check_import(phlox::importers::import_firefox, std::as_bytes(std::span(data, size)));
  return 0;
}
