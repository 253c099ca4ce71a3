#include "phlox/symbols/function_starts.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "phlox/base/byte_reader.h"

namespace phlox::symbols {
namespace {

// DW_EH_PE_*, LSB Core 10.5.1; every linker writes these.
constexpr uint8_t kPcRelative4 = 0x1b;    // pcrel | sdata4
constexpr uint8_t kUnsigned4 = 0x03;      // udata4
constexpr uint8_t kDataRelative4 = 0x3b;  // datarel | sdata4
constexpr size_t kRow = 8;

uint64_t relative(uint64_t base, int32_t offset) {
  return base + static_cast<uint64_t>(int64_t{offset});
}

}  // namespace

FunctionStarts::FunctionStarts(elf::ElfFile file) {
  const auto segment = std::find_if(file.segments().begin(), file.segments().end(),
                                    [](const elf::Segment& s) { return s.type == PT_GNU_EH_FRAME; });
  if (segment == file.segments().end()) return;
  const auto bytes = file.at(segment->address, segment->file_size);
  ByteReader in(bytes);
  const auto version = in.read<uint8_t>();
  const auto pointer = in.read<uint8_t>();
  const auto counted = in.read<uint8_t>();
  const auto rows = in.read<uint8_t>();
  in.skip(4);
  const auto count = in.read<uint32_t>();
  if (in.failed() || version != 1 || pointer != kPcRelative4 || counted != kUnsigned4 ||
      rows != kDataRelative4)
    return;
  header_ = segment->address.value;
  table_ = bytes.subspan(in.offset());
  count_ = std::min<size_t>(count, table_.size() / kRow);
  file_ = std::move(file);
}

uint64_t FunctionStarts::start_of(size_t i) const {
  int32_t offset = 0;
  std::memcpy(&offset, table_.data() + i * kRow, 4);
  return relative(header_, offset);
}

std::optional<uint64_t> FunctionStarts::end_of(size_t i) const {
  int32_t offset = 0;
  std::memcpy(&offset, table_.data() + i * kRow + 4, 4);
  const uint64_t fde = relative(header_, offset);
  // Length, distance of the CIE, start, length of the function.
  ByteReader in(file_->at(ImageAddress(fde), 16));
  in.skip(8);
  const auto start = in.read<int32_t>();
  const auto length = in.read<uint32_t>();
  // Another encoding than the usual one yields another start.
  if (in.failed() || relative(fde + 8, start) != start_of(i)) return std::nullopt;
  return start_of(i) + length;
}

std::optional<ImageAddress> FunctionStarts::find(ImageAddress address) const {
  size_t low = 0, high = count_;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (start_of(middle) <= address.value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  const uint64_t start = start_of(low - 1);
  const auto end = end_of(low - 1);
  if (start > address.value || (end && address.value >= *end)) return std::nullopt;
  return ImageAddress(start);
}

}  // namespace phlox::symbols
