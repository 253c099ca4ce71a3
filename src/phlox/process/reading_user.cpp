#include "phlox/process/reading_user.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "phlox/memory/living_thread.h"

namespace phlox::process {

FileUser file_user_of(const Status& status) {
  const auto least = [](const Ids& ids) {
    return ids.real != 0 ? ids.real : ids.effective != 0 ? ids.effective : ids.saved;
  };
  return {least(status.uid), least(status.gid), {status.groups.begin(), status.groups.end()}};
}

std::optional<FileUser> reading_user(const FileUser& user) {
  constexpr unsigned kSetUid = 7;  // CAP_SETUID, include/uapi/linux/capability.h
  if (user.user == ::geteuid()) return {};
  const auto own = read_status(::getpid());
  const bool able = own && (own->effective_capabilities >> kSetUid & 1) != 0;
  return able ? std::optional(user) : std::nullopt;
}

std::optional<FileUser> reading_user(pid_t pid) {
  const auto status = read_status(pid);
  return status ? reading_user(file_user_of(*status)) : std::nullopt;
}

bool sees_our_files(pid_t pid) {
  struct stat ours {
  }, theirs{};
  for (const char* place : {"ns/mnt", "root"}) {
    if (::stat(fmt::format("/proc/self/{}", place).c_str(), &ours) != 0 ||
        ::stat(fmt::format("{}/{}", memory::proc_folder(pid), place).c_str(), &theirs) != 0)
      return false;
    if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino) return false;
  }
  return true;
}

}  // namespace phlox::process
