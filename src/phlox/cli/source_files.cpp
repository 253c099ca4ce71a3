#include "phlox/cli/source_files.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "phlox/cli/destination.h"
#include "phlox/process/reading_user.h"
#include "phlox/process/source_file.h"
#include "phlox/profile/source_rights.h"

namespace phlox::cli {
namespace {

constexpr size_t kLongest = size_t{2} << 20;  // no handwritten file is longer

constexpr std::string_view kExtensions[] = {".py",  ".pyw", ".pyx", ".pxd", ".pxi", ".c",   ".h",   ".cc",
                                            ".cpp", ".cxx", ".hpp", ".hh",  ".hxx", ".tcc", ".inl", ".cu",
                                            ".rs",  ".f",   ".f90", ".f77", ".go",  ".S"};

}  // namespace

SourceFiles::SourceFiles(const profile::Profile& profile) {
  for (const profile::SourceRights& rights : profile::source_rights(profile.meta())) {
    elsewhere_ = elsewhere_ || !rights.here;
    users_.push_back(process::reading_user(rights.user));
  }
  if (!users_.empty()) return;
  // The program is unknown: use the caller's rights, or for root those of nobody.
  constexpr uid_t kNobody = 65534;
  auto caller = recording_owner();
  if (!caller && ::geteuid() == 0) caller = FileUser{kNobody, kNobody, {}};
  users_.push_back(caller ? process::reading_user(*caller) : std::nullopt);
}

std::optional<std::string> SourceFiles::read(const std::string& file) const {
  const auto is_end = [&](std::string_view extension) { return file.ends_with(extension); };
  if (elsewhere_ || std::none_of(std::begin(kExtensions), std::end(kExtensions), is_end)) return {};
  std::optional<std::string> text;
  for (const auto& user : users_) {
    text = process::read_file_of(::getpid(), file, kLongest, user);
    if (!text) return {};
  }
  return text;
}

}  // namespace phlox::cli
