// The bytes of a file that somebody else recorded, asked for by place. A pipe is one too. Importers see
// nothing else of the world but files of modules (module_files.h).
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
  // How many bytes were there, up to into.size(); fewer only at the end.
  virtual size_t read_at(uint64_t offset, std::span<std::byte> into) = 0;
  // None: a pipe.
  virtual std::optional<uint64_t> size() const = 0;
  // Whether bytes were asked for again that had no room on the disk: there is less then than there was.
  virtual bool lost() const { return false; }
  // errno of a read that failed: what came is not all. 0: none did.
  virtual int error() const { return 0; }
  // Of `most` bytes at an offset, as many as there can be: what to make room for before they are read.
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

// What can only be taken out in order, asked for by place: what lies at its start again and again, beyond
// that forwards. What is passed over, and all behind it, is put into a file without a name, in $TMPDIR or
// /var/tmp, and can be asked for later: a perf.data tells at its end what it holds.
class Forwards {
 public:
  // Goes on from where it stands; how many bytes, 0 at the end.
  using Source = std::function<size_t(std::span<std::byte>)>;

  explicit Forwards(Source source) : source_(std::move(source)) {}
  size_t read_at(uint64_t offset, std::span<std::byte> into);
  // Whether something was asked for that had been taken out before and was not kept.
  bool lost() const { return lost_; }

  // What is kept of its start: enough to recognise a format by.
  static constexpr size_t kHead = 65536;

 private:
  size_t fill(std::span<std::byte> into);
  bool pass(uint64_t offset);
  void keep(std::span<const std::byte> bytes);

  Source source_;
  std::vector<std::byte> head_;
  uint64_t at_ = 0;  // how much was taken out
  bool head_read_ = false, lost_ = false;
  Descriptor kept_;  // each byte at its own place
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

// What editors of Windows put before UTF-8; no part of the text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// What to say where input.lost().
tl::unexpected<Error> no_room_to_read_again();

// All of it, up to `most` bytes; none when there are more.
std::optional<std::string> read_all(Input& input, size_t most);

}  // namespace phlox::importers
