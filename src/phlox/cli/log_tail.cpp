#include "phlox/cli/log_tail.h"

#include <fmt/format.h>
#include <re2/re2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "phlox/base/guarded_path.h"
#include "phlox/base/interrupted.h"
#include "phlox/base/regular_file.h"

namespace phlox::cli {
namespace {

// At each look; a log that grows faster is read with a delay.
constexpr size_t kMostOfLogAtOnce = size_t{4} << 20;

using Refused = GuardedFile::Refused;

// None: it cannot be opened, or is no plain file; errno says why.
Descriptor open_found(const GuardedFile& found) {
  if (!found.file) return {};
  errno = EINVAL;
  const ActAs as(found.user);
  return as ? open_if_regular(found.file) : Descriptor();
}

std::string why_not(Refused refused, int error) {
  if (refused == Refused::link) return "its path has a link that other users may have made";
  if (refused == Refused::private_file)
    return "other users may rename files in its folder, and not all of them may read it";
  if (refused == Refused::rights) return "its folder belongs to a user whose rights phlox cannot take on";
  return error == EINVAL ? "it is no plain file" : std::strerror(error);
}

std::string hint_for(const std::string& file, Refused refused, int error) {
  if (refused == Refused::link) return fmt::format("name the file itself: realpath {}", file);
  if (refused == Refused::private_file) return "let only its owner write into the folder: chmod go-w";
  if (refused == Refused::rights)
    return "phlox needs CAP_SETUID and CAP_SETGID to read with that user's rights";
  if (file.starts_with("~")) return "phlox does not know ~: write $HOME";
  if (error == ENOENT) return "touch makes an empty one; phlox follows it when it is rotated";
  if (error == EACCES)
    return "phlox reads it with the rights of the user that started it, or, as root, of the user to whom its "
           "folder belongs";
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
  const GuardedFile found = find_guarded(file, user);
  made->file_ = open_found(found);
  if (!made->file_)
    return fail(ErrorKind::input,
                fmt::format("--on log: cannot read {}: {}", file, why_not(found.refused, errno)),
                hint_for(file, found.refused, errno));
  made->at_ = ::lseek(made->file_.get(), 0, SEEK_END);
  return made;
}

// Another file that has the log's name now; none: there is none, or it may not be read. It must belong to the
// same user: whoever may write into the log's folder chooses what takes its place.
Descriptor LogTail::find_fresh() {
  const GuardedFile found = find_guarded(path_, user_);
  struct stat before {
  }, after{};
  bool is_refused = found.refused != Refused::no;
  if (found.file) {
    if (::fstat(file_.get(), &before) != 0 || ::fstat(found.file.get(), &after) != 0 ||
        (before.st_dev == after.st_dev && before.st_ino == after.st_ino))
      return {};
    is_refused = after.st_uid != before.st_uid;
  }
  if (is_refused) refused_ = !std::exchange(was_refused_, true);
  return is_refused ? Descriptor() : open_found(found);
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
  if (::fstat(file_.get(), &there) == 0 && there.st_size < at_) {
    at_ = 0;  // it was emptied
    lines_.restart();
  }
  while (budget > 0 && read_some(found, budget)) {
  }
  if (budget == 0) return found;
  if (Descriptor fresh = find_fresh()) {
    file_ = std::move(fresh);
    at_ = 0;
    lines_.restart();
    while (budget > 0 && read_some(found, budget)) {
    }
  }
  return found;
}

}  // namespace phlox::cli
