// A file that appears whole or not at all: written beside its place and moved there by commit(). open()
// proves that it can be written before anything starts. Standard output and things that are no plain files (a
// pipe, /dev/stdout) are written directly.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "phlox/base/descriptor.h"
#include "phlox/base/result.h"
#include "phlox/target/launch.h"

namespace phlox::cli {

class OutputFile {
 public:
  // "-" or "": standard output. The file will belong to `owner` where one is given (under sudo).
  static Result<std::unique_ptr<OutputFile>> open(const std::string& path,
                                                  const std::optional<target::CallingUser>& owner);
  // Without commit() nothing is left behind.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream();
  // After the last byte: says if any of them could not be written (disk full, closed pipe).
  Result<void> commit();

 private:
  OutputFile();
  class Buffer;

  std::string path_;       // as the user named it, for messages
  std::string final_;      // where it goes; empty: written in place
  std::string temporary_;  // where it is; empty: moved, or written in place
  Descriptor file_;
  int descriptor_ = -1;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<std::ostream> stream_;
};

}  // namespace phlox::cli
