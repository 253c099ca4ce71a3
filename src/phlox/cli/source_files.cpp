#include "phlox/cli/source_files.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "phlox/target/source_file.h"

namespace phlox::cli {
namespace {

constexpr size_t kLongest = size_t{2} << 20;  // written by hand nothing is longer

constexpr std::string_view kExtensions[] = {".py",  ".pyw", ".pyx", ".pxd", ".pxi", ".c",   ".h",   ".cc",
                                            ".cpp", ".cxx", ".hpp", ".hh",  ".hxx", ".tcc", ".inl", ".cu",
                                            ".rs",  ".f",   ".f90", ".f77", ".go",  ".S"};

}  // namespace

std::optional<std::string> read_source(const std::string& file) {
  const auto is_end = [&](std::string_view extension) { return file.ends_with(extension); };
  if (std::none_of(std::begin(kExtensions), std::end(kExtensions), is_end)) return {};
  return target::read_file_of(::getpid(), file, kLongest);
}

}  // namespace phlox::cli
