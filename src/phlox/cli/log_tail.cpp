#include "phlox/cli/log_tail.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <re2/re2.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "phlox/base/interrupted.h"

namespace phlox::cli {
namespace {

// At each look; a log that grows faster is read with a delay.
constexpr size_t kMostOfLogAtOnce = size_t{4} << 20;

// open_file() sets EINVAL for what is no plain file.
std::string why_not(int error) {
  return error == EINVAL ? "it is no plain file" : std::strerror(error);
}

std::string hint_for(const std::string& file, int error) {
  if (file.starts_with("~")) return "phlox does not know ~: write $HOME";
  if (error == ENOENT) return "touch makes an empty one; phlox follows it when it is rotated";
  if (error == EACCES) return "phlox reads it with the rights of the user that started it";
  if (error == EINVAL) return "a pipe, a device or a folder cannot be followed";
  return "";
}

}  // namespace

LogTail::~LogTail() = default;

Result<std::unique_ptr<LogTail>> LogTail::open(const std::string& file, const std::string& regex,
                                               const std::optional<FileUser>& user) {
  std::unique_ptr<LogTail> made(new LogTail);
  made->path_ = file;
  made->user_ = user;
  made->regex_ = std::make_unique<re2::RE2>(regex, re2::RE2::Quiet);
  if (!made->regex_->ok())
    return fail(ErrorKind::usage,
                fmt::format("--on log: '{}' is no regular expression: {}", regex, made->regex_->error()),
                "put a backslash before characters such as ( and [ to match them literally; lookahead and "
                "references to groups are not possible");
  made->file_ = made->open_file();
  if (!made->file_)
    return fail(ErrorKind::input, fmt::format("--on log: cannot read {}: {}", file, why_not(errno)),
                hint_for(file, errno));
  made->at_ = ::lseek(made->file_.get(), 0, SEEK_END);
  return made;
}

// None: it cannot be opened, or is no plain file; errno says why.
Descriptor LogTail::open_file() const {
  const ActAs as(user_);
  if (!as) return {};
  Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat there {};
  if (file && (::fstat(file.get(), &there) != 0 || !S_ISREG(there.st_mode))) {
    errno = EINVAL;
    return {};
  }
  return file;
}

bool LogTail::is_replaced() const {
  const ActAs as(user_);
  struct stat open {
  }, named{};
  return as && ::fstat(file_.get(), &open) == 0 && ::stat(path_.c_str(), &named) == 0 &&
         (open.st_dev != named.st_dev || open.st_ino != named.st_ino);
}

// False: something else has its name already, so what was opened may have been reached by a link.
bool LogTail::is_named(const Descriptor& fresh) const {
  const ActAs as(user_);
  struct stat opened {
  }, named{};
  return as && ::fstat(fresh.get(), &opened) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
         (S_ISLNK(named.st_mode) || (named.st_dev == opened.st_dev && named.st_ino == opened.st_ino));
}

// A user who may rename files in the log's folder chooses what takes the log's place; by a link, that may be
// a file that only we may read. So the new file must belong to the log's user, and a link to that user or
// root.
bool LogTail::takes_its_place(const Descriptor& fresh) const {
  const ActAs as(user_);
  struct stat before {
  }, after{}, link{};
  if (!as || ::fstat(file_.get(), &before) != 0 || ::fstat(fresh.get(), &after) != 0 ||
      ::lstat(path_.c_str(), &link) != 0)
    return false;
  return after.st_uid == before.st_uid &&
         (!S_ISLNK(link.st_mode) || link.st_uid == 0 || link.st_uid == after.st_uid);
}

// Whether there may be more.
bool LogTail::read_some(std::optional<std::string>& found, size_t& budget) {
  std::array<char, size_t{1} << 16> block;
  const ssize_t size = retried([&] { return ::pread(file_.get(), block.data(), block.size(), at_); });
  if (size <= 0) return false;
  at_ += size;
  budget -= std::min(budget, static_cast<size_t>(size));
  lines_.put(std::string_view(block.data(), static_cast<size_t>(size)), [&](std::string_view line) {
    if (!found && re2::RE2::PartialMatch(line, *regex_)) found = std::string(line);
  });
  return true;
}

std::optional<std::string> LogTail::next_match() {
  std::optional<std::string> found;
  size_t budget = kMostOfLogAtOnce;
  struct stat there {};
  if (file_ && ::fstat(file_.get(), &there) == 0 && there.st_size < at_) {
    at_ = 0;  // it was emptied
    lines_.restart();
  }
  while (file_ && budget > 0 && read_some(found, budget)) {
  }
  if (budget == 0 || (file_ && !is_replaced())) return found;
  if (Descriptor fresh = open_file()) {
    if (!is_named(fresh)) return found;  // it is looked at again soon
    if (!takes_its_place(fresh)) {
      refused_ = !std::exchange(was_refused_, true);
      return found;
    }
    file_ = std::move(fresh);
    at_ = 0;
    lines_.restart();
    while (budget > 0 && read_some(found, budget)) {
    }
  }
  return found;
}

}  // namespace phlox::cli
