// Any message that a program publishes as its context: no crash, and never more than a resource may have.
#include <cstdint>
#include <cstdlib>

#include "phlox/process/own_attributes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox;
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  process::publishes_traces(message);
  const std::string text = process::context_attributes(message);
  if (text.size() > 16'384) std::abort();
  return 0;
}
