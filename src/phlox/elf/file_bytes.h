// The bytes of a file that someone else may have written, and may change or truncate at any time. They are
// read when they are needed and never mapped. There are two limits: the memory that all files hold together,
// and the bytes that one target makes us read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"

namespace phlox::elf {

// The bytes that one target may make us read, in all its files. Threads may share it.
class ReadBudget {
 public:
  // The largest programs known (PyTorch with CUDA) need a quarter of this.
  static constexpr uint64_t kMost = uint64_t{2} << 30;
  explicit ReadBudget(uint64_t bytes = kMost) : left_(bytes) {}
  // False: less is left, and nothing was taken.
  bool take(uint64_t bytes);

 private:
  std::atomic<uint64_t> left_;
};

class FileBytes {
 public:
  // The largest part, such as a section, and the most that all files hold at a time. The largest library
  // known has symbols and unwind tables of some 100 MB.
  static constexpr uint64_t kMostPart = uint64_t{256} << 20;
  static constexpr uint64_t kMostHeld = uint64_t{1} << 30;

  // Keeps the file open. Only a small file is read at once. Without a budget the file is ours.
  static Result<FileBytes> read(int fd, std::string_view name, std::shared_ptr<ReadBudget> budget = {});
  // Bytes that do not come from a file.
  static FileBytes own(std::vector<std::byte> bytes);

  uint64_t size() const;
  // Valid as long as a copy of this object exists. Empty: the part is outside the file, or larger than the
  // limits allow. Bytes that cannot be read are zero.
  std::span<const std::byte> part(uint64_t offset, uint64_t size) const;
  // All of a file of up to kMostPart bytes, otherwise its first kMostPart bytes; empty beyond the limits.
  std::span<const std::byte> bytes() const;
  // The whole file as far as it was read, for libelf, which does not write into it; zeros elsewhere.
  std::span<std::byte> as_fetched() const;
  // Copies a part and keeps nothing of it, for a search through a large file. False if part() is empty.
  bool copy(uint64_t offset, std::span<std::byte> into) const;
  // How many more bytes can be held.
  static uint64_t room();

 private:
  struct Held;
  explicit FileBytes(std::shared_ptr<Held> held) : held_(std::move(held)) {}
  std::shared_ptr<Held> held_;
};

}  // namespace phlox::elf
