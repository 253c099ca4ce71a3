#include "support/source_path.h"

namespace phlox::test {

std::string source_path(const std::string& inside) {
  return PHLOX_SOURCE_DIR "/" + inside;
}

}  // namespace phlox::test
