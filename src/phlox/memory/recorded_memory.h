// Memory that was copied before: for replaying, in a test, the memory of a real process. MemoryRecorder
// writes such a copy while it is made. The text form is one line for each block: address in hexadecimal, a
// blank, its bytes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "phlox/base/result.h"
#include "phlox/memory/remote_memory.h"

namespace phlox::memory {

class RecordedMemory : public RemoteMemory {
 public:
  RecordedMemory() = default;
  // Error: input.
  static Result<RecordedMemory> parse(std::string_view text);
  std::string text() const;

  using RemoteMemory::read;
  size_t read(std::span<const Range> ranges) override;

  // Replaces existing bytes.
  void add(RemoteAddress address, std::span<const std::byte> bytes);
  size_t size() const;

 private:
  bool copy(RemoteAddress address, std::span<std::byte> into) const;
  std::map<uint64_t, std::vector<std::byte>> blocks_;  // by address; never adjacent
};

// Passes reads on and keeps their results.
class MemoryRecorder : public RemoteMemory {
 public:
  explicit MemoryRecorder(RemoteMemory& source) : source_(source) {}
  using RemoteMemory::read;
  size_t read(std::span<const Range> ranges) override;
  const RecordedMemory& recorded() const { return recorded_; }

 private:
  RemoteMemory& source_;
  RecordedMemory recorded_;
};

}  // namespace phlox::memory
