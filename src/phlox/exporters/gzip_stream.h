// A stream that compresses its input and passes it on, piece by piece. The bytes contain no time and no name:
// the same input gives the same output.
#pragma once

#include <memory>
#include <ostream>

#include "phlox/base/result.h"

namespace phlox::exporters {

class GzipStream {
 public:
  explicit GzipStream(std::ostream& out);
  ~GzipStream();
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  std::ostream& stream();
  // After the last byte.
  Result<void> finish();

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
  std::ostream stream_;
};

}  // namespace phlox::exporters
