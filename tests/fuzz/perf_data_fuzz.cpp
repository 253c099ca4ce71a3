// A perf.data from anybody. Files of modules are not found.
#include "phlox/importers/perf_data.h"
#include "support/import_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  phlox::test::check_import(phlox::importers::import_perf_data, std::as_bytes(std::span(data, size)));
  return 0;
}
