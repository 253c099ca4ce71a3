// The bytes of a file that someone else recorded, read by position; a pipe is possible too. Apart from these,
// importers only open files of modules (module_files.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phlox/base/descriptor.h"
#include "phlox/base/result.h"

namespace phlox::importers {

class Input {
 public:
  virtual ~Input() = default;
  // Returns how many bytes were read, up to into.size(); fewer only at the end.
  virtual size_t read_at(uint64_t offset, std::span<std::byte> into) = 0;
  // None: a pipe.
  virtual std::optional<uint64_t> size() const = 0;
  // Whether bytes were requested again for which the disk had no room: data is missing then.
  virtual bool lost() const { return false; }
  // errno of a read that failed: the data is incomplete. 0: none failed.
  virtual int error() const { return 0; }
  // How many of `most` bytes at an offset can exist: reserve this much before reading.
  size_t room_for(uint64_t offset, uint64_t most) const;
};

class MemoryInput : public Input {
 public:
  // The bytes must outlive it.
  explicit MemoryInput(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t read_at(uint64_t offset, std::span<std::byte> into) override;
  std::optional<uint64_t> size() const override { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

// A source that can only be read in order, read by position: its start any number of times, the rest
// forwards. Bytes that are skipped, and all after them, go into a file without a name, in $TMPDIR or
// /var/tmp, and can be read later: a perf.data describes its contents at its end.
class Forwards {
 public:
  // Continues from the present position; returns how many bytes, 0 at the end.
  using Source = std::function<size_t(std::span<std::byte>)>;

  explicit Forwards(Source source) : source_(std::move(source)) {}
  size_t read_at(uint64_t offset, std::span<std::byte> into);
  // Whether bytes were requested that had been read before and were not kept.
  bool lost() const { return lost_; }

  // The size of the kept start: enough to recognise a format.
  static constexpr size_t kHead = 65536;

 private:
  size_t fill(std::span<std::byte> into);
  bool pass(uint64_t offset);
  void keep(std::span<const std::byte> bytes);

  Source source_;
  std::vector<std::byte> head_;
  uint64_t at_ = 0;  // how much was read
  bool head_read_ = false, lost_ = false;
  Descriptor kept_;  // each byte at its own position
  uint64_t kept_from_ = 0, kept_to_ = 0;
};

// A file, or a pipe.
class FileInput : public Input {
 public:
  // "-": standard input.
  static Result<std::unique_ptr<FileInput>> open(const std::string& path);
  size_t read_at(uint64_t offset, std::span<std::byte> into) override;
  std::optional<uint64_t> size() const override { return size_; }
  bool lost() const override { return pipe_.lost(); }
  int error() const override { return error_; }

 private:
  FileInput();

  Descriptor owned_;
  int descriptor_ = -1;
  int error_ = 0;
  std::optional<uint64_t> size_;
  Forwards pipe_;
};

// Windows editors put this before UTF-8; not a part of the text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Call it before reading twice: a pipe is read to its end, into a file without a name.
void keep_all(Input& input);

// The message if input.lost().
tl::unexpected<Error> no_room_to_read_again();

// All of it, up to `most` bytes; none if there are more.
std::optional<std::string> read_all(Input& input, size_t most);

}  // namespace phlox::importers
