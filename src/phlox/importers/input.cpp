#include "phlox/importers/input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "phlox/base/interrupted.h"
#include "phlox/base/temporary_folder.h"

namespace phlox::importers {
namespace {

// `error`: unchanged unless something fails.
size_t take(int descriptor, std::span<std::byte> into, int& error) {
  const ssize_t got = retried([&] { return ::read(descriptor, into.data(), into.size()); });
  if (got < 0) error = errno;
  return static_cast<size_t>(std::max<ssize_t>(got, 0));
}

size_t read_from(int descriptor, uint64_t offset, std::span<std::byte> into, int& error) {
  size_t have = 0;
  while (have < into.size()) {
    const ssize_t got = retried([&] {
      return ::pread(descriptor, into.data() + have, into.size() - have, static_cast<off_t>(offset + have));
    });
    if (got < 0) error = errno;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  return have;
}

// Deleted when closed.
Descriptor nameless_file() {
  std::string path = temporary_folder("/var/tmp");
  Descriptor file(::open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  // Some network and overlay file systems have no O_TMPFILE.
  path += "/phlox.XXXXXX";
  file = Descriptor(::mkostemp(path.data(), O_CLOEXEC));
  if (file) ::unlink(path.c_str());
  return file;
}

}  // namespace

size_t Input::room_for(uint64_t offset, uint64_t most) const {
  // A file in /proc reports 0.
  const uint64_t all = size().value_or(0);
  return all == 0 ? most : std::min(most, all - std::min(all, offset));
}

size_t MemoryInput::read_at(uint64_t offset, std::span<std::byte> into) {
  if (offset >= bytes_.size() || into.empty()) return 0;
  const size_t size = std::min<uint64_t>(into.size(), bytes_.size() - offset);
  std::memcpy(into.data(), bytes_.data() + offset, size);
  return size;
}

FileInput::FileInput()
    : pipe_([this](std::span<std::byte> into) { return take(descriptor_, into, error_); }) {}

Result<std::unique_ptr<FileInput>> FileInput::open(const std::string& path) {
  auto input = std::unique_ptr<FileInput>(new FileInput());
  if (path == "-") {
    input->descriptor_ = 0;
  } else {
    input->owned_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!input->owned_)
      return fail(ErrorKind::input, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
    input->descriptor_ = input->owned_.get();
  }
  struct stat there {};
  if (::fstat(input->descriptor_, &there) != 0)
    return fail(ErrorKind::input, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  if (S_ISDIR(there.st_mode)) {
    return fail(ErrorKind::input, fmt::format("{} is a folder", path),
                "perf record --threads writes folders, which are not read: record without it");
  }
  if (S_ISREG(there.st_mode)) input->size_ = static_cast<uint64_t>(there.st_size);
  return input;
}

size_t FileInput::read_at(uint64_t offset, std::span<std::byte> into) {
  return size_ ? read_from(descriptor_, offset, into, error_) : pipe_.read_at(offset, into);
}

size_t Forwards::fill(std::span<std::byte> into) {
  size_t have = 0;
  while (have < into.size()) {
    const size_t got = source_(into.subspan(have));
    if (got == 0) break;
    have += got;
  }
  return have;
}

// Keeps the next bytes, up to the first one that the disk has no room for.
void Forwards::keep(std::span<const std::byte> bytes) {
  if (!kept_ || kept_to_ != at_) return;
  while (!bytes.empty()) {
    const ssize_t put = retried(
        [&] { return ::pwrite(kept_.get(), bytes.data(), bytes.size(), static_cast<off_t>(kept_to_)); });
    if (put <= 0) return;
    kept_to_ += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

// Reads everything before `offset`.
bool Forwards::pass(uint64_t offset) {
  if (at_ >= offset) return true;
  if (!kept_ && (kept_ = nameless_file())) kept_from_ = kept_to_ = at_;
  std::vector<std::byte> passed(std::min<uint64_t>(offset - at_, kHead));
  while (at_ < offset) {
    const auto piece = std::span(passed).first(std::min<uint64_t>(passed.size(), offset - at_));
    const size_t got = fill(piece);
    if (got == 0) return false;
    keep(piece.first(got));
    at_ += got;
  }
  return true;
}

size_t Forwards::read_at(uint64_t offset, std::span<std::byte> into) {
  if (!head_read_) {
    head_.resize(kHead);
    head_.resize(fill(head_));
    at_ = head_.size();
    head_read_ = true;
  }
  size_t have = 0;
  if (offset < head_.size()) {
    have = std::min<uint64_t>(into.size(), head_.size() - offset);
    std::memcpy(into.data(), head_.data() + offset, have);
    offset += have;
  }
  if (offset >= kept_from_ && offset < kept_to_ && have < into.size()) {
    const size_t asked = std::min<uint64_t>(into.size() - have, kept_to_ - offset);
    int error = 0;  // bytes not read are requested again below, and lost
    const size_t got = read_from(kept_.get(), offset, into.subspan(have, asked), error);
    have += got;
    offset += got;
  }
  if (have == into.size()) return have;
  lost_ = lost_ || offset < at_;
  if (!pass(offset) || at_ != offset) return have;
  const size_t got = fill(into.subspan(have));
  keep(into.subspan(have, got));
  at_ += got;
  return have + got;
}

void keep_all(Input& input) {
  constexpr uint64_t kBeyondTheEnd = uint64_t{1} << 62;  // an offset that no file reaches
  std::byte beyond{};
  static_cast<void>(input.read_at(kBeyondTheEnd, {&beyond, 1}));
}

tl::unexpected<Error> no_room_to_read_again() {
  return fail(ErrorKind::input,
              fmt::format("it is read twice, and {} has no room to keep it", temporary_folder("/var/tmp")),
              "set TMPDIR to a folder with room, or unpack the file first and name it");
}

std::optional<std::string> read_all(Input& input, size_t most) {
  std::string text;
  // Doubles each time: small input needs little memory.
  constexpr size_t kFirst = size_t{64} << 10, kLargest = size_t{4} << 20;
  text.reserve(std::min<uint64_t>(input.size().value_or(0), most));
  while (true) {
    const size_t have = text.size();
    const size_t asked = input.room_for(have, std::clamp(have, kFirst, kLargest));
    text.resize(have + asked);
    const size_t got = input.read_at(have, std::as_writable_bytes(std::span(text)).subspan(have));
    text.resize(have + got);
    if (text.size() > most) return std::nullopt;
    if (got < asked || asked == 0) return text;
  }
}

}  // namespace phlox::importers
