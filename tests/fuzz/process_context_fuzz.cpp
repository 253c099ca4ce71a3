// Any message that a program publishes as its context: no crash, and never more than a resource may have.
#include <cstdint>
#include <cstdlib>

#include "phlox/view/resource.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace phlox;
  const std::string text = view::context_text({reinterpret_cast<const char*>(data), size});
  if (text.size() > 16'384) std::abort();
  return 0;
}
