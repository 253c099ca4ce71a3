// A perf.data from anybody: no crash, no read outside, an end. Files of modules are not found.
#include <cstdlib>

#include "phlox/importers/perf_data.h"
#include "phlox/profile/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox;
  const auto bytes = std::as_bytes(std::span(data, size));
  importers::MemoryInput input(bytes);
  importers::ImportOptions options;
  options.files.sysroot = "/nonexistent";
  profile::Profile profile;
  if (const auto outcome = importers::import_perf_data(input, options, profile)) {
    for (const auto& sample : profile.samples()) {
      if (sample.stack.value > profile.stacks().size() || sample.thread.value > profile.threads().size() ||
          sample.wall < 0)
        std::abort();
    }
  }
  return 0;
}
