#include "phlox/push/outbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "phlox/base/folder.h"
#include "phlox/base/interrupted.h"
#include "phlox/base/private_folder.h"
#include "phlox/base/text.h"
#include "phlox/base/write_all.h"

namespace phlox::push {
namespace {

// A file: this, the body's length and checksum as text, a line break, the body.
constexpr std::string_view kMagic = "phlox push 1";
constexpr size_t kHeadSize = 40;
constexpr std::string_view kReady = ".push", kUnready = ".part";
constexpr const char* kLock = "lock";
constexpr size_t kMostItems = 1'000'000;
constexpr uint64_t kLargestItem = uint64_t{256} << 20;

std::string head_of(std::string_view body) {
  uLong sum = ::crc32(0, nullptr, 0);
  sum = ::crc32_z(sum, reinterpret_cast<const Bytef*>(body.data()), body.size());
  std::string head = fmt::format("{} {:010} {:08x}", kMagic, body.size(), sum);
  head.resize(kHeadSize - 1, ' ');
  return head + "\n";
}

std::string name_of(uint64_t number, std::string_view end) {
  return fmt::format("{:016x}{}", number, end);
}

// 0: not the name of an item.
uint64_t number_of(std::string_view name) {
  if (name.size() != 16 + kReady.size() || !name.ends_with(kReady)) return 0;
  std::string_view digits = name.substr(0, 16);
  uint64_t number = 0;
  return take_number(digits, number, 16) && digits.empty() ? number : 0;
}

tl::unexpected<Error> not_private(const std::string& folder) {
  return fail(ErrorKind::output,
              fmt::format("{} is not a folder of this user alone: others could put profiles into it", folder),
              "name another one with --state, inside a folder of yours; phlox creates it");
}

}  // namespace

Result<std::unique_ptr<Outbox>> Outbox::open(const std::string& folder, uint64_t most_bytes) {
  const bool made = make_private_folder(folder);
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0) {
    const int error = errno;
    if (error == ELOOP || error == ENOTDIR) return not_private(folder);
    return fail(ErrorKind::output,
                fmt::format("cannot create the folder {}: {}", folder, std::strerror(error)),
                "name another one with --state");
  }
  if (!made || status.st_uid != ::geteuid() || (status.st_mode & 022) != 0) return not_private(folder);
  Descriptor lock(
      ::openat(opened.get(), kLock, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!lock)
    return fail(ErrorKind::output, fmt::format("cannot write into {}: {}", folder, std::strerror(errno)),
                "is the disk full, or may this user not write there?");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorKind::output, fmt::format("another phlox agent is using {}", folder),
                "stop that agent, or give this one its own folder with --state");
  std::unique_ptr<Outbox> outbox(new Outbox(folder, std::move(opened), std::move(lock), most_bytes));
  if (auto taken = outbox->take_over(); !taken) return fail(taken);
  return outbox;
}

