#include "phlox/elf/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "phlox/base/descriptor.h"
#include "phlox/base/interrupted.h"

namespace phlox::elf {
namespace {

constexpr uint64_t kBlock = 64 << 10;
// Files up to this size are read at once.
constexpr uint64_t kSmall = 128 << 10;
// Address space, not memory: a page takes memory when it is written.
constexpr uint64_t kLargest = uint64_t{16} << 30;

// Bytes that all files hold: the limit protects the process, so it is for the whole process.
std::atomic<uint64_t> held_now{0};

bool hold_more(uint64_t bytes) {
  uint64_t now = held_now;
  do {
    if (now > FileBytes::kMostHeld || bytes > FileBytes::kMostHeld - now) return false;
  } while (!held_now.compare_exchange_weak(now, now + bytes));
  return true;
}

// Where the file has become too short, the bytes stay as they are.
void read_at(int file, std::span<std::byte> into, uint64_t offset) {
  for (size_t have = 0; have < into.size();) {
    const ssize_t got = retried([&] {
      return ::pread(file, into.data() + have, into.size() - have, static_cast<off_t>(offset + have));
    });
    if (got <= 0) return;
    have += static_cast<size_t>(got);
  }
}

}  // namespace

bool ReadBudget::take(uint64_t bytes) {
  uint64_t left = left_;
  do {
    if (bytes > left) return false;
  } while (!left_.compare_exchange_weak(left, left - bytes));
  return true;
}

struct FileBytes::Held {
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (room != nullptr) ::munmap(room, size);
    held_now -= held;
  }

  // Reads the blocks that are missing. False: the limits do not allow it.
  bool hold(uint64_t first, uint64_t last) {
    const std::lock_guard lock(mutex);
    uint64_t more = 0;
    for (uint64_t block = first; block <= last; ++block) more += fetched[block] ? 0 : kBlock;
    if (more == 0) return true;
    if (budget && !budget->take(more)) return false;
    if (!hold_more(more)) return false;
    held += more;
    for (uint64_t block = first; block <= last; ++block) {
      if (fetched[block]) continue;
      const uint64_t begin = block * kBlock;
      read_at(file.get(), {room + begin, std::min(kBlock, size - begin)}, begin);
      fetched[block] = true;
    }
    return true;
  }

  std::vector<std::byte> owned;
  Descriptor file;  // none: everything is in `owned`
  std::byte* room = nullptr;
  uint64_t size = 0;
  uint64_t held = 0;
  std::vector<bool> fetched;
  std::shared_ptr<ReadBudget> budget;
  std::mutex mutex;
};

Result<FileBytes> FileBytes::read(int fd, std::string_view name, std::shared_ptr<ReadBudget> budget) {
  struct stat status {};
  if (::fstat(fd, &status) != 0)
    return fail(ErrorKind::input, fmt::format("cannot read {}: {}", name, std::strerror(errno)));
  if (!S_ISREG(status.st_mode) || status.st_size <= 0)
    return fail(ErrorKind::input, fmt::format("{} is not a file with contents", name));
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size <= kSmall) {
    if (budget && !budget->take(size))
      return fail(ErrorKind::input, fmt::format("{} is not read: the process has too many files", name));
    std::vector<std::byte> bytes(size);
    read_at(fd, bytes, 0);
    return own(std::move(bytes));
  }
  auto held = std::make_shared<Held>();
  held->size = std::min(size, kLargest);
  held->budget = std::move(budget);
  held->file = Descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  void* const room =
      ::mmap(nullptr, held->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED || !held->file)
    return fail(ErrorKind::input, fmt::format("cannot read {}: {}", name, std::strerror(errno)));
  held->room = static_cast<std::byte*>(room);
  held->fetched.resize((held->size + kBlock - 1) / kBlock);
  return FileBytes(std::move(held));
}

FileBytes FileBytes::own(std::vector<std::byte> bytes) {
  auto held = std::make_shared<Held>();
  held->owned = std::move(bytes);
  held->size = held->held = held->owned.size();
  held_now += held->held;
  return FileBytes(std::move(held));
}

uint64_t FileBytes::size() const {
  return held_->size;
}

std::span<const std::byte> FileBytes::part(uint64_t offset, uint64_t size) const {
  if (size == 0 || offset > held_->size || size > held_->size - offset) return {};
  if (!held_->file) return std::span(held_->owned).subspan(offset, size);
  if (size > kMostPart || !held_->hold(offset / kBlock, (offset + size - 1) / kBlock)) return {};
  return {held_->room + offset, size};
}

std::span<const std::byte> FileBytes::bytes() const {
  return part(0, std::min(held_->size, kMostPart));
}

std::span<std::byte> FileBytes::as_fetched() const {
  return held_->file ? std::span(held_->room, held_->size) : std::span(held_->owned);
}

uint64_t FileBytes::room() {
  const uint64_t now = held_now;
  return now < kMostHeld ? kMostHeld - now : 0;
}

bool FileBytes::copy(uint64_t offset, std::span<std::byte> into) const {
  if (into.empty() || offset > held_->size || into.size() > held_->size - offset) return false;
  if (!held_->file) {
    std::memcpy(into.data(), held_->owned.data() + offset, into.size());
    return true;
  }
  if (held_->budget && !held_->budget->take(into.size())) return false;
  read_at(held_->file.get(), into, offset);
  return true;
}

}  // namespace phlox::elf
