#include "phlox/base/guarded_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>

namespace phlox {
namespace {

constexpr int kMostLinks = 40;  // as the kernel
constexpr gid_t kNoGroup = 65534;

class GuardedWalk {
 public:
  explicit GuardedWalk(const std::optional<FileUser>& user)
      : us_(user ? user->user : ::geteuid()), may_become_(us_ == 0), act_(std::in_place, user) {
    found_.user = user;
  }

  GuardedFile to(std::string path) {
    if (!*act_ || !begin(path) || !go(std::move(path))) return std::move(found_);
    struct stat file {};
    if (::fstat(at_.get(), &file) != 0) return std::move(found_);
    if (S_ISREG(file.st_mode) && is_private(file)) {
      found_.refused = GuardedFile::Refused::private_file;
    } else {
      found_.file = std::move(at_);
    }
    return std::move(found_);
  }

 private:
  bool is_ours(uid_t user) const { return user == 0 || user == us_; }
  bool is_shared() const { return anyone_ || group_; }
  // Whether one of those who may have moved it here may not read it.
  bool is_private(const struct stat& file) const {
    if (!is_shared() || (file.st_mode & S_IROTH) != 0) return false;
    const bool of_group = !anyone_ && file.st_gid == *group_ && (file.st_mode & S_IRGRP) != 0;
    return (is_ours(file.st_uid) || file.st_uid == keeper_) && !of_group;
  }

  bool begin(const std::string& path) {
    if (path.starts_with('/')) {
      at_ = Descriptor(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
      return bool(at_);
    }
    std::array<char, PATH_MAX> here{};
    if (::getcwd(here.data(), here.size()) == nullptr) return false;
    return begin("/") && go(here.data());
  }
  bool go(std::string path) {
    while (!path.empty()) {
      const size_t end = std::min(path.size(), path.find('/'));
      const std::string name = path.substr(0, end);
      path.erase(0, path.find_first_not_of('/', end));
      if (!name.empty() && !step(name, path)) return false;
    }
    return true;
  }

  // `rest`: gets the target of a link in front.
  bool step(const std::string& name, std::string& rest) {
    struct stat folder {
    }, entry{};
    if (::fstat(at_.get(), &folder) != 0) return false;
    if (!is_ours(folder.st_uid) && !gets(folder.st_uid)) return false;
    Descriptor next(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next || ::fstat(next.get(), &entry) != 0) return false;
    const bool anyone = (folder.st_mode & S_IWOTH) != 0;
    const bool group =
        (folder.st_mode & S_IWGRP) != 0 && folder.st_gid != 0 && folder.st_gid != folder.st_uid;
    const bool others_write = anyone || group, is_sticky = (folder.st_mode & S_ISVTX) != 0;
    if (others_write && !is_sticky) share(anyone ? std::nullopt : std::optional(folder.st_gid));
    if (!S_ISLNK(entry.st_mode)) {
      at_ = std::move(next);
      return !others_write || !is_sticky || is_ours(entry.st_uid) || gets(entry.st_uid);
    }
    const bool is_trusted = is_ours(entry.st_uid) || entry.st_uid == keeper_;
    if (is_shared() || others_write || !is_trusted) return refuse(GuardedFile::Refused::link);
    return follow(next, rest);
  }

  bool follow(const Descriptor& link, std::string& rest) {
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
    if (size <= 0 || static_cast<size_t>(size) == target.size() || ++links_ > kMostLinks) {
      if (links_ > kMostLinks) errno = ELOOP;
      return false;
    }
    const std::string_view to(target.data(), static_cast<size_t>(size));
    rest = rest.empty() ? std::string(to) : std::string(to) + "/" + rest;
    return !to.starts_with('/') || begin("/");
  }

  // With the members of a group, or with anyone.
  void share(std::optional<gid_t> group) {
    anyone_ = anyone_ || !group || (group_ && *group_ != *group);
    group_ = group;
  }

  // From now on, this user chooses where the path leads.
  bool gets(uid_t user) {
    if (keeper_ == user) return true;
    if (keeper_ || !may_become_) {
      share({});
      return true;
    }
    keeper_ = user;
    found_.user = FileUser{user, kNoGroup, {}};
    act_.emplace(found_.user);
    return bool(*act_) || refuse(GuardedFile::Refused::rights);
  }

  bool refuse(GuardedFile::Refused why) {
    found_.refused = why;
    return false;
  }

  const uid_t us_;
  const bool may_become_;
  std::optional<ActAs> act_;
  GuardedFile found_;
  Descriptor at_;
  std::optional<uid_t> keeper_;  // the other user who chooses; his rights are used
  // Also others choose, or one whose rights we cannot have.
  bool anyone_ = false;
  std::optional<gid_t> group_;
  int links_ = 0;
};

}  // namespace

GuardedFile find_guarded(const std::string& path, const std::optional<FileUser>& user) {
  return GuardedWalk(user).to(path);
}

}  // namespace phlox