Result<void> Outbox::take_over() {
  const Folder listed =
      list_folder(Descriptor(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  if (!listed)
    return fail(ErrorKind::output, fmt::format("cannot read {}: {}", path_, std::strerror(errno)), "");
  std::vector<std::string> unready;
  while (const dirent* entry = ::readdir(listed.get())) {
    const std::string_view name = entry->d_name;
    // Of a run that was killed while it wrote: the interval that it held is lost.
    if (name.ends_with(kUnready)) unready.emplace_back(name);
    const uint64_t number = number_of(name);
    struct stat status {};
    if (number == 0 || queue_.size() == kMostItems ||
        ::fstatat(folder_.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    queue_[number] = static_cast<uint64_t>(status.st_size);
    counts_.bytes += static_cast<uint64_t>(status.st_size);
  }
  for (const std::string& name : unready) ::unlinkat(folder_.get(), name.c_str(), 0);
  if (!queue_.empty()) last_ = queue_.rbegin()->first;
  make_room(0);
  return {};
}

bool Outbox::put(std::string_view body) {
  const std::lock_guard lock(mutex_);
  const uint64_t number = (last_ / kStep + 1) * kStep;
  if (body.size() + kHeadSize > most_bytes_ || body.size() > kLargestItem) {
    ++counts_.no_room;
    errno = EFBIG;
    return false;
  }
  make_room(body.size() + kHeadSize);
  if (!write(number, body)) {
    ++counts_.unwritten;
    return false;
  }
  last_ = number;
  return true;
}

bool Outbox::write(uint64_t number, std::string_view body) {
  const std::string unready = name_of(number, kUnready), ready = name_of(number, kReady);
  const Descriptor file(
      ::openat(folder_.get(), unready.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  const std::string head = head_of(body);
  if (!file || !write_all(file.get(), std::as_bytes(std::span(head))) ||
      !write_all(file.get(), std::as_bytes(std::span(body))) ||
      ::renameat(folder_.get(), unready.c_str(), folder_.get(), ready.c_str()) != 0) {
    const int error = errno;
    ::unlinkat(folder_.get(), unready.c_str(), 0);
    errno = error;
    return false;
  }
  const uint64_t size = head.size() + body.size();
  queue_[number] = size;
  counts_.bytes += size;
  return true;
}

std::optional<std::string> Outbox::read(uint64_t number, uint64_t size) const {
  const Descriptor file(::openat(folder_.get(), name_of(number, kReady).c_str(),
                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || static_cast<uint64_t>(status.st_size) != size || size < kHeadSize ||
      size > kLargestItem + kHeadSize)
    return {};
  std::string bytes(size, '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = retried([&] { return ::read(file.get(), bytes.data() + at, bytes.size() - at); });
    if (got <= 0) return {};
    at += static_cast<size_t>(got);
  }
  const std::string_view body = std::string_view(bytes).substr(kHeadSize);
  if (head_of(body) != std::string_view(bytes).substr(0, kHeadSize)) return {};
  return bytes.substr(kHeadSize);
}

std::optional<Outbox::Item> Outbox::first() {
  const std::lock_guard lock(mutex_);
  in_hand_ = 0;
  while (!queue_.empty()) {
    const auto [number, size] = *queue_.begin();
    if (auto body = read(number, size)) {
      in_hand_ = number;
      return Item{number, *std::move(body)};
    }
    ++counts_.damaged;
    forget(number);
  }
  return {};
}

// False: it is not in the queue.
bool Outbox::forget(uint64_t number) {
  const auto found = queue_.find(number);
  if (found == queue_.end()) return false;
  ::unlinkat(folder_.get(), name_of(number, kReady).c_str(), 0);
  counts_.bytes -= found->second;
  queue_.erase(found);
  if (in_hand_ == number) in_hand_ = 0;
  return true;
}

void Outbox::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  forget(number);
}

void Outbox::drop(uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (forget(number)) ++counts_.refused;
}

bool Outbox::replace(uint64_t number, std::string_view first_half, std::string_view second_half) {
  const std::lock_guard lock(mutex_);
  const auto found = queue_.find(number);
  if (found == queue_.end()) return false;
  const auto after = std::next(found);
  const uint64_t room = (after == queue_.end() ? (number / kStep + 1) * kStep : after->first) - number;
  const uint64_t second = number + room / 2;
  if (room < 4 || !write(second, second_half)) return false;
  const uint64_t first = number + room / 4;
  if (!write(first, first_half)) {
    forget(second);
    return false;
  }
  // Killed here, it would send both it and its halves: nothing on a disk is done at once with something else.
  forget(number);
  last_ = std::max(last_, second);
  return true;
}

void Outbox::make_room(uint64_t size) {
  for (auto at = queue_.begin(); at != queue_.end() && counts_.bytes + size > most_bytes_;) {
    const uint64_t number = at->first;
    ++at;
    if (number == in_hand_) continue;
    forget(number);
    ++counts_.no_room;
  }
}

Outbox::Counts Outbox::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.items = queue_.size();
  return counts;
}

}  // namespace phlox::push
