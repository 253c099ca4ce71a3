#include "phlox/recording/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "phlox/base/descriptor.h"
#include "phlox/profile/unfinished.h"
#include "phlox/recording/opened_recording.h"
#include "phlox/recording/recorder_mark.h"
#include "phlox/recording/schema.h"
#include "phlox/recording/tables.h"

namespace phlox::recording {

using profile::Profile;

namespace {

bool is_being_recorded(const std::string& path) {
  return is_marked(Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
}

}  // namespace

Result<Profile> read_begun(const std::string& path) {
  auto profile = read(path);
  if (profile && profile->meta().empty() && profile->processes().empty()) return holds_nothing(path);
  return profile;
}

Result<Profile> read(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0)
    return fail(ErrorKind::input, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  if (S_ISDIR(there.st_mode)) {
    return fail(ErrorKind::input, fmt::format("{} is a folder", path),
                "perf record --threads writes folders, which are not read: record without it");
  }
  if (!S_ISREG(there.st_mode)) return fail(ErrorKind::input, fmt::format("{} is not a regular file", path));
  if (there.st_size == 0)
    return fail(ErrorKind::input, fmt::format("{} is empty, not a phlox recording", path));

  // Before SQLite opens the file: closing a descriptor later would drop SQLite's locks. A recorder that ends
  // between here and there leaves a finished recording.
  const bool grows = is_being_recorded(path);
  const auto recording = open_recording(path);
  if (!recording) return fail(recording);
  auto profile = read_tables(*recording, path);
  // Overrides what the file says.
  if (profile && (grows || profile->meta().contains(profile::kGrows)))
    profile->emit_meta(profile::kGrows, grows ? "1" : "");
  return profile;
}

bool is_recording(const std::string& path) {
  // "Database Header Format" of SQLite's file format: a magic string, the application id at byte 68.
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  constexpr size_t kApplication = 68;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char head[kApplication + 4];
  if (!file || ::pread(file.get(), head, sizeof head, 0) != sizeof head) return false;
  if (std::string_view(head, sizeof head).substr(0, kMagic.size()) != kMagic) return false;
  uint32_t id = 0;
  for (size_t i = 0; i < 4; ++i) id = id << 8 | static_cast<unsigned char>(head[kApplication + i]);
  return id == kApplicationId;
}

}  // namespace phlox::recording
