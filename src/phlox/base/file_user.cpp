#include "phlox/base/file_user.h"

#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace phlox {
namespace {

constexpr unsigned kFileCapabilities[] = {
    CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_CHOWN, CAP_MKNOD, CAP_LINUX_IMMUTABLE};

// An invalid id changes nothing; the call returns the current one.
uid_t file_uid() {
  return static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1)));
}
gid_t file_gid() {
  return static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1)));
}

// Direct system calls: the C library's functions would change every thread.
std::vector<gid_t> groups_now() {
  const long count = ::syscall(SYS_getgroups, 0, nullptr);
  std::vector<gid_t> groups(count > 0 ? static_cast<size_t>(count) : 0);
  if (!groups.empty() && ::syscall(SYS_getgroups, count, groups.data()) < 0) groups.clear();
  return groups;
}
bool set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

using CapabilitySets = __user_cap_data_struct[2];
bool get_capabilities(CapabilitySets& sets) {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capget, &head, sets) == 0;
}
bool set_effective(const uint32_t (&effective)[2]) {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  CapabilitySets sets = {};
  if (!get_capabilities(sets)) return false;
  for (int half = 0; half < 2; ++half) sets[half].effective = effective[half] & sets[half].permitted;
  return ::syscall(SYS_capset, &head, sets) == 0;
}

}  // namespace

ActAs::ActAs(const std::optional<FileUser>& user) {
  if (!user) return;
  before_ = {file_uid(), file_gid(), {}};
  // An ordinary user already is that user, and cannot be another.
  if (before_.user == user->user && user->user == ::geteuid()) return;
  become(*user);
  if (done_) return;
  go_back();
  errno = EPERM;
}

void ActAs::become(const FileUser& user) {
  before_.groups = groups_now();
  CapabilitySets sets = {};
  if (!get_capabilities(sets)) {
    done_ = false;
    return;
  }
  for (int half = 0; half < 2; ++half) effective_[half] = sets[half].effective;
  changed_ = true;
  done_ = set_groups(user.groups);
  ::setfsgid(user.group);
  ::setfsuid(user.user);
  done_ = done_ && file_gid() == user.group && file_uid() == user.user;
  uint32_t narrow[2] = {effective_[0], effective_[1]};
  for (const unsigned one : kFileCapabilities) narrow[one / 32] &= ~(1U << (one % 32));
  done_ = done_ && set_effective(narrow);
}

void ActAs::go_back() {
  if (!changed_) return;
  changed_ = false;
  const int error = errno;
  ::setfsuid(before_.user);
  ::setfsgid(before_.group);
  set_effective(effective_);
  set_groups(before_.groups);
  errno = error;
}

ActAs::~ActAs() {
  go_back();
}

}  // namespace phlox
